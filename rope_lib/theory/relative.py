"""The family of relative encodings: scores and biases that depend on the distance between query and key.

Everywhere q is (..., q_len, head_dim), k (..., k_len, head_dim), and `distances` the integer tensor m - n, query minus
key, of shape (q_len, k_len): `relative_distances` makes it. Scores, (..., q_len, k_len), are what softmax receives,
scaling included; biases are added to scores.

Errors: TypeError where tensors are not dense or not of one floating-point dtype, where distances are no whole numbers
(positions and what `alibi_bias` gets may be float32 or float64), and where num_heads is no int. ValueError where
shapes do not match, or num_heads is not positive. What a function refuses besides stands with it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rope_lib._checks import check_flag, check_int, check_positions, check_same_dtype, check_tensor, check_whole

EXAMPLE = "relative_distances(q_positions, k_positions)"  # suggested in errors


def relative_distances(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """m - n for each query position m and key position n: (..., q_len), (..., k_len) -> (..., q_len, k_len).

    Query minus key, int64 for integers, else the wider type. The other sign (transformers' T5) passes in silence.

    Example:
        >>> relative_distances(torch.arange(2, 4), torch.arange(4))
        tensor([[ 2,  1,  0, -1],
                [ 3,  2,  1,  0]])
    """
    check_positions(q_positions, "q_positions")
    check_positions(k_positions, "k_positions")
    q, k = (x if x.is_floating_point() else x.long() for x in (q_positions, k_positions))
    return q[..., :, None] - k[..., None, :]


def shaw_scores(q: Tensor, k: Tensor, table: Tensor, distances: Tensor) -> Tensor:
    """q . (k + a) / sqrt(head_dim), with a vector a for each clipped distance.

    Args:
        table: (2 reach + 1, head_dim); row reach + clip(n - m, -reach, reach) is the vector of a pair.

    Source: Shaw et al. 2018, equation 4 and section 3.2.

    Example:
        >>> table = torch.tensor([[-1.0], [0.0], [1.0]])  # key before, here, after
        >>> steps = relative_distances(torch.arange(3), torch.arange(3))
        >>> shaw_scores(torch.ones(3, 1), torch.zeros(3, 1), table, steps)
        tensor([[ 0.,  1.,  1.],
                [-1.,  0.,  1.],
                [-1., -1.,  0.]])
    """
    _check_scores(q, k, distances, table=table)
    if table.ndim != 2 or table.shape[1] != q.shape[-1] or len(table) % 2 == 0:
        raise ValueError(f"table has shape {tuple(table.shape)}; needed is (2 reach + 1, {q.shape[-1]}), for all heads")
    reach = len(table) // 2
    rows = (-distances.long()).clamp(-reach, reach) + reach
    return (q @ k.mT + _gather_distances(q @ table.mT, rows)) / math.sqrt(q.shape[-1])


def transformer_xl_scores(
    q: Tensor, k: Tensor, table: Tensor, content_bias: Tensor, position_bias: Tensor, distances: Tensor
) -> Tensor:
    """[(q + u) . k + (q + v) . r] / sqrt(head_dim), with the projected code r of the distance.

    Args:
        table: (num_distances, head_dim); row m - n is W_r applied to the sinusoidal code of m - n. Causal use only:
            keys after the query get row 0, which a causal mask then hides.
        content_bias, position_bias: u and v, (head_dim,), or one for each head, (heads, 1, head_dim).
        distances: less than num_distances, else a ValueError. On a GPU the call waits until the largest is known.

    Source: Dai et al. 2019, section 3.3.

    Example:
        >>> q, k, zero = torch.ones(3, 1), torch.zeros(3, 1), torch.zeros(1)
        >>> table = torch.tensor([[0.0], [1.0], [2.0]])
        >>> steps = relative_distances(torch.arange(3), torch.arange(3))
        >>> transformer_xl_scores(q, k, table, zero, zero, steps).tril()
        tensor([[0., 0., 0.],
                [1., 0., 0.],
                [2., 1., 0.]])
    """
    _check_scores(q, k, distances, table=table, content_bias=content_bias, position_bias=position_bias)
    for name, bias in (("content_bias", content_bias), ("position_bias", position_bias)):
        if bias.shape[-1:] != q.shape[-1:] or (bias.ndim > 1 and bias.shape[-2] != 1):  # else one per position
            raise ValueError(f"{name} has shape {tuple(bias.shape)}; use ({q.shape[-1]},) or (heads, 1, {q.shape[-1]})")
    if table.ndim != 2 or table.shape[1] != q.shape[-1]:
        raise ValueError(f"table has shape {tuple(table.shape)}; it must be (distances, {q.shape[-1]})")
    distances = distances.long()
    if distances.numel() and distances.max() >= len(table):
        raise ValueError(
            f"distances reach {distances.max()}, but table has {len(table)} rows; each distance needs a row"
        )
    by_distance = _gather_distances((q + position_bias) @ table.mT, distances.clamp(min=0))
    return ((q + content_bias) @ k.mT + by_distance) / math.sqrt(q.shape[-1])


def tupe_scores(q: Tensor, k: Tensor, position_q: Tensor, position_k: Tensor) -> Tensor:
    """(q . k + p_m . p_n) / sqrt(2 head_dim): words and positions with projections of their own, no mixed terms.

    For TUPE-R add `t5_bias`.

    Args:
        position_q, position_k: the projected positions, ([heads,] q_len, head_dim) and ([heads,] k_len, head_dim).

    Source: Ke et al. 2021, equation 7.

    Example:
        >>> q = k = position_q = position_k = torch.ones(1, 2)
        >>> tupe_scores(q, k, position_q, position_k)
        tensor([[2.]])
    """
    check_same_dtype(q=q, k=k, position_q=position_q, position_k=position_k)
    few_axes = max(position_q.ndim, position_k.ndim) <= min(q.ndim, k.ndim)  # k and position_q are not exchanged
    if not few_axes or position_q.shape[-2:] != q.shape[-2:] or position_k.shape[-2:] != k.shape[-2:]:
        for_q = f"position_q has shape {tuple(position_q.shape)} for q {tuple(q.shape)}"
        for_k = f"position_k {tuple(position_k.shape)} for k {tuple(k.shape)}"
        raise ValueError(f"{for_q}, {for_k}; the last two sizes must agree, with no more axes in front")
    return (q @ k.mT + position_q @ position_k.mT) / math.sqrt(2 * q.shape[-1])


def deberta_scores(q: Tensor, k: Tensor, relative_q: Tensor, relative_k: Tensor, distances: Tensor) -> Tensor:
    """[q . k + q . k_r(m - n) + k . q_r(n - m)] / sqrt(3 head_dim): disentangled attention.

    Args:
        relative_q, relative_k: (2 reach, head_dim); row reach + (m - n), clipped to 0 .. 2 reach - 1.

    Source: He et al. 2021, equations 3 and 4.

    Example:
        >>> table = torch.tensor([[-1.0], [1.0]])  # query before the key, or not
        >>> steps = relative_distances(torch.arange(2), torch.arange(2))
        >>> q, k = torch.ones(2, 1), torch.zeros(2, 1)
        >>> (3**0.5 * deberta_scores(q, k, table, table, steps)).round()
        tensor([[ 1., -1.],
                [ 1.,  1.]])
    """
    _check_scores(q, k, distances, relative_q=relative_q, relative_k=relative_k)
    reach, odd = divmod(len(relative_k), 2)
    if odd or not reach or relative_k.shape[1:] != q.shape[-1:] or relative_q.shape != relative_k.shape:
        shapes = f"relative_q has shape {tuple(relative_q.shape)}, relative_k {tuple(relative_k.shape)}"
        raise ValueError(f"{shapes}; both must be (2 reach, head_dim), here (2 reach, {q.shape[-1]})")
    distances = distances.long()
    by_query = _gather_distances(q @ relative_k.mT, (reach + distances).clamp(0, 2 * reach - 1))
    by_key = _gather_distances(k @ relative_q.mT, (reach - distances).clamp(0, 2 * reach - 1).mT).mT
    return (q @ k.mT + by_query + by_key) / math.sqrt(3 * q.shape[-1])


def t5_bucket(distances: Tensor, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """The bucket of each distance, int64: exact when near, logarithmic when far, one for all beyond max_distance.

    Args:
        distances: (...,) whole numbers, m - n: query minus key.
        bidirectional: keys after the query have buckets of their own (encoders); else they fall into bucket 0.
        num_buckets: of both directions together; the result is in 0 .. num_buckets - 1.
        max_distance: in tokens.

    Raises:
        ValueError: num_buckets is odd where it is split, or leaves no room for the logarithmic part.

    Source: Raffel et al. 2020, section 2.1, and the authors' code.

    Example:
        >>> t5_bucket(torch.tensor([-5, 0, 3, 20, 500]), bidirectional=False)
        tensor([ 0,  0,  3, 17, 31])
    """
    check_whole(distances, "distances", EXAMPLE)
    check_flag(bidirectional, "bidirectional")
    if bidirectional and num_buckets % 2:
        raise ValueError(f"num_buckets is {num_buckets}; with two directions it must be even")
    distances, first = distances.long(), 0
    if bidirectional:
        num_buckets //= 2
        first = (distances < 0) * num_buckets
        distances = distances.abs()
    distances, exact = distances.clamp(min=0), num_buckets // 2
    if not 0 < exact < max_distance:
        raise ValueError(f"{exact} exact buckets and max_distance {max_distance}; needed are 0 < exact < max_distance")
    growth = torch.log(distances.clamp(min=1).double() / exact) / math.log(max_distance / exact)
    far = (exact + (growth * (num_buckets - exact)).long()).clamp(max=num_buckets - 1)
    return first + torch.where(distances < exact, distances, far)


def t5_bias(table: Tensor, distances: Tensor, *, bidirectional: bool, max_distance: int = 128) -> Tensor:
    """One learned number per head and bucket: (num_buckets, heads), (q_len, k_len) -> (heads, q_len, k_len).

    Table and distances decide the number of heads: a table (heads, num_buckets) would pass as one for other heads.

    Source: Raffel et al. 2020, section 2.1. T5 does not scale its scores by 1/sqrt(head_dim).

    Example:
        >>> table = torch.arange(32.0)[:, None]  # one head; each bucket's number
        >>> steps = relative_distances(torch.arange(2), torch.arange(2))
        >>> t5_bias(table, steps, bidirectional=True)
        tensor([[[ 0., 17.],
                 [ 1.,  0.]]])
    """
    check_tensor(table, "table", "torch.zeros(num_buckets, heads)")
    if table.ndim != 2 or not table.is_floating_point():
        raise ValueError(
            f"table has shape {tuple(table.shape)} and dtype {table.dtype}; it must be (num_buckets, heads), floating "
            "point (are table and distances swapped?)"
        )
    _check_distances(distances)
    buckets = t5_bucket(distances, bidirectional=bidirectional, num_buckets=len(table), max_distance=max_distance)
    return table[buckets].movedim(-1, 0)


def alibi_slopes(num_heads: int) -> Tensor:
    """(num_heads,) float64: 2^(-8 h / heads), h = 1 .. heads, for a power of two; else the next lower one's, filled up.

    Source: Press et al. 2022, section 3; the filling follows the authors' code.

    Example:
        >>> alibi_slopes(4)
        tensor([0.2500, 0.0625, 0.0156, 0.0039], dtype=torch.float64)
    """
    num_heads = check_int(num_heads, "num_heads", at_least=1)
    lower = 2 ** int(math.log2(num_heads))
    slopes = 2.0 ** (-8 * torch.arange(1, lower + 1, dtype=torch.float64) / lower)
    between = 2.0 ** (-4 * torch.arange(1, 2 * lower, 2, dtype=torch.float64) / lower)
    return torch.cat((slopes, between[: num_heads - lower]))


def alibi_bias(distances: Tensor, slopes: Tensor) -> Tensor:
    """-slope |m - n|: (q_len, k_len), (heads,) -> (heads, q_len, k_len) float64.

    Source: Press et al. 2022, section 3.

    Example:
        >>> alibi_bias(torch.tensor([[2, 1, 0]]), alibi_slopes(1))
        tensor([[[-0.0078, -0.0039, -0.0000]]], dtype=torch.float64)
    """
    _check_distances(distances)
    check_tensor(slopes, "slopes", "alibi_slopes(num_heads)")
    if slopes.ndim != 1:
        raise ValueError(f"slopes has shape {tuple(slopes.shape)}; it must be (heads,)")
    return -slopes.to(distances.device)[:, None, None] * distances.double().abs()


def _check_distances(distances: Tensor) -> None:
    check_positions(distances, "distances")
    if distances.ndim != 2:  # more axes would be taken for heads
        raise ValueError(f"distances has shape {tuple(distances.shape)}; it must be (q_len, k_len), one text at a time")


def _gather_distances(by_row: Tensor, rows: Tensor) -> Tensor:
    """Entry rows[m, n] of each row m of by_row, (..., q_len, num_rows): no (q_len, k_len, head_dim) is built."""
    return by_row.gather(-1, rows.expand(*by_row.shape[:-1], rows.shape[-1]))


def _check_scores(q: Tensor, k: Tensor, distances: Tensor, **tables: Tensor) -> None:
    check_same_dtype(q=q, k=k, **tables)
    check_whole(distances, "distances", EXAMPLE)
    if q.shape[-1] != k.shape[-1] or distances.shape != (q.shape[-2], k.shape[-2]):
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}, distances {tuple(distances.shape)}; they must be "
            "(..., q_len, head_dim), (..., k_len, head_dim), (q_len, k_len)"
        )
