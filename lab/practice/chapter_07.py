"""Chapter 7: the curve of RoFormer's second figure."""

import torch
from torch import Tensor

from lab.practice import Exercise
from rope_lib import inverse_frequencies
from rope_lib.theory.decay import mean_partial_sum

SPEEDS = 'See chapter 5, "Even dimensions: blocks".'
CURVE = 'See chapter 7, "The famous curve is that of a bound".'
RAMP = 'See chapter 7, "What does the bound say about a score?".'


def arrows(distances: Tensor, dim: int, *, of: int | None = None) -> Tensor:
    """(distances, pairs): exp(i Delta theta_i), with the fastest speeds of a head with `of` dimensions."""
    angles = distances[:, None] * inverse_frequencies(of or dim)[: dim // 2]
    return torch.polar(torch.ones_like(angles), angles)


def sums(distances: Tensor, dim: int) -> Tensor:
    """(distances, pairs): S_1 to S_N."""
    return arrows(distances, dim).cumsum(-1)


exercise = Exercise(
    asked="bound_curve(distances, dim)",
    right=lambda distances, dim: mean_partial_sum(distances, dim=dim),
    cases=[
        (torch.tensor([1]), 2),
        (torch.tensor([0, 1]), 4),
        (torch.tensor([0, 1, 7]), 6),
        (torch.tensor([8, 0, 16, 101, 257]), 64),
    ],
    mistakes={
        f"One length, that of the last sum. The curve has N of them in it. {CURVE}":
            lambda distances, dim: sums(distances, dim)[:, -1].abs() / (dim // 2),
        "The length is taken too late: the sums themselves are averaged, and cancel one another. That is the score of a"
        f" ramp. {RAMP}":
            lambda distances, dim: sums(distances, dim).mean(-1).abs(),
        f"The lengths are taken too early: an arrow alone has length 1 at any distance, and nothing cancels. {CURVE}":
            lambda distances, dim: arrows(distances, dim).abs().cumsum(-1).mean(-1),
        f"Complex numbers come back. Wanted is a mean of lengths. {CURVE}":
            lambda distances, dim: sums(distances, dim).mean(-1),
        "These are squares of lengths, averaged. At distance 0 the sum S_j has the length j.":
            lambda distances, dim: sums(distances, dim).abs().square().mean(-1),
        f"Only cosines are added. An arrow has a second coordinate. {CURVE}":
            lambda distances, dim: sums(distances, dim).real.abs().mean(-1),
        "Too large by the factor N: at distance 0 it should be (N + 1) / 2.":
            lambda distances, dim: sums(distances, dim).abs().sum(-1),
        "Half of what it should be. How many pairs has a head of dim dimensions?":
            lambda distances, dim: sums(distances, dim).abs().sum(-1) / dim,
        f"You begin with the empty sum S_0, and the last sum is missing. {CURVE}":
            lambda distances, dim: sums(distances, dim)[:, :-1].abs().sum(-1) / (dim // 2),
        f"Too small, most of all for few pairs: is the empty sum S_0 counted, too? {CURVE}":
            lambda distances, dim: sums(distances, dim).abs().sum(-1) / (dim // 2 + 1),
        "Right at distance 0. Beyond it: which pairs does your first sum begin with? See exercise 7.2.":
            lambda distances, dim: arrows(distances, dim).flip(-1).cumsum(-1).abs().mean(-1),
        "Right at distance 0. Beyond it all pairs but the first are too fast: their speeds fall half as fast as they"
        f" should. What does your exponent count? {SPEEDS}":
            lambda distances, dim: arrows(distances, dim, of=2 * dim).cumsum(-1).abs().mean(-1),
        "Your sums run along the distances. Along which axis are the pairs?":
            lambda distances, dim: arrows(distances, dim).cumsum(0).abs().mean(-1),
        "One number for each pair comes back, a mean over the distances. Wanted is one for each distance.":
            lambda distances, dim: sums(distances, dim).abs().mean(0),
    },
)  # fmt: skip
