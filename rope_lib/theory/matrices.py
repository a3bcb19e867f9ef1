"""The dense matrices, for people and for tests: `apply_rotary_emb` gives R_m x without building R_m.

Errors: those of `inverse_frequencies` and `cos_sin`; ValueError where a position is not one number.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rope_lib._checks import check_dim, check_inv_freq, check_number, check_positions
from rope_lib.frequencies import cos_sin, inverse_frequencies


def rotation_matrix(position: float, inv_freq: Tensor) -> Tensor:
    """The block-diagonal R_m = diag(R(m theta_0), R(m theta_1), ...) in the interleaved layout.

    Args:
        position: m, in tokens; one number.
        inv_freq: (head_dim // 2,) float64, in rad per token.

    Returns:
        (head_dim, head_dim) float64 on inv_freq's device; R_m @ x rotates the column vector x counter-clockwise.

    Source: Su et al. 2021, equation 15.

    Example:
        >>> quarter = torch.tensor([torch.pi / 2], dtype=torch.float64)
        >>> rotation_matrix(1, quarter).round()
        tensor([[ 0., -1.],
                [ 1.,  0.]], dtype=torch.float64)
    """
    check_inv_freq(inv_freq)
    cos, sin = cos_sin(_one_number(position, "position").to(inv_freq.device), inv_freq, dtype=torch.float64)
    return torch.block_diag(*(torch.stack((c, -s, s, c)).view(2, 2) for c, s in zip(cos, sin, strict=True)))


def shift_matrix(delta: float, dim: int, *, base: float = 10000.0, device: torch.device | str | None = None) -> Tensor:
    """M_Delta with PE_{m+Delta} = M_Delta PE_m for every m: diag(R(-Delta theta_0), R(-Delta theta_1), ...).

    The sign is negative because each pair of a sinusoidal code is stored as (sin, cos), the mirror image of (cos, sin).

    delta: the shift, in tokens; dim, base: as in `sinusoidal_encoding`; the result, on `device`, is (dim, dim) float64.

    Example:
        >>> shift_matrix(torch.pi / 2, 2).round()
        tensor([[ 0.,  1.],
                [-1.,  0.]], dtype=torch.float64)
    """
    dim = check_dim(dim, "dim")
    return rotation_matrix(-_one_number(delta, "delta"), inverse_frequencies(dim, base=base, device=device))


def _one_number(x: float | Tensor, name: str) -> Tensor:
    x = x if isinstance(x, Tensor) else torch.tensor(check_number(x, name), dtype=torch.float64, device="cpu")
    check_positions(x, name)
    if x.ndim:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be one number (stack the matrices yourself)")
    return x.double()  # an unsigned one has no negative
