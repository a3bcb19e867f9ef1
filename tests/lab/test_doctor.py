"""The doctor names what is wrong: from its own table, from a real engine's answers, and with what servers do wrong."""

import http.server
import json
import math
import threading

import nbformat
import numpy as np
import pytest

from lab import doctor, opened
from lab.doctor import CAUSES, RIGHT, Refused, Table, ask, between, diagnose, distances, from_file, main, report
from tests.conftest import ROOT

TABLE = Table.stored()
RECORDED = json.loads((ROOT / "tests" / "data" / "engines.json").read_text(encoding="utf-8"))
ENGINES = RECORDED["runs"]
EXPECTED = {
    "as it is": RIGHT,
    "rope_freq_base 10,000": "base 10,000",
    "rope_freq_scale 0.5": "positions divided by 2",
    "YaRN by 4": "YaRN by 4",
    "called qwen2": "the other layout",
    "rows not reordered": "weights in the other order",
    "a context of 1,024": RIGHT,
}


FIVE = {str(token): -2.0 - token for token in range(1, 6)}


def known_of(mistake: str) -> np.ndarray:
    return TABLE.known[TABLE.mistakes.index(mistake)]


def said_of(answers: list, table: Table = TABLE) -> str:
    return report(diagnose(answers, table))


def answers_of(mistake: str) -> list:
    """What an engine with this mistake says."""
    return [
        [{int(t): float(x) for t, x in zip(*row, strict=True) if t >= 0} for row in zip(tokens, known, strict=True)]
        for tokens, known in zip(TABLE.tokens, known_of(mistake), strict=True)
    ]


def recorded(name: str) -> list:
    return [one and [{int(t): x for t, x in place.items()} for place in one] for one in ENGINES[name]]


def found_in(said: str) -> str:
    [line] = [line for line in said.splitlines() if line.startswith("Found: ")]
    return line.removeprefix("Found: ").removesuffix(".")


@pytest.mark.parametrize("mistake", CAUSES)
def test_each_mistake_is_found_or_said_to_be_hidden(mistake):
    said = said_of(answers_of(mistake))
    found, said = found_in(said), " ".join(said.split())
    assert found == doctor.named(mistake) or mistake in said.partition("cannot be told from: ")[2], said
    assert all(cause in said for name, cause in CAUSES.items() if doctor.named(name) == found)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_engine(name):
    """llama.cpp's server, with four-bit weights and rounded activations; see tools/record_engines.py."""
    said = said_of(recorded(name))
    assert found_in(said) == doctor.named(EXPECTED[name]), said


def test_a_real_shift():
    """Its cache of 512 was full, and half of it was dropped, the first token with it, or not."""
    prompt = opened.texts()["book"][: 512 - doctor.BEFORE].tolist()
    for keep, found in (("0", "the first token with it"), ("1", "the first token kept")):
        apart = doctor.distances_of_shifts(prompt, RECORDED["shifts"][keep], 512)
        said = doctor.shift_report(apart, 512)
        assert f"Found behind 512 tokens: half was dropped, and {found}." in said
        assert ("--keep 1" in said) == (keep == "0")
    assert doctor.distances_of_shifts(prompt, RECORDED["shifts"]["0"][:31], 512) == {}
    assert doctor.shift_report({}, 512) == "It stopped writing: it does not shift at 512 tokens."


def test_a_lost_first_token_is_a_mistake(tmp_path, monkeypatch, capsys):
    """The rotation is right, and the status says all the same that something is wrong."""
    prompt = opened.texts()["book"][: 512 - doctor.BEFORE].tolist()
    monkeypatch.setattr(doctor, "ask_all", lambda address, table: (recorded("as it is"), {}))
    for keep, status in (("0", 1), ("1", 0)):
        written = RECORDED["shifts"][keep]
        monkeypatch.setattr(doctor, "over_the_border", lambda address, context, written=written: (prompt, written))
        assert main(["http://localhost:8080", "--context", "512"]) == status
    assert "Found: nothing wrong." in capsys.readouterr().out


def test_the_page_shows_what_the_doctor_says():
    page = nbformat.read(ROOT / "chapters" / "in_practice.ipynb", as_version=4)
    [shown] = [cell.source for cell in page.cells if cell.id == "doctor"]
    assert f"```text\n{said_of(recorded('rope_freq_base 10,000'))}\n```" in shown


def test_what_was_refused_is_not_judged():
    said = said_of(recorded("a context of 1,024"))
    refused = sum(one is None for one in recorded("a context of 1,024"))
    assert f"{40 - refused} of 40 prompts were answered." in said
    assert "Prompts of 1,024 tokens and more were refused: nothing is said of such texts." in said
    said = said_of([None, *recorded("as it is")[1:]])
    assert "39 of 40 prompts were answered." in said
    assert "were refused" not in said  # others of that length were answered
    assert said_of([None] * 40) == "No prompt was answered: nothing can be said."


def test_another_model_is_none_of_them():
    rng = np.random.default_rng(0)
    answers = [
        [{int(t): float(x) for t, x in zip(rng.permutation(49_000)[:20], -np.sort(rng.random(20)) * 5, strict=True)}]
        for _ in TABLE.prompts
    ]
    assert "None of the mistakes that this program knows explains it" in said_of(answers)


def test_what_fits_two_mistakes_is_not_decided():
    """Both say the same of what the engine named."""
    assert "It cannot be told from: the other layout" in said_of([[{7: -0.5}, {9: -0.5}]], table_of(-0.5, -0.5, -3))
    assert "Not decided between " in said_of([[{7: -0.55}, {9: -0.55}]], table_of(-0.5, -0.6, -3))
    assert diagnose([[{7: -0.55}, {9: -0.55}]], table_of(-0.5, -0.6, -3)).found is None


def table_of(*numbers: float) -> Table:
    """One prompt, and one token at both places, with the same log-probability."""
    known = np.array(numbers)[:, None, None, None] + np.zeros((1, 1, 2, 1))
    return Table([[1]], [*CAUSES][: len(numbers)], np.array([[[7], [9]]]), known, {})


def test_a_distance_by_hand():
    known = np.log([[[[0.5, 0.25], [0.5, 1.0]]]])
    table = Table([[1, 2]], [RIGHT], np.array([[[7, 8], [9, -1]]]), known, {})
    [[apart]] = distances([[{7: np.log(0.5), 8: np.log(0.125)}, {9: np.log(0.25)}]], table)
    assert apart == pytest.approx((0.25 * np.log(2) + 0.5 * np.log(2)) / (0.5 + 0.25 + 0.5))
    [[apart]] = distances([[{8: np.log(0.5), 7: np.log(0.25)}, {9: np.log(0.25)}]], table)
    assert apart == pytest.approx(np.log(2))  # another token went before the second place: it is not counted
    [[apart]] = distances([[{7: np.log(0.5)}]], table)
    assert apart == 0  # 8 was not named, and is less likely than the last one that was
    assert np.isnan(distances([None], table)).all()


def test_nothing_is_stored_twice():
    assert len(TABLE.known) == len(CAUSES)
    assert len(TABLE.prompts) == 40
    assert {len(prompt) for prompt in TABLE.prompts} == {64, 384, 1024, 3000}
    apart = {(a, b): between(a, b, TABLE, [*range(40)]) for a in CAUSES for b in CAUSES if a < b}
    same = {pair for pair, distance in apart.items() if distance < doctor.SAME}
    assert same <= {("inverse frequencies in bfloat16", RIGHT)}


# -- Servers and files -------------------------------------------------------------------------------------------------


@pytest.fixture
def server():
    """An address, and what it answers: a status and a body."""
    answer = {"status": 200, "body": {}}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = answer["body"] if isinstance(answer["body"], bytes) else json.dumps(answer["body"]).encode()
            self.send_response(answer["status"])
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", answer
        running.shutdown()


def test_both_forms_of_an_answer(server):
    address, answer = server
    token, word = next(iter(TABLE.words.items()))
    top = [{"id": token - i, "token": word, "logprob": -0.5 - i} for i in range(5)]
    answer["body"] = {"choices": [{"logprobs": {"content": [{**top[0], "top_logprobs": top}] * 2}}]}
    assert ask(address, [1], TABLE.words) == [{token - i: -0.5 - i for i in range(5)}] * 2
    likely = {word: -0.5, "A!": -3.0, "B!": -4.0, "C!": -5.0, "D!": -6.0}
    given = {"tokens": [word], "token_logprobs": [-0.5], "top_logprobs": [likely]}
    answer["body"] = {"choices": [{"logprobs": given}]}
    [found] = ask(address + "/v1", [1], TABLE.words)
    assert found[token] == -0.5
    assert sorted(found.values()) == sorted(likely.values())
    assert sum(number < -1 for number in found) == 4  # texts that no token of the table has


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, b"the context is 512", "400: the context is 512"),
        (200, b"<html>", "its answer is no JSON, but: '<html>'"),
        (200, {"choices": [{"text": " Paris", "logprobs": None}]}, "there are no `logprobs` in its answer"),
        (200, {"error": "model not found"}, "there are no `logprobs` in its answer"),
        (
            200,
            {"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": [{}]}}]},
            "0 tokens are named; needed are the 5 likeliest",
        ),
    ],
)
def test_a_refusal_is_said(server, status, body, said, capsys):
    address, answer = server
    answer |= {"status": status, "body": body}
    with pytest.raises(Refused, match=f"^{said}"):
        ask(address, [1], TABLE.words)
    assert main([address]) == 2
    captured = capsys.readouterr()
    assert f"Refused were 40 prompts of 64 or 384 or 1,024 or 3,000 tokens: {said}" in captured.err
    assert captured.err.count("Refused were") == 1
    assert captured.out == "No prompt was answered: nothing can be said.\n"


def test_what_an_engine_writes_over_the_border(server):
    address, answer = server
    answer["body"] = {"choices": [{"logprobs": {"content": [{"id": 7, "logprob": -0.5, "top_logprobs": []}]}}]}
    prompt, written = doctor.over_the_border(address, 512)
    assert len(prompt) == 512 - doctor.BEFORE
    assert written == [(7, -0.5)]
    given = {"tokens": [" Paris"], "token_logprobs": [-0.25], "top_logprobs": [{" Paris": -0.25}]}
    answer["body"] = {"choices": [{"logprobs": given}]}
    [(token, x)] = doctor.over_the_border(address, 512)[1]
    assert (opened.model().text([token]), x) == (" Paris", -0.25)
    given["tokens"] = ["no such word"]
    with pytest.raises(Refused, match="it wrote a word that this model does not have"):
        doctor.over_the_border(address, 512)
    answer["body"] = {"choices": [{"text": "", "logprobs": None}]}
    with pytest.raises(Refused, match="there are no `logprobs`"):
        doctor.over_the_border(address, 512)
    for arguments in ([address, "--context", "9000"], ["answers.json", "--context", "512"]):
        with pytest.raises(SystemExit):
            main(arguments)


def test_advice_on_what_was_refused():
    assert "--max-logprobs 20" in doctor.advice("400: logprobs must be at most 5")
    assert "-c 4096" in doctor.advice("400: the request exceeds the available context size")
    assert doctor.advice("404: not found") == "Is it the address of an OpenAI-compatible server?"
    assert doctor.advice("500: out of memory") == ""


def test_no_server(capsys):
    assert main(["http://127.0.0.1:9"]) == 2
    assert "http://127.0.0.1:9/v1/completions does not answer (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2", "answers.json is no JSON: "),
        ("{}", "answers.json holds no list; needed is a list of 40 entries"),
        (json.dumps(TABLE.prompts), "holds the prompts themselves; needed are the answers of your engine to them"),
        (json.dumps([None, []] * 20), "entry 1: it has no tokens; where there is no answer, write null"),
        ("[null]", "has 1 entries; needed is a list of 40 entries"),
        (
            json.dumps([[FIVE | {"5": 3.5}]] * 40),
            "entry 0: a logarithm is 3.5, above 0: are these logits, or probabilities?",
        ),
        (json.dumps([None, [FIVE | {"5": math.nan}]] * 20), "entry 1: {"),
        (json.dumps([[{"5": -1.0}]] * 40), "entry 0: 1 tokens are named; needed are the 5 likeliest at least"),
        (json.dumps([["x"]] * 40), 'entry 0: ["x"] is neither null nor a list of objects {"number of a token":'),
        (json.dumps([5] * 40), "entry 0: 5 is neither null nor"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, text, said, capsys):
    path = tmp_path / "answers.json"
    path.write_text(text)
    assert main([str(path)]) == 2
    assert said in capsys.readouterr().err


def test_files_there_and_back(tmp_path, capsys):
    prompts, path = tmp_path / "prompts.json", tmp_path / "answers.json"
    assert main(["--prompts", str(prompts)]) == 0
    assert json.loads(prompts.read_text()) == TABLE.prompts
    path.write_text(json.dumps(answers_of("base 10,000")))
    assert from_file(path, TABLE) == answers_of("base 10,000")
    assert main([str(path)]) == 1
    path.write_text(json.dumps(answers_of(RIGHT)))
    assert main([str(path)]) == 0
    assert "Found: nothing wrong." in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([])
    assert main(["localhost:8080"]) == 2
    assert "there is no file localhost:8080; an address begins with http://" in capsys.readouterr().err
