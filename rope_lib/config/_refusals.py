"""Which files are refused as a whole: those of models that do not rotate, of several models, or with unknown keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rope_lib._checks import check_flag, check_int, check_number
from rope_lib.config._classes import RECORDS, SOURCE, Record, model_of
from rope_lib.config._spelling import (
    BASES,
    BLOCKS,
    ELSEWHERE,
    HEAD_DIM_OF,
    HEAD_DIMS,
    HEADS,
    KNOWN,
    LAYERS,
    LAYOUTS,
    LOCAL_BASES,
    LONGEST,
    ORIGINAL,
    PARTS,
    SHARES,
    TURNS,
    WIDTHS,
    entries_of,
    given,
    one_of,
    speaks_of_rotation,
)

ROTARY_WORDS = {"rope", "rotary", "default"}  # in position_embedding_type; "absolute" stands beside them, too
ATTENTION = {"attention", "attn", "full", "sliding", "global", "local"}  # words in the kinds of layers that may turn
ASK_THE_CLASS = "AutoConfig.from_pretrained(...).get_text_config().to_dict() says more than the file"


def refuse_without_rotation(config: dict) -> None:
    """Refuse the files of models that do not rotate, which say so in several ways."""
    file = given(config)
    model_type, code = file.get("model_type"), file.get("position_embedding_type")
    if model_type in RECORDS and RECORDS[model_type] is None:
        raise ValueError(
            f"model_type is {model_type!r}, and no layer of its class rotates ({SOURCE}): there are no frequencies"
        )
    block = one_of(file, *BLOCKS)
    entries = [file, *(entries_of(block).values() if isinstance(block, Mapping) else ())]
    has_base = any(name in entry for entry in entries for name in BASES)
    flags = {name: True for name in map(str, file) if TURNS.fullmatch(name) and not isinstance(file[name], Mapping)}
    for name, otherwise in {"alibi": False, "mla_use_nope": False, **flags}.items():
        flag = file.get(name, otherwise)
        check_flag(flag, name)
        if flag is not otherwise:
            raise ValueError(f"config has {name}: {str(flag).lower()}; it is of a model without rotation")
    if file.get("qk_rope_head_dim") == 0:
        raise ValueError("config has qk_rope_head_dim: 0; it is of a model without rotation")
    if model_type == "granitemoehybrid" and code is None:
        raise ValueError(
            "config has no position_embedding_type: a granitemoehybrid model rotates only where that is 'rope'"
        )
    rotary = code is None or not ROTARY_WORDS.isdisjoint(re.split("[^a-z]", str(code).lower()))
    if not rotary and not (code == "absolute" and (has_base or BLOCKS[0] in file)):
        raise ValueError(f"config has position_embedding_type {code!r}; it is of a model without rotation")
    blocks = [config[name] for name in BLOCKS if isinstance(config.get(name), Mapping)]
    nulls = [name for entry in (config, *blocks) for name in BASES if name in entry and entry[name] is None]
    if nulls and not has_base:
        raise ValueError(
            f"{nulls[0]} is null: does the model rotate? In files of models without rotation it is null (OLMo Hybrid), "
            "and there are no frequencies. If this one rotates, replace null by the base that its documentation gives"
        )


def check_types(file: dict) -> None:
    """Refuse values of another kind than the key has: lengths and sizes are whole, bases and shares numbers."""
    sizes = (*HEAD_DIMS, *HEAD_DIM_OF, *WIDTHS, *HEADS, *LONGEST, *ORIGINAL, "rotary_dim", "num_key_value_heads")
    for key in (*sizes, "qk_rope_head_dim", "qk_nope_head_dim"):
        if key in file:
            check_int(file[key], key)
    for key in (*BASES, *LOCAL_BASES):
        if key in file:
            check_number(file[key], key, above=1)
    for key in SHARES:
        if key in file:
            check_number(file[key], key, at_least=0, at_most=1)
    for key in LAYOUTS:
        if key in file:
            check_flag(file[key], key)
    for key in LAYERS[:2]:
        _check_list(file.get(key, []), key)
    own = file.get("per_layer_config", {})
    if not isinstance(own, Mapping) or not all(isinstance(one, Mapping) for one in own.values()):
        raise TypeError(f"per_layer_config is {own!r:.60}; it must be a dict with a dict for each layer")
    for number in own:
        if not str(number).isdigit():
            raise ValueError(f"per_layer_config has {number!r:.60}; it must be the number of a layer")


def _check_list(values: Any, key: str) -> None:
    """A list of plain numbers; whatever is no list is left to others."""
    if isinstance(values, list | tuple):
        for value in values:
            if not isinstance(value, int | float):
                raise TypeError(f"{key} has {value!r:.60}; each must be a number")


def refuse_parts(file: dict) -> None:
    """Refuse the whole file of a multimodal model, unless it repeats what its part for text says."""
    block = one_of(file, *BLOCKS)
    if not isinstance(block, Mapping | None):
        name = next(name for name in BLOCKS if file.get(name) is not None)
        raise TypeError(f"{name} is {block!r:.60}; it must be a dict, such as {{'rope_type': 'yarn', ...}}")
    for name in BLOCKS:
        if isinstance(given(block or {}).get(name), Mapping):
            raise ValueError(
                f"rope_parameters or rope_scaling holds another {name}; take out one of the two dictionaries"
            )
    names = {*BLOCKS, *BASES, *HEAD_DIMS, *WIDTHS, *HEADS, LONGEST[0]}
    for name in PARTS:
        part = file.get(name)
        if not isinstance(part, Mapping) or not (name != "decoder" or any(map(speaks_of_rotation, part))):
            continue
        if part and (not given(block or {}) or any(part[key] != file.get(key, part[key]) for key in names & {*part})):
            raise ValueError(f"config is that of a multimodal model; hand over its {name} ({ASK_THE_CLASS})")


def refuse_keys(file: dict, block: dict, record: Record, missing: list[str]) -> None:
    """Refuse keys that may change the frequencies and are not known here, all in one error with what is missing."""
    if any("patch_size" in str(key) for key in file):
        raise ValueError(
            "config has patch_size: a position in an image has several coordinates. Equal shares of a head for each go "
            "to axial_cos_sin (as in Qwen2-VL's vision part), unequal ones to sectioned_cos_sin (as in FLUX)"
        )
    fields = record.get("fields", {})
    usual = [key for key, value in fields.get("other", {}).items() if file.get(key) == value]
    harmless = {*KNOWN, *usual}
    flags = [key for key, value in file.items() if value is True and TURNS.fullmatch(str(key))]
    strange = {str(key) for key in file if key not in {*harmless, *flags} and speaks_of_rotation(key)}
    if "" not in entries_of(block):
        strange = {key for key in strange if not key.endswith("rope_theta")}  # each layer's entry has its base
    for name, part in file.items():  # the parts of a multimodal model are other models; MPT's attn_config is not
        if isinstance(part, Mapping) and name not in BLOCKS and (name == "attn_config" or not name.endswith("_config")):
            strange |= {str(name) for key in part if speaks_of_rotation(key)}
    kinds = _kinds_of_layers(file) if "" in record["defaults"] and "model_type" in file else {}
    if not (strange or missing or (kinds and file["model_type"] not in RECORDS)):
        return
    if {"rope_type", "type"} & {*file}:
        key = "rope_type" if "rope_type" in file else "type"
        raise ValueError(f"config has {key}: is it rope_scaling alone? Hand over the whole config, config.to_dict()")
    problems, advice = [], []
    model = model_of(file)
    if strange:
        keys = sorted(strange)
        problems.append(f"config has {', '.join(keys)}: not known here, and the frequencies may depend on it")
        if translated := [f"{key} is {ELSEWHERE[key]}" for key in keys if key in ELSEWHERE]:
            advice.append(f"In the words of transformers {', '.join(translated)}")
        advice.append(
            f"Where the rotation does not depend on them, or once their effect is in other keys, ignore={tuple(keys)} "
            "sets them aside"
        )
    if kinds and file["model_type"] not in RECORDS:
        told = "; ".join(f"{key} has {', '.join(sorted(found))}" for key, found in kinds.items())
        problems.append(f"the layers differ ({told}), and whether all turn alike is not known of {model}")
        advice.append(f"If all layers turn alike, ignore={tuple(sorted({*strange, *kinds}))} says so")
    if missing:
        of_class = f", and what {model} takes by default is not known here" if "model_type" in file else ""
        of_class += " (partial_rotary_factor is 1.0 where the whole head turns)" * ("partial_rotary_factor" in missing)
        problems.append(f"config has no {', no '.join(missing)}{of_class}")
        advice.insert(0, "Add what is missing, as the model's own code has it")
    advice.append("If the model does not rotate, it has no frequencies")
    raise ValueError(f"{'; '.join(problems)}. {'. '.join(advice)}. ({ASK_THE_CLASS}.)")


def _kinds_of_layers(file: dict) -> dict[str, set[str]]:
    """Keys that list kinds of layers, with those kinds that are attention, where there are several."""
    lists = {key: value for key, value in file.items() if isinstance(value, list | tuple)}
    words = {
        key: {one for one in value if isinstance(one, str) and ATTENTION & {*one.split("_")}}
        for key, value in lists.items()
    }
    return {key: found for key, found in words.items() if len(found) > 1}
