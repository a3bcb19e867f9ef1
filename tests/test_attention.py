import math

import pytest
import torch

from rope_lib import RotaryEmbedding, reference, relative
from rope_lib.attention import attention, attention_from_scores

masks = pytest.mark.parametrize("causal", [True, False])


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@masks
@pytest.mark.parametrize(("q_len", "k_len"), [(5, 5), (2, 7), (1, 6)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_both_ways_are_the_plain_loop(causal, q_len, k_len, with_bias, generator):
    q, k, v = normal(generator, 3, q_len, 4), normal(generator, 3, k_len, 4), normal(generator, 3, k_len, 2)
    bias = normal(generator, 3, q_len, k_len) if with_bias else None
    scores = q @ k.mT / math.sqrt(4) + (bias if with_bias else 0)
    loop = [reference.attention(scores[h].tolist(), v[h].tolist(), causal=causal) for h in range(3)]
    expected = torch.tensor(loop, dtype=torch.float64)
    torch.testing.assert_close(attention(q, k, v, causal=causal, bias=bias), expected)
    torch.testing.assert_close(attention_from_scores(scores, v, causal=causal), expected)


@masks
def test_grouped_queries_share_keys(causal, generator):
    q, k, v = normal(generator, 2, 6, 5, 4), normal(generator, 2, 3, 5, 4), normal(generator, 2, 3, 5, 4)
    repeated = (x.repeat_interleave(2, dim=1) for x in (k, v))
    torch.testing.assert_close(attention(q, k, v, causal=causal), attention(q, *repeated, causal=causal))


def test_a_step_with_the_cache_is_the_last_row(generator):
    q, k, v = normal(generator, 3, 2, 9, 8)
    rope = RotaryEmbedding(8, interleaved=False)
    whole = attention(*rope(q, k), v, causal=True)
    _, cached = rope(q[:, :8], k[:, :8])
    new_q, new_k = rope(q[:, 8:], k[:, 8:], positions=torch.tensor([8]))
    step = attention(new_q, torch.cat((cached, new_k), dim=-2), v, causal=True)
    torch.testing.assert_close(step, whole[:, 8:])


def test_rotary_attention_is_relative(generator):
    q, k, v = normal(generator, 3, 2, 6, 8)
    rope = RotaryEmbedding(8, interleaved=True)
    here, there = (attention(*rope(q, k, positions=torch.arange(6) + s), v, causal=True) for s in (0, 777))
    torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-9)


def test_a_bias_is_cast_to_the_queries(generator):
    q, k, v = normal(generator, 3, 2, 6, 8).float()
    distances = relative.distances(torch.arange(6), torch.arange(6))
    bias = relative.alibi_bias(distances, relative.alibi_slopes(2))
    out = attention(q, k, v, causal=True, bias=bias)
    assert out.dtype == torch.float32
    expected = attention_from_scores(q @ k.mT / math.sqrt(8) + bias.float(), v, causal=True)
    torch.testing.assert_close(out, expected)


Q = torch.zeros(1, 4, 5, 8)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: attention(Q, Q[..., :4], Q, causal=False), r"k \(1, 4, 5, 4\).*needed are"),
        (lambda: attention(Q, Q, Q[..., :3, :], causal=False), r"v \(1, 4, 3, 8\).*needed are"),
        (lambda: attention(Q[0, 0], Q[0, 0], Q[0, 0], causal=False), "needed are"),
        (lambda: attention(Q, Q[:, :3], Q[:, :3], causal=False), "heads, 4, must be a multiple of kv_heads, 3"),
        (lambda: attention(Q, Q[:, :, :2], Q[:, :, :2], causal=True), "did the cache get lost"),
        (lambda: attention_from_scores(Q, Q, causal=False), r"v must be \(..., k_len, value_dim\)"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_the_scale_is_used(generator):
    q, k, v = (normal(generator, 2, 5, 4) for _ in range(3))
    expected = attention_from_scores(0.3 * q @ k.mT, v, causal=True)
    torch.testing.assert_close(attention(q, k, v, causal=True, scale=0.3), expected)


def test_grouped_queries_with_a_bias(generator):
    q, k, v = normal(generator, 4, 5, 6), normal(generator, 2, 5, 6), normal(generator, 2, 5, 3)
    bias = normal(generator, 4, 5, 5)
    shared = [x.repeat_interleave(2, 0) for x in (k, v)]
    torch.testing.assert_close(
        attention(q, k, v, causal=True, bias=bias), attention(q, *shared, causal=True, bias=bias)
    )


def test_a_mask_is_no_bias(generator):
    q = normal(generator, 2, 5, 4)
    with pytest.raises(TypeError, match=r"bias has dtype torch\.bool; it is added to scores"):
        attention(q, q, q, causal=False, bias=torch.ones(5, 5, dtype=torch.bool))
