"""What tests compare with: definitions as plain loops over Python floats, beside those of `theory.reference`."""

from cmath import rect
from math import exp, log, sqrt

from torch import Tensor, arange, cat, zeros

from rope_lib.theory.reference import Vector, inverse_frequency, rotate


def dot(x: Vector, y: Vector) -> float:
    """The scalar product.

    Example:
        >>> dot([1, 2], [3, 4])
        11
    """
    return sum(a * b for a, b in zip(x, y, strict=True))


def score(q: Vector, k: Vector, m: float, n: float, *, interleaved: bool, base: float = 10000.0) -> float:
    """(R_m q) . (R_n k), the attention score before scaling (Su et al. 2021, equation 16).

    Example:
        >>> round(score([1, 0], [1, 0], 3, 1, interleaved=True), 4)  # cos 2
        -0.4161
    """
    settings = {"interleaved": interleaved, "base": base}
    return dot(rotate(q, m, **settings), rotate(k, n, **settings))


def partial_sums(distance: float, dim: int, base: float = 10000.0) -> list[complex]:
    """S_1, ..., S_N at one distance (Su et al. 2021, equation 36).

    Example:
        >>> partial_sums(0, 4)
        [(1+0j), (2+0j)]
    """
    sums, total = [], 0
    for pair in range(dim // 2):
        total += rect(1.0, distance * inverse_frequency(pair, dim, base))
        sums.append(total)
    return sums


def linear_attention(
    q: list[Vector],
    k: list[Vector],
    v: list[Vector],
    *,
    feature_map,
    causal: bool,
    rotated: bool,
    denominator: bool,
    interleaved: bool,
    decay: float = 1.0,
    base: float = 10000.0,
) -> list[Vector]:
    """Linear attention for one head, positions 0, 1, ...: two loops. Weights are rotated or not, and so are sums.

    Example:
        >>> choice = {"causal": True, "rotated": False, "denominator": False, "interleaved": True}
        >>> linear_attention([[1, 1]] * 2, [[1, 1]] * 2, [[2], [4]], feature_map=abs, **choice)
        [[2.0], [3.0]]
    """
    outputs = []
    for i, query in enumerate(q):
        phi_q = [feature_map(x) for x in query]
        total, normalizer = [0.0] * len(v[0]), 0.0
        for j, key in enumerate(k):
            if causal and j > i:
                continue
            phi_k = [feature_map(x) for x in key]
            plain = dot(phi_q, phi_k) * decay ** (i - j)
            turned = score(phi_q, phi_k, i, j, interleaved=interleaved, base=base) * decay ** (i - j)
            weight = turned if rotated else plain
            total = [t + weight * x for t, x in zip(total, v[j], strict=True)]
            normalizer += turned if denominator else plain
        outputs.append([t / normalizer for t in total])
    return outputs


def weighted_sums(q: Tensor, k: Tensor, v: Tensor, *, chunk: int, decay: float = 1.0) -> Tensor:
    """Sums over j <= i of decay^(i-j) (q_i . k_j) v_j, one chunk of the text after the other.

    q, k: (seq_len, features), v: (seq_len, value_dim). Inside a chunk the weights are a small matrix; what lies before
    it enters through the state. This is the step between the two loops above and `rope_lib.linear_attention`.

    Example:
        >>> ones = zeros(3, 1) + 1
        >>> weighted_sums(ones, ones, ones, chunk=2, decay=0.5).flatten().tolist()
        [1.0, 1.5, 1.75]
    """
    state, outputs = zeros(k.shape[1], v.shape[1], dtype=v.dtype), zeros(0, v.shape[1], dtype=v.dtype)
    for q_now, k_now, v_now in zip(q.split(chunk), k.split(chunk), v.split(chunk), strict=True):
        steps = arange(len(q_now), dtype=v.dtype)[:, None]
        inside = (decay ** (steps - steps.T).clamp(min=0)).tril()
        sums = (q_now @ k_now.T * inside) @ v_now + decay ** (steps + 1) * (q_now @ state)
        state = decay ** len(k_now) * state + (decay ** steps.flip(0) * k_now).T @ v_now
        outputs = cat((outputs, sums))
    return outputs


def shaw_score(q: Vector, k: Vector, table: list[Vector], m: int, n: int) -> float:
    """Shaw et al. 2018, equation 4, for one query at m and one key at n.

    Example:
        >>> shaw_score([1], [2], [[0], [1], [5]], 0, 7)  # 7 ahead counts as 1
        7.0
    """
    reach = (len(table) - 1) // 2
    vector = table[reach + max(-reach, min(reach, n - m))]
    return (dot(q, k) + dot(q, vector)) / sqrt(len(q))


def transformer_xl_score(q: Vector, k: Vector, table: list[Vector], u: Vector, v: Vector, m: int, n: int) -> float:
    """Dai et al. 2019, section 3.3: four terms, for one query at m and one key at n <= m.

    Example:
        >>> transformer_xl_score([1], [2], [[0], [3]], [10], [100], 1, 0)  # 2 + 3 + 20 + 300
        325.0
    """
    return (dot(q, k) + dot(q, table[m - n]) + dot(u, k) + dot(v, table[m - n])) / sqrt(len(q))


def deberta_score(q: Vector, k: Vector, relative_q: list[Vector], relative_k: list[Vector], m: int, n: int) -> float:
    """He et al. 2021, equations 3 and 4, for one query at m and one key at n.

    Example:
        >>> round(deberta_score([1], [2], [[0], [1]], [[0], [10]], 1, 1) * 3**0.5)  # 2 + 10 + 2
        14
    """
    reach = len(relative_k) // 2
    forth, back = (max(0, min(2 * reach - 1, distance + reach)) for distance in (m - n, n - m))
    return (dot(q, k) + dot(q, relative_k[forth]) + dot(k, relative_q[back])) / sqrt(3 * len(q))


def t5_bucket(distance: int, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> int:
    """Raffel et al. 2020, section 2.1, for one distance m - n.

    Example:
        >>> [t5_bucket(distance, bidirectional=False) for distance in (3, 20, 100, 1000)]
        [3, 17, 30, 31]
    """
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if distance < 0 else 0
        distance = abs(distance)
    distance, exact = max(distance, 0), num_buckets // 2
    if distance < exact:
        return first + distance
    far = int(log(distance / exact) / log(max_distance / exact) * (num_buckets - exact))
    return first + min(exact + far, num_buckets - 1)


def attention(scores: list[Vector], v: list[Vector], *, causal: bool) -> list[Vector]:
    """Softmax attention for one head (Vaswani et al. 2017, equation 1); the last query is at the last key.

    Example:
        >>> attention([[0, 0], [0, 0]], [[2], [4]], causal=True)
        [[2.0], [3.0]]
    """
    outputs, offset = [], len(v) - len(scores)
    for m, row in enumerate(scores):
        visible = [n for n in range(len(v)) if not causal or n <= m + offset]
        weights = [exp(row[n]) for n in visible]
        mixed = [sum(w * v[n][c] for w, n in zip(weights, visible, strict=True)) for c in range(len(v[0]))]
        outputs.append([x / sum(weights) for x in mixed])
    return outputs
