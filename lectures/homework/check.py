"""Checks of homework 1. They say which mistake was made, or show the smallest case in which something is wrong.

One file that needs torch and nothing else, no network either. In a notebook:

    import check
    check.tables(tables)

A teacher marks many files with marks.py, which asks the same and runs nothing of a student's in its own process.
Pages are those of the book "Rotate, Don't Add".
"""

import contextlib
import math
import random
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, product
from typing import NamedTuple

import torch
from torch import Tensor

SEED = 0  # draws sizes, positions and values; the hidden tests are this file with another number here
INTERLEAVED, HALF_SPLIT = True, False
Result = tuple[Tensor, ...] | None  # None: it stopped, or the shape is wrong


class Mistake(NamedTuple):
    """What to say, where the book treats it, and the keywords with which the loops below make it."""

    says: str
    page: str
    knobs: dict


def mistake(page: str, *, says: str, **knobs) -> Mistake:
    """The same, easier to read in a list."""
    return Mistake(says, page, knobs)


class Step(NamedTuple):
    """A part of a task: its points, and what is wrong with it."""

    name: str
    worth: int
    complaint: str | None


class Wrong(Exception):
    """A sentence for the student."""


class Stopped(Exception):
    """What a function raised that runs elsewhere: the class, the message, and see `raised`."""


class Untold(Exception):
    """Why nothing can be said about a function that runs elsewhere."""


# -- What is asked for, as plain loops; every keyword with a default is a mistake --------------------------------------


def place(pair: int, second: int, half: int, interleaved: bool) -> int:
    """The coordinate where the first or the second number of a pair stands."""
    return 2 * pair + second if interleaved else pair + second * half


def seat(coordinate: int, half: int, interleaved: bool) -> tuple[int, int]:
    """The inverse: of a coordinate its pair, and 1 if it is the second of it."""
    return divmod(coordinate, 2) if interleaved else divmod(coordinate, half)[::-1]


def angles_by_loop(
    positions: Tensor, dim: int, base: float, *,
    exponent: Callable[[int, int], float] = lambda pair, dim: -2 * pair / dim, only_base: float | None = None,
    times: Callable[[int, int], float] = lambda pair, dim: 1.0, factor: float = 1.0, shift: int = 0,
    counted: bool = False, sort: bool = False,
) -> Tensor:  # fmt: skip
    """In rad, (..., seq_len, dim // 2)."""
    where = torch.arange(positions.shape[-1]).expand(positions.shape) if counted else positions
    where = where.sort(dim=-1).values if sort else where
    speeds = [times(pair, dim) * (only_base or base) ** exponent(pair, dim) for pair in range(dim // 2)]
    angles = [[factor * (m + shift) * speed for speed in speeds] for m in where.flatten().tolist()]
    return torch.tensor(angles, dtype=torch.float64).view(*positions.shape, dim // 2)


def tables_by_loop(positions: Tensor, dim: int, base: float, *, swapped: bool = False, **knobs) -> Result:
    """Cosines and sines, (..., seq_len, dim // 2)."""
    angles = angles_by_loop(positions, dim, base, **knobs)
    return (angles.sin(), angles.cos()) if swapped else (angles.cos(), angles.sin())


def of_tables(knobs: dict) -> dict:
    """Those of the knobs that belong to the tables."""
    return {name: value for name, value in knobs.items() if name in {"swapped", *angles_by_loop.__kwdefaults__}}


PLAIN = ((1, -1), (1, 1))  # signs before cosine and sine: in the first number of a pair, in the second


def turned(
    x: list[float], cos: list[float], sin: list[float], interleaved: bool, *, columns: str = "",
    partner: bool = False, written: bool = False, signs: tuple = PLAIN, afterwards: bool = False, part: bool = False,
    added: bool = False,
) -> list[float]:  # fmt: skip
    """One vector."""
    half, y = len(x) // 2, list(x)
    for j in range(2 * half):
        pair, second = seat(j, half, interleaved)
        if part and pair >= half // 2:
            continue
        pair_of_mate, second = seat(j, half, interleaved != partner)
        mate = place(pair_of_mate, 1 - second, half, interleaved != partner)
        column = seat(j, half, not interleaved)[0] if columns == "other" else 0 if columns else pair
        own, others = signs[second]
        if added:
            y[j] = x[j] + (sin, cos)[second][pair]
            continue
        y[j] = own * x[j] * cos[column] + others * (y if afterwards and second else x)[mate] * sin[column]
    if written:
        y = [y[place(*seat(j, half, not interleaved), half, interleaved)] for j in range(2 * half)]
    return y


def rotation_by_loop(
    x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, *, other: bool = False, rows: str = "", **knobs
) -> Result:
    """Each vector of x (..., seq_len, dim) by the row of its word."""
    if rows == "heads" and (x.ndim < 3 or x.shape[-2] not in (1, x.shape[-3]) or cos.ndim > 2):
        return None
    if knobs.pop("swapped", False):
        cos, sin = sin, cos
    pick = {"first": lambda t: t[..., :1, :], "heads": lambda t: t[:, None], "ones": torch.ones_like, "": lambda t: t}
    tables = (pick[rows](t).expand(*x.shape[:-1], -1).reshape(-1, t.shape[-1]).tolist() for t in (cos, sin))
    vectors = x.reshape(-1, x.shape[-1]).tolist()
    y = [turned(*row, interleaved != other, **knobs) for row in zip(vectors, *tables, strict=True)]
    return (torch.tensor(y, dtype=torch.float64).view(x.shape),)


def run_rope_by_loop(dim: int, theta: float, longest: int, x: Tensor, positions: Tensor, **knobs) -> Result:
    """Tables and interleaved rotation together."""
    first = of_tables(knobs)
    rest = {name: value for name, value in knobs.items() if name not in first}
    return rotation_by_loop(x, *tables_by_loop(positions, dim, theta, **first), INTERLEAVED, **rest)


def conversion_by_loop(
    weight: Tensor, head_dim: int, back: bool, *,
    inverse: bool = False, whole: bool = False, columns: bool = False, still: bool = False, odd_first: bool = False,
    first: bool = False, alternating: bool = False,
) -> Result:  # fmt: skip
    """Rows of each head from interleaved to half-split, or back."""
    if columns:
        if weight.shape[1] % (2 if whole else head_dim):
            return None
        return (conversion_by_loop(weight.T, head_dim, back, whole=whole)[0].T,)
    size, new = len(weight) if whole else head_dim, (INTERLEAVED if back != inverse else HALF_SPLIT)
    heads, rows = len(weight) // size, []
    for head, j in product(range(heads), range(size)):
        pair, second = seat(j, size // 2, new)
        old = j if still or (first and head) else place(pair, second ^ odd_first, size // 2, not new)
        rows.append(old * heads + head if alternating else head * size + old)
    if alternating:  # written as they are read
        rows = [rows[head * size + j] for j, head in product(range(size), range(heads))]
    return (weight[rows].double(),)


def cache_by_loop(
    q: Tensor, k: Tensor, chunks: tuple[int, ...], *, query_starts: bool = True, key_starts: bool = True,
    same: bool = False, late: int = 0, again: bool = False, stored: str = "turned", front: bool = False,
    still: str = "", scaled: bool = False, masked: bool = False, forgets: bool = False, length: str = "words",
    recent: bool = False, **knobs,
) -> Result:  # fmt: skip
    """Scores and cache after each chunk of words, one after the other."""

    def turn(x: Tensor, start: int, together: bool = False) -> Tensor | None:
        positions = start + torch.arange(x.shape[1]) * (not together)
        turned = run_rope_by_loop(x.shape[-1], 10000.0, 0, x, positions, **knobs)
        return turned and turned[0]

    cache, found, done = k[:, :0].double(), [], 0
    for size in chunks:
        new_q, new_k = (x[:, done : done + size].double() for x in (q, k))
        done, past = done + size, cache.shape[1]
        lengths = {"words": past, "heads": len(k), "dim": k.shape[-1], "one less": past - 1, "one more": past + 1}
        start = lengths[length] if past else 0
        queries = new_q if still == "queries" else turn(new_q, start * query_starts + late, same)
        keys = new_k if still == "keys" else turn(new_k, start * key_starts + late, same)
        old = turn(cache, 0) if again or stored == "before, turned" else cache
        if queries is None or keys is None or old is None:
            return None
        seen = torch.cat((keys, old) if front else (old, keys), dim=1)
        scores = queries @ (keys if recent else seen).mT / (q.shape[-1] ** 0.5 if scaled else 1.0)
        if masked and not recent:
            later = torch.arange(seen.shape[1]) > past + torch.arange(size)[:, None]
            scores = scores.masked_fill(later, -torch.inf)
        kept = seen if stored == "turned" else torch.cat((cache, new_k), dim=1)
        cache = keys if forgets else kept
        found += [scores, cache]
    return tuple(found)


# -- The mistakes ------------------------------------------------------------------------------------------------------

SPEEDS = 'chapter 5, "Even dimensions: blocks"'
SIGNS = 'chapter 5, "Which sign goes where?"'
MATRIX = 'chapter 5, "Where does the matrix come from?"'
FORMS = 'chapter 6, "Three ways to write one rotation"'
LAYOUTS = 'chapter 6, "Two layouts, one rotation"'
HEADS = 'chapter 6, "The head in the place of the position"'
FLATTEN = 'chapter 6, "`flatten(2)` in the place of `flatten(-2)`"'
STACK = 'chapter 6, "`cat` in the place of `stack`"'
DTYPES = 'chapter 6, "Two formats in one product"'
BUFFER = 'chapter 6, "A table in a buffer"'
POSITIONS = 'chapter 6, "Positions in practice"'
BITS = 'chapter 6, "How many bits does an angle need?"'
WHICH = 'chapter 6, "Which check sees which mistake?"'

# fmt: off
TABLE_MISTAKES = [
    mistake(SPEEDS, exponent=lambda pair, dim: -pair / dim, says=
        "Your speeds fall half as fast as they should, so the slow pairs are much too fast. Did a 2 get lost in the"
        " exponent?"),
    mistake(SPEEDS, exponent=lambda pair, dim: -4 * pair / dim, says=
        "Your speeds fall twice as fast as they should. Do you divide by the number of pairs where it should be the"
        " dimension, or count dimensions in steps of two and double them once more?"),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * (pair + 1) / dim, says=
        "Each pair has the speed of the next one: pairs counted from 1. The first pair should turn by 1 rad per"
        " token, whatever the base."),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * (pair - 1) / dim, says=
        "Each pair has the speed of the one before it. The first paper counts pairs from 1, and here they count from"
        " 0: the first one should turn by 1 rad per token, whatever the base."),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * pair, times=lambda pair, dim: 1 / dim, says=
        "Your division by the dimension falls on the power, and it belongs in the exponent: look at the brackets. The"
        " first pair should turn by 1 rad per token, whatever the dimension."),
    mistake(SPEEDS, exponent=lambda pair, dim: -2, times=lambda pair, dim: pair / dim, says=
        "Only a part of your exponent is in the power, and the rest is multiplied afterwards: look at the brackets."
        " The first pair does not turn at all."),
    mistake(SPEEDS, exponent=lambda pair, dim: 2 * pair / dim, says=
        "Your pairs get faster where they should get slower. Look at the sign of the exponent, or for a division"
        " that should be a product."),
    mistake(SPEEDS, exponent=lambda pair, dim: -pair / max(dim / 2 - 1, 1), says=
        "Your slowest pair has the speed 1 / base, which is one step too far: do your exponents run from end to end,"
        " the last point included?"),
    mistake(SPEEDS, exponent=lambda pair, dim: 0, says=
        "All pairs turn equally fast, by 1 rad per token. Where did the exponent go: a whole-number division (//)?"),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * pair // dim, says=
        "All pairs but the first have the speed 1 / base. Is there a whole-number division (//) in your exponent?"),
    mistake(SPEEDS, only_base=10000.0, says=
        "Right for base 10000 only: the base that is given is not used."),
    mistake(SPEEDS, only_base=500_000.0, says="You turn with base 500,000, whatever base is given."),
    mistake(SPEEDS, only_base=1_000_000.0, says="You turn with base 1,000,000, whatever base is given."),
    mistake(WHICH, shift=1, says=
        "Every word is turned as if it stood one place further on: positions counted from 1. At position 0 nothing"
        " may move."),
    mistake(POSITIONS, counted=True, says=
        "You count 0, 1, 2, ... yourself and do not look at the positions that are given. Behind a cache they begin"
        " elsewhere."),
    mistake(POSITIONS, sort=True, says=
        "Your rows come in rising order. Each row belongs to the position that stands in its place, in any order."),
    mistake(SIGNS, factor=-1, says=
        "Rotated backwards: every cosine is right and every sine has the wrong sign. At position 1 all sines should"
        " be positive."),
    mistake(MATRIX, swapped=True, says=
        "Cosines and sines have changed places. At position 0 every cosine should be 1."),
    mistake(SPEEDS, factor=math.pi / 180, says=
        "Your angles are converted from degrees. The speeds are in rad per token already, and that is what torch.cos"
        " expects."),
    mistake(SPEEDS, factor=2 * math.pi, says=
        "Every angle is 2π times too large. The speeds are in rad per token, not in turns."),
    mistake(POSITIONS, factor=2, says=
        "Every angle is twice as large as it should be: is something turned twice?"),
    mistake(WHICH, factor=0, says=
        "All angles are 0: the positions are forgotten."),
]


def rotation_mistakes(interleaved: bool) -> list[Mistake]:
    """The known mistakes when one of the layouts is asked for."""
    neighbours, halves = "2i with its neighbour 2i + 1", "i with i + d/2"
    do, should = (halves, neighbours) if interleaved else (neighbours, halves)
    twice = "one half beside the other" if interleaved else "each column twice in a row"
    return [
        mistake(LAYOUTS, other=True, says=
            f"The other layout. Do you pair dimension {do}? This one pairs {should}. A silent mistake: lengths are"
            " kept, scores depend on the distance alone, and only at distance 0 are they right."),
        mistake(SIGNS, signs=((1, 1), (1, -1)), says=
            "Rotated backwards. A quarter turn (cosine 0, sine 1) takes the pair (1, 0) to (0, 1), and yours takes it"
            " to (0, -1). A minus at the wrong product does this, and so does a matrix that is transposed."),
        mistake(STACK, written=True, says=
            "The right numbers in the wrong places: you take pairs from one layout and put them back in the other."
            " Even at position 0 the vector changes. Look at the last step: stack or cat?"),
        mistake(FORMS, columns="other", says=
            "The two numbers of a pair meet different angles, so lengths are not kept. Do you repeat the tables as"
            f" the other layout does, {twice}?"),
        mistake(LAYOUTS, partner=True, says=
            "Every number meets the right angle and the wrong partner, so lengths are not kept. Does your swapped"
            " copy of x (`rotate_half`, perhaps) belong to the other layout?"),
        mistake(WHICH, signs=((1, 1), (1, 1)), says=
            "A plus in both numbers of each pair, so lengths are not kept. One of the four products needs a minus."),
        mistake(WHICH, signs=((1, -1), (1, -1)), says=
            "A minus in both numbers of each pair, so lengths are not kept. Only one of the four products has one."),
        mistake(MATRIX, signs=((1, 1), (-1, 1)), says=
            "A reflection: lengths are kept, and at position 0 the second number of each pair has changed its sign."),
        mistake(FORMS, afterwards=True, says=
            "The second number of each pair is computed from the first one after that was turned. It needs the old"
            " value."),
        mistake(BUFFER, signs=((1, 0), (1, 0)), says=
            "The sines have no effect: each pair is only multiplied by its cosine, and gets shorter. (A complex"
            " table that was cast to real does this.)"),
        mistake(MATRIX, swapped=True, says=
            "Cosines and sines have changed places. At position 0 nothing may move, and here it does."),
        mistake(POSITIONS, rows="first", says=
            "Every word is turned like the first one. Which row of the tables belongs to a word?"),
        mistake(FORMS, columns="first", says=
            "Every pair is turned by the angle of the first one. Which column of the tables belongs to a pair?"),
        mistake(HEADS, rows="heads", says=
            "Each head turned by its head number: the rows of the tables meet the axis of the heads. Words are the"
            " last axis but one."),
        mistake(POSITIONS, part=True, says=
            "Only the first half of the pairs is turned, the others stay."),
        mistake(MATRIX, added=True, says=
            "The tables are added to x, as a sinusoidal code is. A rotation multiplies: each new number of a pair"
            " mixes both old ones."),
        mistake(WHICH, signs=((1, 0), (1, 0)), rows="ones", says=
            "Nothing is turned: the vectors come back as they were."),
    ]


def conversion_mistakes(back: bool) -> list[Mistake]:
    """The known mistakes on the way from interleaved to half-split, or back."""
    there = "from interleaved to half-split" if back else "from half-split to interleaved"
    return [
        mistake(LAYOUTS, inverse=True, says=
            f"The other way round: this goes {there}. A test with few rows may not see it."),
        mistake(LAYOUTS, whole=True, says=
            "Rows wander from head to head: all rows are sorted at once. Each head keeps its own."),
        mistake(LAYOUTS, first=True, says=
            "Only the rows of the first head are sorted, and all others stay. Every head has rows of its own to sort."),
        mistake(LAYOUTS, alternating=True, says=
            "You read the rows as if the heads took turns. All rows of a head stand together, and then those of the"
            " next."),
        mistake(LAYOUTS, columns=True, says=
            "The columns are sorted. Each row makes one dimension of the queries or keys, and the rows change places. A"
            " column belongs to one dimension of what comes in, the vector of a word, and stays."),
        mistake(LAYOUTS, columns=True, whole=True, says=
            "The columns are sorted, all at once. Each row makes one dimension of the queries or keys, and the rows of"
            " a head change places. A column belongs to one dimension of what comes in, the vector of a word, and"
            " stays."),
        mistake(LAYOUTS, still=True, says=
            "The weight comes back as it was."),
        mistake(LAYOUTS, odd_first=True, says=
            "First and second number of each pair have changed places."),
    ]


CACHE_MISTAKES = [
    mistake(POSITIONS, query_starts=False, key_starts=False, says=
        "Each call begins again at position 0. With one new word in each call, nothing is turned at all. How many"
        " words came before?"),
    mistake(POSITIONS, query_starts=False, says=
        "The keys go on counting, and the queries begin again at position 0 in each call."),
    mistake(POSITIONS, key_starts=False, says=
        "The queries go on counting, and the keys begin again at position 0 in each call."),
    mistake(POSITIONS, same=True, says=
        "All words of a call get the same position. That is right for one new word at a time, and wrong for a"
        " prompt."),
    mistake(POSITIONS, length="heads", says=
        "New words begin at the number of heads: you read the length of the cache off its first axis. Which axis"
        " counts the words?"),
    mistake(POSITIONS, length="dim", says=
        "New words begin at the dimension of a head: you read the length of the cache off its last axis. Which axis"
        " counts the words?"),
    mistake(POSITIONS, length="one less", says=
        "Behind a cache all positions are one too small. The first word has position 0: which one is the next after"
        " n words?"),
    mistake(POSITIONS, length="one more", says=
        "Behind a cache all positions are one too large. The first word has position 0: which one is the next after"
        " n words?"),
    mistake(WHICH, late=1, says=
        "The scores are right and the keys in the cache are not: positions counted from 1. Keys of other code do not"
        " fit to them."),
    mistake(POSITIONS, again=True, says=
        "Keys of the cache are turned again in each call. They were turned when they came, and their positions do"
        " not change."),
    mistake(POSITIONS, stored="before", says=
        "The cache keeps keys from before their rotation, and later queries meet them so."),
    mistake('chapter 9, "The methods, one formula each"', stored="before, turned", says=
        "The scores are right, and the cache keeps keys from before their rotation. That is a design in its own"
        " right (dynamic scaling needs it); here the cache holds turned keys."),
    mistake(POSITIONS, front=True, says=
        "New keys are put in front of the old ones. Words stand in their order."),
    mistake(POSITIONS, still="queries", says=
        "The queries are not turned."),
    mistake(POSITIONS, still="keys", says=
        "The keys are not turned."),
    mistake(POSITIONS, forgets=True, says=
        "The new cache holds the new keys only: those of earlier words are lost."),
    mistake(POSITIONS, recent=True, says=
        "The scores are those with the new keys only. A query meets the keys of the cache as well."),
    mistake(POSITIONS, scaled=True, says=
        "The scores are divided by the root of the dimension. Plain products are wanted here."),
    mistake(POSITIONS, masked=True, says=
        "The scores are masked. Plain products are wanted here, all of them."),
]


# fmt: on
# -- The verdict -------------------------------------------------------------------------------------------------------

UNWRITTEN = "not written yet"
NOT_YET = f"{UNWRITTEN}."
LATER = "looked at when the rest is right."
FORMULA_RIGHT = "The formula is right. "
STOPPED = "It stopped. "
CALLS = "it calls `"
UNKNOWN = "Wrong, in a way that I do not know. The smallest case that I found: "
ROUGH = f"Right to two digits only. Was something rounded, to float16 or bfloat16 perhaps? See {BITS}."
CHANGES = (
    "The same arguments give another result the second time. Does something count on from call to call, or is it drawn"
    " by chance?"
)


def alike(found: Result, wanted: Result, tolerance: float = 1e-4) -> bool:
    """Equal to rounding, shapes included; None is like None."""
    if found is None or wanted is None:
        return found is wanted
    return len(found) == len(wanted) and all(
        f.shape == w.shape and torch.allclose(f, w, rtol=tolerance, atol=tolerance, equal_nan=True)
        for f, w in zip(found, wanted, strict=True)
    )


def verdict(
    run: Callable[..., Result],
    right: Callable[..., Result],
    mistakes: list[Mistake],
    cases: list[tuple],
    small: Iterable[tuple],
    show: Callable[..., str],
    *,
    names: tuple[str, ...] = ("",),
    also: Iterable[tuple] = (),
    rest: Iterable[Mistake] = (),
    tolerance: float = 1e-4,
    tell: Callable[..., str] | None = None,
) -> str | None:
    """None if all is right; else a sentence.

    Args:
        run: calls the student's function for one case; raises Wrong.
        right: the same by loops, with the keywords of `mistakes`.
        mistakes: known ones.
        cases: what has to be right.
        small: more cases, the smallest first; one of them is shown if no mistake is known.
        show: a case in words.
        names: of the tensors of a result; if there are more of them, call by call.
        also: further cases, looked at only to tell mistakes apart.
        rest: more mistakes, which are known alone and not in pairs.
        tolerance: of numbers that count as right.
        tell: what came and what was wanted, where it is not `difference`.
    """
    [first], _ = attempts(run, cases[:1])  # twice in a row, or what counts on from call to call is right here
    found, complaints = attempts(run, cases)
    same = alike(first, found[0])
    if same and all(alike(f, right(*case), tolerance) for f, case in zip(found, cases, strict=True)):
        return None
    for complaint in complaints:
        if UNWRITTEN in complaint:
            return complaint
    if not same:
        return CHANGES
    some = named([*found, *attempts(run, also)[0]], right, mistakes, [*cases, *also], rest)
    if some:
        return both(*(f"{mistake.says} See {mistake.page}." for mistake in some))
    if complaints:
        return complaints[0]
    if not all(map(alike, found, attempts(run, cases)[0])):
        return CHANGES
    for case in chain(small, cases):
        got, wanted = attempts(run, [case])[0][0], right(*case)
        if got is not None and not alike(got, wanted, tolerance):
            return f"{UNKNOWN}{show(*case)}: {(tell or difference)(got, wanted, names, tolerance)}"
    return CHANGES


def both(first: str, second: str = "") -> str:
    """One sentence, or two."""
    return f"Two mistakes at once, it seems. First: {first} Second: {second}" if second else first


def attempts(run: Callable[..., Result], cases: Iterable[tuple]) -> tuple[list[Result], list[str]]:
    """What comes back for each case, None where it stopped; and the complaints."""
    found, complaints = [], []
    for case in cases:
        try:
            found.append(run(*case))
        except Wrong as wrong:
            found.append(None)
            complaints.append(str(wrong))
    return found, complaints


def named(
    found: list[Result], right: Callable[..., Result], mistakes: list[Mistake], cases: list[tuple],
    rest: Iterable[Mistake] = (),
) -> tuple:  # fmt: skip
    """The known mistake that gives the same in all cases, or else two of them together, or else nothing.

    The tolerance is that of angles in float32 when a mistake has made them large.
    """
    if all(f is None for f in found):
        return ()
    for some in chain(((mistake,) for mistake in chain(mistakes, rest)), combinations(mistakes, 2)):
        knobs = {name: value for mistake in some for name, value in mistake.knobs.items()}
        if len(knobs) == sum(len(mistake.knobs) for mistake in some) and all(
            alike(f, right(*case, **knobs), 1e-2) for f, case in zip(found, cases, strict=True)
        ):
            return some
    return ()


def difference(got: tuple[Tensor, ...], wanted: tuple[Tensor, ...], names: tuple[str, ...], tolerance: float) -> str:
    """The first row in which they differ."""
    for index, (g, w) in enumerate(zip(got, wanted, strict=True)):
        call = f"call {index // len(names) + 1}, " if len(got) > len(names) else ""
        name = call + names[index % len(names)]
        if g.shape != w.shape:
            return f"{name} got the shape {tuple(g.shape)}, wanted {tuple(w.shape)}.".lstrip()
        width = g.shape[-1] if g.shape[-1] > 1 else g.numel()  # a single column reads better as a row
        rows = list(zip(g.reshape(-1, width), w.reshape(-1, width), strict=True))
        for row, (left, right) in enumerate(rows):
            if not torch.allclose(left, right, rtol=tolerance, atol=tolerance):
                where = f" row {row}" if len(rows) > 1 else ""
                if width > 24:  # of a long row the first number
                    column = int((left - right).abs().nan_to_num(1, 1, 1).gt(tolerance).nonzero()[0])
                    where, left, right = f"{where} column {column}", left[column, None], right[column, None]
                return f"{name}{where} got {numbers(left)}, wanted {numbers(right)}.".lstrip()
    raise AssertionError("they do not differ")


def numbers(x: Tensor) -> str:
    """Six digits each; large tensors by their shape."""
    if x.numel() > 24:
        return f"a tensor of shape {tuple(x.shape)}"
    return "[" + ", ".join(f"{v.item():.6g}" if v.ndim == 0 else numbers(v) for v in x + 0.0) + "]"


def called(function: Callable, *arguments: object) -> object:
    """What a student's function returns for copies of the arguments."""
    copies = [argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments]
    try:
        return function(*copies)
    except (Wrong, Untold):
        raise
    except Stopped as stopped:
        kind, why, within = stopped.args
    except Exception as error:  # whatever a student's function may raise
        kind, why, within = type(error).__name__, str(error), raised(error, function)
    if kind == "NotImplementedError" and why in ("", "your code here"):  # torch raises some, too
        raise Wrong(f"{CALLS}{within}`, which is {UNWRITTEN}." if within else NOT_YET)
    given = ", ".join(map(described, arguments))
    raise Wrong(f"{STOPPED}{kind}: {why.rstrip('.') or 'no message'}. Arguments: {given}.")


def changed(function: Callable, first: Tensor, *others: object) -> bool:
    """Whether a student's function writes into its first argument."""
    own = first.clone()
    with contextlib.suppress(Wrong):  # what stops here says so elsewhere
        called(lambda: function(own, *others))
    return not (own.shape == first.shape and torch.equal(own, first))


def unwritten(*_: object) -> None:
    """In the place of a function that is missing."""
    raise NotImplementedError


def raised(error: BaseException, function: Callable) -> str:
    """The name of the function in which it was raised, or nothing if it is this one."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return "" if code in (getattr(function, "__code__", code), unwritten.__code__) else code.co_name


def described(thing: object) -> str:
    """A tensor by its shape and format, all else as it is."""
    if hasattr(thing, "shape") and hasattr(thing, "dtype"):
        return f"{tuple(thing.shape)} in {thing.dtype}"
    return f"`{thing.__name__}`" if hasattr(thing, "__name__") else repr(thing)


def tensors(result: object, *names: str) -> tuple[Tensor, ...]:
    """The result as tensors, one for each name; arrays of numpy are as good."""
    if result is None:
        raise Wrong("It returned None: is there a `return`?")
    found = result if isinstance(result, tuple | list) else (result,)
    wanted = " and ".join(names)
    if not all(hasattr(part, "shape") and hasattr(part, "dtype") for part in found):
        kinds = " and ".join(dict.fromkeys(type(part).__name__ for part in found))
        inside = f" of {kinds}" if found is result else ""
        raise Wrong(f"Wanted {wanted}, as torch.Tensor; got {type(result).__name__}{inside}.")
    if len(found) != len(names):
        parts = described(found[0]) if len(found) == 1 else f"{len(found)} of them"
        raise Wrong(f"Wanted {wanted}, {len(names)} tensor{'s' * (len(names) > 1)}; got {parts}.")
    found = [part if isinstance(part, Tensor) else torch.as_tensor(part.copy()) for part in found]
    if any(tensor.is_complex() for tensor in found):
        raise Wrong(f"Complex numbers came back; each has to become two real ones again. See {FORMS}.")
    return tuple(tensor.detach().cpu() for tensor in found)


def shaped(tensor: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """The tensor, unless its shape is another."""
    if tensor.shape != shape and tensor.numel() == math.prod(shape) and len(shape) > 2:
        raise Wrong(
            f"All numbers came back, in the shape {tuple(tensor.shape)}; wanted {tuple(shape)}. Count axes from the"
            f" right. See {FLATTEN}."
        )
    if tensor.shape != shape:
        raise Wrong(f"{name[0].upper()}{name[1:]} has the shape {tuple(tensor.shape)}; wanted {tuple(shape)}.")
    return tensor.double()


# -- Task 1: tables(positions, head_dim, base) -> cos, sin -------------------------------------------------------------


def of_tables_task(function: Callable) -> list[Step]:
    """Task 1."""
    chance = random.Random(SEED)
    near = [
        (torch.arange(5), chance.choice((8, 12, 16)), 10000.0),
        (some_positions(4, 40), chance.choice((6, 10, 14)), float(chance.randrange(50, 900))),
        (some_positions(3, 40), 8, float(chance.randrange(3, 8))),
    ]
    far = [(torch.tensor([m]), 8, 10000.0) for m in (257, 4097, 999_999)]
    run, names = tables_run(function), ("cos", "sin")
    wrong = verdict(run, tables_by_loop, TABLE_MISTAKES, near, small_tables(), show_tables, names=names, tell=angles)
    wrong_far = verdict(run, tables_by_loop, [], far, far, show_tables, names=names, tolerance=1e-5, tell=angles)
    wrong, wrong_far = rounded_or(wrong, wrong_far, run, near)
    return [Step("small positions", 3, wrong), Step("large positions", 2, wrong_far)]


def angles(got: tuple[Tensor, ...], wanted: tuple[Tensor, ...], names: tuple[str, ...], tolerance: float) -> str:
    """The first row of angles in which they differ; where it is none, see `difference`."""
    of_rows = [torch.atan2(sin, cos).squeeze(0) for cos, sin in (got, wanted)]
    lengths = got[0] ** 2 + got[1] ** 2
    if len(got[0]) > 1 or not (lengths - 1).abs().max() < 1e-3 or of_rows[1].abs().max() > 3.001:
        return difference(got, wanted, names, tolerance)
    turns = ", up to whole turns" * bool(of_rows[1].min() < 0)
    return f"got angles of {numbers(of_rows[0])} rad, wanted {numbers(of_rows[1])}{turns}."


def tables_run(function: Callable) -> Callable[..., Result]:
    """The student's function, its result checked for its form."""

    def run(positions: Tensor, dim: int, base: float) -> Result:
        found = tensors(called(function, positions, dim, base), "cos", "sin")
        shape = (len(positions), dim // 2)
        for table in found:
            if table.shape == (len(positions), dim):
                raise Wrong(
                    "The tables have a column for each dimension; one for each pair is wanted. How columns are repeated"
                    f" depends on the layout, so that is a matter of the rotation. See {FORMS}."
                )
            if table.shape == shape[::-1] != shape:
                raise Wrong("Rows and columns have changed places: a row for each position, a column for each pair.")
            if table.dtype not in (torch.float32, torch.float64):
                raise Wrong(f"The tables are {table.dtype}; wanted torch.float32 or torch.float64. See {BITS}.")
        return tuple(shaped(table, "a table", shape) for table in found)

    return run


def small_tables() -> Iterator[tuple]:
    """The smallest first."""
    for dim, base, m in product((2, 4, 6, 8), (10000.0, 100.0), (0, 1, 2, 3, 10)):
        yield torch.tensor([m]), dim, base
    for dim, rows in product((2, 4), ([0, 1], [1, 0], [3, 5, 4])):
        yield torch.tensor(rows), dim, 10000.0


def show_tables(positions: Tensor, dim: int, base: float) -> str:
    """A case in words."""
    return f"positions = {positions.tolist()}, head_dim = {dim}, base = {base:g}"


FORMATS = (  # relative errors of an angle (one rounding to three), the last whole number, where an error is shown
    ("bfloat16", 2**-9.2, 3.1 * 2**-8, 256, 257),
    ("float16", 2**-12.5, 2**-9.2, 2048, 4097),
    ("float32", 2**-26, 2**-19, None, 999_999),
)
FINE = 4097  # up to this position even float32 makes fine angles
FAR = torch.tensor([1, 2, 3, 100, 255, 256, 257, 511, 1001, 2047, 4097, 50_021, 700_001, 999_999])
OUTPUT = 1.5e-7  # rad: what tables in float32 may be off by, from right angles


def rounded_or(
    wrong: str | None, wrong_far: str | None, run: Callable[..., Result], cases: list[tuple],
    turned_so: Callable[[], bool] = lambda: True,
) -> tuple[str | None, str | None]:  # fmt: skip
    """Complaints about small and about large positions, or one about rounding.

    A coarse format is wrong at small positions, too: that is excused if rounding explains *all* of it, which
    `turned_so` says of a rotation. `run` makes tables, `cases` are those of the small positions.
    """
    if wrong is None and wrong_far is None:
        return None, None
    if wrong and UNWRITTEN in wrong:
        return wrong, LATER
    cases = [(FAR, 64, 10000.0), *cases]
    rough = rounding(run, cases)
    if rough and (wrong is None or turned_so()):
        return None, FORMULA_RIGHT + rough
    if wrong and wrong.startswith(UNKNOWN) and turned_so():
        for known in TABLE_MISTAKES:
            if rough := rounding(run, cases, **known.knobs):
                return both(f"{known.says} See {known.page}.", rough), LATER
    return wrong, LATER if wrong else wrong_far


def rounding(run: Callable[..., Result], cases: list[tuple], **knobs) -> str | None:
    """A sentence if the angles are those of a coarse format: their relative errors give it away, and nothing else.

    The first of the cases is at the positions FAR. With knobs: the angles of a known mistake, and coarse besides.
    """
    student, _ = attempts(run, cases)
    if None in student:
        return None
    of_angles = {name: value for name, value in knobs.items() if name != "swapped"}
    sizes = [angles_by_loop(*case, **of_angles).abs() for case in cases]
    errors = []
    for (cos, sin), case in zip(student, cases, strict=True):
        right_cos, right_sin = tables_by_loop(*case, **knobs)
        if ((cos**2 + sin**2 - 1).abs() > 0.02).any():
            return None
        errors.append(torch.atan2(sin * right_cos - cos * right_sin, cos * right_cos + sin * right_sin))
    for name, *_ in FORMATS[:2]:
        if all(map(torch.equal, *zip(*((t, in_format(t, name)) for tables in student for t in tables), strict=True))):
            off = max(e.abs().max() for e in (errors[0][FAR.le(FINE)], *errors[1:]))
            if off < 2 * torch.finfo(getattr(torch, name)).eps:
                return (
                    f"Tables rounded to {name}: the angles are fine, and their cosines and sines have lost digits"
                    f" afterwards, so turns are off by up to {off:.1g} rad. See {BITS}."
                )
    for name, low, high, whole, look in FORMATS:
        if not exact_where_it_must_be(sizes, errors, name):
            continue
        # beyond these, a coarse format is off by whole turns; float16 also ends at 65504
        seen = [(a * high < 1) & (e.isfinite() | (name != "float16")) for a, e in zip(sizes, errors, strict=True)]
        least = [(e.abs() - OUTPUT).clamp(min=0) / a.clamp(min=1e-9) for a, e in zip(sizes, errors, strict=True)]
        if not all(s.any() for s in seen):
            continue
        worst = max(e[s].max() for e, s in zip(least, seen, strict=True))
        if low < worst <= high:
            return coarse(name, float(worst), whole, look, errors[0], seen[0])
    return None


def in_format(x: Tensor, name: str) -> Tensor:
    """Rounded to a format, and back."""
    return x.to(getattr(torch, name)).to(x.dtype)


def exact_where_it_must_be(sizes: list[Tensor], errors: list[Tensor], name: str) -> bool:
    """Whether pair 0, of speed 1, is right where the format holds its angle, a whole number: else it is no rounding."""
    allowed = 2 * torch.finfo(getattr(torch, name)).eps  # cosines may be rounded, too
    for size, error in zip(sizes, errors, strict=True):
        angle = size[:, 0]
        held = (angle == angle.round()) & (angle == in_format(angle, name))
        if (error[held, 0].abs() > allowed).any():
            return False
    return True


def coarse(name: str, worst: float, whole: int | None, look: int, errors: Tensor, seen: Tensor) -> str:
    """Positions, speeds or angles: what was rounded."""
    off = f"At position {look:,} one is off by {errors[FAR.eq(look)].abs().max():.1g} rad. See {BITS}."
    if whole and errors[FAR.le(whole)].abs().max() < 1e-3:
        return f"Positions rounded to {name}: exact up to {whole} and then not, it has no {whole + 1}. {off}"
    if in_step(errors, seen):
        return (
            f"Speeds rounded to {name}, and their error grows with the position. What comes after, in however many"
            f" digits, does not bring back what they lost. {off}"
        )
    if whole:
        return f"Angles rounded to {name}: off by up to {worst:.1%}, at small positions as well. {off}"
    return (
        f"Angles rounded to {name}: fine near the beginning, and too coarse far out. Speeds, positions, product: each"
        f" of them counts. {off}"
    )


def in_step(errors: Tensor, seen: Tensor) -> bool:
    """Whether in each column the errors are proportional to the positions."""
    last = seen.sum(dim=0) - 1  # the largest position of each pair
    slopes = errors.gather(0, last[None]) / FAR[last]
    rest = (errors - FAR[:, None] * slopes)[seen]
    return bool(rest.abs().max() < 0.02 * errors[seen].abs().max())


# -- Task 2: (x, cos, sin) -> x, turned, in each layout ----------------------------------------------------------------


def of_rotation_task(interleaved: Callable, half_split: Callable, looks_right: Callable) -> list[Step]:
    """Task 2. The student's own test is the last: it is shown a right rotation."""
    chance = random.Random(SEED)
    shapes = (2, 3, 5, chance.choice((8, 12))), (4, 4, chance.choice((6, 10))), (3, 10)
    cases = [single(drawn(*s), *tables_by_loop(some_positions(s[-2], 30), s[-1], 10000.0)) for s in shapes]
    wrong = []
    for function, layout in ((interleaved, INTERLEAVED), (half_split, HALF_SPLIT)):

        def right(*case: Tensor, layout: bool = layout, **knobs) -> Result:
            return rotation_by_loop(*case, layout, **knobs)

        run = rotation_run(function)
        wrong.append(verdict(run, right, rotation_mistakes(layout), cases, small_rotations(), show_rotation))
    kept = LATER if any(wrong) else habits(interleaved, INTERLEAVED) or habits(half_split, HALF_SPLIT)
    steps = [Step("interleaved", 2, wrong[0]), Step("half-split", 1, wrong[1]), Step("x and its dtype", 1, kept)]
    return [*steps, Step("your own test", 1, overlooked(looks_right))]


def rotation_run(function: Callable) -> Callable[..., Result]:
    """The student's function, its result checked for its form."""

    def run(x: Tensor, cos: Tensor, sin: Tensor) -> Result:
        [y] = tensors(called(function, x, cos, sin), "the turned x")
        return (shaped(y, "the turned x", x.shape),)

    return run


def small_rotations() -> Iterator[tuple]:
    """The smallest first: one word, then more, with heads and without."""
    for dim, m in product((2, 4, 6, 8), (0, 1, 2, 3)):
        for x in torch.eye(dim, dtype=torch.float64):
            yield single(x[None], *tables_by_loop(torch.tensor([m]), dim, 10000.0))
    shapes = [*product((1, 2, 3, 4, 5), (2, 4)), *product((1, 2, 3), (1, 2, 3), (2, 4)), (1, 1, 1, 2)]
    for shape in sorted(shapes, key=math.prod):
        x = torch.arange(1.0, 1 + math.prod(shape), dtype=torch.float64).view(shape)
        yield single(x, *tables_by_loop(torch.arange(1, 1 + shape[-2]), shape[-1], 10000.0))


def single(*tensors: Tensor) -> tuple[Tensor, ...]:
    """In float32, which is what most programs make if nothing is said."""
    return tuple(tensor.float() for tensor in tensors)


def show_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> str:
    """A case in words."""
    return f"x = {numbers(x)}, cos = {numbers(cos)}, sin = {numbers(sin)}"


NARROW = (torch.bfloat16, torch.float16)
FORMATS_OF_X = (  # and of the tables
    (torch.bfloat16, torch.float32), (torch.float32, torch.float64), (torch.float64, torch.float32),
    (torch.float16, torch.float32),
)  # fmt: skip


def habits(function: Callable, interleaved: bool) -> str | None:
    """What a right rotation can still do wrong: change its argument, or the format, or round too often."""
    wide = drawn(2, 16, 8), *tables_by_loop(torch.arange(16), 8, 10000.0)
    case = single(*wide)
    if changed(function, *case):
        return f"Your function changes the x that it is given, and someone else may still need it. See {FORMS}."
    for of_x, of_tables in FORMATS_OF_X:
        case = tuple(part.to(dtype) for part, dtype in zip(wide, (of_x, of_tables, of_tables), strict=True))
        given = f"x in {of_x}, tables in {of_tables}"
        try:
            [y] = tensors(called(function, *case), "the turned x")
            shaped(y, "the turned x", case[0].shape)
        except Wrong as wrong:
            return f"{given}: {wrong}"
        if y.dtype != of_x:
            return f"{given}, and the result in {y.dtype}; wanted x's dtype, at the end. See {DTYPES}."
        if of_x in NARROW and (rough := rounded_often(y, *case, interleaved)):
            return f"{given}, and the result is less exact than {of_x} allows: {rough} See {DTYPES}."
    return None


def rounded_often(y: Tensor, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> str | None:
    """A sentence if y in a narrow format is further off than by one rounding, half a unit in the last digit."""
    [exact] = rotation_by_loop(x, cos, sin, interleaved)
    errors = (y.double() - exact).abs()
    if (errors <= torch.finfo(x.dtype).eps / 2 * exact.abs() + 1e-5).all():
        return None
    [coarse] = rotation_by_loop(x, cos.to(x.dtype), sin.to(x.dtype), interleaved)
    if (y.double() - coarse).norm() < errors.norm():
        return "the tables are rounded before they meet x. Round once, at the end."
    return (
        "products are rounded before they are added. (If you did not write that: a single number of a table does not"
        " widen x, and torch rounds to x's dtype each time.) Round once, at the end."
    )


WRONG_ONES = (  # rotations that a test should refuse
    ("it turns backwards", {"signs": ((1, 1), (1, -1))}),
    ("it pairs i with i + d/2", {"other": True}),
    ("it has a plus in both numbers of each pair", {"signs": ((1, 1), (1, 1))}),
    ("it puts the numbers back in the order of the other layout", {"written": True}),
    ("all its pairs take the angles of the first one", {"columns": "first"}),
    ("it turns every word like the first one", {"rows": "first"}),
    ("it turns nothing", {"signs": ((1, 0), (1, 0)), "rows": "ones"}),
)


def overlooked(looks_right: Callable) -> str | None:
    """What is wrong with a student's test of an interleaved rotation.

    The right one comes twice among the wrong ones, in an order that is drawn: counting calls answers nothing. Then the
    student's own rotations get each mistake as well: a test that compares with them lets it pass now. (One that
    compares with a function of another name is not seen.)
    """
    tried = [("", turning()), ("", turning()), *((name, turning(**knobs)) for name, knobs in WRONG_ONES)]
    random.Random(SEED).shuffle(tried)
    passed, refused = set(), False
    for name, rotate in tried:
        try:
            answer = answered(looks_right, rotate)
        except Wrong as wrong:
            return str(wrong)
        passed |= {name} if answer else set()
        refused |= not answer and not name
    for name, knobs in WRONG_ONES:
        own = {"rotate_interleaved": turning(**knobs), "rotate_half_split": turning(HALF_SPLIT, **knobs)}
        with standing_in(looks_right, own), contextlib.suppress(Wrong):
            if name not in passed and answered(looks_right, turning(**knobs)):
                return (
                    "It compares with a function of your own, and lets a wrong rotation pass if that one has the same"
                    f" mistake: {name}. Compare with numbers that you found with a pencil."
                )
    if refused:
        return "It refuses a rotation that is right: interleaved, counter-clockwise, each word by its own row."
    return next((f"It lets a wrong rotation pass: {name}." for name, _ in WRONG_ONES if name in passed), None)


def answered(looks_right: Callable, rotate: Callable) -> bool:
    """Whether a student's test lets a rotation pass."""
    try:
        answer = called(looks_right, rotate)
    except Wrong as wrong:
        if str(wrong).startswith(f"{STOPPED}AssertionError"):
            return False  # an assert that fails is a no
        raise
    if getattr(answer, "shape", None) == ():  # one number of torch or numpy
        answer = answer.item()
    if not isinstance(answer, int):  # True and False are
        raise Wrong(f"It returned {described(answer)}; wanted True or False.")
    return bool(answer)


def turning(interleaved: bool = INTERLEAVED, **knobs) -> Callable:
    """A rotation for students to call, the right one or with a mistake. It says what it takes."""

    def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        parts = x, cos, sin
        try:
            if (
                not all(isinstance(part, Tensor) and part.ndim > 1 for part in parts)
                or x.shape[-1] != 2 * cos.shape[-1]
            ):
                raise RuntimeError
            [y] = rotation_by_loop(x, cos, sin, interleaved, **knobs)
        except RuntimeError:  # of torch, too, if there are not as many rows as words
            raise ValueError(
                "rotate takes x (..., seq_len, head_dim), cos and sin (seq_len, head_dim // 2); got "
                + ", ".join(map(described, parts))
            ) from None
        return y.to(x.dtype if x.is_floating_point() else torch.float32)

    return rotate


@contextlib.contextmanager
def standing_in(function: Callable, helpers: dict[str, Callable]) -> Iterator[None]:
    """Others where a function looks for helpers of these names."""
    names = getattr(function, "__globals__", {})
    own = {name: names[name] for name in helpers if name in names}
    names.update(helpers)
    try:
        yield
    finally:
        for name in helpers:
            del names[name]
        names.update(own)


# -- Task 3: (weight, head_dim) -> weight, its rows in the order of the other layout -----------------------------------


def of_conversion_task(to_half_split: Callable, to_interleaved: Callable) -> list[Step]:
    """Task 3."""
    cases = [(drawn(18, 18).float(), 6), (drawn(20, 20).float(), 10), (drawn(32, 16).float(), 8)]
    wrong = []
    for function, back in ((to_half_split, False), (to_interleaved, True)):

        def run(weight: Tensor, dim: int, function: Callable = function) -> Result:
            [found] = tensors(called(function, weight, dim), "the new weight")
            return (shaped(found, "the result", weight.shape),)

        def right(*case, back: bool = back, **knobs) -> Result:
            return conversion_by_loop(*case, back, **knobs)

        wrong.append(verdict(run, right, conversion_mistakes(back), cases, small_weights(), show_weight, tell=order))
    kept = LATER if any(wrong) else kept_weight(to_half_split) or kept_weight(to_interleaved)
    ways = [Step("to half-split", 2, wrong[0]), Step("to interleaved", 2, wrong[1])]
    return [*ways, Step("the weight and its dtype", 1, kept)]


def small_weights() -> Iterator[tuple]:
    """The smallest first: rows 0, 100, 200, ... and one more in each column, as many columns as a head has rows."""
    for dim, heads in product((2, 4, 6, 8), (1, 2, 3)):
        yield numbered(dim * heads, dim), dim


def numbered(rows: int, columns: int) -> Tensor:
    """100 r + c in row r and column c."""
    return 100.0 * torch.arange(rows)[:, None] + torch.arange(columns)


def show_weight(weight: Tensor, dim: int) -> str:
    """A case in words."""
    return f"head_dim = {dim}, heads = {len(weight) // dim}, width = {weight.shape[1]}"


def order(got: tuple[Tensor, ...], wanted: tuple[Tensor, ...], names: tuple[str, ...], tolerance: float) -> str:
    """Which rows came, if each is one of the rows that were given; else the first that is none."""
    given = numbered(*wanted[0].shape).double()
    what = difference(got, wanted, names, tolerance)
    if got[0].shape != given.shape or not torch.equal(wanted[0].sort(dim=0).values, given):
        return what
    if any((row != given).any(dim=1).all() for row in got[0]):
        return f"in row r and column c of the weight is 100 r + c; {what}"
    came, want = ([int(row[0]) // 100 for row in part[0]] for part in (got, wanted))
    return f"rows got in the order {came}, wanted {want}."


def kept_weight(function: Callable) -> str | None:
    """What a right conversion can still do wrong: change its argument, or the format."""
    weight = drawn(12, 5).float()
    if changed(function, weight, 6):
        return f"Your function changes the weight that it is given, and someone may still need it. See {LAYOUTS}."
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        try:
            [found] = tensors(called(function, weight.to(dtype), 6), "the new weight")
        except Wrong:
            continue  # a matrix in float32 moves weights in float32 only; that stops, and misleads nobody
        if found.dtype != dtype:
            return f"The weight in {dtype}, and the result in {found.dtype}; wanted the weight's dtype. See {DTYPES}."
    return None


# -- Task 4: (q, k, cache or None) -> scores, cache; interleaved, base 10000 -------------------------------------------

GETS_A_CACHE = (
    "The first call ends well, and one that gets a cache stops. What do you do with it? Old and new keys come together"
    " along the axis of the words, the middle one. "
)
FEW_ROWS = (
    "Right for a few words, and with 300 in one call it stops. Does it make a table with a fixed number of rows, too"
    " few for them? "
)
STOPS = (STOPPED, GETS_A_CACHE, FEW_ROWS)


def of_cache_task(function: Callable) -> list[Step]:
    """Task 4."""

    def run(q: Tensor, k: Tensor, chunks: tuple[int, ...]) -> Result:
        kept, found, done = None, [], 0
        for size in chunks:
            new_q, new_k = (x[:, done : done + size] for x in (q, k))
            before = kept
            scores, kept = tensors(called(function, new_q, new_k, before), "scores", "the new cache")
            found += [scores.double(), kept.double()]
            done += size
            heads, _, dim = k.shape
            shapes = (heads, size, done), (heads, done, dim)
            if (kept.shape, scores.shape) == shapes != (scores.shape, kept.shape):
                raise Wrong("Scores and cache have changed places: the scores come first.")
        again = tensors(called(function, new_q, new_k, before), "scores", "the new cache")
        if not alike(tuple(tensor.double() for tensor in again), tuple(found[-2:])):
            raise Wrong(CHANGES)
        return tuple(found)

    q, k = drawn(2, 3, 7, 8).float()
    long = (*drawn(2, 1, 301, 4).float(), (300, 1))  # no table of a few rows is enough for it
    one, several = [(q, k, (1, 1, 1, 1))], [(q, k, (4, 1, 2)), (q, k, (3, 3)), long]
    from_tables, from_rotation = (
        [known._replace(says=f"{known.says} (Is task {task} right?)") for known in mistakes]
        for task, mistakes in ((1, TABLE_MISTAKES), (2, rotation_mistakes(INTERLEAVED)))
    )
    known = {"names": ("scores", "cache"), "rest": [*from_rotation[3:], *from_tables]}
    mistakes = [*CACHE_MISTAKES, *from_rotation[:3]]  # the layout, the direction, the order

    def complaints() -> tuple[str | None, str | None]:
        wrong = verdict(run, cache_by_loop, mistakes, one, small_chunks(), show_chunks, also=several[:2], **known)
        [found], _ = attempts(run, one)
        if wrong and found and alike(found, cache_by_loop(*one[0]), 1e-2):
            wrong = ROUGH
        if wrong:
            stops_later = wrong.startswith(STOPPED) and not attempts(run, [(q, k, (1,))])[1]
            return f"{GETS_A_CACHE}{wrong}" if stops_later else wrong, LATER
        later = verdict(run, cache_by_loop, mistakes, several, small_chunks(), show_chunks, **known)
        if later and later.startswith(STOPPED) and not attempts(run, several[:2])[1]:
            later = f"{FEW_ROWS}{later}"
        return None, later

    def steps(wrong: str | None, later: str | None) -> list[Step]:
        return [Step("word by word", 3, wrong), Step("several words at once", 2, later)]

    try:
        own = complaints()
    except Untold as untold:
        own = f"Not to be told: {untold}.", LATER
    if own == (None, None) or own[0] == NOT_YET:
        return steps(*own)
    with standing_in(function, EARLIER_TASKS_RIGHT):
        others = complaints()
    gain = earned(steps(*others)) - earned(steps(*own))
    if gain < 0 or (gain == 0 and stops(others) and not stops(own)):
        return steps(*own)
    if gain == 0 and list(map(kind, others)) == list(map(kind, own)):
        return steps(*(own if stops(own) else others))
    first = with_your_own(own[0] or own[1], others)
    return [Step("with your tasks 1 and 2, which does not count", 0, first), *steps(*others)]


def stops(complaints: tuple[str | None, str | None]) -> bool:
    """Whether one of the complaints is that it stops."""
    return any(complaint and complaint.startswith(STOPS) for complaint in complaints)


def kind(complaint: str | None) -> str | None:
    """The same for complaints which differ by digits or by the name of a function only."""
    return next((start for start in (*STOPS, UNKNOWN) if complaint and complaint.startswith(start)), complaint)


EARLIER_TASKS_RIGHT = {
    "tables": lambda positions, head_dim, base=10000.0: tables_by_loop(positions, head_dim, base),
    "rotate_interleaved": turning(),
}


def with_your_own(own: str, others: tuple[str | None, str | None]) -> str:
    """What to say of tasks 1 and 2, if right ones in their place make a difference.

    A result that they spoil can look like a known mistake of the cache, so no such name is repeated.
    """
    if own.startswith((STOPPED, GETS_A_CACHE, CALLS, "Not to be told")):
        return own
    right = "Your `cached_scores` is right. " if others == (None, None) else ""
    return f"{right}Your `tables` or your `rotate_interleaved` is wrong: see tasks 1 and 2. Below are right ones."


def small_chunks() -> Iterator[tuple]:
    """The smallest first: one head, all queries and keys (1, 0, ...)."""
    for dim, chunks in product((2, 4), ((1,), (1, 1), (2,), (1, 1, 1), (1, 2), (2, 1), (3, 1))):
        first = torch.eye(dim)[0].expand(1, sum(chunks), dim)
        yield first, first, chunks


def show_chunks(q: Tensor, k: Tensor, chunks: tuple[int, ...]) -> str:
    """A case in words."""
    heads = "1 head" if len(q) == 1 else f"{len(q)} heads"
    same = f", all queries and keys {numbers(q[0, 0])}" if torch.equal(q, k) else ""
    return f"{heads} of dimension {q.shape[-1]}{same}, new words in each call: {list(chunks)}"


# -- With the signature of a well-known course -------------------------------------------------------------------------


def of_run_rope(function: Callable) -> str | None:
    """What is wrong with run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions): interleaved."""
    chance = random.Random(SEED)
    near = [(8, 10000.0, 64, drawn(1, 5, 8).float(), torch.arange(5))]
    for shape, theta in (((2, 4, chance.choice((6, 10))), 500.0), ((3, 3, 8), 10000.0), ((3, 6), 5.0)):
        near.append((shape[-1], theta, 64, drawn(*shape).float(), some_positions(shape[-2], 60)))
    rows = torch.stack((some_positions(3, 30), some_positions(3, 30) + 30))  # each text with positions of its own
    near.append((8, 10000.0, 64, drawn(2, 3, 8).float(), rows))
    far = [(8, 10000.0, 1_000_000, drawn(1, 8).float(), torch.tensor([m])) for m in (257, 4097, 999_999)]

    def run(dim: int, theta: float, longest: int, x: Tensor, positions: Tensor) -> Result:
        [y] = tensors(called(function, dim, theta, longest, x, positions), "the turned x")
        return (shaped(y, "the turned x", x.shape),)

    def as_tables(positions: Tensor, dim: int, base: float) -> Result:
        x = torch.tensor([1.0, 0.0]).repeat(len(positions), dim // 2)
        [y] = run(dim, base, 1_000_000, x, positions)
        return y[:, 0::2], y[:, 1::2]

    def turned_so() -> bool:
        """Whether nothing is wrong but the angles."""
        for dim, theta, longest, x, positions in near:
            own, _ = attempts(as_tables, [(row, dim, theta) for row in positions.view(-1, positions.shape[-1])])
            if None in own:
                return False
            cos, sin = (torch.stack(part).view(*positions.shape, -1) for part in zip(*own, strict=True))
            found, _ = attempts(run, [(dim, theta, longest, x, positions)])
            if not alike(found[0], rotation_by_loop(x, cos, sin, INTERLEAVED), 3e-3):
                return False
        return True

    def small() -> Iterator[tuple]:
        for dim, theta, m in product((2, 4, 6, 8), (10000.0, 100.0), (0, 1, 2, 3)):
            for x in torch.eye(dim):
                yield dim, theta, 64, x[None], torch.tensor([m])

    def show(dim: int, theta: float, longest: int, x: Tensor, positions: Tensor) -> str:
        return f"d_k = {dim}, theta = {theta:g}, token_positions = {positions.tolist()}, x = {numbers(x)}"

    mistakes = [*rotation_mistakes(INTERLEAVED), *TABLE_MISTAKES]
    cases = [(case[4], case[0], case[1]) for case in near if case[4].ndim == 1]
    wrong = verdict(run, run_rope_by_loop, mistakes, near, small(), show)
    wrong_far = verdict(run, run_rope_by_loop, [], far, far, show, tolerance=1e-5)
    wrong, wrong_far = rounded_or(wrong, wrong_far, as_tables, cases, turned_so)
    return wrong or wrong_far


# -- What a notebook calls ---------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """The functions that are wanted, and what marks them."""

    functions: tuple[str, ...]
    steps: Callable[..., list[Step]]


TASKS = {
    "Task 1": Task(("tables",), of_tables_task),
    "Task 2": Task(("rotate_interleaved", "rotate_half_split", "looks_right"), of_rotation_task),
    "Task 3": Task(("to_half_split", "to_interleaved"), of_conversion_task),
    "Task 4": Task(("cached_scores",), of_cache_task),
}


def tables(function: Callable) -> int:
    """Check task 1, print what was found, return the points."""
    return report("Task 1", of_tables_task(function))


def rotation(interleaved: Callable, half_split: Callable, looks_right: Callable = unwritten) -> int:
    """The same for task 2."""
    return report("Task 2", of_rotation_task(interleaved, half_split, looks_right))


def conversion(to_half_split: Callable, to_interleaved: Callable) -> int:
    """The same for task 3."""
    return report("Task 3", of_conversion_task(to_half_split, to_interleaved))


def cache(function: Callable) -> int:
    """The same for task 4."""
    return report("Task 4", of_cache_task(function))


def run_rope(function: Callable) -> bool:
    """Check a function with the signature of a well-known course, and print what was found."""
    complaint = of_run_rope(function)
    print(said("run_rope", complaint))
    return complaint is None


def report(task: str, steps: list[Step]) -> int:
    """Print what was found and return the points."""
    for step in steps:
        print(said(f"{task}, {step.name}", step.complaint))
    print(f"{task}: {earned(steps)} of {sum(step.worth for step in steps)}")
    return earned(steps)


def earned(steps: list[Step]) -> int:
    """The points."""
    return sum(step.worth for step in steps if step.complaint is None)


def said(where: str, complaint: str | None) -> str:
    """A line, or some."""
    return textwrap.fill(f"{where}: {complaint or 'right.'}", 88, subsequent_indent="    ")


def drawn(*shape: int) -> Tensor:
    """Normal numbers, the same for each SEED."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(1000 * SEED + sum(shape)), dtype=torch.float64)


def some_positions(count: int, below: int) -> Tensor:
    """Whole numbers, falling: not those that counting gives."""
    return torch.tensor(sorted(random.Random(SEED).sample(range(2, below), count), reverse=True))
