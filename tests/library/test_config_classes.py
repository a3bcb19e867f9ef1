"""A file means what the class of its model makes of it, or is refused; with files of 2026."""

import json
import math
import re
import subprocess
from collections import Counter

import pytest

from rope_lib import frequencies_from_config, inverse_frequencies, rotation_from_config, scaling
from rope_lib.config._classes import RECORDS, SOURCE
from tests.conftest import ROOT
from tools.agreement import AGREE, DIFFER, FAILS, REFUSED, cases

CASES = list(cases())


def test_no_file_is_read_otherwise_than_transformers_reads_it():
    assert [case for case in CASES if case.verdict == DIFFER] == []
    found = Counter(case.verdict for case in CASES)
    assert found[AGREE] > found[REFUSED] > 0 < found[FAILS]


def test_sizes_alone_are_never_refused():
    assert {case.verdict for case in CASES if case.kind == "sizes"} == {AGREE}


def test_what_is_refused_is_refused_for_what_the_class_does():
    """It ignores the key or fails on it, or what comes out is no rotation. (Drawn files contradict themselves.)"""
    reasons = (
        "does not read it", "fails on it", "fails without", "asks for more",
        "it must be positive and even", "it takes .* Which is meant",
        "reads both, and one head turns", "takes the base of .* from elsewhere",
        "original_max_position_embeddings is .* and max_position_embeddings",
    )  # fmt: skip
    whole = [case for case in CASES if "drawn" not in case.kind]
    odd = [case for case in whole if case.verdict == REFUSED and not re.search("|".join(reasons), case.why)]
    assert odd == []


def test_what_transformers_writes_is_never_refused_for_a_key_that_is_not_known():
    written = [case for case in CASES if case.kind == "to_dict()"]
    assert len({case.model_type for case in written}) > 200
    assert [case for case in written if "not known here" in case.why] == []


def test_one_version_of_transformers_is_named_everywhere():
    version = re.fullmatch(r"transformers (\d+\.\d+)\.\d+", SOURCE)[1]
    pinned = (ROOT / "requirements-bench.txt").read_text(encoding="utf-8")
    assert f"transformers {version};" in frequencies_from_config.__doc__
    assert f"\ntransformers=={version}." in pinned
    stored = json.loads((ROOT / "tests" / "data" / "transformers_files.json").read_text(encoding="utf-8"))
    assert stored["source"].startswith(SOURCE)


@pytest.mark.slow
def test_the_record_is_that_of_a_fresh_recording():
    """Where transformers is: in the environment that `make bench` makes."""
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not python.exists():
        pytest.skip("no .venv-bench here (make bench makes it): the record of transformers' classes is not compared")
    code = (
        "import sys; sys.stdout = sys.stderr; from tools import record_classes as it; "
        "sys.__stdout__.write(it.as_rows(it.record_classes()))"
    )
    done = subprocess.run([python, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "rope_lib" / "config" / "classes.json").read_text(encoding="utf-8")


# -- What a class does not read ----------------------------------------------------------------------------------------

SIZES = {"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 5e5}
SHARES = ({"partial_rotary_factor": 0.5}, {"rotary_pct": 0.5}, {"rotary_dim": 64})


@pytest.mark.parametrize("model_type", ["llama", "mistral", "qwen2", "gemma2", "olmo2", "granite", "cohere"])
@pytest.mark.parametrize("share", SHARES, ids=lambda share: next(iter(share)))
def test_a_share_that_the_class_does_not_read_is_an_error(model_type, share):
    file = SIZES | {"model_type": model_type, "head_dim": 128} | share
    [key] = share
    with pytest.raises(ValueError, match=f"^{key} is .*'{model_type}' does not read it: it takes 128 dim.* Which is"):
        rotation_from_config(file)
    assert rotation_from_config(file, ignore=(key,)).rotary_dim == 128
    assert rotation_from_config({key: value for key, value in file.items() if key != "model_type"}).rotary_dim == 64


def test_a_share_in_the_block_is_one_too():
    block = {"rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5}}
    file = {"model_type": "llama", "head_dim": 128} | block
    with pytest.raises(ValueError, match=r"^partial_rotary_factor in the block is 0\.5, .* does not read it"):
        rotation_from_config(file)
    assert rotation_from_config(file, ignore=["partial_rotary_factor"]).rotary_dim == 128


def test_what_changes_nothing_is_no_error():
    file = SIZES | {"model_type": "llama", "partial_rotary_factor": 1.0, "rotary_dim": 128, "rotary_pct": 1.0}
    found = rotation_from_config(file)
    assert found.rotary_dim == 128
    assert {"partial_rotary_factor", "rotary_dim", "rotary_pct"} <= {*found.set_aside}


@pytest.mark.parametrize("ignore", [("rope_thta",), ["rope_theta", "beta"], ("",)])
def test_only_what_is_there_can_be_set_aside(ignore):
    with pytest.raises(ValueError, match=r"^ignore has .*; the config has no such key"):
        rotation_from_config(SIZES, ignore=ignore)
    with pytest.raises(TypeError, match=r"^ignore is 'rope_theta'; it must be a tuple of keys"):
        rotation_from_config(SIZES, ignore="rope_theta")


def test_all_that_is_not_known_is_told_at_once_and_can_be_set_aside():
    file = SIZES | {"rope_ratio": 2, "ntk_alpha": 4}
    with pytest.raises(ValueError, match=r"has ntk_alpha, rope_ratio: .* ignore=\('ntk_alpha', 'rope_ratio'\) sets"):
        frequencies_from_config(file)
    found, _ = frequencies_from_config(file, ignore=("ntk_alpha", "rope_ratio"))
    assert found.equal(inverse_frequencies(128, base=5e5))


@pytest.mark.parametrize("key", ["apply_rope_fusion", "rotary_interleaved", "index_rope_head_dim", "rope_impl"])
def test_a_matter_of_layout_or_of_kernels_stops_nothing(key):
    assert rotation_from_config(SIZES | {key: True}).rotary_dim == 128


def test_layers_of_a_class_that_is_not_known_may_differ():
    file = SIZES | {"model_type": "of_tomorrow", "head_dim": 128, "partial_rotary_factor": 1.0}
    assert rotation_from_config(file).layers == "not known: model_type 'of_tomorrow' is not recorded"
    several = file | {"layer_types": ["full_attention", "sliding_attention"] * 4}
    with pytest.raises(ValueError, match=r"the layers differ \(layer_types has full_attention, sliding_attention\)"):
        rotation_from_config(several)
    assert rotation_from_config(several, ignore=("layer_types",)).base == 5e5
    mixed = file | {"layer_types": ["full_attention", "mamba"]}  # one kind that can turn
    assert rotation_from_config(mixed).base == 5e5


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
OF_GEMMA3 = {
    "model_type": "gemma3_text",
    "hidden_size": 2304,
    "num_attention_heads": 24,
    "max_position_embeddings": 4096,
}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rope_scaling": YARN | {"truncate": False}}, "truncate in the block is False, and .* does not read it"),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, "type is 'linear', and .* reads rope_type alone"),
        (
            {"rope_parameters": {"full_attention": {}, "sliding_attention": {"factor": 1.0}, "rope_theta": 7e4}},
            r"rope_parameters has \['rope_theta'\] beside its entries",
        ),
        (
            {"rope_parameters": {
                "full_attention": {"rope_theta": 1e6},
                "sliding_attention": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4,
                                      "max_position_embeddings": 8192}}},
            "max_position_embeddings is 8192 in .* and 4096 beside it; take out",
        ),
        ({"head_dim": None}, "head_dim is null, and the class .* treats that differently"),
        ({"model_type": "qwen3_next", "partial_rotary_factor": None}, "partial_rotary_factor is null, and the class"),
        (
            {"model_type": "dots3_note_text", "swa_rope_theta": 3e4, "rope_scaling": {"rope_type": "default"}},
            "config has a base, and rope_scaling for all layers; .* from elsewhere",
        ),
        (
            {"model_type": "phimoe", "rope_scaling": {
                "type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48,
                "original_max_position_embeddings": 4096}},
            "asks for more than is known here",
        ),
        ({"model_type": "llama", "partial_rotary_factor": "0.5"}, "partial_rotary_factor is '0.5'; it must be a num"),
        ({"model_type": "llama", "partial_rotary_factor": [0.5]}, r"partial_rotary_factor is \[0\.5\]; it must be"),
        ({"max_position_embeddings": "4096"}, "max_position_embeddings is '4096'; it must be an int"),
        ({"qk_nope_head_dim": "128"}, "qk_nope_head_dim is '128'; it must be an int"),
        ({"per_layer_config": {"0": 5}}, "per_layer_config is .* it must be a dict with a dict for each layer"),
        ({"per_layer_config": {"x": {}}}, "per_layer_config has 'x'; it must be the number of a layer"),
        ({"model_type": "muse_glimmer_text", "layer_rope_theta": [[1]]}, r"layer_rope_theta has \[1\]; each must be"),
        ({"model_type": "cohere2", "position_embedding_type": "nope"}, "of a model without rotation"),
        ({"use_rope": False}, "config has use_rope: false; it is of a model without rotation"),
    ],
)  # fmt: skip
def test_what_reads_otherwise_than_it_looks_is_refused(changes, why):
    with pytest.raises((TypeError, ValueError), match=why):
        rotation_from_config(OF_GEMMA3 | changes, layer_type="sliding_attention")


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "cohere2", "position_embedding_type": "rope_gptj"},
        {"model_type": "hunyuan_v1_dense", "use_rotary_pos_emb": True},
        {"model_type": "olmo", "rope": True, "text_config": 5},
    ],
)
def test_words_that_say_that_it_rotates_stop_nothing(changes):
    assert rotation_from_config({"hidden_size": 2048, "num_attention_heads": 16} | changes).rotary_dim == 128


def test_a_head_of_its_own_is_read_where_the_class_reads_it():
    assert rotation_from_config({"model_type": "deepseek_v3", "qk_rope_head_dim": 32}).rotary_dim == 32


@pytest.mark.parametrize("ignore", [None, 5, ([],), ("rope_theta", [])])
def test_only_names_can_be_set_aside(ignore):
    with pytest.raises(TypeError, match=r"^ignore (is|has) "):
        rotation_from_config(SIZES, ignore=ignore)


def test_what_was_set_aside_is_shown():
    found = rotation_from_config(SIZES | {"model_type": "llama", "rotary_pct": 0.5}, ignore=("rotary_pct",))
    assert "rotary_pct" in found.set_aside
    assert hash(found) == hash(found)


def test_most_classes_tell_which_layers_turn():
    """A slow machine could make it null in silence."""
    rotating = [record for record in RECORDS.values() if record is not None]
    assert sum(bool(record.get("turn")) for record in rotating) > len(rotating) / 2


# -- Files of 2026 -----------------------------------------------------------------------------------------------------

YARN_V4 = {"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 65536}
DEEPSEEK_V4 = {
    "model_type": "deepseek_v4", "hidden_size": 4096, "head_dim": 512, "qk_rope_head_dim": 64,
    "num_attention_heads": 64, "num_key_value_heads": 1, "max_position_embeddings": 1048576, "rope_theta": 10000,
    "compress_rope_theta": 160000, "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 0], "index_head_dim": 128,
    "rope_scaling": YARN_V4,
}  # fmt: skip


@pytest.mark.parametrize("left_out", [None, "compress_rope_theta"])
def test_deepseek_v4_stretches_its_compressed_layers_alone(left_out):
    """The factor of YaRN is not multiplied into its tables."""
    file = {key: value for key, value in DEEPSEEK_V4.items() if key != left_out}
    main = rotation_from_config(file, layer_type="main")
    assert (main.base, main.rope_type, main.rotary_dim) == (10000, "default", 64)
    speeds, factor = rotation_from_config(file, layer_type="compress").frequencies()
    expected = scaling.yarn_scaling(64, factor=16, original_max_position_embeddings=65536, base=160000.0)
    assert speeds.equal(expected)
    assert factor == 1.0


def test_deepseek_v4_with_an_entry_for_each_kind_of_layer():
    """From such entries transformers takes YaRN's own factor, 1.277: the file must say which."""
    nested = {"main": {"rope_theta": 10000}, "compress": YARN_V4 | {"rope_theta": 160000}}
    file = {key: value for key, value in DEEPSEEK_V4.items() if key not in ("rope_scaling", "compress_rope_theta")}
    file |= {"rope_parameters": nested, "partial_rotary_factor": 0.125}
    with pytest.raises(ValueError, match=r"^the entry of compress has no attention_factor.* takes 1\.0, .* which is"):
        rotation_from_config(file, layer_type="main")
    nested["compress"]["attention_factor"] = 1.0
    assert rotation_from_config(file, layer_type="compress").frequencies()[1] == 1.0
    assert rotation_from_config(file, layer_type="main").base == 10000


GLM_5_2 = {
    "model_type": "glm_moe_dsa", "hidden_size": 6144, "num_attention_heads": 64, "head_dim": 192,
    "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "max_position_embeddings": 202752,
    "rope_parameters": {"rope_theta": 8000000.0, "rope_type": "default"}, "rope_interleave": True,
    "indexer_rope_interleave": True, "index_head_dim": 128,
}  # fmt: skip
GLM_5_3_FLASH = {
    "model_type": "glm5_next_text", "hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 64,
    "max_position_embeddings": 1048576, "qk_nope_head_dim": 256, "qk_rope_head_dim": 0, "qk_head_dim": 256,
    "mla_use_nope": True, "indexer_rope_interleave": True,
}  # fmt: skip
MUSE_GLIMMER = {
    "model_type": "muse_glimmer_text", "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8,
    "head_dim": 128, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "sliding_window": 1024,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"] * 2,
    "layer_rope_theta": [500000.0, 500000.0, 500000.0, 0.0] * 2,
}  # fmt: skip
MIMO_V2_FLASH = {
    "model_type": "mimo_v2_flash", "hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 4,
    "head_dim": 192, "v_head_dim": 128, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8,
    "swa_head_dim": 192, "swa_v_head_dim": 128, "partial_rotary_factor": 0.334, "rope_theta": 5000000,
    "swa_rope_theta": 10000, "sliding_window": 128, "max_position_embeddings": 262144, "rope_scaling": None,
}  # fmt: skip


def test_glm_5_2_is_read_with_its_keys_of_layout():
    found = rotation_from_config(GLM_5_2)
    assert (found.rotary_dim, found.base, found.interleaved) == (64, 8e6, None)  # its class has no such key
    assert {"rope_interleave"} <= {*found.set_aside}
    assert rotation_from_config({"model_type": "deepseek_v3", "rope_interleave": False}).interleaved is False


@pytest.mark.parametrize("keys", [[*GLM_5_3_FLASH], ["model_type", "hidden_size", "num_attention_heads"],
                                  ["hidden_size", "num_attention_heads", "qk_rope_head_dim"],
                                  ["hidden_size", "num_attention_heads", "mla_use_nope"]])  # fmt: skip
def test_glm_5_3_flash_does_not_rotate(keys):
    with pytest.raises(ValueError, match=r"no layer of its class rotates|of a model without rotation"):
        rotation_from_config({key: GLM_5_3_FLASH[key] for key in keys})


def test_an_unknown_class_that_says_that_it_does_not_rotate():
    with pytest.raises(ValueError, match=r"mla_use_nope: true; it is of a model without rotation"):
        rotation_from_config({"model_type": "kimi_k3", "qk_rope_head_dim": 64, "mla_use_nope": True})


def test_muse_glimmer_turns_three_layers_of_four():
    found = rotation_from_config(MUSE_GLIMMER)
    assert (found.rotary_dim, found.base) == (128, 5e5)
    assert found.layers == "6 of 8, those that are not 0 in layer_rope_theta"
    without = {key: value for key, value in MUSE_GLIMMER.items() if key != "layer_rope_theta"}
    assert rotation_from_config(without).layers == "sliding_attention; not full_attention"
    with pytest.raises(ValueError, match=r"layer_rope_theta has \[10000\.0\], and rope_theta is 500000"):
        rotation_from_config(MUSE_GLIMMER | {"layer_rope_theta": [500000.0, 10000.0, 0]})


@pytest.mark.parametrize(("layer_type", "base"), [("full_attention", 5e6), ("sliding_attention", 1e4)])
def test_mimo_v2_flash_has_two_bases(layer_type, base):
    found = rotation_from_config(MIMO_V2_FLASH, layer_type=layer_type)
    assert (found.rotary_dim, found.base, found.head_dim) == (64, base, 192)
    with pytest.raises(ValueError, match=r"swa_rope_theta is 81, and the class .* does not read it"):
        rotation_from_config(MIMO_V2_FLASH | {"swa_rope_theta": 81}, layer_type=layer_type)


@pytest.mark.parametrize(
    "file",
    [
        {"model_type": "olmo_hybrid", "rope_theta": None}, {"model_type": "nemotron_h"}, {"model_type": "jamba"},
        {"model_type": "granitemoehybrid", "position_embedding_type": "nope"}, {"model_type": "kimi_linear"},
        GLM_5_3_FLASH,
    ],
    ids=lambda file: file["model_type"],
)  # fmt: skip
def test_those_that_do_not_rotate_by_the_page_of_models_are_refused(file):
    with pytest.raises(ValueError, match=r"no layer of its class rotates|without rotation|does the model rotate"):
        rotation_from_config({"hidden_size": 4096, "num_attention_heads": 32} | file)


HYBRID = {"hidden_size": 2048, "num_attention_heads": 16, "head_dim": 256, "max_position_embeddings": 262144}
RECENT = {  # files, and what transformers 5.24 makes of them: pairs, those that turn, base
    "MiniMax-M3": (
        {"model_type": "minimax_m3_vl_text", "hidden_size": 6144, "num_attention_heads": 48, "head_dim": 128,
         "rotary_dim": 64, "partial_rotary_factor": 0.5, "rope_theta": 5000000}, None, (32, 32, 5e6),
    ),
    "Gemma 4, global layers": (
        {"model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "hidden_size": 2560,
         "num_attention_heads": 8, "rope_parameters": {
             "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
             "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}},
        "full_attention", (256, 64, 1e6),
    ),
    "Qwen3.5": (
        HYBRID | {"model_type": "qwen3_5_text", "rope_parameters": {
            "rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25, "mrope_interleaved": True,
            "mrope_section": [11, 11, 10]}}, None, (32, 32, 1e7),
    ),
    "Qwen4-exp": (
        HYBRID | {"model_type": "qwen4_exp_text", "rope_parameters": {
            "rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25}}, None, (32, 32, 1e7),
    ),
    "Mistral Small 4": (
        {"model_type": "mistral4", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128,
         "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, "max_position_embeddings": 1048576, "rope_parameters": {
             "type": "yarn", "rope_type": "yarn", "rope_theta": 10000.0, "factor": 128.0, "beta_fast": 32.0,
             "beta_slow": 1.0, "original_max_position_embeddings": 8192, "mscale": 1.0, "mscale_all_dim": 1.0,
             "llama_4_scaling_beta": 0.1, "partial_rotary_factor": 0.5}}, None, (32, 32, 1e4),
    ),
    "Hy4": (
        {"model_type": "hy_v4", "hidden_size": 6144, "num_attention_heads": 64, "num_key_value_heads": 64,
         "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "qk_head_dim": 256, "v_head_dim": 256,
         "max_position_embeddings": 262144, "rope_parameters": {"rope_theta": 10000, "rope_type": "default"}},
        None, (32, 32, 1e4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECENT)
def test_recent_files_as_they_are_published(name):
    file, layer_type, (pairs, turning, base) = RECENT[name]
    inv_freq, factor = frequencies_from_config(file, layer_type=layer_type)
    assert (len(inv_freq), int((inv_freq > 0).sum())) == (pairs, turning)
    assert rotation_from_config(file, layer_type=layer_type).base == base
    assert factor == 1.0


def test_hunyuan_s_alpha_stretches_the_base():
    block = {"type": "dynamic", "alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0}
    file = {"head_dim": 128, "rope_theta": 10000.0, "max_position_embeddings": 32768, "rope_scaling": block}
    found = rotation_from_config(file | {"model_type": "hunyuan_v1_dense"})
    assert found.base == pytest.approx(11_158_840, rel=1e-6)
    speeds, factor = found.frequencies(100_000)
    assert (speeds[-1].item(), factor) == (pytest.approx(1.155e-7, rel=1e-3), 1.0)
    with pytest.raises(ValueError, match=r"not known here: \['alpha', .*multiplies the base by alpha\^\(d/\(d-2\)\)"):
        rotation_from_config(file | {"model_type": "llama"})


def test_the_trained_length_of_llama_4_s_temperature_is_no_scaling():
    """As a converter writes it where there is no YaRN."""
    block = {"rope_type": "default", "rope_theta": 1e6, "original_max_position_embeddings": 16384}
    file = {"model_type": "ministral3", "head_dim": 128, "max_position_embeddings": 131072}
    scaled = file | {"rope_parameters": block | {"llama_4_scaling_beta": 0.1}}
    assert rotation_from_config(scaled).rope_type == "default"
    with pytest.raises(ValueError, match="the first must be the same"):
        rotation_from_config(file | {"rope_parameters": block})


@pytest.mark.parametrize(
    ("model_type", "window", "layers"),
    [
        ("exaone4", {}, "sliding_attention; not full_attention"),
        ("exaone4", {"sliding_window": 4096}, "sliding_attention; not full_attention"),
        ("exaone4", {"sliding_window": None}, "all"),
        ("cohere2", {}, "sliding_attention; not full_attention"),
        ("llama", {}, "all"),
        ("smollm3", {}, "all but every 4th"),
        ("smollm3", {"no_rope_layer_interval": 2}, "all but every 2nd, by no_rope_layer_interval"),
        ("qwen3", {"no_rope_layers": [1, 0]}, "all"),
        ("smollm3", {"no_rope_layers": [1, 1, 1, 0]}, "3 of 4, those that are not 0 in no_rope_layers"),
    ],
)
def test_which_layers_turn(model_type, window, layers):
    sizes = {"hidden_size": 2048, "num_attention_heads": 16, "model_type": model_type}
    assert rotation_from_config(sizes | window).layers == layers


def test_the_record_prints_what_was_understood():
    shown = str(rotation_from_config(DEEPSEEK_V4, layer_type="compress"))
    assert "64 of 512 dimensions of a head, 32 pairs" in shown
    assert "yarn factor 16, attention_factor 1.0, beta_fast 32, beta_slow 1" in shown
    assert "model 1,048,576, trained 65,536" in shown
    assert math.prod(name in shown for name in ("compress_rope_theta", "qk_rope_head_dim", "rope_theta"))
    assert len(RECORDS) > 250
