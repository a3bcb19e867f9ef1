"""From the dictionary of a config.json to a `RotaryConfig` for each kind of layer.

A file leaves out what its class takes for granted, and may say what its class does not read. So a key counts for those
kinds of layers for which the record of the class says that it is read. What the file says beside that must agree with
what came out; else it is an error, since one of the two is not meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rope_lib._checks import check_dim, check_int, check_number
from rope_lib.config._classes import RECORDS, SOURCE, Record, meaning, missing_from, record_of
from rope_lib.config._refusals import ASK_THE_CLASS, refuse_keys, refuse_parts, refuse_without_rotation
from rope_lib.config._spelling import (
    BASES,
    BESIDE_ANY,
    BLOCKS,
    HEAD_DIM_OF,
    HEAD_DIMS,
    HEADS,
    KEYS,
    LAYOUTS,
    LOCAL_BASES,
    LONGEST,
    ORIGINAL,
    READ,
    SAME_TYPE,
    SHARES,
    WIDTHS,
    entries_of,
    given,
    one_of,
    speaks_of_rotation,
)
from rope_lib.config.rotation import RotaryConfig

IN_BLOCK = tuple(f"{key} in the block" for key in ("rope_theta", "type", "alpha", *ORIGINAL))
SHARE_IN_BLOCK = tuple(f"{SHARES[0]} in {a}{b}" for a in ("the ", "a scaled ") for b in ("block", "entry"))
TAKES = {
    "rope_type": "rope_type {}",
    "base": "the base {:.10g}",
    "head_dim": "heads of {}",
    "rotary_dim": "{} dimensions",
    "trained": "{} as trained",
}


def rotations_of(config: Mapping[str, Any], ignore: Iterable[str] = ()) -> dict[str, RotaryConfig]:
    """What a file says of each kind of layer; under "" where all are alike. Errors as `rotation_from_config`."""
    file = _without(config, ignore)
    refuse_without_rotation(file)
    no_window = {"sliding_window": None} if file.get("sliding_window", 0) is None else {}  # a null that says something
    file = given(file) | no_window
    refuse_parts(file)
    block = {name: value for name, value in (one_of(file, *BLOCKS) or {}).items() if value is not None}
    record = record_of(file, block)
    file = _spelled(file, record)
    refuse_keys(file, block, record, missing_from(file, block))
    entries = _entries(file, block, record)
    nested = "" not in entries_of(block)
    found = {kind: _rotation(file, record, kind, *entries[kind], nested) for kind in entries}
    _refuse_what_is_not_read(file, record, entries, nested, found)
    return found


def _spelled(file: dict, record: Record) -> dict:
    """The file in the usual names, where its class has others for its sizes: DBRX's d_model is hidden_size."""
    names = {own: key for own, key in record.get("names", {}).items() if own in file and key not in file}
    return file | {key: file[own] for own, key in names.items()}


def _without(config: Mapping[str, Any], ignore: Iterable[str]) -> dict[str, Any]:
    """The file without the keys that the caller sets aside, wherever they stand."""
    if isinstance(ignore, str):
        raise TypeError(f"ignore is {ignore!r:.60}; it must be a tuple of keys, such as ({ignore!r:.60},)")
    names = {*ignore}

    found = set()

    def kept(entries: Mapping, inside: bool = False) -> dict:
        found.update(names & {*entries})
        return {
            key: kept(value, True) if isinstance(value, Mapping) and (inside or key in BLOCKS) else value
            for key, value in entries.items() if key not in names
        }  # fmt: skip

    file = kept(config)
    if absent := sorted(map(str, names - found)):
        raise ValueError(f"ignore has {', '.join(absent)}; the config has no such key")
    return file


# -- The entry of each kind of layer -----------------------------------------------------------------------------------


def _entries(file: dict, block: dict, record: Record) -> dict[str, tuple[dict, dict]]:
    """For each kind of layer what its class takes for granted, and what the file says in a block for it."""
    nested = entries_of(block)
    if "" not in nested:
        return _nested(file, block, nested, record)
    if not block:
        return {kind: (entry, {}) for kind, entry in record["defaults"].items()}
    name = next(name for name in BLOCKS if file.get(name))
    reached, own = record["blocks"][name], record["defaults"].get("", record["defaults"])
    if reached == "fails":
        raise ValueError(
            f"config has {name} for all layers, and the class of {_model(file)} fails on it ({SOURCE}): which is "
            f"meant? Without it the class has {own}"
        )
    usual = {kind: entry.get("rope_theta") for kind, entry in record["defaults"].items()}
    moved = [kind for kind in reached if reached[kind].get("rope_theta") != usual[kind]]
    if moved and len(usual) > 1 and "rope_theta" in file:
        raise ValueError(
            f"config has rope_theta, and {name} for all layers; the class of {_model(file)} then takes the base of "
            f"{moved[0]} from elsewhere ({SOURCE}): which is meant? rope_parameters can say it of each kind"
        )
    found = {kind: (reached[kind], block) if kind in reached else (own, {}) for kind, own in record["defaults"].items()}
    if not reached and any(entry | block != entry for entry, _ in found.values()):
        raise ValueError(
            f"config has {name}, and the class of {_model(file)} does not read it ({SOURCE}): which is meant? "
            f"The class has {own}. ignore=({name!r},) follows it"
        )
    if refused := record.get("types", {}).get(_rope_type(block)):
        verb = "does not read it" if refused == "ignored" else "fails on it"
        raise ValueError(
            f"rope_type is {_rope_type(block)!r}, and the class of {_model(file)} {verb} ({SOURCE}): which is meant? "
            "Without model_type the file alone counts"
        )
    if _rope_type(block) == "default":
        for kind, entry in record["blocks"].get("default", {}).items():
            found[kind] = (found[kind][0] | entry, found[kind][1])
    for kind, factor in record.get("attention_factor", {}).items():
        if _rope_type(found[kind][1]) == "yarn":
            found[kind] = (found[kind][0] | {"attention_factor": factor}, found[kind][1])
    return found


def _nested(file: dict, block: dict, nested: dict[str, dict], record: Record) -> dict[str, tuple[dict, dict]]:
    """A block with an entry for each kind of layer."""
    loose = [name for name in block if name not in nested and block[name] != "default" and name != "rope_theta"]
    shared = {name: block[name] for name in BASES if name in block}
    loose += [name for name in shared if any(name in entry for entry in nested.values())]
    if loose:
        raise ValueError(f"rope_parameters has {loose} beside its entries for layers; put it into each that it is for")
    usual = record["defaults"]
    if strange := sorted({*nested} - {*usual}):
        has = f"{', '.join(sorted(usual))}" if "" not in usual else "one entry for all its layers"
        raise ValueError(
            f"rope_parameters has entries for {', '.join(strange)}; the class of {_model(file)} has {has} ({SOURCE})"
        )
    for kind, entry in nested.items():
        read = [key for key in (*SHARES, "rotary_dim") if key in file and kind in record["reads"].get(key, ())]
        if not (read or {*SHARES} & {*entry}) and usual[kind].get("partial_rotary_factor", 1.0) != 1.0:
            raise ValueError(f"the entry of {kind} has no partial_rotary_factor: does the whole head turn?")
        if not {*BASES, *LOCAL_BASES} & {*file, *shared, *entry}:
            raise ValueError(f"config has no rope_theta for {kind}: do these layers rotate?")
        factor = record.get("attention_factor", {}).get(kind)
        if factor is not None and _rope_type(entry) == "yarn" and "attention_factor" not in entry:
            raise ValueError(
                f"the entry of {kind} has no attention_factor. From one block for all layers the class of "
                f"{_model(file)} takes {factor}, and from such entries YaRN's own ({SOURCE}): which is meant?"
            )
    kept = {kind: {key: usual[kind][key] for key in SHARES if key in usual[kind]} for kind in nested}
    return {kind: (kept[kind], shared | entry) for kind, entry in nested.items()}


def _model(file: dict) -> str:
    return f"model_type {file['model_type']!r}" if "model_type" in file else "no model_type"


def _rope_type(entry: Mapping) -> str:
    found = entry.get("rope_type") or entry.get("type") or "default"
    return SAME_TYPE.get(found, found)


def _checked_type(entry: dict) -> str:
    """The kind of scaling, after a look at the keys beside it."""
    found = entry.get("rope_type", entry.get("type", "default"))
    named = {SAME_TYPE.get(entry[name], entry[name]) for name in ("rope_type", "type") if name in entry} - {"default"}
    if len(named) > 1:
        raise ValueError(f"rope_type is {entry['rope_type']!r} and type {entry['type']!r}; take out what is not meant")
    kind = SAME_TYPE.get(found, found)
    if kind not in KEYS:
        raise ValueError(f"rope_type is {found!r}; known are {', '.join([*KEYS, *SAME_TYPE])}")
    required, optional = KEYS[kind]
    subject = f"rope_type is {found!r}{'' if found in entry.values() else ', for none is given'}"
    if missing := set(required) - set(entry):
        raise ValueError(f"{subject}; missing beside it: {sorted(missing)}")
    if unknown := sorted(map(str, set(entry) - {*BESIDE_ANY, *required, *optional})):
        told = ". (Hunyuan's alpha multiplies the base by alpha^(d/(d-2)), d = rotary_dim)" * ("alpha" in unknown)
        keys = ", ".join(map(repr, unknown))
        raise ValueError(
            f"{subject}; not known here: {unknown}{told}. If neither frequencies nor factor depend on them: "
            f"ignore=({keys}{',' * (len(unknown) == 1)})"
        )
    return kind


# -- One kind of layer -------------------------------------------------------------------------------------------------


def _rotation(
    file: dict, record: Record, kind: str, usual: dict, own: dict, nested: bool, also: str | None = None
) -> RotaryConfig:
    """The record of one kind of layer: the file's own words come before what is usual in its class.

    Of the keys that a class may ignore those count which it reads, at this place and for this kind; and `also`.
    """
    read: list[str] = []

    def counts(key: str) -> bool:
        return key == also or key not in {*READ, *IN_BLOCK, *SHARE_IN_BLOCK} or kind in record["reads"].get(key, ())

    def beside(names: Iterable[str]) -> Any:
        """What stands beside the block by one of these names."""
        known = [name for name in names if name in file and counts(name)]
        read.extend(known)
        return one_of({name: file[name] for name in known}, *known)

    def agreed(names: tuple[str, ...], inside: bool, default: Any = None) -> Any:
        """What the block says, if that counts, or else what stands beside it; where layers are alike, both agree."""
        inner = one_of(own, *names) if inside else None
        outer = beside(names) if inner is None or not kind else None
        if None not in (inner, outer) and inner != outer:
            raise ValueError(f"{names[0]} is {inner} and {outer}; take out the one not meant")
        return next((value for value in (inner, outer) if value is not None), default)

    alpha = own.get("alpha") if _rope_type(own) == "dynamic" and counts("alpha in the block") else None
    if alpha:  # Hunyuan's: one number for all lengths, by which the base is stretched
        read.append("alpha")
        own = {name: value for name, value in own.items() if name in (*BASES, *SHARES)}
    if "type" in own and not (nested or counts("type in the block")):
        own = {name: value for name, value in own.items() if name != "type"}
    entry = usual | own
    rope_type = _checked_type(entry)
    share_inside = rope_type == "proportional" or counts(_share_in_block(rope_type, nested))
    share = agreed(SHARES, share_inside, usual.get("partial_rotary_factor", 1.0))
    share = check_number(share, "partial_rotary_factor", at_least=0, at_most=1)
    base = agreed((*BASES, *LOCAL_BASES), nested or counts("rope_theta in the block"), usual.get("rope_theta"))
    base = check_number(base, "rope_theta", above=1)
    head_dim, rotary_dim = _sizes(file, record, kind, 1.0 if rope_type == "proportional" else share, beside)
    if alpha:
        base *= check_number(alpha, "alpha", above=0) ** (rotary_dim / (rotary_dim - 2))
    _check_sections(entry.get("mrope_section"), rotary_dim)
    longest = agreed(LONGEST, True, one_of(usual, *LONGEST))
    length_inside = nested or counts(f"{ORIGINAL[0]} in the block")
    trained = agreed(ORIGINAL, length_inside, one_of(usual, *ORIGINAL) if not own else record.get("trained"))
    trained = _check_lengths(rope_type, entry, longest, trained)
    named = [name for names in KEYS[rope_type] for name in names if name in entry and name not in ORIGINAL]
    numbers = {name: entry[name] for name in named}
    if rope_type == "proportional":
        numbers["partial_rotary_factor"] = share
    read += [name for name in own if name in {"rope_type", "type", *BASES, *SHARES, *ORIGINAL, *named}]
    layouts = {bool(file[key]) for key in LAYOUTS if key in file}
    speaking = [str(key) for key in (*file, *own) if key in {*READ, *BESIDE_ANY, *LAYOUTS} or speaks_of_rotation(key)]
    return RotaryConfig(
        head_dim=head_dim,
        rotary_dim=rotary_dim,
        base=base,
        rope_type=rope_type,
        numbers=numbers,
        longest=longest,
        trained=trained,
        interleaved=layouts.pop() if len(layouts) == 1 else None,
        layers=_layers(file, record, base),
        model_type=file.get("model_type"),
        layer_type=kind or None,
        read=tuple(dict.fromkeys(read)),
        set_aside=tuple(dict.fromkeys(key for key in speaking if key not in {*read, *BLOCKS})),
    )


def _share_in_block(rope_type: str, nested: bool) -> str:
    """The name of this place in the record."""
    return f"{SHARES[0]} in {'the ' if rope_type == 'default' else 'a scaled '}{'entry' if nested else 'block'}"


def _sizes(
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
                f"head_dim is {head_dim} and qk_rope_head_dim {own}; the class of {_model(file)} reads both, and "
                f"one head turns ({SOURCE}): which is meant?"
            )
        if "qk_rope_head_dim" in record:
            return own + file.get("qk_nope_head_dim", 0), check_dim(
                int(own * share), "qk_rope_head_dim times the share"
            )
        head_dim = _head_dim(file, record, kind, beside) if "head_dim" in record or {*HEAD_DIMS} & {*file} else own
        stated = {*SHARES} & {*file} and share != 1
        if (stated or file.get("model_type") in RECORDS) and int(head_dim * share) != own:
            raise ValueError(f"qk_rope_head_dim is {own}, but head_dim {head_dim} and partial_rotary_factor {share}")
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
        raise ValueError(f"rotary_dim is {rotary_dim}, but head_dim {head_dim} and partial_rotary_factor {share}")
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


def _check_sections(sections: Any, rotary_dim: int) -> None:
    if sections is None:
        return
    whole = isinstance(sections, list | tuple) and all(isinstance(section, int) for section in sections)
    if not whole or sum(sections) != rotary_dim // 2:
        raise ValueError(f"mrope_section is {sections!r:.60}; it must be a list that adds up to {rotary_dim // 2}")


def _check_lengths(kind: str, entry: dict, longest: int | None, trained: int | None) -> int | None:
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


def _layers(file: dict, record: Record, base: float) -> str:
    """Which layers turn, in words: what the file says, or what was seen of its class."""
    bases, marks = file.get("layer_rope_theta"), file.get("no_rope_layers")
    if isinstance(bases, list | tuple) and bases and "" in record["defaults"]:
        if {*bases} - {0, base}:
            raise ValueError(f"layer_rope_theta has {sorted({*bases} - {0, base})}, and rope_theta is {base:.10g}")
        return f"{len(bases) - bases.count(0)} of {len(bases)}, those that are not 0 in layer_rope_theta"
    if isinstance(marks, list | tuple) and marks:
        return f"{sum(map(bool, marks))} of {len(marks)}, those that are not 0 in no_rope_layers"
    if file.get("model_type") not in RECORDS:
        return f"not known: {_model(file)} is not recorded" if "model_type" in file else "not said"
    seen = record.get("turn")
    if "sliding_window" in file and file["sliding_window"] is None:
        seen = record.get("turn without a window", seen)
    if not seen:
        return "not recorded"
    if "of eight" in seen:
        return f"of eight layers those numbered {', '.join(map(str, seen['of eight']))}, counted from 0"
    turn = ", ".join(one for one, turns in seen["kinds"].items() if turns)
    still = ", ".join(one for one, turns in seen["kinds"].items() if not turns)
    return f"{turn}; not {still}" if still else "all"


# -- What the file says and its class does not read --------------------------------------------------------------------


def _refuse_what_is_not_read(
    file: dict, record: Record, entries: dict[str, tuple[dict, dict]], nested: bool, found: dict[str, RotaryConfig]
) -> None:
    """Refuse a key that the class does not read, if another record came out were it read."""
    if file.get("model_type") not in RECORDS:
        return
    meant, problems = meaning(file, [*found]), {}
    for kind, rotation in found.items():
        own = entries[kind][1]
        given = {key: file[key] for key in READ if key in file}
        given |= {
            f"{name} in the block": own[name] for name in own if f"{name} in the block" in IN_BLOCK and not nested
        }
        if SHARES[0] in own and rotation.rope_type != "proportional":
            given[_share_in_block(rotation.rope_type, nested)] = own[SHARES[0]]
        for key, value in given.items():
            if (key in record["reads"] and key in READ) or kind in record["reads"].get(key, ()):
                continue
            if key in meant and kind not in meant[key]:
                continue
            try:
                other = _rotation(file, record, kind, *entries[kind], nested, also=key)
            except (TypeError, ValueError):
                other = None
            differs = [name for name in TAKES if other is None or getattr(other, name) != getattr(rotation, name)]
            if differs:
                problems.setdefault((key, value), []).append(TAKES[differs[0]].format(getattr(rotation, differs[0])))
    told, ignored = [], []
    for (key, value), takes in problems.items():
        if key in HEAD_DIMS and len(takes) < len(found):  # it is the head of some layers
            continue
        verb = "fails on it" if key in record.get("fails", ()) else "does not read it"
        told.append(
            f"{key} is {value}, and the class of {_model(file)} {verb}: it takes {' and '.join(dict.fromkeys(takes))}"
        )
        ignored.append(repr(key.split()[0]))
    if told:
        raise ValueError(
            f"{'; '.join(told)} ({SOURCE}). Which is meant? ignore=({', '.join(dict.fromkeys(ignored))},) follows the "
            "class; without model_type the file alone counts"
        )
