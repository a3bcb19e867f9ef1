"""The numbers of the exam, drawn by a seed, with their answers from the library."""

import math
import random
import re

import torch

from lab.mistakes import MISTAKES, NOTES, seen_by
from rope_lib import interleaved_to_half_split, inverse_frequencies

VERSIONS = "AB"


def filled(text: str, seed: int, version: str) -> str:
    """An exam with its numbers, and of each question that has versions the one that is wanted.

    Raises:
        ValueError: there is no such version.
    """
    if version not in VERSIONS:
        raise ValueError(f"version {version!r}; there are {' and '.join(VERSIONS)}")
    text = re.sub(
        r"### VERSION A\n(.*?)### VERSION B\n(.*?)### END VERSION\n",
        lambda found: found[1 + VERSIONS.index(version)],
        text,
        flags=re.DOTALL,
    )
    drawn = numbers(seed) | {"version": version}
    return re.sub(r"\[\[(\w+)\]\]", lambda match: drawn[match[1]], text)


def numbers(seed: int) -> dict[str, str]:
    """What stands in [[brackets]] in exam.md and exam_short.md, but for the version."""
    chance = random.Random(seed)
    return score(chance) | speeds(chance) | checks(chance) | order(chance) | format_(chance) | cache(chance)


def score(chance: random.Random) -> dict[str, str]:
    """Question 2: one pair, a quarter turn apart, turned by whole parts of half a turn."""
    parts, a, b = chance.choice((3, 6, 7)), chance.randrange(2, 6), chance.randrange(2, 6)
    n = chance.randrange(1, 5)
    m = n + chance.randrange(1, parts)
    q, k = (z * complex(math.cos(p * math.pi / parts), math.sin(p * math.pi / parts)) for z, p in ((a, m), (b * 1j, n)))
    found = (q * k.conjugate()).real
    names = {"parts": parts, "a": a, "b": b, "m": m, "n": n, "distance": m - n, "ab": a * b}
    names |= {"m_far": m + 1000, "n_far": n + 1000}  # no whole number of turns, whatever the parts
    return {name: str(value) for name, value in names.items()} | {"score": f"{found:.3f}", "exchanged": f"{-found:.3f}"}


def speeds(chance: random.Random) -> dict[str, str]:
    """Questions 4 and 10: a head, its base, its length in training, and a factor."""
    dim, base, length = (
        chance.choice((64, 96, 128)),
        chance.choice((10_000, 100_000, 500_000)),
        chance.choice((2048, 4096)),
    )
    factor, theta = chance.choice((4, 8)), inverse_frequencies(dim, base=base)
    turns = length * theta / (2 * math.pi)
    return {
        "dim": str(dim),
        "base": str(base),
        "length": str(length),
        "longer": str(factor * length),
        "factor": str(factor),
        "pairs": str(dim // 2),
        "last": str(dim // 2 - 1),
        "wavelength": f"{float(f'{2 * math.pi / theta[-1].item():.3g}'):,.0f}",
        "turns": f"{turns[-1].item():.2g}",
        "below": str(int((turns < 1).sum())),
        "first_below": str(int((turns >= 1).sum())),
        "slowed": f"{1 / factor:g}",
        "raised": f"{float(f'{base * factor ** (dim / (dim - 2)):.3g}'):,.0f}",
    }


def checks(chance: random.Random) -> dict[str, str]:
    """Question 5: three wrong rotations, and which check sees them."""
    wanted = ("length", "position 0", "distance", "by hand")
    open_ = [name for name in MISTAKES if name not in ("(none)", "angles in float32", "position forgotten")]
    rows = {}
    while len({*rows.values()}) < 3:  # else one row guessed is three
        names = sorted(chance.sample(open_, 3))
        seen = {name: seen_by(MISTAKES[name]) for name in names}
        rows = {name: " | ".join("wrong" if seen[name][check] else "passes" for check in wanted) for name in names}
    heads = {name: f"{name} ({NOTES[name]})" if name in NOTES else name for name in rows}
    empty = [f"| {heads[name]} | | | | |" for name in rows]
    full = [f"| {heads[name]} | {row} |" for name, row in rows.items()]
    return {"empty_table": "\n".join(empty), "full_table": "\n".join(full)}


def order(chance: random.Random) -> dict[str, str]:
    """Question 6: rows of two heads."""
    dim = chance.choice((6, 8))
    rows = interleaved_to_half_split(torch.arange(2 * dim), head_dim=dim, dim=0).tolist()
    return {"head": str(dim), "rows": str(2 * dim), "last_row": str(2 * dim - 1), "order": ", ".join(map(str, rows))}


def format_(chance: random.Random) -> dict[str, str]:
    """Question 7: a position that bfloat16 does not have."""
    position = 4096 + 32 * chance.randrange(1, 127) + chance.choice((5, 7, 9, 11))
    held = int(torch.tensor(float(position)).bfloat16())
    return {"position": str(position), "held": str(held), "off": str(abs(position - held))}


def cache(chance: random.Random) -> dict[str, str]:
    """Questions 8 and 9: a prompt, a word that is written later; a distance."""
    prompt, step = chance.randrange(20, 60), chance.randrange(3, 9)
    values = {"prompt": prompt, "step": step, "at": prompt + step - 1, "keys": prompt + step}
    return {name: str(value) for name, value in values.items()} | {"far": str(chance.randrange(40, 900))}
