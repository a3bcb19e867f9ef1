"""Softmax attention with any of the encodings: rotated queries and keys, a bias, or scores of one's own."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from rope_lib._checks import check_flag, check_number, check_same_dtype, check_tensor


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
        bias: (heads, q_len, k_len) or what broadcasts to it, e.g. from `alibi_bias`; added to the scores, in q's dtype
            and on its device. To hide a key, it is -inf there, and v is finite; ones and zeros hide nothing. Axes
            count from the last one: keys hidden in each row are (batch, 1, 1, k_len).
        scale: None means 1 / sqrt(head_dim).

    Returns:
        (..., heads, q_len, value_dim). A query that sees no key, such as left padding, gets zeros; one that holds NaN
        may get zeros, too.

    Raises:
        TypeError: q, k, v are no dense tensors of one floating-point dtype, bias none, causal no bool, scale no number.
        ValueError: heads, lengths or devices do not match, axes in front differ, causal queries outnumber the keys, or
            bias does not broadcast to the scores. With as many kv_heads as heads, swapping the axes of heads and of
            positions in all three goes undetected.

    Source: Vaswani et al. 2017, equation 1.

    Example:
        >>> q = torch.ones(8, 6, 4)  # eight query heads share two key heads
        >>> k = torch.ones(2, 6, 4)
        >>> attention(q, k, k, causal=True).shape
        torch.Size([8, 6, 4])
    """
    _check(q, k, v, causal)
    if scale is not None:
        scale = check_number(scale, "scale")
        if scale <= 0:  # torch's causal kernel returns NaN for it
            q, scale = q * scale, 1.0
    q_len, k_len = q.shape[-2], k.shape[-2]
    if bias is not None:
        check_tensor(bias, "bias", "alibi_bias(distances, slopes)")
        if bias.is_meta and not q.is_meta:
            raise ValueError("bias is on meta and has no values; make it with device='cpu'")
        if not bias.is_floating_point():
            raise TypeError(f"bias has dtype {bias.dtype}; it is added to scores (a mask? use 0 and -inf)")
        shape = (*q.shape[:-1], k_len)
        if bias.ndim > len(shape) or any(n not in (1, m) for n, m in zip(bias.shape[::-1], shape[::-1], strict=False)):
            raise ValueError(f"bias has shape {tuple(bias.shape)}; it must broadcast to the scores, {shape}")
    mask = None if bias is None else torch.atleast_2d(bias.to(q))
    fused_causal = True if causal and mask is None and q_len == k_len else False  # noqa: SIM210  a compiler needs a bool
    if causal and not fused_causal and q_len > 1:  # the last query sees all keys
        mask = q.new_zeros(1, 1) if mask is None else mask
        mask = mask.masked_fill(_later_keys(q_len, k_len, q.device), -inf)
    grouped = True if q.shape[-3] != k.shape[-3] else False  # noqa: SIM210
    return scaled_dot_product_attention(q, k, v, mask, is_causal=fused_causal, scale=scale, enable_gqa=grouped)


def attention_from_scores(scores: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """softmax(scores) v, for the encodings that define scores of their own (`relative`).

    Args:
        scores: (..., q_len, k_len).
        v: (..., k_len, value_dim).
        causal: as in `attention`.

    Returns:
        (..., q_len, value_dim). A query whose scores are all -inf gets NaN, unlike in `attention`.

    Raises:
        TypeError: scores and v are no dense tensors of one floating-point dtype.
        ValueError: shapes or devices do not match, or causal queries outnumber the keys.

    Example:
        >>> v = torch.tensor([[1.0], [3.0]])
        >>> attention_from_scores(torch.zeros(2, 2), v, causal=True)
        tensor([[1.],
                [2.]])
    """
    check_same_dtype(scores=scores, v=v)
    check_flag(causal, "causal")
    fit = all(n == m or 1 in (n, m) for n, m in zip(scores.shape[-3::-1], v.shape[-3::-1], strict=False))
    fit = fit and min(scores.ndim, v.ndim) >= 2 and v.shape[-2] == scores.shape[-1]
    if not fit or (causal and scores.shape[-2] > scores.shape[-1]):
        raise ValueError(
            f"scores has shape {tuple(scores.shape)}, v {tuple(v.shape)}; they must be (..., q_len, k_len) and "
            "(..., k_len, value_dim), axes in front the same or 1; causal scores must not have more queries than keys"
        )
    if causal:
        scores = scores.masked_fill(_later_keys(*scores.shape[-2:], scores.device), -inf)
    return scores.softmax(-1) @ v


def _later_keys(q_len: int, k_len: int, device: torch.device) -> Tensor:
    """True where the key comes after the query; the last query is at the position of the last key."""
    return torch.ones(q_len, k_len, dtype=torch.bool, device=device).triu(k_len - q_len + 1)


def _check(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> None:
    check_same_dtype(q=q, k=k, v=v)
    check_flag(causal, "causal")
    shapes = f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    enough_axes = min(q.ndim, k.ndim, v.ndim) >= 3
    if not enough_axes or q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1] or q.shape[:-3] != k.shape[:-3]:
        needed = "(..., heads, q_len, head_dim), (..., kv_heads, k_len, head_dim) and (..., kv_heads, k_len, value_dim)"
        raise ValueError(f"{shapes}; needed are {needed}, and the axes in front must be equal (expand them?)")
    heads, kv_heads = q.shape[-3], k.shape[-3]
    if not kv_heads or heads % kv_heads:
        raise ValueError(f"{shapes}; heads, {heads}, must be a multiple of kv_heads, {kv_heads} (are axes swapped?)")
    if causal and q.shape[-2] > k.shape[-2]:
        raise ValueError(
            f"{shapes}; causal queries must not outnumber the keys. If {q.shape[-2]} and {k.shape[-2]} are numbers of "
            "heads, transpose the axes -3 and -2 of all three; otherwise earlier keys are missing (is the cache lost?)"
        )
