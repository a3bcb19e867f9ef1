"""The formula of rotary position embedding, for both layouts of the pairs."""

from __future__ import annotations

import torch
from torch import Tensor


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """(x0, x1) -> (x0 cos - x1 sin, x0 sin + x1 cos) for each pair of x: the formula, and all that RoPE computes.

    Args:
        x: (..., seq_len, rotary_dim).
        cos, sin: (..., seq_len, rotary_dim // 2).
        interleaved: True: pair i is dimensions 2i and 2i + 1. False: i and i + rotary_dim // 2.

    Returns:
        Like x. Use `apply_rotary_emb`, which checks its arguments and is faster; this function is to be read.

    Example:
        >>> quarter = torch.tensor([[0.0]]), torch.tensor([[1.0]])
        >>> rotate_pairs(torch.tensor([[1.0, 2.0]]), *quarter, interleaved=True)
        tensor([[-2.,  1.]])
    """
    axis, pairs = (-1, (-1, 2)) if interleaved else (-2, (2, -1))
    x0, x1 = x.unflatten(-1, pairs).unbind(axis)
    y0, y1 = x0 * cos - x1 * sin, x0 * sin + x1 * cos
    return torch.stack((y0.to(x.dtype), y1.to(x.dtype)), dim=axis).flatten(-2)
