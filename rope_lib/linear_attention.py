"""Linear attention: softmax replaced by a product of features, so that time and memory grow linearly with the text.

Weights w_ij = phi(q_i) . phi(k_j), with decay times decay^(i-j); output o_i = sum_j w'_ij v_j / sum_j w''_ij. Where the
rotation enters w' and w'' is the argument `rotate`:

    "none"       w'  = w'' = w                   the plain form; no positions but those that decay brings
    "both"       w'  = w'' = [R_i phi(q_i)] . [R_j phi(k_j)]       weights can be negative, the denominator can be zero
    "numerator"  w'  as in "both", w'' = w       the form that the RoFormer paper proposes (Su et al. 2021, equation 19)

Features are rotated after phi. The other order, phi of rotated vectors, is not relative.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from rope_lib.rotary import apply_rotary_emb


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
        v: (..., seq_len, value_dim).
        causal: position i sees positions up to i only.
        rotate: "none", "both" or "numerator", as above.
        cos, sin, interleaved: as in `apply_rotary_emb`; needed unless rotate is "none".
        decay: a number in (0, 1], per step; causal only.
        feature_map: phi, applied entry by entry.
        chunk_size: tokens that are treated at once. It changes speed and rounding, not the result.

    Returns:
        (..., seq_len, value_dim). Time and memory are linear in seq_len, forward and backward.

    Raises:
        ValueError: the text says what arrived and what is needed.
    """
    _check(q, k, v, rotate, cos, sin, interleaved, decay, causal)
    if not causal:
        rotated_q, phi_q, rotated_k, phi_k = _features(q, k, rotate, cos, sin, interleaved, feature_map)
        numerator = rotated_q @ (rotated_k.mT @ v)
        return numerator / (phi_q @ phi_k.sum(-2)[..., None])
    state, outputs = None, []
    # split, not slices: the backward of a slice writes a whole tensor, and one per chunk is quadratic.
    parts = [x.split(chunk_size, dim=-2) for x in (q, k, v)]
    tables = [[None] * len(parts[0]) if x is None else x.split(chunk_size, dim=-2) for x in (cos, sin)]
    for part in zip(*parts, *tables, strict=True):
        output, state = _chunk(state, *part, rotate, interleaved, decay, feature_map)
        outputs.append(output)
    return torch.cat(outputs, dim=-2)


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
) -> tuple[Tensor, State]:
    """Causal linear attention as a recurrence: new tokens (usually one) and the state of all before them.

    Args:
        state: what the last call returned, None at the beginning.
        q, k, v, ...: as in `linear_attention`, for the new tokens; cos and sin at their positions.

    Returns:
        The outputs of the new tokens and the new state.

    Raises:
        ValueError: as `linear_attention`.
    """
    _check(q, k, v, rotate, cos, sin, interleaved, decay, causal=True)
    return _chunk(state, q, k, v, cos, sin, rotate, interleaved, decay, feature_map)


def _chunk(state, q, k, v, cos, sin, rotate, interleaved, decay, feature_map) -> tuple[Tensor, State]:
    """The outputs of one chunk, given the state before it, and the state after it."""
    rotated_q, phi_q, rotated_k, phi_k = _features(q, k, rotate, cos, sin, interleaved, feature_map)
    if state is None:
        state = State(torch.zeros_like(rotated_k.mT @ v), torch.zeros_like(phi_k.sum(-2)))
    step = torch.arange(q.shape[-2], device=q.device, dtype=q.dtype)
    # Weights of what lies inside the chunk, of the state, and of each token in the next state.
    mask = torch.ones(len(step), len(step), dtype=q.dtype, device=q.device).tril()
    if decay is None:
        inside, before, after, shrink = mask, None, None, 1.0
    else:
        inside = mask * decay ** (step[:, None] - step).clamp(min=0)
        before, after, shrink = (
            decay ** (step + 1)[:, None],
            decay ** (len(step) - 1 - step)[:, None],
            decay ** len(step),
        )
    scores = (rotated_q @ rotated_k.mT) * inside
    past = rotated_q @ state.values
    if decay is None and rotate == "numerator":
        weights = (phi_q * (phi_k.cumsum(-2) + state.normalizer[..., None, :])).sum(-1, keepdim=True)
    else:
        plain = scores if rotate != "numerator" else (phi_q @ phi_k.mT) * inside
        past_weights = phi_q @ state.normalizer[..., None]
        weights = plain.sum(-1, keepdim=True) + (past_weights if before is None else before * past_weights)
    numerator = scores @ v + (past if before is None else before * past)
    kept_k, kept_phi = (rotated_k, phi_k) if after is None else (after * rotated_k, after * phi_k)
    new = State(shrink * state.values + kept_k.mT @ v, shrink * state.normalizer + kept_phi.sum(-2))
    return numerator / weights, new


def _features(q, k, rotate, cos, sin, interleaved, feature_map) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features for the numerator and for the denominator: rotated_q, phi_q, rotated_k, phi_k."""
    phi_q, phi_k = feature_map(q), feature_map(k)
    if rotate == "none":
        return phi_q, phi_q, phi_k, phi_k
    rotated_q, rotated_k = (apply_rotary_emb(x, cos, sin, interleaved=interleaved) for x in (phi_q, phi_k))
    return (rotated_q, rotated_q, rotated_k, rotated_k) if rotate == "both" else (rotated_q, phi_q, rotated_k, phi_k)


def _check(q, k, v, rotate, cos, sin, interleaved, decay, causal) -> None:
    if q.shape[-2:] != k.shape[-2:] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}; they must be "
            "(..., seq_len, head_dim), the same, and (..., seq_len, value_dim)"
        )
    if rotate not in ("none", "both", "numerator"):
        raise ValueError(f"rotate is {rotate!r}; it must be 'none', 'both' or 'numerator'")
    given = [name for name, value in (("cos", cos), ("sin", sin), ("interleaved", interleaved)) if value is not None]
    if len(given) != (0 if rotate == "none" else 3):
        raise ValueError(
            f"rotate is {rotate!r} and given are {given or 'none'} of cos, sin, interleaved; "
            "a rotation needs all three, and 'none' takes none"
        )
    if decay is not None and not (causal and 0 < decay <= 1):
        raise ValueError(f"decay is {decay} and causal {causal}; decay must be in (0, 1], and it needs causal=True")
