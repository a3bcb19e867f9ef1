"""The additive code of the first transformer."""

import torch
from torch import Tensor

from rope_lib._checks import check_dim, check_positions
from rope_lib.frequencies import cos_sin, inverse_frequencies


def sinusoidal_encoding(
    positions: Tensor, dim: int, *, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """PE_m = (sin m theta_0, cos m theta_0, sin m theta_1, cos m theta_1, ...), with the errors of `cos_sin`.

    Args:
        positions: (...,) positions m in tokens; integers, or float32/float64.
        dim: d, positive and even.
        base: sets the slowest pair.
        dtype: float32 or float64; round the code afterwards.

    Returns:
        (..., dim) on the device of `positions`.

    Source: Vaswani et al. 2017, section 3.5.

    Example:
        >>> sinusoidal_encoding(torch.tensor([0, 1]), 4)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    dim = check_dim(dim, "dim")
    check_positions(positions)
    cos, sin = cos_sin(positions, inverse_frequencies(dim, base=base, device=positions.device), dtype=dtype)
    return torch.stack((sin, cos), dim=-1).flatten(-2)
