import json
import math

import pytest
import torch
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import reference, relative

PEER = json.loads((ROOT / "tests" / "data" / "transformers_relative.json").read_text())
M, N, DIM = 7, 9, 4  # more keys than queries: the last queries of a text
DISTANCES = relative.distances(torch.arange(2, 2 + M), torch.arange(N))


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def assert_pairs(scores, score):
    """Compare a (M, N) table with a loop over all pairs of positions."""
    loop = [[score(m, n) for n in range(N)] for m in range(M)]
    torch.testing.assert_close(scores, torch.tensor(loop, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_distances():
    assert DISTANCES.shape == (M, N)
    assert DISTANCES[0].tolist() == [2, 1, 0, -1, -2, -3, -4, -5, -6]
    assert relative.distances(torch.zeros(3, 2), torch.zeros(3, 5)).shape == (3, 2, 5)


def test_shaw_is_the_plain_loop(generator):
    q, k, table = normal(generator, 2, M, DIM), normal(generator, 2, N, DIM), normal(generator, 5, DIM)
    scores = relative.shaw_scores(q, k, table, DISTANCES)
    for head in range(2):
        assert_pairs(
            scores[head],
            lambda m, n, h=head: reference.shaw_score(q[h, m].tolist(), k[h, n].tolist(), table.tolist(), m + 2, n),
        )


def test_transformer_xl_is_the_plain_loop(generator):
    q, k, table = normal(generator, M, DIM), normal(generator, N, DIM), normal(generator, 9, DIM)
    u, v = normal(generator, 2, DIM)
    scores = relative.transformer_xl_scores(q, k, table, u, v, DISTANCES)
    for m in range(M):
        for n in range(m + 3):  # keys up to the query's position
            vectors = q[m].tolist(), k[n].tolist(), table.tolist(), u.tolist(), v.tolist()
            assert scores[m, n].item() == pytest.approx(reference.transformer_xl_score(*vectors, m + 2, n), abs=1e-12)


def test_deberta_is_the_plain_loop(generator):
    q, k = normal(generator, M, DIM), normal(generator, N, DIM)
    relative_q, relative_k = normal(generator, 2, 6, DIM)
    tables = relative_q.tolist(), relative_k.tolist()
    assert_pairs(
        relative.deberta_scores(q, k, relative_q, relative_k, DISTANCES),
        lambda m, n: reference.deberta_score(q[m].tolist(), k[n].tolist(), *tables, m + 2, n),
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
                    reference.dot(q[h, m].tolist(), k[h, n].tolist())
                    + reference.dot(position_q[m].tolist(), position_k[n].tolist())
                )
                / math.sqrt(2 * DIM)
            ),
        )


@pytest.mark.parametrize("name", ["shaw", "deberta"])
def test_scores_see_the_distance_alone(name, generator):
    q, k, table, other = normal(generator, 4, 6, DIM)
    q, k = q[:1].expand(6, DIM), k[:1].expand(6, DIM)
    square = relative.distances(torch.arange(6), torch.arange(6))
    scores = (
        relative.shaw_scores(q, k, table[:5], square)
        if name == "shaw"
        else relative.deberta_scores(q, k, table, other, square)
    )
    torch.testing.assert_close(scores[1:, 1:], scores[:-1, :-1])
    assert (scores[0, 1:] - scores[1:, 0]).abs().max() > 1e-3


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets_of_an_independent_implementation(bidirectional):
    low, high = PEER["distances"]
    stored = PEER["t5_bidirectional" if bidirectional else "t5_causal"]
    assert relative.t5_bucket(torch.arange(low, high + 1), bidirectional=bidirectional).tolist() == stored


@given(st.integers(-500, 500), st.booleans(), st.integers(4, 40).map(lambda half: 2 * half), st.integers(50, 400))
def test_t5_bucket_is_the_plain_loop(distance, bidirectional, num_buckets, max_distance):
    settings = {"bidirectional": bidirectional, "num_buckets": num_buckets, "max_distance": max_distance}
    assert relative.t5_bucket(torch.tensor(distance), **settings) == reference.t5_bucket(distance, **settings)


def test_t5_bias_looks_up_the_bucket(generator):
    table = normal(generator, 8, 3)
    bias = relative.t5_bias(table, DISTANCES, bidirectional=True, max_distance=20)
    assert bias.shape == (3, M, N)
    bucket = reference.t5_bucket(-6, bidirectional=True, num_buckets=8, max_distance=20)
    assert torch.equal(bias[:, 0, 8], table[bucket])


@pytest.mark.parametrize("heads", PEER["alibi_slopes"])
def test_alibi_slopes_of_an_independent_implementation(heads):
    assert relative.alibi_slopes(int(heads)).tolist() == pytest.approx(PEER["alibi_slopes"][heads], rel=1e-6)


def test_alibi_bias_by_hand():
    bias = relative.alibi_bias(DISTANCES, torch.tensor([0.5, 0.25], dtype=torch.float64))
    assert bias.shape == (2, M, N)
    assert bias[0, 0, :4].tolist() == [-1.0, -0.5, 0.0, -0.5]
    assert torch.equal(bias[1], bias[0] / 2)


Q, K = torch.zeros(M, DIM), torch.zeros(N, DIM)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: relative.shaw_scores(Q, K, torch.zeros(4, DIM), DISTANCES), r"table has 4 rows; it must have 2K \+ 1"),
        (lambda: relative.shaw_scores(Q, K, torch.zeros(5, DIM), DISTANCES.T), r"distances \(9, 7\); they must be"),
        (
            lambda: relative.transformer_xl_scores(Q, K, torch.zeros(3, DIM), Q[0], Q[0], DISTANCES),
            "distances reach 8, but table has 3 rows",
        ),
        (lambda: relative.tupe_scores(Q, K, K, K), r"position_q has shape \(9, 4\) for q \(7, 4\)"),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(5, DIM), torch.zeros(5, DIM), DISTANCES),
            r"relative_q has shape \(5, 4\).*both must be \(2K, head_dim\)",
        ),
        (lambda: relative.tupe_scores(Q, K, Q, Q), r"position_k \(7, 4\) for k \(9, 4\)"),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(6, DIM), torch.zeros(8, DIM), DISTANCES),
            r"relative_q has shape \(6, 4\), relative_k \(8, 4\)",
        ),
        (
            lambda: relative.deberta_scores(Q, K, torch.zeros(6, DIM), torch.zeros(6, DIM), DISTANCES.T),
            r"distances \(9, 7\); they must be",
        ),
        (
            lambda: relative.shaw_scores(Q[:, :2], K, torch.zeros(5, DIM), DISTANCES),
            r"q has shape \(7, 2\), k \(9, 4\)",
        ),
        (lambda: relative.t5_bucket(DISTANCES, bidirectional=False, num_buckets=1), "^0 exact buckets"),
        (lambda: relative.t5_bucket(DISTANCES, bidirectional=True, num_buckets=7), "num_buckets is 7"),
        (lambda: relative.t5_bucket(DISTANCES, bidirectional=False, max_distance=4), "0 < exact < max_distance"),
        (lambda: relative.alibi_slopes(0), "num_heads is 0"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_keys_after_the_query_get_row_zero_of_transformer_xl(generator):
    q, k, table, u, v = (normal(generator, *shape) for shape in ((2, 4), (3, 4), (3, 4), (4,), (4,)))
    steps = relative.distances(torch.arange(2), torch.arange(3))
    scores = relative.transformer_xl_scores(q, k, table, u, v, steps)
    torch.testing.assert_close(scores[0, 2], ((q[0] + u) @ k[2] + (q[0] + v) @ table[0]) / 2)
    with pytest.raises(ValueError, match="distances reach 1, but table has 1 rows"):
        relative.transformer_xl_scores(q, k, table[:1], u, v, steps)


def test_the_longest_distance_of_t5_is_used(generator):
    table, steps = normal(generator, 8, 2), torch.arange(40)[:, None]
    near, far = (relative.t5_bias(table, steps, bidirectional=False, max_distance=m) for m in (8, 32))
    buckets = [reference.t5_bucket(m, bidirectional=False, num_buckets=8, max_distance=8) for m in range(40)]
    assert torch.equal(near[:, :, 0], table[torch.tensor(buckets)].T)
    assert not torch.equal(near, far)


def test_more_axes_are_not_taken_for_heads(generator):
    steps = torch.zeros(2, 3, 3, dtype=torch.int64)
    for call in (
        lambda: relative.alibi_bias(steps, relative.alibi_slopes(2)),
        lambda: relative.t5_bias(normal(generator, 8, 2), steps, bidirectional=False),
    ):
        with pytest.raises(ValueError, match=r"distances has shape \(2, 3, 3\); it must be \(q_len, k_len\)"):
            call()
