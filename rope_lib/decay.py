"""How the score changes with the distance: partial sums, RoFormer's upper bound, and the sum of cosines."""

import torch
from torch import Tensor

from rope_lib._checks import check_base, check_positions
from rope_lib.frequencies import cos_sin, inverse_frequencies


def partial_sums(distances: Tensor, *, dim: int, base: float = 10000.0) -> Tensor:
    """S_j(Delta) = sum over i < j of exp(i Delta theta_i), for j = 1 .. dim/2.

    Args:
        distances: (...,) Delta in tokens.
        dim: d, positive and even.
        base: sets the slowest pair.

    Returns:
        (..., dim // 2) complex128; the last one is S_N. For many distances prefer `relative_upper_bound`.

    Raises:
        TypeError, ValueError: as `inverse_frequencies` and `cos_sin`.

    Source: Su et al. 2021, equation 36.
    """
    cos, sin = cos_sin(distances, inverse_frequencies(dim, base=base, device=distances.device), dtype=torch.float64)
    return torch.complex(cos, sin).cumsum(-1)


def relative_upper_bound(distances: Tensor, *, dim: int, base: float = 10000.0) -> Tensor:
    """B_d(Delta), the mean of |S_j(Delta)| over j = 1 .. dim/2: the curve of RoFormer's figure 2.

    The score is at most max |h_{i+1} - h_i| times dim/2 times this (Su et al. 2021, equation 37).

    Args, Raises: as `partial_sums`.

    Returns:
        (...,) float64. Memory: a few tensors of this size, however large dim is.
    """
    check_positions(distances)
    real = imaginary = total = torch.zeros((), dtype=torch.float64, device=distances.device)
    for frequency in inverse_frequencies(dim, base=base, device=distances.device).split(1):
        cos, sin = (table[..., 0] for table in cos_sin(distances, frequency, dtype=torch.float64))
        real, imaginary = real + cos, imaginary + sin
        total = total + torch.hypot(real, imaginary)
    return total / (dim // 2)


def cosine_sum(distances: Tensor, *, dim: int, base: float = 10000.0) -> Tensor:
    """C_d(Delta) = sum over i of cos(Delta theta_i): half the expected score of equal standard normal q and k.

    Args, Raises: as `partial_sums`.

    Returns:
        (...,) float64. Memory: a few tensors of this size, however large dim is.
    """
    check_positions(distances)
    total = torch.zeros(distances.shape, dtype=torch.float64, device=distances.device)
    for frequency in inverse_frequencies(dim, base=base, device=distances.device).split(1):
        total += cos_sin(distances, frequency, dtype=torch.float64)[0][..., 0]
    return total


def cosine_sum_limit(distances: Tensor, *, base: float = 10000.0) -> Tensor:
    """Limit of C_d(Delta) / (d/2) for large d: [Ci(Delta) - Ci(Delta / base)] / ln base; Ci: the cosine integral.

    Args:
        distances: (...,) Delta in tokens; the limit is even in Delta, and 1 at 0.
        base: above 1.

    Returns:
        (...,) float64 on the CPU. One distance at a time (mpmath): meant for plots, not for a million of them.

    Raises:
        TypeError, ValueError: as `cos_sin` and `inverse_frequencies`.
        ModuleNotFoundError: mpmath is missing; it comes with sympy.
    """
    from mpmath import ci, log  # only here: whoever does not ask for the limit does not need it

    check_positions(distances)
    check_base(base)
    flat = [abs(delta) for delta in distances.flatten().tolist()]
    values = [float((ci(delta) - ci(delta / base)) / log(base)) if delta else 1.0 for delta in flat]
    return torch.tensor(values, dtype=torch.float64, device="cpu").reshape(distances.shape)
