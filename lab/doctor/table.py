"""The prompts, and what is known of the answers to them: right, and with each mistake."""

import io
import json
import pkgutil
from dataclasses import dataclass

import numpy as np

import lab

STORED = "published_models/doctor.npz"  # below lab
RIGHT = "nothing"
BASES = (10_000, 20_000, 50_000, 200_000, 500_000, 1_000_000)  # of other models, and near this one's 100,000
READ = (256, 512, 1024)  # tokens of longer prompts


@dataclass(frozen=True)
class Family:
    """Mistakes of one kind.

    Attributes:
        kind: in words, as in "of ...".
        names: of the mistakes.
        cause: a sentence; what was not probed is what it may be.
    """

    kind: str
    names: tuple[str, ...]
    cause: str


FAMILIES = [
    Family("nothing", (RIGHT,), "The rotation is the one of this model, as far as these prompts show it."),
    Family(
        "the layout",
        ("the other layout",),
        "Pairs are read half-split, and the weights of this file are interleaved. It may be the code of another "
        "architecture, or a wrong `interleaved`.",
    ),
    Family(
        "the layout",
        ("weights in the other order",),
        "Pairs are read interleaved, and the rows of W_q and W_k are half-split. They may not have been reordered when "
        "the weights were converted.",
    ),
    Family("no rotation", ("not rotated",), "Queries and keys are not turned at all."),
    Family(
        "no rotation",
        ("queries alone rotated",),
        "Queries meet keys that are not turned. Keys may be cached before the rotation and never turned afterwards; or "
        "the turned ones are stored, and those of the prompt are used as they were before.",
    ),
    Family("the sense", ("turned backwards",), "The sine has the wrong sign for queries and keys."),
    Family(
        "a base",
        tuple(f"base {base:,}" for base in BASES),
        "The base of this model is 100,000. Another one may be a default, where it was not read from the file, or that "
        "of another model. It may also be a base near the one that is named.",
    ),
    Family(
        "positions divided",
        ("positions divided by 2", "positions divided by 4"),
        "Linear scaling was added, by this factor or one near it; the file has none.",
    ),
    Family(
        "positions multiplied",
        ("positions times 2",),
        "Queries and keys may be turned twice, or positions counted in steps of two.",
    ),
    Family(
        "YaRN",
        ("YaRN by 2", "YaRN by 4"),
        "YaRN was added, by this factor or one near it, with its attention factor; the file has no scaling.",
    ),
    Family(
        "YaRN",
        ("YaRN by 4 without its attention factor",),
        "YaRN's speeds were added, and the tables are not multiplied by 1.139; the file has no scaling.",
    ),
    Family(
        "YaRN",
        ("YaRN by 4 with its attention factor squared",),
        "YaRN was added, and its attention factor twice; the file has no scaling.",
    ),
    Family(
        "an attention factor",
        ("an attention factor of 1.139",),
        "The speeds are right, and the tables are multiplied by 1.139, the attention factor of YaRN by 4, or a number "
        "near it. It may be read from a block whose speeds are not.",
    ),
    Family("NTK-aware", ("NTK-aware by 4",), "NTK-aware scaling was added, which is another base: 416,700."),
    Family(
        "a share of the head",
        ("half of the head, with its own speeds",),
        "A part of the head is turned, with the speeds of a head of that size, as `partial_rotary_factor` asks for.",
    ),
    Family(
        "a share of the head",
        ("the slow half not turned",),
        "The faster half of the pairs turns with the right speeds, the slower half does not.",
    ),
    Family(
        "some layers",
        ("every fourth layer not turned",),
        "Some layers may be taken for layers without rotation, as other models have them.",
    ),
    Family(
        "some layers",
        ("every second layer with base 10,000", "every sixth layer with base 10,000"),
        "Some layers have another base. They may be taken for layers with a window, as in Gemma 3.",
    ),
    Family("rounding", ("positions in bfloat16",), "Positions are rounded to 8 bits: beyond 256 neighbours coincide."),
    Family("rounding", ("inverse frequencies in bfloat16",), "Speeds are rounded to 8 bits."),
    Family(
        "the token behind the prompt",
        ("one place too late", "eight places too late"),
        "The first token behind the prompt stands too late. The length may be counted twice, or padding with it.",
    ),
    Family(
        "the token behind the prompt",
        ("one place too early",),
        "The first token behind the prompt stands at the place of the last one of it.",
    ),
    Family(
        "the token behind the prompt",
        ("always at place 0",),
        "Tokens behind the prompt are turned as if a text began with each.",
    ),
    Family(
        "the token behind the prompt",
        ("cached keys turned twice",),
        "The prompt is read well; for the token behind it the keys of the cache are turned once more.",
    ),
    Family(
        "chunks",
        ("chunks of 512 from position 0",),
        "The prompt is read in pieces, and each counts its positions from 0.",
    ),
    Family(
        "what is read",
        tuple(f"the last {count:,} tokens" for count in READ),
        "Of longer prompts only the end is read. The context may be too short.",
    ),
    Family(
        "what is read",
        ("the middle dropped, 1,024 tokens kept",),
        "Of longer prompts the beginning and the end are read. The context may be too short.",
    ),
    Family(
        "what is read",
        ("eight padding tokens read in front",),
        "Padding may be no longer masked, or never have been.",
    ),
    Family("a window", ("a window of 512",), "A sliding window in all layers; this model has none."),
    Family(
        "a window",
        ("a window of 512 and the first token",),
        "A sliding window that keeps the first token; this model has none.",
    ),
]
CAUSES = {name: family.cause for family in FAMILIES for name in family.names}


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
        found = np.load(io.BytesIO(pkgutil.get_data(lab.__name__, STORED)))
        prompts = [prompt.tolist() for prompt in np.split(found["prompts"], found["ends"][:-1])]
        words = {int(number): word for number, word in json.loads(found["words"].tobytes()).items()}
        names = [str(name) for name in found["names"]]
        known = [name for name in CAUSES if name in names and not np.isnan(found["known"][names.index(name)]).all()]
        rows = found["known"][[names.index(name) for name in known]].astype(np.float64)
        return cls(prompts, known, found["tokens"], rows, words)
