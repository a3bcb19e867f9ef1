import math
import re

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from rope_lib import RotaryEmbedding
from rope_lib.softmax import attention, attention_from_scores
from rope_lib.theory import relative
from tests import oracles

masks = pytest.mark.parametrize("causal", [True, False])


def normal(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def loop_over_heads(scores, v, *, causal):
    rows = [oracles.attention(s.tolist(), x.tolist(), causal=causal) for s, x in zip(scores, v, strict=True)]
    return torch.tensor(rows, dtype=torch.float64)


@masks
@pytest.mark.parametrize(("q_len", "k_len"), [(5, 5), (2, 7), (1, 6), (1, 1)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_both_ways_are_the_plain_loop(causal, q_len, k_len, with_bias, generator):
    """In float64 to its own precision: no step of either is less precise."""
    q, k, v = normal(generator, 3, q_len, 4), normal(generator, 3, k_len, 4), normal(generator, 3, k_len, 2)
    bias = normal(generator, 3, q_len, k_len) if with_bias else None
    scores = q @ k.mT / math.sqrt(4) + (bias if with_bias else 0)
    expected = loop_over_heads(scores, v, causal=causal)
    exact = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(attention(q, k, v, causal=causal, bias=bias), expected, **exact)
    torch.testing.assert_close(attention_from_scores(scores, v, causal=causal), expected, **exact)


def test_more_queries_than_keys_may_look_across(generator):
    """A decoder that looks at an encoder's shorter text, not causal."""
    q, k, v = normal(generator, 2, 7, 4), normal(generator, 2, 3, 4), normal(generator, 2, 3, 5)
    scores = q @ k.mT / math.sqrt(4)
    expected = loop_over_heads(scores, v, causal=False)
    torch.testing.assert_close(attention(q, k, v, causal=False), expected)
    torch.testing.assert_close(attention_from_scores(scores, v, causal=False), expected)


@masks
@pytest.mark.parametrize("with_bias", [True, False])
def test_grouped_queries_share_keys(causal, with_bias, generator):
    """Query heads 0 and 1 see key head 0, and so on: neighbours share."""
    q, k, v = normal(generator, 2, 6, 5, 4), normal(generator, 2, 3, 5, 4), normal(generator, 2, 3, 5, 3)
    bias = normal(generator, 6, 5, 5) if with_bias else None
    repeated = (x.repeat_interleave(2, dim=1) for x in (k, v))
    shared = attention(q, k, v, causal=causal, bias=bias)
    torch.testing.assert_close(shared, attention(q, *repeated, causal=causal, bias=bias))


def test_a_step_with_the_cache_is_the_last_row(generator):
    q, k, v = normal(generator, 3, 2, 9, 8)
    rope = RotaryEmbedding(8, interleaved=False)
    whole = attention(*rope(q, k, positions=torch.arange(9)), v, causal=True)
    _, cached = rope(q[:, :8], k[:, :8], positions=torch.arange(8))
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
    distances = relative.relative_distances(torch.arange(6), torch.arange(6))
    bias = relative.alibi_bias(distances, relative.alibi_slopes(2))
    out = attention(q, k, v, causal=True, bias=bias)
    assert out.dtype == torch.float32
    expected = attention_from_scores(q @ k.mT / math.sqrt(8) + bias.float(), v, causal=True)
    torch.testing.assert_close(out, expected)


def test_a_bias_is_moved_to_the_queries():
    q = torch.zeros(2, 3, 4, device="meta")
    assert attention(q, q, q, causal=True, bias=torch.zeros(3, 3)).device.type == "meta"


@pytest.mark.parametrize("shape", [(2, 1, 3, 5), (3, 5), (4, 1, 5), (4, 3, 1), (5,), (), (2, 4, 3, 5)])
@masks
def test_a_bias_broadcasts_to_the_scores(shape, causal, generator):
    q, k, v = normal(generator, 2, 4, 3, 8), normal(generator, 2, 4, 5, 8), normal(generator, 2, 4, 5, 2)
    bias = normal(generator, *shape)
    out = attention(q, k, v, causal=causal, bias=bias)
    scores = q @ k.mT / math.sqrt(8) + bias
    torch.testing.assert_close(out, attention_from_scores(scores, v, causal=causal))


@masks
def test_a_bias_is_left_as_it_was_and_learns(causal, generator):
    q, k, v = normal(generator, 3, 2, 4, 8)
    bias = normal(generator, 2, 4, 4)
    before = bias.clone()
    attention(q, k, v, causal=causal, bias=bias)
    assert torch.equal(bias, before)
    bias.requires_grad_()
    attention(q, k, v, causal=causal, bias=bias)[:, 1, 0].sum().backward()
    assert (bias.grad[:, 1, :2] != 0).all()
    assert (bias.grad[:, 1, 2:] == 0).all() == causal


def test_a_query_that_sees_no_key_gets_zeros(generator):
    """Left padding: the first key is hidden, so the first query has none; what it gets does not harm the gradients."""
    q = normal(generator, 1, 4, 8).requires_grad_()
    bias = torch.zeros(4, 4)
    bias[:, 0] = -math.inf
    out = attention(q, q, q, causal=True, bias=bias)
    assert (out[:, 0] == 0).all()
    torch.testing.assert_close(out[:, 1:], attention(q[:, 1:], q[:, 1:], q[:, 1:], causal=True))
    out.sum().backward()
    assert q.grad.isfinite().all()


@pytest.mark.parametrize("causal", [True, False])
def test_all_derivatives_with_the_kernel_that_has_them(causal, generator):
    """As the reference says: torch's fused kernels have first derivatives alone, and backwards."""
    q, k, v = (normal(generator, heads, 3, 4).requires_grad_() for heads in (2, 1, 1))
    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(lambda *qkv: attention(*qkv, causal=causal), (q, k, v))
        assert torch.autograd.gradcheck(lambda q: attention(q, k, v, causal=causal), q, check_forward_ad=True)


def test_the_scale_is_used(generator):
    q, k, v = (normal(generator, 2, 5, 4) for _ in range(3))
    expected = attention_from_scores(0.3 * q @ k.mT, v, causal=True)
    torch.testing.assert_close(attention(q, k, v, causal=True, scale=0.3), expected)


Q = torch.zeros(1, 4, 5, 8)
NEEDED = r"; needed are \(..., heads, q_len, head_dim\)"
NEEDED_SCORES = r"they must be \(..., q_len, k_len\) and \(..., k_len, value_dim\)"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: attention(Q, Q[..., :4], Q, causal=False), r"k \(1, 4, 5, 4\).*" + NEEDED),
        (lambda: attention(Q, Q, Q[..., :3, :], causal=False), r"v \(1, 4, 3, 8\)" + NEEDED),
        (lambda: attention(Q, Q, Q[:, :2], causal=False), r"v \(1, 2, 5, 8\)" + NEEDED),
        (lambda: attention(Q, Q, Q.expand(2, 4, 5, 8), causal=False), r"v \(2, 4, 5, 8\)" + NEEDED),
        (lambda: attention(Q, *[Q.expand(2, 4, 5, 8)] * 2, causal=False), r"k \(2, 4, .* axes in front must be equal"),
        (lambda: attention(Q[0], Q, Q, causal=False), r"^q has shape \(4, 5, 8\)" + ".*" + NEEDED),
        (lambda: attention(Q[0, 0], Q[0, 0], Q[0, 0], causal=False), NEEDED),
        (lambda: attention(Q[0], Q[0, 0], Q[0, 0], causal=False), NEEDED),
        (lambda: attention(Q, Q[:, :3], Q[:, :3], causal=False), "heads, 4, must be a multiple of kv_heads, 3"),
        (lambda: attention(Q, Q[:, :0], Q[:, :0], causal=False), "heads, 4, must be a multiple of kv_heads, 0"),
        (
            lambda: attention(Q, Q[:, :, :2], Q[:, :, :2], causal=True),
            "If 5 and 2 are .* transpose .*is the cache lost",
        ),
        (lambda: attention_from_scores(Q, Q, causal=False), NEEDED_SCORES),
        (lambda: attention_from_scores(Q[0, 0, 0], Q, causal=False), NEEDED_SCORES),
        (lambda: attention_from_scores(Q[0, 0, :, :5], Q[0, 0, 0], causal=False), NEEDED_SCORES),
        (lambda: attention_from_scores(Q.mT, Q, causal=True), "must not have more queries than keys"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 3), (2, 4, 5, 3), (1, 1, 4, 5, 3)])
def test_a_bias_of_another_shape_is_named(shape):
    text = f"bias has shape {shape}; it must broadcast to the scores, (1, 4, 5, 3)"
    with pytest.raises(ValueError, match=re.escape(text)):
        attention(Q, Q[:, :, :3], Q[:, :, :3], causal=False, bias=torch.zeros(shape))


def test_scores_that_show_no_key_have_no_answer():
    """As the docstring says, and unlike `attention`."""
    scores = torch.tensor([[-math.inf, -math.inf], [0.0, -math.inf]])
    found = attention_from_scores(scores, torch.ones(2, 1), causal=False)
    assert found.isnan().flatten().tolist() == [True, False]


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.complex64])
def test_a_mask_is_no_bias(dtype):
    with pytest.raises(TypeError, match=rf"^bias has dtype {dtype}; it is added to scores \(a mask\? use 0 and -inf"):
        attention(Q, Q, Q, causal=False, bias=torch.ones(5, 5, dtype=dtype))


def test_devices_must_be_equal():
    q = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=r"^q, k, v are on cpu, meta, meta; they must share a device"):
        attention(q, q.to("meta"), q.to("meta"), causal=True)


def test_dtypes_must_be_equal_and_floating_point():
    others = ((Q.to(dtype),) * 3 for dtype in (torch.int64, torch.float8_e4m3fn))
    for q, k, v in ((Q, Q.double(), Q), (Q, Q, Q.double()), (Q.double(), Q, Q), *others):
        with pytest.raises(TypeError, match=rf"^q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}; they must be"):
            attention(q, k, v, causal=False)
    for scores, v in ((Q.long(), Q.mT.long()), (Q.bfloat16(), Q.mT)):
        with pytest.raises(TypeError, match=rf"^scores, v have dtypes {scores.dtype}, {v.dtype}; they must be"):
            attention_from_scores(scores, v, causal=False)


def test_what_is_no_tensor_is_named():
    wrong = Q.tolist()
    for call, name in (
        (lambda: attention(wrong, Q, Q, causal=False), "q"),
        (lambda: attention(Q, Q, wrong, causal=False), "v"),
        (lambda: attention(Q, Q, Q, causal=False, bias=wrong), "bias"),
        (lambda: attention_from_scores(Q.mT, wrong, causal=False), "v"),
    ):
        with pytest.raises(TypeError, match=f"^{name} is a list; it must be a tensor"):
            call()


@pytest.mark.parametrize("shape", [(1, 2, 6, 64), (2, 6, 4), (2, 3, 2, 6, 16)])
@pytest.mark.parametrize("scale", [0.0, -0.0, -0.5])
def test_a_scale_that_is_not_positive_is_as_good_as_any(shape, scale, generator):
    """torch's causal kernel has NaN for it, where there are heads and batches."""
    q, k, v = (torch.randn(shape, generator=generator, requires_grad=True) for _ in range(3))
    expected = attention_from_scores(scale * q @ k.mT, v, causal=True)
    found = attention(q, k, v, causal=True, scale=scale)
    torch.testing.assert_close(found, expected)
    away = torch.randn(shape, generator=generator)
    gradients = (torch.autograd.grad((one * away).sum(), (q, k, v)) for one in (found, expected))
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-5)
