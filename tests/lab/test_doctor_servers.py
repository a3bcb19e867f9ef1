"""What engines answer, over HTTP and in files, in the forms that servers have and with what they do wrong."""

import http.server
import json
import math
import threading

import pytest

from lab import opened
from lab.doctor import servers, shifts
from lab.doctor.__main__ import main
from lab.doctor.servers import Refused, ask, from_file
from lab.doctor.table import RIGHT, Table
from tests.lab.test_doctor import answers_of

TABLE = Table.stored()
FIVE = {str(token): -2.0 - token for token in range(1, 6)}


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
    prompt, written = shifts.over_the_border(address, 512)
    assert len(prompt) == 512 - shifts.BEFORE
    assert written == [(7, -0.5)]
    given = {"tokens": [" Paris"], "token_logprobs": [-0.25], "top_logprobs": [{" Paris": -0.25}]}
    answer["body"] = {"choices": [{"logprobs": given}]}
    [(token, x)] = shifts.over_the_border(address, 512)[1]
    assert (opened.model().text([token]), x) == (" Paris", -0.25)
    given["tokens"] = ["no such word"]
    with pytest.raises(Refused, match="it wrote a word that this model does not have"):
        shifts.over_the_border(address, 512)
    answer["body"] = {"choices": [{"text": "", "logprobs": None}]}
    with pytest.raises(Refused, match="there are no `logprobs`"):
        shifts.over_the_border(address, 512)
    for arguments in ([address, "--context", "9000"], ["answers.json", "--context", "512"]):
        with pytest.raises(SystemExit):
            main(arguments)


def test_advice_on_what_was_refused():
    assert "--max-logprobs 20" in servers.advice("400: logprobs must be at most 5")
    assert "-c 4096" in servers.advice("400: the request exceeds the available context size")
    assert servers.advice("404: not found") == "Is it the address of an OpenAI-compatible server?"
    assert servers.advice("500: out of memory") == ""


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
