"""Frequencies from the configuration that a published model comes with."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from torch import Tensor

from rope_lib import scaling
from rope_lib._checks import check_dim, check_flag, check_int, check_number
from rope_lib.frequencies import inverse_frequencies

YARN, MSCALES = ("beta_fast", "beta_slow", "truncate"), ("mscale", "mscale_all_dim")
LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
KEYS = {  # rope_type: the keys that must stand beside it, and those that may
    "default": ((), ()),
    "linear": (("factor",), ()),
    "dynamic": (("factor",), ()),
    "yarn": ((), ("factor", "attention_factor", *YARN, *MSCALES)),
    "longrope": (("short_factor", "long_factor"), ("factor", "attention_factor")),
    "llama3": (LLAMA3, ()),
    "proportional": ((), ("factor",)),
}
ANYWHERE = (
    *("rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings", "finetuned"),
    *("mrope_section", "mrope_interleaved", "max_position_embeddings", "llama_4_scaling_beta"),
)
SAME_AS = {"mrope": "default", "su": "longrope"}  # multimodal positions with plain speeds; Phi-3's first name for it
BASES = ("rope_theta", "global_rope_theta", "rotary_emb_base")
LOCAL_BASES = ("rope_local_base_freq", "local_rope_theta", "swa_rope_theta")  # Gemma 3's, ModernBERT's, MiMo's
SHARES = ("partial_rotary_factor", "rotary_pct", "rope_pct")
SIZES = ("head_dim", "hidden_size", "num_attention_heads", "max_position_embeddings")
OTHERS = (  # with "rope" or "rotary" in them, that a configuration may have; a further one could change speeds
    *("rope_parameters", "rope_scaling", "rotary_dim", "qk_rope_head_dim", "rotary", "rope_interleave"),
    *("rope_interleaved", "no_rope_layers", "no_rope_layer_interval", "qk_nope_head_dim", "alibi", "use_mrope"),
)
SHARE_OF_CLASS = {  # model_type: what its class in transformers takes for a partial_rotary_factor that the file lacks
    **dict.fromkeys(("gpt_neox", "stablelm", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), 0.25),
    **dict.fromkeys(("glm", "glm4", "glm4_moe", "glm4v_moe", "phi", "persimmon", "nemotron", "recurrent_gemma"), 0.5),
    **dict.fromkeys(("bamba", "dots3_note_audio_encoder", "glm4v_moe_text"), 0.5),
    **dict.fromkeys(("mimo_v2_flash", "minimax_m3_vl_text", "moonshine", "moonshine_streaming", "musicflamingo")),
    "neomme": None,  # what these six take is not known here
}
STRETCHED = {  # those whose class has a scaling of its own where the file says nothing
    "apertus", "cwm", "gpt_oss", "higgs_audio_v2", "ministral3", "mistral4", "mistral_large4_text",
    "openai_privacy_filter",
}  # fmt: skip
TWO_HEADS = ("gemma4_text", "gemma4_unified_text", "diffusion_gemma_text", "embedding_gemma2_text")
TWO_BASES = {  # those whose layers differ, also where the file names one base alone
    *TWO_HEADS, "deepseek_v4", "dots3_note_text", "gemma3_text", "gemma3n_text", "laguna", "lfm3", "mellum",
    "mimo_v2_flash", "modernbert", "modernbert-decoder", "t5gemma2_decoder", "t5gemma2_text",
}  # fmt: skip
PLAIN = {  # those whose class takes 10000 for a rope_theta, and width over heads for a head_dim, that the file lacks
    "", "arcee", "bamba", "codegen", "cohere2", "diffllama", "doge", "dots1", "exaone4", "exaone_moe", "falcon",
    "falcon_h1", "glm4_moe", "gpt_neox", "gptj", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared",
    "hunyuan_v1_dense", "hunyuan_v1_moe", "internlm2", "llama", "ministral", "mistral", "nanochat", "olmo", "olmo2",
    "olmo_hybrid", "olmoe", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3_moe", "stablelm", "starcoder2",
}  # fmt: skip
DIVIDES = {  # those that take width over heads, too, and perhaps another base
    "apertus", "bitnet", "chameleon", "cohere", "deepseek", "emu3_text_model", "ernie4_5_moe", "evolla", "flex_olmo",
    "glm4v_moe", "glm4v_moe_text", "glm4v_text", "glm_image_text", "glm_ocr_text", "gpt_neox_japanese",
    "granite_docling_text", "gte", "hunyuan_vl_text", "idefics", "jina_embeddings_v3", "lfm2", "lfm2_moe", "minimax",
    "mixtral", "mllama_text_model", "modernbert", "modernbert-decoder", "olmo3", "persimmon", "phi4_multimodal",
    "phimoe", "qwen2_5_omni_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl", "qwen2_vl_text",
    "qwen3_omni_moe_talker_text", "qwen3_omni_moe_text", "qwen3_vl_moe_text", "smollm3",
}  # fmt: skip
HEADS = {"full_attention": "global_head_dim", "sliding_attention": "swa_head_dim"}  # Gemma 4's and MiMo's other head
PARTS = ("text_config", "llm_config", "language_config", "lm_config", "thinker_config", "talker_config")
ROTATIONS = (None, "rope", "rotary", "default")  # "absolute" stands beside them, too
SAYS_MORE = "AutoConfig.from_pretrained(...).get_text_config().to_dict() says more than the file"
UNKNOWN = f"What the class of {{!r}} takes is not known here: add it to config ({SAYS_MORE})"


def frequencies_from_config(
    config: Mapping[str, Any], *, seq_len: int | None = None, layer_type: str | None = None
) -> tuple[Tensor, float]:
    """Read the dictionary of a config.json: how fast do the pairs turn, and what are the tables multiplied by?

    Known are rope_theta, rope_scaling and rope_parameters, with rope_type (or type) default, linear, dynamic, yarn,
    longrope, llama3 or proportional; head_dim, qk_rope_head_dim, or hidden_size and num_attention_heads; rotary_dim,
    partial_rotary_factor; max_position_embeddings, original_max_position_embeddings; older names of these (rotary_pct,
    n_embd, su ...), and those of models whose layers differ (Gemma 3 and 4, OLMo 3, ModernBERT). Any other name with
    "rope", "nope", "rotary" or "theta" in it is an error, since the speeds could depend on it. What is null is missing.
    A missing base is 10000, but not beside rope_parameters, and a missing head_dim hidden_size over
    num_attention_heads, unless model_type names a class that may take something else: an error, as is a missing scaling
    where the class has one (gpt-oss ...). A missing partial_rotary_factor is 1, or that of the class (GLM, Phi ...), a
    missing factor of yarn or longrope the ratio of max_position_embeddings to the original ones. Entries that
    contradict each other are errors, also an original length above the new one, but that of a layer_type wins.

    What few configurations say: the layout of the pairs, which is in the code that the weights were trained with
    (DeepSeek's `rope_interleave: true` means interleaved), and which layers do not rotate: `no_rope_layers` of Llama 4
    and SmolLM3 (0 does not), those of full_attention in Cohere 2 and EXAONE 4. What they say beside the speeds:
    `mrope_section` and `mrope_interleaved` go to `sectioned_cos_sin`, and with `llama_4_scaling_beta` (Ministral 3)
    rotated queries are multiplied by a number that grows with the position.

    Args:
        config: of the model, or of the part of a multimodal model that rotates.
        seq_len: the length in use: "dynamic" grows with it, "longrope" has one set of factors up to the trained length
            and one beyond. None means the trained length.
        layer_type: which entry of rope_parameters, for models whose layers differ, e.g. "full_attention".

    Returns:
        inv_freq, (rotary_dim // 2,) float64 on the CPU, and attention_factor: what `RotaryEmbedding` takes.

    Raises:
        TypeError: config or its rope_scaling is no mapping; a size is no int, or another entry no number.
        ValueError: a size or a base is missing; the rope_type, or a key beside it, is not known here or missing; layers
            differ and layer_type does not name one; the model does not rotate (alibi: true); or as the functions of
            `rope_lib.scaling`.

    Source: names and defaults are those of Hugging Face's transformers 5.23; the tests compare with its results.

    Example:
        >>> llama = {"head_dim": 128, "rope_theta": 500000.0}
        >>> inv_freq, attention_factor = frequencies_from_config(llama)
        >>> len(inv_freq), attention_factor
        (64, 1.0)
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; it must be a dict: json.load(...), or config.to_dict()")
    config = {name: value for name, value in _without_nulls(config).items() if value != {}}
    alibi, rotary, code = config.get("alibi", False), config.get("rotary", True), config.get("position_embedding_type")
    check_flag(alibi, "alibi")
    check_flag(rotary, "rotary")
    other = code not in ROTATIONS and (code != "absolute" or {*BASES, "rope_parameters"}.isdisjoint(config))
    if alibi or not rotary or other:
        said = f"alibi: {alibi}, rotary: {rotary}, position_embedding_type: {code!r}"
        raise ValueError(f"config is of a model without rotation ({said})")
    if seq_len is not None:
        check_number(seq_len, "seq_len", above=0)
    if not isinstance(layer_type, str | None):
        raise TypeError(f"layer_type is {layer_type!r:.60}; it must be one name")
    rope = _rope_parameters(config, layer_type)
    found = rope.get("rope_type", rope.get("type", "default"))
    if len({SAME_AS.get(rope[name], rope[name]) for name in ("rope_type", "type") if name in rope} - {"default"}) > 1:
        raise ValueError(f"rope_type is {rope['rope_type']!r} and type {rope['type']!r}; take out what is not meant")
    kind = SAME_AS.get(found, found)
    if kind not in KEYS:
        raise ValueError(f"rope_type is {found!r}; known are {', '.join([*KEYS, *SAME_AS])}")
    required, optional = KEYS[kind]
    said = f"rope_type is {found!r}{'' if found in rope.values() else ', for none is given'}"
    if missing := set(required) - set(rope):
        raise ValueError(f"{said}; missing beside it: {sorted(missing)}")
    if unknown := sorted(map(str, set(rope) - {*ANYWHERE, *required, *optional})):
        raise ValueError(f"{said}; not known here: {unknown} (if neither speeds nor factor depend on it, take it out)")
    share = _settled(rope, config, SHARES, layer_type, default=SHARE_OF_CLASS.get(config.get("model_type"), 1.0))
    if share is None:
        raise ValueError(f"config has no partial_rotary_factor. {UNKNOWN.format(config['model_type'])}")
    check_number(share, "partial_rotary_factor", at_least=0, at_most=1)
    rotary_dim = _rotary_dim(config, layer_type, 1.0 if kind == "proportional" else share)
    base = check_number(_settled(rope, config, BASES, layer_type, default=10000.0), "rope_theta", above=1)
    sections = rope.get("mrope_section", [rotary_dim // 2])
    whole = isinstance(sections, list | tuple) and all(isinstance(section, int) for section in sections)
    if not whole or sum(sections) != rotary_dim // 2:
        raise ValueError(f"mrope_section is {sections!r:.60}; it must be a list that adds up to {rotary_dim // 2}")
    return _scaled(kind, rotary_dim, base, share, rope | _lengths(kind, config, rope, seq_len, layer_type))


def _scaled(kind: str, rotary_dim: int, base: float, share: float, rope: dict[str, Any]) -> tuple[Tensor, float]:
    """The speeds and the attention factor of one rope_type, whose keys are there."""
    factor = check_number(rope.get("factor", 1.0), "factor", above=0)
    trained = {"original_max_position_embeddings": rope.get("original_max_position_embeddings")}
    match kind:
        case "default":
            return inverse_frequencies(rotary_dim, base=base, device="cpu"), 1.0
        case "linear":
            return scaling.linear_scaling(rotary_dim, factor=factor, base=base), 1.0
        case "dynamic":
            lengths = {"seq_len": rope["seq_len"], "max_position_embeddings": rope["max_position_embeddings"]}
            return scaling.dynamic_ntk_scaling(rotary_dim, factor=factor, base=base, **lengths), 1.0
        case "llama3":
            parts = {"beta_fast": rope["high_freq_factor"], "beta_slow": rope["low_freq_factor"]}
            return scaling.ntk_by_parts_scaling(rotary_dim, factor=factor, base=base, **parts, **trained), 1.0
        case "proportional":
            return scaling.proportional_scaling(rotary_dim, partial_rotary_factor=share, base=base) / factor, 1.0
        case "yarn":
            ramp = {name: rope[name] for name in YARN if name in rope}
            scales = {name: rope[name] for name in MSCALES if all(map(rope.get, MSCALES))}  # one alone is not used
            usual = scaling.yarn_attention_factor(factor, **scales)
            inv_freq = scaling.yarn_scaling(rotary_dim, factor=factor, base=base, **trained, **ramp)
        case "longrope":
            factors = (rope["short_factor"], rope["long_factor"])  # both are checked, for any length
            speeds = [scaling.longrope_scaling(rotary_dim, factors=each, base=base) for each in factors]
            inv_freq = speeds[rope["is_longer"]]
            usual = scaling.longrope_attention_factor(max(factor, 1), **trained)
    return inv_freq, check_number(rope.get("attention_factor", usual), "attention_factor", above=0)


def _lengths(kind: str, config: dict, rope: dict, seq_len: int | None, layer_type: str | None) -> dict[str, Any]:
    """The length of the model, that of the training before it was stretched, and what follows from them."""
    longest = _settled(rope, config, ("max_position_embeddings", "n_positions"), layer_type)
    usual = longest if kind in ("default", "dynamic") else None
    original = _settled(rope, config, ("original_max_position_embeddings",), layer_type, default=usual)
    if kind == "proportional" or (kind == "default" and (longest is None or original == longest)):
        return {}
    for name, length in (("max_position_embeddings", longest), ("original_max_position_embeddings", original)):
        if length is not None:
            check_int(length, name, at_least=1)
    if longest is not None and "factor" in rope:
        check_number(rope["factor"], f"factor, a ratio of lengths up to {longest},", above=0, at_most=longest - 1)
    if kind == "linear":
        return {}
    if longest is None and (kind == "dynamic" or "factor" not in rope):
        raise ValueError(f"rope_type is {kind!r}, and config has no max_position_embeddings")
    if original is None:
        raise ValueError(f"rope_type is {kind!r}, and the trained length, original_max_position_embeddings, is missing")
    if longest is not None:  # the new length, but that of the training for "dynamic"
        least, most = longest if usual else 1, longest - (kind == "yarn" and "factor" not in rope)
        both = f"rope_type is {kind!r}, max_position_embeddings {longest}, original_max_position_embeddings"
        check_number(original, f"{both} (swapped, cut, or a scaling taken out?)", at_least=least, at_most=most)
    return {
        "max_position_embeddings": longest,
        "original_max_position_embeddings": original,
        "factor": rope["factor"] if "factor" in rope else longest / original,
        "seq_len": seq_len or longest,
        "is_longer": (seq_len or original) > original,
    }


def _rope_parameters(config: dict, layer_type: str | None) -> dict[str, Any]:
    """The entries that speak of the rotation alone; for models whose layers differ, those of one type."""
    given = _only(config, "rope_parameters", "rope_scaling")
    if not isinstance(given, Mapping | None):
        raise TypeError(f"rope_scaling is {given!r:.60}; it must be a dict, such as {{'rope_type': 'yarn', ...}}")
    rope, kind = _without_nulls(given or {}), config.get("model_type", "")
    for name, part in ((name, config[name]) for name in PARTS if config.get(name)):
        names = {*BASES, *SIZES, "rope_parameters", "rope_scaling"}.intersection(part)
        if not rope or any(part[entry] != config.get(entry, part[entry]) for entry in names):
            raise ValueError(f"config is that of a multimodal model; hand over its {name} ({SAYS_MORE})")
    nested = {name: entry for name, entry in rope.items() if isinstance(entry, Mapping)}
    if not nested.keys().isdisjoint(("rope_parameters", "rope_scaling")):
        raise ValueError(f"rope_scaling holds {', '.join(nested)}; take out one of the two dictionaries")
    layers = nested or _flat(config, rope)
    entry = _without_nulls(layers.get(layer_type, next(iter(layers.values()))))
    no_base = {*BASES}.isdisjoint(config | entry) and (kind not in PLAIN or {"rope_parameters", "n_heads"} & {*config})
    stretched = kind in STRETCHED and not rope
    if stretched or no_base or (kind in TWO_BASES and None in layers):
        missing = "rope_scaling" if stretched else "rope_theta" if no_base else "rope_local_base_freq"
        raise ValueError(f"config has no {missing}: does the model rotate? {UNKNOWN.format(kind)}")
    if layer_type not in layers:
        raise ValueError(f"layer_type is {layer_type!r}; for this model it must be {' or '.join(map(repr, layers))}")
    loose = [name for name in rope if name not in (*nested, *entry) and rope[name] != "default"]
    if nested and loose:
        raise ValueError(f"rope_parameters has {loose} beside its entries for layers; put it into each that it is for")
    return entry


def _flat(config: dict, rope: Mapping) -> dict[str | None, Mapping]:
    """Before rope_parameters had an entry for each type of layer, a second base stood beside the first."""
    known = {*OTHERS, *SHARES, *BASES, *LOCAL_BASES, *SIZES}
    strange = {key for key in config if _speaks_of_it(key) or get_close_matches(str(key), known, cutoff=0.93)} - known
    for name, part in config.items():  # other parts have a _config of their own, but MPT's attn_config is of this one
        if isinstance(part, Mapping) and name not in known and (name == "attn_config" or not name.endswith("_config")):
            strange |= {name for inner in part if _speaks_of_it(inner)}
    if any("patch_size" in str(name) for name in config):
        raise ValueError("config has patch_size: places in an image have rows and columns (Qwen2-VL's: axial_cos_sin)")
    if strange:
        names = ", ".join(sorted(map(str, strange)))
        raise ValueError(f"config has {names}, not known here: the speeds could depend on it (rope_scaling alone?)")
    local = _only(config, *LOCAL_BASES, *(BASES if config.get("model_type") == "olmo3" and rope else ()))
    return {None: rope} if local is None else {"full_attention": rope, "sliding_attention": {"rope_theta": local}}


def _rotary_dim(config: dict, layer_type: str | None, share: float) -> int:
    if "qk_rope_head_dim" in config:  # DeepSeek's, with a head of its own
        return check_dim(config["qk_rope_head_dim"], "qk_rope_head_dim")
    if "qk_nope_head_dim" in config:
        raise ValueError("config has qk_nope_head_dim, and no qk_rope_head_dim: how many dimensions turn?")
    head_dim = _head_dim(config, layer_type)
    by_share = int(head_dim * share)
    rotary_dim = config.get("rotary_dim", 64 if config.get("model_type") in ("gptj", "codegen") else None)
    if rotary_dim is None:
        return check_dim(by_share, "rotary_dim (head_dim times partial_rotary_factor)")
    wrong = rotary_dim != by_share and (share != 1 or {*SHARES} & {*config})
    if check_dim(rotary_dim, "rotary_dim") > head_dim or wrong:
        raise ValueError(f"rotary_dim is {rotary_dim}, but head_dim {head_dim} and partial_rotary_factor {share}")
    return rotary_dim


def _head_dim(config: dict, layer_type: str | None) -> int:
    """How long a head is; in some models that depends on the type of the layer."""
    own, types, other = config.get("per_layer_config", {}), config.get("layer_types"), HEADS.get(layer_type)
    if own and layer_type and (not isinstance(types, list | tuple) or len(types) <= max(map(int, own))):
        raise ValueError("config has per_layer_config, and no list layer_types that says which layers it is for")
    for number, entry in own.items():  # as transformers 5 writes it
        if layer_type and entry.get("head_dim") and types[int(number)] == layer_type:
            return entry["head_dim"]
    if other == "global_head_dim" and other not in config and config.get("model_type") in TWO_HEADS:
        raise ValueError(f"config has no {other}. {UNKNOWN.format(config['model_type'])}")
    head_dim = config.get(other, _only(config, "head_dim", "attention_head_dim", "kv_channels"))
    width, heads = _only(config, "hidden_size", "n_embd"), _only(config, "num_attention_heads", "n_head")
    if head_dim is None:
        if None in (width, heads):
            raise ValueError(f"config has no head_dim, nor hidden_size and num_attention_heads; {SAYS_MORE}")
        check_int(width, "hidden_size", at_least=1)
        check_int(heads, "num_attention_heads", at_least=1)
        if heads % check_int(config.get("num_key_value_heads", 1), "num_key_value_heads", at_least=1):
            raise ValueError(f"num_attention_heads is {heads}, no multiple of num_key_value_heads (is it of one rank?)")
        if config.get("model_type", "") not in PLAIN | DIVIDES:
            raise ValueError(f"config has no head_dim: is it {width}/{heads}? {UNKNOWN.format(config['model_type'])}")
        head_dim = width / heads if width % heads else width // heads
        check_dim(head_dim, f"head_dim (hidden_size {width} over num_attention_heads {heads})")
    return check_dim(head_dim, "head_dim")


def _speaks_of_it(name: object) -> bool:
    return name in ("factor", "base", "d_head", "head_size", "attention_head_size") or any(
        word in str(name).lower() for word in ("rope", "nope", "rota", "pos_emb", "partial", "theta", "alibi", "ntk")
    )


def _settled(rope: dict, config: dict, names: tuple[str, ...], layer_type: str | None, default: Any = None) -> Any:
    """What the rotation's own entries say, or else the others; where layers are alike, both must agree."""
    inner = _only(rope, *names)
    outer = _only(config, *names) if inner is None or layer_type is None else None
    if None not in (inner, outer) and inner != outer:
        raise ValueError(f"{names[0]} is {inner} and {outer}; take out the one not meant")
    return next((value for value in (inner, outer) if value is not None), default)


def _only(entries: Mapping, *names: str) -> Any:
    """The entry that goes by one of these names; by several, if they agree."""
    given = [name for name in names if name in entries]
    for name in given[1:]:
        if entries[name] != entries[given[0]]:
            both = f"{given[0]} {entries[given[0]]!r:.60} and {name} {entries[name]!r:.60}"
            raise ValueError(f"config has {both}, and they differ; take out the one not meant")
    return entries[given[0]] if given else None


def _without_nulls(entries: Mapping) -> dict[str, Any]:
    """The entries that are given; those that choose among names are looked up later, so each must be one."""
    for name in ("model_type", "rope_type", "type"):
        if not isinstance(entries.get(name), str | None):
            raise TypeError(f"{name} is {entries[name]!r:.60}; it must be one name")
    return {name: value for name, value in entries.items() if value is not None}
