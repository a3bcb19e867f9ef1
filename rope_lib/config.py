"""Frequencies from the configuration that a published model comes with."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rope_lib import scaling
from rope_lib._checks import check_dim
from rope_lib.frequencies import inverse_frequencies

EVERYWHERE = {
    "rope_type",
    "type",
    "rope_theta",
    "partial_rotary_factor",
    "finetuned",
    "mrope_section",
    "mrope_interleaved",
}
KEYS = {  # rope_type: the keys that it must have, and those that it may have
    "default": ((), ("original_max_position_embeddings",)),
    "linear": (("factor",), ("original_max_position_embeddings",)),
    "dynamic": (("factor",), ("original_max_position_embeddings",)),
    "yarn": (
        (),
        ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor", "mscale",
         "mscale_all_dim", "truncate"),
    ),
    "longrope": (
        ("short_factor", "long_factor"), ("factor", "original_max_position_embeddings", "attention_factor"),
    ),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"), ()),
    "proportional": ((), ("factor",)),
}  # fmt: skip
SAME_AS = {"mrope": "default", "su": "longrope"}  # multimodal positions with plain speeds; Phi-3's first name for it
BASES = ("rope_theta", "global_rope_theta", "rotary_emb_base")
LOCAL_BASES = ("rope_local_base_freq", "local_rope_theta", "swa_rope_theta")  # Gemma 3's, ModernBERT's, MiMo's
NAMES = {  # the others with "rope" or "rotary" in them that a configuration may have; a further one could change speeds
    "rope_parameters", "rope_scaling", "partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_dim",
    "qk_rope_head_dim", "rotary", "rope_interleave", "rope_interleaved", "no_rope_layers", "no_rope_layer_interval",
}  # fmt: skip
HEADS = {"full_attention": "global_head_dim", "sliding_attention": "swa_head_dim"}  # Gemma 4's and MiMo's other head
WHOLE = "AutoConfig.from_pretrained(...).text_config.to_dict() is complete, the file leaves out what its class knows"


def frequencies_from_config(
    config: Mapping[str, Any], *, seq_len: int | None = None, layer_type: str | None = None
) -> tuple[Tensor, float]:
    """Read the dictionary of a config.json: how fast do the pairs turn, and what are the tables multiplied by?

    Known are rope_theta, rope_scaling and rope_parameters, with rope_type (or type) default, linear, dynamic, yarn,
    longrope, llama3 or proportional; head_dim, qk_rope_head_dim, or hidden_size and num_attention_heads; rotary_dim,
    partial_rotary_factor; max_position_embeddings, original_max_position_embeddings; older names of these (rotary_pct,
    n_embd, su ...), and those of models whose layers differ (Gemma 3 and 4, ModernBERT). A missing base is 10000, as in
    Llama 2. Any other name with "rope" or "rotary" in it is an error, since the speeds could depend on it.

    The layout of the pairs is not in a configuration: it is in the code that the weights were trained with.

    Args:
        config: of the model, or of the part of a multimodal model that rotates.
        seq_len: the length in use: "dynamic" grows with it, "longrope" has one set of factors up to the trained length
            and one beyond. None means the trained length.
        layer_type: which entry of rope_parameters, for models whose layers differ, e.g. "full_attention".

    Returns:
        inv_freq, (rotary_dim // 2,) float64 on the CPU, and attention_factor: what `RotaryEmbedding` takes.

    Raises:
        TypeError: config is no mapping.
        ValueError: a size is missing; the rope_type, or a key beside it, is not known here or missing; layers differ
            and layer_type does not name one; or as the functions of `rope_lib.scaling`.

    Source: the names and defaults are those of Hugging Face's transformers; the tests compare with its results.

    Example:
        >>> llama = {"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0, "rope_scaling": None}
        >>> inv_freq, attention_factor = frequencies_from_config(llama)
        >>> len(inv_freq), attention_factor
        (64, 1.0)
    """
    if not isinstance(config, Mapping):
        raise TypeError(
            f"config is a {type(config).__name__}; it must be a dict, e.g. json.load(...) or config.to_dict()"
        )
    rope = {name: value for name, value in _rope_parameters(config, layer_type).items() if value is not None}
    config = _with_head_of(config, layer_type)
    found = rope.get("rope_type") or rope.get("type") or "default"
    kind = SAME_AS.get(found, found)
    if kind not in KEYS:
        raise ValueError(f"rope_type is {found!r}; known are {', '.join([*KEYS, *SAME_AS])}")
    required, optional = KEYS[kind]
    missing, unknown = set(required) - set(rope), set(rope) - EVERYWHERE - set(required) - set(optional)
    if missing or unknown:
        raise ValueError(
            f"rope_type is {found!r}; missing beside it: {sorted(missing) or 'nothing'}; not known here: "
            f"{sorted(unknown) or 'nothing'}"
        )
    base = _first(rope, "rope_theta") or _first(config, *BASES) or 10000.0
    rotary_dim = _rotary_dim(config, rope, whole=kind == "proportional")
    return _speeds(kind, rope, config, rotary_dim, {"base": base}, seq_len)


def _speeds(
    kind: str, rope: Mapping, config: Mapping, rotary_dim: int, base: dict[str, float], seq_len: int | None
) -> tuple[Tensor, float]:
    if kind == "default":
        return inverse_frequencies(rotary_dim, **base, device="cpu"), 1.0
    if kind == "linear":
        return scaling.linear_scaling(rotary_dim, factor=rope["factor"], **base), 1.0
    if kind == "proportional":
        speeds = scaling.proportional_scaling(rotary_dim, partial_rotary_factor=_partial(config, rope), **base)
        return speeds / rope.get("factor", 1.0), 1.0
    trained = _first(config, "max_position_embeddings", "n_positions")
    original = (
        _first(config, "original_max_position_embeddings") or rope.get("original_max_position_embeddings") or trained
    )
    if original is None or (trained is None and (kind == "dynamic" or rope.get("factor") is None)):
        raise ValueError(f"rope_type is {kind!r}, and config has no max_position_embeddings")
    if kind == "dynamic":
        lengths = {"seq_len": seq_len or trained, "max_position_embeddings": trained}
        return scaling.dynamic_ntk_scaling(rotary_dim, factor=rope["factor"], **lengths, **base), 1.0
    factor, length = rope.get("factor") or trained / original, {"original_max_position_embeddings": original}
    if kind == "llama3":
        ends = {name: rope[name] for name in ("low_freq_factor", "high_freq_factor")}
        return scaling.llama3_scaling(rotary_dim, factor=factor, **ends, **length, **base), 1.0
    given = rope.get("attention_factor")
    if kind == "longrope":
        factors = rope["long_factor" if (seq_len or original) > original else "short_factor"]
        speeds = scaling.longrope_scaling(rotary_dim, factors=factors, **base)
        return speeds, scaling.longrope_attention_factor(max(factor, 1), **length) if given is None else given
    ramp = {name: rope[name] for name in ("beta_fast", "beta_slow", "truncate") if rope.get(name) is not None}
    scales = {name: rope[name] for name in ("mscale", "mscale_all_dim") if rope.get(name)}
    scales = scales if len(scales) == 2 else {}  # one alone is not used
    speeds = scaling.yarn_scaling(rotary_dim, factor=factor, **ramp, **length, **base)
    return speeds, scaling.yarn_attention_factor(factor, **scales) if given is None else given


def _rope_parameters(config: Mapping, layer_type: str | None) -> Mapping:
    """The entries that speak of the rotation alone; for models whose layers differ, those of one type."""
    given = [config[name] for name in ("rope_parameters", "rope_scaling") if config.get(name)]
    if len(given) == 2 and given[0] != given[1]:
        raise ValueError("config has rope_parameters and rope_scaling, and they differ; take out the one not meant")
    rope = given[0] if given else {}
    if not rope and isinstance(config.get("text_config"), Mapping):
        raise ValueError(f"config is that of a multimodal model; hand over its text_config ({WHOLE})")
    if not any(isinstance(entry, Mapping) for entry in rope.values()):
        rope = _of_flat(config, rope)
    types = [name for name, entry in rope.items() if isinstance(entry, Mapping)]
    if types and layer_type not in types:
        raise ValueError(f"layer_type is {layer_type!r}, and layers of this model differ; it must be one of {types}")
    if not types and layer_type is not None:
        raise ValueError(f"layer_type is {layer_type!r}, but config has one rotation for all layers")
    return rope[layer_type] if types else rope


def _of_flat(config: Mapping, rope: Mapping) -> Mapping:
    """Before rope_parameters had an entry for each type of layer, a second base stood beside the first."""
    names = {name for name in config if ("rope" in name or "rotary" in name) and config[name] is not None}
    if strange := names - NAMES - {*BASES, *LOCAL_BASES}:
        raise ValueError(f"config has {', '.join(sorted(strange))}, not known here: the speeds could depend on it")
    if not rope.get("rope_theta") and _first(config, *BASES) is None and "_text" in (config.get("model_type") or ""):
        raise ValueError(f"config is a part of a multimodal model's, and has no rope_theta ({WHOLE})")
    local = _first(config, *LOCAL_BASES)
    return rope if local is None else {"full_attention": rope, "sliding_attention": {"rope_theta": local}}


def _with_head_of(config: Mapping, layer_type: str | None) -> Mapping:
    """The configuration with the head_dim of these layers, where heads differ."""
    head_dim = config.get(HEADS.get(layer_type))
    for number, entry in (config.get("per_layer_config") or {}).items():  # as transformers 5 writes it
        if layer_type is not None and config["layer_types"][int(number)] == layer_type:
            head_dim = entry.get("head_dim", head_dim)
    return config if head_dim is None else {**config, "head_dim": head_dim}


def _rotary_dim(config: Mapping, rope: Mapping, *, whole: bool) -> int:
    rotary_dim = _first(config, "rotary_dim", "qk_rope_head_dim")  # GPT-J's; DeepSeek's, a part with a head of its own
    if rotary_dim:
        return rotary_dim
    head_dim = _first(config, "head_dim", "attention_head_dim", "kv_channels")
    if head_dim is None:
        width, heads = _first(config, "hidden_size", "n_embd"), _first(config, "num_attention_heads", "n_head")
        if not width or not heads:
            raise ValueError("config has neither head_dim nor hidden_size and num_attention_heads: how long is a head?")
        head_dim = width // heads
    rotary_dim = head_dim if whole else int(head_dim * _partial(config, rope))
    check_dim(rotary_dim, "rotary_dim (head_dim times partial_rotary_factor)")
    return rotary_dim


def _partial(config: Mapping, rope: Mapping) -> float:
    names = ("partial_rotary_factor", "rotary_pct", "rope_pct")
    partial = _first(rope, *names) or _first(config, *names)
    return 1.0 if partial is None else partial


def _first(config: Mapping, *names: str) -> Any:
    """The first entry that is there and not null."""
    return next((config[name] for name in names if config.get(name) is not None), None)
