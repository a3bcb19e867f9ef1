"""What stands in a file for each kind of layer, and what the class of its model adds."""

from __future__ import annotations

from collections.abc import Mapping

from rope_lib.config._classes import FILE_ALONE, SOURCE, Record, model_of
from rope_lib.config._spelling import BASES, BESIDE_ANY, BLOCKS, KEYS, LOCAL_BASES, SAME_TYPE, SHARES, entries_of


def entries_for(file: dict, block: dict, record: Record) -> dict[str, tuple[dict, dict]]:
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
            f"config has {name} for all layers, and the class of {model_of(file)} fails on it ({SOURCE}): which is "
            f"meant? Without it the class has {own}"
        )
    usual = {kind: entry.get("rope_theta") for kind, entry in record["defaults"].items()}
    moved = [kind for kind in reached if reached[kind].get("rope_theta") != usual[kind]]
    if moved and len(usual) > 1 and {*BASES, *LOCAL_BASES} & {*file}:
        raise ValueError(
            f"config has a base, and {name} for all layers; the class of {model_of(file)} then takes the base of "
            f"{moved[0]} from elsewhere ({SOURCE}): which is meant? rope_parameters can say it of each kind"
        )
    found = {kind: (reached[kind], block) if kind in reached else (own, {}) for kind, own in record["defaults"].items()}
    if not reached and any(entry | block != entry for entry, _ in found.values()):
        raise ValueError(
            f"config has {name}, and the class of {model_of(file)} does not read it ({SOURCE}): which is meant? "
            f"The class has {own}. ignore=({name!r},) follows it"
        )
    refused = record.get("types", {}).get(rope_type_of(block))
    needed = (refused or "").partition("fails without ")[2].split(", ")
    if refused and not all(key in block or key in file for key in needed):
        verb = {"ignored": "does not read it", "fails": "fails on it"}.get(refused, refused)
        raise ValueError(
            f"rope_type is {rope_type_of(block)!r}, and the class of {model_of(file)} {verb} ({SOURCE}): which is "
            f"meant? {FILE_ALONE}"
        )
    if rope_type_of(block) == "default":
        for kind, entry in record["blocks"].get("default", {}).items():
            found[kind] = (found[kind][0] | entry, found[kind][1])
    for kind, factor in record.get("attention_factor", {}).items():
        if rope_type_of(found[kind][1]) == "yarn":
            found[kind] = (found[kind][0] | {"attention_factor": factor}, found[kind][1])
    return found


def _nested(file: dict, block: dict, nested: dict[str, dict], record: Record) -> dict[str, tuple[dict, dict]]:
    """A block with an entry for each kind of layer."""
    if loose := [name for name in block if name not in nested and block[name] != "default"]:
        raise ValueError(f"rope_parameters has {loose} beside its entries for layers; put it into each that it is for")
    usual = record["defaults"]
    if strange := sorted({*nested} - {*usual}):
        has = f"{', '.join(sorted(usual))}" if "" not in usual else "one entry for all its layers"
        raise ValueError(
            f"rope_parameters has entries for {', '.join(strange)}; the class of {model_of(file)} has {has} ({SOURCE})"
        )
    for kind, entry in nested.items():
        read = [key for key in (*SHARES, "rotary_dim") if key in file and kind in record["reads"].get(key, ())]
        if not (read or {*SHARES} & {*entry}) and usual[kind].get("partial_rotary_factor", 1.0) != 1.0:
            raise ValueError(
                f"the entry of {kind} has no partial_rotary_factor; give it, as 1.0 if the whole head turns"
            )
        if not {*BASES, *LOCAL_BASES} & {*file, *entry}:
            raise ValueError(f"config has no rope_theta for {kind}; give it, if these layers rotate")
        factor = record.get("attention_factor", {}).get(kind)
        if factor is not None and rope_type_of(entry) == "yarn" and "attention_factor" not in entry:
            raise ValueError(
                f"the entry of {kind} has no attention_factor. With one block for all layers the class of "
                f"{model_of(file)} takes {factor}, with an entry for each kind YaRN's own ({SOURCE}): which is "
                "meant? Give the number"
            )
    kept = {kind: {key: usual[kind][key] for key in SHARES if key in usual[kind]} for kind in nested}
    return {kind: (kept[kind], entry) for kind, entry in nested.items()}


def rope_type_of(entry: Mapping) -> str:
    found = entry.get("rope_type") or entry.get("type") or "default"
    return SAME_TYPE.get(found, found)


def checked_type(entry: dict) -> str:
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
        told = " (Hunyuan's alpha multiplies the base by alpha^(d/(d-2)), where d is rotary_dim)" * ("alpha" in unknown)
        keys = ", ".join(map(repr, unknown))
        raise ValueError(
            f"{subject}; not known here: {unknown}{told}. If neither the frequencies nor the attention factor depend "
            f"on them: ignore=({keys}{',' * (len(unknown) == 1)})"
        )
    return kind
