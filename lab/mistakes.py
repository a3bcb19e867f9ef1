"""Rotations with one mistake each, and the checks that people make: which check sees which mistake?"""

from collections.abc import Callable

import torch
from torch import Tensor

from lab import table
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.theory import reference

DIM = 16
SPEEDS = inverse_frequencies(DIM, device="cpu")
Rotation = Callable[[Tensor, Tensor], Tensor]  # (seq_len, DIM) and the positions (seq_len,), to (seq_len, DIM)


def turn(x: Tensor, positions: Tensor, *, speeds: Tensor = SPEEDS, interleaved: bool = True) -> Tensor:
    """The right rotation, unless it is asked for something else."""
    return apply_rotary_emb(x, *cos_sin(positions, speeds, dtype=torch.float64), interleaved=interleaved)


def assemble(x: Tensor, positions: Tensor, mistake: str) -> Tensor:
    """The rotation written out, with a mistake in putting it together."""
    cos, sin = cos_sin(positions, SPEEDS, dtype=torch.float64)
    even, odd = x[..., 0::2], x[..., 1::2]
    if mistake == "sign":
        return torch.stack((even * cos + odd * sin, even * sin + odd * cos), -1).flatten(-2)
    if mistake == "order":
        return torch.cat((even * cos - odd * sin, even * sin + odd * cos), -1)
    swapped = torch.stack((-odd, even), -1).flatten(-2)
    return x * torch.cat((cos, cos), -1) + swapped * torch.cat((sin, sin), -1)


def rounded(x: Tensor, positions: Tensor) -> Tensor:
    """Angles computed in float32."""
    angles = positions.float()[:, None] * SPEEDS.float()
    return apply_rotary_emb(x, angles.cos().double(), angles.sin().double(), interleaved=True)


def with_gradient(x: Tensor, positions: Tensor, of: Rotation) -> Tensor:
    """The right rotation, with the gradient that another one would have."""
    other = of(x, positions)
    return turn(x, positions).detach() + other - other.detach()


# First those that keep lengths, position 0 and the dependence on the distance alone, then those that lose position 0,
# then those that are no rotation of the pairs, at last those that go wrong on the way back only.
MISTAKES: dict[str, Rotation] = {
    "(none)": turn,
    "the other layout": lambda x, m: turn(x, m, interleaved=False),
    "turned backwards": lambda x, m: turn(x, -m),
    "another base": lambda x, m: turn(x, m, speeds=inverse_frequencies(DIM, base=5e5, device="cpu")),
    "pairs counted from 1": lambda x, m: turn(x, m, speeds=SPEEDS * SPEEDS[1]),
    "position forgotten": lambda x, m: turn(x, 0 * m),
    "angles in float32": rounded,
    "positions counted from 1": lambda x, m: turn(x, m + 1),
    "cat in the place of stack": lambda x, m: assemble(x, m, "order"),
    "tables of the other layout": lambda x, m: assemble(x, m, "tables"),
    "a sign wrong": lambda x, m: assemble(x, m, "sign"),
    "gradient cut off": lambda x, m: turn(x.detach(), m),
    "gradient turned onwards": lambda x, m: with_gradient(x, m, lambda x, m: turn(x, -m)),
}
NOTES = {  # where the name does not say all
    "another base": "500,000",
    "tables of the other layout": "cosines c0 c1 … c0 c1 …, where c0 c0 c1 c1 … is needed",
    "a sign wrong": "a plus in both lines of the rotation",
    "gradient cut off": "a kernel without a backward pass",
    "gradient turned onwards": "the forward pass in the place of the backward one",
}
HEADS = {  # of the columns of the table
    "length": "length kept",
    "position 0": "position 0 still",
    "distance": "distance alone",
    "by hand": "case by hand",
    "loop": "loop, near",
    "far": "loop, far",
    "gradient": "gradient",
    "scores": "scores wrong",
}


def seen_by(rotate: Rotation) -> dict[str, bool]:
    """For each check whether it sees something wrong, to a tolerance of 10^-4; the last says whether scores are wrong.

    "length": the rotation keeps it. "position 0": nothing moves there. "distance": q at 3 and k at 1 score like q at 13
    and k at 11. "by hand": at position 1 the first basis vector goes to (cos 1, sin 1, 0, ...), read off a pocket
    calculator. "loop": the definition, written as a loop, gives the same at positions 1, 3, 11 and 13; "far": at a
    million. "gradient": it says what one more in each number of x changes.
    """
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, DIM, generator=generator, dtype=torch.float64)

    def at(x: Tensor, *positions: int) -> Tensor:
        return rotate(x.expand(len(positions), DIM), torch.tensor(positions))

    def loop(x: Tensor, *positions: int) -> Tensor:
        rows = [reference.rotate(x.tolist(), m, interleaved=True) for m in positions]
        return torch.tensor(rows, dtype=torch.float64)

    def differ(left: Tensor, right: Tensor) -> bool:
        return not torch.allclose(left, right, rtol=0, atol=1e-4)

    scores = (at(q, 3, 13) * at(k, 1, 11)).sum(-1)
    basis = torch.eye(DIM, dtype=torch.float64)
    by_hand = torch.tensor([[0.5403, 0.8415] + 14 * [0.0]], dtype=torch.float64)
    near = (1, 3, 11, 13)
    arriving = torch.randn(len(near), DIM, generator=generator, dtype=torch.float64)
    changes = torch.stack([((at(q + one, *near) - at(q, *near)) * arriving).sum() for one in basis])
    return {
        "length": differ(at(q, *near).norm(dim=-1), q.norm()),
        "position 0": differ(at(q, 0), q),
        "distance": differ(scores[0], scores[1]),
        "by hand": differ(at(basis[0], 1), by_hand),
        "loop": differ(at(q, *near), loop(q, *near)),
        "far": differ(at(q, 10**6), loop(q, 10**6)),
        "gradient": differ(gradient(lambda x: at(x, *near), q, arriving), changes),
        "scores": differ(scores, (loop(q, 3, 13) * loop(k, 1, 11)).sum(-1)),
    }


def gradient(f: Callable[[Tensor], Tensor], x: Tensor, arriving: Tensor) -> Tensor:
    """What a program's own backward pass makes of the gradient that arrives; zeros where nothing is sent back."""
    x = x.clone().requires_grad_()
    y = f(x)
    return torch.autograd.grad(y, x, arriving)[0] if y.requires_grad else torch.zeros_like(x)


class Table:
    """All mistakes against all checks: a table on a page, columns of text elsewhere."""

    def __init__(self) -> None:
        self.rows = {mistake: seen_by(rotate) for mistake, rotate in MISTAKES.items()}

    def _repr_html_(self) -> str:
        rows = []
        for mistake, found in self.rows.items():
            note = f" <small>({NOTES[mistake]})</small>" if mistake in NOTES else ""
            rows.append((mistake + note, *("x" if found[check] else "" for check in HEADS)))
        return table.Table(("mistake (x: seen)", *HEADS.values()), rows)._repr_html_()

    def __repr__(self) -> str:
        lines = [f"{'x: seen':26} " + " | ".join(HEADS.values())]
        for mistake, found in self.rows.items():
            marks = (f"{'x' if found[check] else '.':^{len(head)}}" for check, head in HEADS.items())
            lines.append(f"{mistake:26} " + "   ".join(marks).rstrip())
        return "\n".join(lines)
