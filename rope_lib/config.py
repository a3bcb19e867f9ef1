"""Frequencies from the configuration that a published model comes with.

A file leaves out what the class of its model takes for granted. `_class_defaults` records what the classes of
transformers take, and `_layers` completes a file by it. Where that is not recorded, what is missing is an error. So is
a key that speaks of the rotation, by its words, and is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rope_lib import scaling
from rope_lib._checks import check_dim, check_flag, check_int, check_number
from rope_lib._class_defaults import DEFAULTS, SOURCE
from rope_lib.frequencies import inverse_frequencies

# -- The keys that are known -------------------------------------------------------------------------------------------

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
BESIDE_ANY = (  # what may stand beside any rope_type
    *("rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings", "finetuned"),
    *("mrope_section", "mrope_interleaved", "max_position_embeddings", "llama_4_scaling_beta"),
)
SAME_TYPE = {"mrope": "default", "su": "longrope"}  # multimodal positions with plain frequencies; Phi-3's first name
BLOCKS = ("rope_parameters", "rope_scaling")  # the second is the name before transformers 5
BASES = ("rope_theta", "global_rope_theta", "rotary_emb_base")
LOCAL_BASES = ("rope_local_base_freq", "local_rope_theta", "swa_rope_theta")  # Gemma 3's, ModernBERT's, MiMo's
PARTIAL_FACTORS = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction")
HEAD_DIMS = ("head_dim", "attention_head_dim", "kv_channels")
WIDTHS, HEADS = ("hidden_size", "n_embd"), ("num_attention_heads", "n_head")
HEAD_DIM_OF = {"full_attention": "global_head_dim", "sliding_attention": "swa_head_dim"}  # Gemma 4's and MiMo's
OTHERS = (  # keys that speak of the rotation and are checked below, or change no frequency
    *("rotary_dim", "qk_rope_head_dim", "qk_nope_head_dim", "rotary", "alibi", "use_mrope", "rotary_emb_interleaved"),
    *("rope_interleave", "rope_interleaved", "no_rope_layers", "no_rope_layer_interval"),
)
KNOWN = {*BLOCKS, *BASES, *LOCAL_BASES, *PARTIAL_FACTORS, *OTHERS}
WORDS = {"rope", "nope", "rotary", "rotate", "rotation", "theta", "partial", "alibi", "ntk", "yarn"}  # parts of a key
NAMES = {  # whole keys
    *("factor", "base", "freq_base", "freq_scale", "base_freq", "base_frequency"),
    *("d_head", "head_size", "attention_head_size", "pos_emb"),
}
ELSEWHERE = {  # names in the files of other programs: what the same thing is called here
    "rope_max_wavelength": "rope_theta",  # Keras
    "rope_frequency_adjustment_factor": "factor of a llama3 block",
    "rope_low_freq_factor": "its low_freq_factor",
    "rope_high_freq_factor": "its high_freq_factor",
    "rope_pretraining_sequence_length": "its original_max_position_embeddings",
    "rope_base": "rope_theta",  # LitGPT, torchtune
    "rotary_percentage": "partial_rotary_factor",
    "rope_condense_ratio": "factor of a linear block",
    "rope_adjustments": "rope_scaling, without its type",
    "head_size": "head_dim",
    "yarn": "rope_scaling of type yarn, its beta beta_fast and its alpha beta_slow",  # Mistral's params.json
    "rope_ratio": "a number by which 10000 is multiplied to give rope_theta",  # ChatGLM
    "partial_rotary_factors": "partial_rotary_factor, one for each layer",  # Step
}
PARTS = ("text_config", "llm_config", "language_config", "lm_config", "thinker_config", "talker_config")
ROTARY_NAMES = (None, "rope", "rotary", "default")  # of position_embedding_type; "absolute" stands beside them, too
ASK_THE_CLASS = "AutoConfig.from_pretrained(...).get_text_config().to_dict() says more than the file"


def frequencies_from_config(
    config: Mapping[str, Any], *, seq_len: int | None = None, layer_type: str | None = None
) -> tuple[Tensor, float]:
    """Read the dictionary of a config.json: how fast do the pairs turn, and what are the tables multiplied by?

    These keys are read, each also by the older names that published files have (rope_scaling, rotary_pct, n_embd, su):

    `rope_theta`
        The base.
    `rope_parameters`
        The rope_type (or type), which is default, linear, dynamic, yarn, longrope, llama3 or proportional, with the
        keys that belong to it; or one such entry for each type of layer.
    `head_dim`
        How many dimensions a head has: else it is hidden_size over num_attention_heads. Where a head of its own turns
        (DeepSeek), qk_rope_head_dim is read.
    `partial_rotary_factor`
        The share of a head that turns; or rotary_dim, as a number of dimensions.
    `max_position_embeddings`
        The length of the model.
    `original_max_position_embeddings`
        The length of its training, before it was stretched.

    What the file leaves out is what the class of its model_type takes, as recorded from transformers. Of a model_type
    that is not recorded the base, the head and the share must be given. Without a model_type they are 10000, the width
    over the heads, and 1.

    It is an error if entries contradict each other, if there is a key that may change the frequencies and is not known
    here, and if the model does not rotate. (Some files say so by a null in place of the base: OLMo Hybrid's.)

    What few files say is the layout of the pairs: it is in the code that the weights were trained with. (DeepSeek's
    `rope_interleave: true` means interleaved.) Which layers rotate is said by `no_rope_layers` in Llama 4 and SmolLM3
    (0 does not), and by the code alone in others: those of full_attention do not in Cohere 2 and EXAONE 4.
    `mrope_section` and `mrope_interleaved` are for `sectioned_cos_sin`. With `llama_4_scaling_beta` (Ministral 3) the
    rotated queries are also multiplied by a number that grows with the position.

    Args:
        config: of the model, or of the part of a multimodal model that rotates.
        seq_len: the length in use: "dynamic" grows with it, "longrope" has one set of factors up to the trained length
            and one beyond. None means the trained length.
        layer_type: which entry of rope_parameters, for models whose layers differ, e.g. "full_attention".

    Returns:
        inv_freq, (rotary_dim // 2,) float64 on the CPU, and attention_factor: what `RotaryEmbedding` takes.

    Raises:
        TypeError: config or its rope_scaling is no mapping; a size is no int, or another entry no number.
        ValueError: one of the errors above; layers differ and layer_type does not name one; or as the functions of
            `rope_lib.scaling`.

    Source: names, defaults and results are those of Hugging Face's transformers 5.23; the tests compare them.

    Example:
        >>> llama = {"head_dim": 128, "rope_theta": 500000.0}
        >>> inv_freq, attention_factor = frequencies_from_config(llama)
        >>> len(inv_freq), attention_factor
        (64, 1.0)
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config is a {type(config).__name__}; it must be a dict: json.load(...), or config.to_dict()")
    if seq_len is not None:
        seq_len = check_number(seq_len, "seq_len", above=0)
    if not isinstance(layer_type, str | None):
        raise TypeError(f"layer_type is {layer_type!r:.60}; it must be one string")
    _check_that_it_rotates(config)
    config = _given(config)
    _check_part(config)
    _check_keys(config)
    layers = _layers(config)
    if layer_type not in layers:
        why = " (its layers turn differently: layer_types lists the type of each)" if layer_type is None else ""
        known = " or ".join(map(repr, layers))
        raise ValueError(f"layer_type is {layer_type!r}; for this model it must be {known}{why}")
    rope = layers[layer_type]
    kind = _rope_type(rope)
    partial_factor = check_number(
        _agreed(rope, config, PARTIAL_FACTORS, layer_type, default=1.0), "partial_rotary_factor", at_least=0, at_most=1
    )
    rotary_dim = _rotary_dim(config, layer_type, 1.0 if kind == "proportional" else partial_factor)
    base = check_number(_agreed(rope, config, BASES, layer_type), "rope_theta", above=1)
    _check_sections(rope.get("mrope_section"), rotary_dim)
    return _scaled(kind, rotary_dim, base, partial_factor, rope | _lengths(kind, config, rope, seq_len, layer_type))


# -- What is refused ---------------------------------------------------------------------------------------------------


def _check_that_it_rotates(config: Mapping) -> None:
    """Refuse the files of models that do not rotate, which say so in several ways."""
    model_type, code = config.get("model_type"), config.get("position_embedding_type")
    given = _given(config)
    if model_type in DEFAULTS and DEFAULTS[model_type] is None:
        raise ValueError(
            f"model_type is {model_type!r}, and no layer of its class rotates ({SOURCE}): there are no frequencies"
        )
    block = _one_of(given, *BLOCKS)
    entries = [given, *(_entries(block).values() if isinstance(block, Mapping) else ())]
    has_base = any(name in entry for entry in entries for name in BASES)
    for name, otherwise in (("alibi", False), ("rotary", True)):
        flag = given.get(name, otherwise)
        check_flag(flag, name)
        if flag is not otherwise:
            raise ValueError(f"config has {name}: {str(flag).lower()}; it is of a model without rotation")
    if model_type == "granitemoehybrid" and code is None:
        raise ValueError("config has no position_embedding_type: of granitemoehybrid only those rotate that say 'rope'")
    if code not in ROTARY_NAMES and not (code == "absolute" and (has_base or BLOCKS[0] in given)):
        raise ValueError(f"config has position_embedding_type {code!r}; it is of a model without rotation")
    blocks = [config[name] for name in BLOCKS if isinstance(config.get(name), Mapping)]
    nulls = [name for entry in (config, *blocks) for name in BASES if name in entry and entry[name] is None]
    if nulls and not has_base:
        raise ValueError(
            f"{nulls[0]} is null: does the model rotate? In files of models without rotation it is null (OLMo Hybrid), "
            "and there are no frequencies. If this one rotates, replace null by the base that its documentation gives"
        )


def _check_part(config: dict) -> None:
    """Refuse the whole file of a multimodal model, unless it repeats what its part for text says."""
    block = _one_of(config, *BLOCKS)
    if not isinstance(block, Mapping | None):
        raise TypeError(f"rope_scaling is {block!r:.60}; it must be a dict, such as {{'rope_type': 'yarn', ...}}")
    for name in BLOCKS:
        if isinstance(_given(block or {}).get(name), Mapping):
            raise ValueError(f"rope_scaling holds {name}; take out one of the two dictionaries")
    names = {*BLOCKS, *BASES, *HEAD_DIMS, *WIDTHS, *HEADS, "max_position_embeddings"}
    for name in PARTS:
        part = config.get(name)
        if part and (
            not _given(block or {}) or any(part[key] != config.get(key, part[key]) for key in names & {*part})
        ):
            raise ValueError(f"config is that of a multimodal model; hand over its {name} ({ASK_THE_CLASS})")


def _check_keys(config: dict) -> None:
    """Refuse keys that may change the frequencies and are not known here, and say in the same error what is missing."""
    if any("patch_size" in str(key) for key in config):
        raise ValueError(
            "config has patch_size: positions in an image have rows and columns, and their frequencies go to "
            "axial_cos_sin (as in Qwen2-VL's vision part)"
        )
    strange = {str(key) for key in config if key not in KNOWN and _speaks_of_rotation(key)}
    if any(isinstance(entry, Mapping) for entry in (_one_of(config, *BLOCKS) or {}).values()):
        strange = {key for key in strange if not key.endswith("rope_theta")}  # each layer's entry has its base
    for name, part in config.items():  # the parts of a multimodal model are other models; MPT's attn_config is not
        if isinstance(part, Mapping) and name not in BLOCKS and (name == "attn_config" or not name.endswith("_config")):
            strange |= {str(name) for key in part if _speaks_of_rotation(key)}
    missing = _missing(config)
    if not (strange or missing):
        return
    if {"rope_type", "type"} & {*config}:
        key = "rope_type" if "rope_type" in config else "type"
        raise ValueError(f"config has {key}: is it rope_scaling alone? Hand over the whole config, config.to_dict()")
    problems, advice = [], []
    if strange:
        keys = ", ".join(sorted(strange))
        problems.append(f"config has {keys}: not known here, and the frequencies may depend on it")
        if translated := [f"{key} is {ELSEWHERE[key]}" for key in sorted(strange) if key in ELSEWHERE]:
            advice.append(f"In the words of transformers {', '.join(translated)}")
        advice.append("Remove a key only if nothing depends on it, or once its effect is in other keys")
    if missing:
        of_class = f", and what models of {_model(config)} take is not known here" if "model_type" in config else ""
        problems.append(f"config has no {', no '.join(missing)}{of_class}")
        advice.insert(0, "Add what is missing, as the model's own code has it")
    advice.append("If the model does not rotate, it has no frequencies")
    raise ValueError(f"{'; '.join(problems)}. {'. '.join(advice)}. ({ASK_THE_CLASS}.)")


def _missing(config: dict) -> list[str]:
    """What only the class of the model could add, where that is not recorded."""
    model_type, block = config.get("model_type"), _one_of(config, *BLOCKS) or {}
    entries = _entries(block)
    lacks_base = any(not {*BASES} & {*config, *entry} for entry in entries.values())
    if model_type is None:  # no file of transformers: a base stands in its rope_parameters, or in a params.json
        return ["rope_theta"] * (lacks_base and ("rope_parameters" in config or "n_heads" in config))
    if model_type in DEFAULTS:
        return []
    sizes = {*HEAD_DIMS, "qk_rope_head_dim"}
    partial_keys = {*PARTIAL_FACTORS, "rotary_dim", "qk_rope_head_dim"}
    lacks_partial_factor = any(not partial_keys & {*config, *entry} for entry in entries.values())
    lacks = {"rope_theta": lacks_base, "head_dim": not sizes & {*config}, "partial_rotary_factor": lacks_partial_factor}
    return [name for name, lacking in lacks.items() if lacking]


def _model(config: dict) -> str:
    return f"model_type {config['model_type']!r}" if "model_type" in config else "no model_type"


def _speaks_of_rotation(key: object) -> bool:
    """Whether a key, by its words, may change the frequencies: rope_ratio may, european and property may not."""
    return key in NAMES or not WORDS.isdisjoint(str(key).lower().split("_"))


def _check_sections(sections: Any, rotary_dim: int) -> None:
    if sections is None:
        return
    whole = isinstance(sections, list | tuple) and all(isinstance(section, int) for section in sections)
    if not whole or sum(sections) != rotary_dim // 2:
        raise ValueError(f"mrope_section is {sections!r:.60}; it must be a list that adds up to {rotary_dim // 2}")


# -- The entries of the rotation, completed ----------------------------------------------------------------------------


def _layers(config: dict) -> dict[str | None, dict[str, Any]]:
    """The entry of each type of layer, or one for all under None: what the file says, and then what its class adds."""
    block = {name: value for name, value in (_one_of(config, *BLOCKS) or {}).items() if value is not None}
    usual = dict(DEFAULTS.get(config.get("model_type"), {"rope_theta": 10000.0}) or {})
    base, local = _one_of(config, *BASES), _one_of(config, *LOCAL_BASES)
    if entries := {name: _given(entry) for name, entry in block.items() if isinstance(entry, Mapping)}:
        return _nested(config, block, entries, usual)
    if local is not None:  # before rope_parameters had an entry for each type of layer, a second base stood beside it
        sliding = usual.get("rope_parameters", {}).get("sliding_attention", {})
        whole = {"rope_theta": base} if base is not None else {}
        full = usual.get("rope_parameters", {}).get("full_attention", {}) | whole | block
        return {"full_attention": full, "sliding_attention": sliding | {"rope_theta": local}}
    if "rope_parameters" not in usual:  # all layers turn alike, and nothing is scaled
        if usual.get("base_of") == [] and config.get("rope_theta", usual["rope_theta"]) != usual["rope_theta"]:
            raise ValueError(
                f"rope_theta is {config['rope_theta']}, and the class of {_model(config)} does not read it: it takes "
                f"{usual['rope_theta']}. Which is meant? Put it in as rope_parameters: {{'rope_theta': ...}}"
            )
        entry = {name: usual[name] for name in ("rope_theta", "partial_rotary_factor") if name in usual}
        if base is not None or _one_of(block, *BASES) is not None:
            entry.pop("rope_theta", None)
        if _one_of(config | block, *PARTIAL_FACTORS) is not None or "rotary_dim" in config:
            entry.pop("partial_rotary_factor", None)
        return {None: entry | block}
    known = _entries(usual["rope_parameters"])
    wrong = [BASES[0]] * (base is not None and not usual["base_of"]) + [BLOCKS[1]] * (
        bool(block) and not usual["scaling_of"]
    )
    if wrong and not (base is not None and all(entry.get("rope_theta") == base for entry in known.values())):
        layers = "with an entry for each type of layer" if None not in known else "with a base and a scaling"
        raise ValueError(
            f"config has {wrong[0]}, and the class of {_model(config)} takes rope_parameters {layers}: which is meant? "
            f"Put them in as rope_parameters; the class's own are {usual['rope_parameters']}"
        )
    completed = {}
    for name, entry in known.items():
        scaled = bool(block) and name in usual["scaling_of"]
        kept = {key: entry[key] for key in ("rope_theta", "partial_rotary_factor") if key in entry} if scaled else entry
        own = {"rope_theta": base} if base is not None and name in usual["base_of"] else {}
        completed[name] = kept | own | (block if scaled else {})
    return completed


def _nested(config: dict, block: dict, entries: dict[str, dict], usual: dict) -> dict[str | None, dict[str, Any]]:
    """rope_parameters with an entry for each type of layer."""
    loose = [name for name in block if name not in entries and block[name] != "default" and name != "rope_theta"]
    shared = {name: block[name] for name in BASES if name in block}
    loose += [name for name in shared if any(name in entry for entry in entries.values())]
    if loose:
        raise ValueError(f"rope_parameters has {loose} beside its entries for layers; put it into each that it is for")
    recorded = _entries(usual.get("rope_parameters", {}))
    for name, entry in entries.items():
        has_partial_factor = {*PARTIAL_FACTORS, "rotary_dim"} & {*config, *entry}
        if not has_partial_factor and recorded.get(name, usual).get("partial_rotary_factor", 1.0) != 1.0:
            raise ValueError(f"the entry of {name} has no partial_rotary_factor: does the whole head turn?")
        if _one_of(config | shared | entry, *BASES) is None:
            raise ValueError(f"config has no rope_theta for {name}: do these layers rotate?")
    return {name: shared | entry for name, entry in entries.items()}


def _entries(block: Mapping) -> dict[str | None, dict]:
    """The entries for types of layers; where there are none, the block itself, which is for all."""
    nested = {name: _given(entry) for name, entry in block.items() if isinstance(entry, Mapping)}
    return nested or {None: _given(block)}


def _rope_type(rope: dict) -> str:
    """The kind of scaling, after a look at the keys beside it."""
    found = rope.get("rope_type", rope.get("type", "default"))
    named = {SAME_TYPE.get(rope[name], rope[name]) for name in ("rope_type", "type") if name in rope} - {"default"}
    if len(named) > 1:
        raise ValueError(f"rope_type is {rope['rope_type']!r} and type {rope['type']!r}; take out what is not meant")
    kind = SAME_TYPE.get(found, found)
    if kind not in KEYS:
        raise ValueError(f"rope_type is {found!r}; known are {', '.join([*KEYS, *SAME_TYPE])}")
    required, optional = KEYS[kind]
    subject = f"rope_type is {found!r}{'' if found in rope.values() else ', for none is given'}"
    if missing := set(required) - set(rope):
        raise ValueError(f"{subject}; missing beside it: {sorted(missing)}")
    if unknown := sorted(map(str, set(rope) - {*BESIDE_ANY, *required, *optional})):
        raise ValueError(
            f"{subject}; not known here: {unknown} (if neither frequencies nor factor depend on it, take it out)"
        )
    return kind


# -- Sizes -------------------------------------------------------------------------------------------------------------


def _rotary_dim(config: dict, layer_type: str | None, partial_factor: float) -> int:
    """How many dimensions of a head turn."""
    usual = DEFAULTS.get(config.get("model_type")) or {}
    own = config.get("qk_rope_head_dim", usual.get("qk_rope_head_dim"))
    if own is not None:  # DeepSeek's: a head of its own turns
        return check_dim(own, "qk_rope_head_dim")
    if "qk_nope_head_dim" in config:
        raise ValueError("config has qk_nope_head_dim, and no qk_rope_head_dim: how many dimensions turn?")
    head_dim = _head_dim(config, layer_type, usual)
    from_head = int(head_dim * partial_factor)
    rotary_dim = config.get("rotary_dim", usual.get("rotary_dim"))
    if "rotary_dim" in usual.get("ignores", ()) and rotary_dim not in (None, from_head):
        raise ValueError(
            f"rotary_dim is {rotary_dim}, and the class of {_model(config)} does not read it: it takes {from_head}. "
            "Which is meant? partial_rotary_factor, which it reads, says it"
        )
    if rotary_dim is None:
        return check_dim(from_head, "rotary_dim (head_dim times partial_rotary_factor)")
    contradicts = rotary_dim != from_head and (partial_factor != 1 or {*PARTIAL_FACTORS} & {*config})
    rotary_dim = check_dim(rotary_dim, "rotary_dim")
    if rotary_dim > head_dim or contradicts:
        raise ValueError(
            f"rotary_dim is {rotary_dim}, but head_dim {head_dim} and partial_rotary_factor {partial_factor}"
        )
    return rotary_dim


def _head_dim(config: dict, layer_type: str | None, usual: dict) -> int:
    """How many dimensions a head has; in some models that depends on the type of the layer."""
    own, types, of_type = config.get("per_layer_config", {}), config.get("layer_types"), HEAD_DIM_OF.get(layer_type)
    if own and layer_type and (not isinstance(types, list | tuple) or len(types) <= max(map(int, own))):
        raise ValueError("config has per_layer_config, and no list layer_types that says which layers it is for")
    for number, entry in own.items():  # as transformers 5 writes it
        if layer_type and entry.get("head_dim") and types[int(number)] == layer_type:
            return check_dim(entry["head_dim"], "head_dim")
    named = config.get(of_type, usual.get(of_type))
    head_dim = _one_of(config, *HEAD_DIMS) if named is None else named
    width, heads = _one_of(config, *WIDTHS), _one_of(config, *HEADS)
    stated = head_dim
    if head_dim is None or "head_dim" in usual.get("ignores", ()):
        head_dim = usual.get("head_dim")
    if head_dim is None:
        if stated is not None and None in (width, heads):
            return check_dim(stated, "head_dim")
        if None in (width, heads):
            raise ValueError(f"config has no head_dim, nor hidden_size and num_attention_heads; {ASK_THE_CLASS}")
        width = check_int(width, "hidden_size", at_least=1)
        heads = check_int(heads, "num_attention_heads", at_least=1)
        if heads % check_int(config.get("num_key_value_heads", 1), "num_key_value_heads", at_least=1):
            raise ValueError(
                f"num_attention_heads is {heads}, no multiple of num_key_value_heads, {config['num_key_value_heads']} "
                "(is this the config of one tensor-parallel rank?)"
            )
        head_dim = width / heads if width % heads else width // heads
        check_dim(head_dim, f"head_dim (hidden_size {width} over num_attention_heads {heads})")
    if stated not in (None, head_dim):
        takes = f"the class of {_model(config)} does not read it: it takes {head_dim}"
        raise ValueError(f"head_dim is {stated}, and {takes}")
    return check_dim(head_dim, "head_dim")


def _lengths(kind: str, config: dict, rope: dict, seq_len: int | None, layer_type: str | None) -> dict[str, Any]:
    """The length of the model, that of the training before it was stretched, and what follows from them."""
    longest = _agreed(rope, config, ("max_position_embeddings", "n_positions"), layer_type)
    usual = longest if kind in ("default", "dynamic") else None
    original = _agreed(rope, config, ("original_max_position_embeddings",), layer_type, default=usual)
    if kind == "proportional" or (kind == "default" and (longest is None or original == longest)):
        return {}
    for name, length in (("max_position_embeddings", longest), ("original_max_position_embeddings", original)):
        if length is not None:
            check_int(length, name, at_least=1)
    if longest is not None and "factor" in rope and check_number(rope["factor"], "factor", above=0) >= longest:
        raise ValueError(
            f"factor is {rope['factor']}, and max_position_embeddings {longest}; factor is a ratio of lengths, and "
            "must be smaller (did you give it as a length?)"
        )
    if kind == "linear":
        return {}
    if longest is None and (kind == "dynamic" or "factor" not in rope):
        raise ValueError(f"rope_type is {kind!r}, and config has no max_position_embeddings")
    if original is None:
        raise ValueError(
            f"rope_type is {kind!r}, and config has no original_max_position_embeddings, the trained length"
        )
    if longest is not None:
        stretches = kind == "yarn" and "factor" not in rope  # the factor is their ratio, and more than 1
        if original > longest - stretches or (usual is not None and original != longest):
            needed = "be the same" if usual is not None else f"be {'smaller' if stretches else 'no larger'}"
            raise ValueError(
                f"original_max_position_embeddings is {original} and max_position_embeddings {longest}, and rope_type "
                f"is {kind!r}; the first must {needed} (are they swapped, was a scaling "
                "taken out, or max_position_embeddings lowered to save memory? Compare the published file)"
            )
    return {
        "max_position_embeddings": longest,
        "original_max_position_embeddings": original,
        "factor": rope["factor"] if "factor" in rope else longest / original,
        "seq_len": seq_len or longest,
        "is_longer": (seq_len or original) > original,
    }


# -- The frequencies ---------------------------------------------------------------------------------------------------


def _scaled(
    kind: str, rotary_dim: int, base: float, partial_factor: float, rope: dict[str, Any]
) -> tuple[Tensor, float]:
    """The inverse frequencies and the attention factor of one rope_type, whose keys are there."""
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
            inv_freq = scaling.proportional_scaling(rotary_dim, partial_rotary_factor=partial_factor, base=base)
            return inv_freq / factor, 1.0
        case "yarn":
            ramp = {name: rope[name] for name in YARN if name in rope}
            scales = {name: rope[name] for name in MSCALES if all(map(rope.get, MSCALES))}  # one alone is not used
            usual = scaling.yarn_attention_factor(factor, **scales)
            inv_freq = scaling.yarn_scaling(rotary_dim, factor=factor, base=base, **trained, **ramp)
        case "longrope":
            factors = (rope["short_factor"], rope["long_factor"])  # both are checked, for any length
            both = [scaling.longrope_scaling(rotary_dim, factors=each, base=base) for each in factors]
            inv_freq = both[rope["is_longer"]]
            usual = scaling.longrope_attention_factor(max(factor, 1), **trained)
    return inv_freq, check_number(rope.get("attention_factor", usual), "attention_factor", above=0)


# -- Reading a dictionary ----------------------------------------------------------------------------------------------


def _agreed(rope: dict, config: dict, names: tuple[str, ...], layer_type: str | None, default: Any = None) -> Any:
    """What the entry of the rotation says, or else the file; where layers are alike, both must agree."""
    inner = _one_of(rope, *names)
    outer = _one_of(config, *names) if inner is None or layer_type is None else None
    if None not in (inner, outer) and inner != outer:
        raise ValueError(f"{names[0]} is {inner} and {outer}; take out the one not meant")
    return next((value for value in (inner, outer) if value is not None), default)


def _one_of(entries: Mapping, *names: str) -> Any:
    """The entry that goes by one of these names; by several, if they agree."""
    given = [name for name in names if entries.get(name) is not None]
    for name in given[1:]:
        if entries[name] != entries[given[0]]:
            both = f"{given[0]} {entries[given[0]]!r:.60} and {name} {entries[name]!r:.60}"
            raise ValueError(f"config has {both}, and they differ; take out the one not meant")
    return entries[given[0]] if given else None


def _given(entries: Mapping) -> dict[str, Any]:
    """The entries that say something: null and an empty dictionary are as good as missing."""
    for name in ("model_type", "rope_type", "type"):  # they are looked up, so each must be one string
        if not isinstance(entries.get(name), str | None):
            raise TypeError(f"{name} is {entries[name]!r:.60}; it must be one string")
    return {name: value for name, value in entries.items() if value is not None and value != {}}
