import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import forward_ad

from rope_lib import (
    RotaryEmbedding,
    apply_rotary_emb,
    apply_rotary_pos_emb,
    cos_sin,
    inverse_frequencies,
    reference,
    rotary,
    rotation_matrix,
)

layouts = pytest.mark.parametrize("interleaved", [True, False])
numbers = st.floats(-10, 10)


def by_hand(x, cos, sin, interleaved):
    """The formula, pair by pair of dimensions."""
    half = cos.shape[-1]
    out = torch.empty_like(x)
    for i in range(half):
        first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        c, s = cos[..., i], sin[..., i]
        out[..., first] = x[..., first] * c - x[..., second] * s
        out[..., second] = x[..., first] * s + x[..., second] * c
    return out


def tables(positions, dim, dtype=torch.float64):
    return cos_sin(positions, inverse_frequencies(dim), dtype=dtype)


def to_half_split(x):
    """Neighbours (2i, 2i + 1) moved to places i and i + N: the permutation between the two layouts."""
    return x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)


# -- Against the plain loop, by hand, and between the layouts: a reversed rotation passes none of the three ------------


@layouts
@given(st.lists(numbers, min_size=8, max_size=8), st.integers(-10_000, 10_000))
def test_rotation_is_the_plain_loop(interleaved, x, position):
    cos, sin = tables(torch.tensor([position]), 8)
    fast = apply_rotary_emb(torch.tensor([x], dtype=torch.float64), cos, sin, interleaved=interleaved)
    loop = reference.rotate(x, position, interleaved=interleaved)
    assert fast[0].tolist() == pytest.approx(loop, abs=1e-11)


def test_a_quarter_turn_by_hand():
    """Pair 0 by 90 degrees counter-clockwise, (1, 2) -> (-2, 1); pair 1 by 180 degrees, (3, 4) -> (-3, -4)."""
    cos, sin = torch.tensor([[0.0, -1.0]]), torch.tensor([[1.0, 0.0]])
    assert apply_rotary_emb(torch.tensor([[1.0, 2, 3, 4]]), cos, sin, interleaved=True).tolist() == [[-2, 1, -3, -4]]
    assert apply_rotary_emb(torch.tensor([[1.0, 3, 2, 4]]), cos, sin, interleaved=False).tolist() == [[-2, -3, 1, -4]]


def test_the_layouts_are_one_rotation_in_two_orders(generator):
    x = torch.randn(3, 5, 16, generator=generator, dtype=torch.float64)
    cos, sin = tables(torch.arange(5), 16)
    half = apply_rotary_emb(to_half_split(x), cos, sin, interleaved=False)
    interleaved = apply_rotary_emb(x, cos, sin, interleaved=True)
    rounding = 2 * torch.finfo(x.dtype).eps * x.abs().max()  # two products and a sum, fused or not
    torch.testing.assert_close(half, to_half_split(interleaved), rtol=0, atol=rounding.item())


@layouts
@given(
    st.lists(numbers, min_size=6, max_size=6),
    st.lists(numbers, min_size=6, max_size=6),
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.integers(-5000, 5000),
)
def test_scores_depend_on_the_distance_alone(interleaved, q, k, m, n, shift):
    here = reference.score(q, k, m, n, interleaved=interleaved)
    there = reference.score(q, k, m + shift, n + shift, interleaved=interleaved)
    # |q| |k| <= 600, and an angle below 10^4 is known to about 2 * 10^-12.
    assert here == pytest.approx(there, abs=2e-9)


@layouts
def test_lengths_stay(interleaved, generator):
    x = torch.randn(100, 64, generator=generator, dtype=torch.float64)
    cos, sin = tables(torch.arange(100) * 997, 64)
    turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), rtol=1e-14, atol=0)


def test_position_zero_changes_nothing(generator):
    x = torch.randn(1, 8, generator=generator)
    assert torch.equal(apply_rotary_emb(x, *tables(torch.tensor([0]), 8, torch.float32), interleaved=True), x)


def test_converted_weights_give_the_same_scores(generator):
    """Two heads of 8 from a model of width 5: permute the rows of W_q and W_k, change the layout, keep the scores."""
    weights, words = (
        torch.randn(2, 16, 5, generator=generator, dtype=torch.float64),
        torch.arange(30.0).view(6, 5).double(),
    )
    scores = []
    for interleaved in (True, False):
        converted = weights if interleaved else rotary.interleaved_to_half_split(weights, head_dim=8, dim=1)
        q, k = (words @ w.T for w in converted)
        q, k = (x.unflatten(-1, (2, 8)).transpose(0, 1) for x in (q, k))
        rotated_q, rotated_k = RotaryEmbedding(8, interleaved=interleaved)(q, k)
        scores.append(rotated_q @ rotated_k.mT)
    torch.testing.assert_close(*scores)


def test_conversion_is_the_permutation_and_has_an_inverse():
    x = torch.arange(16)
    there = rotary.interleaved_to_half_split(x, head_dim=8, dim=-1)
    assert there.tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    assert torch.equal(rotary.half_split_to_interleaved(there, head_dim=8, dim=-1), x)
    with pytest.raises(ValueError, match="x has size 16 along axis -1; it must be a multiple of head_dim, 6"):
        rotary.interleaved_to_half_split(x, head_dim=6, dim=-1)


# -- Dtypes, shapes, gradients -----------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rotated_in_float32_and_rounded_once(interleaved, dtype, generator):
    x = torch.randn(2, 7, 16, generator=generator).to(dtype)
    cos, sin = tables(torch.arange(7), 16, torch.float32)
    turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert turned.dtype == dtype
    assert torch.equal(turned, apply_rotary_emb(x.float(), cos, sin, interleaved=interleaved).to(dtype))


@layouts
@pytest.mark.parametrize("small", [0, 10**6])  # in blocks, or not
@pytest.mark.parametrize("inference", [False, True])
def test_tables_of_another_precision_and_odd_strides(interleaved, small, inference, generator, monkeypatch):
    monkeypatch.setattr(rotary, "SMALL", small)
    x = torch.randn(2, 5, 8, generator=generator, dtype=torch.float64)
    odd = torch.randn(5, 1, 9, generator=generator)[..., 1:].transpose(0, 1)  # an axis of size 1 with an odd stride
    for y in (odd, torch.randn(1, 1, 9, generator=generator)[..., :8]):
        cos, sin = tables(torch.arange(y.shape[-2]), 8, torch.float32)
        with torch.inference_mode(inference):
            got = apply_rotary_emb(y, cos, sin, interleaved=interleaved)
        torch.testing.assert_close(got, by_hand(y, cos, sin, interleaved))
    for dtype, table in ((torch.float32, torch.float64), (torch.float64, torch.float32), (torch.half, torch.float64)):
        cos, sin = tables(torch.arange(5), 8, table)
        with torch.inference_mode(inference):
            got = apply_rotary_emb(x.to(dtype), cos, sin, interleaved=interleaved)
        expected = by_hand(x.to(dtype).double(), cos.double(), sin.double(), interleaved)
        torch.testing.assert_close(got, expected.to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=1e-12)


@layouts
def test_partial_rotary_passes_the_rest_through(interleaved, generator):
    x = torch.randn(2, 5, 12, generator=generator, dtype=torch.float64)
    cos, sin = tables(torch.arange(5), 8)
    turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert torch.equal(turned[..., 8:], x[..., 8:])
    assert torch.equal(turned[..., :8], apply_rotary_emb(x[..., :8], cos, sin, interleaved=interleaved))


@layouts
def test_non_contiguous_and_empty_inputs(interleaved, generator):
    x = torch.randn(2, 8, 3, 16, generator=generator, dtype=torch.float64)  # (batch, seq_len, heads, head_dim)
    cos, sin = tables(torch.arange(8), 16)
    transposed = x.transpose(1, 2)
    turned = apply_rotary_emb(transposed, cos, sin, interleaved=interleaved)
    assert torch.equal(turned, apply_rotary_emb(transposed.contiguous(), cos, sin, interleaved=interleaved))
    empty = apply_rotary_emb(x[:, :0].transpose(1, 2), cos[:0], sin[:0], interleaved=interleaved)
    assert empty.shape == (2, 3, 0, 16)


@layouts
def test_input_is_left_alone_and_gradients_are_right(interleaved, generator):
    x = torch.randn(4, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    before = x.detach().clone()
    angles = torch.randn(4, 3, generator=generator, dtype=torch.float64, requires_grad=True)  # learned ones, say

    def rotate(x, angles):
        return apply_rotary_emb(x, angles.cos(), angles.sin(), interleaved=interleaved)

    assert torch.autograd.gradcheck(rotate, (x, angles), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(rotate, (x, angles))
    assert torch.equal(x.detach(), before)


# -- The forms: the formula, one complex product, blocks ---------------------------------------------------------------


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Every input is large, and blocks hold 16 elements."""
    monkeypatch.setattr(rotary, "SMALL", 0)
    monkeypatch.setattr(rotary, "BLOCK", 16)


def test_which_form_is_taken(monkeypatch):
    small, large = torch.zeros(2, 4, 8), torch.zeros(2**14, 8)
    cos, sin = tables(torch.arange(4), 8)

    def forms(x):
        return [rotary.rotation_form(x, cos, sin, interleaved=interleaved) for interleaved in (True, False)]

    assert forms(small) == ["complex", "swapped"]
    assert forms(large) == ["blocks", "blocks"]
    assert forms(large.to("meta")) == ["complex", "swapped"]
    cos.requires_grad_()
    assert forms(large) == ["complex", "swapped"]
    with torch.no_grad():
        assert forms(large) == ["blocks", "blocks"]
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert forms(large) == forms(large.bfloat16()) == ["formula", "swapped"]
    cos.requires_grad_(False)
    assert forms(large) == ["formula", "swapped"]
    assert forms(large.bfloat16()) == ["opaque", "swapped"]
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert forms(large.bfloat16()) == ["formula", "swapped"]


@layouts
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("inference", [False, True])
def test_all_forms_give_the_same(interleaved, dtype, inference, generator, monkeypatch):
    wide = torch.randn(3, 5, 11, generator=generator).to(dtype)
    cos, sin = tables(torch.arange(5), 8, dtype)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    names = ["formula", "complex"] if interleaved else ["swapped"]

    def rotate(name, x):
        prepare, rotate = rotary._FORMS[name]
        return rotate(x, *prepare(cos, sin))

    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    forms = [rotate(name, wide[..., 3:]) for name in names]
    monkeypatch.undo()
    with torch.inference_mode(inference):
        for x in (wide[..., 3:], wide[..., 3:].contiguous(), wide.mT.contiguous().mT[..., 3:]):
            forms += [rotate(name, x) for name in names]
            forms += [
                rotary._rotate_in_blocks(x, cos, sin, interleaved),
                rotary._rotate_opaque(x, cos, sin, interleaved),
            ]
    expected = by_hand(wide[..., 3:], cos, sin, interleaved)
    for form in forms:
        torch.testing.assert_close(form, expected)


@layouts
@pytest.mark.parametrize("small", [0, 70, 10**6])  # all in blocks, only the queries, none
def test_a_pair_is_rotated_like_two(interleaved, small, generator, monkeypatch):
    monkeypatch.setattr(rotary, "SMALL", small)
    q, k = torch.randn(2, 4, 5, 12, generator=generator), torch.randn(2, 1, 5, 12, generator=generator).bfloat16()
    cos, sin = tables(torch.arange(5), 8, torch.float32)
    pair = apply_rotary_pos_emb(q, k, cos, sin, interleaved=interleaved)
    for got, x in zip(pair, (q, k), strict=True):
        torch.testing.assert_close(got, apply_rotary_emb(x, cos, sin, interleaved=interleaved), rtol=0, atol=0)
    with pytest.raises(ValueError, match=r"did you forget x\.transpose"):
        apply_rotary_pos_emb(q, k.transpose(1, 2), cos, sin, interleaved=interleaved)


@layouts
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_decoding_step_is_rotated_together(interleaved, kv_heads, dtype, generator, monkeypatch):
    q = torch.randn(1, 4, 1, 12, generator=generator).to(dtype)
    k = torch.randn(1, kv_heads, 1, 12, generator=generator).to(dtype)
    cos, sin = tables(torch.tensor([7]), 8, torch.float32)

    def rotate():
        pair = apply_rotary_pos_emb(q, k, cos, sin, interleaved=interleaved)
        return pair, pair[0].untyped_storage().data_ptr() == pair[1].untyped_storage().data_ptr()

    expected, together = rotate()
    assert not together  # gradients would find the way, but what is changed in place would not
    with torch.no_grad():
        pair, together = rotate()
        monkeypatch.setattr(rotary, "SMALL", q.numel() + k.numel())
        assert not rotate()[1]  # what is large would only be copied once more
    assert together is not interleaved  # one complex product is so short that joining does not pay
    for got, right in zip(pair, expected, strict=True):
        assert got.is_contiguous()
        torch.testing.assert_close(got, right, rtol=0, atol=0)
    pair[0].zero_()
    torch.testing.assert_close(pair[1], expected[1], rtol=0, atol=0)


@layouts
def test_what_does_not_fit_together_is_rotated_apart(interleaved, generator):
    cos, sin = tables(torch.arange(3), 8, torch.float32)
    one = torch.randn(1, 2, 3, 8, generator=generator)
    batch, rows = torch.randn(2, 2, 2, 3, 8, generator=generator)
    cases = [
        (one, one, *tables(torch.arange(6).view(1, 2, 3), 8, torch.float32)),  # tables for each head
        (batch, rows, cos, sin),  # parts of one tensor would not be contiguous
        (one, one[0], cos, sin),
        (one[0, 0], one[0, 0], cos, sin),  # no heads
        (one, one.bfloat16(), cos, sin),
        (one, one[:, :0], cos, sin),  # fits: no key heads at all
    ]
    for q, k, *pair_of_tables in cases:
        with torch.no_grad():
            pair = apply_rotary_pos_emb(q, k, *pair_of_tables, interleaved=interleaved)
            for got, x in zip(pair, (q, k), strict=True):
                assert got.is_contiguous()
                expected = apply_rotary_emb(x, *pair_of_tables, interleaved=interleaved)
                torch.testing.assert_close(got, expected, rtol=0, atol=0)
    wrong = [
        (one[..., :2, :], "seq_len of x is 2, of cos 3"),
        (one[..., :6], "head_dim of x is 6"),
        (one.to("meta"), "they must share a device"),
    ]
    for k, text in wrong:
        with torch.no_grad(), pytest.raises(ValueError, match=text):
            apply_rotary_pos_emb(one, k, cos, sin, interleaved=interleaved)


@layouts
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(3, 5, 4, 8), (1, 1, 6, 4), (2, 0, 4, 6), (5, 12), (7, 3, 2)])
def test_blocks_give_what_the_formula_gives(interleaved, dtype, shape, generator, tiny_blocks):
    x = torch.randn(shape, generator=generator).to(dtype)
    cos, sin = tables(torch.arange(shape[-2]), shape[-1], torch.float32)
    for y in (x, torch.randn(*shape[:-1], shape[-1] + 3, generator=generator).to(dtype)[..., 3:], x.mT.contiguous().mT):
        blocks = apply_rotary_emb(y, cos, sin, interleaved=interleaved)
        assert blocks.is_contiguous()
        wide = y.to(torch.promote_types(dtype, torch.float32))
        torch.testing.assert_close(blocks, by_hand(wide, cos, sin, interleaved).to(dtype))


@layouts
def test_blocks_with_positions_of_each_row(interleaved, generator, tiny_blocks):
    x = torch.randn(3, 4, 5, 8, generator=generator)
    positions = torch.randint(1000, (3, 1, 5), generator=generator)
    cos, sin = tables(positions, 8, torch.float32)
    blocks = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    torch.testing.assert_close(blocks, by_hand(x, cos, sin, interleaved))


@layouts
@pytest.mark.parametrize("rotary_dim", [6, 4])
def test_derivatives_of_the_blocks(interleaved, rotary_dim, generator, tiny_blocks):
    x = torch.randn(3, 4, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    cos, sin = tables(torch.arange(4), rotary_dim)

    def rotate(x):
        return apply_rotary_emb(x, cos, sin, interleaved=interleaved)

    assert torch.autograd.gradcheck(rotate, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(rotate, x)


@layouts
def test_vmap_over_inputs_and_tables(interleaved, generator, tiny_blocks):
    x = torch.randn(3, 2, 5, 8, generator=generator, dtype=torch.float64)
    cos, sin = tables(torch.arange(15).view(3, 5), 8)

    def rotate(x, cos, sin):
        return apply_rotary_emb(x, cos, sin, interleaved=interleaved)

    loop = torch.stack([rotate(x[i], cos[i], sin[i]) for i in range(3)])
    torch.testing.assert_close(torch.vmap(rotate)(x, cos, sin), loop)
    torch.testing.assert_close(
        torch.vmap(rotate, in_dims=(0, None, None))(x, cos[0], sin[0]), rotate(x, cos[0], sin[0])
    )
    one = torch.vmap(rotate, in_dims=(None, 0, 0))(x[0], cos, sin)
    torch.testing.assert_close(one, torch.stack([rotate(x[0], cos[i], sin[i]) for i in range(3)]))


@layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compile_and_export_make_one_graph(interleaved, dtype, generator, tiny_blocks):
    rope = RotaryEmbedding(8, interleaved=interleaved)
    q, k = torch.randn(2, 2, 5, 8, generator=generator).to(dtype).requires_grad_()
    expected = rope(q, k)
    compiled = torch.compile(rope, fullgraph=True, backend="aot_eager", dynamic=True)
    for ours, theirs in zip(compiled(q, k), expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    gradients = [torch.autograd.grad((a * b).sum(), (q, k)) for a, b in (compiled(q, k), expected)]
    torch.testing.assert_close(*gradients)
    exported = torch.export.export(rope, (q, k))
    assert not any("complex" in str(node.target) for node in exported.graph.nodes)
    for ours, theirs in zip(exported.module()(q, k), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("gradients", [True, False])
def test_another_length_compiles_nothing_again(interleaved, dtype, gradients, generator):
    torch.compiler.reset()  # what other tests compiled counts towards a limit
    compiles = CompileCounterWithBackend("aot_eager")
    rope = RotaryEmbedding(8, interleaved=interleaved)
    compiled = torch.compile(rope, fullgraph=True, backend=compiles, dynamic=True)
    counts = []
    for length in (5, 300, rotary.SMALL // 16 + 7):  # of which the last is rotated in blocks if nothing is compiled
        q, k = torch.randn(2, 1, 4, length, 8, generator=generator).to(dtype)
        with torch.set_grad_enabled(gradients):
            for ours, theirs in zip(compiled(q, k), rope(q, k), strict=True):
                torch.testing.assert_close(ours, theirs)
        counts.append(compiles.frame_count)
    assert counts[0] == counts[-1] > 0


@layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_transforms_of_functions(interleaved, dtype, generator, tiny_blocks):
    cos, sin = tables(torch.arange(5), 8, torch.float32)
    x, tangent = (torch.randn(3, 2, 5, 8, generator=generator).to(dtype) for _ in range(2))

    def rotate(x):
        return apply_rotary_emb(x, cos, sin, interleaved=interleaved)

    transforms = {
        "vmap": torch.vmap(rotate),
        "jvp": lambda x: torch.func.jvp(rotate, (x,), (tangent,))[1],
        "grad": torch.vmap(torch.func.grad(lambda x: (rotate(x) * tangent[0]).sum())),
    }
    expected = {"vmap": rotate(x), "jvp": rotate(tangent)}
    expected["grad"] = apply_rotary_emb(tangent[0], cos, -sin, interleaved=interleaved).expand_as(x)
    for name, transform in transforms.items():
        for run in (transform, torch.compile(transform, fullgraph=True, backend="aot_eager")):
            torch.testing.assert_close(run(x), expected[name], msg=lambda text, name=name: f"{name}: {text}")


@layouts
def test_derivatives_of_the_angles(interleaved, generator, tiny_blocks):
    """The blocks have none, so they are not taken: a zero would be the worst of answers."""
    x, away = torch.randn(2, 3, 5, 8, generator=generator, dtype=torch.float64)
    speeds = torch.rand(4, generator=generator, dtype=torch.float64)

    def score(speeds):
        angles = torch.arange(5)[:, None] * speeds
        return (apply_rotary_emb(x, angles.cos(), angles.sin(), interleaved=interleaved) * away).sum()

    leaf = speeds.clone().requires_grad_()
    [expected] = torch.autograd.grad(score(leaf), leaf)
    step = 1e-6 * torch.eye(4, dtype=torch.float64)
    slopes = torch.stack([(score(speeds + s) - score(speeds - s)) / 2e-6 for s in step])
    torch.testing.assert_close(expected, slopes, rtol=1e-6, atol=1e-6)
    for transform in (torch.func.grad, torch.func.jacfwd, torch.func.jacrev):
        torch.testing.assert_close(transform(score)(speeds), expected)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(speeds, expected)
        torch.testing.assert_close(forward_ad.unpack_dual(score(dual)).tangent, expected @ expected)


def test_a_compiler_is_given_the_opaque_operator(generator):
    x = torch.randn(2, 5, 8, generator=generator).bfloat16().requires_grad_()
    cos, sin = tables(torch.arange(5), 8, torch.float32)
    graphs = []

    def backend(graph, inputs):
        graphs.append(str(graph.graph))
        return graph

    turned = torch.compile(apply_rotary_emb, backend=backend)(x, cos, sin, interleaved=True)
    assert "rope_lib.rotate" in graphs[0]
    [gradient] = torch.autograd.grad(turned.float().sum(), x)
    torch.testing.assert_close(gradient, by_hand(torch.ones(2, 5, 8), cos, -sin, True).bfloat16())


# -- The module --------------------------------------------------------------------------------------------------------


@layouts
def test_module_with_positions_of_each_row(interleaved, generator):
    q, k = torch.randn(2, 2, 3, 5, 8, generator=generator, dtype=torch.float64)
    rope = RotaryEmbedding(8, interleaved=interleaved)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 0, 1]])[:, None]
    rotated_q, rotated_k = rope(q, k, positions=positions)
    for row in range(2):
        single = rope(q[row], k[row], positions=positions[row, 0])
        assert torch.equal(rotated_q[row], single[0])
        assert torch.equal(rotated_k[row], single[1])


def test_module_counts_from_zero_and_takes_fewer_key_heads(generator):
    q, k = torch.randn(8, 5, 16, generator=generator), torch.randn(2, 5, 16, generator=generator)
    rope = RotaryEmbedding(16, interleaved=False, base=500.0)
    for plain, explicit in zip(rope(q, k), rope(q, k, positions=torch.arange(5)), strict=True):
        assert torch.equal(plain, explicit)
    assert rope(q, k)[1].shape == k.shape
    assert repr(rope) == "RotaryEmbedding(16, interleaved=False, base=500)"


@layouts
def test_module_takes_its_base_and_the_wider_of_two_types(interleaved, generator):
    q, k = torch.randn(2, 3, 8, generator=generator), torch.randn(2, 3, 8, generator=generator, dtype=torch.float64)
    cos, sin = cos_sin(torch.arange(3), inverse_frequencies(8, base=50.0), dtype=torch.float64)
    rotated = RotaryEmbedding(8, interleaved=interleaved, base=50.0)(q, k)
    for got, x in zip(rotated, (q, k), strict=True):
        torch.testing.assert_close(got, apply_rotary_emb(x, cos, sin, interleaved=interleaved), rtol=0, atol=0)


def test_casting_the_module_does_not_spoil_the_angles(generator):
    q = torch.randn(1, 4, 8, generator=generator)
    far = torch.arange(4) + 999_000
    rope = RotaryEmbedding(8, interleaved=True)
    before = rope(q, q, positions=far)[0]
    assert torch.equal(rope.to(torch.bfloat16)(q, q, positions=far)[0], before)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(rope(q, q, positions=far)[0], before)
    with torch.device("meta"):
        built = RotaryEmbedding(8, interleaved=True)
    assert torch.equal(built(q, q, positions=far)[0], before)


# -- The dense matrix --------------------------------------------------------------------------------------------------


@given(st.floats(-1000, 1000), st.integers(1, 8))
def test_matrix_is_the_loop_on_the_basis_vectors(position, pairs):
    dim = 2 * pairs
    matrix = rotation_matrix(position, inverse_frequencies(dim))
    for j in range(dim):
        unit = [float(j == row) for row in range(dim)]
        assert matrix[:, j].tolist() == pytest.approx(reference.rotate(unit, position, interleaved=True), abs=1e-12)


def test_matrix_by_hand():
    assert rotation_matrix(1, torch.tensor([math.pi / 2], dtype=torch.float64)).round().tolist() == [[0, -1], [1, 0]]


# -- Errors ------------------------------------------------------------------------------------------------------------

X = torch.zeros(2, 4, 8, 16)  # (batch, heads, seq_len, head_dim)
COS, SIN = tables(torch.arange(8), 16, torch.float32)


@pytest.mark.parametrize(
    ("x", "cos", "sin", "error", "text"),
    [
        (X.transpose(1, 2), COS, SIN, ValueError, r"seq_len of x is 4, of cos 8.*did you forget x.transpose\(1, 2\)"),
        (X, COS[:4], SIN[:4], ValueError, "seq_len of x is 8, of cos 4.*tables too short"),
        (X, COS[:1], SIN[:1], ValueError, "seq_len of x is 8, of cos 1"),
        (X[..., :8], COS, SIN, ValueError, "rotate 16 dimensions, but head_dim of x is 8.*doubled to the full width"),
        (X, COS.expand(2, 8, 8), SIN.expand(2, 8, 8), ValueError, r"batch could be taken for heads.*unsqueeze\(-3\)"),
        (X, COS.expand(3, 1, 8, 8), SIN.expand(3, 1, 8, 8), ValueError, "each leading axis of cos must be 1 or equal"),
        (X, COS, SIN[:, :4], ValueError, r"shapes and dtypes \(8, 8\), torch.float32 and \(8, 4\), torch.float32"),
        (X, COS, SIN.double(), ValueError, r"\(8, 8\), torch.float32 and \(8, 8\), torch.float64; they must be equal"),
        (X[0, 0, 0], COS[:1], SIN[:1], ValueError, r"for a single token, add the axis"),
        (X, COS[0], SIN[0], ValueError, "for a single token"),
        (X, COS.bfloat16(), SIN.bfloat16(), TypeError, r"did .to\(bfloat16\) or autocast reach the tables"),
        (X.long(), COS, SIN, TypeError, "x has dtype torch.int64"),
        (X.to(torch.complex64), COS, SIN, TypeError, "x has dtype torch.complex64"),
        (X.to("meta"), COS, SIN, ValueError, "x is on meta, cos on cpu, sin on cpu"),
    ],
)
@layouts
def test_errors_of_the_rotation(interleaved, x, cos, sin, error, text):
    with pytest.raises(error, match=text):
        apply_rotary_emb(x, cos, sin, interleaved=interleaved)


@pytest.mark.parametrize("layout", [None, "half", 1])
def test_a_layout_is_true_or_false(layout):
    with pytest.raises(TypeError, match=r"it must be True \(pairs 2i, 2i\+1\) or False"):
        apply_rotary_emb(X, COS, SIN, interleaved=layout)


def test_layout_has_no_default():
    with pytest.raises(TypeError, match="interleaved"):
        apply_rotary_emb(X, COS, SIN)
    with pytest.raises(TypeError, match="interleaved"):
        RotaryEmbedding(16)


def test_errors_of_the_module_and_the_matrix():
    with pytest.raises(ValueError, match="rotary_dim is 5"):
        RotaryEmbedding(5, interleaved=True)
    with pytest.raises(ValueError, match="base is 0"):
        RotaryEmbedding(4, interleaved=True, base=0)
    with pytest.raises(ValueError, match=r"position has shape \(3,\); it must be one number"):
        rotation_matrix(torch.arange(3), inverse_frequencies(4))
    with pytest.raises(TypeError, match="positions is a list"):
        RotaryEmbedding(4, interleaved=True)(X, X, positions=[0, 1])
