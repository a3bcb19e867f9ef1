"""Linear attention: softmax replaced by a product of features, so that time and memory grow linearly with the text.

Weights w_ij = phi(q_i) . phi(k_j), with decay times decay^(i-j); output o_i = sum_j w'_ij v_j / sum_j w''_ij. Where the
rotation enters w' and w'' is the argument `rotate`:

    "none"       w'  = w'' = w                   the plain form; no positions but those that decay brings
    "both"       w'  = w'' = [R_i phi(q_i)] . [R_j phi(k_j)]       weights can be negative, the denominator can be zero
    "numerator"  w'  as in "both", w'' = w       the form that the RoFormer paper proposes (Su et al. 2021, equation 19)

Features are rotated after phi. The other order, phi of rotated vectors, is not relative.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from rope_lib._checks import HALF, check_rotation
from rope_lib.rotary import apply_rotary_pos_emb

SEGMENT = 4  # chunks that are treated in one pass


class State(NamedTuple):
    """All that linear attention remembers of the past, whatever its length."""

    values: Tensor  # (..., head_dim, value_dim), sum of R_j phi(k_j) v_j^T
    normalizer: Tensor  # (..., head_dim), sum of phi(k_j), rotated if rotate is "both"


def elu_plus_one(x: Tensor) -> Tensor:
    """The positive feature map of Katharopoulos et al. 2020, equation 7."""
    return torch.nn.functional.elu(x) + 1


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool,
    rotate: str = "none",
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    interleaved: bool | None = None,
    decay: float | None = None,
    feature_map: Callable[[Tensor], Tensor] = elu_plus_one,
    chunk_size: int = 128,
) -> Tensor:
    """Linear attention over a whole sequence.

    Args:
        q, k: (..., seq_len, head_dim).
        v: (..., seq_len, value_dim), with the same axes in front.
        causal: position i sees positions up to i only.
        rotate: "none", "both" or "numerator", as above.
        cos, sin, interleaved: as in `apply_rotary_emb`; needed unless rotate is "none".
        decay: a number in (0, 1], per step; causal only.
        feature_map: phi, applied entry by entry.
        chunk_size: tokens that are treated at once. It changes speed and rounding, not the result.

    Returns:
        (..., seq_len, value_dim) in v's dtype; sums of half-precision inputs are kept in float32. Time and memory are
        linear in seq_len, forward and backward.

    Raises:
        ValueError: the text says what arrived and what is needed.
    """
    _check(q, k, v, rotate, cos, sin, interleaved, decay, causal, chunk_size)
    if not causal:
        rotated_q, phi_q, rotated_k, phi_k = _features(q, k, rotate, cos, sin, interleaved, feature_map)
        numerator = rotated_q @ (rotated_k.mT @ _full(v))
        return (numerator / (phi_q @ phi_k.sum(-2)[..., None])).to(v.dtype)
    return _causal(None, q, k, v, cos, sin, rotate, interleaved, decay, feature_map, chunk_size)[0]


def linear_attention_step(
    state: State | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    rotate: str = "none",
    cos: Tensor | None = None,
    sin: Tensor | None = None,
    interleaved: bool | None = None,
    decay: float | None = None,
    feature_map: Callable[[Tensor], Tensor] = elu_plus_one,
    chunk_size: int = 128,
) -> tuple[Tensor, State]:
    """Causal linear attention as a recurrence: new tokens and the state of all before them.

    Args:
        state: what the last call returned, None at the beginning.
        q, k, v, ...: as in `linear_attention`, for the new tokens; cos and sin at their positions.

    Returns:
        The outputs of the new tokens and the new state, which is float32 for half-precision inputs.

    Raises:
        ValueError: as `linear_attention`.
    """
    _check(q, k, v, rotate, cos, sin, interleaved, decay, True, chunk_size)
    return _causal(state, q, k, v, cos, sin, rotate, interleaved, decay, feature_map, chunk_size)


def _causal(state, q, k, v, cos, sin, rotate, interleaved, decay, feature_map, chunk_size) -> tuple[Tensor, State]:
    """The outputs, given the state before the first token, and the state after the last one.

    The text is cut into segments of some chunks each, small enough for the cache, and a last one of what is left.
    """
    length, segment = q.shape[-2], SEGMENT * chunk_size
    whole = length // chunk_size * chunk_size
    sizes = [b - a for a, b in pairwise((0, *range(segment, whole, segment), whole, length)) if b > a] or [0]
    # split, not slices: the backward of a slice writes a whole tensor, and one per segment is quadratic.
    parts = [x.split(sizes, dim=-2) if x is not None else [None] * len(sizes) for x in (q, k, v, cos, sin)]
    outputs, result, end = [], None, 0
    for size, *part in zip(sizes, *parts, strict=True):
        output, state = _segment(state, *part, rotate, interleaved, decay, feature_map, chunk_size)
        if len(sizes) == 1:
            return output, state
        if result is None and not output.requires_grad:  # outputs go where they belong at once: half the memory
            result = output.new_empty(*output.shape[:-2], length, output.shape[-1])
        outputs.append(output if result is None else result.narrow(-2, end, size).copy_(output))
        end += size
    return torch.cat(outputs, dim=-2) if result is None else result, state


def _segment(state, q, k, v, cos, sin, rotate, interleaved, decay, feature_map, chunk_size) -> tuple[Tensor, State]:
    dtype, v = v.dtype, _full(v)
    rotated_q, phi_q, rotated_k, phi_k = _features(q, k, rotate, cos, sin, interleaved, feature_map)
    if state is None:
        none = phi_k[..., :0, :]  # no tokens: sums that are zero, of the right shape
        state = State(none.mT @ v[..., :0, :], none.sum(-2))
    chunk = chunk_size if q.shape[-2] % chunk_size == 0 else q.shape[-2]
    numerator, values = _weighted_sums(rotated_q, rotated_k, v, state.values, decay, chunk)
    if decay is None:
        sums = torch.cat((state.normalizer[..., None, :], phi_k), dim=-2).cumsum(-2)
        output = numerator / (phi_q * sums[..., 1:, :]).sum(-1, keepdim=True)
        return output.to(dtype), State(values, sums[..., -1, :])
    ones, normalizer = torch.ones_like(phi_k[..., :1]), state.normalizer[..., None]
    denominator, normalizer = _weighted_sums(phi_q, phi_k, ones, normalizer, decay, chunk)
    return (numerator / denominator).to(dtype), State(values, normalizer[..., 0])


def _weighted_sums(q, k, v, state, decay, chunk) -> tuple[Tensor, Tensor]:
    """Sums over j <= i of decay^(i-j) (q_i . k_j) v_j, continued from a state, and the state at the end.

    Inside a chunk the weights are a chunk x chunk matrix; what lies before the chunk enters through its state.
    """
    q, k, v = (x.unflatten(-2, (x.shape[-2] // chunk, chunk)) for x in (q, k, v))
    inside = _decay_matrix(chunk, decay, q)  # [i, j] = decay^(i-j), zero for j > i
    past_q, kept_k = (q, k) if decay is None else (q * (decay * inside[:, :1]), k * inside[-1, :, None])
    added = kept_k.mT @ v  # what each chunk adds to the state
    between = _decay_matrix(q.shape[-3] + 1, decay and decay**chunk, q)
    states = torch.cat((state[..., None, :, :], added), dim=-3)
    states = (between @ states.flatten(-2)).unflatten(-1, added.shape[-2:])  # before each chunk, and at the end
    sums = ((q @ k.mT) * inside) @ v + past_q @ states[..., :-1, :, :]
    return sums.flatten(-3, -2), states[..., -1, :, :]


def _decay_matrix(size: int, decay: float | None, like: Tensor) -> Tensor:
    """decay^(i - j) for j <= i, else 0; None means no decay."""
    ones = torch.ones(size, size, dtype=like.dtype, device=like.device)
    if decay is None:
        return ones.tril()
    steps = ones.cumsum(0) - ones.cumsum(1)
    return (decay ** steps.clamp(min=0)).tril()


def _features(q, k, rotate, cos, sin, interleaved, feature_map) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features for the numerator and for the denominator: rotated_q, phi_q, rotated_k, phi_k."""
    phi_q, phi_k = feature_map(_full(q)), feature_map(_full(k))
    if rotate == "none":
        return phi_q, phi_q, phi_k, phi_k
    rotated_q, rotated_k = apply_rotary_pos_emb(phi_q, phi_k, cos, sin, interleaved=interleaved)
    return (rotated_q, rotated_q, rotated_k, rotated_k) if rotate == "both" else (rotated_q, phi_q, rotated_k, phi_k)


def _full(x: Tensor) -> Tensor:
    """Half precision as float32: a long sum in bfloat16 stops growing, one in float16 overflows."""
    return x.float() if x.dtype in HALF else x


def _check(q, k, v, rotate, cos, sin, interleaved, decay, causal, chunk_size) -> None:
    if q.ndim < 2 or q.shape != k.shape or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}; they must be "
            "(..., seq_len, head_dim), the same, and (..., seq_len, value_dim) "
            "(fewer heads of k and v? repeat them with k.repeat_interleave(groups, dim=-3))"
        )
    if rotate not in ("none", "both", "numerator"):
        raise ValueError(f"rotate is {rotate!r}; it must be 'none', 'both' or 'numerator'")
    given = [name for name, value in (("cos", cos), ("sin", sin), ("interleaved", interleaved)) if value is not None]
    if len(given) != (0 if rotate == "none" else 3):
        raise ValueError(
            f"rotate is {rotate!r} and given are {given or 'none'} of cos, sin, interleaved; "
            "a rotation needs all three, and 'none' takes none"
        )
    if rotate != "none":
        check_rotation(q, cos, sin)
    if decay is not None and not (causal and 0 < decay <= 1):
        raise ValueError(f"decay is {decay} and causal {causal}; decay must be in (0, 1], and it needs causal=True")
    if not chunk_size > 0:
        raise ValueError(f"chunk_size is {chunk_size}; it must be a positive number of tokens")
