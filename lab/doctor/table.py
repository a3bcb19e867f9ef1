"""The prompts, and what is known of the answers to them: right, and with each mistake."""

import io
import json
import pkgutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import lab

STORED = "published_models/doctor.npz"  # below lab
RIGHT = "nothing"
BASE = 100_000  # of SmolLM2
READ = (256, 512, 1024)  # tokens of longer prompts


@dataclass(frozen=True)
class Family:
    """Mistakes of one kind.

    Attributes:
        kind: in words, as in "of ...".
        names: of the mistakes.
        cause: a sentence; what was not probed is what it may be.
        scaled: for models whose file asks for a scaling (True), or not (False), alone; None: for all.
        warm: for models with an attention factor alone.
    """

    kind: str
    names: tuple[str, ...]
    cause: str
    scaled: bool | None = None
    warm: bool = False


def families(base: float = BASE, *, scaled: bool = False, warm: bool = False) -> list[Family]:
    """The mistakes that are tried on a model.

    Args:
        base: of the model.
        scaled: whether its file asks for a scaling.
        warm: whether that has an attention factor.
    """
    bases = {10_000, 500_000, 1_000_000, *(round(factor * base) for factor in (0.2, 0.5, 2, 5))} - {round(base)}
    found = [
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
            "Pairs are read interleaved, and the rows of W_q and W_k are half-split. They may not have been reordered "
            "when the weights were converted.",
        ),
        Family("no rotation", ("not rotated",), "Queries and keys are not turned at all."),
        Family(
            "no rotation",
            ("queries alone rotated",),
            "Queries meet keys that are not turned. Keys may be cached before the rotation and never turned "
            "afterwards; or turned keys may be stored, while the prompt itself is read with unturned ones.",
        ),
        Family("the sense", ("turned backwards",), "The sine has the wrong sign for queries and keys."),
        Family(
            "a base",
            tuple(f"base {other:,}" for other in sorted(bases)),
            f"The base of this model is {base:,.10g}. The engine's may be a default, taken because "
            "that of the file was not read, or that of another model. It may also be a base near the one "
            "that is named.",
        ),
        Family(
            "positions divided",
            ("positions divided by 2", "positions divided by 4"),
            "Positions may be divided by this factor or one near it: linear scaling that the file does not ask for, or "
            "that is applied once more than it asks.",
        ),
        Family(
            "positions multiplied",
            ("positions times 2",),
            "Queries and keys may be turned twice, or positions counted in steps of two.",
        ),
        Family(
            "the scaling",
            ("its scaling left out",),
            "The file asks for a scaling, and the engine does not seem to read it.",
            scaled=True,
        ),
        Family(
            "the scaling",
            ("its attention factor left out", "its attention factor squared"),
            "The speeds are right, but the tables are multiplied by the attention factor twice, or not at all.",
            scaled=True,
            warm=True,
        ),
        Family(
            "YaRN",
            ("YaRN by 2", "YaRN by 4"),
            "YaRN was added, by this factor or one near it, with its attention factor; the file has no scaling.",
            scaled=False,
        ),
        Family(
            "YaRN",
            ("YaRN by 4 without its attention factor",),
            "YaRN's speeds were added, and the tables are not multiplied by 1.139; the file has no scaling.",
            scaled=False,
        ),
        Family(
            "YaRN",
            ("YaRN by 4 with its attention factor squared",),
            "YaRN was added, and its attention factor was applied twice; the file has no scaling.",
            scaled=False,
        ),
        Family(
            "an attention factor",
            ("an attention factor of 1.139",),
            "The speeds are right, and the tables are multiplied by 1.139, the attention factor of YaRN by 4, or a "
            "number near it. It may be read from a block whose speeds are not.",
            scaled=False,
        ),
        Family(
            "NTK-aware",
            ("NTK-aware by 4",),
            "NTK-aware scaling was added, which is another base, a little more than four times as large.",
            scaled=False,
        ),
        Family(
            "a share of the head",
            ("half of the head, with its own speeds",),
            "A part of the head is turned, with the speeds of a head of that size, as `partial_rotary_factor` asks "
            "for.",
        ),
        Family(
            "a share of the head",
            ("the slow half not turned",),
            "The faster half of the pairs turns with the right speeds; the slower half is not turned at all.",
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
        Family(
            "rounding", ("positions in bfloat16",), "Positions are rounded to 8 bits: beyond 256 neighbours coincide."
        ),
        Family("rounding", ("inverse frequencies in bfloat16",), "Speeds are rounded to 8 bits."),
        Family(
            "the token behind the prompt",
            ("one place too late", "eight places too late"),
            "The first token behind the prompt stands too late. One token may be counted twice, or padding may "
            "be counted with the prompt.",
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
        Family("a window", ("a window of 512",), "All layers have a sliding window; this model has none."),
        Family(
            "a window",
            ("a window of 512 and the first token",),
            "All layers have a sliding window that keeps the first token; this model has none.",
        ),
    ]
    return [family for family in found if family.scaled in (None, scaled) and (warm or not family.warm)]


def causes(of: list[Family]) -> dict[str, str]:
    """The cause of each mistake, by its name."""
    return {name: family.cause for family in of for name in family.names}


FAMILIES = families()  # of SmolLM2
CAUSES = causes(FAMILIES)


@dataclass(frozen=True)
class Table:
    """What is known of the prompts.

    Attributes:
        prompts: numbers of tokens.
        mistakes: their names, RIGHT among them.
        tokens: (prompts, 2, T): those whose log-probability is known, at both places; -1 where there are fewer.
        known: (mistakes, prompts, 2, T) log-probabilities.
        words: the text of each token in `tokens`, by its number.
        families: of the mistakes.
        model: its name.
        rounded: (prompts, 2, T) what the model says when it computes in bfloat16; None: not computed.
    """

    prompts: list[list[int]]
    mistakes: list[str]
    tokens: np.ndarray
    known: np.ndarray
    words: dict[int, str]
    families: list[Family] = field(default_factory=lambda: FAMILIES)
    model: str = "SmolLM2-135M-Instruct"
    rounded: np.ndarray | None = None

    @classmethod
    def stored(cls) -> "Table":
        """That of SmolLM2, as tools/record_doctor.py made it."""
        return cls.read(pkgutil.get_data(lab.__name__, STORED))

    @classmethod
    def read(cls, file: bytes) -> "Table":
        """From what `as_bytes` wrote, or tools/record_doctor.py."""
        found = np.load(io.BytesIO(file))
        prompts = [prompt.tolist() for prompt in np.split(found["prompts"], found["ends"][:-1])]
        words = {int(number): word for number, word in json.loads(found["words"].tobytes()).items()}
        names = [str(name) for name in found["names"]]
        of = [Family(**one) for one in json.loads(found["families"].tobytes())] if "families" in found else FAMILIES
        known = [name for name in causes(of) if name in names and not np.isnan(found["known"][names.index(name)]).all()]
        rows = found["known"][[names.index(name) for name in known]].astype(np.float64)
        own = {"model": str(found["model"]), "rounded": found["rounded"].astype(np.float64)} if "model" in found else {}
        return cls(prompts, known, found["tokens"], rows, words, of, **own)

    @classmethod
    def from_file(cls, path: Path) -> "Table":
        """One that `as_bytes` has written.

        Raises:
            ValueError: it is something else.
        """
        if not path.is_file():
            raise ValueError(f"there is no file {path}; --weights makes a table")
        try:
            table = cls.read(path.read_bytes())
            whole = table.known.shape == (len(table.mistakes), *table.tokens.shape) and RIGHT in table.mistakes
        except Exception as error:  # numpy, zipfile, zlib and json each have errors of their own
            raise ValueError(f"{path} is no table that --weights has made") from error
        if not whole or table.rounded is None or len(table.prompts) != len(table.tokens):
            raise ValueError(f"{path} is no table that --weights has made")
        return table

    def as_bytes(self) -> bytes:
        """The file, without its rows of NaN."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            prompts=np.concatenate(self.prompts).astype(np.int32),
            ends=np.cumsum([len(prompt) for prompt in self.prompts]),
            tokens=self.tokens.astype(np.int32),
            words=in_json(self.words),
            names=np.array(self.mistakes),
            known=self.known.astype(np.float32),
            families=in_json([vars(family) for family in self.families]),
            model=np.array(self.model),
            rounded=self.rounded.astype(np.float32),
        )
        return buffer.getvalue()


def in_json(found: object) -> np.ndarray:
    """Bytes, as a file of arrays keeps them."""
    return np.frombuffer(json.dumps(found).encode(), dtype=np.uint8)
