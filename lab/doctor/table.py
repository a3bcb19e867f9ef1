"""The prompts, and what is known of the answers to them: right, and with each mistake."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

STORED = Path(__file__).parent.parent / "published_models" / "doctor.npz"
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
