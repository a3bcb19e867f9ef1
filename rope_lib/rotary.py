"""Rotary position embedding: rotate pairs of dimensions by angles proportional to the position."""

import math

import torch
from torch import Tensor, nn
from torch._C._functorch import CInterpreter, is_functorch_wrapped_tensor, peek_interpreter_stack
from torch.autograd.forward_ad import unpack_dual

from rope_lib._checks import HALF, check_base, check_dim, check_positions, check_rotation
from rope_lib.frequencies import cos_sin, inverse_frequencies

BLOCK = 2**19  # elements that are rotated at once: large enough for all cores, small enough for the cache
SMALL = 2**17  # below, one pass over everything is faster than many over blocks


def apply_rotary_emb(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """Rotate each pair of x by its angle: (x0, x1) -> (x0 cos - x1 sin, x0 sin + x1 cos).

    Args:
        x: (..., seq_len, head_dim), queries or keys.
        cos, sin: (seq_len, rotary_dim // 2) for all rows alike, or with as many axes as x and sizes equal or 1 in
            front, e.g. (batch, 1, seq_len, rotary_dim // 2) when each row has positions of its own.
        interleaved: which dimensions form pair i. True: 2i and 2i+1 (the papers, GPT-J).
            False: i and i + rotary_dim // 2 (GPT-NeoX, Hugging Face's Llama).

    Returns:
        A new tensor of x's shape, dtype and device. Half-precision x is rotated in float32 and rounded once.
        Dimensions from rotary_dim on are passed through.

    Raises:
        TypeError, ValueError: the text says what arrived, what is needed and the likely cause.

    Source: Su et al. 2021, equations 15 and 34.
    """
    check_rotation(x, cos, sin)
    return _rotate_all((x,), cos, sin, interleaved)[0]


def apply_rotary_pos_emb(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys as `apply_rotary_emb` does, and prepare the tables only once for both.

    Args:
        q, k: as x there; they may differ in the number of heads.
        cos, sin, interleaved: as there.

    Returns:
        The rotated q and k. Small ones of one text are rotated together if no gradient is wanted, and share their
        memory: what a decoding step costs is the number of its operations.

    Raises:
        TypeError, ValueError: as there.
    """
    check_rotation(q, cos, sin)
    alike = cos.ndim == 2 and q.shape[-2:] == k.shape[-2:] and q.dtype is k.dtype and q.device == k.device
    if not alike:  # else what holds for q holds for k
        check_rotation(k, cos, sin)
    elif not interleaved and _fit_together(q, k):
        both = _rotate_all((torch.cat((q, k), dim=-3),), cos, sin, interleaved)[0]
        return both.split_with_sizes((q.shape[-3], k.shape[-3]), dim=-3)
    return _rotate_all((q, k), cos, sin, interleaved)


def _fit_together(q: Tensor, k: Tensor) -> bool:
    """Whether q and k are small and from one text, so that one contiguous tensor can hold the heads of both."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling():  # asked first, or a compiler would guard the length
        return False
    small = q.numel() + k.numel() < SMALL
    return small and q.ndim == k.ndim > 2 and q.shape[:-3].numel() == k.shape[:-3].numel() == 1


def _rotate_all(xs: tuple[Tensor, ...], cos: Tensor, sin: Tensor, interleaved: bool) -> tuple[Tensor, ...]:
    if not isinstance(interleaved, bool):
        raise TypeError(
            f"interleaved is {interleaved!r}; it must be True (pairs 2i, 2i+1) or False (pairs i, i + half)"
        )
    rotary_dim, tables, turned = 2 * cos.shape[-1], None, []
    for x in xs:
        part = x if rotary_dim == x.shape[-1] else x[..., :rotary_dim]
        form = rotation_form(part, cos, sin, interleaved=interleaved)
        if form in _FORMS:
            prepare, rotate = _FORMS[form]
            tables = tables or prepare(cos, sin)
            out = rotate(part.float() if x.dtype in HALF else part, *tables)
            out = out if out.dtype is x.dtype else out.type_as(x)
        else:
            out = (_rotate_in_blocks if form == "blocks" else _rotate_opaque)(part, cos, sin, interleaved)
        turned.append(out if part is x else torch.cat((out, x[..., rotary_dim:]), dim=-1))
    return tuple(turned)


def rotation_form(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> str:
    """Which form `apply_rotary_emb` takes: the same numbers to rounding, at different speeds.

    * "formula", as it stands: interleaved, where a compiler fuses it, or without complex numbers (MPS);
    * "complex", one complex product: interleaved, without a compiler;
    * "swapped", x (cos, cos) + (x1, x0) (-sin, sin): half-split;
    * "blocks", a few operations on each block that stays in the cache: at least 2^17 elements on the CPU;
    * "opaque", blocks that torch.compile calls as they are: interleaved half precision on the CPU, for which its own
      code takes twice as long.

    Args:
        x, cos, sin, interleaved: as there; x without the dimensions that pass through.

    Returns:
        The name of the form.
    """
    if compiling := torch.compiler.is_compiling():
        slow = interleaved and x.dtype in HALF and x.shape[-2] > 1 and x.is_cpu
        transformed = isinstance(peek_interpreter_stack(), CInterpreter)  # torch.func cannot look into the operator
        if slow and not transformed and not (cos.requires_grad or sin.requires_grad or torch.compiler.is_exporting()):
            return "opaque"
    elif x.numel() >= SMALL and x.is_cpu and not any(_has_derivatives(table) for table in (cos, sin)):
        return "blocks"
    if not interleaved:
        return "swapped"
    return "formula" if compiling or x.is_mps else "complex"


def _has_derivatives(table: Tensor) -> bool:
    backward = torch.is_grad_enabled() and table.requires_grad
    return backward or is_functorch_wrapped_tensor(table) or unpack_dual(table).tangent is not None


def _rotate_formula(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x0, x1 = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((x0 * cos - x1 * sin, x0 * sin + x1 * cos), dim=-1).flatten(-2)


def _rotate_swapped(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x (cos, cos) + (x1, x0) (-sin, sin), with tables of the full width."""
    if torch.compiler.is_compiling():  # slower step by step, faster when fused
        swapped = x.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
    else:
        swapped = x.roll(x.shape[-1] // 2, dims=-1)
    return torch.addcmul(x * cos, swapped, sin)


def _rotate_complex(x: Tensor, factor: Tensor) -> Tensor:
    """(x0 + i x1) (cos + i sin)."""
    if torch.is_inference_mode_enabled() and x.dtype.to_complex() is factor.dtype:
        try:
            return (x.view(factor.dtype) * factor).view(x.dtype)  # fewer steps, but view(dtype) stops gradients
        except RuntimeError:  # view says that the pairs do not lie side by side; there is a longer way
            pass
    return torch.view_as_real(_as_complex(x) * factor).flatten(-2)


def _as_complex(x: Tensor) -> Tensor:
    """(..., head_dim) -> (..., head_dim // 2) complex, without a copy where each pair lies side by side."""
    x = x if _paired(x) else x.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)))


def _paired(x: Tensor) -> bool:
    """Whether each pair lies side by side and begins at an even place of the memory."""
    *steps, last = x.stride()
    return last == 1 and not x.storage_offset() % 2 and not math.gcd(*steps) % 2


def _save_tables(ctx, inputs: tuple, output: Tensor) -> None:
    _, *tables, ctx.interleaved = inputs
    ctx.save_for_backward(*tables)
    ctx.save_for_forward(*tables)


class _RotateInBlocks(torch.autograd.Function):
    """Rotation in blocks, and its derivative: a gradient is rotated back."""

    @staticmethod
    def forward(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        tables = (torch.complex(cos, sin),) if interleaved else (cos, sin)
        _rotate_into(out, x, tables)
        return out

    setup_context = staticmethod(_save_tables)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple:
        cos, sin = ctx.saved_tensors
        return _rotate_in_blocks(gradient, cos, -sin, ctx.interleaved), None, None, None

    @staticmethod
    def jvp(ctx, tangent: Tensor, *_: None) -> Tensor:
        cos, sin = ctx.saved_tensors
        return _rotate_in_blocks(tangent, cos, sin, ctx.interleaved)

    @staticmethod
    def vmap(info, in_dims: tuple, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> tuple[Tensor, int]:
        axes = max(t.ndim - (d is not None) for t, d in zip((x, cos, sin), in_dims, strict=False))
        x = x.expand(info.batch_size, *x.shape) if in_dims[0] is None else x.movedim(in_dims[0], 0)
        tables = []
        for table, dim in zip((cos, sin), in_dims[1:], strict=False):
            table = table[None] if dim is None else table.movedim(dim, 0)
            tables.append(table.reshape(table.shape[0], *(1,) * (axes + 1 - table.ndim), *table.shape[1:]))
        return _rotate_in_blocks(x, *tables, interleaved), 0


def _rotate_into(out: Tensor, x: Tensor, tables: tuple[Tensor, ...], scratch: Tensor | None = None) -> None:
    """Rotate x into out, block by block. tables: cos and sin (half-split), or cos + i sin (interleaved).

    Half precision is rotated in scratch memory, (2, elements of a block), that all blocks share.
    """
    dim = next((d for d in range(x.ndim - 1) if x.shape[d] > 1), None)
    dtype = torch.promote_types(x.dtype, tables[0].real.dtype)
    if x.dtype != dtype and scratch is None:
        scratch = torch.empty(2, min(x.numel(), max(BLOCK, x.shape[-1])), dtype=dtype, device=x.device)
    one_pass = len(tables) == 1 and x.dtype == dtype  # a single complex product, which gains nothing from blocks
    if x.numel() > BLOCK and dim is not None and not one_pass:
        size = max(1, BLOCK * x.shape[dim] // x.numel())
        for start in range(0, x.shape[dim], size):
            length = min(size, x.shape[dim] - start)
            parts = tuple(_narrow_table(table, dim - x.ndim, start, length) for table in tables)
            _rotate_into(out.narrow(dim, start, length), x.narrow(dim, start, length), parts, scratch)
        return
    source, target = (x, out) if scratch is None else (part[: x.numel()].view(x.shape) for part in scratch)
    if source is not x:
        source.copy_(x)
    if len(tables) == 1:
        torch.mul(_as_complex(source), tables[0], out=_as_complex(target))
    else:
        cos, sin = tables
        (x0, x1), (y0, y1) = source.chunk(2, dim=-1), target.chunk(2, dim=-1)
        torch.mul(x0, cos, out=y0).addcmul_(x1, sin, value=-1)
        torch.mul(x0, sin, out=y1).addcmul_(x1, cos)
    if target is not out:
        out.copy_(target)


def _narrow_table(table: Tensor, dim: int, start: int, length: int) -> Tensor:
    """The part of a table for a part of x along dim, counted from the end; all of it if it is the same everywhere."""
    return table.narrow(dim, start, length) if -dim <= table.ndim and table.shape[dim] > 1 else table


_rotate_in_blocks = _RotateInBlocks.apply


@torch.library.custom_op("rope_lib::rotate", mutates_args=())
def _rotate_opaque(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    return _RotateInBlocks.forward(x, cos, sin, interleaved)


@_rotate_opaque.register_fake
def _(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _rotate_back(ctx, gradient: Tensor) -> tuple:
    cos, sin = ctx.saved_tensors
    return _rotate_opaque(gradient, cos, -sin, ctx.interleaved), None, None, None


_rotate_opaque.register_autograd(_rotate_back, setup_context=_save_tables)

_FORMS = {  # what it makes of cos and sin, and what it does with them
    "formula": (lambda cos, sin: (cos, sin), _rotate_formula),
    "complex": (lambda cos, sin: (torch.complex(cos, sin),), _rotate_complex),
    "swapped": (lambda cos, sin: (torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)), _rotate_swapped),
}


class RotaryEmbedding(nn.Module):
    """Rotate queries and keys by their positions. It has no buffers, so casting the module cannot spoil its angles.

    The tables are made anew at each call. A model of many layers makes them once, with `cos_sin`, and hands them to
    `apply_rotary_pos_emb`.

    Args:
        rotary_dim: rotated dimensions per head; positive and even, at most head_dim.
        interleaved: layout of the pairs, as in `apply_rotary_emb`; no default, because mixing layouts fails silently.
        base: sets the slowest pair.
        inv_freq: (rotary_dim // 2,) float64 in rad per token, for other speeds than base gives (see `scaling`); not
            together with base.
        attention_factor: multiplies what is rotated of q and k: with all of the head, scores grow by its square (YaRN).
    """

    def __init__(
        self,
        rotary_dim: int,
        *,
        interleaved: bool,
        base: float = 10000.0,
        inv_freq: Tensor | None = None,
        attention_factor: float = 1.0,
    ) -> None:
        super().__init__()
        check_dim(rotary_dim, "rotary_dim")
        check_base(base)
        if inv_freq is not None:
            if not isinstance(inv_freq, Tensor) or inv_freq.dtype != torch.float64:
                raise TypeError(
                    f"inv_freq is {inv_freq!r:.60}; it must be a float64 tensor "
                    "(YaRN and LongRoPE return one, and an attention_factor)"
                )
            if inv_freq.shape != (rotary_dim // 2,):
                raise ValueError(f"inv_freq has shape {tuple(inv_freq.shape)}; it must be ({rotary_dim // 2},)")
            if base != 10000.0:
                raise ValueError(
                    f"base is {base}, but inv_freq is given too, and replaces it: hand base to what made it"
                )
        self.rotary_dim, self.interleaved, self.base = rotary_dim, interleaved, base
        # Numbers, not a tensor: neither .to(bfloat16) nor a meta device reaches them.
        self.inv_freq = None if inv_freq is None else tuple(inv_freq.double().tolist())
        self.attention_factor = attention_factor

    def forward(self, q: Tensor, k: Tensor, *, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Rotate q and k.

        Args:
            q: (..., seq_len, head_dim).
            k: (..., seq_len, head_dim); fewer heads than q are fine.
            positions: (seq_len,) in tokens, or shaped like the axes of q without head_dim; None means 0 .. seq_len - 1.

        Returns:
            The rotated q and k.

        Raises:
            TypeError, ValueError: as `cos_sin` and `apply_rotary_emb`.
        """
        if positions is None:
            positions = torch.arange(q.shape[-2], device=q.device)
        check_positions(positions)
        if self.inv_freq is None:
            inv_freq = inverse_frequencies(self.rotary_dim, base=self.base, device=positions.device)
        else:
            inv_freq = torch.tensor(self.inv_freq, dtype=torch.float64, device="cpu")
        dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), torch.float32)
        cos, sin = cos_sin(positions, inv_freq, dtype=dtype)
        if self.attention_factor != 1:
            cos, sin = self.attention_factor * cos, self.attention_factor * sin
        return apply_rotary_pos_emb(q, k, cos, sin, interleaved=self.interleaved)

    def extra_repr(self) -> str:
        """What repr shows between the brackets."""
        return f"{self.rotary_dim}, interleaved={self.interleaved}, base={self.base:g}"


def rotation_matrix(position: float, inv_freq: Tensor) -> Tensor:
    """The dense block-diagonal R_m = diag(R(m theta_0), R(m theta_1), ...) in the interleaved layout.

    For people and for tests: `apply_rotary_emb` gives R_m x without building it.

    Args:
        position: m, in tokens.
        inv_freq: (head_dim // 2,) float64, in rad per token.

    Returns:
        (head_dim, head_dim) float64 on inv_freq's device; R_m @ x rotates the column vector x counter-clockwise.

    Raises:
        TypeError, ValueError: as `cos_sin`.

    Source: Su et al. 2021, equation 15.
    """
    m = torch.as_tensor(position, dtype=torch.float64, device=inv_freq.device)
    if m.ndim:
        raise ValueError(f"position has shape {tuple(m.shape)}; it must be one number (stack the matrices yourself)")
    cos, sin = cos_sin(m, inv_freq, dtype=torch.float64)
    return torch.block_diag(*(torch.stack((c, -s, s, c)).view(2, 2) for c, s in zip(cos, sin, strict=True)))


def interleaved_to_half_split(x: Tensor, *, head_dim: int, dim: int) -> Tensor:
    """Reorder each head from neighbours (2i, 2i + 1) to halves (i, i + head_dim // 2).

    Apply it to the rows of W_q and W_k (dim=0), and their biases, of a checkpoint that was trained interleaved: rotated
    with interleaved=False, the scores are the same.

    Args:
        x: size along `dim` a multiple of head_dim, one or more heads side by side.
        head_dim: per head; all of it rotated.
        dim: the axis to reorder; no default, since the wrong axis of a square matrix would be reordered silently.

    Returns:
        A tensor of x's shape.

    Raises:
        ValueError, TypeError: head_dim is not a positive even int, or does not divide the size.
    """
    return _reorder(x, (head_dim // 2, 2), head_dim, dim)


def half_split_to_interleaved(x: Tensor, *, head_dim: int, dim: int) -> Tensor:
    """The inverse of `interleaved_to_half_split`; arguments and errors are the same."""
    return _reorder(x, (2, head_dim // 2), head_dim, dim)


def _reorder(x: Tensor, grid: tuple[int, int], head_dim: int, dim: int) -> Tensor:
    check_dim(head_dim, "head_dim")
    if x.shape[dim] % head_dim:
        raise ValueError(f"x has size {x.shape[dim]} along axis {dim}; it must be a multiple of head_dim, {head_dim}")
    heads = x.movedim(dim, -1).unflatten(-1, (-1, *grid))
    return heads.transpose(-1, -2).flatten(-3).movedim(-1, dim)
