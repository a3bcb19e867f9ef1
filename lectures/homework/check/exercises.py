"""What the sheet asks for, exercise by exercise: the call, the form of its result, cases, and mistakes."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
from torch import Tensor

from .loops import (
    HALF_SPLIT,
    INTERLEAVED,
    cache_by_loop,
    conversion_by_loop,
    rotation_by_loop,
    run_rope_by_loop,
    tables_by_loop,
)
from .mistakes import CACHE_MISTAKES, TABLE_MISTAKES, conversion_mistakes, rotation_mistakes
from .pages import BITS, FORMS
from .runner import CHANGES, Exercise, Result, Wrong, alike, called, difference, numbers, shaped, tensors
from .seed import chance, drawn, some_positions


def asked_for_one(index: int, name: str) -> Callable[..., tuple[Tensor, ...]]:
    """Calls for one tensor, of the shape of the argument of that index."""

    def asked(function: Callable, *case: object) -> Result:
        [found] = tensors(called(function, *case), name)
        return (shaped(found, name, case[index].shape),)

    return asked


# -- tables(positions, head_dim, base) -> cos, sin ---------------------------------------------------------------------


def asked_for_tables(function: Callable, positions: Tensor, dim: int, base: float) -> Result:
    """Two tables, a row for each position, a column for each pair."""
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


def near_tables() -> list[tuple]:
    """Positions from 0 and falling ones; one dimension with two bases, in case a table is kept by its dimension."""
    draw = chance()
    dim = draw.choice((8, 12, 16))
    return [
        (torch.arange(5), dim, 10000.0),
        (some_positions(4, 40), draw.choice((6, 10, 14)), float(draw.randrange(50, 900))),
        (some_positions(3, 40), dim, float(draw.randrange(3, 8))),
    ]


def far_tables() -> list[tuple]:
    """Positions that a format does not hold, or far beyond; and exponents that have no end in binary."""
    return [(torch.tensor([m]), dim, 10000.0) for m, dim in ((257, 8), (4097, 8), (999_999, 8), (999_999, 12))]


def small_tables() -> Iterator[tuple]:
    """The smallest first."""
    for dim, base, m in product((2, 4, 6, 8), (10000.0, 100.0), (0, 1, 2, 3, 10)):
        yield torch.tensor([m]), dim, base
    for dim, rows in product((2, 4), ([0, 1], [1, 0], [3, 5, 4])):
        yield torch.tensor(rows), dim, 10000.0


def show_tables(positions: Tensor, dim: int, base: float) -> str:
    """A case in words."""
    return f"positions = {positions.tolist()}, head_dim = {dim}, base = {base:g}"


def angles(got: tuple[Tensor, ...], wanted: tuple[Tensor, ...], names: tuple[str, ...], tolerance: float) -> str:
    """The first row of angles in which they differ; where it is none, see `difference`."""
    of_rows = [torch.atan2(sin, cos).squeeze(0) for cos, sin in (got, wanted)]
    lengths = got[0] ** 2 + got[1] ** 2
    if len(got[0]) > 1 or not (lengths - 1).abs().max() < 1e-3 or of_rows[1].abs().max() > 3.001:
        return difference(got, wanted, names, tolerance)
    turns = ", up to whole turns" * bool(of_rows[1].min() < 0)
    return f"got angles of {numbers(of_rows[0])} rad, wanted {numbers(of_rows[1])}{turns}."


TABLES = Exercise(
    asked_for_tables, tables_by_loop, near_tables, small_tables, show_tables,
    mistakes=TABLE_MISTAKES, names=("cos", "sin"), tell=angles,
)  # fmt: skip
TABLES_FAR = TABLES._replace(cases=far_tables, small=list, mistakes=(), tolerance=1e-5)

# -- (x, cos, sin) -> x, turned, in each layout ------------------------------------------------------------------------


def some_rotations() -> list[tuple]:
    """With two axes in front, with one, and with none; and quarter turns, whose cosines are 1, 0 and -1."""
    draw = chance()
    shapes = (2, 3, 5, draw.choice((8, 12))), (4, 4, draw.choice((6, 10))), (3, 10)
    cases = [(drawn(*s), *tables_by_loop(some_positions(s[-2], 30), s[-1], 10000.0)) for s in shapes]
    quarters = torch.tensor([[1.0], [0.0], [-1.0], [0.0]])
    return [single(*case) for case in (*cases, (drawn(4, 2), quarters, quarters.roll(1, dims=0)))]


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


ROTATIONS = {
    layout: Exercise(
        asked_for_one(0, "the turned x"), partial(rotation_by_loop, interleaved=layout),
        some_rotations, small_rotations, show_rotation, mistakes=rotation_mistakes(layout),
    )
    for layout in (INTERLEAVED, HALF_SPLIT)
}  # fmt: skip

# -- (weight, head_dim) -> weight, its rows in the order of the other layout -------------------------------------------


def some_weights() -> list[tuple]:
    """Two are square, so that columns can be taken for rows."""
    return [(drawn(18, 18).float(), 6), (drawn(20, 20).float(), 10), (drawn(32, 16).float(), 8)]


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


TO_HALF_SPLIT, TO_INTERLEAVED = (
    Exercise(
        asked_for_one(0, "the new weight"), partial(conversion_by_loop, back=back),
        some_weights, small_weights, show_weight, mistakes=conversion_mistakes(back), tell=order,
    )
    for back in (False, True)
)  # fmt: skip

# -- (q, k, cache or None) -> scores, cache; interleaved, base 10000 ---------------------------------------------------


def asked_for_cache(function: Callable, q: Tensor, k: Tensor, chunks: tuple[int, ...]) -> Result:
    """Scores and cache after each call; the last call is made twice."""
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


def word_by_word() -> list[tuple]:
    """One new word in each call."""
    q, k = drawn(2, 3, 7, 8).float()
    return [(q, k, (1, 1, 1, 1))]


def a_few_words() -> list[tuple]:
    """Several in a call."""
    q, k = drawn(2, 3, 7, 8).float()
    return [(q, k, (4, 1, 2)), (q, k, (3, 3))]


def several_words() -> list[tuple]:
    """The same, and once 300 in a call: no table of a few rows is enough for that."""
    return [*a_few_words(), (*drawn(2, 1, 301, 4).float(), (300, 1))]


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


OF_TABLES, OF_ROTATION = (
    [known._replace(says=f"{known.says} (Is task {task} right?)") for known in mistakes]
    for task, mistakes in ((1, TABLE_MISTAKES), (2, rotation_mistakes(INTERLEAVED)))
)
CACHE = Exercise(
    asked_for_cache, cache_by_loop, word_by_word, small_chunks, show_chunks, also=a_few_words,
    mistakes=(*CACHE_MISTAKES, *OF_ROTATION[:3]),  # the layout, the direction, the order
    alone=(*OF_ROTATION[3:], *OF_TABLES), names=("scores", "cache"),
)  # fmt: skip
CACHE_OF_SEVERAL = CACHE._replace(cases=several_words, also=list)

# -- (d_k, theta, max_seq_len, in_query_or_key, token_positions) -> turned: with the signature of a well-known course --


def near_run_ropes() -> list[tuple]:
    """The last one has two texts, each with positions of its own."""
    cases = [(8, 10000.0, 64, drawn(1, 5, 8).float(), torch.arange(5))]
    for shape, theta in (((2, 4, chance().choice((6, 10))), 500.0), ((3, 3, 8), 10000.0), ((3, 6), 5.0)):
        cases.append((shape[-1], theta, 64, drawn(*shape).float(), some_positions(shape[-2], 60)))
    rows = torch.stack((some_positions(3, 30), some_positions(3, 30) + 30))
    return [*cases, (8, 10000.0, 64, drawn(2, 3, 8).float(), rows)]


def far_run_ropes() -> list[tuple]:
    """As for tables, with numbers that are drawn."""
    return [(dim, base, 1_000_000, drawn(1, dim).float(), positions) for positions, dim, base in far_tables()]


def small_run_ropes() -> Iterator[tuple]:
    """The smallest first."""
    for dim, theta, m in product((2, 4, 6, 8), (10000.0, 100.0), (0, 1, 2, 3)):
        for x in torch.eye(dim):
            yield dim, theta, 64, x[None], torch.tensor([m])


def show_run_rope(dim: int, theta: float, longest: int, x: Tensor, positions: Tensor) -> str:
    """A case in words."""
    return f"d_k = {dim}, theta = {theta:g}, token_positions = {positions.tolist()}, x = {numbers(x)}"


RUN_ROPE = Exercise(
    asked_for_one(3, "the turned x"), run_rope_by_loop, near_run_ropes, small_run_ropes, show_run_rope,
    mistakes=(*rotation_mistakes(INTERLEAVED), *TABLE_MISTAKES),
)  # fmt: skip
RUN_ROPE_FAR = RUN_ROPE._replace(cases=far_run_ropes, small=list, mistakes=(), tolerance=1e-5)
