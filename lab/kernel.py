"""The rotation as one kernel in Triton, with both passes: on a GPU, or anywhere, slowly, with TRITON_INTERPRET=1."""

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = tl.constexpr(8)  # that one program turns


@triton.jit
def turn(
    x, y, cos, sin, rows, length, head_dim, half,
    INTERLEAVED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Rows of x, turned into y; of each row the first 2 * half."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    row = row.to(tl.int64)  # times head_dim it may be large
    j = tl.arange(0, WIDTH)[None, :]
    inside = (row < rows) & (j < head_dim)
    turns = inside & (j < 2 * half)
    if INTERLEAVED:
        pair, is_first, step = j // 2, j % 2 == 0, 1
    else:
        pair, is_first, step = j % half, j < half, half
    partner = tl.where(is_first, j + step, j - step)
    at = row % length * half + pair  # in the tables, which are float32
    c = tl.load(cos + at, mask=turns, other=1.0)
    s = tl.load(sin + at, mask=turns, other=0.0)
    own = tl.load(x + row * head_dim + j, mask=inside)
    other = tl.load(x + row * head_dim + partner, mask=turns, other=0.0)
    result = own * c + other * tl.where(is_first, -s, s)
    tl.store(y + row * head_dim + j, result, mask=inside)  # rounded once


def launch(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool,
) -> Tensor:
    """One pass over x; cos and sin are (length, half)."""
    x = x.contiguous()
    y = torch.empty_like(x)
    (length, half), head_dim = cos.shape, x.shape[-1]
    rows = x.numel() // head_dim
    sizes = rows, length, head_dim, half
    width = triton.next_power_of_2(head_dim)
    programs = (triton.cdiv(rows, ROWS.value),)
    turn[programs](x, y, cos, sin, *sizes, interleaved, width)
    return y


class Turned(torch.autograd.Function):
    """The way back is the same kernel with -sin."""

    @staticmethod
    def forward(ctx, x, cos, sin, interleaved):
        ctx.save_for_backward(cos, sin)  # nothing of x
        ctx.interleaved = interleaved
        return launch(x, cos, sin, interleaved)

    @staticmethod
    def backward(ctx, gradient):
        cos, sin = ctx.saved_tensors
        back = Turned.apply(gradient, cos, -sin, ctx.interleaved)
        return back, None, None, None


def rotated(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """x with the first 2 * half numbers of each vector turned, in any layout, and the others as they were.

    Args:
        x: (..., length, head_dim).
        cos, sin: (length, half), contiguous, in float32 for x in half precision; from `cos_sin`.

    Raises:
        ValueError: shapes or devices do not fit, or a table is not contiguous, or wants a gradient, which is not here.
    """
    if x.ndim < 2 or cos.ndim != 2 or sin.shape != cos.shape or len(cos) != x.shape[-2]:
        shapes = f"x is {tuple(x.shape)}, cos {tuple(cos.shape)}, sin {tuple(sin.shape)}"
        raise ValueError(f"{shapes}; wanted (..., length, head_dim), and (length, half) twice")
    if not 0 < 2 * cos.shape[1] <= x.shape[-1]:
        raise ValueError(f"{cos.shape[1]} pairs do not fit into head_dim {x.shape[-1]}")
    if not x.device == cos.device == sin.device:
        raise ValueError(f"x is on {x.device}, cos on {cos.device}, sin on {sin.device}; wanted one device")
    if not (cos.is_contiguous() and sin.is_contiguous()):
        raise ValueError("cos and sin must be contiguous: the kernel counts their rows in memory")
    if cos.requires_grad or sin.requires_grad:
        raise ValueError("cos or sin wants a gradient, which this kernel has not; use rope_lib.apply_rotary_emb")
    return Turned.apply(x, cos, sin, interleaved)
