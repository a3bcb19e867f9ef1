"""Calls that mean something else than what they would compute are refused, in the words of the caller."""

import json
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch

from rope_lib import (
    RotaryEmbedding,
    cos_sin,
    default_device,
    frequencies_from_config,
    half_split_to_interleaved,
    interleaved_to_half_split,
    inverse_frequencies,
    scaling,
    sectioned_cos_sin,
    softmax,
)
from rope_lib.linear import Rotation, linear_attention, linear_attention_step
from rope_lib.theory import relative, symbolic
from rope_lib.theory.decay import abel_bound
from rope_lib.theory.matrices import rotation_matrix, shift_matrix

X = torch.ones(2, 6, 8)
STEPS = relative.relative_distances(torch.arange(6), torch.arange(6))
LLAMA = {"hidden_size": 64, "num_attention_heads": 8, "rope_theta": 1e4}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
LENGTHS = {"max_position_embeddings": 8192, "original_max_position_embeddings": 4096}
SPEEDS = inverse_frequencies(8)
REFUSED = {
    "no factor": (
        lambda: RotaryEmbedding(8, interleaved=True, attention_factor=None),
        TypeError, "^attention_factor is None; it must be a number",
    ),
    "a factor in quotes": (
        lambda: RotaryEmbedding(8, interleaved=True, attention_factor="1.1"),
        TypeError, "attention_factor is '1.1'; it must be a number",
    ),
    "a tensor of factors": (
        lambda: RotaryEmbedding(8, interleaved=True, attention_factor=torch.ones(2)),
        TypeError, "attention_factor is tensor",
    ),
    "an infinite factor": (
        lambda: RotaryEmbedding(8, interleaved=True, attention_factor=float("inf")),
        ValueError, "attention_factor is inf; it must be a finite number above 0",
    ),
    "reversed speeds": (
        lambda: RotaryEmbedding(8, interleaved=True, inv_freq=SPEEDS.flip(0)),
        ValueError, r"inv_freq goes from 0.001 to 1; .* finite and not rise. Is it reversed\?$",
    ),
    "wavelengths": (
        lambda: RotaryEmbedding(8, interleaved=True, inv_freq=6.283 / SPEEDS),
        ValueError, "Are these wavelengths, or base",
    ),
    "NaN for a speed": (
        lambda: RotaryEmbedding(8, interleaved=True, inv_freq=SPEEDS * torch.tensor([1, 1, float("nan"), 1])),
        ValueError, "it must be finite",
    ),
    "speeds in the place of the size": (
        lambda: RotaryEmbedding(inverse_frequencies(64), interleaved=True),
        TypeError, r"^rotary_dim is tensor\([\s\S]{53}; it must be an int",
    ),
    "neither size nor speeds": (
        lambda: RotaryEmbedding(interleaved=True),
        ValueError, "neither rotary_dim nor inv_freq is given",
    ),
    "heads that are too short": (
        lambda: RotaryEmbedding(16, interleaved=True, head_dim=8),
        ValueError, "rotary_dim is 16; it must be at most head_dim, 8",
    ),
    "heads that were not split": (
        lambda: RotaryEmbedding(8, interleaved=True, head_dim=8)(X.repeat(1, 1, 2), X, positions=torch.arange(6)),
        ValueError, r"q has shape \(2, 6, 16\); head_dim must be 8 .*split",
    ),
    "heads that were not split, of which keys have fewer": (
        lambda: RotaryEmbedding(8, interleaved=True)(X.repeat(1, 1, 4), X.repeat(1, 1, 2), positions=torch.arange(6)),
        ValueError, r"^q has shape \(2, 6, 32\), k \(2, 6, 16\); head_dim must agree .*split",
    ),
    "weights of four bits": (
        lambda: interleaved_to_half_split(torch.zeros(64, 1, dtype=torch.uint8), head_dim=8, dim=0),
        TypeError, "^x has dtype torch.uint8, as packed weights have; reorder them before",
    ),
    "weights of four bits, eight in one": (
        lambda: half_split_to_interleaved(torch.zeros(64, 8, dtype=torch.int32), head_dim=8, dim=1),
        TypeError, "^x has dtype torch.int32, as packed weights have",
    ),
    "a length that is not whole": (
        lambda: frequencies_from_config(
            LLAMA | {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8.192}}
        ),
        TypeError, "^original_max_position_embeddings is 8.192; it must be an int",
    ),
    "a list in the place of a claim": (
        lambda: symbolic.proved([[1, 0]], sympy.eye(1)), TypeError,
        r"^lhs is a list, \[\[1, 0\]\]; it must be a formula or a matrix",
    ),
    "a table in the place of a claim": (
        lambda: symbolic.proved(sympy.eye(2), torch.eye(2)), TypeError,
        r"^rhs is a Tensor, tensor[\s\S]*; it must be a formula",
    ),
    "an equation in the place of a claim": (
        lambda: symbolic.refuted(sympy.Eq(sympy.Symbol("x"), 1), True, at={}), TypeError,
        r"^lhs is a Equality, Eq\(x, 1\); it must",
    ),
    "scores in a list": (
        lambda: symbolic.softmax([0, 1]), TypeError, r"^scores is \[0, 1\]; it must be a matrix of sympy",
    ),
    "positions and their code exchanged": (
        lambda: relative.tupe_scores(X, X[0], X, X[0]), ValueError, "position_q .*; the last two sizes .* no more axes",
    ),
    "a position in half precision": (
        lambda: rotation_matrix(torch.tensor(257, dtype=torch.bfloat16), SPEEDS),
        TypeError, "^position has dtype torch.bfloat16; use integers or float64",
    ),
    "a shift that is a truth value": (lambda: shift_matrix(True, 8), TypeError, "^delta is True; it must be a number"),
    "a shift in quotes": (lambda: shift_matrix("1", 8), TypeError, "^delta is '1'; it must be a number"),
    "a complex position": (
        lambda: rotation_matrix(torch.tensor(1j), SPEEDS), TypeError, "^position has dtype torch.complex64",
    ),
    "positions and speeds exchanged": (
        lambda: cos_sin(SPEEDS, torch.arange(6)), TypeError, "^inv_freq has dtype torch.int64; .* are swapped",
    ),
    "a table of T5 and distances exchanged": (
        lambda: relative.t5_bias(STEPS, torch.ones(6, 6), bidirectional=True),
        ValueError, r"^table has shape \(6, 6\) and dtype torch.int64; .*are table and distances swapped",
    ),
    "both results of a step in the place of the state": (
        lambda: linear_attention_step(linear_attention_step(None, X, X, X), X, X, X),
        TypeError, "^state is a tuple; it must be the State that the last call returned second",
    ),
    "more shapes of h than distances": (
        lambda: abel_bound(torch.ones(5, 4), torch.arange(100)),
        ValueError, r"^h has shape \(5, 4\), distances \(100,\); .* axes in front that broadcast",
    ),
    "tables for a longer text": (
        lambda: RotaryEmbedding(8, interleaved=True)(X, X, positions=torch.arange(4096)),
        ValueError, "seq_len of q is 6, of cos 4096; .* Otherwise make the tables for the positions of q",
    ),
    "a factor of the config in quotes": (
        lambda: frequencies_from_config(LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": "4.0"}}),
        TypeError, "^factor is '4.0'; it must be a number",
    ),
    "a length in words": (
        lambda: frequencies_from_config(LLAMA, seq_len="long"),
        TypeError, "seq_len is 'long'; it must be a number",
    ),
    "only the name of a method": (
        lambda: frequencies_from_config(LLAMA | {"rope_scaling": "yarn"}),
        TypeError, "rope_scaling is 'yarn'; it must be a dict",
    ),
    "a list of settings": (
        lambda: frequencies_from_config(LLAMA | {"rope_scaling": ["yarn", 4.0]}),
        TypeError, "rope_scaling is .*it must be a dict",
    ),
    "a width in quotes": (
        lambda: frequencies_from_config(LLAMA | {"hidden_size": "64"}),
        TypeError, "hidden_size is '64'; it must be an int",
    ),
    "twice the head": (
        lambda: frequencies_from_config(LLAMA | {"partial_rotary_factor": 2}),
        ValueError, "partial_rotary_factor is 2; it must be a finite number of at least 0 and of at most 1",
    ),
    "a share in quotes": (
        lambda: frequencies_from_config(LLAMA | {"partial_rotary_factor": "0.5"}),
        TypeError, "partial_rotary_factor is '0.5'; it must be a number",
    ),
    "an attention factor of the config in quotes": (
        lambda: frequencies_from_config(LLAMA | LENGTHS | {"rope_scaling": LONGROPE | {"attention_factor": "1.1"}}),
        TypeError, "attention_factor is '1.1'",
    ),
    "heads that do not divide the width": (
        lambda: frequencies_from_config({"hidden_size": 2560, "num_attention_heads": 24}),
        TypeError, r"head_dim \(hidden_size 2560 over num_attention_heads 24\) is 106.6.*; it must be an int",
    ),
    "a length of the config in quotes": (
        lambda: frequencies_from_config(
            LLAMA | {"max_position_embeddings": "2048", "rope_scaling": {"type": "dynamic", "factor": 2.0}}
        ),
        TypeError, "^max_position_embeddings is '2048'; it must be an int",
    ),
    "no scaling, in quotes": (
        lambda: frequencies_from_config(LLAMA | {"rope_scaling": ""}), TypeError, "rope_scaling is ''",
    ),
    "no scaling, no": (
        lambda: frequencies_from_config(LLAMA | {"rope_scaling": False}), TypeError, "rope_scaling is False",
    ),
    "no rotation, in quotes": (
        lambda: frequencies_from_config(LLAMA | {"rotary": "false"}),
        TypeError, "rotary is 'false'; it must be True or False",
    ),
    "other biases, in quotes": (
        lambda: frequencies_from_config(LLAMA | {"alibi": "true"}), TypeError, "alibi is 'true'",
    ),
    "a ramp, in quotes": (
        lambda: scaling.yarn_scaling(8, factor=2.0, original_max_position_embeddings=64, truncate="no"),
        TypeError, "truncate is 'no'; it must be True or False",
    ),
    "a dictionary of factors": (
        lambda: scaling.longrope_scaling(8, factors=dict.fromkeys(range(4), 1.0)),
        TypeError, "factors is {0: 1.0.*it must be a list of numbers",
    ),
    "factors in quotes": (
        lambda: scaling.longrope_scaling(8, factors=["1.0"] * 4),
        TypeError, r"factors\[0\] is '1.0'; it must be a number",
    ),
    "no factor for linear": (
        lambda: scaling.linear_scaling(8, factor=None),
        TypeError, "factor is None; it must be a number",
    ),
    "no trained length": (
        lambda: scaling.yarn_scaling(8, factor=2.0, original_max_position_embeddings=None),
        TypeError, "original_max_position_embeddings is None; it must be a number",
    ),
    "rows by name": (
        lambda: interleaved_to_half_split(X, head_dim=8, dim="rows"),
        TypeError, "dim is 'rows'; it must be an int",
    ),
    "half an axis": (lambda: interleaved_to_half_split(X, head_dim=8, dim=2.0), TypeError, "dim is 2.0"),
    "slopes in a list": (lambda: relative.alibi_bias(STEPS, [0.5]), TypeError, "slopes is a list; it must be a tensor"),
    "a mask for distances": (
        lambda: relative.alibi_bias(STEPS > 0, relative.alibi_slopes(2)),
        TypeError, "distances has dtype torch.bool",
    ),
    "a table in a list": (
        lambda: relative.shaw_scores(X, X, torch.ones(3, 8).tolist(), STEPS),
        TypeError, "table is a list; it must be a tensor",
    ),
    "a table of another dtype": (
        lambda: relative.shaw_scores(X, X, torch.ones(3, 8).double(), STEPS),
        TypeError, "q, k, table have dtypes torch.float32, torch.float32, torch.float64",
    ),
    "XL's table of another dtype": (
        lambda: relative.transformer_xl_scores(X, X, torch.ones(6, 8).double(), X[0, 0], X[0, 0], STEPS),
        TypeError, "table, content_bias, position_bias have dtypes",
    ),
    "DeBERTa's tables of another dtype": (
        lambda: relative.deberta_scores(X, X, torch.ones(4, 8).half(), torch.ones(4, 8).half(), STEPS),
        TypeError, "relative_q, relative_k have dtypes",
    ),
    "T5's table in a list": (
        lambda: relative.t5_bias([[0.0]] * 32, STEPS, bidirectional=True),
        TypeError, "table is a list; it must be a tensor",
    ),
    "h in a list": (lambda: abel_bound([1.0, 1.0], STEPS), TypeError, "h is a list; it must be a tensor"),
    "half a head": (lambda: relative.alibi_slopes(8.0), TypeError, "num_heads is 8.0; it must be an int"),
    "heads in quotes": (lambda: relative.alibi_slopes("8"), TypeError, "num_heads is '8'; it must be an int"),
    "features by name": (
        lambda: linear_attention(X, X, X, causal=True, feature_map="elu"),
        TypeError, "feature_map is 'elu'; it must be a function",
    ),
    "decay, yes": (
        lambda: linear_attention(X, X, X, causal=True, decay=True),
        TypeError, "decay is True; it must be a number",
    ),
    "a GPU that is not there": (lambda: default_device(99), ValueError, "name is 99, but no such device can be used"),
    "a flag in quotes": (
        lambda: softmax.attention(X, X, X, causal="False"), TypeError, "causal is 'False'; it must be True or False",
    ),
    "no flag": (lambda: softmax.attention(X, X, X, causal=None), TypeError, "causal is None; it must be True or False"),
    "a flag of linear attention": (lambda: linear_attention(X, X, X, causal="no"), TypeError, "causal is 'no'"),
    "a flag of scores": (lambda: softmax.attention_from_scores(X, X[:, :, :6].mT, causal=1), TypeError, "causal is 1"),
    "a bias without values": (
        lambda: softmax.attention(X, X, X, causal=True, bias=torch.zeros(6, 6, device="meta")),
        ValueError, "bias is on meta and has no values",
    ),
    "speeds without values": (
        lambda: cos_sin(torch.arange(6), SPEEDS.to("meta")), ValueError, "inv_freq is on meta and has no values",
    ),
    "values without a batch": (
        lambda: linear_attention(X, X, X[0], causal=True),
        ValueError, r"v \(6, 8\); they must be .*value_dim\)$",
    ),
    "scores of other heads": (
        lambda: softmax.attention_from_scores(torch.zeros(4, 6, 6), X, causal=True),
        ValueError, r"scores has shape \(4, 6, 6\), v \(2, 6, 8\); .*axes in front the same or 1",
    ),
    "scores of another batch": (
        lambda: softmax.attention_from_scores(torch.zeros(3, 1, 6, 6), X.expand(4, 2, 6, 8), causal=True),
        ValueError, "axes in front the same or 1",
    ),
    "rotated dimensions in quotes": (
        lambda: frequencies_from_config(LLAMA | {"rotary_dim": "4"}),
        TypeError, "^rotary_dim is '4'; it must be an int",
    ),
    "factors in quotes that are for longer texts": (
        lambda: frequencies_from_config(LLAMA | LENGTHS | {"rope_scaling": LONGROPE | {"long_factor": ["2"] * 4}}),
        TypeError, r"factors\[0\] is '2'; it must be a number",
    ),
    "several models": (
        lambda: frequencies_from_config(LLAMA | {"model_type": ["llama"]}),
        TypeError, r"^model_type is \['llama'\]; it must be one string",
    ),
    "several scalings": (
        lambda: frequencies_from_config(LLAMA | {"rope_parameters": {"rope_type": ["yarn"]}}),
        TypeError, r"^rope_type is \['yarn'\]; it must be one string",
    ),
    "several scalings of old": (
        lambda: frequencies_from_config(LLAMA | {"rope_scaling": {"type": {"yarn": 4}}}),
        TypeError, r"^type is {'yarn': 4}; it must be one string",
    ),
    "all types of layers": (
        lambda: frequencies_from_config({"head_dim": 8}, layer_type=["full_attention"]),
        TypeError, r"layer_type is \['full_attention'\]; it must be one string",
    ),
    "a flag of sections": (
        lambda: sectioned_cos_sin(torch.zeros(5, 2), SPEEDS, sections=(2, 2), interleaved_sections="false"),
        TypeError, "interleaved_sections is 'false'",
    ),
    "a flag of buckets": (lambda: relative.t5_bucket(STEPS, bidirectional=None), TypeError, "bidirectional is None"),
    "a scale in quotes": (lambda: softmax.attention(X, X, X, causal=True, scale="0.1"), TypeError, "scale is '0.1'"),
    "a scale that is no number": (
        lambda: softmax.attention(X, X, X, causal=True, scale=float("nan")),
        ValueError, "scale is nan; it must be a finite number$",
    ),
    "no keys": (
        lambda: RotaryEmbedding(8, interleaved=True, head_dim=8)(X, None, positions=torch.arange(6)),
        TypeError, "k is a NoneType; it must be a tensor",
    ),
    "keys of another size": (
        lambda: RotaryEmbedding(8, interleaved=True, head_dim=8)(X, X.repeat(1, 1, 2), positions=torch.arange(6)),
        ValueError, r"k has shape \(2, 6, 16\); head_dim must be 8",
    ),
    "no scale at all": (
        lambda: softmax.attention(X, X, X, causal=True, scale=-float("inf")), ValueError, "scale is -inf; it must be",
    ),
    "features of other words": (
        lambda: linear_attention(X, X, X, causal=False, feature_map=lambda x: x[..., :1, :].exp()),
        ValueError, r"feature_map makes \(2, 1, 8\), torch.float32, of \(2, 6, 8\)",
    ),
    "speeds and no base": (
        lambda: RotaryEmbedding(interleaved=True, inv_freq=SPEEDS, base=0),
        ValueError, "base is 0, and inv_freq is given, too",
    ),
    "turns that are true": (
        lambda: scaling.yarn_scaling(8, factor=2.0, original_max_position_embeddings=64, beta_slow=True),
        TypeError, "beta_slow is True; it must be a number",
    ),
    "a text of factors": (
        lambda: scaling.longrope_scaling(4, factors="12"), TypeError, "factors is '12'; it must be a list of numbers",
    ),
    "bytes of factors": (
        lambda: scaling.longrope_scaling(4, factors=b"12"), TypeError, "factors is b'12'; it must be a list of numbers",
    ),
    "heads that are true": (
        lambda: frequencies_from_config({"hidden_size": 16, "num_attention_heads": True}),
        TypeError, "num_attention_heads is True; it must be an int",
    ),
    "heads of the config in quotes": (
        lambda: frequencies_from_config({"hidden_size": 16, "num_attention_heads": "2"}),
        TypeError, "num_attention_heads is '2'; it must be an int",
    ),
    "whether there are buckets": (
        lambda: relative.t5_bucket(torch.tensor([True, False]), bidirectional=False),
        TypeError, "distances has dtype torch.bool",
    ),
    "a bias for each position": (
        lambda: relative.transformer_xl_scores(X, X, torch.ones(6, 8), X, X[0, 0], STEPS),
        ValueError, r"content_bias has shape \(2, 6, 8\); use \(8,\) or \(heads, 1, 8\)",
    ),
    "tables without an axis": (
        lambda: linear_attention(X, X, X, causal=True, rotation=Rotation(*SPEEDS[:2], True, True)),
        ValueError, r"cos \(\); q must be \(..., seq_len, head_dim\)",
    ),
    "interleaved sections of another order": (
        lambda: sectioned_cos_sin(torch.ones(3, 2), SPEEDS, sections=(1, 3), interleaved_sections=True),
        ValueError, r"sections are \(1, 3\); interleaved, so many pairs would be \(2, 2\)",
    ),
    "speeds and factor together": (
        lambda: RotaryEmbedding(inv_freq=frequencies_from_config(LLAMA), interleaved=True),
        TypeError, "inv_freq is a tuple; it must be a tensor",
    ),
    "speeds without end": (
        lambda: RotaryEmbedding(interleaved=True, inv_freq=torch.tensor([float("inf")]).double()),
        ValueError, "inv_freq goes from inf to inf; it must be finite",
    ),
    "speeds that begin without end": (
        lambda: RotaryEmbedding(interleaved=True, inv_freq=torch.tensor([float("inf"), 1.0]).double()),
        ValueError, "inv_freq goes from inf to 1; it must be finite",
    ),
    "one position without an axis": (
        lambda: RotaryEmbedding(8, interleaved=True)(X[:, :1], X[:, :1], positions=torch.tensor(5)),
        ValueError, r"for a single token, add the axis with positions\[None\]",
    ),
    "a position for each row": (
        lambda: RotaryEmbedding(8, interleaved=True)(X[:, :1], X[:, :1], positions=torch.tensor([5, 9])),
        ValueError, r"If each row has its own positions, they must be \(batch, 1, seq_len\)",
    ),
    "the axis of heads behind positions": (
        lambda: RotaryEmbedding(8, interleaved=True)(X[:, None], X[:, None], positions=torch.zeros(2, 6, 1)),
        ValueError, r"of cos 1; .*If each row has its own positions, they must be \(batch, 1, seq_len\)",
    ),
    "features without an axis": (
        lambda: linear_attention(X, X, X, causal=True, feature_map=lambda x: x.sum(-1)),
        ValueError, r"feature_map makes \(2, 6\), torch.float32, of \(2, 6, 8\)",
    ),
    "features of another dtype": (
        lambda: linear_attention(X, X, X, causal=True, feature_map=lambda x: x.half()),
        ValueError, "feature_map makes .* torch.float16, of",
    ),
    "no sections": (
        lambda: sectioned_cos_sin(torch.zeros(5, 2), SPEEDS, sections=None, interleaved_sections=False),
        TypeError, "sections is None; it must be a tuple or list",
    ),
    "sections with a point": (
        lambda: sectioned_cos_sin(torch.zeros(5, 2), SPEEDS, sections=(2.0, 2.0), interleaved_sections=False),
        ValueError, "a whole number",
    ),
    "no factors": (lambda: scaling.longrope_scaling(8, factors=None), TypeError, "factors is None; it must be a list"),
    "a device by a fraction": (lambda: default_device(0.5), ValueError, "name is 0.5"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_the_callers_words(name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["rotary_dim", "interleaved", "head_dim", "base", "inv_freq", "attention_factor"])
def test_what_makes_the_rotation_is_fixed(name):
    rope = RotaryEmbedding(8, interleaved=True)
    with pytest.raises(AttributeError, match=f"^{name} is fixed; make another RotaryEmbedding"):
        setattr(rope, name, getattr(rope, name))


def test_a_configuration_is_not_changed_by_reading_it():
    config = LLAMA | LENGTHS | {"rope_scaling": LONGROPE | {"mscale": None}}
    before = json.dumps(config)
    for seq_len in (None, 100, 8192):
        frequencies_from_config(config, seq_len=seq_len)
    assert json.dumps(config) == before


def test_the_module_takes_its_size_from_the_speeds():
    rope = RotaryEmbedding(inv_freq=SPEEDS, interleaved=False, head_dim=8)
    assert rope.rotary_dim == 8
    assert "head_dim=8" in repr(rope)
    assert rope.base is None
    q, k = rope(X, X, positions=torch.arange(6))
    expected = RotaryEmbedding(8, interleaved=False)(X, X, positions=torch.arange(6))
    assert torch.equal(q, expected[0])
    assert torch.equal(k, expected[1])


def test_numbers_of_other_kinds_are_numbers():
    """Fractions, and numpy's."""
    for four in (Fraction(4), np.float32(4), np.int64(4)):
        assert torch.equal(scaling.linear_scaling(8, factor=four), SPEEDS / 4)
        trained = {"factor": four, "original_max_position_embeddings": 512 * four, "beta_slow": four / 4}
        expected = {"factor": 4.0, "original_max_position_embeddings": 2048}
        for scaled in (scaling.ntk_by_parts_scaling, scaling.yarn_scaling):
            assert torch.equal(scaled(8, **trained), scaled(8, **expected))
        rope = RotaryEmbedding(8, interleaved=True, attention_factor=four)
        assert torch.equal(rope.tables(torch.tensor([0]))[0], torch.full((1, 4), 4.0))
        found = softmax.attention(X, X, X, causal=True, scale=four / 8)
        torch.testing.assert_close(found, softmax.attention(X, X, X, causal=True, scale=0.5))
        found = linear_attention(X, X, X, causal=True, decay=four / 8)
        torch.testing.assert_close(found, linear_attention(X, X, X, causal=True, decay=0.5))
    assert torch.equal(relative.alibi_slopes(np.int64(4)), relative.alibi_slopes(4))


def test_who_overrides_the_speeds_changes_the_angles():
    class Slower(RotaryEmbedding):
        inv_freq = property(lambda self: SPEEDS / 2)

    found = Slower(8, interleaved=True)(X, X, positions=torch.arange(6))[0]
    expected = RotaryEmbedding(8, interleaved=True)(X, X, positions=torch.arange(6) / 2)[0]
    assert torch.equal(found, expected)


def test_speeds_that_are_handed_out_are_a_copy():
    """The line of position interpolation is refused, and what it did before that reaches no angle."""
    rope, fresh = (RotaryEmbedding(8, interleaved=True) for _ in range(2))
    with pytest.raises(AttributeError, match="inv_freq is fixed; make another RotaryEmbedding"):
        rope.inv_freq /= 4
    rope.inv_freq.mul_(2)
    with pytest.raises(AttributeError):
        del rope.inv_freq
    turned = (module(X, X, positions=torch.arange(6))[0] for module in (rope, fresh))
    assert torch.equal(*turned)
    assert torch.equal(rope.inv_freq, SPEEDS)


def test_small_things_that_went_wrong_in_silence():
    assert torch.equal(shift_matrix(torch.tensor(2, dtype=torch.uint8), 4), shift_matrix(2, 4))
    assert (
        repr(RotaryEmbedding(8, interleaved=True, base=Fraction(100)))
        == "RotaryEmbedding(8, interleaved=True, base=100)"
    )
    assert default_device("").type in ("cpu", "cuda")


@pytest.mark.parametrize("shape", [(2, 1), (2, 300), (2, 4096), (2048,), (1, 2048), (1, 1, 300)])
@pytest.mark.parametrize("decay", [None, 0.9])
def test_a_state_keeps_no_more_alive_than_it_is(shape, decay):
    """Where leading axes are 1, a view is contiguous, too."""
    q = torch.ones(*shape, 16)
    _, state = linear_attention_step(None, q, q, q, decay=decay)
    _, later = linear_attention_step(state, *[q[..., :1, :]] * 3, decay=decay)
    for part in (*state, *later):
        assert part.untyped_storage().nbytes() == part.nbytes
