"""The names that keys have in published files, and which words of a key speak of the rotation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

BLOCKS = ("rope_parameters", "rope_scaling")  # the second is the name before transformers 5
BASES = ("rope_theta", "global_rope_theta", "rotary_emb_base")
LOCAL_BASES = {  # a second base, and the kind of layers that it is for
    **dict.fromkeys(("rope_local_base_freq", "local_rope_theta", "swa_rope_theta"), "sliding_attention"),
    "compress_rope_theta": "compress",  # DeepSeek-V4's
}
SHARES = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction")
HEAD_DIMS = ("head_dim", "attention_head_dim", "kv_channels")
HEAD_DIM_OF = {"global_head_dim": "full_attention", "swa_head_dim": "sliding_attention"}  # Gemma 4's and MiMo's
WIDTHS, HEADS = ("hidden_size", "n_embd"), ("num_attention_heads", "n_head")
LONGEST, ORIGINAL = ("max_position_embeddings", "n_positions"), ("original_max_position_embeddings",)
READ = (*BASES, *LOCAL_BASES, *SHARES, "rotary_dim", *HEAD_DIMS, *HEAD_DIM_OF, "qk_rope_head_dim", *ORIGINAL)
LAYERS = ("layer_rope_theta", "no_rope_layers", "no_rope_layer_interval")  # which layers turn
LAYOUTS = (
    "rope_interleave",
    "rope_interleaved",
    "rotary_emb_interleaved",
    "rotary_interleaved",
)  # true: pairs 2i, 2i + 1
DOES_IT = ("rotary", "alibi", "position_embedding_type", "mla_use_nope")  # whether the model rotates at all
KNOWN = {*BLOCKS, *READ, *LAYERS, *LAYOUTS, *DOES_IT, "qk_nope_head_dim", "use_mrope"}

YARN, MSCALES = ("beta_fast", "beta_slow", "truncate"), ("mscale", "mscale_all_dim")
LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", *ORIGINAL)
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

WORDS = {  # parts of a key that speak of the rotation: rope_ratio does, european and property do not
    *("rope", "nope", "rotary", "rotate", "rotation", "theta", "partial", "alibi", "ntk", "yarn", "mrope"),
    *("freqs", "wavelength"),
}
WITHOUT_EFFECT = {  # parts of a key that change its matter: how pairs lie in memory, and which program turns them
    *("interleave", "interleaved", "fusion", "fused", "kernel", "impl", "implementation", "backend"),
    *("indexer", "index", "vision"),  # of another part of the model, which has speeds of its own
}
NAMES = {  # whole keys
    *("factor", "base", "freq_base", "freq_scale", "freq_allocation", "base_freq", "base_frequency"),
    *("d_head", "head_size", "attention_head_size", "pos_emb"),
}
ELSEWHERE = {  # names in the files of other programs: what the same thing is called here
    "rope_max_wavelength": "rope_theta",  # Keras
    "rope_frequency_adjustment_factor": "factor of a llama3 block",
    "rope_low_freq_factor": "low_freq_factor of a llama3 block",
    "rope_high_freq_factor": "high_freq_factor of a llama3 block",
    "rope_pretraining_sequence_length": "original_max_position_embeddings of a llama3 block",
    "rope_base": "rope_theta",  # LitGPT, torchtune
    "rotary_percentage": "partial_rotary_factor",
    "rope_condense_ratio": "factor of a linear block",
    "rope_adjustments": "rope_scaling, without its type",
    "head_size": "head_dim",
    "yarn": "rope_scaling of type yarn, with beta as beta_fast and alpha as beta_slow",  # Mistral's params.json
    "rope_ratio": "a number by which 10000 is multiplied to give rope_theta",  # ChatGLM
    "partial_rotary_factors": "partial_rotary_factor, one for each layer",  # Step
    "axes_dims_rope": "rotary dimensions of each coordinate of a place: sectioned_cos_sin takes half of each",  # FLUX
}
PARTS = ("text_config", "llm_config", "language_config", "lm_config", "thinker_config", "talker_config", "decoder")
TURNS = re.compile("(use_|with_|enable_)?(rope|rotary)(_pos_emb|_emb|_embeddings?|_position_embeddings?)?")  # flags


def speaks_of_rotation(key: object) -> bool:
    """Whether a key, by its words, may change how fast pairs turn."""
    words = {*str(key).lower().split("_")}
    return key in NAMES or (not WORDS.isdisjoint(words) and WITHOUT_EFFECT.isdisjoint(words))


def one_of(entries: Mapping, *names: str) -> Any:
    """The entry that goes by one of these names; by several, if they agree."""
    found = [name for name in names if entries.get(name) is not None]
    for name in found[1:]:
        if entries[name] != entries[found[0]]:
            both = f"{found[0]} {entries[found[0]]!r:.60} and {name} {entries[name]!r:.60}"
            raise ValueError(f"config has {both}, and they differ; take out the one not meant")
    return entries[found[0]] if found else None


def given(entries: Mapping) -> dict[str, Any]:
    """The entries that say something: null and an empty dictionary are as good as missing."""
    for name in ("model_type", "rope_type", "type"):  # they are looked up, so each must be one string
        if not isinstance(entries.get(name), str | None):
            raise TypeError(f"{name} is {entries[name]!r:.60}; it must be one string")
    return {name: value for name, value in entries.items() if value is not None and value != {}}


def entries_of(block: Mapping) -> dict[str, dict]:
    """The entries of a block by kind of layer; under "" the block itself, where it is for all."""
    nested = {name: given(entry) for name, entry in block.items() if isinstance(entry, Mapping)}
    return nested or {"": given(block)}
