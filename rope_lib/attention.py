"""Softmax attention with any of the encodings: rotated queries and keys, a bias, or scores of one's own."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool, bias: Tensor | None = None, scale: float | None = None
) -> Tensor:
    """softmax(scale q . k + bias) v, by torch's own scaled_dot_product_attention.

    Args:
        q: (..., heads, q_len, head_dim), rotated already if rotary.
        k: (..., kv_heads, k_len, head_dim); kv_heads divides heads (grouped queries).
        v: (..., kv_heads, k_len, value_dim).
        causal: queries are the *last* q_len positions of the k_len ones and see no later key. With a cache, pass the
            new queries and all keys so far.
        bias: (heads, q_len, k_len) or what broadcasts to it, e.g. from `relative.alibi_bias`; cast to q's dtype.
        scale: None means 1 / sqrt(head_dim).

    Returns:
        (..., heads, q_len, value_dim).

    Raises:
        ValueError: heads or lengths do not match, or causal queries outnumber the keys.
        TypeError: bias is no floating-point tensor.

    Source: Vaswani et al. 2017, equation 1.
    """
    _check(q.shape, k.shape, v.shape, causal)
    q_len, k_len = q.shape[-2], k.shape[-2]
    if bias is not None and not bias.is_floating_point():
        raise TypeError(f"bias has dtype {bias.dtype}; it is added to scores (a mask? use 0 and -inf)")
    mask = None if bias is None else bias.to(q)
    causal = causal and q_len > 1  # the last query sees all keys
    fused_causal = causal and q_len == k_len and mask is None
    if causal and not fused_causal:
        hidden = _hidden(q_len, k_len, q.device)
        mask = torch.zeros(q_len, k_len, dtype=q.dtype, device=q.device) if mask is None else mask
        mask = mask.masked_fill(hidden, float("-inf"))
    grouped = q.shape[-3] != k.shape[-3]
    return scaled_dot_product_attention(q, k, v, mask, is_causal=fused_causal, scale=scale, enable_gqa=grouped)


def attention_from_scores(scores: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """softmax(scores) v, for the encodings that define scores of their own (`relative`).

    Args:
        scores: (..., q_len, k_len).
        v: (..., k_len, value_dim).
        causal: as in `attention`.

    Returns:
        (..., q_len, value_dim).

    Raises:
        ValueError: lengths do not match, or causal queries outnumber the keys.
    """
    q_len, k_len = scores.shape[-2:]
    if v.shape[-2] != k_len or (causal and q_len > k_len):
        raise ValueError(
            f"scores has shape {tuple(scores.shape)}, v {tuple(v.shape)}; v must be (..., k_len, value_dim), and "
            "causal scores must not have more queries than keys"
        )
    if causal:
        scores = scores.masked_fill(_hidden(q_len, k_len, scores.device), float("-inf"))
    return scores.softmax(-1) @ v


def _hidden(q_len: int, k_len: int, device: torch.device) -> Tensor:
    """True where the key comes after the query; the last query is at the position of the last key."""
    return torch.ones(q_len, k_len, dtype=torch.bool, device=device).triu(k_len - q_len + 1)


def _check(q: torch.Size, k: torch.Size, v: torch.Size, causal: bool) -> None:
    shapes = f"q has shape {tuple(q)}, k {tuple(k)}, v {tuple(v)}"
    if min(len(q), len(k), len(v)) < 3 or q[-1] != k[-1] or k[-3:-1] != v[-3:-1]:
        raise ValueError(
            f"{shapes}; needed are (..., heads, q_len, head_dim), (..., kv_heads, k_len, head_dim) and "
            "(..., kv_heads, k_len, value_dim)"
        )
    if q[-3] % k[-3]:
        raise ValueError(f"{shapes}; heads, {q[-3]}, must be a multiple of kv_heads, {k[-3]} (axes swapped?)")
    if causal and q[-2] > k[-2]:
        raise ValueError(f"{shapes}; causal attention needs at least as many keys as queries (did the cache get lost?)")
