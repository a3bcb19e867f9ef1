"""The errors that several modules share: what arrived, what is needed, the likely cause."""

import math

import torch
from torch import Tensor

FULL, HALF = (torch.float32, torch.float64), (torch.float16, torch.bfloat16)


def check_dim(dim: int, name: str) -> None:
    """Require a positive even integer: the dimensions are rotated in pairs."""
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"{name} is {dim!r}; it must be an int")
    if dim <= 0 or dim % 2:
        raise ValueError(f"{name} is {dim}; it must be positive and even, because dimensions are rotated in pairs")


def check_base(base: float) -> None:
    """Require a finite base above 1, so that the frequencies fall from 1."""
    if not 1 < base < math.inf:
        raise ValueError(f"base is {base}; it must be a finite number above 1 (10000 in the papers)")


def check_positions(positions: Tensor) -> None:
    """Require a real tensor that holds positions exactly; negative and fractional ones are fine."""
    if not isinstance(positions, Tensor):
        raise TypeError(f"positions is a {type(positions).__name__}; it must be a tensor, e.g. torch.arange(seq_len)")
    if positions.dtype in HALF:
        raise TypeError(
            f"positions has dtype {positions.dtype}, which cannot tell position 2048 from 2049; "
            "use integers or float64 (did .to(bfloat16) or autocast reach the positions?)"
        )
    if positions.dtype == torch.bool or positions.is_complex():
        raise TypeError(f"positions has dtype {positions.dtype}; use integers (is it a mask?)")
