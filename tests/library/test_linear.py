import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.linear import Rotation, State, elu_plus_one, linear_attention, linear_attention_step
from rope_lib.theory import reference
from tests import oracles
from tests.conftest import OF_NEW_COMPILERS


@pytest.fixture(autouse=True)
def short_segments(monkeypatch):
    """So that short texts have several."""
    monkeypatch.setattr("rope_lib.linear.SEGMENT", 4)


FORMS = {"plain": None, "numerator": False, "both": True}  # is the denominator rotated? None: nothing is
forms = pytest.mark.parametrize("denominator", FORMS.values(), ids=FORMS)
rotated_forms = pytest.mark.parametrize("denominator", [False, True], ids=["numerator", "both"])
decays = pytest.mark.parametrize("decay", [None, 0.9])
layouts = pytest.mark.parametrize("interleaved", [True, False])


def inputs(generator, length=37, heads=2, dim=6, value_dim=5):
    q, k = torch.randn(2, heads, length, dim, generator=generator, dtype=torch.float64)
    return q, k, torch.randn(heads, length, value_dim, generator=generator, dtype=torch.float64)


def rotation(denominator, positions, dim=6, *, interleaved=True):
    if denominator is None:
        return None
    tables = cos_sin(positions, inverse_frequencies(dim), dtype=torch.float64)
    return Rotation(*tables, interleaved=interleaved, denominator=denominator)


def feature(x):
    return x + 1 if x > 0 else math.exp(x)


def loop_over_heads(q, k, v, *, denominator, feature_map=feature, interleaved=True, decay=None, **settings):
    rows = [
        oracles.linear_attention(
            *(x.tolist() for x in head),
            feature_map=feature_map,
            rotated=denominator is not None,
            denominator=bool(denominator),
            interleaved=interleaved,
            decay=1.0 if decay is None else decay,
            **settings,
        )
        for head in zip(q, k, v, strict=True)
    ]
    return torch.tensor(rows, dtype=torch.float64)


@forms
@layouts
@pytest.mark.parametrize(("causal", "decay"), [(False, None), (True, None), (True, 0.9), (True, 1), (True, 1e-3)])
def test_the_fast_form_is_the_plain_loop(denominator, interleaved, causal, decay, generator):
    """Chunks of 2 make several segments. A rotated denominator can be small, hence more than rounding of sums."""
    q, k, v = inputs(generator)
    turn = rotation(denominator, torch.arange(37), interleaved=interleaved)
    loop = loop_over_heads(q, k, v, denominator=denominator, interleaved=interleaved, causal=causal, decay=decay)
    for chunk_size in (2, 8, 128):
        fast = linear_attention(q, k, v, causal=causal, decay=decay, chunk_size=chunk_size, rotation=turn)
        torch.testing.assert_close(fast, loop, rtol=1e-9, atol=1e-9)


@forms
@decays
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 37])
def test_chunks_change_nothing(denominator, decay, length, generator):
    q, k, v = inputs(generator, length)
    turn = rotation(denominator, torch.arange(length))
    whole, chunks = (
        linear_attention(q, k, v, causal=True, decay=decay, chunk_size=size, rotation=turn) for size in (1000, 8)
    )
    assert whole.shape == v.shape
    torch.testing.assert_close(whole, chunks, rtol=1e-9, atol=1e-9)


@forms
@decays
@layouts
@pytest.mark.parametrize("sizes", [[1] * 12, [5, 0, 6, 1]], ids=["token by token", "in blocks"])
def test_steps_give_the_whole(denominator, decay, interleaved, sizes, generator):
    q, k, v = inputs(generator, 12)
    settings = {"decay": decay, "feature_map": lambda x: elu_plus_one(x) ** 2}
    turn = rotation(denominator, torch.arange(12), interleaved=interleaved)
    whole = linear_attention(q, k, v, causal=True, rotation=turn, **settings)
    state, outputs, start = None, [], 0
    for size in sizes:
        now = slice(start, start + size)
        turn = rotation(denominator, torch.arange(12)[now], interleaved=interleaved)
        output, state = linear_attention_step(
            state, q[:, now], k[:, now], v[:, now], rotation=turn, chunk_size=2, **settings
        )
        outputs.append(output)
        start += size
    torch.testing.assert_close(torch.cat(outputs, dim=-2), whole, rtol=1e-9, atol=1e-9)


@forms
@decays
def test_the_state_is_two_sums(denominator, decay, generator):
    q, k, v = inputs(generator, 11, heads=1)
    turn = rotation(denominator, torch.arange(11))
    _, state = linear_attention_step(None, q, k, v, rotation=turn, decay=decay, chunk_size=4)
    values, normalizer = torch.zeros(6, 5, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    for j in range(11):
        plain = [feature(x) for x in k[0, j].tolist()]
        turned = plain if denominator is None else reference.rotate(plain, j, interleaved=True)
        kept = (decay or 1.0) ** (10 - j)
        values += kept * torch.outer(torch.tensor(turned, dtype=torch.float64), v[0, j])
        normalizer += kept * torch.tensor(turned if denominator else plain, dtype=torch.float64)
    torch.testing.assert_close(state.values[0], values, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state.normalizer[0], normalizer, rtol=1e-12, atol=1e-12)


@forms
@decays
def test_causality_is_exact(denominator, decay, generator):
    q, k, v = inputs(generator)
    settings = {"causal": True, "decay": decay, "chunk_size": 8, "rotation": rotation(denominator, torch.arange(37))}
    before = linear_attention(q, k, v, **settings)
    q[:, 20], k[:, 20], v[:, 20] = 3.0, -2.0, 7.0
    after = linear_attention(q, k, v, **settings)
    assert torch.equal(before[:, :20], after[:, :20])
    assert not torch.equal(before[:, 20:], after[:, 20:])


@rotated_forms
def test_rotated_features_are_relative_and_features_of_rotated_vectors_are_not(denominator, generator):
    q, k, v = inputs(generator, 10)
    here, there = (
        linear_attention(q, k, v, causal=True, rotation=rotation(denominator, torch.arange(10) + shift))
        for shift in (0, 500)
    )
    torch.testing.assert_close(here, there, rtol=1e-8, atol=1e-8)
    wrong = []
    for shift in (0, 500):
        tables = cos_sin(torch.arange(10) + shift, inverse_frequencies(6), dtype=torch.float64)
        turned = (apply_rotary_emb(x, *tables, interleaved=True) for x in (q, k))
        wrong.append(linear_attention(*turned, v, causal=True))
    assert (wrong[0] - wrong[1]).abs().max() > 0.01


@rotated_forms
@pytest.mark.parametrize("causal", [True, False])
def test_each_row_of_a_batch_may_have_positions_of_its_own(denominator, causal, generator):
    q, k, v = (torch.stack((x, 2 * x)) for x in inputs(generator, 9))
    starts = torch.arange(9), torch.arange(9) + 50
    turn = rotation(denominator, torch.stack(starts)[:, None])
    together = linear_attention(q, k, v, causal=causal, rotation=turn, chunk_size=2)
    for row, positions in enumerate(starts):
        settings = {"causal": causal, "rotation": rotation(denominator, positions)}
        alone = linear_attention(q[row], k[row], v[row], **settings)
        torch.testing.assert_close(together[row], alone, rtol=1e-9, atol=1e-9)


@forms
@pytest.mark.parametrize("causal", [True, False])
def test_features_may_be_more_than_dimensions(denominator, causal, generator):
    """The tables then turn the features, and are as wide as these."""

    def wide(x):
        return torch.cat((x, -x), dim=-1).exp()

    q, k, v = inputs(generator)
    settings = {"causal": causal, "chunk_size": 4, "rotation": rotation(denominator, torch.arange(37), 12)}
    made_inside = linear_attention(q, k, v, feature_map=wide, **settings)
    made_before = linear_attention(wide(q), wide(k), v, feature_map=lambda x: x, **settings)
    torch.testing.assert_close(made_inside, made_before, rtol=1e-12, atol=1e-12)


@decays
@pytest.mark.parametrize("chunk", [1, 4, 9, 100])
def test_weighted_sums_are_the_loop(chunk, decay, generator):
    """Decays to float64's precision: nothing of the loop's is rounded on the way."""
    q, k, v = (x[0] for x in inputs(generator, 9, heads=1))
    decay = decay or 1.0
    loop = [
        [
            sum(decay ** (i - j) * oracles.dot(q[i].tolist(), k[j].tolist()) * v[j, c].item() for j in range(i + 1))
            for c in range(5)
        ]
        for i in range(9)
    ]
    sums = oracles.weighted_sums(q, k, v, chunk=chunk, decay=decay)
    torch.testing.assert_close(sums, torch.tensor(loop, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@forms
@decays
def test_linear_attention_is_a_ratio_of_weighted_sums(denominator, decay, generator):
    q, k, v = (x[0] for x in inputs(generator, heads=1))
    turn = rotation(denominator, torch.arange(37))
    plain = elu_plus_one(q), elu_plus_one(k)
    turned = plain if turn is None else [apply_rotary_emb(x, *turn[:2], interleaved=True) for x in plain]
    settings = {"chunk": 7, "decay": decay or 1.0}
    numerator = oracles.weighted_sums(*turned, v, **settings)
    normalizer = oracles.weighted_sums(*(turned if denominator else plain), torch.ones_like(v[:, :1]), **settings)
    ours = linear_attention(q, k, v, causal=True, rotation=turn, decay=decay, chunk_size=5)
    torch.testing.assert_close(ours * normalizer, numerator, rtol=1e-9, atol=1e-9)


@forms
@decays
def test_gradients(denominator, decay, generator):
    q, k, v = (x.requires_grad_() for x in inputs(generator, 5, heads=1, dim=4, value_dim=2))
    settings = {"causal": True, "decay": decay, "chunk_size": 2, "rotation": rotation(denominator, torch.arange(5), 4)}
    if denominator:  # keep it away from zero
        settings["feature_map"] = lambda x: x.square() + 3
    assert torch.autograd.gradcheck(lambda *x: linear_attention(*x, **settings), (q, k, v), fast_mode=True)


@decays
@pytest.mark.parametrize("learned", ["q", "k", "v", "cos", "sin"])
def test_gradients_reach_whatever_wants_one(decay, learned, generator):
    """Also if nothing else does, and through the state to the tokens before."""
    q, k, v = inputs(generator, 24)
    cos, sin, *form = rotation(False, torch.arange(24))
    tensors = {"q": q, "k": k, "v": v, "cos": cos, "sin": sin}

    def loss(x):
        state, total = None, 0
        for now in (slice(0, 4), slice(4, 24)):
            q, k, v, *tables = (t[..., now, :] for t in (tensors | {learned: x}).values())
            settings = {"rotation": Rotation(*tables, *form), "decay": decay, "chunk_size": 2}
            output, state = linear_attention_step(state, q, k, v, **settings)
            total = total + output.square().sum()
        return total

    x = tensors[learned].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x), x)
    direction = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    step = 1e-6 * direction
    with torch.no_grad():
        slope = (loss(x + step) - loss(x - step)) / 2e-6  # good to some 1e-10 / 1e-6
    assert (gradient * direction).sum().item() == pytest.approx(slope.item(), rel=1e-4)


class Cost(TorchDispatchMode):
    """Counts the elements of whatever torch returns, operation by operation."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **kwargs or {})
        self.elements += sum(x.numel() for x in tree_leaves(results) if isinstance(x, torch.Tensor))
        return results


def cost(function, *tensors, **settings):
    with Cost() as counter:
        function(*tensors, **settings)
    return counter.elements


def whole_and_back(q, k, v, **settings):
    output = linear_attention(q, k, v, causal=True, **settings)
    if output.requires_grad:
        output.sum().backward()


@decays
@pytest.mark.parametrize("learned", [(), (0, 1, 2), (2,)], ids=["nothing", "all", "values only"])
def test_cost_is_linear_in_the_length(decay, learned, generator):
    """Forward and backward: each further segment of the text costs as much as the one before."""
    costs = []
    for length in (32, 64, 128):
        tensors = inputs(generator, length, heads=1)
        for index in learned:
            tensors[index].requires_grad_()
        settings = {"rotation": rotation(False, torch.arange(length)), "decay": decay, "chunk_size": 2}
        costs.append(cost(whole_and_back, *tensors, **settings))
    assert costs[2] - costs[1] == 2 * (costs[1] - costs[0])


@decays
def test_a_step_of_many_tokens_costs_what_the_whole_does(decay, generator):
    """Its chunks are as small: with larger ones the matrix of weights inside of each grows."""
    q, k, v = inputs(generator, 64)
    small, large = ({"decay": decay, "chunk_size": size} for size in (2, 64))
    step = cost(linear_attention_step, None, q, k, v, **small)
    assert step == cost(whole_and_back, q, k, v, **small)
    assert step < cost(whole_and_back, q, k, v, **large)


@OF_NEW_COMPILERS  # older torch counts more of them
@decays
@pytest.mark.parametrize("length", [1, 15, 17, 31, 33, 47, 255, 257, 300])
def test_a_rest_costs_no_more_than_a_chunk(decay, length, generator):
    """But for the matrices of decays of its own, seven operations for values and seven for weights, and for joining."""
    chunk = 16
    next_multiple = -(-length // chunk) * chunk
    q, k, v = inputs(generator, next_multiple, heads=1)
    settings = {"decay": decay, "chunk_size": chunk}
    part = cost(whole_and_back, q[..., :length, :], k[..., :length, :], v[..., :length, :], **settings)
    join = 2 * v.numel() + 4 * q.shape[-1] * (v.shape[-1] + 1) + 14 * chunk**2
    assert part <= cost(whole_and_back, q, k, v, **settings) + join


@decays
def test_result_is_the_same_however_it_is_asked_for(decay, generator):
    """With and without derivatives the segments are put together in different ways."""
    q, k, v = inputs(generator)
    settings = {"causal": True, "decay": decay, "chunk_size": 2, "rotation": rotation(False, torch.arange(37))}

    def attend(q):
        return linear_attention(q, k, v, **settings)

    plain, tracked = attend(q), attend(q.clone().requires_grad_())
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


def test_a_result_of_megabytes_is_the_same_inside_of_vmap_and_jvp(generator):
    q, k, v, away = torch.randn(4, 2**14, 64, generator=generator)

    def attend(q):
        return linear_attention(q, k, v, causal=True)

    plain = attend(q)
    assert plain.nbytes == 2**22
    torch.testing.assert_close(torch.vmap(attend)(q[None])[0], plain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.func.jvp(attend, (q,), (away,))[0], plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chunk_size", [8, 128])
def test_weights_without_rotation_are_an_average(chunk_size, generator):
    q, k, v = inputs(generator)
    out = linear_attention(q, k, torch.ones_like(v), causal=True, chunk_size=chunk_size)
    torch.testing.assert_close(out, torch.ones_like(v), rtol=1e-12, atol=0)


def test_features_are_those_of_the_paper():
    x = torch.tensor([-30.0, -2.0, -1e-3, 0.0, 1e-3, 5.0, 1e6], dtype=torch.float64)
    assert elu_plus_one(x).tolist() == pytest.approx([feature(y) for y in x.tolist()], rel=1e-15, abs=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_features_are_positive_and_have_gradients(dtype):
    x = torch.tensor([-1e30, -200, -87.5, -18, 0, 3, 1e30], dtype=dtype, requires_grad=True)
    features = elu_plus_one(x)
    assert features.dtype == dtype
    assert (features > 0).all()
    features.sum().backward()
    assert x.grad.isfinite().all()
    assert x.grad[4:].tolist() == [1, 1, 1]
    assert x.grad[3].item() == pytest.approx(math.exp(-18), rel=4 * torch.finfo(dtype).eps, abs=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("low", [-18.0, -200.0, -6e4])
def test_very_negative_inputs_still_average(dtype, causal, low, generator):
    """The product of two very small features is a weight: it must not be zero either."""
    q = torch.full((1, 9, 4), low, dtype=dtype)
    v = torch.randn(1, 9, 2, generator=generator).to(dtype)
    out = linear_attention(q, q, v, causal=causal, chunk_size=2)
    counts = torch.arange(1, 10)[:, None] if causal else 9
    mean = (v.double().cumsum(-2) if causal else v.double().sum(-2, keepdim=True).expand(1, 9, 2)) / counts
    few = 8 * torch.finfo(dtype).eps  # a sum of at most nine, and one rounding
    torch.testing.assert_close(out.double(), mean, rtol=few, atol=few)


@decays
@pytest.mark.parametrize("denominator", [None, False], ids=["plain", "numerator"])  # a rotated one is near 0 at times
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_long_sums_of_half_precision(denominator, decay, dtype, generator):
    """In bfloat16 a sum stops growing after 256 equal steps, in float16 it overflows at 65504."""
    length = 1024
    q, k, v = (x.to(dtype) for x in torch.randn(3, 1, length, 16, generator=generator))
    q, k = q.abs() + 2, k.abs() + 2
    settings = {"rotation": rotation(denominator, torch.arange(length), 16), "decay": decay}
    close = {"rtol": torch.finfo(dtype).eps, "atol": 1e-4}  # one rounding, and float32's of 1024 terms
    exact = linear_attention(q.double(), k.double(), v.double(), causal=True, **settings)
    got = linear_attention(q, k, v, causal=True, **settings)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), exact, **close)
    state, outputs = None, []
    for part in range(0, length, 64):
        turn = rotation(denominator, torch.arange(part, part + 64), 16)
        token = (x[:, part : part + 64] for x in (q, k, v))
        output, state = linear_attention_step(state, *token, rotation=turn, decay=decay)
        outputs.append(output)
    assert state.values.dtype == state.normalizer.dtype == torch.float32
    assert output.dtype == dtype
    torch.testing.assert_close(torch.cat(outputs, -2).double(), exact, **close)
    if decay is None:
        whole = linear_attention(q, k, v, causal=False, **settings)
        assert whole.dtype == dtype
        exact = linear_attention(q.double(), k.double(), v.double(), causal=False, **settings)
        torch.testing.assert_close(whole.double(), exact, **close)


def test_decay_in_half_precision_does_not_depend_on_the_chunks(generator):
    q, k, v = torch.randn(3, 1, 1024, 8, generator=generator).bfloat16()
    small, large = (linear_attention(q, k, v, causal=True, decay=0.99, chunk_size=size) for size in (64, 512))
    torch.testing.assert_close(small, large, rtol=torch.finfo(torch.bfloat16).eps, atol=1e-4)


@decays
def test_values_of_no_width_give_outputs_of_no_width(decay, generator):
    """The other sum of the state is what it was."""
    q, k, v = inputs(generator, 5)
    _, expected = linear_attention_step(None, q, k, v, decay=decay)
    output, state = linear_attention_step(None, q, k, v[..., :0], decay=decay)
    assert output.shape == (2, 5, 0)
    assert state.values.shape == (2, 6, 0)
    assert torch.equal(state.normalizer, expected.normalizer)


def all_ways(q, k, v, **settings):
    """The calls that share their arguments: the whole, causal and not, and a step."""
    ways = [lambda: linear_attention(q, k, v, causal=True, **settings)]
    if "decay" not in settings:
        ways.append(lambda: linear_attention(q, k, v, causal=False, **settings))
    return [*ways, lambda: linear_attention_step(None, q, k, v, **settings)]


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"decay": 1.5}, ValueError, "^decay is 1.5; .* above 0 and of at most 1 .one for all heads.$"),
        ({"decay": 0}, ValueError, "^decay is 0; it must be a finite number above 0"),
        ({"decay": math.nan}, ValueError, "^decay is nan;"),
        ({"decay": torch.tensor([0.5, 0.9])}, TypeError, "^decay is tensor"),
        ({"chunk_size": 0}, ValueError, "^chunk_size is 0; it must be a finite number of at least 1"),
        ({"chunk_size": 2.5}, TypeError, "^chunk_size is 2.5; it must be an int"),
        ({"rotation": rotation(True, torch.arange(30))}, ValueError, "^seq_len of q is 37, of cos 30"),
        ({"rotation": rotation(True, torch.arange(40))}, ValueError, "^seq_len of q is 37, of cos 40"),
        (
            {"rotation": rotation(False, torch.arange(37), 4)},
            ValueError,
            "^feature_map makes 6 features, and cos has 2 columns; it must have a column for every two features",
        ),
        (
            {"rotation": rotation(False, torch.arange(37), 8)},
            ValueError,
            "^feature_map makes 6 features, and cos has 4 columns",
        ),
        (
            {"rotation": rotation(False, torch.arange(37), interleaved=None)},
            TypeError,
            "^interleaved is None; it must be True",
        ),
        (
            {"rotation": Rotation(*torch.ones(2, 37, 3).bfloat16(), interleaved=True, denominator=True)},
            TypeError,
            r"^cos and sin have dtypes torch\.bfloat16",
        ),
        (
            {"rotation": torch.ones(2, 37, 3).unbind()},
            TypeError,
            "^rotation is a tuple; it must be a rope_lib.linear.Rotation",
        ),
        (
            {"rotation": Rotation(*torch.ones(2, 37, 3), interleaved=True, denominator=None)},
            TypeError,
            "^denominator of rotation is None; it must be True or False",
        ),
        (
            {"rotation": Rotation(None, None, True, True)},
            TypeError,
            "^cos of rotation is a NoneType; it must be a tensor",
        ),
        ({"feature_map": torch.nn.ReLU}, TypeError, "^the result of feature_map is a ReLU; it must be a tensor"),
    ],
)
def test_errors_of_settings(settings, error, text, generator):
    for call in all_ways(*inputs(generator), **settings):
        with pytest.raises(error, match=text):
            call()


def test_decay_looks_back():
    q = torch.zeros(1, 3, 2)
    with pytest.raises(ValueError, match=r"^decay is 0\.5 and causal False; .* it needs causal=True"):
        linear_attention(q, q, q, causal=False, decay=0.5)


def test_unequal_shapes_and_dtypes_are_named(generator):
    q, k, v = inputs(generator)
    heads = r" \(fewer heads of k and v\? repeat them with .*"
    for end, *tensors in (
        (heads, q, k[:1], v[:1]),
        (heads, q, k, v[:1]),
        ("", q[0, 0], k[0, 0], v[0, 0]),
        ("", q, k, v[:, :3]),
    ):
        for call in all_ways(*tensors):
            with pytest.raises(ValueError, match=rf"^q has shape .*\(\.\.\., seq_len, value_dim\){end}$"):
                call()
    others = ([x.to(dtype) for x in (q, k, v)] for dtype in (torch.int64, torch.complex64, torch.float8_e4m3fn))
    for tensors in ((q, k, v.float()), (q, k.float(), v), (q.float(), k, v), *others):
        for call in all_ways(*tensors):
            with pytest.raises(TypeError, match=rf"^q, k, v have dtypes {tensors[0].dtype}, {tensors[1].dtype}, "):
                call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_does_not_reach_the_sums(dtype, generator):
    """In bfloat16 a sum of ones stops growing at 256."""
    q, k, v = (x.to(dtype) for x in inputs(generator, 600))
    plain, kept = linear_attention_step(None, q, k, v)
    whole = [linear_attention(q, k, v, causal=causal) for causal in (True, False)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, state = linear_attention_step(None, q, k, v)
        for causal, expected in zip((True, False), whole, strict=True):
            assert torch.equal(linear_attention(q, k, v, causal=causal), expected)
    assert torch.equal(found, plain)
    assert all(torch.equal(a, b) for a, b in zip(state, kept, strict=True))
    assert state.values.dtype is torch.float32


def test_a_state_of_other_tokens_is_named(generator):
    q, k, v = inputs(generator, 4)
    _, state = linear_attention_step(None, q, k, v)
    for wrong in (tuple(state), list(state)):
        with pytest.raises(TypeError, match=rf"^state is a {type(wrong).__name__}; it must be the State that"):
            linear_attention_step(wrong, q, k, v)
    for change, error, text in (
        (
            torch.Tensor.half,
            TypeError,
            r"^state\.values is torch\.float16; for q in torch\.float64 it must be torch\.float64",
        ),
        (lambda x: x.to("meta"), ValueError, r"^state\.values is on meta, q on cpu; they must share a device"),
        (torch.Tensor.numpy, TypeError, r"^state\.values is a ndarray; it must be a tensor"),
    ):
        with pytest.raises(error, match=text):
            linear_attention_step(State(*(change(part) for part in state)), q, k, v)
        with pytest.raises(error, match=text.replace("values", "normalizer")):
            linear_attention_step(State(state.values, change(state.normalizer)), q, k, v)
    half, kept = q.bfloat16(), State(*(part.bfloat16() for part in state))
    with pytest.raises(TypeError, match=r"^state\.values is torch\.bfloat16; .* it must be torch\.float32"):
        linear_attention_step(kept, half, half, v.bfloat16())
    text = r"^state has shapes .* they must be \(\(2, 6, 5\), \(2, 6\)\) \(is it of another batch\?\)"
    for wrong in (
        State(state.values[:1], state.normalizer[:1]),  # one head of two would broadcast
        State(state.values, state.normalizer[:1]),
        State(state.values[..., :4], state.normalizer),
        State(state.normalizer, state.values),
    ):
        with pytest.raises(ValueError, match=text):
            linear_attention_step(wrong, q, k, v)


def test_features_end_where_their_products_can_be_held():
    x = torch.tensor([-39.0, -40.0, -41.0, -1000.0, -math.inf], dtype=torch.float64)
    torch.testing.assert_close(elu_plus_one(x), x.clamp(min=-40).exp(), rtol=1e-15, atol=0)


def test_a_state_of_no_words_yet_is_used(generator):
    """Its values are zero and its sums are not, as after words whose values were zero."""
    q, k, v = inputs(generator, 3)
    _, state = linear_attention_step(None, q, k, 0 * v)
    found, _ = linear_attention_step(state, q, k, v)
    before, _ = linear_attention_step(None, q, k, v)
    assert (found.abs() < before.abs()).all()


@pytest.mark.parametrize(("writes", "makes"), [(torch.exp_, torch.exp), (torch.nn.ReLU(inplace=True), torch.relu)])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_a_feature_map_that_writes_does_not_reach_the_caller(writes, makes, grad, causal, generator):
    x = torch.randn(2, 300, 4, generator=generator).requires_grad_(grad)
    before = x.detach().clone()
    got = linear_attention(x, x, x, causal=causal, feature_map=writes)
    assert torch.equal(x, before)
    expected = linear_attention(x, x, x, causal=causal, feature_map=makes)
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)  # relu: a denominator can be zero


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_it_can_be_traced_where_gradients_are_wanted(generator):
    """The check of a trace runs without gradients: what is recorded may not depend on them."""

    class Layer(torch.nn.Linear):
        def forward(self, x):
            return linear_attention(super().forward(x), x, x, causal=True)

    layer = Layer(4, 4)
    x = torch.randn(1, 200, 4, generator=generator).requires_grad_()
    traced = torch.jit.trace(layer, x)
    assert torch.equal(traced(x), layer(x))
    gradients = [torch.autograd.grad(call(x).sum(), x)[0] for call in (traced, layer)]
    torch.testing.assert_close(*gradients)
