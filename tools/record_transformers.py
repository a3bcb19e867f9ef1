"""Record what transformers computes: writes tests/data/transformers_{configs,relative,rope}.json anew.

Run it from the root of the project, in the environment that `make bench` makes:

    ATEN_CPU_CAPABILITY=avx2 .venv-bench/bin/python -m tools.record_transformers

The variable names the vector instructions that torch uses: the last digit of a few numbers depends on them.

The numbers come from the rotary module of the model, or from the functions that it calls, which compute in float32.
Speeds are written with nine digits, which tell any two float32 numbers apart, and what needs less with fewer.
"""

import importlib
import json
import re
from pathlib import Path
from types import SimpleNamespace

import torch
import transformers
from transformers import AutoConfig, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.dinov3_vit.configuration_dinov3_vit import DINOv3ViTConfig
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding
from transformers.models.dinov3_vit.modeling_dinov3_vit import apply_rotary_pos_emb as dinov3_rotation
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

from lab.configs import CONFIGS
from lab.experiments import as_text
from tools.record_classes import digits

OF_THE_ROTATION = re.compile(  # what is kept of a configuration that transformers writes
    "^model_type$|rope|rotary|head_dim|^hidden_size$|num_attention_heads|position_embeddings|n_embd|n_head|n_positions|"
    "^layer_types$|per_layer_config"
)
DATA = Path(__file__).parent.parent / "tests" / "data"
VERSION = f"transformers {transformers.__version__}"


def record_configs() -> dict:
    """Each published configuration with its speeds, and with what transformers writes into a config.json of today."""
    models = []
    for published in CONFIGS:
        settings = json.loads(json.dumps(published["config"]))  # transformers changes nested ones in place
        model_type = published.get("class", settings.pop("model_type"))
        settings.pop("model_type", None)
        if (settings.get("rope_scaling") or {}).get("type") == "su":  # renamed by transformers, but too late for itself
            settings["rope_scaling"]["type"] = "longrope"
        config = AutoConfig.for_model(model_type, **settings).get_text_config()
        rotations = [
            rotation(config, layer_type, seq_len)
            for layer_type in published.get("layer_types", [None])
            for seq_len in [None, *published.get("lengths", [])]
        ]
        saved = {name: value for name, value in config.to_dict().items() if OF_THE_ROTATION.search(name)}
        models.append({**published, "saved": saved, "rotations": rotations})
    return {"source": f"{VERSION}, each model's own rotary module, float32", "models": models}


def rotation(config: transformers.PreTrainedConfig, layer_type: str | None, seq_len: int | None) -> dict:
    """What the model's own code turns by, after a text of seq_len tokens."""
    if config.model_type == "gptj":  # it has a table in place of a module: at position 1, the angle is the speed
        sin, cos = create_sinusoidal_positions(2, config.rotary_dim)[1].chunk(2)
        return case(torch.atan2(sin, cos), 1.0, layer_type, seq_len)
    modeling = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
    (name,) = (name for name in vars(modeling) if re.fullmatch("(?!.*Vision).+RotaryEmbedding", name))
    module = getattr(modeling, name)(config)
    if seq_len is not None:
        module(torch.zeros(1), torch.tensor([[seq_len - 1]]))
    prefix = f"{layer_type}_" if layer_type else ""
    inv_freq, factor = getattr(module, f"{prefix}inv_freq"), getattr(module, f"{prefix}attention_scaling")
    return case(inv_freq, factor, layer_type, seq_len)


def case(inv_freq: torch.Tensor, factor: float, layer_type: str | None, seq_len: int | None) -> dict:
    """A row of what is recorded."""
    return {
        "layer_type": layer_type, "seq_len": seq_len, "inv_freq": digits(inv_freq, 9), "attention_factor": factor,
    }  # fmt: skip


def record_rope() -> dict:
    """The scalings with settings of no model, and positions with several coordinates: of Qwen2-VL and of DINOv3."""
    yarn = {"factor": 16.0, "original_max_position_embeddings": 4096}
    unrounded = {"factor": 40.0, "original_max_position_embeddings": 4096, "beta_fast": 20, "beta_slow": 2}
    llama3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    longrope = {"factor": 8.0, "long_factor": [1 + 0.5 * pair for pair in range(16)], "short_factor": [1.0] * 16}
    given = {"factor": 4.0, "original_max_position_embeddings": 512, "attention_factor": 1.25}
    settings = {  # rope_type, its settings, base, seq_len
        "linear": ("linear", {"factor": 4.0}, 1e4, None),
        "dynamic_short": ("dynamic", {"factor": 2.0}, 1e4, 1000),
        "dynamic_long": ("dynamic", {"factor": 2.0}, 1e4, 10000),
        "yarn": ("yarn", yarn, 1e4, None),
        "yarn_no_truncate": ("yarn", unrounded | {"truncate": False}, 150000, None),
        "yarn_attention_factor": ("yarn", given, 1e4, None),
        "llama3": ("llama3", llama3, 5e5, None),
        "longrope": ("longrope", longrope | {"original_max_position_embeddings": 4096}, 1e4, 10000),
        "proportional": ("proportional", {"partial_rotary_factor": 0.5}, 1e4, None),
    }
    cases = {}
    for name, (rope_type, rope, base, seq_len) in settings.items():
        config = LlamaConfig(
            hidden_size=128, num_attention_heads=4, head_dim=32, max_position_embeddings=2048,
            rope_parameters={"rope_type": rope_type, "rope_theta": base, **rope},
        )  # fmt: skip
        inv_freq, factor = ROPE_INIT_FUNCTIONS[rope_type](config, seq_len=seq_len)
        cases[name] = {"inv_freq": digits(inv_freq, 9), "attention_factor": factor}
    positions = [[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 2, 3], [2, 3, 2], [2, 3, 3], [3, 4, 4]]
    sections = SimpleNamespace(mrope_section=[2, 3, 3])
    angles = torch.tensor(positions).T[..., None].double() * 1e4 ** (-torch.arange(8).double() / 8)
    recomposed = Qwen2VLRotaryEmbedding.recomposition_frequencies(sections, angles)[:, :8]
    vision = DINOv3ViTConfig(hidden_size=64, num_attention_heads=1, patch_size=1)
    ones, patches = torch.ones(1, 1, 12, 64), [1, 4, 11]
    turned, _ = dinov3_rotation(ones, ones, *DINOv3ViTRopePositionEmbedding(vision).eval()(torch.zeros(1, 3, 3, 4)))
    return {
        "source": f"{VERSION}, ROPE_INIT_FUNCTIONS, head_dim 32, float32",
        "cases": cases,
        "sectioned": {
            "source": "Qwen2VLRotaryEmbedding.recomposition_frequencies",
            "positions": positions,
            "sections": sections.mrope_section,
            "cos": [[round(x, 9) for x in row] for row in recomposed.cos().tolist()],
            "sin": [[round(x, 9) for x in row] for row in recomposed.sin().tolist()],
        },
        "axial": {
            "source": "DINOv3ViTRopePositionEmbedding, 3 rows of 4 patches, vectors of ones",
            "patches": patches,
            "turned": [[round(x, 6) for x in row] for row in turned[0, 0, patches].tolist()],
        },
    }


def record_relative() -> dict:
    """T5's buckets and ALiBi's slopes."""
    low, high = -300, 300  # a distance is that of the query minus that of the key; T5 counts the other way
    keys_ahead = -torch.arange(low, high + 1)
    buckets = {
        name: T5Attention._relative_position_bucket(keys_ahead, bidirectional=both, num_buckets=32, max_distance=128)
        for name, both in (("t5_bidirectional", True), ("t5_causal", False))
    }
    slopes = {heads: build_alibi_tensor(torch.ones(1, 2), heads, torch.float32) for heads in (1, 2, 6, 8, 12, 16)}
    return {
        "source": f"{VERSION}, T5Attention and build_alibi_tensor",
        "distances": [low, high],
        **{name: bucket.tolist() for name, bucket in buckets.items()},
        "alibi_slopes": {str(heads): digits(alibi[:, 0, 1], 7) for heads, alibi in slopes.items()},
    }


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    (DATA / "transformers_configs.json").write_bytes(as_text(record_configs()))
    (DATA / "transformers_rope.json").write_bytes(as_text(record_rope()))
    (DATA / "transformers_relative.json").write_bytes(as_text(record_relative()))
