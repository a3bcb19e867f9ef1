import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rope_lib.theory import relative
from rope_lib.theory.relative import relative_distances
from tests import oracles
from tests.conftest import ROOT

PEER = json.loads((ROOT / "tests" / "data" / "transformers_relative.json").read_text())
M, N, DIM = 7, 9, 4  # more keys than queries: the last queries of a text
DISTANCES = relative_distances(torch.arange(2, 2 + M), torch.arange(N))


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def assert_pairs(scores, score):
    """Compare a (M, N) table with a loop over all pairs of positions."""
    loop = [[score(m, n) for n in range(N)] for m in range(M)]
    torch.testing.assert_close(scores, torch.tensor(loop, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_distances_are_query_minus_key():
    assert DISTANCES.shape == (M, N)
    assert DISTANCES[0].tolist() == [2, 1, 0, -1, -2, -3, -4, -5, -6]
    q, k = torch.arange(6).view(2, 3), torch.arange(10).view(2, 5)
    assert relative_distances(q, k).shape == (2, 3, 5)
    assert relative_distances(q, k)[1, 2, 4] == 5 - 9


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.uint16, torch.int32, torch.int64])
def test_distances_of_small_integers_do_not_wrap(dtype):
    positions = torch.tensor([0, 100]).to(dtype)
    keys = torch.tensor([100, 0], dtype=torch.int64)
    for k in (keys, keys.to(dtype)):
        distances = relative_distances(positions, k)
        assert distances.dtype == torch.int64
        assert distances.tolist() == [[-100, 0], [0, 100]]


def test_distances_of_fractional_positions_are_exact():
    q, k = torch.tensor([2.5], dtype=torch.float64), torch.tensor([4.0, 1.0])
    assert relative_distances(q, k).dtype == torch.float64
    assert relative_distances(q, k).tolist() == [[-1.5, 1.5]]
    assert relative_distances(k, k).dtype == torch.float32
    assert relative_distances(torch.tensor([1]), q).tolist() == [[-1.5]]


def test_shaw_is_the_plain_loop(generator):
    q, k, table = normal(generator, 2, M, DIM), normal(generator, 2, N, DIM), normal(generator, 5, DIM)
    scores = relative.shaw_scores(q, k, table, DISTANCES)
    for head in range(2):
        assert_pairs(
            scores[head],
            lambda m, n, h=head: oracles.shaw_score(q[h, m].tolist(), k[h, n].tolist(), table.tolist(), m + 2, n),
        )


def test_transformer_xl_is_the_plain_loop(generator):
    """One u and v for all heads, or one for each; a key after the query gets row 0."""
    q, k, table = normal(generator, 2, M, DIM), normal(generator, 2, N, DIM), normal(generator, 9, DIM)
    for u, v in (normal(generator, 2, DIM), normal(generator, 2, 2, 1, DIM)):
        scores = relative.transformer_xl_scores(q, k, table, u, v, DISTANCES)
        for head in range(2):
            bias_u, bias_v = (b.expand(2, 1, DIM)[head, 0].tolist() for b in (u, v))
            assert_pairs(
                scores[head],
                lambda m, n, h=head, u=bias_u, v=bias_v: oracles.transformer_xl_score(
                    q[h, m].tolist(), k[h, n].tolist(), table.tolist(), u, v, max(m + 2, n), n
                ),
            )


def test_deberta_is_the_plain_loop(generator):
    q, k = normal(generator, 2, M, DIM), normal(generator, 2, N, DIM)
    relative_q, relative_k = normal(generator, 2, 6, DIM)
    tables = relative_q.tolist(), relative_k.tolist()
    scores = relative.deberta_scores(q, k, relative_q, relative_k, DISTANCES)
    for head in range(2):
        assert_pairs(
            scores[head],
            lambda m, n, h=head: oracles.deberta_score(q[h, m].tolist(), k[h, n].tolist(), *tables, m + 2, n),
        )


def test_tupe_is_two_products(generator):
    q, k = normal(generator, 3, M, DIM), normal(generator, 3, N, DIM)
    position_q, position_k = normal(generator, M, DIM), normal(generator, N, DIM)
    scores = relative.tupe_scores(q, k, position_q, position_k)
    for head in range(3):
        assert_pairs(
            scores[head],
            lambda m, n, h=head: (
                (
                    oracles.dot(q[h, m].tolist(), k[h, n].tolist())
                    + oracles.dot(position_q[m].tolist(), position_k[n].tolist())
                )
                / math.sqrt(2 * DIM)
            ),
        )


def test_tupe_takes_positions_of_each_head(generator):
    q, k = normal(generator, 3, M, DIM), normal(generator, 3, N, DIM)
    position_q, position_k = normal(generator, 3, M, DIM), normal(generator, 3, N, DIM)
    each = [relative.tupe_scores(*tensors) for tensors in zip(q, k, position_q, position_k, strict=True)]
    torch.testing.assert_close(relative.tupe_scores(q, k, position_q, position_k), torch.stack(each))


@pytest.mark.parametrize("name", ["shaw", "deberta"])
def test_scores_see_the_distance_alone(name, generator):
    q, k, table, other = normal(generator, 4, 6, DIM)
    q, k = q[:1].expand(6, DIM), k[:1].expand(6, DIM)
    square = relative_distances(torch.arange(6), torch.arange(6))
    scores = (
        relative.shaw_scores(q, k, table[:5], square)
        if name == "shaw"
        else relative.deberta_scores(q, k, table, other, square)
    )
    torch.testing.assert_close(scores[1:, 1:], scores[:-1, :-1])
    assert (scores[0, 1:] - scores[1:, 0]).abs().max() > 1e-3


def scores_of(q, k, steps):
    """Each kind of score for the same vectors."""
    table = torch.arange(6.0 * DIM).view(6, DIM)
    return [
        relative.shaw_scores(q, k, table[:5], steps),
        relative.transformer_xl_scores(q, k, table, table[0], table[1], steps),
        relative.deberta_scores(q, k, table, table.flip(0), steps),
    ]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
def test_whole_numbers_of_any_size_count_rows(dtype, generator):
    q, k = normal(generator, 2, 4, DIM).float()
    steps = relative_distances(torch.arange(4), torch.arange(4))
    for scores, expected in zip(scores_of(q, k, steps.to(dtype)), scores_of(q, k, steps), strict=True):
        assert torch.equal(scores, expected)
    far = torch.tensor([[-128, 127]], dtype=dtype)
    for both in (False, True):
        assert torch.equal(*(relative.t5_bucket(x, bidirectional=both) for x in (far, far.long())))
    assert torch.equal(*(relative.alibi_bias(x, relative.alibi_slopes(2)) for x in (far, far.long())))


def test_unsigned_distances_count_rows(generator):
    q, k = normal(generator, 2, 4, DIM).float()
    steps = relative_distances(torch.arange(4), torch.arange(4)).clamp(min=0)
    for scores, expected in zip(scores_of(q, k, steps.to(torch.uint8)), scores_of(q, k, steps), strict=True):
        assert torch.equal(scores, expected)


def test_no_queries_no_scores(generator):
    """As after the last step of a cache: empty in, empty out."""
    q, k, steps = torch.zeros(0, DIM), torch.zeros(3, DIM), torch.zeros(0, 3, dtype=torch.int64)
    assert {tuple(scores.shape) for scores in scores_of(q, k, steps)} == {(0, 3)}


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets_of_an_independent_implementation(bidirectional):
    low, high = PEER["distances"]
    stored = PEER["t5_bidirectional" if bidirectional else "t5_causal"]
    assert relative.t5_bucket(torch.arange(low, high + 1), bidirectional=bidirectional).tolist() == stored


@given(st.integers(-500, 500), st.booleans(), st.integers(4, 40).map(lambda half: 2 * half), st.integers(50, 400))
def test_t5_bucket_is_the_plain_loop(distance, bidirectional, num_buckets, max_distance):
    settings = {"bidirectional": bidirectional, "num_buckets": num_buckets, "max_distance": max_distance}
    assert relative.t5_bucket(torch.tensor(distance), **settings) == oracles.t5_bucket(distance, **settings)


@pytest.mark.parametrize(
    ("num_buckets", "max_distance", "distances"),
    [(512, 100_000, [24_691, 24_692, 24_693]), (64, 1_000_000, [198_462, 198_463, 523_687])],
    ids=["just above an edge", "just below an edge"],
)
def test_t5_buckets_of_exact_arithmetic(num_buckets, max_distance, distances):
    """Bucket exact + j begins where (distance / exact)^steps = (max_distance / exact)^j: whole numbers decide.

    Logarithms in float32 are on the wrong side of these edges.
    """
    exact = steps = num_buckets // 2
    for distance in distances:
        reached = [j for j in range(steps) if distance**steps * exact**j >= max_distance**j * exact**steps]
        bucket = distance if distance < exact else exact + max(reached)
        settings = {"bidirectional": False, "num_buckets": num_buckets, "max_distance": max_distance}
        assert relative.t5_bucket(torch.tensor([distance]), **settings).tolist() == [bucket]


def test_t5_bias_looks_up_the_bucket(generator):
    table = normal(generator, 8, 3).requires_grad_()
    for both in (True, False):
        bias = relative.t5_bias(table, DISTANCES, bidirectional=both, max_distance=20)
        assert bias.shape == (3, M, N)
        settings = {"bidirectional": both, "num_buckets": 8, "max_distance": 20}
        for head in range(3):
            assert_pairs(
                bias[head].detach(),
                lambda m, n, h=head, s=settings: table[oracles.t5_bucket(m + 2 - n, **s), h].item(),
            )
    bias[0].sum().backward()
    assert table.grad[:, 0].sum() == M * N  # it is learned
    assert (table.grad[:, 1:] == 0).all()


def test_the_longest_distance_of_t5_is_128(generator):
    table, steps = normal(generator, 32, 2), torch.arange(300)[:, None]
    far = relative.t5_bias(table, steps, bidirectional=False)
    buckets = [oracles.t5_bucket(m, bidirectional=False, num_buckets=32, max_distance=128) for m in range(300)]
    assert torch.equal(far[:, :, 0], table[torch.tensor(buckets)].T)


@pytest.mark.parametrize("heads", PEER["alibi_slopes"])
def test_alibi_slopes_of_an_independent_implementation(heads):
    assert relative.alibi_slopes(int(heads)).tolist() == pytest.approx(PEER["alibi_slopes"][heads], rel=1e-6, abs=0)


def test_alibi_slopes_are_a_geometric_series_in_float64():
    """For a power of two, 2^(-8 i / heads); else those of the next lower one and every other one of the next higher."""
    assert relative.alibi_slopes(32).tolist() == pytest.approx([2 ** (-i / 4) for i in range(1, 33)], rel=1e-14, abs=0)
    filled = [2**-4, 2**-8, 2**-2]
    assert relative.alibi_slopes(3).tolist() == pytest.approx(filled, rel=1e-14, abs=0)
    of_twelve = [2**-i for i in range(1, 9)] + [2 ** (-i / 2) for i in (1, 3, 5, 7)]
    assert relative.alibi_slopes(12).tolist() == pytest.approx(of_twelve, rel=1e-14, abs=0)
    assert relative.alibi_slopes(3).dtype == torch.float64


def test_alibi_bias_by_hand():
    bias = relative.alibi_bias(DISTANCES, torch.tensor([0.5, 0.25], dtype=torch.float64))
    assert bias.shape == (2, M, N)
    assert bias[0, 0, :4].tolist() == [-1.0, -0.5, 0.0, -0.5]
    assert torch.equal(bias[1], bias[0] / 2)


def test_a_bias_lives_where_the_distances_live():
    assert relative.alibi_bias(DISTANCES.to("meta"), relative.alibi_slopes(2)).device.type == "meta"


Q, K, T = torch.zeros(M, DIM), torch.zeros(N, DIM), torch.zeros(9, DIM)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: relative.shaw_scores(Q, K, torch.zeros(4, DIM), DISTANCES),
            r"^table has shape \(4, 4\); needed is \(2 reach \+ 1, 4\)",
        ),
        (lambda: relative.shaw_scores(Q, K, torch.zeros(5, 3), DISTANCES), r"^table has shape \(5, 3\)"),
        (lambda: relative.shaw_scores(Q, K, torch.zeros(5, DIM, DIM), DISTANCES), r"^table has shape \(5, 4, 4\)"),
        (lambda: relative.shaw_scores(Q, K, torch.zeros(5, DIM), DISTANCES.T), r"distances \(9, 7\); they must be"),
        (lambda: relative.shaw_scores(Q, K, torch.zeros(5, DIM), DISTANCES[None]), r"distances \(1, 7, 9\); they must"),
        (
            lambda: relative.shaw_scores(Q[:, :2], K, torch.zeros(5, 2), DISTANCES),
            r"^q has shape \(7, 2\), k \(9, 4\)",
        ),
        (
            lambda: relative.transformer_xl_scores(Q, K, T[:3], Q[0], Q[0], DISTANCES),
            "^distances reach 8, but table has 3 rows; each distance needs a row",
        ),
        (lambda: relative.transformer_xl_scores(Q, K, T[:8], Q[0], Q[0], DISTANCES), "^distances reach 8, but table"),
        (lambda: relative.transformer_xl_scores(Q, K, T, Q[0], Q[0], DISTANCES.T), r"distances \(9, 7\); they must be"),
        (
            lambda: relative.transformer_xl_scores(Q, K, T, Q[0, :1], Q[0], DISTANCES),
            r"^content_bias has shape \(1,\); use \(4,\) or \(heads, 1, 4\)",
        ),
        (
            lambda: relative.transformer_xl_scores(Q, K, T, Q[0], Q, DISTANCES),
            r"^position_bias has shape \(7, 4\); use \(4,\) or \(heads, 1, 4\)",
        ),
        (lambda: relative.tupe_scores(Q, K, K, K), r"^position_q has shape \(9, 4\) for q \(7, 4\)"),
        (lambda: relative.tupe_scores(Q, K, Q, Q), r"position_k \(7, 4\) for k \(9, 4\)"),
        (lambda: relative.tupe_scores(Q, K, Q[:, :2], K), r"^position_q has shape \(7, 2\)"),
        (lambda: relative.tupe_scores(Q, K, Q, K[:, :2]), r"position_k \(9, 2\) for k \(9, 4\)"),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(5, DIM), torch.zeros(5, DIM), DISTANCES),
            r"^relative_q has shape \(5, 4\).*both must be \(2 reach, head_dim\)",
        ),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(0, DIM), torch.zeros(0, DIM), DISTANCES),
            r"^relative_q has shape \(0, 4\)",
        ),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(6, DIM), torch.zeros(8, DIM), DISTANCES),
            r"^relative_q has shape \(6, 4\), relative_k \(8, 4\)",
        ),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(6, DIM), torch.zeros(6, 3), DISTANCES),
            r"^relative_q has shape \(6, 4\), relative_k \(6, 3\)",
        ),
        (
            lambda: relative.deberta_scores(Q, K, *torch.zeros(2, 2, 6, DIM), DISTANCES),
            r"^relative_q has shape \(2, 6, 4\), relative_k \(2, 6, 4\)",
        ),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(6, DIM), torch.zeros(6, DIM), DISTANCES.T),
            r"distances \(9, 7\); they must be",
        ),
        (lambda: relative.t5_bucket(DISTANCES, bidirectional=False, num_buckets=1), "^0 exact buckets"),
        (
            lambda: relative.t5_bucket(DISTANCES, bidirectional=True, num_buckets=7),
            "^num_buckets is 7; with two directions it must be even",
        ),
        (
            lambda: relative.t5_bucket(DISTANCES, bidirectional=False, max_distance=16),
            "^16 exact buckets and max_distance 16; needed are 0 < exact < max_distance",
        ),
        (
            lambda: relative.t5_bias(torch.zeros(32), DISTANCES, bidirectional=True),
            r"^table has shape \(32,\) and dtype torch.float32; it must be \(num_buckets, heads\)",
        ),
        (lambda: relative.alibi_slopes(0), "^num_heads is 0; it must be a finite number of at least 1"),
        (
            lambda: relative.alibi_bias(DISTANCES, torch.ones(2, 1, 1)),
            r"^slopes has shape \(2, 1, 1\); it must be \(heads,\)",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_distances_that_are_no_whole_numbers_are_named():
    steps = DISTANCES.double()
    for call in (
        lambda: relative.shaw_scores(Q, K, torch.zeros(5, DIM), steps),
        lambda: relative.transformer_xl_scores(Q, K, T, Q[0], Q[0], steps),
        lambda: relative.deberta_scores(Q, K, torch.zeros(6, DIM), torch.zeros(6, DIM), steps),
        lambda: relative.t5_bucket(steps, bidirectional=True),
        lambda: relative.t5_bias(torch.zeros(32, 1), steps, bidirectional=True),
    ):
        with pytest.raises(TypeError, match=r"^distances has dtype torch\.float64; .*use \.long\(\)"):
            call()


def test_positions_that_are_not_exact_are_named():
    exact, rounded = torch.arange(3), torch.arange(3).bfloat16()
    with pytest.raises(TypeError, match=r"^q_positions has dtype torch\.bfloat16"):
        relative_distances(rounded, exact)
    with pytest.raises(TypeError, match=r"^k_positions is a list; it must be a tensor"):
        relative_distances(exact, [0, 1])


def test_more_axes_are_not_taken_for_heads(generator):
    steps = torch.zeros(2, 3, 3, dtype=torch.int64)
    for call in (
        lambda: relative.alibi_bias(steps, relative.alibi_slopes(2)),
        lambda: relative.t5_bias(normal(generator, 8, 2), steps, bidirectional=False),
    ):
        with pytest.raises(ValueError, match=r"^distances has shape \(2, 3, 3\); it must be \(q_len, k_len\)"):
            call()


@pytest.mark.parametrize("shape", [(3, 5, 4), (3, 2, 4), (9, 3), (9,)])
def test_a_table_of_other_axes_is_named(shape):
    q, steps = torch.ones(3, 4), relative.relative_distances(torch.arange(3), torch.arange(3))
    with pytest.raises(ValueError, match=r"^table has shape .*; it must be \(distances, 4\)"):
        relative.transformer_xl_scores(q, q, torch.ones(shape), torch.zeros(4), torch.zeros(4), steps)


def test_what_is_no_tensor_is_named():
    q, steps, table = torch.ones(3, 4), torch.zeros(3, 3, dtype=torch.int64), torch.ones(5, 4)
    for call, name in (
        (lambda: relative.shaw_scores(q.tolist(), q, table, steps), "q"),
        (lambda: relative.deberta_scores(q, q.tolist(), table, table, steps), "k"),
        (lambda: relative.tupe_scores(q, q, q, q.tolist()), "position_k"),
        (lambda: relative.shaw_scores(q, q, table, steps.tolist()), "distances"),
        (lambda: relative.alibi_bias(steps.tolist(), torch.ones(2)), "distances"),
    ):
        with pytest.raises(TypeError, match=f"^{name} is a list; it must be a tensor"):
            call()


def test_a_distance_beyond_all_is_clipped():
    """Also one that no int32 holds."""
    table = torch.tensor([[-1.0], [0.0], [1.0]])
    for distance in (2**31 + 5, 2**40, -(2**40)):
        found = relative.shaw_scores(torch.ones(1, 1), torch.zeros(1, 1), table, torch.tensor([[distance]]))
        assert found.item() == (-1 if distance > 0 else 1)
