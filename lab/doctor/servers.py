"""Asking an engine: over HTTP, or from a file of its answers."""

import http.client
import json
import math
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path

from tqdm import tqdm

from lab.doctor.table import Table

LIKELY, FEWEST = 20, 5  # how many tokens the engine is asked for, and needed
TIMEOUT = 300  # seconds for one answer
Answer = list[dict[int, float]]  # for each token behind the prompt: log-probabilities of the likeliest ones


class Refused(Exception):
    """The engine answered with an error: its text."""


def ask(address: str, prompt: list[int], words: dict[int, str]) -> Answer:
    """Two tokens behind a prompt, from an OpenAI-compatible server.

    Raises:
        Refused: it answered, with an error or without log-probabilities.
        ConnectionError: it did not answer.
    """
    found = completion(address, prompt, max_tokens=2, logprobs=LIKELY)
    answer = [likely for _, _, likely in places(found, words)]
    if trouble := wrong_with(answer):
        raise Refused(trouble)
    return answer


def completion(address: str, prompt: list[int], **settings: int) -> dict:
    """What the server answers; errors as `ask`."""
    body = {"prompt": prompt, "temperature": 0, **settings}
    url = address.rstrip("/").removesuffix("/v1") + "/v1/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            text = answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        raise Refused(f"{error.code}: {error.read(500).decode(errors='replace')}") from error
    except (urllib.error.URLError, TimeoutError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"{url} does not answer ({getattr(error, 'reason', error)}): is the server up?"
        ) from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise Refused(f"its answer is no JSON, but: {text[:100]!r}") from error


def places(found: dict, words: dict[int, str]) -> list[tuple[int, float, dict[int, float]]]:
    """For each token behind the prompt its number, its log-probability, and those of the likeliest ones.

    A server answers in the form of llama.cpp, with numbers of tokens, or in OpenAI's older form, with their texts. A
    text that is not in `words` is kept under a negative number, below -1, so that its probability still counts.
    """
    try:
        given = found["choices"][0]["logprobs"]
        if "content" in given:
            return [
                (place["id"], place["logprob"], {top["id"]: top["logprob"] for top in place["top_logprobs"]})
                for place in given["content"]
            ]
        numbers = {word: number for number, word in words.items()}
        unknown = count(-2, -1)
        tops = [{numbers.get(word, next(unknown)): x for word, x in likely.items()} for likely in given["top_logprobs"]]
        chosen = [numbers.get(word, next(unknown)) for word in given["tokens"]]
        return list(zip(chosen, given["token_logprobs"], tops, strict=True))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise Refused(f"there are no `logprobs` in its answer: {json.dumps(found)[:200]}") from error


def ask_all(address: str, table: Table) -> tuple[list[Answer | None], dict[str, list[int]]]:
    """What the server says behind each prompt, None where it refused; and why, with the prompts' lengths."""
    answers: list[Answer | None] = []
    refusals: dict[str, list[int]] = {}
    with tqdm(table.prompts, unit=" prompts", leave=False) as prompts:
        for prompt in prompts:
            try:
                answers.append(ask(address, prompt, table.words))
            except Refused as error:
                answers.append(None)
                refusals.setdefault(str(error), []).append(len(prompt))
    return answers, refusals


def advice(why: str) -> str:
    """What to do about a refusal."""
    if "logprobs" in why:
        return f"The server must give {LIKELY} log-probabilities for each token (vLLM: --max-logprobs {LIKELY})."
    if "context" in why:
        return "A context of 4,096 takes all prompts (llama.cpp: -c 4096; vLLM: --max-model-len 4096)."
    if why.startswith(("404", "405", "its answer is no JSON")):
        return "Is it the address of an OpenAI-compatible server?"
    return ""


# -- Reading a file ----------------------------------------------------------------------------------------------------


def from_file(path: Path, table: Table) -> list[Answer | None]:
    """Answers from a file.

    Raises:
        ValueError: they are not in the form that the head of this module describes.
    """
    form = f"needed is a list of {len(table.prompts)} entries (python -m lab.doctor --help says their form)"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}; {form}") from error
    if not isinstance(found, list):
        raise ValueError(f"{path} holds no list; {form}")
    if found == table.prompts:
        raise ValueError(f"{path} holds the prompts themselves; needed are the answers of your engine to them")
    if len(found) != len(table.prompts):
        raise ValueError(f"{path} has {len(found)} entries; {form}")
    answers: list[Answer | None] = []
    for number, entry in enumerate(found):
        try:
            if entry is None:
                answers.append(None)
                continue
            answer = [{int(token): float(x) for token, x in place.items()} for place in entry]
            trouble = wrong_with(answer)
        except (ValueError, AttributeError, TypeError):
            trouble = (
                f"{json.dumps(entry)[:60]} is neither null nor a list of objects "
                '{"number of a token": log-probability, ...}'
            )
        if trouble:
            raise ValueError(f"{path}, entry {number}: {trouble}")
        answers.append(answer)
    return answers


def wrong_with(answer: Answer) -> str | None:
    """Why an answer cannot be compared, in words."""
    if not answer:
        return "it has no tokens; where there is no answer, write null"
    for likely in answer:
        if len(likely) < FEWEST:
            return f"{len(likely)} tokens are named; needed are the {FEWEST} likeliest at least"
        if any(not math.isfinite(x) for x in likely.values()):
            return f"{likely} are no finite numbers; needed are log-probabilities"
        if max(likely.values()) > 1e-3:
            return f"a logarithm is {max(likely.values())}, above 0: are these logits, or probabilities?"
    return None
