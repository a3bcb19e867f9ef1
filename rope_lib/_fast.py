"""The rotation of rotary.py, faster: the same numbers to rounding.

On a GPU the cost is memory traffic and kernel launches. So there are two operations, which read half precision beside
tables of float32 (`_rotate_mixed`; `lab.traffic` counts what they move). On a CPU the cost is something else:

* New memory, which the system clears first. So little is taken: for float32 only the result; for half precision a copy
  in float32 besides, three times x in all. (With a gradient the peak is four times x, half of x more than that of the
  usual formula in half precision, which rounds at each step where this one rounds once.)
* Waiting. torch shares an operation on more than 32768 elements among several cores and ends it with the slowest.
  Beside a busy program that can cost 8 ms, one turn of that program, in each operation. So there are few operations on
  x, each on all of it.

`python -m bench.branches` measures what each branch gains.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from rope_lib._checks import HALF
from rope_lib.formula import rotate_pairs

FEW = 2**15  # elements: torch shares more than these among several cores


def rotate(xs: tuple[Tensor, ...], cos: Tensor, sin: Tensor, interleaved: bool) -> tuple[Tensor, ...]:
    """`rotate_pairs` of each x, each in the form that suits it; all is checked already."""
    tables, rotated = None, []
    for x in xs:
        if _formula_is_best(x, cos, sin):
            rotated.append(rotate_pairs(x, cos, sin, interleaved=interleaved))
        elif _is_simple(x, cos, interleaved):
            tables = _prepare(cos, sin, interleaved) if tables is None else tables
            rotated.append(_rotate_simple(at_least_float32(x), *tables).type_as(x))
        elif _forward_mode():
            rotated.append(rotate_pairs(x, cos, sin, interleaved=interleaved))
        else:
            # autograd cannot save tables of inference mode
            saved = (table.clone() if x.requires_grad and table.is_inference() else table for table in (cos, sin))
            rotated.append(_Rotation.apply(x, *saved, interleaved))
    return tuple(rotated)


def _formula_is_best(x: Tensor, cos: Tensor, sin: Tensor) -> bool:
    """Whether to use the formula itself: a compiler fuses it into one pass over memory, Apple's GPUs have no complex
    numbers, and only the formula gives gradients of the tables.

    Tracers and other kinds of tensors, such as fake ones, need operations that they know.
    """
    tables_learn = torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad)
    unusual = x.is_mps or type(x) not in (Tensor, Parameter)
    return tables_learn or unusual or torch.compiler.is_compiling() or torch.jit.is_tracing()


def _is_simple(x: Tensor, cos: Tensor, interleaved: bool) -> bool:
    """Few elements, or one product of complex numbers, and no gradient: an autograd Function would cost more."""
    if x.requires_grad and torch.is_grad_enabled():
        return False
    return (_on_cpu(x) and x.numel() <= FEW) or (interleaved and torch.promote_types(x.dtype, cos.dtype) == x.dtype)


def _on_cpu(x: Tensor) -> bool:
    return x.is_cpu


def _forward_mode() -> bool:
    """Whether forward-mode differentiation is active.

    torch drops second-order tangents in custom Functions, so the formula is used then.
    """
    probe = torch.zeros(())
    return forward_ad.unpack_dual(probe).primal is not probe  # where the mode is off, the same tensor comes back


def at_least_float32(x: Tensor) -> Tensor:
    """Half precision as float32: a long sum in bfloat16 stops growing, one in float16 overflows."""
    return x.float() if x.dtype in HALF else x


def _prepare(cos: Tensor, sin: Tensor, interleaved: bool) -> tuple[Tensor, ...]:
    """cos + i sin for interleaved pairs, which are complex numbers in memory; else two tables of the full width."""
    if interleaved:
        return (torch.complex(cos, sin),)
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def _rotate_simple(x: Tensor, cos: Tensor, sin: Tensor | None = None) -> Tensor:
    """(x0 + i x1) (cos + i sin), or (x0, x1) cos + (x1, x0) sin, in operations that torch.func can differentiate.

    The tables are those of `_prepare`: one for interleaved pairs, two for half-split ones.
    """
    if sin is not None:
        return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, dims=-1), sin)
    if torch.is_inference_mode_enabled():
        try:  # viewing x as complex takes half as long for a single token, but autograd cannot follow it
            y = x.view(x.dtype.to_complex()) * cos
            return y.view(y.dtype.to_real())
        except RuntimeError:  # odd strides, or inside vmap
            pass
    return torch.view_as_real(_as_complex(x) * cos).reshape(x.shape)


def _rotate_new(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """The rotation into new memory, in few operations, each on all of x or on half of it.

    Shapes: x, wide and y (..., seq_len, rotary_dim); x0, x1 and the tables (..., seq_len, rotary_dim // 2). If x had to
    be converted to float32, that copy, `wide`, is rotated in place and then rounded into y.
    """
    dtype = torch.promote_types(x.dtype, cos.dtype)
    if not (_on_cpu(x) or (interleaved and dtype == x.dtype)):
        return _rotate_mixed(x, cos, sin, interleaved)
    wide = x if dtype == x.dtype else x.to(dtype, memory_format=torch.contiguous_format)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    x0, x1 = wide.chunk(2, dim=-1)
    if interleaved:
        torch.mul(_as_complex(wide), torch.complex(cos, sin), out=_as_complex(y if wide is x else wide))
    elif wide is x:  # y = x cos, then y0 -= x1 sin, y1 += x0 sin
        y0, y1 = torch.mul(x, torch.cat((cos, cos), dim=-1), out=y).chunk(2, dim=-1)
        y0.addcmul_(x1, sin, value=-1)
        y1.addcmul_(x0, sin)
    else:  # x0 sin is needed after x0 is overwritten. Until the end y is free, and has just the room for it in float32
        scratch = y.view(dtype) if 2 * y.itemsize == dtype.itemsize else torch.empty_like(x0)
        x0_sin = torch.mul(x0, sin, out=scratch)
        x0.mul_(cos).addcmul_(x1, sin, value=-1)
        torch.addcmul(x0_sin, x1, cos, out=x1)
    return y if wide is x else y.copy_(wide)


def _rotate_mixed(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """x0 (cos, sin) + x1 (-sin, cos): a GPU reads operands of two dtypes in one operation; a CPU would convert them."""
    axis, pairs = (-1, (-1, 2)) if interleaved else (-2, (2, -1))
    x0, x1 = x.unflatten(-1, pairs).split(1, dim=axis)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    first, second = torch.stack((cos, sin), dim=axis), torch.stack((-sin, cos), dim=axis)
    torch.addcmul(x0 * first, x1, second, out=y.unflatten(-1, pairs))
    return y


def _as_complex(x: Tensor) -> Tensor:
    """(..., head_dim) -> (..., head_dim // 2) complex, without a copy where each pair lies side by side."""
    *steps, last = x.stride()
    if last != 1 or x.storage_offset() % 2 or math.gcd(*steps) % 2:  # no pair lies on an even place
        x = x.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(x.view(*x.shape[:-1], x.shape[-1] // 2, 2))


class _Rotation(torch.autograd.Function):
    """The rotation, and as its derivative the rotation back, for which only the tables are saved, and not x.

    It gives no gradients of the tables: see `_formula_is_best`.
    """

    @staticmethod
    def forward(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
        return _rotate_new(x, cos, sin, interleaved)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        _, cos, sin, ctx.interleaved = inputs
        ctx.save_for_backward(cos, sin)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple:
        cos, sin = ctx.saved_tensors
        [back] = rotate((gradient,), cos, -sin, ctx.interleaved)  # `rotate`, so that it can be differentiated again
        return back, None, None, None

    @staticmethod
    def vmap(info, in_dims: tuple, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> tuple[Tensor, int]:
        return torch.vmap(partial(rotate_pairs, interleaved=interleaved), in_dims=in_dims[:3])(x, cos, sin), 0
