import copy
import json
import math
from types import MappingProxyType

import pytest
import torch

from rope_lib import RotaryEmbedding, inverse_frequencies, scaling
from rope_lib.config import KEYS, PARTS, frequencies_from_config
from tests.conftest import ROOT

MODELS = json.loads((ROOT / "tests" / "data" / "transformers_configs.json").read_text())["models"]
SMALL = {"hidden_size": 16, "num_attention_heads": 2, "max_position_embeddings": 4096}  # a head of 8, four pairs
PLAIN, BY_16 = [1, 0.1, 0.01, 0.001], [1, 1 / 2, 1 / 4, 1 / 8]  # with bases 10000 and 16


def tolerance(config, slowest):
    """The relative error of transformers' float32, whose roundings are 2^-24.

    An exponent x is rounded, so base^-x is off by x ln(base) of them, at most ln(1 / slowest), and the some eight
    operations around it add one each. Where two speeds are blended, the weight is off by as much, and the sum can be
    `factor` times smaller than what it weighs.
    """
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    blended = {"yarn", "llama3"} & {rope.get("rope_type"), rope.get("type")}
    return 2**-24 * (8 + math.log(1 / slowest)) * (1 + rope["factor"] if blended else 1)


def assert_as_recorded(model, config):
    for case in model["rotations"]:
        inv_freq, attention_factor = frequencies_from_config(
            config, seq_len=case["seq_len"], layer_type=case["layer_type"]
        )
        assert inv_freq.dtype == torch.float64
        slowest = min(speed for speed in case["inv_freq"] if speed)
        expected = pytest.approx(case["inv_freq"], rel=tolerance(model["config"], slowest), abs=0)
        assert inv_freq.tolist() == expected
        assert attention_factor == pytest.approx(case["attention_factor"], rel=1e-12)  # float64 there, too


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["model"])
def test_a_published_configuration_means_what_transformers_computes(model):
    assert_as_recorded(model, model["config"])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["model"])
def test_the_same_configuration_as_transformers_writes_it_means_the_same(model):
    assert_as_recorded(model, model["saved"])


@pytest.mark.parametrize(
    ("changes", "speeds", "attention_factor"),
    [
        ({}, PLAIN, 1),
        ({"rope_scaling": None, "rope_parameters": None, "head_dim": None}, PLAIN, 1),
        ({"rope_scaling": {}, "rope_parameters": {"rope_theta": 16.0}}, BY_16, 1),
        ({"rope_parameters": {}, "rope_scaling": {"type": "linear", "factor": 2}}, [0.5, 0.05, 0.005, 0.0005], 1),
        ({"head_dim": 4}, [1, 0.01], 1),
        ({"head_dim": 4, "hidden_size": None}, [1, 0.01], 1),
        ({"hidden_size": None, "num_attention_heads": None, "n_embd": 12, "n_head": 3}, [1, 0.01], 1),
        ({"rotary_dim": 4, "head_dim": 8}, [1, 0.01], 1),
        ({"rotary_dim": None}, PLAIN, 1),
        ({"qk_rope_head_dim": 4, "head_dim": 8, "qk_nope_head_dim": 4}, [1, 0.01], 1),
        ({"qk_rope_head_dim": 4, "head_dim": 8, "rope_scaling": {"partial_rotary_factor": 0.5}}, [1, 0.01], 1),
        ({"kv_channels": 4}, [1, 0.01], 1),
        ({"attention_head_dim": 4, "kv_channels": 4}, [1, 0.01], 1),
        ({"partial_rotary_factor": 0.5}, [1, 0.01], 1),
        ({"head_dim": 12, "partial_rotary_factor": 0.4}, [1, 0.01], 1),  # 4.8, rounded down
        ({"rotary_pct": 0.5}, [1, 0.01], 1),
        ({"rope_pct": 0.5}, [1, 0.01], 1),
        ({"model_type": "glm", "head_dim": 8, "rope_theta": 1e4}, [1, 0.01], 1),  # a share that the file leaves out
        ({"model_type": "gpt_neox"}, [1], 1),
        ({"model_type": "bamba", "rope_theta": 1e4}, [1, 0.01], 1),
        ({"model_type": "gptj", "rotary_dim": 4}, [1, 0.01], 1),
        ({"model_type": "gpt_neox", "rotary_pct": 1.0}, PLAIN, 1),
        ({"model_type": "phi", "partial_rotary_factor": 1.0}, PLAIN, 1),
        ({"model_type": "llama"}, PLAIN, 1),
        ({"model_type": "mixtral", "rope_theta": 16.0}, BY_16, 1),
        ({"model_type": "falcon", "alibi": False, "rotary": True}, PLAIN, 1),
        ({"position_embedding_type": "rotary", "use_mrope": False, "num_key_value_heads": 1}, PLAIN, 1),
        ({"max_position_embeddings": None, "original_max_position_embeddings": 9}, PLAIN, 1),
        ({"position_embedding_type": "rope"}, PLAIN, 1),
        ({"position_embedding_type": "absolute", "rope_parameters": {"rope_theta": 16}}, BY_16, 1),
        ({"vision_config": {"rope_theta": 100.0}}, PLAIN, 1),
        ({"model_type": "codegen", "head_dim": None, "hidden_size": 128, "rotary_dim": 4}, [1, 0.01], 1),
        ({"model_type": "gpt_oss", "head_dim": 8, "rope_parameters": {"rope_theta": 16}}, BY_16, 1),
        ({"rope_theta": 16}, BY_16, 1),
        ({"rotary_emb_base": 16}, BY_16, 1),
        ({"rope_parameters": {"rope_theta": 16, "rope_type": "default"}, "rope_theta": 16}, BY_16, 1),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 16}, [1 / 4, 1 / 8, 1 / 16, 1 / 32], 1),
        ({"rope_scaling": {"rope_type": "default", "type": "mrope", "mrope_section": [1, 1, 2]}}, PLAIN, 1),
        ({"rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [2, 1, 1]}}, PLAIN, 1),
        ({"rope_scaling": {"rope_type": "linear", "type": "default", "factor": 2}}, [0.5, 0.05, 0.005, 0.0005], 1),
        ({"rope_scaling": {"type": "linear", "factor": 1.0, "original_max_position_embeddings": 9}}, PLAIN, 1),
        ({"rope_scaling": {"rope_type": "default", "original_max_position_embeddings": 4096}}, PLAIN, 1),
        ({"per_layer_config": {"1": {"num_key_value_heads": 2}}}, PLAIN, 1),
        ({"per_layer_config": {"1": {"head_dim": 4}}}, PLAIN, 1),  # of layers that were not asked for
        ({"rope_parameters": {"rope_theta": None}, "rope_theta": 16, "model_type": "qwen2_5_vl_text"}, BY_16, 1),
        ({"rope_parameters": {"rope_theta": 16.0}, "text_config": SMALL}, BY_16, 1),  # complete beside it
        ({"rope_interleaved": True, "no_rope_layer_interval": 4, "rope_interleave": False}, PLAIN, 1),
        ({"rope_scaling": {"rope_type": None, "type": "linear", "factor": 1}}, PLAIN, 1),
        ({"rope_scaling": {"mrope_section": [1, 1, 2], "type": "linear", "factor": 1}}, PLAIN, 1),
        ({"rope_interleave": True, "no_rope_layers": [1, 0], "rotary": True, "rotary_emb_scale_base": None}, PLAIN, 1),
        ({"rope_scaling": {"rope_type": "proportional", "partial_rotary_factor": 0.5}}, [1, 0.1, 0, 0], 1),
        ({"partial_rotary_factor": 0.25, "rope_scaling": {"rope_type": "proportional"}}, [1, 0, 0, 0], 1),
        ({"rope_scaling": {"rope_type": "proportional", "factor": 2.0}}, [0.5, 0.05, 0.005, 0.0005], 1),
        (
            {"rope_theta": 16} | {key: {"factor": 2, "type": "linear"} for key in ("rope_scaling", "rope_parameters")},
            [1 / 2, 1 / 4, 1 / 8, 1 / 16],
            1,
        ),
    ],
)  # fmt: skip
def test_by_hand(changes, speeds, attention_factor):
    inv_freq, factor = frequencies_from_config(SMALL | changes)
    assert inv_freq.tolist() == pytest.approx(speeds, rel=1e-12, abs=0)
    assert factor == attention_factor


@pytest.mark.parametrize("rope", [None, {"type": "linear", "factor": 1.0}])
def test_speeds_are_made_on_the_cpu_whatever_the_default_device(rope):
    with torch.device("meta"):
        assert frequencies_from_config(SMALL | {"rope_scaling": rope})[0].device.type == "cpu"


YARN = {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 512}


@pytest.mark.parametrize(
    ("rope", "settings", "attention_factor"),
    [
        (YARN, {}, 1 + 0.1 * math.log(8)),
        (YARN | {"factor": 4.0}, {"factor": 4}, 1 + 0.1 * math.log(4)),  # the factor wins over 4096 / 512
        (YARN | {"factor": None}, {}, 1 + 0.1 * math.log(8)),
        ({"type": "yarn", "original_max_position_embeddings": 512}, {}, 1 + 0.1 * math.log(8)),
        (YARN | {"attention_factor": 1.5, "mscale": 1.0, "mscale_all_dim": 1.0}, {}, 1.5),
        (YARN | {"attention_factor": None}, {}, 1 + 0.1 * math.log(8)),
        (YARN | {"mscale": 2.0, "mscale_all_dim": 0.5}, {}, (1 + 0.2 * math.log(8)) / (1 + 0.05 * math.log(8))),
        (YARN | {"mscale": 2.0}, {}, 1 + 0.1 * math.log(8)),  # one alone is not used
        (YARN | {"mscale_all_dim": 2.0, "mscale": 0}, {}, 1 + 0.1 * math.log(8)),
        (YARN | {"beta_fast": 16, "beta_slow": 2}, {"beta_fast": 16, "beta_slow": 2}, 1 + 0.1 * math.log(8)),
        (YARN | {"beta_fast": None, "beta_slow": None, "truncate": None}, {}, 1 + 0.1 * math.log(8)),
        (YARN | {"truncate": False, "finetuned": True}, {"truncate": False}, 1 + 0.1 * math.log(8)),
    ],
)
def test_the_settings_of_yarn_reach_it(rope, settings, attention_factor):
    expected = {"factor": 8.0, "original_max_position_embeddings": 512, "base": 5000.0} | settings
    inv_freq, factor = frequencies_from_config(SMALL | {"head_dim": 32, "rope_theta": 5000.0, "rope_scaling": rope})
    assert torch.equal(inv_freq, scaling.yarn_scaling(32, **expected))
    assert factor == pytest.approx(attention_factor, rel=1e-12)


@pytest.mark.parametrize("beta", [1.0, 7.0])
@pytest.mark.parametrize("truncate", [True, False])
def test_a_ramp_without_width_is_a_step(beta, truncate):
    """As Kimi K2 (yarn) and Llama 4 Scout (llama3) have it. Without rounding, pairs of more turns than beta stay."""
    config = {"head_dim": 32, "max_position_embeddings": 4096}
    lengths = {"factor": 8.0, "original_max_position_embeddings": 512}
    yarn = {"rope_type": "yarn", "beta_fast": beta, "beta_slow": beta, "truncate": truncate, **lengths}
    llama3 = {"rope_type": "llama3", "high_freq_factor": beta, "low_freq_factor": beta, **lengths}
    plain = inverse_frequencies(32)
    stays = 512 * plain / (2 * math.pi) > beta
    step = torch.where(stays, plain, plain / 8)
    torch.testing.assert_close(frequencies_from_config(config | {"rope_scaling": llama3})[0], step)
    speeds = frequencies_from_config(config | {"rope_scaling": yarn})[0]
    away = torch.ones(16, dtype=torch.bool)
    away[int(stays.sum()) - 1 : int(stays.sum()) + 1] = not truncate  # rounded outwards, the ramp is one pair wide
    torch.testing.assert_close(speeds[away], step[away])


LONG = {"type": "longrope", "short_factor": [1, 1, 2, 4], "long_factor": [1, 2, 4, 8]}
SHORT_SPEEDS, LONG_SPEEDS = [1, 0.1, 0.005, 0.00025], [1, 0.05, 0.0025, 0.000125]
OF_512 = {"original_max_position_embeddings": 512}
LLAMA3 = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4} | OF_512
EIGHT_FOLD = math.sqrt(1 + math.log(8) / math.log(512))


@pytest.mark.parametrize(
    ("changes", "rope", "seq_len", "speeds", "attention_factor"),
    [
        (OF_512, {}, None, SHORT_SPEEDS, EIGHT_FOLD),
        (OF_512, {}, 512, SHORT_SPEEDS, EIGHT_FOLD),
        (OF_512, {}, 513, LONG_SPEEDS, EIGHT_FOLD),
        ({}, OF_512, 513, LONG_SPEEDS, EIGHT_FOLD),
        (OF_512, {"type": "su"}, 4096, LONG_SPEEDS, EIGHT_FOLD),
        (OF_512, {"rope_type": "longrope", "type": "su"}, 4096, LONG_SPEEDS, EIGHT_FOLD),
        ({}, {"original_max_position_embeddings": 4096}, 4096, SHORT_SPEEDS, 1),  # trained at this length
        ({}, {"original_max_position_embeddings": 4096}, 4097, LONG_SPEEDS, 1),
        ({}, OF_512 | {"factor": 8.0}, None, SHORT_SPEEDS, EIGHT_FOLD),
        ({"max_position_embeddings": None}, OF_512 | {"factor": 8}, 9, SHORT_SPEEDS, EIGHT_FOLD),
        (OF_512, {"attention_factor": 1.25}, None, SHORT_SPEEDS, 1.25),
        (OF_512 | {"rope_theta": 16}, {}, 4096, [1, 1 / 4, 1 / 16, 1 / 64], EIGHT_FOLD),
    ],
)  # fmt: skip
def test_longrope_has_factors_for_short_and_for_long_texts(changes, rope, seq_len, speeds, attention_factor):
    config = SMALL | changes | {"rope_scaling": LONG | rope}
    inv_freq, factor = frequencies_from_config(config, seq_len=seq_len)
    assert inv_freq.tolist() == pytest.approx(speeds, rel=1e-12)
    assert factor == pytest.approx(attention_factor, rel=1e-12)


@pytest.mark.parametrize(
    ("seq_len", "stretch"), [(None, 1), (1, 1), (4096, 1), (6144, 2.5), (8192, 4)]
)  # 3 seq_len / 4096 - 2
@pytest.mark.parametrize("length", ["max_position_embeddings", "n_positions"])
def test_dynamic_speeds_fall_beyond_the_trained_length(seq_len, stretch, length):
    rope = {"type": "dynamic", "factor": 3.0, "original_max_position_embeddings": 4096}  # the same length, or none
    config = {"head_dim": 8, length: 4096, "rope_theta": 500.0, "rope_scaling": rope}
    inv_freq, attention_factor = frequencies_from_config(config, seq_len=seq_len)
    torch.testing.assert_close(inv_freq, inverse_frequencies(8, base=500 * stretch ** (8 / 6)), rtol=1e-12, atol=0)
    assert attention_factor == 1


LAYERS = {
    "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 16.0},
    "sliding_attention": {"rope_theta": 81.0},
    "global": None,
}
FULL, SLIDING = [1 / 2, 1 / 4, 1 / 8, 1 / 16], [1, 1 / 3, 1 / 9, 1 / 27]
OLD = {"rope_theta": 16.0, "rope_local_base_freq": 81.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}


@pytest.mark.parametrize(
    ("changes", "layer_type", "speeds"),
    [
        ({"rope_parameters": LAYERS}, "full_attention", FULL),
        ({"rope_parameters": LAYERS}, "sliding_attention", SLIDING),
        ({"rope_parameters": LAYERS | {"rope_theta": None, "rope_type": "default"}}, "full_attention", FULL),
        ({"rope_parameters": LAYERS, "layer_rope_theta": [3], "rope_local_base_freq": 9}, "sliding_attention", SLIDING),
        ({"rope_parameters": {"main": {}, "compress": LAYERS["full_attention"]}, "rope_theta": 81.0}, "main", SLIDING),
        (OLD, "full_attention", FULL),
        (OLD, "sliding_attention", SLIDING),
        (OLD | {"rope_scaling": None}, "full_attention", BY_16),
        ({"global_rope_theta": 16.0, "local_rope_theta": 81.0}, "full_attention", BY_16),
        ({"global_rope_theta": 16.0, "local_rope_theta": 81.0}, "sliding_attention", SLIDING),
        ({"rope_theta": 16.0, "swa_rope_theta": 81.0}, "full_attention", BY_16),
        ({"rope_theta": 16.0, "swa_rope_theta": 81.0}, "sliding_attention", SLIDING),
        ({"rope_theta": 16.0, "swa_rope_theta": 81.0, "swa_head_dim": 4}, "sliding_attention", [1, 1 / 9]),
        ({"rope_parameters": LAYERS, "global_head_dim": 4}, "full_attention", [1 / 2, 1 / 8]),
        ({"rope_parameters": LAYERS, "global_head_dim": 4}, "sliding_attention", SLIDING),
        (
            {
                "rope_parameters": LAYERS, "global_head_dim": 4, "layer_types": ["full_attention"],
                "per_layer_config": {"0": {"num_key_value_heads": 1}},
            },
            "full_attention",
            [1 / 2, 1 / 8],
        ),
        (
            {
                "rope_parameters": LAYERS, "layer_types": ["sliding_attention", "full_attention"],
                "per_layer_config": {"01": {"head_dim": 4}},
            },
            "full_attention",
            [1 / 2, 1 / 8],
        ),
        (
            {
                "rope_parameters": LAYERS, "layer_types": ["full_attention"],
                "per_layer_config": {"0": {"head_dim": None}},
            },
            "full_attention",
            FULL,
        ),
        (
            {
                "rope_parameters": LAYERS, "layer_types": ["sliding_attention", "full_attention"],
                "per_layer_config": {"01": {"head_dim": 4}},
            },
            "sliding_attention",
            SLIDING,
        ),
    ],
)  # fmt: skip
def test_layers_may_differ(changes, layer_type, speeds):
    inv_freq, attention_factor = frequencies_from_config(SMALL | changes, layer_type=layer_type)
    assert inv_freq.tolist() == pytest.approx(speeds, rel=1e-12)
    assert attention_factor == 1


@pytest.mark.parametrize(
    ("changes", "layer_type", "text"),
    [
        ({"rope_scaling": {"type": "ntk", "factor": 2}}, None, "rope_type is 'ntk'; known are default, .*mrope, su"),
        ({"rope_scaling": {"type": "linear"}}, None, r"'linear'; missing beside it: \['factor'\]$"),
        ({"rope_scaling": {"type": "linear", "factor": None}}, None, r"'linear'; missing beside it: \['factor'\]"),
        ({"rope_scaling": {"type": "dynamic"}}, None, r"'dynamic'; missing beside it: \['factor'\]"),
        ({"rope_scaling": {"type": "su", "factor": 2}}, None, r"'su'; missing.*\['long_factor', 'short_factor'\]"),
        ({"rope_scaling": {"type": "llama3", "factor": 2}}, None, "'llama3'; missing.*high_freq.*low_freq.*original"),
        (
            {"rope_scaling": {"type": "linear", "factor": 2.0, "beta_fast": 32}},
            None,
            r"'linear'; not known here: \['beta_fast'\]. If neither .* depend on them: ignore=\('beta_fast',\)$",
        ),
        ({"rope_scaling": {"factor": 2.0}}, None, r"'default', for none is given; .*not known here: \['factor'\]"),
        ({"rope_theta": float("nan")}, None, "rope_theta is nan; it must be a finite number above 1"),
        *(
            ({"partial_rotary_factor": one, "rope_scaling": {"partial_rotary_factor": 0.5}}, None, f"0.5 in .* {one} ")
            for one in (0.25, 1.0)
        ),
        (
            {"original_max_position_embeddings": 9, "rope_scaling": YARN | {"original_max_position_embeddings": 8}},
            None,
            "original_max_position_embeddings is 8 in .* and 9 beside it; take out",
        ),
        ({"model_type": "gptj"}, None, "rotary_dim is 64, but head_dim 8"),
        ({"rope_scaling": LONG | {"long_mscale": 1.2}}, None, r"not known here: \['long_mscale'\]"),
        (
            {"rope_scaling": YARN | {"short_factor": [1] * 4}},
            None,
            r"rope_type is 'yarn'; .*not known here: \['short_factor'\]",
        ),
        ({"rope_scaling": LONG | OF_512 | {"short_factor": [1, 2]}}, None, "factors has 2 numbers"),
        (
            {"rope_scaling": {"type": "dynamic", "factor": 2}, "max_position_embeddings": None},
            None,
            "rope_type is 'dynamic', and config has no max_position_embeddings",
        ),
        (
            {
                "rope_scaling": {"type": "dynamic", "factor": 2, "original_max_position_embeddings": 512},
                "max_position_embeddings": None,
            },
            None,
            "rope_type is 'dynamic', and config has no max_position_embeddings",
        ),
        (
            {"rope_scaling": YARN | {"factor": None}, "max_position_embeddings": None},
            None,
            "rope_type is 'yarn', and config has no max_position_embeddings",
        ),
        *(
            ({"rope_scaling": entry}, None, "config has no original_max_position_embeddings, the trained length")
            for entry in ({"type": "yarn", "factor": 2}, {"type": "yarn"}, LONG)
        ),
        (
            {"rope_scaling": LONG, "original_max_position_embeddings": 9, "max_position_embeddings": None},
            None,
            "rope_type is 'longrope', and config has no max_position_embeddings",
        ),
        ({"hidden_size": None}, None, "no head_dim, nor hidden_size and num_attention_heads; AutoConfig"),
        ({"num_attention_heads": None}, None, "(no head_dim, nor hidden_size|num_attention_heads is 0; .* at least 1)"),
        ({"num_attention_heads": 0}, None, "(no head_dim, nor hidden_size|num_attention_heads is 0; .* at least 1)"),
        ({"partial_rotary_factor": 0.4}, None, "is 3, from 8 and 0.4; it must be positive and even"),
        ({"hidden_size": 18}, None, r"\(hidden_size 18 over num_attention_heads 2\) is 9; .* and even"),
        ({"rope_scaling": LONG | OF_512 | {"attention_factor": 0.0}}, None, "^attention_factor is 0.0; .* above 0"),
        ({"rope_scaling": YARN | {"attention_factor": -1}}, None, "^attention_factor is -1"),
        ({"rotary_emb_base": 5e5, "rope_theta": 1e4}, None, "rope_theta 10000.0 and rotary_emb_base 500000.0"),
        ({"rope_parameters": {"rope_theta": 1e4}, "rotary_emb_base": 5e5}, None, "is 10000.0 in .* and 500000.0"),
        ({"n_embd": 128}, None, "hidden_size 16 and n_embd 128, and they differ"),
        ({"n_head": 4}, None, "num_attention_heads 2 and n_head 4, and they differ"),
        ({"attention_head_dim": 4, "kv_channels": 2}, None, "attention_head_dim 4 and kv_channels 2, and they differ"),
        ({"rope_local_base_freq": 1e4, "local_rope_theta": 1e5}, "sliding_attention", "and they differ"),
        (
            {"rope_scaling": YARN | {"max_position_embeddings": 512}, "max_position_embeddings": 4096},
            None,
            "max_position_embeddings is 512 in .* and 4096",
        ),
        ({"rotary_dim": 5}, None, "rotary_dim is 5; it must be positive and even"),
        ({"rope_theta": 1.0}, None, "rope_theta is 1.0; it must be a finite number above 1"),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, None, "factor is 0.5; it must be .* at least 1"),
        ({"rope_parameters": LAYERS}, None, "layer_type is None; .* must be 'full_.* layer_types lists"),
        ({"rope_parameters": LAYERS}, "global", "layer_type is 'global'; .* must be 'full_attention' or 'sliding"),
        (OLD, None, r"layer_type is None; for this model it must be 'full_attention' or 'sliding_att"),
        ({}, "full_attention", r"layer_type is 'full_attention'; .* must be None$"),
        ({"text_config": SMALL}, None, "config is that of a multimodal model; hand over its text_config"),
        ({"text_config": SMALL}, "sliding_attention", "config is that of a multimodal model"),
        ({"text_config": SMALL, "rope_parameters": {"rope_type": None}}, None, "config is that of a multimodal model"),
        ({"rope_ratio": 500, "original_rope": True}, None, "config has original_rope, rope_ratio: not known here"),
        ({"model_type": "gpt2"}, None, "model_type is 'gpt2', and no layer of its class rotates .transformers"),
        ({"model_type": "jamba", "rope_theta": 1e4}, None, "model_type is 'jamba', and no layer of its class rotates"),
        (
            {"model_type": "one_of_tomorrow"},
            None,
            "no rope_theta, no head_dim, no partial_rotary_factor, and what .* 'one_of_tomorrow' takes",
        ),
        (
            {"model_type": "one_of_tomorrow", "rope_theta": 1e4, "head_dim": 8, "rope_ratio": 2},
            None,
            r"^config has rope_ratio: not .* it; config has no partial_rotary_factor, and what .* Add what is missing",
        ),
        ({"model_type": "olmo_hybrid", "rope_theta": None}, None, "^rope_theta is null: .*replace null by the base"),
        ({"rope_theta": None}, None, "^rope_theta is null: does the model rotate"),
        ({"model_type": "olmo_hybrid", "rope_parameters": {"rope_theta": None}}, None, "^rope_theta is null"),
        ({"rope_theta": None, "rope_scaling": {"type": "linear", "factor": 2.0}}, None, "^rope_theta is null"),
        ({"rotary_emb_base": None, "rope_scaling": {}}, None, "^rotary_emb_base is null: does the model rotate"),
        ({"theta": 1e6}, None, "config has theta: not known here"),
        ({"alibi": True}, None, "config has alibi: true; it is of a model without rotation"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2, "alpha": 1000.0}}, None, r"not known here: \['alpha'\]"),
        ({"rope_scaling": {"type": "dynamic", "factor": 0}}, None, "^factor is 0; it must be a finite number above 0"),
        ({"rope_scaling": YARN | {"factor": 0}}, None, "^factor is 0; it must be a finite number above 0"),
        ({"factor": 8.0}, None, "config has factor: not known here"),
        ({"use_dynamic_ntk": True}, None, "config has use_dynamic_ntk: not known here"),
        ({"patch_size": 16}, None, "several coord.* axial_cos_sin .as in Qwen2-VL.* sectioned_cos_sin .as in FLUX"),
        (
            {"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2}, "text_config": {"rope_theta": 5e5}},
            None,
            "config is that of a multimodal model; hand over its text_config",
        ),
        *(
            (
                {"model_type": name, "head_dim": 8, "rope_theta": 1e7, "max_position_embeddings": None},
                None,
                f"rope_theta is 10000000.0, and the class of model_type '{name}' does not read it: it takes the base 1",
            )
            for name in ("cwm", "apertus", "mistral4")
        ),
        *(
            ({"model_type": name, "rope_theta": 1e7}, None, "not read it: it takes the base .* and the base .*Which")
            for name in ("modernbert", "gemma4_text", "laguna", "mimo_v2_flash", "zaya")
        ),
        (
            {"model_type": "gpt_neox", "rope_theta": 16},
            None,
            "rope_theta is 16, and the class of model_type 'gpt_neox' does not read it: it takes the base 10000 ",
        ),
        (
            {"model_type": "minimax_m3_vl_text", "head_dim": 8, "rotary_dim": 4, "rope_theta": 16},
            None,
            "rotary_dim is 4, and the class of model_type 'minimax_m3_vl_text' does not read it: it takes 8 dim",
        ),
        (
            {"model_type": "dots3_note_text", "head_dim": 8},
            "sliding_attention",
            "head_dim is 8, and the class of model_type 'dots3_note_text' does not read it: it takes heads of 256 ",
        ),
        *(
            ({name: {"hidden_size": 64, "rope_theta": 1e6}}, None, f"multimodal model; hand over its {name}")
            for name in PARTS
        ),
        ({"rotary_dim": 0}, None, "rotary_dim is 0; it must be positive and even"),
        ({"qk_rope_head_dim": 0}, None, "config has qk_rope_head_dim: 0; it is of a model without rotation"),
        ({"qk_nope_head_dim": 4}, None, "config has qk_nope_head_dim, and no qk_rope_head_dim"),
        ({"mla_use_nope": True}, None, "config has mla_use_nope: true; it is of a model without rotation"),
        *(
            (
                {"rope_scaling": entry, "max_position_embeddings": longest},
                None,
                rf"^original_max_.* is 512 and max_.* {longest}, .*; the first must {needed} \(are they swapped, was",
            )
            for entry, longest, needed in (
                (YARN | {"factor": None}, 512, "be smaller"),
                (YARN | {"factor": None}, 511, "be smaller"),
                (YARN, 511, "be no larger"),
                (LONG | OF_512, 511, "be no larger"),
                (LLAMA3, 511, "be no larger"),
                ({"rope_type": "dynamic", "factor": 2.0} | OF_512, 511, "be the same"),
                ({"rope_type": "dynamic", "factor": 2.0} | OF_512, 513, "be the same"),
            )
        ),
        *(
            ({"rope_scaling": entry | {"factor": 4096}}, None, "^factor is 4096, and max_.* 4096; factor is a ratio")
            for entry in ({"type": "linear"}, {"type": "dynamic"}, YARN, LONG | OF_512, LLAMA3)
        ),
        *(
            ({"rope_scaling": {"mrope_section": sections}}, None, "mrope_section is .*; .* adds up to 4$")
            for sections in ([2, 2, 4], [1, 1, 1], [], 4, "4", ["4"], [2.0, 2.0])
        ),
        *(
            ({name: {other: YARN}}, None, f"holds another {other}; take out one")
            for name in ("rope_scaling", "rope_parameters")
            for other in ("rope_scaling", "rope_parameters")
        ),
        *(
            (entry, None, r"^config has (rope_)?type: is it rope_scaling alone\? Hand over the whole config")
            for entry in ({"rope_type": "default"}, {"type": "linear", "factor": 2.0})
        ),
        ({"spatial_patch_size": 14}, None, "config has patch_size"),
        ({"rope_parameters": {"a": {"rope_theta": 5e5}, "b": {"type": "default"}}}, "b", "config has no rope_theta"),
        ({"rope_parameters": {"type": "linear", "factor": 2.0}}, None, "config has no rope_theta"),
        ({"rope_parameters": {"rope_theta": None, "type": "default"}}, None, "^rope_theta is null"),
        ({"n_heads": 2, "head_dim": 8}, None, "config has no rope_theta"),
        ({"pos_emb": "alibi"}, None, "config has pos_emb: not known here"),
        ({"num_key_value_heads": 4}, None, "num_attention_heads is 2, no multiple of num_key_value_heads"),
        ({"num_attention_heads": 8, "num_key_value_heads": 3}, None, "num_attention_heads is 8, no multiple"),
        *(
            (entry, None, "^original_max_.* is 512 and max_.* 4096, .* be the same .* was a scaling taken out")
            for entry in (OF_512, {"rope_scaling": {"rope_type": "default"} | OF_512})
        ),
        ({"base": 5e5}, None, "config has base: not known here"),
        ({"freq_base": 1e6}, None, "config has freq_base: not known here"),
        ({"rope_parameters": LAYERS, "rope_ratio": 50}, "full_attention", "config has rope_ratio: not known here"),
        ({"rotate_dim": 4}, None, "config has rotate_dim: not known here"),
        ({"partial_factor": 0.5}, None, "config has partial_factor: not known here"),
        ({"head_size": 4}, None, "config has head_size: not known here"),
        ({"d_head": 4}, None, "config has d_head: not known here"),
        ({"attention_head_size": 4}, None, "config has attention_head_size: not known here"),
        ({"theta": 5e5, 7: 1}, None, "config has theta: not known here"),
        (
            {"rope_scaling": {"type": "linear", "factor": 2.0, 7: 1, "zz": 2}},
            None,
            r"not known here: \['7', 'zz'\]",
        ),
        *(
            ({"rope_parameters": LAYERS | {name: value}}, "sliding_attention", rf"has \['{name}'\] beside its entries")
            for name, value in (("partial_rotary_factor", 0.5), ("rope_thta", 5.0), ("rope_type", "linear"))
        ),
        *(
            (
                {"rope_parameters": LAYERS, "per_layer_config": {"03": {"head_dim": 4}}, "layer_types": types},
                "full_attention",
                "config has per_layer_config, and no list layer_types",
            )
            for types in (None, [], ["full_attention"] * 3, "full_attention")
        ),
        ({"rope_scaling": LONG | OF_512 | {"long_factor": [1.0]}}, None, "factors has 1 numbers"),
        ({"rotary": False}, None, "config has rotary: false; it is of a model without rotation"),
        ({"position_embedding_type": "absolute"}, None, "position_embedding_type 'absolute'; .* without rotation"),
        ({"rope_embedding_base": 1000000}, None, "config has rope_embedding_base: not known here"),
        ({"rotary_emb_base_scale": 0.5}, None, "config has rotary_emb_base_scale: not known here"),
        (
            {"rope_parameters": {"rope_theta": 1e6}, "rope_scaling": YARN},
            None,
            "config has rope_parameters {.* and rope_scaling {.*, and they differ",
        ),
        ({"rope_theta": 81, "rope_parameters": {"rope_theta": 16}}, None, "is 16 in .* and 81 beside it; take out"),
        ({"rope_scaling": YARN | {"rope_type": "linear"}}, None, "rope_type is 'linear' and type 'yarn'; take out"),
        ({"partial_rotary_factor": 0.5, "rotary_pct": 0.25}, None, r"and rotary_pct 0.25, and they differ; take out"),
        ({"rotary_dim": 4, "partial_rotary_factor": 0.25}, None, "rotary_dim is 4, but head_dim 8 and partial_rotary"),
        ({"rotary_dim": 4, "partial_rotary_factor": 1.0}, None, "rotary_dim is 4, but head_dim 8 and partial_rotary"),
        ({"rotary_dim": 10}, None, "rotary_dim is 10, but head_dim 8"),
        ({"head_dim": 0}, None, "head_dim is 0; it must be positive and even"),
        ({"ROPE_THETA": 5e5}, None, "config has ROPE_THETA: not known here"),
        ({"partial_rotray_factor": 0.5}, None, "config has partial_rotray_factor: not known here"),
        ({"attn_config": {"alibi": True}}, None, "config has attn_config: not known here"),
        ({"attn_config": {"rope_theta": 5e5}}, None, "config has attn_config: not known here"),
        ({"position_embedding_type": "nope", "rope_theta": 1e4}, None, "_type 'nope'; .* without rotation"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(changes, layer_type, text):
    with pytest.raises(ValueError, match=text):
        frequencies_from_config(SMALL | changes, layer_type=layer_type)


def test_each_type_is_tested():
    text = (ROOT / "tests" / "library" / "test_config.py").read_text(encoding="utf-8")
    assert [kind for kind in KEYS if f'"{kind}"' not in text] == [], "these rope_types have no case in this file"


@pytest.mark.parametrize("seq_len", [0, -1])
def test_a_text_has_a_length(seq_len):
    with pytest.raises(ValueError, match=f"seq_len is {seq_len}"):
        frequencies_from_config(SMALL, seq_len=seq_len)


@pytest.mark.parametrize("config", [None, "config.json", [SMALL], RotaryEmbedding(4, interleaved=True)])
def test_only_a_mapping_is_read(config):
    with pytest.raises(
        TypeError, match=rf"config is a {type(config).__name__}; it must be a dict.*config\.to_dict\(\)"
    ):
        frequencies_from_config(config)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["model"])
def test_any_mapping_is_read_and_stays_as_it_is(model):
    before = copy.deepcopy(model["config"])
    frequencies_from_config(MappingProxyType(model["config"]), layer_type=model["rotations"][0]["layer_type"])
    assert model["config"] == before


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["model"])
def test_what_is_read_goes_into_the_module(model, generator):
    """The rotation of position 1 by hand, with as many dimensions beside it as the head has."""
    inv_freq, attention_factor = frequencies_from_config(
        model["config"], layer_type=model["rotations"][0]["layer_type"]
    )
    half = len(inv_freq)
    rope = RotaryEmbedding(2 * half, interleaved=False, inv_freq=inv_freq, attention_factor=attention_factor)
    q = torch.randn(2, 2 * half + 6, generator=generator, dtype=torch.float64)
    rotated, _ = rope(q, q, positions=torch.arange(2))
    x, y = q[1, :half], q[1, half : 2 * half]
    cos, sin = inv_freq.cos() * attention_factor, inv_freq.sin() * attention_factor
    expected = torch.cat((x * cos - y * sin, x * sin + y * cos, q[1, 2 * half :]))
    torch.testing.assert_close(rotated[1], expected, rtol=0, atol=1e-13)


# -- What the file leaves out, its class adds --------------------------------------------------------------------------


def test_a_hybrid_that_says_nothing_of_its_positions_is_refused():
    granite = {"model_type": "granitemoehybrid", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000}
    with pytest.raises(ValueError, match="rotates only where that is 'rope'"):
        frequencies_from_config(granite)
    with pytest.raises(ValueError, match="'nope'; it is of a model without rotation"):
        frequencies_from_config(granite | {"position_embedding_type": "nope"})
    assert len(frequencies_from_config(granite | {"position_embedding_type": "rope"})[0]) == 64


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ({"n_embd": 4096, "n_head": 32, "rope_base": 500000}, "rope_base is rope_theta"),
        (
            {"dim": 4096, "n_heads": 32, "yarn": {"factor": 4.0, "beta": 32, "alpha": 1}},
            "with beta as beta_fast and alpha as",
        ),
        (
            {"rope_max_wavelength": 5e5, "rope_low_freq_factor": 1},
            "rope_low_freq_factor is low_freq_factor of.*is rope_theta",
        ),
        ({"model_type": "chatglm", "rope_ratio": 500}, "rope_ratio is a number by which 10000 is multiplied"),
    ],
    ids=["LitGPT", "Mistral", "Keras", "ChatGLM"],
)
def test_names_of_other_programs_are_translated(file, told):
    with pytest.raises(ValueError, match=f"In the words of transformers .*{told}"):
        frequencies_from_config(file)


@pytest.mark.parametrize(
    ("model_type", "given", "layer_type", "pairs", "second"),
    [  # by hand, of classes with a rule of their own
        ("glm", {"head_dim": 128}, None, 32, 1e4 ** (-2 / 64)),  # half of the head
        ("phi", {}, None, 12, 1e4 ** (-2 / 24)),  # half of width over heads
        ("gemma", {}, None, 128, 1e4 ** (-2 / 256)),  # heads of 256, whatever the width
        ("deepseek_v3", {}, None, 32, 1e4 ** (-2 / 64)),  # a head of its own turns
        ("gptj", {"n_embd": 2304, "n_head": 24, "head_dim": 96}, None, 32, 1e4 ** (-2 / 64)),
        ("internlm2", {}, None, 24, 1e4 ** (-2 / 48)),
        ("zaya", {}, "hybrid", 32, 5e6 ** (-2 / 64)),  # half of a head of 128
        ("nemotron3_5_transcribe_word_timestamp", {}, None, 12, 1e4 ** (-2 / 24)),
        ("gemma3_text", {"rope_theta": 16.0}, "full_attention", 128, 16 ** (-2 / 256)),
        ("gemma3_text", {"rope_theta": 16.0}, "sliding_attention", 128, 1e4 ** (-2 / 256)),
        ("gemma3_text", {"rope_local_base_freq": 16.0}, "full_attention", 128, 1e6 ** (-2 / 256)),
        ("olmo3", {"rope_theta": 16.0}, "full_attention", 24, 16 ** (-2 / 48)),
        ("olmo3", {"rope_theta": 16.0}, "sliding_attention", 24, 5e5 ** (-2 / 48)),  # as transformers has it
        ("gpt_oss", {"rope_scaling": {"type": "default"}}, None, 32, 150000 ** (-2 / 64)),
        ("chatglm", {"rope_theta": 1e8, "kv_channels": 128, "partial_rotary_factor": 0.5}, None, 32, 1e8 ** (-2 / 64)),
        ("nomic_bert", {"n_embd": 1152, "n_head": 24, "rotary_emb_fraction": 1.0}, None, 24, 1000 ** (-2 / 48)),
    ],
)
def test_what_a_class_adds(model_type, given, layer_type, pairs, second):
    config = {"hidden_size": 1152, "num_attention_heads": 24, "model_type": model_type} | given
    if "n_embd" in given:
        del config["hidden_size"], config["num_attention_heads"]
    inv_freq, factor = frequencies_from_config(config, layer_type=layer_type)
    assert len(inv_freq) == pairs
    assert inv_freq[1].item() == pytest.approx(second, rel=1e-12)
    assert factor == 1


# Files of people who asked, as far as they speak of the rotation, and what they must be told.
ASKED = {
    "OLMo Hybrid, without rotation": (
        {"model_type": "olmo_hybrid", "hidden_size": 3840, "num_attention_heads": 30, "num_key_value_heads": 30,
         "max_position_embeddings": 65536, "rope_theta": None},
        "^rope_theta is null: does the model rotate",
    ),
    "the same of a class that rotates": (
        {"model_type": "llama", "hidden_size": 16, "num_attention_heads": 2, "rope_theta": None},
        "^rope_theta is null: does the model rotate",
    ),
    "GLM-4 9B chat 1M": (
        {"model_type": "chatglm", "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128,
         "original_rope": True, "rope_ratio": 10000, "seq_length": 1048576},
        "^config has original_rope, rope_ratio: .*; config has no rope_theta, no partial_rotary_factor, and what",
    ),
    "the same, after a reader of the table of models": (
        {"model_type": "chatglm", "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128,
         "rope_theta": 1e8},
        "^config has no partial_rotary_factor, and what model_type 'chatglm' takes by default is not known here",
    ),
    "Nemotron-H 8B": (
        {"model_type": "nemotron_h", "attention_head_dim": 128, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "max_position_embeddings": 8192},
        "^model_type is 'nemotron_h', and no layer of its class rotates",
    ),
    "the same, with the usual base": (
        {"model_type": "nemotron_h", "attention_head_dim": 128, "rope_theta": 10000.0},
        "^model_type is 'nemotron_h', and no layer of its class rotates",
    ),
    "Step-3.7-Flash": (
        {"model_type": "step3p5", "hidden_size": 4096, "num_attention_heads": 64, "head_dim": 128,
         "rope_theta": [5e6, 1e4], "partial_rotary_factors": [0.5, 1.0], "yarn_only_types": ["full_attention"]},
        r"^config has partial_rotary_factors, yarn_only_types: not known .*to_dict\(\) says more than the file",
    ),
    "MiniMind2, all in one error": (
        {"model_type": "minimind", "hidden_size": 768, "num_attention_heads": 8, "rope_theta": 1e6,
         "inference_rope_scaling": False},
        "^config has inference_rope_scaling: .*; config has no head_dim, no partial_rotary_factor, and what",
    ),
    "LLaDA, all in one error": (
        {"model_type": "llada", "d_model": 4096, "n_heads": 32, "rope": True, "rope_theta": 5e5},
        "^config has no head_dim, no partial_rotary_factor, and what",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_files_that_were_asked_about(name):
    config, text = ASKED[name]
    with pytest.raises(ValueError, match=text) as refusal:
        frequencies_from_config(config)
    assert "Add it" not in str(refusal.value)


@pytest.mark.parametrize("key", ["european", "property", "prototype", "head_dims", "notation"])
def test_a_word_that_holds_the_letters_of_another_is_no_key_of_the_rotation(key):
    assert frequencies_from_config(SMALL | {key: 7})[0].tolist() == pytest.approx(PLAIN)


def test_a_rest_of_another_class_does_not_matter():
    """ModernBERT's files say "absolute", and rotate."""
    bert = {"position_embedding_type": "absolute", "global_rope_theta": 16.0, "local_rope_theta": 81.0}
    inv_freq, _ = frequencies_from_config(SMALL | bert, layer_type="full_attention")
    assert inv_freq.tolist() == pytest.approx(BY_16)


def test_what_to_dict_gives_is_read_too():
    """Its keys need not be strings, and its entry of the rotation may repeat the length."""
    labels = {"id2label": {0: "no", 1: "yes"}, "max_position_embeddings": 4096}
    beside = {"llama_4_scaling_beta": 0.1, "max_position_embeddings": 4096}  # which scale queries, as in Ministral 3
    found, factor = frequencies_from_config(SMALL | labels | {"rope_theta": 1e4, "rope_parameters": YARN | beside})
    expected, same = frequencies_from_config(SMALL | {"rope_theta": 1e4, "rope_scaling": YARN})
    assert torch.equal(found, expected)
    assert factor == same


@pytest.mark.parametrize(
    "name", ["learned", "alibi", "nope", "relative_key", "learned_absolute", "none", "sinusoidal", "ALiBi", "yarn"]
)
def test_a_code_that_does_not_rotate_is_named(name):
    with pytest.raises(ValueError, match=f"position_embedding_type '{name}'; it is of a model without rotation"):
        frequencies_from_config(SMALL | {"position_embedding_type": name, "rope_theta": 1e4})


def test_codegen_turns_64_dimensions():
    sizes = {"model_type": "codegen", "n_embd": 4096, "n_head": 16}
    assert len(frequencies_from_config(sizes)[0]) == 32


def test_a_layers_own_trained_length_is_its_own():
    own = YARN | {"original_max_position_embeddings": 64, "rope_theta": 1e4}
    config = SMALL | {"original_max_position_embeddings": 4096, "rope_parameters": {"full_attention": own}}
    found, _ = frequencies_from_config(config, layer_type="full_attention")
    assert torch.equal(found, scaling.yarn_scaling(8, factor=8.0, original_max_position_embeddings=64))
