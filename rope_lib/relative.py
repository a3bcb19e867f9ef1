"""The family of relative encodings: scores and biases that depend on the distance between query and key.

Everywhere `distances` is the integer tensor m - n, query minus key, of shape (q_len, k_len): see `distances`. Scores
are what softmax receives, scaling included; biases are added to scores.
"""

import math

import torch
from torch import Tensor


def distances(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """m - n for each query position m and key position n: (..., q_len), (..., k_len) -> (..., q_len, k_len)."""
    return q_positions[..., :, None] - k_positions[..., None, :]


def shaw_scores(q: Tensor, k: Tensor, table: Tensor, distances: Tensor) -> Tensor:
    """q . (k + a) / sqrt(head_dim), with a vector a for each clipped distance.

    Args:
        q, k: (..., q_len, head_dim), (..., k_len, head_dim).
        table: (2K + 1, head_dim); row K + clip(n - m, -K, K) is the vector of a pair.
        distances: (q_len, k_len).

    Returns:
        (..., q_len, k_len).

    Raises:
        ValueError: the table has an even number of rows, or distances do not match q and k.

    Source: Shaw et al. 2018, equation 4 and section 3.2.
    """
    _check_scores(q, k, distances)
    reach, even = divmod(len(table) - 1, 2)
    if even:
        raise ValueError(f"table has {len(table)} rows; it must have 2K + 1, for clipped distances -K .. K")
    rows = (-distances).clamp(-reach, reach) + reach
    return (q @ k.mT + _pick(q @ table.mT, rows)) / math.sqrt(q.shape[-1])


def transformer_xl_scores(
    q: Tensor, k: Tensor, table: Tensor, content_bias: Tensor, position_bias: Tensor, distances: Tensor
) -> Tensor:
    """[(q + u) . k + (q + v) . r] / sqrt(head_dim), with the projected code r of the distance.

    Args:
        q, k: (..., q_len, head_dim), (..., k_len, head_dim).
        table: (num_distances, head_dim); row m - n is W_r applied to the sinusoidal code of m - n. Causal use only:
            keys after the query get row 0, which a causal mask then hides.
        content_bias, position_bias: u and v, (head_dim,).
        distances: (q_len, k_len), less than num_distances.

    Returns:
        (..., q_len, k_len).

    Raises:
        ValueError: distances do not match q and k, or reach beyond the table.

    Source: Dai et al. 2019, section 3.3.
    """
    _check_scores(q, k, distances)
    if distances.numel() and distances.max() >= len(table):
        raise ValueError(
            f"distances reach {distances.max()}, but table has {len(table)} rows; it needs one per distance"
        )
    by_distance = _pick((q + position_bias) @ table.mT, distances.clamp(min=0))
    return ((q + content_bias) @ k.mT + by_distance) / math.sqrt(q.shape[-1])


def tupe_scores(q: Tensor, k: Tensor, position_q: Tensor, position_k: Tensor) -> Tensor:
    """(q . k + p_m . p_n) / sqrt(2 head_dim): words and positions with projections of their own, no mixed terms.

    Args:
        q, k: (..., q_len, head_dim), (..., k_len, head_dim).
        position_q, position_k: the projected positions, (q_len, head_dim) and (k_len, head_dim).

    Returns:
        (..., q_len, k_len). Add `t5_bias` for TUPE-R.

    Raises:
        ValueError: the positions do not match q and k.

    Source: Ke et al. 2021, equation 7.
    """
    if position_q.shape[-2:] != q.shape[-2:] or position_k.shape[-2:] != k.shape[-2:]:
        raise ValueError(
            f"position_q has shape {tuple(position_q.shape)} for q {tuple(q.shape)}, position_k "
            f"{tuple(position_k.shape)} for k {tuple(k.shape)}; the last two sizes must agree"
        )
    return (q @ k.mT + position_q @ position_k.mT) / math.sqrt(2 * q.shape[-1])


def deberta_scores(q: Tensor, k: Tensor, relative_q: Tensor, relative_k: Tensor, distances: Tensor) -> Tensor:
    """[q . k + q . k_r(m - n) + k . q_r(n - m)] / sqrt(3 head_dim): disentangled attention.

    Args:
        q, k: (..., q_len, head_dim), (..., k_len, head_dim).
        relative_q, relative_k: (2K, head_dim); row K + (m - n), clipped to 0 .. 2K - 1.
        distances: (q_len, k_len).

    Returns:
        (..., q_len, k_len).

    Raises:
        ValueError: the tables differ in shape or have an odd number of rows, or distances do not match q and k.

    Source: He et al. 2021, equations 3 and 4.
    """
    _check_scores(q, k, distances)
    reach, odd = divmod(len(relative_k), 2)
    if odd or relative_q.shape != relative_k.shape:
        raise ValueError(
            f"relative_q has shape {tuple(relative_q.shape)}, relative_k {tuple(relative_k.shape)}; both must be "
            "(2K, head_dim)"
        )
    forth, back = ((sign * distances + reach).clamp(0, 2 * reach - 1) for sign in (1, -1))
    by_query, by_key = _pick(q @ relative_k.mT, forth), _pick(k @ relative_q.mT, back.mT).mT
    return (q @ k.mT + by_query + by_key) / math.sqrt(3 * q.shape[-1])


def t5_bucket(distances: Tensor, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """The bucket of each distance: exact when near, logarithmic when far, one for all beyond max_distance.

    Args:
        distances: (q_len, k_len), m - n.
        bidirectional: keys after the query have buckets of their own (encoders); else they fall into bucket 0.
        num_buckets: of both directions together.
        max_distance: in tokens.

    Returns:
        (q_len, k_len) int64 in 0 .. num_buckets - 1.

    Raises:
        ValueError: num_buckets is odd where it is split, or leaves no room for the logarithmic part.

    Source: Raffel et al. 2020, section 2.1, and the authors' code.
    """
    after = torch.zeros_like(distances)
    if bidirectional:
        if num_buckets % 2:
            raise ValueError(f"num_buckets is {num_buckets}; with two directions it must be even")
        num_buckets //= 2
        after = (distances < 0).long() * num_buckets
        distances = distances.abs()
    distances, exact = distances.clamp(min=0), num_buckets // 2
    if not 0 < exact < max_distance:
        raise ValueError(f"{exact} exact buckets and max_distance {max_distance}; needed are 0 < exact < max_distance")
    growth = torch.log(distances.clamp(min=1).double() / exact) / math.log(max_distance / exact)
    far = (exact + (growth * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
    return after + torch.where(distances < exact, distances, far)


def t5_bias(table: Tensor, distances: Tensor, *, bidirectional: bool, max_distance: int = 128) -> Tensor:
    """One learned number per head and bucket: (num_buckets, heads), (q_len, k_len) -> (heads, q_len, k_len).

    Raises:
        ValueError: as `t5_bucket`, or distances have not two axes.

    Source: Raffel et al. 2020, section 2.1. T5 does not scale its scores by 1/sqrt(head_dim).
    """
    _check_distances(distances)
    buckets = t5_bucket(distances, bidirectional=bidirectional, num_buckets=len(table), max_distance=max_distance)
    return table[buckets].movedim(-1, 0)


def alibi_slopes(num_heads: int) -> Tensor:
    """The slopes 2^(-8 h / heads), h = 1 .. heads, for a power of two; else those of the next lower one, filled up.

    Returns:
        (num_heads,) float64.

    Raises:
        ValueError: num_heads is not positive.

    Source: Press et al. 2022, section 3; the filling follows the authors' code.
    """
    if num_heads < 1:
        raise ValueError(f"num_heads is {num_heads}; it must be positive")
    lower = 2 ** int(math.log2(num_heads))
    slopes = 2.0 ** (-8 * torch.arange(1, lower + 1, dtype=torch.float64) / lower)
    between = 2.0 ** (-4 * torch.arange(1, 2 * lower, 2, dtype=torch.float64) / lower)
    return torch.cat((slopes, between[: num_heads - lower]))


def alibi_bias(distances: Tensor, slopes: Tensor) -> Tensor:
    """-slope |m - n|: (q_len, k_len), (heads,) -> (heads, q_len, k_len) float64.

    Raises:
        ValueError: distances have not two axes.

    Source: Press et al. 2022, section 3.
    """
    _check_distances(distances)
    return -slopes.to(distances.device)[:, None, None] * distances.abs()


def _check_distances(distances: Tensor) -> None:
    if distances.ndim != 2:  # more axes would be taken for heads
        raise ValueError(f"distances has shape {tuple(distances.shape)}; it must be (q_len, k_len), one text at a time")


def _pick(by_row: Tensor, rows: Tensor) -> Tensor:
    """Entry rows[m, n] of each row m of by_row, (..., q_len, num_rows): no (q_len, k_len, head_dim) is built."""
    return by_row.gather(-1, rows.expand(*by_row.shape[:-1], rows.shape[-1]))


def _check_scores(q: Tensor, k: Tensor, distances: Tensor) -> None:
    if q.shape[-1] != k.shape[-1] or distances.shape != (q.shape[-2], k.shape[-2]):
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}, distances {tuple(distances.shape)}; they must be "
            "(..., q_len, head_dim), (..., k_len, head_dim), (q_len, k_len)"
        )
