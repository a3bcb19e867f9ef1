"""What holds for all public functions alike: no call changes what it was given or what another call returned."""

import math

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from rope_lib import (
    RotaryEmbedding,
    apply_rotary_emb,
    cos_sin,
    frequencies_from_config,
    inverse_frequencies,
    linear,
    scaling,
    sectioned_cos_sin,
    softmax,
)
from rope_lib.formula import rotate_pairs
from tests.conftest import OF_NEW_COMPILERS
from tests.library.calls import COS, OF_TENSORS, RIGHT, SIN, SPEEDS, TRAINED, X, each_tensor, tensors


def same(found, expected):
    """Tensors by their numbers, all else by what it prints."""
    pairs = zip(tree_leaves(found), tree_leaves(expected), strict=True)
    return all(torch.equal(x, y) if isinstance(x, torch.Tensor) else repr(x) == repr(y) for x, y in pairs)


@pytest.mark.parametrize("name", RIGHT)
def test_a_call_changes_nothing_and_gives_what_is_its_own(name):
    """Arguments stay; a result has memory of its own; who spoils it spoils no later call."""
    function, arguments = RIGHT[name]
    given, before = (each_tensor(torch.clone, arguments) for _ in range(2))
    first = function(**given)
    kept = each_tensor(torch.clone, first)
    assert same(given, before)
    theirs = {tensor.untyped_storage().data_ptr() for tensor in tensors(given)}
    own = [result.untyped_storage().data_ptr() for result in tensors(first)]
    assert not theirs & set(own)
    assert len(own) == len(set(own))
    for result in tensors(first):
        result.zero_()
    assert same(given, before)
    assert same(function(**given), kept)


@pytest.mark.parametrize("name", RIGHT)
def test_a_call_sees_what_its_arguments_are_now(name):
    """Nothing is remembered of the values that a tensor had before."""
    function, arguments = RIGHT[name]
    given = each_tensor(torch.clone, arguments)
    function(**given)
    for tensor in tensors(given):
        if tensor.is_floating_point():
            tensor.mul_(0.5)
    assert same(function(**given), function(**each_tensor(torch.clone, given)))


@pytest.mark.parametrize("name", OF_TENSORS)
def test_each_real_argument_has_a_gradient(name):
    function, arguments = RIGHT[name]
    leaves, form = tree_flatten(arguments)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            asked = leaf.clone().requires_grad_()
            result = function(**tree_unflatten([*leaves[:i], asked, *leaves[i + 1 :]], form))
            found = [part.sum() for part in tensors(result) if part.requires_grad]
            assert found, f"argument {i}"
            sum(found).backward()
            assert asked.grad.isfinite().all()


@pytest.mark.parametrize("words", [4, 2**13])
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tangents_pass_without_gradients(words, interleaved, dtype):
    """Forward mode asks for no graph: it works inside of no_grad, for small tensors and for large ones."""
    tables = cos_sin(torch.arange(words), SPEEDS)
    x = torch.ones(words, 8, dtype=dtype)

    def turn(x):
        return apply_rotary_emb(x, *tables, interleaved=interleaved)

    with torch.no_grad():
        value, tangent = torch.func.jvp(turn, (x,), (2 * x,))
    torch.testing.assert_close(tangent, 2 * value, rtol=0.02 if dtype == torch.bfloat16 else 1e-6, atol=1e-5)


@pytest.mark.parametrize("strides", [(51, 8, 1), (48, 9, 1), (97, 16, 2), (48, 8, 1)])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("interleaved", [True, False])
def test_one_odd_step_alone(strides, offset, interleaved):
    memory = torch.arange(400.0)
    x = memory.as_strided((2, 6, 8), strides, offset)
    found = apply_rotary_emb(x, COS, SIN, interleaved=interleaved)
    expected = rotate_pairs(x.contiguous(), COS, SIN, interleaved=interleaved)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    with torch.inference_mode():
        found = apply_rotary_emb(x, COS, SIN, interleaved=interleaved)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


GPU = "mps" if torch.cuda.is_available() else "cuda"  # two that only pretend to be there: a real one would be asked for


@pytest.mark.parametrize("which", ["cos", "sin"])
@pytest.mark.parametrize("other", [f"{GPU}:1", "cpu", "meta"])
def test_two_devices_are_told_apart_by_number_too(which, other):
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(6, 8, device=f"{GPU}:0")
        tables = {name: torch.empty(6, 4, device=f"{GPU}:0") for name in ("cos", "sin")}
        tables[which] = torch.empty(6, 4, device=other)
        with pytest.raises(ValueError, match=f"x is on {GPU}:0, .*{which} on {other}.*must share a device"):
            apply_rotary_emb(x, **tables, interleaved=True)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_queries_and_keys_on_two_gpus_are_told_apart_by_number(which):
    with FakeTensorMode():
        on = [torch.empty(2, 6, 8, device=f"{GPU}:{int(i == which)}") for i in range(3)]
        with pytest.raises(ValueError, match=rf"q, k, v are on {GPU}:.* they must share a device"):
            softmax.attention(*on, causal=True)


@OF_NEW_COMPILERS
def test_tables_come_where_the_positions_are():
    with FakeTensorMode():
        cos, sin = sectioned_cos_sin(
            torch.ones(3, 1, device="mps"),
            inverse_frequencies(8, device="cpu"),
            sections=(4,),
            interleaved_sections=False,
        )
        assert cos.device.type == sin.device.type == "mps"


def test_tables_that_were_changed_are_not_used_for_gradients():
    """As everywhere in torch: what the backward needs is asked for its version."""
    x, (cos, sin) = torch.ones(5000, 8, requires_grad=True), cos_sin(torch.arange(5000), SPEEDS)
    turned = apply_rotary_emb(x, cos, sin, interleaved=False)
    cos.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        turned.sum().backward()


def test_values_alone_may_be_mapped():
    words = X.repeat(1, 7, 1)  # more than one segment of them
    found = torch.vmap(lambda v: linear.linear_attention(words, words, v, causal=True, chunk_size=1))(
        torch.stack((words, 2 * words))
    )
    expected = linear.linear_attention(words, words, words, causal=True, chunk_size=1)
    torch.testing.assert_close(found, torch.stack((expected, 2 * expected)))


@pytest.mark.parametrize("k", range(1, 13))
def test_a_factor_near_one_is_not_one(k):
    near = 1 + 10.0**-k
    expected = (0.1 * 2 * math.log(near) + 1) / (0.1 * 0.5 * math.log(near) + 1)
    found = scaling.yarn_attention_factor(near, mscale=2.0, mscale_all_dim=0.5)
    assert found == pytest.approx(expected, rel=1e-15)
    assert scaling.yarn_attention_factor(near) == pytest.approx(0.1 * math.log(near) + 1, rel=1e-15)
    rope = RotaryEmbedding(8, interleaved=True, attention_factor=near)
    assert f"attention_factor={near:.12g}" in repr(rope)
    cos, _ = rope.tables(torch.tensor([0]), dtype=torch.float64)
    assert (cos == near).all()


def test_bounds_themselves_are_allowed():
    assert scaling.yarn_attention_factor(4.0, mscale=0.0) == 1
    assert torch.equal(scaling.linear_scaling(8, factor=1), SPEEDS)
    assert (scaling.proportional_scaling(8, partial_rotary_factor=0.0) == 0).all()
    assert torch.equal(scaling.proportional_scaling(8, partial_rotary_factor=1.0), SPEEDS)
    step = scaling.ntk_by_parts_scaling(8, **TRAINED, beta_fast=1.0, beta_slow=1.0)
    assert step[0] == 1
    assert linear.linear_attention(X, X, X, causal=True, decay=1.0).shape == X.shape


@pytest.mark.parametrize("scale", [0.0, -0.5])
def test_any_finite_scale_is_that_of_the_formula(scale):
    found = softmax.attention(X, X, X, causal=True, scale=scale)
    expected = softmax.attention_from_scores(scale * X @ X.mT, X, causal=True)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_a_key_that_is_null_is_one_that_is_missing():
    """At every level, as files of transformers are full of them."""
    whole = {
        "head_dim": 8, "max_position_embeddings": 4096, "original_max_position_embeddings": None,
        "rope_parameters": {
            "full_attention": {"rope_type": "yarn", "rope_theta": 1e4, **TRAINED},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        },
    }  # fmt: skip
    expected, factor = frequencies_from_config(whole, layer_type="full_attention")
    for name in ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate", "type"):
        whole["rope_parameters"]["full_attention"][name] = None
    for name in ("hidden_size", "rotary_dim", "rope_scaling", "partial_rotary_factor", "attn_config"):
        whole[name] = None
    found, same = frequencies_from_config(whole, layer_type="full_attention")
    assert torch.equal(found, expected)
    assert same == factor
