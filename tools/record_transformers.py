"""Record what transformers computes: writes tests/data/transformers_*.json and rope_lib/_class_defaults.py anew.

Run it from the root of the project, in the environment that `make bench` makes:

    ATEN_CPU_CAPABILITY=avx2 .venv-bench/bin/python -m tools.record_transformers

The variable names the vector instructions that torch uses: the last digit of a few numbers depends on them.

The numbers come from the rotary module of the model, or from the functions that it calls, which compute in float32.
Speeds are written with nine digits, which tell any two float32 numbers apart, and what needs less with fewer.
"""

import contextlib
import copy
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
import transformers
from huggingface_hub.errors import StrictDataclassClassValidationError, StrictDataclassFieldValidationError
from transformers import AutoConfig, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.dinov3_vit.configuration_dinov3_vit import DINOv3ViTConfig
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding
from transformers.models.dinov3_vit.modeling_dinov3_vit import apply_rotary_pos_emb as dinov3_rotation
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

from lab.configs import CONFIGS
from lab.experiments import as_text

OF_THE_ROTATION = re.compile(  # what is kept of a configuration that transformers writes
    "^model_type$|rope|rotary|head_dim|^hidden_size$|num_attention_heads|position_embeddings|n_embd|n_head|n_positions|"
    "^layer_types$|per_layer_config"
)
ROOT = Path(__file__).parent.parent
DATA, MODULE = ROOT / "tests" / "data", ROOT / "rope_lib" / "_class_defaults.py"
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


# -- What classes take for what a file lacks ---------------------------------------------------------------------------

HEADS = {"num_attention_heads": 24, "num_key_value_heads": 24}
WIDTHS = (2304, 1920)  # 96 and 80 dimensions per head, where width over heads is what a class takes
INVALID = (StrictDataclassClassValidationError, StrictDataclassFieldValidationError)
HEAD, BASE, STRETCH = 48, 12345.0, {"rope_type": "linear", "factor": 3.0}  # of no class
# These rotate without rope_parameters: read in their modeling files (sinusoids turn q and k in RoFormer's).
WITHOUT_PARAMETERS = {
    **{name: {"rope_theta": 10000.0, "rotary_dim": 64} for name in ("gptj", "codegen")},
    **{name: {"rope_theta": 10000.0} for name in ("esm", "roformer")},
}
# Names that stand in published files and are no class of transformers, with the class whose code does the same.
OTHER_NAMES = {"deepseek": "llama", "internlm2": "llama", "kimi_k2": "deepseek_v3"}


class UnknownClass(Exception):
    """Nothing can be recorded about this class: its files must say everything themselves."""


def text_class(name: str) -> type[transformers.PreTrainedConfig] | None:
    """The class that reads the text part of a file with this model_type; None if it is chosen by the file."""
    try:
        config = CONFIG_MAPPING[name]()
        part = config.get_text_config()
    except (*INVALID, ValueError):  # several parts, or a default that it refuses itself
        return None
    return type(part) if type(part).__module__ == type(config).__module__ else None


def rotary_class(cls: type) -> type | None:
    """The module that rotates in the models of a configuration class: that which asks for this class, or no other's."""
    try:
        modeling = importlib.import_module(cls.__module__.replace(".configuration_", ".modeling_"))
    except ImportError:
        return None
    asks = {}
    for name, module in vars(modeling).items():
        if re.fullmatch("(?!.*(Vision|DiT)).+RotaryEmbedding", name):
            config = inspect.signature(module.__init__).parameters.get("config")
            asks[module] = getattr(config and config.annotation, "__name__", config and config.annotation)
    own = [module for module, asked in asks.items() if asked == cls.__name__]
    return next(iter(own or [module for module, asked in asks.items() if asked is not None]), None)


def layers_of(rope: dict) -> dict[str | None, dict]:
    """rope_parameters by type of layer; under None where layers are alike. (Layers with null do not turn.)"""
    nested = {name: entry for name, entry in sorted(rope.items()) if isinstance(entry, dict)}
    return nested or {None: rope}


def heads_of(cls: type, layers: dict[str | None, dict], width: int, **sizes) -> dict[str | None, int]:
    """How many dimensions a head has, by type of layer: those that the model's own module turns, over their share.

    The module makes speeds for the layers of the class's usual model alone; the others are said to have the same head.
    """
    config = cls(hidden_size=width, **HEADS, **sizes)
    module, known, found = rotary_class(cls)(config), config.to_dict(), {}
    for layer_type, entry in layers.items():
        speeds = getattr(module, f"{layer_type}_inv_freq" if layer_type else "inv_freq", None)
        share = 1.0 if entry.get("rope_type") == "proportional" else entry.get("partial_rotary_factor", 1.0)
        if speeds is not None:
            turned = 2 * len(speeds)
            likely = (width // HEADS["num_attention_heads"], known.get("head_dim"), known.get("qk_rope_head_dim"))
            found[layer_type] = next(
                (size for size in likely if size and int(size * share) == turned), int(turned / share)
            )
    return {layer_type: found.get(layer_type, next(iter(found.values()))) for layer_type in layers}


def reached(cls: type, layers: dict, settings: dict, mark: float) -> list[str | None]:
    """The types of layers to which a base, or a scaling, applies that names no type of layer."""
    try:
        rope = cls(hidden_size=WIDTHS[0], **HEADS, **copy.deepcopy(settings)).rope_parameters
    except (*INVALID, TypeError):  # no file of this class has it so
        return []
    return [name for name, entry in layers_of(rope).items() if name in layers and mark in entry.values()]


def default_of(name: str) -> dict | None:
    """What the class takes for granted where a file has sizes alone; None where no layer rotates.

    Raises:
        UnknownClass: it cannot be determined.
    """
    if name in WITHOUT_PARAMETERS:
        return WITHOUT_PARAMETERS[name]
    cls = text_class(OTHER_NAMES.get(name, name))
    rotary = cls and rotary_class(cls)
    try:
        known = cls(hidden_size=WIDTHS[0], **HEADS).to_dict() if cls else {}
    except (AttributeError, *INVALID):
        raise UnknownClass(f"{name} takes other sizes") from None
    rope = known.get("rope_parameters")
    if cls and not rope and not rotary and name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return None
    if not rope or not rotary or rope.get("rope_type") == "axial":
        raise UnknownClass(f"{name} has no rotation by one position")
    layers, found = layers_of(rope), {}
    try:
        heads, others = (heads_of(cls, layers, width) for width in WIDTHS)
    except (AttributeError, RuntimeError):  # speeds in an order of their own, made for one size; or of rows and columns
        raise UnknownClass(f"{name} turns by other speeds") from None
    if {*heads.values()} == {known.get("qk_rope_head_dim")}:
        found["qk_rope_head_dim"] = known["qk_rope_head_dim"]
    elif heads == others:
        found["head_dim"] = heads.get("sliding_attention", next(iter(heads.values())))
        if heads.get("full_attention", found["head_dim"]) != found["head_dim"]:
            found["global_head_dim"] = heads["full_attention"]
    elif ({*heads.values()}, {*others.values()}) != ({96}, {80}):
        raise UnknownClass(f"{name} has heads of {heads} for a width of {WIDTHS[0]}")
    with contextlib.suppress(AttributeError, *INVALID):  # one that refuses this head reads it
        if "qk_rope_head_dim" not in found and heads_of(cls, layers, WIDTHS[0], head_dim=HEAD) == heads:
            found["ignores"] = ["head_dim"]
    if known.get("rotary_dim") not in (None, next(iter(heads.values()))):  # and yet it turns the whole head
        found["ignores"] = [*found.get("ignores", []), "rotary_dim"]
    base, scaling = (
        reached(cls, layers, {"rope_theta": BASE}, BASE),
        reached(cls, layers, {"rope_scaling": STRETCH}, 3.0),
    )
    if None in layers and rope["rope_type"] == "default":
        found["rope_theta"] = rope["rope_theta"]
        if rope.get("partial_rotary_factor", 1.0) != 1.0:
            found["partial_rotary_factor"] = rope["partial_rotary_factor"]
        return found | ({} if base else {"base_of": base})
    told = {
        layer_type: {key: value for key, value in entry.items() if (key, value) != ("rope_type", "default")}
        for layer_type, entry in layers.items()
    }
    found["rope_parameters"] = told.get(None, told)
    return found | {"base_of": base, "scaling_of": scaling}


def record_defaults() -> dict[str, dict | None]:
    """The defaults of every class that is known; the others are printed, each with its reason."""
    found = {}
    for name in sorted([*CONFIG_MAPPING_NAMES, *OTHER_NAMES]):
        try:
            found[name] = default_of(name)
        except UnknownClass as error:
            print(f"not recorded: {error}")
    return found


def defaults_as_module(defaults: dict[str, dict | None]) -> str:
    """The defaults as a module: travelling notebooks import from a zip, where a file of data would be hard to read."""
    same = {}
    for name, default in defaults.items():
        same.setdefault(repr(default), []).append(name)
    rows = [f"    ({tuple(names)!r}, {default})," for default, names in same.items()]
    text = "\n".join([
        '"""What the classes of transformers take for what a file leaves out: written by tools/record_transformers.py.',
        "",
        "None means that no layer rotates. Where there is no head_dim, it is hidden_size over num_attention_heads;",
        "where there is no partial_rotary_factor, the whole head turns. A rope_theta and a rope_scaling without a",
        "type of layer are for the layers in base_of and scaling_of; where base_of is empty, the class does not read",
        "them, nor what stands in ignores.",
        '"""', "", f'SOURCE = "{VERSION}"', "CLASSES: list[tuple[tuple[str, ...], dict | None]] = [", *rows, "]",
        "DEFAULTS = {name: default for names, default in CLASSES for name in names}", "",
    ])  # fmt: skip
    format = [sys.executable, "-m", "ruff", "format", "--line-length", "120", "-"]
    return subprocess.run(format, input=text, capture_output=True, text=True, check=True).stdout


def record_files(defaults: dict[str, dict | None]) -> dict:
    """What transformers makes of three files of each class: of sizes, sizes and a base, and these and a head_dim."""
    kinds = {"sizes": {}, "base": {"rope_theta": 50000.0}, "head": {"rope_theta": 50000.0, "head_dim": 64}}
    sizes = {"hidden_size": WIDTHS[0], **HEADS}
    files = {}
    for name in sorted(defaults):
        cls = text_class(name) if name in CONFIG_MAPPING_NAMES and name not in WITHOUT_PARAMETERS else None
        if cls is None or defaults[name] is None:
            continue
        for kind, more in kinds.items():
            refusals = (AttributeError, KeyError, TypeError, RuntimeError, ValueError, *INVALID)
            with contextlib.suppress(*refusals):  # there is no such file
                config = cls(**sizes, **more)
                module = rotary_class(cls)(config)
                for layer_type in layers_of(config.rope_parameters):
                    prefix = f"{layer_type}_" if layer_type else ""
                    speeds = getattr(module, f"{prefix}inv_freq", None)
                    if speeds is not None:
                        ends = digits(speeds[[1, -1]], 7)
                        row = [len(speeds), *ends, getattr(module, f"{prefix}attention_scaling")]
                        files.setdefault(name, {}).setdefault(kind, {})[layer_type or "all"] = row
    return {
        "source": f"{VERSION}: pairs, the second and the last inverse frequency, attention factor, by type of layer",
        "settings": {kind: sizes | more for kind, more in kinds.items()},
        "files": files,
    }


def digits(numbers: torch.Tensor, count: int) -> list[float]:
    """Numbers with so many digits."""
    return [float(f"{x:.{count}g}") for x in numbers.tolist()]


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    (DATA / "transformers_configs.json").write_bytes(as_text(record_configs()))
    (DATA / "transformers_rope.json").write_bytes(as_text(record_rope()))
    (DATA / "transformers_relative.json").write_bytes(as_text(record_relative()))
    defaults = record_defaults()
    MODULE.write_text(defaults_as_module(defaults), encoding="utf-8")
    (DATA / "transformers_files.json").write_bytes(as_text(record_files(defaults)))
