"""From the dictionary of a config.json to a `RotaryConfig` for each kind of layer.

A file leaves out what its class takes for granted, and may say what its class does not read. So a key counts for those
kinds of layers for which the record of the class says that it is read. What the file says beside that must agree with
what came out; else it is an error, since one of the two is not meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from rope_lib._checks import check_number
from rope_lib.config._classes import FILE_ALONE, RECORDS, SOURCE, Record, meaning, missing_from, model_of, record_of
from rope_lib.config._entries import checked_type, entries_for, rope_type_of
from rope_lib.config._refusals import check_types, refuse_keys, refuse_parts, refuse_without_rotation
from rope_lib.config._sizes import check_lengths, check_sections, layers_that_turn, sizes_of
from rope_lib.config._spelling import (
    BASES,
    BESIDE_ANY,
    BLOCKS,
    HEAD_DIMS,
    KEYS,
    LAYOUTS,
    LOCAL_BASES,
    LONGEST,
    ORIGINAL,
    READ,
    SHARES,
    entries_of,
    given,
    one_of,
    speaks_of_rotation,
)  # fmt: skip
from rope_lib.config.rotation import RotaryConfig

IN_BLOCK = tuple(f"{key} in the block" for key in ("rope_theta", "type", "alpha", *ORIGINAL))
SHARE_IN_BLOCK = tuple(f"{SHARES[0]} in {a}{b}" for a in ("the ", "a scaled ") for b in ("block", "entry"))
NULLS = ("head_dim", "partial_rotary_factor", "qk_rope_head_dim")
TAKES = {
    "rope_type": "rope_type {}",
    "base": "the base {:.10g}",
    "head_dim": "heads of {}",
    "rotary_dim": "{} dimensions",
    "trained": "{} as trained",
    "numbers": "{}",
}


def rotations_of(config: Mapping[str, Any], ignore: Iterable[str] = ()) -> dict[str, RotaryConfig]:
    """What a file says of each kind of layer; under "" where all are alike. Errors as `rotation_from_config`."""
    ignore = _names(ignore)
    file = _without(config, ignore)
    refuse_without_rotation(file)
    no_window = {"sliding_window": None} if file.get("sliding_window", 0) is None else {}  # a null that says something
    nulls = [key for key in NULLS if key in file and file[key] is None]
    file = given(file) | no_window
    refuse_parts(file)
    block = {name: value for name, value in (one_of(file, *BLOCKS) or {}).items() if value is not None}
    record = record_of(file, block)
    file = _spelled(file, record)
    refuse_keys(file, block, record, missing_from(file, block))
    check_types(file)
    if said := [key for key in nulls if key in record.get("nulls", ())]:
        raise ValueError(
            f"{said[0]} is null, and the class of {model_of(file)} treats that differently from a missing key "
            f"({SOURCE}): which is meant? Give the number"
        )
    entries = entries_for(file, block, record)
    nested = "" not in entries_of(block)
    found = {kind: _rotation(file, record, kind, *entries[kind], nested) for kind in entries}
    _refuse_what_is_not_read(file, record, entries, nested, found)
    ignored = tuple(map(str, ignore))
    return {kind: replace(one, set_aside=one.set_aside + ignored) for kind, one in found.items()}


def _spelled(file: dict, record: Record) -> dict:
    """The file in the usual names, where its class has others for its sizes: DBRX's d_model is hidden_size."""
    names = {own: key for own, key in record.get("names", {}).items() if own in file and key not in file}
    return file | {key: file[own] for own, key in names.items()}


def _names(ignore: Iterable[str]) -> tuple[str, ...]:
    """The keys that the caller sets aside."""
    if isinstance(ignore, str) or not isinstance(ignore, Iterable):
        raise TypeError(f"ignore is {ignore!r:.60}; it must be a tuple of keys, such as ('rope_theta',)")
    names = tuple(ignore)
    if odd := [name for name in names if not isinstance(name, str | int)]:
        raise TypeError(f"ignore has {odd[0]!r:.60}; each must be the name of a key")
    return names


def _without(config: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The file without these keys, of its own and of its block."""
    found: set = set()

    def kept(entries: Mapping, inside: bool = False) -> dict:
        found.update({*names} & {*entries})
        return {
            key: kept(value, True) if isinstance(value, Mapping) and (inside or key in BLOCKS) else value
            for key, value in entries.items() if key not in names
        }  # fmt: skip

    file = kept(config)
    if absent := sorted(map(str, {*names} - found)):
        raise ValueError(f"ignore has {', '.join(absent)}; the config has no such key")
    return file


# -- One kind of layer -------------------------------------------------------------------------------------------------


def _rotation(
    file: dict, record: Record, kind: str, usual: dict, own: dict, nested: bool, also: str | None = None
) -> RotaryConfig:
    """The record of one kind of layer: the file's own words come before what is usual in its class.

    Of the keys that a class may ignore those count which it reads, at this place and for this kind; and `also`.
    """
    read: list[str] = []
    place = "entry" if nested else "block"

    def counts(key: str) -> bool:
        return key == also or key not in {*READ, *IN_BLOCK, *SHARE_IN_BLOCK} or kind in record["reads"].get(key, ())

    def beside(names: Iterable[str]) -> Any:
        """What stands beside the block by one of these names."""
        known = [name for name in names if name in file and counts(name)]
        read.extend(known)
        return one_of({name: file[name] for name in known}, *known)

    def agreed(names: tuple[str, ...], inside: bool, default: Any = None) -> Any:
        """What the block says, if that counts, or else what stands beside it; where both are for all, they agree."""
        inner = one_of(own, *names) if inside else None
        outer = beside(names) if inner is None or not kind or names is LONGEST else None
        if None not in (inner, outer) and inner != outer:
            raise ValueError(
                f"{names[0]} is {inner} in rope_parameters (or rope_scaling) and {outer} beside it; take out the one "
                "not meant"
            )
        return next((value for value in (inner, outer) if value is not None), default)

    alpha = own.get("alpha") if rope_type_of(own) == "dynamic" and counts("alpha in the block") else None
    if alpha:  # Hunyuan's: one number for all lengths, by which the base is stretched
        read.append("alpha")
        own = {name: value for name, value in own.items() if name in (*BASES, *SHARES)}
    if own.get("type") not in (None, own.get("rope_type")) and not counts(f"type in the {place}"):
        raise ValueError(
            f"type is {own['type']!r}, and the class of {model_of(file)} reads rope_type alone ({SOURCE}): which is "
            "meant?"
        )
    entry = usual | own
    rope_type = checked_type(entry)
    share_inside = rope_type == "proportional" or counts(share_in_block(rope_type, nested))
    share = agreed(SHARES, share_inside, usual.get("partial_rotary_factor", 1.0))
    share = check_number(share, "partial_rotary_factor", at_least=0, at_most=1)
    base = agreed((*BASES, *LOCAL_BASES), nested or counts("rope_theta in the block"), usual.get("rope_theta"))
    base = check_number(base, "rope_theta", above=1)
    head_dim, rotary_dim = sizes_of(file, record, kind, 1.0 if rope_type == "proportional" else share, beside)
    if alpha:
        base *= check_number(alpha, "alpha", above=0) ** (rotary_dim / (rotary_dim - 2))
    check_sections(entry.get("mrope_section"), rotary_dim)
    longest = agreed(LONGEST, True, one_of(usual, *LONGEST))
    length_inside = nested or counts(f"{ORIGINAL[0]} in the block")
    trained = agreed(ORIGINAL, length_inside, one_of(usual, *ORIGINAL) if not own else record.get("trained"))
    trained = check_lengths(rope_type, entry, longest, trained)
    unread = {name for name in own if kind in record.get("unread", {}).get(f"{name} in the {place}", ())}
    unread -= {(also or "").split()[0]} if also else set()
    named = [name for names in KEYS[rope_type] for name in names if name in entry and name not in {*ORIGINAL, *unread}]
    numbers = {name: entry[name] for name in named}
    if rope_type == "proportional":
        numbers["partial_rotary_factor"] = share
    read += [name for name in own if name in {"rope_type", "type", *BASES, *SHARES, *ORIGINAL, *named}]
    layouts = {file[key] for key in LAYOUTS if key in file and key in record.get("says", LAYOUTS)}
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
        layers=layers_that_turn(file, record, base),
        model_type=file.get("model_type"),
        layer_type=kind or None,
        read=tuple(dict.fromkeys(read)),
        set_aside=tuple(dict.fromkeys(key for key in speaking if key not in {*read, *BLOCKS})),
    )


def share_in_block(rope_type: str, nested: bool) -> str:
    """The name of this place in the record."""
    return f"{SHARES[0]} in {'the ' if rope_type == 'default' else 'a scaled '}{'entry' if nested else 'block'}"


# -- What the file says and its class does not read --------------------------------------------------------------------


def _refuse_what_is_not_read(
    file: dict, record: Record, entries: dict[str, tuple[dict, dict]], nested: bool, found: dict[str, RotaryConfig]
) -> None:
    """Refuse a key that the class does not read, if another record came out were it read."""
    if file.get("model_type") not in RECORDS:
        return
    meant, problems = meaning(file, [*found]), {}
    for kind, rotation in found.items():
        for key, value in _said(file, record, entries[kind][1], nested, rotation).items():
            read = kind in record["reads"].get(key, ()) or (key in record["reads"] and key in READ)
            if read or (key in meant and kind not in meant[key]):
                continue
            try:
                other = _rotation(file, record, kind, *entries[kind], nested, also=key)
            except ValueError:  # were it read, the file would contradict itself
                moved = "rotary_dim"
            else:
                moved = _moved(rotation, other)
            if moved:
                takes = TAKES[moved].format(getattr(rotation, moved))
                problems.setdefault((key, repr(value)), []).append(takes)
    told, ignored = [], []
    for (key, value), takes in problems.items():
        if key in HEAD_DIMS and len(takes) < len(found):  # it is the head of some layers
            continue
        verb = "fails on it; without it it" if key in record.get("fails", ()) else "does not read it: it"
        told.append(
            f"{key} is {value}, and the class of {model_of(file)} {verb} takes {' and '.join(dict.fromkeys(takes))}"
        )
        ignored.append(repr(key.split()[0]))
    if told:
        raise ValueError(
            f"{'; '.join(told)} ({SOURCE}). Which is meant? ignore=({', '.join(dict.fromkeys(ignored))},) follows the "
            f"class. {FILE_ALONE}"
        )


def _said(file: dict, record: Record, own: dict, nested: bool, rotation: RotaryConfig) -> dict[str, Any]:
    """The keys that a class may ignore, of the file and of one entry of its block, by their names in the record."""
    place = "entry" if nested else "block"
    said = {key: file[key] for key in READ if key in file}
    for name, value in own.items():
        if f"{name} in the {place}" in record.get("unread", {}):
            said[f"{name} in the {place}"] = value
        if f"{name} in the block" in IN_BLOCK and not nested:
            said[f"{name} in the block"] = value
    if SHARES[0] in own and rotation.rope_type != "proportional":
        said[share_in_block(rotation.rope_type, nested)] = own[SHARES[0]]
    return said


def _moved(rotation: RotaryConfig, other: RotaryConfig) -> str | None:
    """The first attribute in which two differ, if it changes their frequencies."""
    differs = [name for name in TAKES if getattr(other, name) != getattr(rotation, name)]
    if differs == ["numbers"]:
        (speeds, factor), (speeds_of_other, factor_of_other) = rotation.frequencies(), other.frequencies()
        if factor == factor_of_other and torch.equal(speeds, speeds_of_other):
            return None
    return differs[0] if differs else None
