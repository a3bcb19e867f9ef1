"""The additive codes: the sinusoidal one of the first transformer, the rotation hidden in it, and the learned one."""

import torch
from torch import Tensor

from rope_lib._checks import check_dim, check_positions
from rope_lib.frequencies import cos_sin, inverse_frequencies
from rope_lib.rotary import rotation_matrix


def sinusoidal_encoding(
    positions: Tensor, dim: int, *, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """PE_m = (sin m theta_0, cos m theta_0, sin m theta_1, cos m theta_1, ...).

    Args:
        positions: (...,) positions m in tokens; integers, or float32/float64.
        dim: d, positive and even.
        base: sets the slowest pair.
        dtype: of the result; the angles are float64 in any case.

    Returns:
        (..., dim) on the device of `positions`.

    Raises:
        TypeError, ValueError: as `inverse_frequencies` and `cos_sin`.

    Source: Vaswani et al. 2017, section 3.5.
    """
    check_dim(dim, "dim")
    check_positions(positions)
    cos, sin = cos_sin(positions, inverse_frequencies(dim, base=base, device=positions.device), dtype=dtype)
    return torch.stack((sin, cos), dim=-1).flatten(-2)


def shift_matrix(delta: float, dim: int, *, base: float = 10000.0, device: torch.device | str | None = None) -> Tensor:
    """M_Delta with PE_{m+Delta} = M_Delta PE_m for every m: diag(R(-Delta theta_0), R(-Delta theta_1), ...).

    The sign is negative because each pair is stored as (sin, cos), the mirror image of (cos, sin).

    Args:
        delta: the shift, in tokens.
        dim: d, positive and even.
        base: as in `sinusoidal_encoding`.
        device: where the result lives.

    Returns:
        (dim, dim) float64.

    Raises:
        TypeError, ValueError: as `inverse_frequencies`.
    """
    check_dim(dim, "dim")
    return rotation_matrix(-delta, inverse_frequencies(dim, base=base, device=device))


def learned_encoding(positions: Tensor, table: Tensor) -> Tensor:
    """Row m of a trained table for each position m; beyond the table there is nothing.

    Args:
        positions: (...,) integers, from 0 to len(table) - 1.
        table: (max_positions, dim).

    Returns:
        (..., dim).

    Raises:
        ValueError: a position is not in the table (a negative one would otherwise be counted from its end).
        TypeError: positions are not integers.

    Source: Gehring et al. 2017, section 3.1; Vaswani et al. 2017, section 3.5.
    """
    check_positions(positions)
    if positions.is_floating_point():
        raise TypeError(f"positions has dtype {positions.dtype}; the rows of a table are counted by integers")
    if positions.numel() and not 0 <= positions.min() <= positions.max() < len(table):
        raise ValueError(
            f"positions reach from {positions.min()} to {positions.max()}, but table has {len(table)} rows, 0 to "
            f"{len(table) - 1}; a learned code knows no other positions (is the text longer than in training?)"
        )
    return table[positions.long()]
