"""The rotation itself: against loops, by hand, with its errors; that the fast forms are the formula is test_fast.py."""

import copy
import io
import pickle
from typing import get_type_hints

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

from rope_lib import (
    RotaryEmbedding,
    apply_rotary_emb,
    apply_rotary_pos_emb,
    cos_sin,
    interleaved_to_half_split,
    inverse_frequencies,
)
from rope_lib.formula import rotate_pairs
from rope_lib.theory import reference

layouts = pytest.mark.parametrize("interleaved", [True, False])
functions = pytest.mark.parametrize("rotate", [rotate_pairs, apply_rotary_emb])
vectors = st.lists(st.floats(-10, 10), min_size=8, max_size=8)


def tables(positions, dim, dtype=torch.float64):
    return cos_sin(positions, inverse_frequencies(dim), dtype=dtype)


def normal(generator, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def by_loops(x, positions, *, interleaved, base=10000.0):
    """reference.rotate of each vector of x, in float64. positions: as many axes as x without head_dim, or seq_len."""
    m = torch.as_tensor(positions, dtype=torch.float64).expand(x.shape[:-1]).flatten().tolist()
    rows = zip(x.double().flatten(0, -2).tolist(), m, strict=True)
    turned = [reference.rotate(row, position, interleaved=interleaved, base=base) for row, position in rows]
    return torch.tensor(turned, dtype=torch.float64).view(x.shape)


# -- Against the plain loop, by hand, and between the layouts: a reversed rotation passes none of the three ------------


@layouts
@functions
@given(vectors, st.integers(-10_000, 10_000))
def test_rotation_is_the_plain_loop(rotate, interleaved, x, position):
    cos, sin = tables(torch.tensor([position]), 8)
    turned = rotate(torch.tensor([x], dtype=torch.float64), cos, sin, interleaved=interleaved)
    # |x| <= 10 in each place, and an angle below 10^4 is known to 10^4 * 2^-53, or 1.1e-12: twice that for each of two.
    assert turned[0].tolist() == pytest.approx(reference.rotate(x, position, interleaved=interleaved), abs=5e-11)


@functions
def test_a_quarter_turn_by_hand(rotate):
    """Pair 0 by 90 degrees counter-clockwise, (1, 2) -> (-2, 1); pair 1 by 180 degrees, (3, 4) -> (-3, -4)."""
    cos, sin = torch.tensor([[0.0, -1.0]]), torch.tensor([[1.0, 0.0]])
    assert rotate(torch.tensor([[1.0, 2, 3, 4]]), cos, sin, interleaved=True).tolist() == [[-2, 1, -3, -4]]
    assert rotate(torch.tensor([[1.0, 3, 2, 4]]), cos, sin, interleaved=False).tolist() == [[-2, -3, 1, -4]]


def test_the_layouts_are_one_rotation_in_two_orders(generator):
    x = normal(generator, 3, 5, 16)
    cos, sin = tables(torch.arange(5), 16)
    half = apply_rotary_emb(interleaved_to_half_split(x, head_dim=16, dim=-1), cos, sin, interleaved=False)
    neighbours = apply_rotary_emb(x, cos, sin, interleaved=True)
    rounding = 2 * torch.finfo(x.dtype).eps * x.abs().max()  # two products and a sum, fused or not
    expected = interleaved_to_half_split(neighbours, head_dim=16, dim=-1)
    torch.testing.assert_close(half, expected, rtol=0, atol=rounding.item())


@layouts
@given(vectors, vectors, st.integers(0, 5000), st.integers(0, 5000), st.integers(-5000, 5000))
def test_scores_depend_on_the_distance_alone(interleaved, q, k, m, n, shift):
    def score(m, n):
        vectors = torch.tensor([q, k], dtype=torch.float64)[:, None]
        q_m, k_n = (
            apply_rotary_emb(x, *tables(torch.tensor([p]), 8), interleaved=interleaved)
            for x, p in zip(vectors, (m, n), strict=True)
        )
        return (q_m @ k_n.mT).item()

    # |q| |k| <= 800, and an angle below 10^4 is known to 1.1e-12: four of them.
    assert score(m, n) == pytest.approx(score(m + shift, n + shift), abs=4e-9)


@layouts
def test_lengths_stay(interleaved, generator):
    x = normal(generator, 100, 64)
    turned = apply_rotary_emb(x, *tables(torch.arange(100) * 997, 64), interleaved=interleaved)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), rtol=1e-14, atol=0)


@layouts
def test_at_position_zero_is_what_was_there_in_memory_of_its_own(interleaved, generator):
    x = normal(generator, 2, 1, 8)
    turned = apply_rotary_emb(x, *tables(torch.tensor([0]), 8), interleaved=interleaved)
    assert torch.equal(turned, x)
    turned.zero_()
    assert x.all()


@layouts
def test_rows_and_heads_may_have_positions_of_their_own(interleaved, generator):
    x = normal(generator, 2, 3, 5, 8)
    for shape in ((5,), (1, 1, 5), (2, 1, 5), (1, 3, 5), (2, 3, 5)):
        positions = torch.randint(-500, 500, shape, generator=generator)
        turned = apply_rotary_emb(x, *tables(positions, 8), interleaved=interleaved)
        torch.testing.assert_close(turned, by_loops(x, positions, interleaved=interleaved), rtol=0, atol=1e-11)


@layouts
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_partial_rotary_passes_the_rest_through(interleaved, dtype, generator):
    x = normal(generator, 2, 5, 12, dtype=dtype)
    cos, sin = tables(torch.arange(5), 8)
    turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert torch.equal(turned[..., 8:], x[..., 8:])
    assert torch.equal(turned[..., :8], apply_rotary_emb(x[..., :8], cos, sin, interleaved=interleaved))
    assert turned.dtype == dtype


# -- Queries and keys --------------------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("dtypes", [(torch.float32, torch.bfloat16), (torch.float64, torch.float32)], ids=str)
def test_a_pair_is_rotated_like_two(interleaved, dtypes, generator):
    q, k = normal(generator, 2, 4, 5, 12, dtype=dtypes[0]), normal(generator, 2, 1, 5, 12, dtype=dtypes[1])
    cos, sin = tables(torch.arange(5), 8, torch.float32)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            pair = apply_rotary_pos_emb(q, k, cos, sin, interleaved=interleaved)
            for got, x in zip(pair, (q, k), strict=True):
                assert got.dtype == x.dtype
                assert torch.equal(got, apply_rotary_emb(x, cos, sin, interleaved=interleaved))


@layouts
def test_heads_of_queries_and_keys_have_one_length(interleaved, generator):
    """No score could be made of them; heads that were never split, of which keys have fewer, look like this."""
    long, short = normal(generator, 2, 5, 12), normal(generator, 1, 5, 8)
    for q, k in ((long, short), (short, long), (long, long[..., :10])):
        with pytest.raises(ValueError, match=r"^q has shape .*, k .*; head_dim must agree"):
            apply_rotary_pos_emb(q, k, *tables(torch.arange(5), 8), interleaved=interleaved)


@layouts
def test_nothing_else_is_kept_alive_by_a_key_or_changed_with_it(interleaved, generator):
    """A cache holds keys for long: neither may they hold the memory of the queries, nor be a part of their tensor."""
    for grad, words in ((True, 3), (False, 3), (True, 5000), (False, 5000)):
        q, k = normal(generator, 1, 8, words, 8), normal(generator, 1, 2, words, 8)
        for rotary_dim in (8, 4):
            with torch.set_grad_enabled(grad):
                pair = apply_rotary_pos_emb(q, k, *tables(torch.arange(words), rotary_dim), interleaved=interleaved)
            assert pair[1].untyped_storage().nbytes() == k.numel() * k.element_size()
            before = pair[1].clone()
            pair[0].zero_()
            assert torch.equal(pair[1], before)


# -- The module --------------------------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("shape", [(5,), (2, 1, 5), (2, 3, 5)])
def test_the_module_rotates_each_row_by_its_positions(interleaved, shape, generator):
    q, k = normal(generator, 2, 2, 3, 5, 8)
    positions = torch.randint(1000, shape, generator=generator)
    rotated = RotaryEmbedding(8, interleaved=interleaved, base=50.0)(q, k, positions=positions)
    for got, x in zip(rotated, (q, k), strict=True):
        torch.testing.assert_close(got, by_loops(x, positions, interleaved=interleaved, base=50.0), rtol=0, atol=1e-11)


def test_ten_thousand_is_the_base_unless_another_is_given(generator):
    q = normal(generator, 1, 8)
    turned = RotaryEmbedding(8, interleaved=True)(q, q, positions=torch.tensor([900]))[0]
    torch.testing.assert_close(turned, by_loops(q, [900], interleaved=True, base=10000.0), rtol=0, atol=1e-11)


@pytest.mark.parametrize("wide", [0, 1])
def test_one_wide_type_of_two_makes_wide_tables(wide, generator):
    pair = [normal(generator, 3, 8, dtype=torch.float64 if i == wide else torch.float32) for i in range(2)]
    turned = RotaryEmbedding(8, interleaved=True)(*pair, positions=torch.arange(3))
    assert [y.dtype for y in turned] == [x.dtype for x in pair]
    exact = by_loops(pair[wide], torch.arange(3), interleaved=True)
    torch.testing.assert_close(turned[wide], exact, rtol=0, atol=1e-14)  # float32 tables would be off by some 1e-8


def test_tables_are_those_that_the_call_makes(generator):
    q, k = normal(generator, 2, 4, 5, 8), normal(generator, 1, 4, 5, 8)[0]
    positions = torch.arange(5) + 70
    for factor in (1.0, 0.5, 1.25):
        rope = RotaryEmbedding(8, interleaved=False, base=300.0, attention_factor=factor)
        cos, sin = rope.tables(positions)
        angles = positions[:, None] * inverse_frequencies(8, base=300.0)
        assert cos.dtype == sin.dtype == torch.float32
        # one rounding of the table to float32, one of the product with the factor
        torch.testing.assert_close(cos.double(), factor * angles.cos(), rtol=0, atol=2.0**-23)
        torch.testing.assert_close(sin.double(), factor * angles.sin(), rtol=0, atol=2.0**-23)
        made_once = apply_rotary_pos_emb(q, k, *rope.tables(positions, dtype=torch.float64), interleaved=False)
        assert all(map(torch.equal, made_once, rope(q, k, positions=positions)))


@layouts
def test_a_module_of_given_speeds(interleaved, generator):
    """Twice the speed is twice the position; the numbers are kept, whatever becomes of the tensor they came in."""
    q = normal(generator, 2, 5, 8)
    speeds = 2 * inverse_frequencies(8)
    rope = RotaryEmbedding(8, interleaved=interleaved, inv_freq=speeds)
    speeds.zero_()
    turned = rope(q, q, positions=torch.arange(5))[1]
    torch.testing.assert_close(turned, by_loops(q, 2 * torch.arange(5), interleaved=interleaved), rtol=0, atol=1e-12)


@layouts
def test_what_a_module_hands_out_is_not_its_own(interleaved, generator):
    """Who writes into its speeds, its tables or its results changes nothing of the next rotation."""
    rope = RotaryEmbedding(8, interleaved=interleaved)
    q, k = normal(generator, 1, 5, 8), normal(generator, 1, 5, 8)
    at = torch.arange(5)
    before = [x.clone() for x in rope(q, k, positions=at)]
    for handed_out in (rope.inv_freq, *rope.tables(at), *rope(q, k, positions=at)):
        handed_out.zero_()
    assert all(map(torch.equal, rope(q, k, positions=at), before))


def test_speeds_given_on_a_gpu_are_kept_on_the_cpu():
    """A module that is saved can then be loaded where there is no GPU. (Here it is only pretended.)"""
    with FakeTensorMode():
        speeds = torch.ones(4, dtype=torch.float64, device="cuda")
        assert RotaryEmbedding(8, interleaved=True, inv_freq=speeds).inv_freq.device.type == "cpu"


def test_representations():
    speeds = inverse_frequencies(8) / 2
    assert repr(RotaryEmbedding(16, interleaved=False)) == "RotaryEmbedding(16, interleaved=False, base=10000)"
    assert repr(RotaryEmbedding(8, interleaved=True, base=5e5)) == "RotaryEmbedding(8, interleaved=True, base=500000)"
    scaled = RotaryEmbedding(8, interleaved=True, inv_freq=speeds, attention_factor=1.25)
    assert repr(scaled) == ("RotaryEmbedding(8, interleaved=True, inv_freq=0.5 .. 0.0005, attention_factor=1.25)")
    assert "attention_factor=0.5" in repr(RotaryEmbedding(8, interleaved=True, attention_factor=0.5))


def modules(interleaved):
    yield RotaryEmbedding(8, interleaved=interleaved, base=500.0)
    speeds = inverse_frequencies(8) * 0.7
    yield RotaryEmbedding(8, interleaved=interleaved, inv_freq=speeds, attention_factor=1.2)


def saved_and_loaded(rope):
    file = io.BytesIO()
    torch.save(rope, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=False)


@layouts
@pytest.mark.parametrize("again", [copy.deepcopy, lambda rope: pickle.loads(pickle.dumps(rope)), saved_and_loaded])
def test_copies_rotate_alike(interleaved, again, generator):
    q = normal(generator, 5, 8)
    for rope in modules(interleaved):
        one, other = (module(q, q, positions=torch.arange(5))[0] for module in (rope, again(rope)))
        assert torch.equal(one, other)
        assert repr(again(rope)) == repr(rope)


def test_a_checkpoint_has_nothing_of_it_and_may_have_more(generator):
    """Other libraries store inv_freq: refused when all must match, passed over when not, and never taken over."""
    q = normal(generator, 5, 8)
    for rope in modules(True):
        before = rope(q, q, positions=torch.arange(5))[0]
        assert rope.state_dict() == {}
        assert not list(rope.parameters())
        with pytest.raises(RuntimeError, match=r"Unexpected key.*inv_freq"):
            rope.load_state_dict({"inv_freq": torch.ones(4)})
        rope.load_state_dict({"inv_freq": torch.ones(4)}, strict=False)
        assert torch.equal(rope(q, q, positions=torch.arange(5))[0], before)


@layouts
@pytest.mark.parametrize(
    ("which", "dtype"), [(0, torch.bfloat16), pytest.param(1, torch.float32, marks=pytest.mark.slow)]
)
def test_compile_and_export_make_one_graph(interleaved, which, dtype, generator):
    torch.compiler.reset()  # what other tests compiled counts towards a limit
    rope = list(modules(interleaved))[which]
    q, k = (normal(generator, 2, 2, 5, 10, dtype=dtype).requires_grad_() for _ in range(2))
    away, positions = normal(generator, 2, 2, 5, 10, dtype=dtype), torch.arange(5) + 3
    expected = rope(q, k, positions=positions)
    compiled = torch.compile(rope, fullgraph=True, backend="aot_eager", dynamic=True)(q, k, positions=positions)
    gradients = [torch.autograd.grad([(y * away).sum() for y in ys], (q, k)) for ys in (compiled, expected)]
    length = torch.export.Dim("length", min=2, max=1000)
    sizes = {"q": {2: length}, "k": {2: length}, "positions": {0: length}}
    exported = torch.export.export(rope, (q, k), {"positions": positions}, dynamic_shapes=sizes).module()
    # the same products and sums, in another order: each is rounded once, a gradient up to three times
    close = {"rtol": 2 * torch.finfo(dtype).eps, "atol": 2 * torch.finfo(dtype).eps * away.abs().max().item()}
    torch.testing.assert_close(compiled, expected, **close)
    torch.testing.assert_close(*gradients, **close)
    torch.testing.assert_close(exported(q, k, positions=positions), expected, **close)
    longer, far = normal(generator, 2, 2, 2, 9, 10, dtype=dtype), torch.arange(9) * 40
    torch.testing.assert_close(exported(*longer, positions=far), rope(*longer, positions=far), **close)


# -- Other devices -----------------------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_device_rotates_and_rotates_back_like_the_loop(device, interleaved, dtype, generator):
    x, gradient = (normal(generator, 2, 5, 3, 12, dtype=dtype) for _ in range(2))
    positions = torch.tensor([0, 1, 17, 4000, 900_000])
    rope = RotaryEmbedding(8, interleaved=interleaved)
    for module in (rope, copy.deepcopy(rope).to(device)):
        leaf = x.to(device, copy=True).requires_grad_()
        turned, other = module(leaf.transpose(1, 2), leaf.transpose(1, 2), positions=positions.to(device))
        turned.backward(gradient.transpose(1, 2).to(device))
        assert turned.device.type == other.device.type == leaf.grad.device.type == device.type
        for got, source, sign in ((turned, x, 1), (leaf.grad.transpose(1, 2), gradient, -1)):
            source = source.transpose(1, 2)
            exact = by_loops(source[..., :8], sign * positions, interleaved=interleaved)
            exact = torch.cat((exact, source[..., 8:].double()), dim=-1)
            # the tables and three operations in float32; roundings to the type, of a gradient up to three
            wide, narrow = (torch.finfo(t).eps * source.abs().max().item() for t in (torch.float32, dtype))
            torch.testing.assert_close(got.detach().cpu().double(), exact, rtol=0, atol=4 * wide + 2 * narrow)


# -- Errors ------------------------------------------------------------------------------------------------------------

X = torch.zeros(2, 4, 8, 16)  # (batch, heads, seq_len, head_dim)
COS, SIN = tables(torch.arange(8), 16, torch.float32)
OUTER = [t.expand(2, 4, 8, 8) for t in (COS, SIN)]


@pytest.mark.parametrize(
    ("x", "cos", "sin", "error", "text"),
    [
        (X.transpose(1, 2), COS, SIN, ValueError, r"seq_len of x is 4, of cos 8.*did you forget x.transpose\(-3, -2\)"),
        (X, COS[:4], SIN[:4], ValueError, "seq_len of x is 8, of cos 4; .* Otherwise make the tables for"),
        (X, COS[:1], SIN[:1], ValueError, r"seq_len of x is 8, of cos 1; .* these do not begin at 0$"),
        (X[..., :8], COS, SIN, ValueError, "rotate 16 dimensions, but head_dim of x is 8.*angle stand there twice"),
        (X, COS[:, :0], SIN[:, :0], ValueError, "cos has 0 columns"),
        (X, COS.expand(2, 8, 8), SIN.expand(2, 8, 8), ValueError, r"batch could be taken for heads.*unsqueeze\(-3\)"),
        (X[0], *OUTER, ValueError, "x has 3 axes and cos 4; cos must have 2 or 3"),
        (X, COS.expand(3, 1, 8, 8), SIN.expand(3, 1, 8, 8), ValueError, r"cos \(3, 1, 8, 8\); axes of cos"),
        (X, COS.expand(2, 3, 8, 8), SIN.expand(2, 3, 8, 8), ValueError, "in front must be 1 or those of x$"),
        (X[0], COS.expand(3, 8, 8), SIN.expand(3, 8, 8), ValueError, r"\(4, 8, 16\), cos \(3, 8, 8\); axes of cos"),
        (X[:1], *OUTER, ValueError, r"x has shape \(1, 4, 8, 16\), cos \(2, 4, 8, 8\); axes of cos in front"),
        (X, COS, SIN[:, :4], ValueError, r"shapes and dtypes \(8, 8\), torch.float32 and \(8, 4\), torch.float32"),
        (X, OUTER[0], SIN.expand(1, 1, 8, 8), ValueError, r"\(2, 4, 8, 8\), torch.float32 and \(1, 1, 8, 8\)"),
        (X, COS, SIN.double(), ValueError, r"\(8, 8\), torch.float32 and \(8, 8\), torch.float64; they must be equal"),
        (X[0, 0, 0], COS[:1], SIN[:1], ValueError, r"for a single token, add the axis with x\[None\]"),
        (X[0, 0], COS[0], SIN[0], ValueError, r"for a single token, add the axis with positions\[None\]"),
        (X, COS.bfloat16(), SIN.bfloat16(), TypeError, r"Did .to\(bfloat16\) or autocast reach the tables"),
        (X, COS.half(), SIN, TypeError, "dtypes torch.float16 and torch.float32; they must be float32 or float64"),
        (X, COS, SIN.half(), TypeError, "dtypes torch.float32 and torch.float16; they must be float32 or float64"),
        (X, COS.long(), SIN.long(), TypeError, "dtypes torch.int64 and torch.int64"),
        (X.long(), COS, SIN, TypeError, "x has dtype torch.int64; it must be float32, float64, bfloat16 or float16"),
        (X.to(torch.complex64), COS, SIN, TypeError, "x has dtype torch.complex64"),
        (X.to(torch.float8_e4m3fn), COS, SIN, TypeError, "x has dtype torch.float8_e4m3fn"),
        (X.to("meta"), COS, SIN, ValueError, "x is on meta, cos on cpu, sin on cpu; they must share a device"),
        (X, COS.to("meta"), SIN, ValueError, "x is on cpu, cos on meta, sin on cpu"),
        (X, COS, SIN.to("meta"), ValueError, "x is on cpu, cos on cpu, sin on meta"),
        (X.numpy(), COS, SIN, TypeError, "x is a ndarray; it must be a tensor"),
        (X, None, SIN, TypeError, "cos is a NoneType; it must be a tensor"),
        (X, COS.numpy(), SIN, TypeError, r"cos is a ndarray; .*, e.g. cos_sin\(positions, inv_freq\)\[0\]"),
        (X, COS, SIN.tolist(), TypeError, "sin is a list; it must be a tensor"),
        (X.to_sparse(), COS, SIN, TypeError, r"x is torch.sparse_coo; it must be a dense tensor \(x.to_dense\(\)"),
        (X, COS.to_sparse(), SIN.to_sparse(), TypeError, "cos is torch.sparse_coo; it must be a dense tensor"),
        (X, COS, SIN.to_sparse(), TypeError, "sin is torch.sparse_coo"),
    ],
)  # fmt: skip
@layouts
def test_errors_of_the_rotation(interleaved, x, cos, sin, error, text):
    with pytest.raises(error, match=text):
        apply_rotary_emb(x, cos, sin, interleaved=interleaved)


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch calls these two unfinished
def test_nested_and_compressed_tensors_are_refused():
    for x, kind in (
        (torch.nested.nested_tensor([X[0], X[1]]), "nested"),
        (torch.nested.nested_tensor([X[0], X[1]], layout=torch.jagged), "nested"),
        (X[0, 0].to_sparse_csr(), "torch.sparse_csr"),
    ):
        with pytest.raises(TypeError, match=f"x is {kind}; it must be a dense tensor"):
            apply_rotary_emb(x, COS, SIN, interleaved=True)
    table = torch.nested.nested_tensor([COS, COS])
    for cos, sin, name in ((table, SIN, "cos"), (COS, table, "sin"), (table, table, "cos")):
        with pytest.raises(TypeError, match=f"{name} is nested; it must be a dense tensor"):
            apply_rotary_emb(X, cos, sin, interleaved=True)


@layouts
@pytest.mark.parametrize("call", [apply_rotary_pos_emb, RotaryEmbedding])
@pytest.mark.parametrize("wrong", ["q", "k"])
def test_errors_name_the_one_of_two_that_is_wrong(interleaved, call, wrong):
    def rotate(**changed):
        q, k = (changed.get(name, X) for name in "qk")
        if call is RotaryEmbedding:
            return RotaryEmbedding(16, interleaved=interleaved)(q, k, positions=torch.arange(8))
        return call(q, k, COS, SIN, interleaved=interleaved)

    rotate()
    for value, error, text in (
        (X.transpose(1, 2), ValueError, rf"seq_len of {wrong} is 4, of cos 8; {wrong} must be .*{wrong}.transpose"),
        (X[..., :6], ValueError, f"head_dim of {wrong} is 6"),
        (X.long(), TypeError, f"{wrong} has dtype torch.int64"),
        (X.to("meta"), ValueError, f"{wrong} is on meta, .* on the device of {wrong}"),
        (X[0, 0, 0], ValueError, rf"{wrong}\[None\]"),
        (X.to_sparse(), TypeError, rf"{wrong} is torch.sparse_coo; .*{wrong}.to_dense"),
        (None, TypeError, f"{wrong} is a NoneType"),
    ):
        with pytest.raises(error, match=text):
            rotate(**{wrong: value})


@pytest.mark.parametrize("layout", [None, "half", 1, 0])
def test_a_layout_is_true_or_false(layout):
    text = r"interleaved is .*; it must be True or False \(True: pairs 2i, 2i \+ 1, as .*; False: pairs i, i \+ half, "
    with pytest.raises(TypeError, match=text):
        apply_rotary_emb(X, COS, SIN, interleaved=layout)
    with pytest.raises(TypeError, match=text):
        apply_rotary_pos_emb(X, X, COS, SIN, interleaved=layout)
    with pytest.raises(TypeError, match=text):
        RotaryEmbedding(16, interleaved=layout)


def test_what_fails_in_silence_elsewhere_has_no_default():
    for call in (
        lambda: apply_rotary_emb(X, COS, SIN),
        lambda: apply_rotary_pos_emb(X, X, COS, SIN),
        lambda: RotaryEmbedding(16),
    ):
        with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'interleaved'"):
            call()
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'positions'"):
        RotaryEmbedding(16, interleaved=True)(X, X)


SPEEDS = inverse_frequencies(4)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"rotary_dim": 5}, ValueError, "rotary_dim is 5; it must be positive and even"),
        ({"rotary_dim": 4.0}, TypeError, "rotary_dim is 4.0; it must be an int"),
        ({"rotary_dim": 4.0, "inv_freq": SPEEDS}, TypeError, "rotary_dim is 4.0; it must be an int"),
        ({"rotary_dim": 5, "inv_freq": SPEEDS}, ValueError, "rotary_dim is 5; it must be positive and even"),
        ({"base": 0}, ValueError, "base is 0; it must be a finite number above 1"),
        ({"base": "10000"}, TypeError, "base is '10000'; it must be a number"),
        ({"inv_freq": SPEEDS, "base": 500.0}, ValueError, "base is 500.0, and inv_freq is given, too"),
        ({"inv_freq": SPEEDS[:1]}, ValueError, r"inv_freq has shape \(1,\); it must be \(2,\)"),
        ({"inv_freq": SPEEDS[None]}, ValueError, r"inv_freq has shape \(1, 2\)"),
        ({"inv_freq": SPEEDS.float()}, TypeError, "inv_freq has dtype torch.float32; angles need torch.float64"),
        ({"inv_freq": 500000.0}, TypeError, "inv_freq is a float; it must be a tensor.*is it the base"),
        ({"inv_freq": SPEEDS.tolist()}, TypeError, "inv_freq is a list; it must be a tensor"),
        (
            {"inv_freq": torch.nn.Parameter(SPEEDS)},
            ValueError,
            "requires a gradient; learned frequencies go to cos_sin",
        ),
        ({"inv_freq": SPEEDS.to("meta")}, ValueError, "is on meta and has no values"),
        ({"attention_factor": 0}, ValueError, "attention_factor is 0; it must be a finite number above 0"),
        ({"attention_factor": -1.2}, ValueError, "attention_factor is -1.2"),
        ({"attention_factor": float("nan")}, ValueError, "attention_factor is nan"),
    ],
)
def test_errors_of_the_module(settings, error, text):
    with pytest.raises(error, match=text):
        RotaryEmbedding(**{"rotary_dim": 4, "interleaved": True, **settings})


def test_errors_of_the_positions():
    rope = RotaryEmbedding(16, interleaved=True)
    for positions, error, text in (
        ([0, 1], TypeError, "positions is a list; it must be a tensor"),
        (None, TypeError, "positions is a NoneType"),
        (torch.arange(8).bfloat16(), TypeError, r"positions has dtype torch.bfloat16; .*\.to\(bfloat16\) or autocast"),
        (torch.arange(16).view(2, 8), ValueError, r"q has 4 axes and cos 3.*did you forget .* positions\[:, None\]"),
        (torch.arange(8, device="meta"), ValueError, "q is on cpu, cos on meta.*make the tables from positions"),
        (torch.arange(4), ValueError, "seq_len of q is 8, of cos 4"),
    ):
        with pytest.raises(error, match=text):
            rope(X, X, positions=positions)
    with pytest.raises(TypeError, match=r"dtype is torch.float16; tables are torch.float32 or torch.float64"):
        rope.tables(torch.arange(8), dtype=torch.float16)


def test_type_checkers_and_hooks_learn_what_comes_back():
    """Of `nn.Module` they would learn that it is anything; a hook is called as with any module."""
    called, by_name = get_type_hints(RotaryEmbedding.__call__), get_type_hints(RotaryEmbedding.forward)
    assert called == by_name
    assert called["return"] == tuple[torch.Tensor, torch.Tensor]
    rope, seen = RotaryEmbedding(4, interleaved=True), []
    rope.register_forward_hook(lambda module, given, result: seen.append(result))
    q = torch.ones(2, 3, 4)
    result = rope(q, q, positions=torch.arange(3))
    assert seen == [result]
