"""Sizes and lengths of one kind of layer, and which layers turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rope_lib._checks import check_dim, check_int, check_number
from rope_lib.config._classes import RECORDS, SOURCE, Record, model_of
from rope_lib.config._refusals import ASK_THE_CLASS
from rope_lib.config._spelling import HEAD_DIM_OF, HEAD_DIMS, HEADS, LAYERS, SHARES, WIDTHS


def sizes_of(
    file: dict, record: Record, kind: str, share: float, beside: Callable[[Iterable[str]], Any]
) -> tuple[int, int]:
    """How many dimensions a head has, and how many of them turn."""
    own = beside(["qk_rope_head_dim"])
    if own is None and "qk_nope_head_dim" in file and "model_type" not in file:
        raise ValueError("config has qk_nope_head_dim, and no qk_rope_head_dim: how many dimensions turn?")
    own = record.get("qk_rope_head_dim") if own is None else own
    if own is not None:  # DeepSeek's: a head of its own turns
        own, head_dim = check_dim(own, "qk_rope_head_dim"), file.get("head_dim")
        if head_dim not in (None, own) and "qk_rope_head_dim" in record and kind in record["reads"].get("head_dim", ()):
            raise ValueError(
                f"head_dim is {head_dim} and qk_rope_head_dim {own}; the class of {model_of(file)} reads both, and "
                f"one head turns ({SOURCE}): which is meant?"
            )
        if "qk_rope_head_dim" in record:
            return own + file.get("qk_nope_head_dim", 0), check_dim(
                int(own * share), "qk_rope_head_dim times the share"
            )
        head_dim = _head_dim(file, record, kind, beside) if "head_dim" in record or {*HEAD_DIMS} & {*file} else own
        stated = {*SHARES} & {*file} and share != 1
        if (stated or file.get("model_type") in RECORDS) and int(head_dim * share) != own:
            raise ValueError(
                f"qk_rope_head_dim is {own}, but head_dim {head_dim} and partial_rotary_factor {share}; it must be "
                "their product"
            )
        return max(head_dim, own + file.get("qk_nope_head_dim", 0)), own
    head_dim = _head_dim(file, record, kind, beside)
    from_head, stated = int(head_dim * share), beside(["rotary_dim"])
    rotary_dim = record.get("rotary_dim", from_head) if stated is None else check_dim(stated, "rotary_dim")
    if rotary_dim <= 0 or rotary_dim % 2:
        raise ValueError(
            f"rotary_dim (head_dim times partial_rotary_factor) is {rotary_dim}, from {head_dim} and {share}; it "
            "must be positive and even, because dimensions are rotated in pairs"
        )
    contradicts = stated not in (None, from_head) and (share != 1 or {*SHARES} & {*file})
    if rotary_dim > head_dim or contradicts:
        needed = "their product" if contradicts else "no larger than head_dim"
        raise ValueError(
            f"rotary_dim is {rotary_dim}, but head_dim {head_dim} and partial_rotary_factor {share}; it must be "
            f"{needed}"
        )
    return head_dim, rotary_dim


def _head_dim(file: dict, record: Record, kind: str, beside: Callable[[Iterable[str]], Any]) -> int:
    """How many dimensions a head has; in some models that depends on the kind of layer."""
    own, types = file.get("per_layer_config", {}), file.get("layer_types")
    if own and kind and (not isinstance(types, list | tuple) or len(types) <= max(map(int, own))):
        raise ValueError("config has per_layer_config, and no list layer_types that says which layers it is for")
    for number, entry in own.items():  # as transformers 5 writes it
        if kind and entry.get("head_dim") and types[int(number)] == kind:
            return check_dim(entry["head_dim"], "head_dim")
    stated = beside([name for name, of_kind in HEAD_DIM_OF.items() if of_kind == kind])
    stated = beside(HEAD_DIMS) if stated is None else stated
    usual = record.get("head_dim")
    usual = usual[kind] if isinstance(usual, dict) else usual
    if stated is not None or usual is not None:
        return check_dim(usual if stated is None else stated, "head_dim")
    width, heads = beside(WIDTHS), beside(HEADS)
    if None in (width, heads):
        raise ValueError(f"config has no head_dim, nor hidden_size and num_attention_heads; {ASK_THE_CLASS}")
    width = check_int(width, "hidden_size", at_least=1)
    heads = check_int(heads, "num_attention_heads", at_least=1)
    if heads % check_int(file.get("num_key_value_heads", 1), "num_key_value_heads", at_least=1):
        raise ValueError(
            f"num_attention_heads is {heads}, no multiple of num_key_value_heads, {file['num_key_value_heads']} "
            "(is this the config of one tensor-parallel rank?)"
        )
    head_dim = width / heads if width % heads else width // heads
    return check_dim(head_dim, f"head_dim (hidden_size {width} over num_attention_heads {heads})")


def check_sections(sections: Any, rotary_dim: int) -> None:
    if sections is None:
        return
    whole = isinstance(sections, list | tuple) and all(isinstance(section, int) for section in sections)
    if not whole or sum(sections) != rotary_dim // 2:
        raise ValueError(f"mrope_section is {sections!r:.60}; it must be a list that adds up to {rotary_dim // 2}")


def check_lengths(kind: str, entry: dict, longest: int | None, trained: int | None) -> int | None:
    """The length of the training, before it was stretched, where the scaling asks for it."""
    usual = longest if kind in ("default", "dynamic") else None
    trained = usual if trained is None else trained
    if kind == "proportional" or (kind == "default" and (longest is None or trained == longest)):
        return None
    if kind == "default" and "llama_4_scaling_beta" in entry:  # the trained length belongs to that
        return None
    for name, length in (("max_position_embeddings", longest), ("original_max_position_embeddings", trained)):
        if length is not None:
            check_int(length, name, at_least=1)
    if longest is not None and "factor" in entry and check_number(entry["factor"], "factor", above=0) >= longest:
        raise ValueError(
            f"factor is {entry['factor']}, and max_position_embeddings {longest}; factor is a ratio of lengths, and "
            "must be smaller (did you give it as a length?)"
        )
    if kind == "linear":
        return None
    if longest is None and (kind == "dynamic" or "factor" not in entry):
        raise ValueError(f"rope_type is {kind!r}, and config has no max_position_embeddings")
    if trained is None:
        raise ValueError(
            f"rope_type is {kind!r}, and config has no original_max_position_embeddings, the trained length"
        )
    if longest is not None:
        stretches = kind == "yarn" and "factor" not in entry  # the factor is their ratio, and more than 1
        if trained > longest - stretches or (usual is not None and trained != longest):
            needed = "be the same" if usual is not None else f"be {'smaller' if stretches else 'no larger'}"
            raise ValueError(
                f"original_max_position_embeddings is {trained} and max_position_embeddings {longest}, and rope_type "
                f"is {kind!r}; the first must {needed} (are they swapped, was a scaling "
                "taken out, or max_position_embeddings lowered to save memory? Compare the published file)"
            )
    return trained


def layers_that_turn(file: dict, record: Record, base: float) -> str:
    """Which layers turn, in words: what the file says, or what was seen of its class."""
    says = record.get("says", LAYERS)
    bases, marks, every = (file.get(key) if key in says else None for key in LAYERS)
    if isinstance(bases, list | tuple) and bases and "" in record["defaults"]:
        if {*bases} - {0, base}:
            raise ValueError(f"layer_rope_theta has {sorted({*bases} - {0, base})}, and rope_theta is {base:.10g}")
        return f"{len(bases) - bases.count(0)} of {len(bases)}, those that are not 0 in layer_rope_theta"
    if isinstance(marks, list | tuple) and marks:
        return f"{sum(map(bool, marks))} of {len(marks)}, those that are not 0 in no_rope_layers"
    if isinstance(every, int) and every > 1:
        return f"all but every {_ordinal(every)}, by no_rope_layer_interval"
    if file.get("model_type") not in RECORDS:
        return f"not known: {model_of(file)} is not recorded" if "model_type" in file else "not said"
    seen = record.get("turn")
    if "sliding_window" in file and file["sliding_window"] is None:
        seen = record.get("turn without a window", seen)
    if not seen:
        return "not recorded"
    if "of eight" in seen:
        still = sorted({*range(8)} - {*seen["of eight"]})
        every = still[0] + 1
        if still == [*range(every - 1, 8, every)]:
            return f"all but every {_ordinal(every)}"
        return f"of eight layers those numbered {', '.join(map(str, seen['of eight']))}, counted from 0"
    turn = ", ".join(one for one, turns in seen["kinds"].items() if turns)
    still = ", ".join(one for one, turns in seen["kinds"].items() if not turns)
    return f"{turn}; not {still}" if still else "all"


def _ordinal(n: int) -> str:
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10 * (n // 10 % 10 != 1), 'th') }"
