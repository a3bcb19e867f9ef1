"""From one layout of the pairs to the other: the weights of a checkpoint, reordered."""

from __future__ import annotations

import torch
from torch import Tensor

from rope_lib._checks import check_dim, check_int, check_tensor


def interleaved_to_half_split(x: Tensor, *, head_dim: int, dim: int, rotary_dim: int | None = None) -> Tensor:
    """Reorder each head from neighbours (2i, 2i + 1) to halves (i, i + rotary_dim // 2).

    Apply it to the rows of W_q and W_k (dim=0), and their biases, of a checkpoint that was trained interleaved: rotated
    with interleaved=False, the scores are the same. Split fused weights first, or W_v is reordered, too, in silence.

    Args:
        x: size along `dim` a multiple of head_dim, one or more heads side by side.
        head_dim: per head.
        dim: the axis to reorder; no default, since the wrong axis of a square matrix would be reordered silently.
        rotary_dim: how many dimensions of each head are rotated, the first ones (64 of 256 in GPT-J); None means all.
            The others stay where they are.

    Returns:
        A new tensor of x's shape.

    Raises:
        TypeError: x is no dense tensor, or packed (quantised weights: reorder before); another argument is no int.
        ValueError: head_dim or rotary_dim is not positive and even, rotary_dim is above head_dim, x has no axis `dim`,
            or head_dim does not divide its size.

    Source: the conversion scripts of Llama's checkpoints do this; that scores stay is Theorem 6.1 of the book.

    Example:
        >>> x = torch.arange(8)
        >>> interleaved_to_half_split(x, head_dim=8, dim=0)
        tensor([0, 2, 4, 6, 1, 3, 5, 7])
        >>> interleaved_to_half_split(x, head_dim=8, dim=0, rotary_dim=4)
        tensor([0, 2, 1, 3, 4, 5, 6, 7])
    """
    return _reorder(x, head_dim, dim, rotary_dim, pairs=(-1, 2))


def half_split_to_interleaved(x: Tensor, *, head_dim: int, dim: int, rotary_dim: int | None = None) -> Tensor:
    """The inverse of `interleaved_to_half_split`; arguments and errors are the same.

    Example:
        >>> x = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
        >>> half_split_to_interleaved(x, head_dim=8, dim=0)
        tensor([0, 1, 2, 3, 4, 5, 6, 7])
    """
    return _reorder(x, head_dim, dim, rotary_dim, pairs=(2, -1))


def _reorder(x: Tensor, head_dim: int, dim: int, rotary_dim: int | None, pairs: tuple[int, int]) -> Tensor:
    """Lay the rotated dimensions of each head out as a matrix of the shape `pairs`, and read its columns."""
    check_tensor(x, "x", "a weight of shape (heads * head_dim, width)")
    if x.dtype in (torch.uint8, torch.int32):  # 4-bit weights are stored so, several in one number
        raise TypeError(f"x has dtype {x.dtype}, as packed weights have; reorder them before they are quantised")
    rotary_dim = head_dim if rotary_dim is None else rotary_dim
    head_dim, rotary_dim, dim = (
        check_dim(head_dim, "head_dim"),
        check_dim(rotary_dim, "rotary_dim"),
        check_int(dim, "dim"),
    )
    if head_dim < rotary_dim:
        raise ValueError(f"rotary_dim is {rotary_dim}; it must be at most head_dim, {head_dim}")
    if not -x.ndim <= dim < x.ndim:
        raise ValueError(f"dim is {dim}, but x has shape {tuple(x.shape)}; it must be one of its axes")
    if x.shape[dim] % head_dim:
        raise ValueError(
            f"x has size {x.shape[dim]} along axis {dim}; it must be a multiple of head_dim, {head_dim}. Is head_dim "
            "another, or is this no weight of queries or keys, (heads * head_dim, width)?"
        )
    heads = torch.arange(x.shape[dim], device=x.device).unflatten(0, (-1, head_dim))
    rotated, others = heads[:, :rotary_dim], heads[:, rotary_dim:]
    order = torch.cat((rotated.unflatten(1, pairs).mT.flatten(1), others), dim=1)
    return x.index_select(dim, order.flatten())
