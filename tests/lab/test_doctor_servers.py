"""What engines answer, over HTTP and in files, in the forms that servers have and with what they do wrong."""

import contextlib
import email.utils
import http.server
import json
import math
import ssl
import threading
import urllib.request
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lab import opened
from lab.doctor import judge, names, servers, shifts
from lab.doctor.__main__ import main
from lab.doctor.names import NotUnderstood, naming_of, numbered
from lab.doctor.servers import Server, ask_all, from_file, places, understood
from lab.doctor.table import RIGHT, Table
from lab.vocabulary import text_of
from tests.lab.test_doctor import ENGINES, answers_of

pytestmark = pytest.mark.weights

TABLE = Table.stored()
FIVE = {str(token): -2.0 - token for token in range(1, 6)}
HEALTHY = ENGINES.runs["as it is"]
WHOLE = ~np.isnan(TABLE.known).any((1, 2, 3))  # rows that are known for all prompts
ASKED = {tuple(prompt): number for number, prompt in enumerate(TABLE.prompts)}


def apart_of(answers: list) -> np.ndarray:
    """(rows, prompts) distances from the rows that are known for all prompts."""
    known = TABLE.known[WHOLE]
    return judge.mean_of(judge.distances(judge.what_was_said(answers, TABLE)[WHOLE], known), -1)


def text_in_vocabulary(token: int) -> str:
    return opened.model().text([token])


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """The seconds of each pause; none is made."""
    made = []
    monkeypatch.setattr(servers, "sleep", made.append)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return made


class Played(http.server.ThreadingHTTPServer):
    """A server; `answer(request, number)` is what it says: a body, or status, body and headers; None: it hangs up.

    `requests` are the bodies that came, `headers` what stood above them.
    """

    def __init__(self, answer):
        played, self.requests, self.headers, self.answer = self, [], [], answer

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                played.requests.append(body)
                played.headers.append({"path": self.path} | dict(self.headers))
                said = played.answer(body, len(played.requests) - 1)
                if said is None:
                    return
                status, body, headers = said if isinstance(said, tuple) else (200, said, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

            do_GET = do_POST

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def playing(answer):
    with Played(answer) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running
        running.shutdown()


# -- The forms of answers, played with what llama.cpp said: a healthy engine -------------------------------------------


def ids(likely, first=lambda token: token):
    """llama.cpp's own form; its ids, or another name in their place."""
    top = [{"id": first(token), "token": text_in_vocabulary(token), "logprob": x} for token, x in likely.items()]
    return top[0] | {"top_logprobs": top}


def content(rows):
    return {"content": rows}


def older(answer, spelled, logarithm=lambda x: x, more=None):
    """OpenAI's older form: names are keys, so that tokens of one name fall together and the last one stays."""
    return {
        "tokens": [spelled(next(iter(likely))) for likely in answer],
        "token_logprobs": [next(iter(likely.values())) for likely in answer],
        "top_logprobs": [{spelled(t): logarithm(x) for t, x in likely.items()} | (more or {}) for likely in answer],
    }


def objects(answer, spelled):
    """OpenAI's chat form, without ids."""
    rows = [[{"token": spelled(token), "logprob": x} for token, x in likely.items()] for likely in answer]
    return content([top[0] | {"top_logprobs": top} for top in rows])


FORMS = {
    "llama.cpp": lambda a: content([ids(likely) for likely in a]),
    "llama.cpp, ids as strings": lambda a: content([ids(likely, str) for likely in a]),
    "chat form, ids as tokens": lambda a: objects(a, int),
    "ids as keys": lambda a: older(a, str),
    "token_id:N": lambda a: older(a, "token_id:{}".format),
    "<N>, with a word around numbers that nobody has yet": lambda a: objects(a, "<tok {}>".format),
    "vLLM's objects": lambda a: older(a, str, lambda x: {"logprob": x, "rank": 1, "decoded_token": "?"}),
    "logarithms as strings": lambda a: older(a, str, str),
    "a floor": lambda a: older(a, str, more={"5": -9999.0, "6": -3.4e38, "7": None, "8": "-Infinity"}),
    "content is null": lambda a: {"content": None} | older(a, str),
    "more tokens than asked for": lambda a: older([*a, *a], str),
}
TEXTS = {
    "texts": text_in_vocabulary,
    "raw pieces": lambda token: opened.model().vocabulary[token],
    "▁ for a space": lambda token: text_in_vocabulary(token).replace(" ", "▁"),
}
STRIPPED = {
    "without the space in front": lambda token: text_in_vocabulary(token).removeprefix(" "),
    "without spaces in front": lambda token: text_in_vocabulary(token).lstrip(" "),
    "without white space": lambda token: text_in_vocabulary(token).strip(),
}


def heard(form, run=HEALTHY):
    """What is understood of a run in some form."""
    said = [answer and cleaned(places({"choices": [{"logprobs": form(answer)}]})) for answer in run]
    return understood(said, TABLE)


def cleaned(read):
    return [names.Place(one.name, one.logarithm, servers.cleaned(one.likely)) for one in read[:2]]


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_understood_in_each_form(form):
    assert heard(FORMS[form]) == (HEALTHY, "")


@pytest.mark.parametrize("run", ENGINES.runs)
def test_numbers_and_texts_are_understood_of_engines_with_mistakes(run):
    own = apart_of(ENGINES.runs[run])
    answers, _ = heard(lambda a: objects(a, text_in_vocabulary), ENGINES.runs[run])
    apart = apart_of(answers)
    both = ~np.isnan(apart)
    assert both.sum() > 0.9 * (~np.isnan(own)).sum()
    assert abs(apart[both] - own[both]).max() < 0.05
    assert heard(FORMS["ids as keys"], ENGINES.runs[run]) == (ENGINES.runs[run], "")


@pytest.mark.parametrize("form", [older, objects], ids=["keys", "objects"])
@pytest.mark.parametrize("spelled", TEXTS)
def test_texts_are_understood(spelled, form):
    """Those of the table; others have negative numbers. Of two prompts the first tokens are pieces of a letter."""
    run = [answer if p not in (16, 20) else None for p, answer in enumerate(HEALTHY)]
    answers, _ = heard(lambda a: form(a, TEXTS[spelled]), run)
    for p, (answer, right) in enumerate(zip(answers, run, strict=True)):
        for place, (said, known) in enumerate(zip(answer or (), right or (), strict=True)):
            tokens = {int(token) for token in TABLE.tokens[p, place]}
            assert [{t: x for t, x in one.items() if t in tokens} for one in (said, known)] == [
                {t: x for t, x in known.items() if t in tokens}
            ] * 2
            assert sorted(said.values()) == sorted(known.values())


@pytest.mark.parametrize("form", [older, objects], ids=["keys", "objects"])
@pytest.mark.parametrize("spelled", TEXTS | STRIPPED)
def test_what_cannot_be_told_apart_is_left_out_and_said(spelled, form):
    """What is left is as far from the right model as in llama.cpp's form, up to what the judge does not tell apart."""
    with playing(player(lambda a: form(a, (TEXTS | STRIPPED)[spelled]))) as engine:
        answers, said = ask_all(Server(engine.address), TABLE)
    own, apart = (apart_of(run)[TABLE.mistakes.index(RIGHT)] for run in (HEALTHY, answers))
    there = ~np.isnan(apart)
    assert there.sum() >= (38 if spelled in TEXTS else 32)
    assert abs(apart[there].mean() - own[there].mean()) < (1e-9 if spelled in TEXTS else 0.03)
    assert all("one name stands for several tokens." in one or "1 in [[" in one for one in said)


def test_names_that_nobody_has(capsys):
    def spelled(token):
        return json.dumps(text_in_vocabulary(token))

    with playing(player(lambda a: older(a, spelled))) as engine:
        assert main([engine.address]) == 2
    out, error = capsys.readouterr()
    assert "Error: its names of tokens are not understood: " in error
    assert error.count('"\\"') == 3
    assert (out, "Is it SmolLM2" in error) == ("", False)
    assert "(0% of the probability is on names that are known here)" in error


def player(form, run=HEALTHY):
    """A healthy engine that answers in this form."""
    return lambda body, number: {"choices": [{"logprobs": form(run[ASKED[tuple(body["prompt"])]])}]}


def test_an_engine_is_heard_over_http():
    with playing(player(FORMS["token_id:N"])) as engine:
        assert ask_all(Server(engine.address), TABLE) == (HEALTHY, [])
    assert [body["prompt"] for body in engine.requests] == TABLE.prompts


def test_pieces_are_read():
    assert text_of("ĠtheĊ") == " the\n"
    vocabulary = opened.model().vocabulary
    assert all(text_of(vocabulary[number]) == word for number, word in TABLE.words.items())


def test_one_name_for_two_tokens():
    tokens = [1792, 104]  # " x" and "x"
    assert [TABLE.words[token].strip() for token in tokens] == ["x", "x"]
    naming = naming_of([[names.Place("the", -0.1, [("the", -0.1), ("of", -3.0), ("x", -4.0)])]], TABLE.words)
    assert naming.kind == "their texts without white space"
    rare, often = ([("a", -0.1), ("x", x)] for x in (-4.0, -2.0))
    assert numbered(names.Place("a", -0.1, rare), naming, tokens) == {-2: -0.1, -3: -4.0}
    assert numbered(names.Place("a", -0.1, often), naming, tokens) is None
    assert numbered(names.Place("x", -0.5, rare), naming, tokens) is None  # it wrote it, so the other fell away
    assert numbered(names.Place("a", -0.1, often), naming, [104]) == {-2: -0.1, 104: -2.0}


# -- Numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "read"),
    [(-1, -1.0), ("-1.5", -1.5), (None, -math.inf), ("-inf", -math.inf), (-math.inf, -math.inf), (-9999, -9999.0),
     ({"logprob": -2.0}, -2.0), (0.0, 0.0), (1e-4, 1e-4)],
)  # fmt: skip
def test_a_logarithm(given, read):
    assert servers.logarithm(given) == read


@pytest.mark.parametrize(
    ("given", "said"),
    [(True, "no number: true"), (math.nan, "no number: NaN"), ("x", 'no number: "x"'),
     (10**400, "no number: 1000"), ([1], "no number"), (0.9, "above 0 .*: 0.9"), (math.inf, "above 0 .*: inf")],
)  # fmt: skip
def test_what_is_no_logarithm(given, said):
    with pytest.raises(NotUnderstood, match=said):
        servers.logarithm(given)


def test_probabilities_after_sampling():
    for rest in (-9999.0, None, -3.4e38, "-Infinity"):
        sampled = older([{1: 0.0, 2: rest, 3: rest, 4: rest, 5: rest}], str)
        with playing(lambda body, number, sampled=sampled: {"choices": [{"logprobs": sampled}]}) as engine:
            _, [said, left] = ask_all(Server(engine.address), TABLE)
        assert said.startswith(
            "Answered, but not understood: 3 prompts of 64 tokens. one token has all the probability"
        )
        assert "these look like probabilities after sampling, at temperature 0" in said
        assert left == "Not asked any more: 37 prompts of 64, 384, 1,024 or 3,000 tokens."
    assert servers.cleaned([(1, -0.5), *((t, -1.0) for t in range(2, 6)), (7, -100.5)])[-1] == (5, -1.0)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([-1.0, "-1", 10**400]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "logprobs", "content", "tokens", "top_logprobs", "token_logprobs", "id", "logprob"]
            )
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@st.composite
def spoiled(draw):
    """An answer in one of the forms, with something else in one or two places."""
    form = draw(st.sampled_from([*FORMS.values(), *(lambda a, f=f: objects(a, f) for f in TEXTS.values())]))
    answer = {"choices": [{"logprobs": form(HEALTHY[draw(st.integers(0, 39))])}]}
    for _ in range(draw(st.integers(1, 2))):
        at = answer
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(at[key], dict | list) and draw(st.booleans()):
                at = at[key]
                continue
            at[key] = draw(JSON)
            break
    return json.loads(json.dumps(answer))


@settings(max_examples=400, deadline=None)
@given(bodies=st.lists(JSON | spoiled(), min_size=1, max_size=3))
@example(bodies=[{"choices": [{"logprobs": {"content": [None] * 3}}]}])
@example(bodies=[{"choices": [{"logprobs": older(HEALTHY[0], str, lambda x: None)}]}])
def test_no_body_ends_it(bodies):
    """Whatever comes is understood, or said in a sentence."""
    said = []
    for body in bodies:
        with contextlib.suppress(NotUnderstood):
            said.append(cleaned(places(body)) or None)
    with contextlib.suppress(NotUnderstood):
        answers, _ = understood(said, TABLE)
        for answer in answers:
            assert answer is None or all(-100 <= x <= 1e-3 for place in answer for x in place.values())
            assert answer is None or all(len(place) and all(isinstance(t, int) for t in place) for place in answer)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", 'its answer is no JSON: "<html>". Is it the address of an OpenAI-compatible server?'),
        (b"[" * 100_000, 'its answer is no JSON: "[[[['),
        (b"", 'its answer is no JSON: "".'),
        (b'data: {"choices": []}\n\n', "its answer is a stream of events, which was not asked for."),
        (5, "its answer has no `choices`: 5"),
        ({"choices": []}, "its answer has no choice in it: "),
        ({"error": "model not found"}, 'its answer is an error: "model not found"'),
        ({"choices": [{"text": " Paris", "logprobs": None}]}, "its answer has no log-probabilities in `logprobs`: "),
        ({"choices": [{"text": " Paris"}]}, "its answer has no `logprobs`: "),
        ({"choices": [{"logprobs": {"content": []}}]}, "its answer has no tokens."),
        ({"choices": [{"logprobs": {"tokens": ["a"]}}]}, "its `logprobs` have neither `content` nor `tokens`"),
        (
            {"choices": [{"logprobs": {"content": None, "tokens": ["a"], "token_logprobs": [-1]}}]},
            "its `logprobs` have neither `content` nor",
        ),
        (
            {"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": [{}]}}]},
            "too few tokens are named (needed are the 5 likeliest at least). Needed are 5 log-probabilities or more",
        ),
        (
            {"choices": [{"logprobs": {key: [None, {}, {}] for key in ("tokens", "token_logprobs", "top_logprobs")}}]},
            "the first of its tokens has no log-probabilities (it may repeat the prompt, as with `echo`).",
        ),
        (
            {"choices": [{"logprobs": {"content": [{"logprob": -1, "top_logprobs": []}]}}]},
            "a token of its answer has neither number nor text",
        ),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_said_once(body, said, capsys):
    with playing(lambda *_: body) as engine:
        assert main([engine.address]) == 2
    out, error = capsys.readouterr()
    assert f"Answered, but not understood: 3 prompts of 64 tokens. {said}" in error
    assert "Refused" not in error
    assert "Not asked any more: 37 prompts of 64, 384, 1,024 or 3,000 tokens.\n" in error
    assert out == "No answer could be compared: nothing can be said.\n"
    assert len(engine.requests) == 3


# -- What is sent ------------------------------------------------------------------------------------------------------


def test_what_is_sent(monkeypatch, capsys):
    """In particular no key where none was given, and the same answers with and without a key."""
    asked = []
    plain = urllib.request.OpenerDirector.open

    def noted(self, request, *rest, timeout):
        asked.append(timeout)
        return plain(self, request, *rest, timeout=timeout)

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", noted)
    with playing(player(FORMS["llama.cpp"])) as engine:
        assert main([f" {engine.address.upper()}/v1/ ".replace("HTTP", "Http")]) == 0
        monkeypatch.setenv("OPENAI_API_KEY", "from-the-variable")
        assert main([engine.address, "--model", "smol"]) == 0
        assert main([f"{engine.address}/", "--key", "sk-1"]) == 0
    assert len(engine.requests) == 120
    for number, (body, headers) in enumerate(zip(engine.requests, engine.headers, strict=True)):
        model = {"model": "smol"} if 40 <= number < 80 else {}
        prompt = TABLE.prompts[number % 40]
        assert body == {"prompt": prompt, "temperature": 0, "max_tokens": 2, "logprobs": 20} | model
        key = [None, "Bearer from-the-variable", "Bearer sk-1"][number // 40]
        assert (headers["path"], headers.get("Authorization")) == ("/v1/completions", key)
        assert headers["Content-Type"] == "application/json"
    assert asked == [300] * 120
    out, error = capsys.readouterr()
    assert "from-the-variable" not in out + error


def test_a_key_goes_nowhere_else_and_is_not_printed(capsys):
    with playing(lambda *_: {}) as other:
        for status in (301, 302, 303, 307, 308):
            to = {"Location": f"{other.address}/v1/completions?was=sk-1"}
            with playing(lambda *_, status=status, to=to: (status, {}, to)) as engine:
                assert main([engine.address, "--key", "sk-1"]) == 2
            assert f"{status}: it sends on to {other.address}/v1/completions?was=(the key), which is not followed." in (
                capsys.readouterr().err
            )
    assert other.requests == []
    for answer in ((401, b"Incorrect API key: sk-1", {}), {"error": "sk-1 is wrong"}, b"sk-1"):
        with playing(lambda *_, answer=answer: answer) as engine:
            assert main([engine.address, "--key", "sk-1"]) == 2
        out, error = capsys.readouterr()
        assert ("sk-1" in out + error, "(the key)" in error) == (False, True)
    for key in ("sk\n1", "schlüssel", "sk 1"):
        assert main([engine.address, "--key", key]) == 2
        error = capsys.readouterr().err
        assert error == "Error: the key has a space, or a sign that is not ASCII, in it: no header can carry it\n"
    assert "sk-1" not in repr(Server("http://localhost", key="sk-1"))


# -- Refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "text", "advised"),
    [
        (
            400,
            "the request exceeds the available context size",
            "A context of 4,096 takes all prompts (llama.cpp: -c 4096;",
        ),
        (400, "This model's maximum context length is 32", "A context of 4,096 takes all prompts"),
        (
            422,
            '[{"loc": ["body", "model"], "msg": "Field required"}]',
            "--model NAME gives it a name of the model; http",
        ),
        (404, "model smol does not exist", "--model NAME gives it a name of the model; http"),
        (404, "not found", "Is it the address of an OpenAI-compatible server?"),
        (401, "Unauthorized", "No key was sent: --key KEY, or the variable OPENAI_API_KEY, gives one."),
        (403, "Forbidden", "No key was sent: --key KEY"),
        (500, "out of memory", ""),
    ],
)
def test_a_refusal_is_said_once_with_advice(status, text, advised, capsys):
    """A message that differs each time is still one kind."""
    with playing(lambda body, number: (status, f"{text} ({number})".encode(), {})) as engine:
        assert main([engine.address]) == 2
    error = capsys.readouterr().err
    line, left = error.splitlines()[-2:]
    assert f"Refused: 3 prompts of 64 tokens. {status}: {text} (0). {advised}".rstrip() in line
    assert left == "Not asked any more: 37 prompts of 64, 384, 1,024 or 3,000 tokens."
    with playing(lambda *_: (401, b"", {})) as engine:
        _, [said, _] = ask_all(Server(engine.address, key="k"), TABLE)
    assert said.endswith("401: Unauthorized. A key was sent; it may be that of another server.")


def test_a_server_that_gives_five_at_most():
    def five(body, number):
        if body["logprobs"] > 5:
            return 400, b"logprobs must be between 0 and 5", {}
        return player(lambda a: older([dict(list(likely.items())[:5]) for likely in a], str))(body, number)

    with playing(five) as engine:
        answers, [said] = ask_all(Server(engine.address), TABLE)
    assert all(len(place) == 5 for answer in answers for place in answer)
    assert said.startswith(
        "Asked for 20 log-probabilities it answers 400: logprobs must be between 0 and 5. Asked for 5"
    )
    assert [body["logprobs"] for body in engine.requests] == [20] + [5] * 40


def test_a_server_that_takes_text_alone():
    def text(body, number):
        if not isinstance(body["prompt"], str):
            return 422, b"prompt: Input should be a valid string", {}
        return {"choices": [{"text": " Paris", "logprobs": None}]}

    with playing(text) as engine:
        answers, [said, left] = ask_all(Server(engine.address), TABLE)
    assert answers == [None] * 40
    assert said.startswith(
        "It takes a text for a prompt, and answers 422: prompt: Input should be a valid string to numbers"
    )
    assert "Use --prompts" in said
    assert left.startswith("Not asked any more: 40 prompts")
    assert len(engine.requests) == 4


def test_a_context_of_a_few_tokens_is_not_taken_for_that():
    def short(body, number):
        if len(body["prompt"]) > 32 and not isinstance(body["prompt"], str):
            return 400, b"the context is 32", {}
        return {"choices": [{"text": " Paris", "logprobs": None}]}

    with playing(short) as engine:
        _, [said, _] = ask_all(Server(engine.address), TABLE)
    assert said.startswith(
        "Refused: 3 prompts of 64 tokens. 400: the context is 32. A context of 4,096 takes all prompts"
    )


def test_prompts_that_are_too_long_are_refused_and_the_others_judged(capsys):
    def short(body, number):
        if len(body["prompt"]) > 1000:
            return 400, b"the context is 1000", {}
        return player(FORMS["llama.cpp"])(body, number)

    with playing(short) as engine:
        answers, said = ask_all(Server(engine.address), TABLE)
    assert answers == HEALTHY[:28] + [None] * 12
    assert said == [
        "Refused: 3 prompts of 1,024 tokens. 400: the context is 1000. A context of 4,096 takes all prompts "
        "(llama.cpp: -c 4096; vLLM: --max-model-len 4096).",
        "Not asked any more: 9 prompts of 1,024 or 3,000 tokens.",
    ]


def test_every_second_prompt_refused_does_not_stop_it():
    with playing(
        lambda body, number: (500, b"busy", {}) if number % 2 else player(FORMS["llama.cpp"])(body, number)
    ) as engine:
        answers, [said] = ask_all(Server(engine.address), TABLE)
    assert answers == [None if p % 2 else answer for p, answer in enumerate(HEALTHY)]
    assert said == "Refused: 20 prompts of 64, 384, 1,024 or 3,000 tokens. 500: busy."


# -- Connections -------------------------------------------------------------------------------------------------------


def test_no_server(capsys, pauses):
    assert main(["http://127.0.0.1:9"]) == 2
    error = capsys.readouterr().err
    assert (
        "http://127.0.0.1:9/v1/completions does not answer ([Errno 111] Connection refused): is the server up?" in error
    )
    assert pauses == [servers.PAUSE]


@pytest.mark.parametrize(
    "address", ["http://", "http://[::1", "http://localhost:port", "http://a b/", "https://ü@x:y", "http://\x00"]
)
def test_what_is_no_address(address, capsys):
    assert main([address]) == 2
    assert "Error: " in capsys.readouterr().err


@pytest.mark.parametrize("how", ["hangs up", "cut off"])
def test_a_connection_that_drops_is_tried_once_more(how, pauses):
    def drops(body, number):
        if number != 7:
            return player(FORMS["llama.cpp"])(body, number)
        return None if how == "hangs up" else (200, b"{}", {"Content-Length": "100"})

    with playing(drops) as engine:
        answers, said = ask_all(Server(engine.address), TABLE)
    assert (answers, said, pauses) == (HEALTHY, [], [servers.PAUSE])
    assert engine.requests[7] == engine.requests[8]


def test_what_was_answered_before_a_server_ended_is_judged(capsys, pauses):
    with playing(lambda body, number: player(FORMS["llama.cpp"])(body, number) if number < 30 else None) as engine:
        assert main([engine.address]) in (0, 1)
    out, error = capsys.readouterr()
    assert "30 of 40 prompts were answered." in out
    assert f"{engine.address}/v1/completions does not answer (Remote end closed connection without response)" in error
    assert "Not asked any more: 10 prompts of 1,024 or 3,000 tokens." in error
    assert len(engine.requests) == 32


def test_what_is_not_ready_is_waited_for_and_that_is_said(capsys, pauses):
    def loading(body, number):
        if number < 4:
            return 503, b'{"error": {"message": "Loading model"}}', {}
        if number in (10, 12):
            return 429, b"slow down", {"Retry-After": "7"}
        return player(FORMS["llama.cpp"])(body, number)

    with playing(loading) as engine:
        assert ask_all(Server(engine.address), TABLE) == (HEALTHY, [])
    assert pauses == [2, 2, 4, 8, 7, 7]
    error = capsys.readouterr().err
    assert (
        error.count('It answers 503: {"error": {"message": "Loading model"}}. It is asked again, for 300 seconds') == 1
    )
    assert error.count("It answers 429: slow down. It is asked again") == 1


@pytest.mark.parametrize("after", [None, "20", "0", "soon", "Thu, 99"])
def test_waiting_has_an_end(after, pauses):
    with playing(lambda *_: (503, b"Loading model", {"Retry-After": after} if after else {})) as engine:
        answers, [said, _] = ask_all(Server(engine.address), TABLE)
    assert answers == [None] * 40
    assert said == (
        "Refused: 1 prompt of 64 tokens. 503: Loading model. "
        "It was asked again; waits of more than 300 seconds in all are not made."
    )
    assert 200 < sum(pauses) <= 300
    assert min(pauses) >= 1


def test_a_wait_that_is_too_long_is_not_made(pauses):
    tomorrow = email.utils.format_datetime(datetime.now(UTC) + timedelta(days=1))
    for after in ("301", tomorrow):
        with playing(lambda *_, after=after: (429, b"", {"Retry-After": after})) as engine:
            ask_all(Server(engine.address), TABLE)
        assert len(engine.requests) == 1
    assert pauses == []
    assert servers.seconds("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0


def test_an_answer_that_takes_too_long(monkeypatch, pauses):
    """The next one may take as long: what was answered is judged."""
    plain = urllib.request.OpenerDirector.open

    def slow(self, *request, timeout):
        if len(engine.requests) == 5:
            raise TimeoutError("timed out")
        return plain(self, *request, timeout=timeout)

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", slow)
    with playing(player(FORMS["llama.cpp"])) as engine:
        answers, said = ask_all(Server(engine.address), TABLE)
    assert answers == HEALTHY[:5] + [None] * 35
    assert said[0] == f"{engine.address}/v1/completions did not answer within 300 seconds."
    assert pauses == []


def test_a_certificate_that_is_not_trusted_is_named(monkeypatch, capsys, pauses):
    """As the system's own words have it; no second try."""
    own = ssl.SSLCertVerificationError(1, "certificate verify failed")
    own.verify_message = "self-signed certificate"

    def refuse(self, *request, timeout):
        raise urllib.error.URLError(own)

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", refuse)
    assert main(["https://localhost"]) == 2
    error = capsys.readouterr().err
    assert "completions has a certificate that is not trusted here (self-signed certificate): name the file" in error
    assert pauses == []


def test_a_server_that_does_not_speak_tls(capsys):
    with playing(player(FORMS["llama.cpp"])) as engine:
        assert main([engine.address.replace("http:", "https:")]) == 2
    assert "does not speak TLS" in capsys.readouterr().err


# -- Over the border of a context --------------------------------------------------------------------------------------


def test_what_an_engine_writes_over_the_border(capsys):
    answer = {"choices": [{"logprobs": {"content": [{"id": 7, "logprob": -0.5, "top_logprobs": []}]}}]}
    with playing(lambda *_: answer) as engine:
        server = Server(engine.address, model="smol")
        prompt, written = shifts.over_the_border(server, 512, keep=1)
        assert len(prompt) == 512 - shifts.BEFORE
        assert written == [(7, -0.5)]
        sent = {
            "prompt": prompt,
            "temperature": 0,
            "max_tokens": shifts.WRITTEN,
            "logprobs": 1,
            "model": "smol",
            "keep": 1,
        }
        assert engine.requests == [sent]
        given = {"tokens": [" Paris"], "token_logprobs": [-0.25], "top_logprobs": [{" Paris": -0.25}]}
        answer["choices"] = [{"logprobs": given}]
        [(token, x)] = shifts.over_the_border(server, 512)[1]
        assert (text_in_vocabulary(token), x) == (" Paris", -0.25)
        for names_, said in (
            (["no such word"], "names of tokens are not understood"),
            (["\ufffd"], "cannot be said which"),
        ):
            given |= {"tokens": names_, "top_logprobs": [{names_[0]: -0.25}]}
            with pytest.raises(NotUnderstood, match=said):
                shifts.over_the_border(server, 512)
        answer["choices"] = [{"text": "", "logprobs": None}]
        with pytest.raises(NotUnderstood, match="has no log-probabilities in `logprobs`"):
            shifts.over_the_border(server, 512)
    for arguments in ([engine.address, "--context", "9000"], ["answers.json", "--context", "512"]):
        with pytest.raises(SystemExit):
            main(arguments)


# -- Files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2", "answers.json is no JSON: "),
        ("{}", "answers.json holds no list; needed is a list of 40 entries"),
        (json.dumps(TABLE.prompts), "holds the prompts themselves; needed are the answers of your engine to them"),
        (json.dumps([None, []] * 20), "entry 1: it has no tokens; where there is no answer, write null"),
        ("[null]", "has 1 entry; needed is a list of 40 entries"),
        (
            json.dumps([[FIVE | {"5": 3.5}]] * 40),
            "entry 0: a logarithm is above 0 (are these logits, or probabilities?): 3.5",
        ),
        (
            json.dumps([None, [FIVE | {"5": math.nan}]] * 20),
            "entry 1: what should be a log-probability is no number: NaN",
        ),
        (
            json.dumps([[{"5": -1.0}]] * 40),
            "entry 0: too few tokens are named (needed are the 5 likeliest at least): 1 in",
        ),
        (json.dumps([[FIVE | {"5": True}]] * 40), "entry 0: what should be a log-probability is no number: true"),
        ("[" * 100_000, "answers.json is no JSON: "),
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
    path.write_text("\ufeff" + json.dumps(answers_of(RIGHT)), encoding="utf-8")  # as Windows writes it
    assert main([str(path)]) == 0
    assert "Nothing wrong that these prompts would show." in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([])
    assert main(["localhost:8080"]) == 2
    assert "there is no file localhost:8080; an address begins with http://" in capsys.readouterr().err
