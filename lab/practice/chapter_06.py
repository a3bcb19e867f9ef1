"""Chapter 6: turn a part of each head."""

import torch
from torch import Tensor

from lab.practice import Exercise
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies

SIGNS = 'See chapter 5, "Which sign goes where?".'
SPEEDS = 'See chapter 5, "Even dimensions: blocks".'
LAYOUTS = 'See chapter 6, "Two layouts, one rotation".'
POSITIONS = 'See chapter 6, "Positions in practice".'
BITS = 'See chapter 6, "How many bits does an angle need?".'


def turned(x: Tensor, positions: Tensor, rotary_dim: int, *, of: int | None = None, interleaved=False) -> Tensor:
    """Half-split; the speeds are the fastest ones of a head with `of` dimensions, rotary_dim if none are given."""
    speeds = inverse_frequencies(of or rotary_dim)[: rotary_dim // 2]
    return apply_rotary_emb(x, *cos_sin(positions, speeds, dtype=torch.float64), interleaved=interleaved)


def with_far_partners(x: Tensor, positions: Tensor, rotary_dim: int) -> Tensor:
    """Pair i is i and i + d/2."""
    first, second = (torch.arange(rotary_dim // 2) + start for start in (0, x.shape[-1] // 2))
    pairs, result = torch.cat((first, second)), x.clone()
    result[..., pairs] = turned(x[..., pairs], positions, rotary_dim)
    return result


def one_after_the_other(x: Tensor, positions: Tensor, rotary_dim: int) -> Tensor:
    """The second number of each pair from the first one, turned."""
    half, result = rotary_dim // 2, turned(x, positions, rotary_dim)
    cos, sin = cos_sin(positions, inverse_frequencies(rotary_dim), dtype=torch.float64)
    result[..., half:rotary_dim] = (result[..., :half] * sin + x[..., half:rotary_dim] * cos).to(x.dtype)
    return result


def mixed_layouts(x: Tensor, positions: Tensor, rotary_dim: int) -> Tensor:
    """Halves for pairs, with tables that were made for neighbours: each cosine twice in a row."""
    tables = cos_sin(positions, inverse_frequencies(rotary_dim), dtype=torch.float64)
    cos, sin = (table.repeat_interleave(2, dim=-1) for table in tables)
    first, second = x[..., :rotary_dim].chunk(2, dim=-1)
    y = (x[..., :rotary_dim] * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)
    return torch.cat((y, x[..., rotary_dim:]), dim=-1)


def of_the_end(x: Tensor, positions: Tensor, rotary_dim: int) -> Tensor:
    """The last dimensions are turned."""
    start = x.shape[-1] - rotary_dim
    return torch.cat((x[..., :start], turned(x[..., start:], positions, rotary_dim)), dim=-1)


def with_zeros(x: Tensor, positions: Tensor, rotary_dim: int) -> Tensor:
    """Nothing is left of the other dimensions."""
    y = turned(x, positions, rotary_dim)
    return torch.cat((y[..., :rotary_dim], 0 * y[..., rotary_dim:]), dim=-1)


exercise = Exercise(
    asked="turn_part(x, positions, rotary_dim)",
    right=turned,
    cases=[
        (torch.tensor([[1.0, 2.0]]), torch.tensor([1]), 2),
        (torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([1]), 2),
        (torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]), torch.tensor([2]), 4),
        (torch.arange(48.0).sin().view(2, 3, 8), torch.tensor([5, 0, 3]), 4),
        (torch.arange(24.0).cos().view(2, 12), torch.tensor([7, 40]), 8),
        (torch.arange(32.0).cos().view(1, 2, 2, 8), torch.tensor([4097, 257]), 4),
    ],
    mistakes={
        f"Positions came through bfloat16, which knows no 257 and no 4097. {BITS}":
            lambda x, positions, r: turned(x, positions.bfloat16().double(), r),
        f"Rotated backwards: every sine has the wrong sign. Turn (1, 0) by a quarter turn, by hand. {SIGNS}":
            lambda x, positions, r: turned(x, -positions, r),
        f"Right for the first pair, too fast for the others: these are the speeds of the other convention. {POSITIONS}":
            lambda x, positions, r: turned(x, positions, r, of=x.shape[-1]),
        "Right for the first pair, too fast for the others: their speeds fall half as fast as they should. What does"
        f" your exponent count? {SPEEDS}":
            lambda x, positions, r: turned(x, positions, r, of=2 * r),
        "Partners are too far apart: some of them stand behind the part that turns. Which vector has to be cut in the"
        f" middle? {POSITIONS}":
            with_far_partners,
        f"Neighbours are turned as pairs. That is the other layout. {LAYOUTS}":
            lambda x, positions, r: turned(x, positions, r, interleaved=True),
        "The pairs are of one layout, the tables of the other: repeat_interleave is for neighbours, and halves need"
        f" cat((cos, cos)). The numbers of a pair are turned by different angles, which is no rotation. {LAYOUTS}":
            mixed_layouts,
        "The second number of each pair is made from the first one after that was turned. It needs the old value. (A"
        " slice is a view: writing into x changes it, too.)":
            one_after_the_other,
        f"The whole head is turned: rotary_dim has no effect. {POSITIONS}":
            lambda x, positions, r: turned(x, positions, x.shape[-1]),
        "A part of the right size is turned, at the wrong end of the head.":
            of_the_end,
        "Only the part that is turned comes back. What becomes of the other dimensions?":
            lambda x, positions, r: turned(x, positions, r)[..., :r],
        "All numbers are right, and the two parts have changed places.":
            lambda x, positions, r: turned(x, positions, r).roll(-r, dims=-1),
        "Behind the part that is turned there are zeros. Which angle leaves a pair as it is, and what is its cosine?":
            with_zeros,
        "You count 0, 1, 2, ... yourself and do not look at the positions that are given. Behind a cache they begin"
        f" elsewhere. {POSITIONS}":
            lambda x, positions, r: turned(x, torch.arange(x.shape[-2]), r),
        "Every word is turned as if it stood one place further on: positions counted from 1.":
            lambda x, positions, r: turned(x, positions + 1, r),
    },
)  # fmt: skip
