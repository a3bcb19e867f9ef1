"""The errors that several modules share. Each says what arrived, what is needed, and the likely cause.

The values of tensors are never read: a GPU would have to wait for them, and compilers and vmap could not follow.
(The one exception is a tensor of one element that stands for a number.)
"""

import sys
from math import inf
from numbers import Integral, Real

import torch
from torch import Tensor

FULL, HALF = (torch.float32, torch.float64), (torch.float16, torch.bfloat16)
FLOATS = FULL + HALF
MAX = sys.float_info.max
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def check_number(
    x: float, name: str, meaning: str = "", *, above: float = -inf, at_least: float = -inf, at_most: float = MAX
) -> float:
    """One finite number in this range, as a float: no text, no truth value, not None.

    A tensor of one element will do, since transformers passes the length of a text in that form.
    """
    value = _out_of_tensor(x)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is {x!r:.60}; it must be a number{meaning}")
    value = value if isinstance(value, Integral) else float(value)  # an int can be larger than any float
    if not (above < value and at_least <= value <= at_most):
        bounds = {"above": above, "of at least": at_least, "of at most": at_most}
        needed = " and".join(f" {words} {bound}" for words, bound in bounds.items() if abs(bound) < MAX)
        raise ValueError(f"{name} is {value!s:.60}; it must be a finite number{needed}{meaning}")
    return float(value)


def check_int(n: int, name: str, *, at_least: float = -inf) -> int:
    """A whole number, as an int: no truth value, no float. A tensor of one whole number will do."""
    value = _out_of_tensor(n)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} is {n!r:.60}; it must be an int")
    check_number(value, name, at_least=at_least)
    return value if isinstance(n, Integral) else int(value)


def _out_of_tensor(x: object) -> object:
    """The number in a tensor of one element, which loses nothing; whatever else came, as it came."""
    is_single = isinstance(x, Tensor) and x.numel() == 1 and not (x.is_meta or x.is_nested or x.requires_grad)
    return x.item() if is_single else x


def check_dim(dim: int, name: str) -> int:
    """A positive even integer: the dimensions are rotated in pairs."""
    dim = check_int(dim, name)
    if dim <= 0 or dim % 2:
        raise ValueError(f"{name} is {dim}; it must be positive and even, because dimensions are rotated in pairs")
    return dim


def check_flag(flag: bool, name: str, meaning: str = "") -> None:
    """Require True or False, since the text "False" counts as true, and None as false."""
    if not isinstance(flag, bool):
        raise TypeError(f"{name} is {flag!r:.60}; it must be True or False{meaning}")


def check_layout(interleaved: bool) -> None:
    """Require True or False, since a layout that only happens to be falsy would silently rotate other pairs."""
    meaning = " (True: pairs 2i, 2i + 1, as in GPT-J; False: pairs i, i + half, as in Hugging Face's Llama)"
    check_flag(interleaved, "interleaved", meaning)


def check_tensor(x: Tensor, name: str, example: str) -> None:
    """Require a dense tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is a {type(x).__name__}; it must be a tensor, e.g. {example}")
    if x.layout is not torch.strided or x.is_nested:
        kind = "nested" if x.is_nested else x.layout
        raise TypeError(f"{name} is {kind}; it must be a dense tensor ({name}.to_dense(), or padding, makes one)")


def check_same_dtype(**xs: Tensor) -> None:
    """Require dense floating-point tensors of one dtype; the keywords are the names that the caller knows them by."""
    for name, x in xs.items():
        check_tensor(x, name, "torch.zeros(seq_len, head_dim)")
    dtypes = [x.dtype for x in xs.values()]
    if dtypes[0] not in FLOATS or len(set(dtypes)) > 1:
        raise TypeError(
            f"{', '.join(xs)} have dtypes {', '.join(map(str, dtypes))}; they must be floating point, and equal "
            "(float32, float64, bfloat16 or float16)"
        )
    devices = [x.device for x in xs.values()]
    if any(device != devices[0] for device in devices):
        raise ValueError(f"{', '.join(xs)} are on {', '.join(map(str, devices))}; they must share a device")


def check_whole(x: Tensor, name: str, example: str) -> None:
    """Require integers, of any size, since they index the rows of a table."""
    check_tensor(x, name, example)
    if x.dtype not in WHOLE:
        raise TypeError(f"{name} has dtype {x.dtype}; it must be an integer dtype, as it indexes a table (use .long())")


def check_positions(positions: Tensor, name: str = "positions") -> None:
    """Require a real tensor that holds positions exactly. They may be negative or fractional."""
    check_tensor(positions, name, "torch.arange(seq_len)")
    if _is_distributed(positions):
        raise TypeError(f"{name} is a DTensor; make tables from {name}.full_tensor(), and distribute_tensor them")
    if positions.dtype not in WHOLE + FULL:
        raise TypeError(
            f"{name} has dtype {positions.dtype}; use integers or float64. Is it a mask? Or did .to(bfloat16) or "
            "autocast reach them? Then make them again: casting back does not undo the rounding (bfloat16 cannot tell "
            "position 256 from 257, nor float16 2048 from 2049)"
        )


def check_inv_freq(inv_freq: Tensor) -> None:
    """Require inverse frequencies: float64, in a vector."""
    example = "inverse_frequencies(rotary_dim) (is it the base, or the dimension? Or a pair: inv_freq, factor?)"
    check_tensor(inv_freq, "inv_freq", example)
    if inv_freq.dtype != torch.float64:
        raise TypeError(
            f"inv_freq has dtype {inv_freq.dtype}; angles need torch.float64. Was the module cast with .to(...), or "
            "the table made in float32? Then make it again: casting back does not undo the rounding. If these are "
            "positions, the two arguments are swapped"
        )
    if inv_freq.ndim != 1:
        raise ValueError(f"inv_freq has shape {tuple(inv_freq.shape)}; it must be (rotary_dim // 2,)")


def check_rotation(cos: Tensor, sin: Tensor, interleaved: bool, **xs: Tensor) -> None:
    """Require tables that fit each x; the keywords are the names that the caller knows them by."""
    check_layout(interleaved)
    for name, tensor in (*xs.items(), ("cos", cos), ("sin", sin)):
        check_tensor(tensor, name, "torch.zeros(n, head_dim)" if name in xs else "cos_sin(positions, inv_freq)[0]")
    if cos.dtype not in FULL or sin.dtype not in FULL:
        raise TypeError(
            f"cos and sin have dtypes {cos.dtype} and {sin.dtype}; they must be float32 or float64. Did .to(bfloat16) "
            "or autocast reach the tables? Then make them again: casting back does not undo the rounding"
        )
    if cos.shape != sin.shape or cos.dtype != sin.dtype:
        tables = " and ".join(f"{tuple(table.shape)}, {table.dtype}" for table in (cos, sin))
        raise ValueError(f"cos and sin have shapes and dtypes {tables}; they must be equal")
    for name, x in xs.items():
        _check_fit(x, name, cos, sin)


def _is_distributed(x: Tensor) -> bool:
    return type(x).__name__ == "DTensor"


def _check_fit(x: Tensor, name: str, cos: Tensor, sin: Tensor) -> None:
    if x.dtype not in FLOATS:
        raise TypeError(f"{name} has dtype {x.dtype}; it must be float32, float64, bfloat16 or float16")
    if not type(x) is type(cos) is type(sin) and len({_is_distributed(tensor) for tensor in (x, cos, sin)}) > 1:
        raise TypeError(
            f"{name} is a {type(x).__name__}, cos a {type(cos).__name__}, sin a {type(sin).__name__}; either all "
            "three are DTensors or none is, e.g. distribute_tensor(cos, mesh, [Replicate()])"
        )
    if not x.device == cos.device == sin.device:
        raise ValueError(
            f"{name} is on {x.device}, cos on {cos.device}, sin on {sin.device}; they must share a device "
            f"(make the tables from positions on the device of {name})"
        )
    shape, table = x.shape, cos.shape
    if len(shape) < 2 or len(table) < 2:
        short = name if len(shape) < 2 else "positions"
        raise ValueError(
            f"{name} has shape {tuple(shape)}, cos {tuple(table)}; {name} must be (..., seq_len, head_dim) and cos "
            f"(..., seq_len, rotary_dim // 2): for a single token, add the axis with {short}[None]"
        )
    if len(table) not in (2, len(shape)):
        raise ValueError(
            f"{name} has {len(shape)} axes and cos {len(table)}; cos must have 2 or {len(shape)}, since the "
            "batch could be taken for heads otherwise: did you forget cos.unsqueeze(-3), or positions[:, None]?"
        )
    if shape[-2] != table[-2]:
        rows = ". If each row has its own positions, they must be (batch, 1, seq_len)"
        rows = rows if shape[-2] == 1 or len(table) > 2 else ""
        raise ValueError(
            f"seq_len of {name} is {shape[-2]}, of cos {table[-2]}; {name} must be (..., seq_len, head_dim), and cos "
            f"must have a row for each position. If {shape[-2]} is the number of heads, did you forget "
            f"{name}.transpose(-3, -2)? Otherwise make the tables for the positions of {name}: with a cache, these do "
            f"not begin at 0{rows}"
        )
    if not 0 < 2 * table[-1] <= shape[-1]:
        raise ValueError(
            f"cos has {table[-1]} columns, which rotate {2 * table[-1]} dimensions, but head_dim of {name} is "
            f"{shape[-1]}; cos must have rotary_dim // 2 columns. Is rotary_dim too large? Or does each angle stand "
            f"there twice? Then keep cos[..., :{table[-1] // 2}] if its halves are equal, cos[..., ::2] if neighbours "
            "are"
        )
    if len(table) > 2 and any(c not in (1, n) for c, n in zip(table[:-2], shape[:-2], strict=True)):
        raise ValueError(
            f"{name} has shape {tuple(shape)}, cos {tuple(table)}; axes of cos in front must be 1 or those of {name}"
        )
