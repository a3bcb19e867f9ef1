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


def check_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Raise for everything that would rotate silently by the wrong angle."""
    shape, table = x.shape, cos.shape
    if len(shape) > 1 and len(table) == 2 and sin.shape == table and shape[-2:] == (table[0], 2 * table[1]):
        full = x.is_floating_point() and cos.dtype in FULL and sin.dtype is cos.dtype
        if full and x.device == cos.device == sin.device:
            return  # all in order, seen at a glance; what follows finds the words for what is not
    if not x.is_floating_point():
        raise TypeError(f"x has dtype {x.dtype}; it must be a real floating-point tensor")
    if cos.dtype in HALF or sin.dtype in HALF or not (cos.is_floating_point() and sin.is_floating_point()):
        raise TypeError(
            f"cos and sin have dtypes {cos.dtype} and {sin.dtype}; they must be float32 or float64 "
            "(did .to(bfloat16) or autocast reach the tables?)"
        )
    if cos.shape != sin.shape or cos.dtype != sin.dtype:
        tables = " and ".join(f"{tuple(table.shape)}, {table.dtype}" for table in (cos, sin))
        raise ValueError(f"cos and sin have shapes and dtypes {tables}; they must be equal")
    if not cos.device == sin.device == x.device:
        raise ValueError(
            f"x is on {x.device}, cos on {cos.device}, sin on {sin.device}; they must share a device "
            "(make the tables from positions on x's device)"
        )
    if x.ndim < 2 or cos.ndim < 2:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, cos {tuple(cos.shape)}; x must be (..., seq_len, head_dim) and "
            "cos (..., seq_len, rotary_dim // 2): for a single token, add the axis with x[None]"
        )
    if cos.ndim not in (2, x.ndim):
        raise ValueError(
            f"x has {x.ndim} axes and cos {cos.ndim}; cos needs 2 or {x.ndim}, or else batch could be taken for heads: "
            "did you forget cos.unsqueeze(-3), or positions[:, None]?"
        )
    if x.shape[-2] != cos.shape[-2]:
        raise ValueError(
            f"seq_len of x is {x.shape[-2]}, of cos {cos.shape[-2]}; x must be (..., seq_len, head_dim): "
            "did you forget x.transpose(1, 2), or are the tables too short?"
        )
    if 2 * cos.shape[-1] > x.shape[-1]:
        raise ValueError(
            f"cos has {cos.shape[-1]} columns, which rotate {2 * cos.shape[-1]} dimensions, but head_dim of x is "
            f"{x.shape[-1]}; cos must have rotary_dim // 2 columns "
            "(is rotary_dim too large, or are your tables doubled to the full width?)"
        )
    if any(c not in (1, n) for c, n in zip(cos.shape[:-2], x.shape[x.ndim - cos.ndim : -2], strict=True)):
        raise ValueError(
            f"x has shape {tuple(x.shape)}, cos {tuple(cos.shape)}; each leading axis of cos must be 1 or equal to x's"
        )
