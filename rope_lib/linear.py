"""Linear attention: softmax replaced by a product of features, so that time and memory grow linearly with the text.

Weights w_ij = phi(q_i) . phi(k_j), with decay times decay^(i-j); output o_i = sum_j w'_ij v_j / sum_j w''_ij. Without a
rotation w' = w'' = w. With one, w'_ij = [R_i phi(q_i)] . [R_j phi(k_j)], and the denominator is a choice::

    denominator=True   w'' = w'  weights can be negative, the denominator zero
    denominator=False  w'' = w   RoFormer's form (Su et al. 2021, equation 19)

Features are rotated after phi. The other order, phi of rotated vectors, is not relative.

Errors: TypeError where q, k and v are no dense tensors of one floating-point dtype, rotation is no `Rotation` or its
denominator neither True nor False, decay is no number, chunk_size no int, feature_map no function, or as
`apply_rotary_emb`. ValueError where shapes or devices do not match, decay is not in (0, 1], or not causal, chunk_size
is not positive, or tables do not turn all features at all positions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad, relu

from rope_lib._checks import check_flag, check_int, check_number, check_rotation, check_same_dtype, check_tensor
from rope_lib._fast import at_least_float32
from rope_lib.rotary import apply_rotary_pos_emb

SEGMENT = 16  # chunks that are treated in one pass


class Rotation(NamedTuple):
    """Tables of `cos_sin`, without a factor, whose square would multiply outputs, and: is the denominator rotated, too?

    Example:
        >>> Rotation(torch.ones(6, 2), torch.zeros(6, 2), True, False).cos.shape
        torch.Size([6, 2])
    """

    cos: Tensor  # (seq_len, features // 2), or with as many axes as q
    sin: Tensor
    interleaved: bool
    denominator: bool


class State(NamedTuple):
    """All that linear attention remembers of the past, whatever its length.

    To keep it: `torch.save(tuple(state), path)`, and `State(*torch.load(path))`.

    Example:
        >>> state = State(torch.zeros(4, 2), torch.zeros(4))
        >>> state.values.shape
        torch.Size([4, 2])
    """

    values: Tensor  # (..., features, value_dim), sum of R_j phi(k_j) v_j^T
    normalizer: Tensor  # (..., features), sum of phi(k_j), rotated if the denominator is


def elu_plus_one(x: Tensor) -> Tensor:
    """x + 1 above 0, e^x below; positive everywhere. (Katharopoulos et al. 2020, equation 7.)

    From x = -40 down it is e^-40: the product of two features is then e^-80, which float32 still holds in full.
    (Computed as elu(x) + 1 it would be zero from -18 down, and a sum of such features nothing to divide by.)

    Example:
        >>> elu_plus_one(torch.tensor([2.0, 0.0, -1.0, -18.0]))
        tensor([3.0000e+00, 1.0000e+00, 3.6788e-01, 1.5230e-08])
    """
    above = relu(x)  # x - above is min(x, 0), with the derivative 1 at 0; a mask branches at each element
    return above + (x - above).clamp(min=-40).exp()


def linear_attention(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool, rotation: Rotation | None = None, decay: float | None = None,
    feature_map: Callable[[Tensor], Tensor] = elu_plus_one, chunk_size: int = 128,
) -> Tensor:  # fmt: skip
    """Linear attention over a whole sequence.

    Args:
        q, k: (..., seq_len, head_dim).
        v: (..., seq_len, value_dim), with the same axes in front and the same dtype.
        causal: position i sees positions up to i only (but NaN or infinity reach earlier ones: 0 times it is NaN).
        rotation: None for none; else its tables turn all features.
        decay: a number in (0, 1], per step and for all heads; causal only.
        feature_map: phi, applied to each position alone (of several together it would depend on chunk_size), half
            precision as float32. Where features can be zero or negative, so can the denominator: NaN or infinity.
        chunk_size: tokens that are treated at once. It changes time and rounding, not the result.

    Returns:
        (..., seq_len, value_dim) in v's dtype; sums of half-precision inputs are kept in float32. Time and memory are
        linear in seq_len, forward and backward. (Compiled, a product with a matrix of (seq_len / chunk_size)^2 numbers
        comes on top, which costs as much as the rest at some 100,000 tokens.) A padded key counts for nothing where k
        is -inf (with elu_plus_one, 4e-18) and v is finite; a query that sees padding alone gets a mean of its v, if
        nothing rotates. Autocast does not reach the sums.

    Example:
        >>> q = k = v = torch.ones(2, 6, 4)
        >>> linear_attention(q, k, v, causal=True).shape
        torch.Size([2, 6, 4])
    """
    _check(q, k, v, rotation, decay, causal, chunk_size, feature_map)
    with _without_autocast(q):
        if causal:
            return _causal(None, q, k, v, rotation, decay, feature_map, chunk_size)[0]
        numerator_q, numerator_k, phi_q, phi_k = _features(q, k, rotation, feature_map)
        numerator = numerator_q @ (numerator_k.mT @ at_least_float32(v))
        return (numerator / (phi_q @ phi_k.sum(-2)[..., None])).to(v.dtype)


def linear_attention_step(
    state: State | None, q: Tensor, k: Tensor, v: Tensor, *, rotation: Rotation | None = None,
    decay: float | None = None, feature_map: Callable[[Tensor], Tensor] = elu_plus_one, chunk_size: int = 128,
) -> tuple[Tensor, State]:  # fmt: skip
    """Causal linear attention as a recurrence: new tokens and the state of all before them.

    Args:
        state: the last call's second result, None at the beginning. It does not say which rotation, decay and features
            it was made with: they must be the same.
        q, k, v: as in `linear_attention`, for the new tokens.
        rotation, decay, feature_map, chunk_size: as there; the tables are those of the new tokens' positions.

    Returns:
        The outputs of the new tokens and the new state, which is float32 for half-precision inputs. Rows of it that are
        set to zero begin a new document.

    Raises:
        TypeError: state is no `State`, or one of another dtype.
        ValueError: state is that of other axes, sizes or of another device.

    Example:
        >>> q = k = v = torch.ones(2, 6, 4)
        >>> first, state = linear_attention_step(None, q[:, :5], k[:, :5], v[:, :5])
        >>> last, state = linear_attention_step(state, q[:, 5:], k[:, 5:], v[:, 5:])
        >>> last.shape, state.values.shape
        (torch.Size([2, 1, 4]), torch.Size([2, 4, 4]))
    """
    _check(q, k, v, rotation, decay, True, chunk_size, feature_map)
    if state is not None and not isinstance(state, State):
        raise TypeError(f"state is a {type(state).__name__}; it must be the State that the last call returned second")
    for name, part in () if state is None else zip(State._fields, state, strict=True):
        check_tensor(part, f"state.{name}", "the second result of the last call")
        needed = at_least_float32(q[..., :0]).dtype
        if part.dtype != needed:
            raise TypeError(f"state.{name} is {part.dtype}; for q in {q.dtype} it must be {needed}")
        if part.device != q.device:
            raise ValueError(f"state.{name} is on {part.device}, q on {q.device}; they must share a device")
    with _without_autocast(q):
        return _causal(state, q, k, v, rotation, decay, feature_map, chunk_size)


def _without_autocast(x: Tensor) -> AbstractContextManager:
    """Turn autocast off: it would keep the sums in half precision, where they stop growing."""
    kind = x.device.type  # on meta there is no autocast, and torch's question whether there is stops older compilers
    on = kind != "meta" and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()


def _causal(
    state: State | None, q: Tensor, k: Tensor, v: Tensor, rotation: Rotation | None, decay: float | None,
    feature_map: Callable[[Tensor], Tensor], chunk_size: int,
) -> tuple[Tensor, State]:  # fmt: skip
    """The outputs, given the state before the first token, and the state after the last one.

    The text is cut into segments of SEGMENT chunks, small enough for the processor's cache; then come one segment of
    the remaining full chunks and one of the rest, which is less than a chunk. A compiler gets all of it in one segment.
    """
    length, segment, decay = q.shape[-2], SEGMENT * chunk_size, decay and float(decay)
    whole = length // chunk_size * chunk_size
    ends = () if torch.compiler.is_compiling() else (*range(segment, whole, segment), whole)
    sizes = [end - start for start, end in zip((0, *ends), (*ends, length), strict=True) if end > start] or [0]
    if rotation is not None:
        rotary_dim = 2 * rotation.cos.shape[-1] if rotation.cos.ndim else 2
        features = q[..., :1].expand(*q.shape[:-1], rotary_dim)  # of that shape; feature_map is called by segments
        check_rotation(*rotation[:3], q=features)
    # split, not slices: the backward of a slice writes a whole tensor, and one per segment is quadratic.
    tensors = (q, k, v) if rotation is None else (q, k, v, rotation.cos, rotation.sin)
    outputs, result, end = [], None, 0
    for size, q_part, k_part, v_part, *tables in zip(sizes, *(x.split(sizes, dim=-2) for x in tensors), strict=True):
        here = None if rotation is None else Rotation(*tables, rotation.interleaved, rotation.denominator)
        output, state = _segment(state, q_part, k_part, v_part, here, decay, feature_map, chunk_size)
        if len(sizes) > 1 and result is None and not (output.requires_grad or torch.jit.is_tracing()):  # less memory
            result = output.new_empty(*output.shape[:-2], length, output.shape[-1])
        outputs.append(output if result is None else result.narrow(-2, end, size).copy_(output))
        end += size
    result = (torch.cat(outputs, dim=-2) if len(sizes) > 1 else outputs[0]) if result is None else result
    return result, State(*(part.clone() for part in state))  # the parts are views, which keep more alive


def _segment(
    state: State | None, q: Tensor, k: Tensor, v: Tensor, rotation: Rotation | None, decay: float | None,
    feature_map: Callable[[Tensor], Tensor], chunk_size: int,
) -> tuple[Tensor, State]:  # fmt: skip
    """The outputs of one segment, given the state before it, and the state after it.

    Two sums are needed. The numerator, of values: always by chunks. The denominator, of features: without decay it is a
    running sum; with decay it is the same sum by chunks, of ones in the place of values.

    Shapes: q and k (..., length, head_dim), v (..., length, value_dim). The length is a multiple of chunk_size, or less
    than one chunk, unless a compiler traces this: then it is unknown, and `_sums_of_any_length` fills it up.
    """
    dtype, v = v.dtype, at_least_float32(v)
    numerator_q, numerator_k, phi_q, phi_k = _features(q, k, rotation, feature_map)
    shapes = (*phi_k.shape[:-2], phi_k.shape[-1], v.shape[-1]), (*phi_k.shape[:-2], phi_k.shape[-1])
    if state is None:
        state = State(*(phi_k.new_zeros(shape) for shape in shapes))
    elif (given := tuple(tuple(part.shape) for part in state)) != shapes:
        raise ValueError(f"state has shapes {given}; for these tokens they must be {shapes} (is it of another batch?)")
    compiling = torch.compiler.is_compiling()
    chunk = chunk_size if compiling or q.shape[-2] % chunk_size == 0 else q.shape[-2]
    weighted_sums = _sums_of_any_length if compiling else _weighted_sums
    numerator, values = weighted_sums(numerator_q, numerator_k, v, state.values, decay, chunk)
    if decay is None:  # the general path below would take 1.5 times as long
        sums = torch.cat((state.normalizer[..., None, :], phi_k), dim=-2).cumsum(-2)
        output = numerator / (phi_q * sums[..., 1:, :]).sum(-1, keepdim=True)
        return output.to(dtype), State(values, sums[..., -1, :])
    ones, normalizer = torch.ones_like(phi_k[..., :1]), state.normalizer[..., None]
    denominator, normalizer = weighted_sums(phi_q, phi_k, ones, normalizer, decay, chunk)
    return (numerator / denominator).to(dtype), State(values, normalizer[..., 0])


def _weighted_sums(
    q: Tensor, k: Tensor, v: Tensor, state: Tensor, decay: float | None, chunk: int
) -> tuple[Tensor, Tensor]:
    """Sums over j <= i of decay^(i-j) (q_i . k_j) v_j, continued from a state, and the state at the end.

    All chunks are one axis, and the states between them come from a product with the matrix of decays.
    """
    if torch.compiler.is_compiling():  # for unflatten they could not prove that no length leaves a remainder
        q, k, v = (x.unfold(-2, chunk, chunk).mT for x in (q, k, v))
    else:
        q, k, v = (x.unflatten(-2, (x.shape[-2] // chunk, chunk)) for x in (q, k, v))
    inside = _decay_matrix(chunk, decay, q)  # [i, j] = decay^(i-j), zero for j > i
    past_q, kept_k = (q, k) if decay is None else (q * (decay * inside[:, :1]), k * inside[-1, :, None])
    added = kept_k.mT @ v  # what each chunk adds to the state
    between = _decay_matrix(q.shape[-3] + 1, decay and decay**chunk, q)
    states = torch.cat((state[..., None, :, :], added), dim=-3)
    states = (between @ states.flatten(-2)).unflatten(-1, added.shape[-2:])  # before each chunk, and at the end
    sums = ((q @ k.mT) * inside) @ v + past_q @ states[..., :-1, :, :]
    return sums.flatten(-3, -2), states[..., -1, :, :]


def _sums_of_any_length(
    q: Tensor, k: Tensor, v: Tensor, state: Tensor, decay: float | None, chunk: int
) -> tuple[Tensor, Tensor]:
    """`_weighted_sums` for compilers, in one graph for all lengths.

    Zeros in front, which add nothing to a sum, fill the length up to whole chunks. There are two chunks at least, as a
    compiler makes a graph of its own for a size of 1. Under decay the zeros would count as steps that weaken the given
    state, so the sums begin without it, and what it contributes is added here. All chunks are one axis, so the matrix
    between them has (seq_len / chunk)^2 numbers.
    """
    length = (q.shape[-2] // chunk + 2) * chunk
    missing = length - q.shape[-2]
    sums, end = _weighted_sums(*(pad(x, (0, 0, missing, 0)) for x in (q, k, v)), torch.zeros_like(state), decay, chunk)
    kept = (decay or 1.0) ** torch.arange(q.shape[-2] + 1, dtype=q.dtype, device=q.device)[:, None]
    sums = sums.index_select(-2, torch.arange(missing, length, device=q.device))
    return sums + (kept[1:] * q) @ state, end + kept[-1:] * state


def _decay_matrix(size: int, decay: float | None, like: Tensor) -> Tensor:
    """decay^(i - j) for j <= i, else 0; None means no decay."""
    ones = torch.ones(size, size, dtype=like.dtype, device=like.device)
    if decay is None:
        return ones.tril()
    steps = ones.cumsum(0) - ones.cumsum(1)
    return (decay ** steps.clamp(min=0)).tril()


def _features(
    q: Tensor, k: Tensor, rotation: Rotation | None, feature_map: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features of q and k for the numerator, and for the denominator."""
    wide_q, wide_k = (
        at_least_float32(x) if feature_map is elu_plus_one else at_least_float32(x).clone() for x in (q, k)
    )  # feature_map may write
    phi_q, phi_k = feature_map(wide_q), feature_map(wide_k)
    check_tensor(phi_q, "the result of feature_map", "elu_plus_one(x)")
    if phi_q.shape[:-1] != q.shape[:-1] or phi_q.dtype != wide_q.dtype:
        made = f"{tuple(phi_q.shape)}, {phi_q.dtype}, of {tuple(q.shape)}, {wide_q.dtype}"
        raise ValueError(f"feature_map makes {made}; it must keep the dtype, and all axes but the last")
    if rotation is None:
        return phi_q, phi_k, phi_q, phi_k
    cos, sin, interleaved, denominator = rotation
    if 2 * cos.shape[-1] != phi_q.shape[-1]:
        raise ValueError(
            f"feature_map makes {phi_q.shape[-1]} features, and cos has {cos.shape[-1]} columns; it must have a column "
            "for every two features (were the tables made for another width?)"
        )
    rotated = apply_rotary_pos_emb(phi_q, phi_k, cos, sin, interleaved=interleaved)
    return rotated + (rotated if denominator else (phi_q, phi_k))


def _check(
    q: Tensor, k: Tensor, v: Tensor, rotation: Rotation | None, decay: float | None, causal: bool, chunk_size: int,
    feature_map: Callable[[Tensor], Tensor],
) -> None:  # fmt: skip
    check_same_dtype(q=q, k=k, v=v)
    check_flag(causal, "causal")
    if q.ndim < 2 or q.shape != k.shape or k.shape[:-1] != v.shape[:-1]:
        grouped = q.ndim == v.ndim > 2 and q.shape[-2:] == k.shape[-2:] and k.shape[-2] == v.shape[-2]
        hint = " (fewer heads of k and v? repeat them with k.repeat_interleave(groups, dim=-3))" if grouped else ""
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}; they must be "
            f"(..., seq_len, head_dim), the same, and (..., seq_len, value_dim){hint}"
        )
    if rotation is not None:
        if not isinstance(rotation, Rotation):
            raise TypeError(f"rotation is a {type(rotation).__name__}; it must be a rope_lib.linear.Rotation")
        check_flag(rotation.denominator, "denominator of rotation")
        check_tensor(rotation.cos, "cos of rotation", "cos_sin(positions, inv_freq)[0]")
    if not callable(feature_map):
        raise TypeError(f"feature_map is {feature_map!r:.60}; it must be a function, such as elu_plus_one")
    if decay is not None:
        check_number(decay, "decay", " (one for all heads)", above=0, at_most=1)
        if not causal:
            raise ValueError(f"decay is {decay} and causal {causal}; it weighs the past, so it needs causal=True")
    check_int(chunk_size, "chunk_size", at_least=1)
