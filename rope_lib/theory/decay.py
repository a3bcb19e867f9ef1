"""How the score changes with the distance: RoFormer's upper bound, and the sum of cosines.

Everywhere `distances` is (...,) in tokens, dim is d, and base sets the slowest pair; results are float64.

Errors: those of `inverse_frequencies`; TypeError where distances are no dense tensor, half precision or boolean.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rope_lib._checks import check_dim, check_number, check_positions, check_tensor
from rope_lib.frequencies import cos_sin, inverse_frequencies


def mean_partial_sum(distances: Tensor, *, dim: int, base: float = 10000.0) -> Tensor:
    """B_d(Delta), the mean of |S_j(Delta)| over j = 1 .. dim/2: the curve of RoFormer's figure 2.

    S_j(Delta) is the sum over i < j of exp(i Delta theta_i). Memory: a few tensors like distances, for any dim.

    Source: Su et al. 2021, equations 36 and 37.

    Example:
        >>> mean_partial_sum(torch.tensor([0, 100]), dim=4)  # at 0: 1 and 2
        tensor([1.5000, 1.2210], dtype=torch.float64)
    """
    real = imaginary = total = 0
    for cos, sin in _pairs(distances, dim, base):
        real, imaginary = real + cos, imaginary + sin
        total = total + torch.hypot(real, imaginary)
    return total / (dim // 2)


def abel_bound(h: Tensor, distances: Tensor, *, base: float = 10000.0) -> Tensor:
    """The largest |h_{i+1} - h_i|, with h_N = 0, times N B_d(Delta): no score |sum h_i exp(i Delta theta_i)| is larger.

    Args:
        h: (N,), or (..., N) with axes that broadcast to those of distances, real or complex: h_i is q_i times the
            conjugate of k_i, pair i as complex numbers.

    Raises:
        ValueError: h is one number, or empty, or its axes in front do not fit.

    Source: Su et al. 2021, equation 37.

    Example:
        >>> abel_bound(torch.ones(2), torch.tensor([0]))  # a step of 1 times N B
        tensor([3.], dtype=torch.float64)
    """
    check_tensor(h, "h", "torch.ones(64), one number for each pair")
    check_positions(distances, "distances")
    fit = all(n == m or 1 in (n, m) for n, m in zip(h.shape[-2::-1], distances.shape[::-1], strict=False))
    if not h.ndim or not h.shape[-1] or not fit:
        shapes = f"h has shape {tuple(h.shape)}, distances {tuple(distances.shape)}"
        raise ValueError(f"{shapes}; h must be (..., N), one number for each pair, with axes in front that broadcast")
    h = h.to(torch.complex128 if h.is_complex() else torch.float64)
    steps = torch.cat((h, torch.zeros_like(h[..., :1])), dim=-1).diff().abs()
    return steps.amax(-1) * h.shape[-1] * mean_partial_sum(distances, dim=2 * h.shape[-1], base=base)


def cosine_sum(distances: Tensor, *, dim: int, base: float = 10000.0) -> Tensor:
    """C_d(Delta) = sum over i of cos(Delta theta_i): half the expected score of equal standard normal q and k.

    Example:
        >>> cosine_sum(torch.tensor([0, 100]), dim=4)
        tensor([2.0000, 1.4026], dtype=torch.float64)
    """
    return sum(cos for cos, _ in _pairs(distances, dim, base))


def _pairs(distances: Tensor, dim: int, base: float) -> Iterator[tuple[Tensor, Tensor]]:
    """The cosines and sines of one pair after the other, so that no table of all pairs is in memory."""
    check_positions(distances, "distances")
    dim = check_dim(dim, "dim")
    for speed in inverse_frequencies(dim, base=base, device=distances.device).split(1):
        cos, sin = cos_sin(distances, speed, dtype=torch.float64)
        yield cos[..., 0], sin[..., 0]


def cosine_sum_limit(distances: Tensor, *, base: float = 10000.0) -> Tensor:
    """Limit of C_d(Delta) / (d/2) for large d: [Ci(Delta) - Ci(Delta / base)] / ln base; Ci: the cosine integral.

    The limit is even in Delta, and 1 at 0. On the CPU, and made for plots, as mpmath takes one distance at a time.

    Example:
        >>> cosine_sum_limit(torch.tensor([0, 100]))
        tensor([1.0000, 0.4368], dtype=torch.float64)
    """
    from mpmath import ci, log  # only here: it takes a while

    check_positions(distances, "distances")
    check_number(base, "base", above=1)
    flat = [abs(delta) for delta in distances.flatten().tolist()]
    values = [float((ci(delta) - ci(delta / base)) / log(base)) if delta else 1.0 for delta in flat]
    return torch.tensor(values, dtype=torch.float64, device="cpu").reshape(distances.shape)
