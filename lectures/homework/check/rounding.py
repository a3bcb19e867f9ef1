"""Tells tables in a coarse format from tables of a wrong formula: relative errors of the angles give it away."""

from collections.abc import Callable

import torch
from torch import Tensor

from .exercises import TABLES
from .loops import angles_by_loop, tables_by_loop
from .mistakes import TABLE_MISTAKES
from .pages import BITS
from .runner import LATER, UNKNOWN, Result, both

FORMULA_RIGHT = "The formula is right. "
FORMATS = (  # relative errors of an angle (one rounding to three), the last whole number, where an error is shown
    ("bfloat16", 2**-9.2, 3.1 * 2**-8, 256, 257),
    ("float16", 2**-12.5, 2**-9.2, 2048, 4097),
    ("float32", 2**-26, 2**-19, None, 999_999),
)
FINE = 4097  # up to this position even float32 makes fine angles
FAR = torch.tensor([1, 2, 3, 100, 255, 256, 257, 511, 1001, 2047, 4097, 50_021, 700_001, 999_999])
OUTPUT = 1.5e-7  # rad: what tables in float32 may be off by, from right angles


def rounded_or(
    wrong: str | None, wrong_far: str | None, tables: Callable, cases: list[tuple],
    turned_so: Callable[[], bool] = lambda: True,
) -> tuple[str | None, str | None]:  # fmt: skip
    """Complaints about small and about large positions, or one about rounding.

    A coarse format is wrong at small positions, too: that is excused if rounding explains *all* of it, which
    `turned_so` says of a rotation. `cases` are those of the small positions.
    """
    if wrong is None and wrong_far is None:
        return None, None
    cases = [(FAR, 96, 10000.0), *cases]  # a 96th, too, is rounded
    found, _ = TABLES.results(tables, cases)
    rough = rounding(found, cases)
    if rough and (wrong is None or turned_so()):
        return None, FORMULA_RIGHT + rough
    if wrong and wrong.startswith(UNKNOWN) and turned_so():
        for known in TABLE_MISTAKES:
            if rough := rounding(found, cases, **known.knobs):
                return both(f"{known.says} See {known.page}.", rough), LATER
    return wrong, LATER if wrong else wrong_far


def rounding(found: list[Result], cases: list[tuple], **knobs) -> str | None:
    """A sentence if the angles are those of a coarse format: their relative errors give it away, and nothing else.

    The first of the cases is at the positions FAR. With knobs: the angles of a known mistake, and coarse besides.
    """
    if None in found:
        return None
    of_angles = {name: value for name, value in knobs.items() if name != "swapped"}
    sizes = [angles_by_loop(*case, **of_angles).abs() for case in cases]
    errors = []
    for (cos, sin), case in zip(found, cases, strict=True):
        right_cos, right_sin = tables_by_loop(*case, **knobs)
        if ((cos**2 + sin**2 - 1).abs() > 0.02).any():
            return None
        errors.append(torch.atan2(sin * right_cos - cos * right_sin, cos * right_cos + sin * right_sin))
    for name, *_ in FORMATS[:2]:
        if all(map(torch.equal, *zip(*((t, in_format(t, name)) for tables in found for t in tables), strict=True))):
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
    last = seen.sum(dim=0) - 1  # of each pair the place of its largest position in FAR
    slopes = errors.gather(0, last[None]) / FAR[last]
    rest = (errors - FAR[:, None] * slopes)[seen]
    return bool(rest.abs().max() < 0.02 * errors[seen].abs().max())
