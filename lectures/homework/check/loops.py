"""What is asked for, as plain loops. Every keyword with a default is a mistake."""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from .runner import Result

INTERLEAVED, HALF_SPLIT = True, False


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


def knobs_of_tables(knobs: dict) -> dict:
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
    first = knobs_of_tables(knobs)
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
