"""What is tested of all public functions alike: for each a right call, other right calls, and what it refuses."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import sympy
import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from rope_lib import config, delta_rule, device, formula, frequencies, layouts, linear, rotary, scaling, softmax
from rope_lib.theory import decay, matrices, reference, relative, sinusoidal, symbolic

PLACES = torch.arange(6)
SPEEDS = frequencies.inverse_frequencies(8)
COS, SIN = frequencies.cos_sin(PLACES, SPEEDS)
X = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
STEPS = relative.relative_distances(PLACES, PLACES)
SUMS = torch.ones(2, 8, 8)
KEYS = torch.nn.functional.normalize(X, dim=-1)
SHARES = X[..., 0].sigmoid()  # between 0 and 1, one for each token
SYMBOL = sympy.Symbol("x")
TURN = linear.Rotation(COS, SIN, interleaved=True, denominator=False)
TRAINED = {"factor": 2.0, "original_max_position_embeddings": 64}
YARN = {"type": "yarn", **TRAINED}
LLAMA = {"hidden_size": 64, "num_attention_heads": 8, "rope_theta": 1e4}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
LENGTHS = {"max_position_embeddings": 8192, "original_max_position_embeddings": 4096}
OF_PARTS = {  # what both methods refuse that treat pairs by their turns
    "a length below 0": (
        ValueError, "^original_max_position_embeddings is -1; it must be a finite number above 0$",
        {"original_max_position_embeddings": -1},
    ),
    "an infinite length": (
        ValueError, "^original_max_position_embeddings is inf; it must be a finite number above 0$",
        {"original_max_position_embeddings": math.inf},
    ),
    "turns that are swapped": (
        ValueError, "^beta_fast is 1 and beta_slow 32; needed are .*Are the two swapped",
        {"beta_fast": 1, "beta_slow": 32},
    ),
    "no turns": (
        ValueError, "^beta_fast is 2 and beta_slow 0; needed are .*Are the two swapped",
        {"beta_fast": 2, "beta_slow": 0},
    ),
    "a factor below 1": (ValueError, "^factor is 0.5", {"factor": 0.5}),
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A function, arguments that are right, changes of them that are right, too, and changes that are refused."""

    function: Callable
    right: dict
    others: dict = field(default_factory=dict)  # a name for each
    refused: dict = field(default_factory=dict)  # for each a name, and the error, words of it, and the change


def embedded(q, k, positions, **settings):
    return rotary.RotaryEmbedding(8, **settings)(q, k, positions=positions)


FUNCTIONS = [
    Call(config.frequencies_from_config, {"config": {"head_dim": 8, "rope_theta": 1e4, "rope_scaling": YARN}}, refused={
        "a length that is not whole": (
            TypeError, "^original_max_position_embeddings is 8.192; it must be an int",
            {"config": LLAMA | {"rope_scaling": YARN | {"original_max_position_embeddings": 8.192}}},
        ),
        "a factor in quotes": (
            TypeError, "^factor is '4.0'; it must be a number",
            {"config": LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": "4.0"}}},
        ),
        "a length in words": (
            TypeError, "seq_len is 'long'; it must be a number", {"config": LLAMA, "seq_len": "long"},
        ),
        "only the name of a method": (
            TypeError, "rope_scaling is 'yarn'; it must be a dict", {"config": LLAMA | {"rope_scaling": "yarn"}},
        ),
        "a list of settings": (
            TypeError, "rope_scaling is .*it must be a dict", {"config": LLAMA | {"rope_scaling": ["yarn", 4.0]}},
        ),
        "a width in quotes": (
            TypeError, "hidden_size is '64'; it must be an int", {"config": LLAMA | {"hidden_size": "64"}},
        ),
        "twice the head": (
            ValueError, "partial_rotary_factor is 2; it must be a finite number of at least 0 and of at most 1",
            {"config": LLAMA | {"partial_rotary_factor": 2}},
        ),
        "a share in quotes": (
            TypeError, "partial_rotary_factor is '0.5'; it must be a number",
            {"config": LLAMA | {"partial_rotary_factor": "0.5"}},
        ),
        "an attention factor in quotes": (
            TypeError, "attention_factor is '1.1'",
            {"config": LLAMA | LENGTHS | {"rope_scaling": LONGROPE | {"attention_factor": "1.1"}}},
        ),
        "heads that do not divide the width": (
            TypeError, r"head_dim \(hidden_size 2560 over num_attention_heads 24\) is 106.6.*; it must be an int",
            {"config": {"hidden_size": 2560, "num_attention_heads": 24}},
        ),
        "a length in quotes": (
            TypeError, "^max_position_embeddings is '2048'; it must be an int",
            {"config": LLAMA | {"max_position_embeddings": "2048", "rope_scaling": {"type": "dynamic", "factor": 2.0}}},
        ),
        "no scaling, in quotes": (TypeError, "rope_scaling is ''", {"config": LLAMA | {"rope_scaling": ""}}),
        "no scaling, no": (TypeError, "rope_scaling is False", {"config": LLAMA | {"rope_scaling": False}}),
        "no rotation, in quotes": (
            TypeError, "rotary is 'false'; it must be True or False", {"config": LLAMA | {"rotary": "false"}},
        ),
        "other biases, in quotes": (TypeError, "alibi is 'true'", {"config": LLAMA | {"alibi": "true"}}),
        "rotated dimensions in quotes": (
            TypeError, "^rotary_dim is '4'; it must be an int", {"config": LLAMA | {"rotary_dim": "4"}},
        ),
        "factors in quotes that are for longer texts": (
            TypeError, r"factors\[0\] is '2'; it must be a number",
            {"config": LLAMA | LENGTHS | {"rope_scaling": LONGROPE | {"long_factor": ["2"] * 4}}},
        ),
        "several models": (
            TypeError, r"^model_type is \['llama'\]; it must be one string",
            {"config": LLAMA | {"model_type": ["llama"]}},
        ),
        "several scalings": (
            TypeError, r"^rope_type is \['yarn'\]; it must be one string",
            {"config": LLAMA | {"rope_parameters": {"rope_type": ["yarn"]}}},
        ),
        "several scalings of old": (
            TypeError, r"^type is {'yarn': 4}; it must be one string",
            {"config": LLAMA | {"rope_scaling": {"type": {"yarn": 4}}}},
        ),
        "all types of layers": (
            TypeError, r"layer_type is \['full_attention'\]; it must be one string",
            {"config": {"head_dim": 8}, "layer_type": ["full_attention"]},
        ),
        "heads that are true": (
            TypeError, "num_attention_heads is True; it must be an int",
            {"config": {"hidden_size": 16, "num_attention_heads": True}},
        ),
        "heads in quotes": (
            TypeError, "num_attention_heads is '2'; it must be an int",
            {"config": {"hidden_size": 16, "num_attention_heads": "2"}},
        ),
    }),
    Call(config.rotation_from_config, {"config": LLAMA}),
    Call(delta_rule.delta_rule_step, {
        "state": SUMS, "q": X[:, 0], "k": KEYS[:, 0], "v": X[:, 0], "beta": SHARES[:, 0], "gate": SHARES[:, 1],
    }),
    Call(delta_rule.delta_rule_chunk, {"state": SUMS, "q": X, "k": KEYS, "v": X, "beta": SHARES, "gate": SHARES}),
    Call(device.default_device, {"name": "cpu"}, refused={
        "a GPU that is not there": (ValueError, "name is 99, but no such device can be used", {"name": 99}),
        "a device by a fraction": (ValueError, "name is 0.5", {"name": 0.5}),
    }),
    Call(formula.rotate_pairs, {"x": X, "cos": COS, "sin": SIN, "interleaved": True}),
    Call(frequencies.inverse_frequencies, {"rotary_dim": 8}),
    Call(frequencies.cos_sin, {"positions": torch.arange(6.0), "inv_freq": SPEEDS}, refused={
        "positions and speeds exchanged": (
            TypeError, "^inv_freq has dtype torch.int64; .* are swapped", {"positions": SPEEDS, "inv_freq": PLACES},
        ),
        "speeds without values": (ValueError, "inv_freq is on meta and has no values", {"inv_freq": SPEEDS.to("meta")}),
    }),
    Call(frequencies.axial_cos_sin, {"positions": torch.zeros(6, 2), "inv_freq": SPEEDS}, others={
        "whole numbers": {"positions": torch.arange(9).view(3, 3)},
    }),
    Call(frequencies.sectioned_cos_sin, {
        "positions": torch.ones(6, 2), "inv_freq": SPEEDS, "sections": (2, 2), "interleaved_sections": False,
    }, others={"three": {"positions": torch.arange(9).view(3, 3), "sections": (2, 1, 1)}}, refused={
        "a flag in quotes": (TypeError, "interleaved_sections is 'false'", {"interleaved_sections": "false"}),
        "another order": (
            ValueError, r"sections are \(1, 3\); interleaved, so many pairs would be \(2, 2\)",
            {"sections": (1, 3), "interleaved_sections": True},
        ),
        "no sections": (TypeError, "sections is None; it must be a tuple or list", {"sections": None}),
        "sections with a point": (ValueError, "a whole number", {"sections": (2.0, 2.0)}),
    }),
    Call(layouts.interleaved_to_half_split, {"x": X, "head_dim": 8, "dim": -1}, others={
        "one pair": {"rotary_dim": 2},
        "two heads": {"head_dim": 4},
    }, refused={
        "weights of four bits": (
            TypeError, "^x has dtype torch.uint8, as packed weights have; reorder them before",
            {"x": torch.zeros(64, 1, dtype=torch.uint8), "dim": 0},
        ),
        "rows by name": (TypeError, "dim is 'rows'; it must be an int", {"dim": "rows"}),
        "half an axis": (TypeError, "dim is 2.0", {"dim": 2.0}),
    }),
    Call(layouts.half_split_to_interleaved, {"x": X, "head_dim": 2, "dim": -1}, refused={
        "weights of four bits, eight in one": (
            TypeError, "^x has dtype torch.int32, as packed weights have",
            {"x": torch.zeros(64, 8, dtype=torch.int32), "head_dim": 8, "dim": 1},
        ),
    }),
    Call(linear.elu_plus_one, {"x": X}),
    Call(linear.linear_attention, {"q": X, "k": X, "v": X, "causal": True}, others={
        "turned": {"rotation": TURN},
        "all words": {"causal": False},
        "all words, turned": {"rotation": TURN, "causal": False},
        "turned, decay": {"rotation": TURN, "decay": 0.9, "chunk_size": 2},
    }, refused={
        "features by name": (TypeError, "feature_map is 'elu'; it must be a function", {"feature_map": "elu"}),
        "decay, yes": (TypeError, "decay is True; it must be a number", {"decay": True}),
        "a flag in quotes": (TypeError, "causal is 'no'", {"causal": "no"}),
        "values without a batch": (ValueError, r"v \(6, 8\); they must be .*value_dim\)$", {"v": X[0]}),
        "features of other words": (
            ValueError, r"feature_map makes \(2, 1, 8\), torch.float32, of \(2, 6, 8\)",
            {"causal": False, "feature_map": lambda x: x[..., :1, :].exp()},
        ),
        "tables without an axis": (
            ValueError, r"cos \(\); q must be \(..., seq_len, head_dim\)",
            {"rotation": linear.Rotation(*SPEEDS[:2], True, True)},
        ),
        "features without an axis": (
            ValueError, r"feature_map makes \(2, 6\), torch.float32, of \(2, 6, 8\)",
            {"feature_map": lambda x: x.sum(-1)},
        ),
        "features of another dtype": (
            ValueError, "feature_map makes .* torch.float16, of", {"feature_map": lambda x: x.half()},
        ),
    }),
    Call(linear.linear_attention_step, {"state": linear.State(SUMS, SUMS[0, :2]), "q": X, "k": X, "v": X}, refused={
        "both results of a step in the place of the state": (
            TypeError, "^state is a tuple; it must be the State that the last call returned second",
            {"state": (X, linear.State(SUMS, SUMS[0, :2]))},
        ),
    }),
    Call(rotary.apply_rotary_emb, {"x": X, "cos": COS, "sin": SIN, "interleaved": True}, others={
        "halves": {"interleaved": False},
    }),
    Call(rotary.apply_rotary_pos_emb, {"q": X, "k": X + 1, "cos": COS, "sin": SIN, "interleaved": True}),
    Call(rotary.RotaryEmbedding, {"rotary_dim": 8, "interleaved": True}, refused={
        "no factor": (TypeError, "^attention_factor is None; it must be a number", {"attention_factor": None}),
        "a factor in quotes": (
            TypeError, "attention_factor is '1.1'; it must be a number", {"attention_factor": "1.1"},
        ),
        "a tensor of factors": (TypeError, "attention_factor is tensor", {"attention_factor": torch.ones(2)}),
        "an infinite factor": (
            ValueError, "attention_factor is inf; it must be a finite number above 0", {"attention_factor": math.inf},
        ),
        "reversed speeds": (
            ValueError, r"inv_freq goes from 0.001 to 1; .* finite and not rise. Is it reversed\?$",
            {"inv_freq": SPEEDS.flip(0)},
        ),
        "wavelengths": (ValueError, "Are these wavelengths, or base", {"inv_freq": 6.283 / SPEEDS}),
        "NaN for a speed": (ValueError, "it must be finite", {"inv_freq": SPEEDS * torch.tensor([1, 1, math.nan, 1])}),
        "speeds in the place of the size": (
            TypeError, r"^rotary_dim is tensor\([\s\S]{53}; it must be an int",
            {"rotary_dim": frequencies.inverse_frequencies(64)},
        ),
        "neither size nor speeds": (ValueError, "neither rotary_dim nor inv_freq is given", {"rotary_dim": None}),
        "heads that are too short": (
            ValueError, "rotary_dim is 16; it must be at most head_dim, 8", {"rotary_dim": 16, "head_dim": 8},
        ),
        "speeds and no base": (
            ValueError, "base is 0, and inv_freq is given, too", {"rotary_dim": None, "inv_freq": SPEEDS, "base": 0},
        ),
        "speeds and factor together": (
            TypeError, "inv_freq is a tuple; it must be a tensor", {"rotary_dim": None, "inv_freq": (SPEEDS, 1.0)},
        ),
        "speeds without end": (
            ValueError, "inv_freq goes from inf to inf; it must be finite",
            {"rotary_dim": None, "inv_freq": torch.tensor([math.inf]).double()},
        ),
        "speeds that begin without end": (
            ValueError, "inv_freq goes from inf to 1; it must be finite",
            {"rotary_dim": None, "inv_freq": torch.tensor([math.inf, 1.0]).double()},
        ),
    }),
    Call(embedded, {"q": X, "k": X, "positions": PLACES, "interleaved": True}, others={
        "halves": {"interleaved": False},
        "real places": {"positions": torch.arange(6.0)},
        "position 0": {"positions": torch.zeros(6), "interleaved": False},
    }, refused={
        "heads that were not split": (
            ValueError, r"q has shape \(2, 6, 16\); head_dim must be 8 .*split",
            {"q": X.repeat(1, 1, 2), "head_dim": 8},
        ),
        "heads that were not split, of which keys have fewer": (
            ValueError, r"^q has shape \(2, 6, 32\), k \(2, 6, 16\); head_dim must agree .*split",
            {"q": X.repeat(1, 1, 4), "k": X.repeat(1, 1, 2)},
        ),
        "tables for a longer text": (
            ValueError, "seq_len of q is 6, of cos 4096; .* Otherwise make the tables for the positions of q",
            {"positions": torch.arange(4096)},
        ),
        "no keys": (TypeError, "k is a NoneType; it must be a tensor", {"k": None, "head_dim": 8}),
        "keys of another size": (
            ValueError, r"k has shape \(2, 6, 16\); head_dim must be 8", {"k": X.repeat(1, 1, 2), "head_dim": 8},
        ),
        "one position without an axis": (
            ValueError, r"for a single token, add the axis with positions\[None\]",
            {"q": X[:, :1], "k": X[:, :1], "positions": torch.tensor(5)},
        ),
        "a position for each row": (
            ValueError, r"If each row has its own positions, they must be \(batch, 1, seq_len\)",
            {"q": X[:, :1], "k": X[:, :1], "positions": torch.tensor([5, 9])},
        ),
        "the axis of heads behind positions": (
            ValueError, r"of cos 1; .*If each row has its own positions, they must be \(batch, 1, seq_len\)",
            {"q": X[:, None], "k": X[:, None], "positions": torch.zeros(2, 6, 1)},
        ),
    }),
    Call(scaling.linear_scaling, {"rotary_dim": 8, "factor": 2.0}, others={
        "without effect": {"rotary_dim": 16, "factor": 1},
    }, refused={
        "a factor below 1": (
            ValueError, "^factor is 0.5; .* at least 1 .the new length over the trained one.$", {"factor": 0.5},
        ),
        "an infinite factor": (ValueError, "^factor is inf", {"factor": math.inf}),
        "a factor that is no number": (ValueError, "^factor is nan", {"factor": math.nan}),
        "no factor": (TypeError, "factor is None; it must be a number", {"factor": None}),
        "an odd size": (ValueError, "^rotary_dim is 7", {"rotary_dim": 7}),
        "an infinite base": (ValueError, "^base is inf; it must be a finite number", {"base": math.inf}),
    }),
    Call(scaling.ntk_scaling, {"rotary_dim": 8, "factor": 2.0}, others={
        "without effect": {"rotary_dim": 16, "factor": 1},
    }, refused={
        "a factor below 1": (ValueError, "^factor is 0.9", {"factor": 0.9}),
        "one pair": (ValueError, "^rotary_dim is 2; NTK-aware scaling needs at least 4", {"rotary_dim": 2}),
        "the base 1": (ValueError, "^base is 1;", {"base": 1}),
    }),
    Call(scaling.dynamic_ntk_scaling, {
        "rotary_dim": 8, "factor": 2.0, "seq_len": 20, "max_position_embeddings": 10,
    }, others={"without effect": {"rotary_dim": 16, "factor": 1, "seq_len": 10}}, refused={
        "a factor below 1": (ValueError, "^factor is 0.5", {"factor": 0.5, "seq_len": 1, "max_position_embeddings": 1}),
        "no words": (ValueError, "^seq_len is 0; it must be a finite number above 0$", {"seq_len": 0}),
        "no trained length": (
            ValueError, "^max_position_embeddings is 0; it must be a finite number above 0",
            {"seq_len": 1, "max_position_embeddings": 0},
        ),
    }),
    Call(scaling.ntk_by_parts_scaling, {"rotary_dim": 8, **TRAINED}, others={
        "without effect": {"rotary_dim": 16, "factor": 1, "original_max_position_embeddings": 2048},
    }, refused=OF_PARTS),
    Call(scaling.yarn_scaling, {"rotary_dim": 8, **TRAINED}, others={
        "without effect": {"rotary_dim": 16, "factor": 1, "original_max_position_embeddings": 2048},
    }, refused=OF_PARTS | {
        "infinite turns": (ValueError, "^beta_fast is inf", {"beta_fast": math.inf}),
        "turns that are true": (TypeError, "beta_slow is True; it must be a number", {"beta_slow": True}),
        "a ramp, in quotes": (TypeError, "truncate is 'no'; it must be True or False", {"truncate": "no"}),
        "no trained length": (
            TypeError, "original_max_position_embeddings is None; it must be a number",
            {"original_max_position_embeddings": None},
        ),
    }),
    Call(scaling.yarn_attention_factor, {"factor": 2}, refused={
        "a factor below 1": (ValueError, "^factor is 0.5", {"factor": 0.5}),
        "a scale that is no number": (ValueError, "^mscale is nan", {"mscale": math.nan}),
        "a scale below 0": (ValueError, "^mscale is -1; it must be a finite number of at least 0$", {"mscale": -1}),
        "a scale of all below 0": (ValueError, "^mscale_all_dim is -1", {"mscale_all_dim": -1}),
    }),
    Call(scaling.longrope_scaling, {"rotary_dim": 8, "factors": [1.0] * 4}, others={
        "without effect": {"rotary_dim": 16, "factors": [1] * 8},
    }, refused={
        "an infinite factor": (ValueError, r"^factors\[1\] is inf", {"rotary_dim": 4, "factors": [1.0, math.inf]}),
        "a factor that is no number": (
            ValueError, r"^factors\[0\] is nan", {"rotary_dim": 4, "factors": [math.nan, 1]},
        ),
        "a factor of 0": (ValueError, r"^factors\[2\] is 0; it must be .* above 0", {"factors": [1, 2, 0, 4]}),
        "two factors": (ValueError, r"^factors has 2 numbers; it must have rotary_dim // 2 = 4$", {"factors": [1, 2]}),
        "an empty list": (ValueError, "^factors has 0 numbers", {"factors": []}),
        "a dictionary": (
            TypeError, "factors is {0: 1.0.*it must be a list of numbers", {"factors": dict.fromkeys(range(4), 1.0)},
        ),
        "factors in quotes": (TypeError, r"factors\[0\] is '1.0'; it must be a number", {"factors": ["1.0"] * 4}),
        "a text": (TypeError, "factors is '12'; it must be a list of numbers", {"rotary_dim": 4, "factors": "12"}),
        "bytes": (TypeError, "factors is b'12'; it must be a list of numbers", {"rotary_dim": 4, "factors": b"12"}),
        "no factors": (TypeError, "factors is None; it must be a list", {"factors": None}),
    }),
    Call(scaling.longrope_attention_factor, {"factor": 2, "original_max_position_embeddings": 8}, refused={
        "a factor below 1": (ValueError, "^factor is 0.5", {"factor": 0.5}),
        "a length of 1": (
            ValueError, "^original_max_position_embeddings is 1; it must be a finite number above 1$",
            {"original_max_position_embeddings": 1},
        ),
        "an infinite length": (
            ValueError, "^original_max_position_embeddings is inf; it must be a finite number above 1$",
            {"original_max_position_embeddings": math.inf},
        ),
    }),
    Call(scaling.proportional_scaling, {"rotary_dim": 8, "partial_rotary_factor": 0.5}, others={
        "without effect": {"rotary_dim": 16, "partial_rotary_factor": 1},
    }, refused={
        "twice the head": (
            ValueError, "^partial_rotary_factor is 2; it must be a finite number of at least 0 and of at most 1$",
            {"partial_rotary_factor": 2},
        ),
        "less than nothing": (
            ValueError, "^partial_rotary_factor is -0.1; it must be a finite number of at least 0 and of at most 1$",
            {"partial_rotary_factor": -0.1},
        ),
        "a share that is no number": (
            ValueError, "^partial_rotary_factor is nan; it must be a finite number of at least 0 and of at most 1$",
            {"partial_rotary_factor": math.nan},
        ),
    }),
    Call(softmax.attention, {"q": X, "k": X, "v": X, "causal": True}, others={
        "a bias": {"bias": torch.zeros(6, 6)},
        "slopes": {"bias": relative.alibi_bias(STEPS, relative.alibi_slopes(2))},
        "the cache": {"q": X[:, 4:]},
        "a scale": {"k": X + 1, "scale": -0.5},
    }, refused={
        "a flag in quotes": (TypeError, "causal is 'False'; it must be True or False", {"causal": "False"}),
        "no flag": (TypeError, "causal is None; it must be True or False", {"causal": None}),
        "a bias without values": (
            ValueError, "bias is on meta and has no values", {"bias": torch.zeros(6, 6, device="meta")},
        ),
        "a scale in quotes": (TypeError, "scale is '0.1'", {"scale": "0.1"}),
        "a scale that is no number": (ValueError, "scale is nan; it must be a finite number$", {"scale": math.nan}),
        "no scale at all": (ValueError, "scale is -inf; it must be", {"scale": -math.inf}),
    }),
    Call(softmax.attention_from_scores, {"scores": torch.ones(6, 6), "v": X, "causal": True}, others={
        "several heads": {"scores": X @ X.mT},
    }, refused={
        "a flag that is a number": (TypeError, "causal is 1", {"causal": 1}),
        "scores of other heads": (
            ValueError, r"scores has shape \(4, 6, 6\), v \(2, 6, 8\); .*axes in front the same or 1",
            {"scores": torch.zeros(4, 6, 6)},
        ),
        "scores of another batch": (
            ValueError, "axes in front the same or 1", {"scores": torch.zeros(3, 1, 6, 6), "v": X.expand(4, 2, 6, 8)},
        ),
    }),
    Call(decay.mean_partial_sum, {"distances": torch.arange(6.0), "dim": 8}),
    Call(decay.abel_bound, {"h": X[0, 0, :4], "distances": torch.arange(6.0)}, refused={
        "more shapes of h than distances": (
            ValueError, r"^h has shape \(5, 4\), distances \(100,\); .* axes in front that broadcast",
            {"h": torch.ones(5, 4), "distances": torch.arange(100)},
        ),
        "h in a list": (TypeError, "h is a list; it must be a tensor", {"h": [1.0, 1.0], "distances": STEPS}),
    }),
    Call(decay.cosine_sum, {"distances": torch.arange(6.0), "dim": 8}),
    Call(decay.cosine_sum_limit, {"distances": PLACES}),
    Call(matrices.rotation_matrix, {"position": torch.tensor(2.0), "inv_freq": SPEEDS}, others={
        "a number": {"position": 0.3},
    }, refused={
        "a position in half precision": (
            TypeError, "^position has dtype torch.bfloat16; use integers or float64",
            {"position": torch.tensor(257, dtype=torch.bfloat16)},
        ),
        "a complex position": (TypeError, "^position has dtype torch.complex64", {"position": torch.tensor(1j)}),
    }),
    Call(matrices.shift_matrix, {"delta": torch.tensor(2.0), "dim": 8, "device": "cpu"}, refused={
        "a shift that is a truth value": (TypeError, "^delta is True; it must be a number", {"delta": True}),
        "a shift in quotes": (TypeError, "^delta is '1'; it must be a number", {"delta": "1"}),
    }),
    Call(reference.inverse_frequency, {"pair": 1, "dim": 8}),
    Call(reference.sinusoidal_encoding, {"position": 2.0, "dim": 8}),
    Call(reference.rotate, {"x": [1.0, 0.0], "m": 2.0, "interleaved": True}),
    Call(reference.ntk_by_parts_frequency, {
        "pair": 1, "dim": 8, "factor": 2.0, "length": 64, "beta_fast": 32, "beta_slow": 1,
    }),
    Call(relative.relative_distances, {"q_positions": PLACES, "k_positions": PLACES}),
    Call(relative.shaw_scores, {"q": X, "k": X, "table": X[0, :3], "distances": STEPS}, refused={
        "a table in a list": (TypeError, "table is a list; it must be a tensor", {"table": torch.ones(3, 8).tolist()}),
        "a table of another dtype": (
            TypeError, "q, k, table have dtypes torch.float32, torch.float32, torch.float64",
            {"table": torch.ones(3, 8).double()},
        ),
    }),
    Call(relative.transformer_xl_scores, {
        "q": X, "k": X, "table": X[1], "content_bias": X[0, 0], "position_bias": X[0, 1], "distances": STEPS,
    }, refused={
        "a table of another dtype": (
            TypeError, "table, content_bias, position_bias have dtypes", {"table": torch.ones(6, 8).double()},
        ),
        "a bias for each position": (
            ValueError, r"content_bias has shape \(2, 6, 8\); use \(8,\) or \(heads, 1, 8\)", {"content_bias": X},
        ),
    }),
    Call(relative.tupe_scores, {"q": X, "k": X, "position_q": X[0], "position_k": X[1]}, refused={
        "positions and their code exchanged": (
            ValueError, "position_q .*; the last two sizes .* no more axes", {"k": X[0], "position_q": X},
        ),
    }),
    Call(relative.deberta_scores, {
        "q": X, "k": X, "relative_q": X[0, :4], "relative_k": X[1, :4], "distances": STEPS,
    }, refused={
        "tables of another dtype": (
            TypeError, "relative_q, relative_k have dtypes",
            {"relative_q": torch.ones(4, 8).half(), "relative_k": torch.ones(4, 8).half()},
        ),
    }),
    Call(relative.t5_bucket, {"distances": STEPS, "bidirectional": True}, refused={
        "no flag": (TypeError, "bidirectional is None", {"bidirectional": None}),
        "whether there are buckets": (
            TypeError, "distances has dtype torch.bool",
            {"distances": torch.tensor([True, False]), "bidirectional": False},
        ),
    }),
    Call(relative.t5_bias, {"table": X.view(-1, 2)[:32], "distances": STEPS, "bidirectional": True}, others={
        "near": {"table": X.view(-1, 2)[:8], "max_distance": 8},
    }, refused={
        "a table and distances exchanged": (
            ValueError, r"^table has shape \(6, 6\) and dtype torch.int64; .*are table and distances swapped",
            {"table": STEPS, "distances": torch.ones(6, 6)},
        ),
        "a table in a list": (TypeError, "table is a list; it must be a tensor", {"table": [[0.0]] * 32}),
    }),
    Call(relative.alibi_slopes, {"num_heads": 6}, refused={
        "half a head": (TypeError, "num_heads is 8.0; it must be an int", {"num_heads": 8.0}),
        "heads in quotes": (TypeError, "num_heads is '8'; it must be an int", {"num_heads": "8"}),
    }),
    Call(relative.alibi_bias, {"distances": STEPS, "slopes": relative.alibi_slopes(2)}, refused={
        "slopes in a list": (TypeError, "slopes is a list; it must be a tensor", {"slopes": [0.5]}),
        "a mask for distances": (TypeError, "distances has dtype torch.bool", {"distances": STEPS > 0}),
    }),
    Call(sinusoidal.sinusoidal_encoding, {"positions": PLACES, "dim": 8}),
    Call(symbolic.rotation, {"angle": SYMBOL}),
    Call(symbolic.softmax, {"scores": sympy.eye(2)}, refused={
        "scores in a list": (TypeError, r"^scores is \[0, 1\]; it must be a matrix of sympy", {"scores": [0, 1]}),
    }),
    Call(symbolic.proved, {"lhs": sympy.eye(2), "rhs": sympy.eye(2)}, refused={
        "a list in the place of a claim": (
            TypeError, r"^lhs is a list, \[\[1, 0\]\]; it must be a formula or a matrix",
            {"lhs": [[1, 0]], "rhs": sympy.eye(1)},
        ),
        "a table in the place of a claim": (
            TypeError, r"^rhs is a Tensor, tensor[\s\S]*; it must be a formula", {"rhs": torch.eye(2)},
        ),
    }),
    Call(symbolic.refuted, {"lhs": SYMBOL**2, "rhs": SYMBOL, "at": {SYMBOL: 2}}, refused={
        "an equation in the place of a claim": (
            TypeError, r"^lhs is a Equality, Eq\(x, 1\); it must", {"lhs": sympy.Eq(SYMBOL, 1), "rhs": True, "at": {}},
        ),
    }),
]  # fmt: skip
CALLS = {f"{call.function.__module__.split('.')[-1]}.{call.function.__name__}": call for call in FUNCTIONS}
RIGHT = {  # by their names, each right call: the function and its arguments
    f"{name}, {which}".removesuffix(", "): (call.function, call.right | changes)
    for name, call in CALLS.items()
    for which, changes in {"": {}, **call.others}.items()
}
REFUSED = {  # and each that is refused: the function, its arguments, the error and words of it
    f"{name}, {which}": (call.function, call.right | changes, error, words)
    for name, call in CALLS.items()
    for which, (error, words, changes) in call.refused.items()
}


def tensors(tree):
    """All that are in arguments or a result."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def each_tensor(change, tree):
    return tree_map_only(torch.Tensor, change, tree)


OF_TENSORS = [name for name, (_, arguments) in RIGHT.items() if tensors(arguments)]
