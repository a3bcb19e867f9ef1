import math

import pytest
import torch

from rope_lib import cos_sin, inverse_frequencies, reference
from rope_lib.linear_attention import elu_plus_one, linear_attention, linear_attention_step

forms = pytest.mark.parametrize("rotate", ["none", "both", "numerator"])
decays = pytest.mark.parametrize("decay", [None, 0.9])


def inputs(generator, length=37, heads=2, dim=6, value_dim=5):
    q, k = torch.randn(2, heads, length, dim, generator=generator, dtype=torch.float64)
    return q, k, torch.randn(heads, length, value_dim, generator=generator, dtype=torch.float64)


def rotation(rotate, positions, dim=6):
    if rotate == "none":
        return {"rotate": rotate}
    cos, sin = cos_sin(positions, inverse_frequencies(dim), dtype=torch.float64)
    return {"rotate": rotate, "cos": cos, "sin": sin, "interleaved": True}


def feature(x):
    return x + 1 if x > 0 else math.exp(x)


@forms
@pytest.mark.parametrize(("causal", "decay"), [(False, None), (True, None), (True, 0.9)])
def test_the_fast_form_is_the_plain_loop(rotate, causal, decay, generator):
    q, k, v = inputs(generator)
    settings = rotation(rotate, torch.arange(37))
    fast = linear_attention(q, k, v, causal=causal, decay=decay, chunk_size=8, **settings)
    for head in range(2):
        loop = reference.linear_attention(
            q[head].tolist(),
            k[head].tolist(),
            v[head].tolist(),
            feature_map=feature,
            causal=causal,
            rotate=rotate,
            interleaved=True,
            decay=1.0 if decay is None else decay,
        )
        torch.testing.assert_close(fast[head], torch.tensor(loop, dtype=torch.float64), rtol=1e-9, atol=1e-9)


@forms
@decays
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 37])
def test_chunks_change_nothing(rotate, decay, length, generator):
    q, k, v = inputs(generator, length)
    settings = rotation(rotate, torch.arange(length))
    whole, chunks = (
        linear_attention(q, k, v, causal=True, decay=decay, chunk_size=size, **settings) for size in (1000, 8)
    )
    assert whole.shape == v.shape
    torch.testing.assert_close(whole, chunks, rtol=1e-9, atol=1e-9)


@forms
@decays
def test_steps_give_the_whole(rotate, decay, generator):
    q, k, v = inputs(generator, 12)
    whole = linear_attention(q, k, v, causal=True, decay=decay, **rotation(rotate, torch.arange(12)))
    state, outputs = None, []
    for m in range(12):
        token = (x[:, m : m + 1] for x in (q, k, v))
        output, state = linear_attention_step(state, *token, decay=decay, **rotation(rotate, torch.tensor([m])))
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=-2), whole, rtol=1e-9, atol=1e-9)


@forms
@decays
def test_causality_is_exact(rotate, decay, generator):
    q, k, v = inputs(generator)
    settings = dict(causal=True, decay=decay, chunk_size=8, **rotation(rotate, torch.arange(37)))
    before = linear_attention(q, k, v, **settings)
    q[:, 20], k[:, 20], v[:, 20] = 3.0, -2.0, 7.0
    after = linear_attention(q, k, v, **settings)
    assert torch.equal(before[:, :20], after[:, :20])
    assert not torch.equal(before[:, 20:], after[:, 20:])


@pytest.mark.parametrize("rotate", ["both", "numerator"])
def test_rotated_features_are_relative_and_features_of_rotated_vectors_are_not(rotate, generator):
    q, k, v = inputs(generator, 10)
    here, there = (
        linear_attention(q, k, v, causal=True, **rotation(rotate, torch.arange(10) + shift)) for shift in (0, 500)
    )
    torch.testing.assert_close(here, there, rtol=1e-8, atol=1e-8)

    from rope_lib import apply_rotary_emb

    wrong = []
    for shift in (0, 500):
        tables = cos_sin(torch.arange(10) + shift, inverse_frequencies(6), dtype=torch.float64)
        turned = (apply_rotary_emb(x, *tables, interleaved=True) for x in (q, k))
        wrong.append(linear_attention(*turned, v, causal=True))
    assert (wrong[0] - wrong[1]).abs().max() > 0.01


@forms
@decays
def test_gradients(rotate, decay, generator):
    q, k, v = (x.requires_grad_() for x in inputs(generator, 5, heads=1, dim=4, value_dim=2))
    settings = dict(causal=True, decay=decay, chunk_size=2, **rotation(rotate, torch.arange(5), dim=4))
    if rotate == "both":  # keep the denominator away from zero
        settings["feature_map"] = lambda x: x.square() + 3
    assert torch.autograd.gradcheck(lambda *x: linear_attention(*x, **settings), (q, k, v))


@decays
def test_result_is_the_same_however_it_is_asked_for(decay, generator):
    """With and without derivatives the segments are put together in different ways."""
    q, k, v = inputs(generator)
    settings = rotation("numerator", torch.arange(37)) | {"causal": True, "decay": decay, "chunk_size": 2}

    def attend(q):
        return linear_attention(q, k, v, **settings)

    plain, tracked = attend(q), attend(q.clone().requires_grad_())
    assert tracked.grad_fn.name() == "CatBackward0"  # copies into slices would make the backward pass quadratic
    torch.testing.assert_close(plain, tracked.detach(), rtol=0, atol=0)
    with torch.inference_mode():
        torch.testing.assert_close(attend(q), plain, rtol=0, atol=0)
    direction = torch.randn(q.shape, generator=generator, dtype=q.dtype)
    value, derivative = torch.func.jvp(attend, (q,), (direction,))
    step = 1e-5 * direction
    torch.testing.assert_close(value, plain, rtol=0, atol=0)
    torch.testing.assert_close(derivative, (attend(q + step) - attend(q - step)) / 2e-5, rtol=1e-6, atol=1e-6)
    stacked = torch.stack((q, 2 * q))
    torch.testing.assert_close(torch.vmap(attend)(stacked), torch.stack((plain, attend(2 * q))), rtol=1e-9, atol=1e-9)


def test_weights_without_rotation_are_an_average(generator):
    q, k, v = inputs(generator)
    out = linear_attention(q, k, torch.ones_like(v), causal=True, chunk_size=8)
    torch.testing.assert_close(out, torch.ones_like(v), rtol=1e-12, atol=0)
    assert torch.equal(elu_plus_one(torch.tensor([-100.0, 0.0, 2.0])), torch.tensor([0.0, 1.0, 3.0]))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rotate": "q"}, "rotate is 'q'; it must be"),
        ({"rotate": "both"}, "given are none of cos, sin, interleaved"),
        ({"interleaved": True}, "given are \\['interleaved'\\]"),
        ({"decay": 1.5}, r"decay is 1.5 and causal True; decay must be in \(0, 1\]"),
        ({"decay": 0.5, "causal": False}, "decay is 0.5 and causal False"),
        ({"chunk_size": 0}, "chunk_size is 0; it must be a positive number of tokens"),
    ],
)
def test_errors(change, text, generator):
    q, k, v = inputs(generator)
    with pytest.raises(ValueError, match=text):
        linear_attention(q, k, v, **{"causal": True, **change})
    with pytest.raises(ValueError, match=r"v \(2, 3, 5\); they must be"):
        linear_attention(q, k, v[:, :3], causal=True)


@pytest.mark.parametrize("rotate", ["none", "numerator"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_long_sums_of_half_precision(rotate, dtype, generator):
    """In bfloat16 a sum stops growing after 256 equal steps, in float16 it overflows at 65504."""
    length = 4096
    q, k, v = (x.to(dtype) for x in torch.randn(3, 1, length, 16, generator=generator))
    q, k = q.abs() + 2, k.abs() + 2
    settings = rotation(rotate, torch.arange(length), 16)
    exact = linear_attention(q.double(), k.double(), v.double(), causal=True, **settings)
    got = linear_attention(q, k, v, causal=True, **settings)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-4)
    state, outputs = None, []
    for part in range(0, length, 64):
        here = slice(part, part + 64)
        output, state = linear_attention_step(
            state, q[:, here], k[:, here], v[:, here], **rotation(rotate, torch.arange(part, part + 64), 16)
        )
        outputs.append(output)
    assert state.values.dtype == state.normalizer.dtype == torch.float32
    torch.testing.assert_close(torch.cat(outputs, -2).double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-4)
    whole = linear_attention(q, k, v, causal=False, **settings).double()
    exact = linear_attention(q.double(), k.double(), v.double(), causal=False, **settings)
    torch.testing.assert_close(whole, exact, rtol=torch.finfo(dtype).eps, atol=1e-4)


def test_decay_in_half_precision_does_not_depend_on_the_chunks(generator):
    q, k, v = torch.randn(3, 1, 1024, 8, generator=generator).bfloat16()
    small, large = (linear_attention(q, k, v, causal=True, decay=0.99, chunk_size=size) for size in (64, 512))
    torch.testing.assert_close(small, large, rtol=torch.finfo(torch.bfloat16).eps, atol=1e-4)


def test_feature_map_and_layout_are_used(generator):
    q, k, v = inputs(generator)
    plain = linear_attention(q, k, v, causal=True)
    squares = linear_attention(q, k, v, causal=True, feature_map=lambda x: elu_plus_one(x) ** 2)
    by_loop = reference.linear_attention(
        q[0].tolist(),
        k[0].tolist(),
        v[0].tolist(),
        feature_map=lambda x: feature(x) ** 2,
        causal=True,
        rotate="none",
        interleaved=True,
    )
    torch.testing.assert_close(squares[0], torch.tensor(by_loop, dtype=torch.float64))
    assert not torch.allclose(plain, squares)
    other = rotation("numerator", torch.arange(37)) | {"interleaved": False}
    by_loop = reference.linear_attention(
        q[0].tolist(),
        k[0].tolist(),
        v[0].tolist(),
        feature_map=feature,
        causal=True,
        rotate="numerator",
        interleaved=False,
    )
    got = linear_attention(q, k, v, causal=True, **other)
    torch.testing.assert_close(got[0], torch.tensor(by_loop, dtype=torch.float64))


def test_short_tables_are_named(generator):
    q, k, v = inputs(generator)
    for causal in (True, False):
        with pytest.raises(ValueError, match="seq_len of x is 37, of cos 30"):
            linear_attention(q, k, v, causal=causal, **rotation("both", torch.arange(30)))


def test_unequal_shapes_are_named(generator):
    q, k, v = inputs(generator)
    for shapes in ((q, k[:1], v[:1]), (q, k, v[:1]), (q[0, 0], k[0, 0], v[0, 0])):
        with pytest.raises(ValueError, match=r"q has shape .*fewer heads of k and v\? repeat them"):
            linear_attention(*shapes, causal=True)
