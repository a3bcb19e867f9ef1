"""How the classes of transformers read a file: what tools/record_classes.py has recorded, in classes.json."""

from __future__ import annotations

import json
import pkgutil
from typing import Any

from rope_lib.config._spelling import BASES, HEAD_DIM_OF, HEAD_DIMS, LOCAL_BASES, ORIGINAL, READ, SHARES, entries_of

Record = dict[str, Any]
_stored = json.loads(pkgutil.get_data(__package__, "classes.json"))
SOURCE: str = _stored["source"]
# By model_type; None where no layer of the class rotates. "" is the kind of all layers where they are alike.
#   defaults  for each kind of layer the entry of rope_parameters that a file may leave out
#   head_dim, qk_rope_head_dim, rotary_dim  where the class has one of its own; else it is the width over the heads
#   reads     the keys that are not ignored: the kinds that each moves, or "fails"
#   blocks    whom a block reaches that names no kind, and what base and share hold under it; or "fails"
#   types     the rope_types that such a block may not have: "ignored" or "fails"
#   fields    other keys of the class that speak of the rotation, and what is usual for each
#   attention_factor  by kind, where the class sets it
#   trained   the length of the training, where the class has one
#   names     what the class calls its sizes, where not as usual
#   turn      which kinds of layers turn, or which of eight layers; and the same for a file without a window
RECORDS: dict[str, Record | None] = {name: row["record"] for row in _stored["rows"] for name in row["classes"]}

FILE_ALONE = "If you take out model_type, the file alone counts, and must say what the class would have added"


def model_of(file: dict) -> str:
    """The class of a file, in words."""
    return f"model_type {file['model_type']!r}" if "model_type" in file else "no model_type"


def meaning(file: dict, kinds: list[str]) -> dict[str, list[str]]:
    """The kinds of layers that each key is for by its name: a base for those that have no base of their own."""
    of_kind = {key: kind for key, kind in (LOCAL_BASES | HEAD_DIM_OF).items() if kind in kinds}
    local = {of_kind[key] for key in LOCAL_BASES if key in of_kind and key in file}
    others = {key: [kind for kind in kinds if kind not in local] for key in BASES}
    return dict.fromkeys(READ, kinds) | others | {key: [kind] for key, kind in of_kind.items()}


def record_of(file: dict, block: dict) -> Record:
    """That of the class which the file names; of a class that is not recorded: each key means what its name says."""
    if file.get("model_type") in RECORDS:
        return RECORDS[file["model_type"]]
    local = [kind for key, kind in LOCAL_BASES.items() if key in file]
    kinds = [*entries_of(block)] if "" not in entries_of(block) else ["full_attention", *local] if local else [""]
    reads = meaning(file, kinds)
    usual = {"rope_theta": 10000.0} if "model_type" not in file else {}
    return {
        "defaults": dict.fromkeys(kinds, usual),
        "reads": reads
        | {f"{key} in the block": kinds for key in (BASES[0], SHARES[0], "type", *ORIGINAL)}
        | {f"{SHARES[0]} in {place}": kinds for place in ("a scaled block", "the entry", "a scaled entry")},
        "blocks": dict.fromkeys(("rope_scaling", "rope_parameters"), dict.fromkeys(reads[BASES[0]], usual)),
    }


def missing_from(file: dict, block: dict) -> list[str]:
    """What only the class of the model could add, where that is not recorded."""
    entries = entries_of(block).values()
    lacks_base = any(not {*BASES} & {*file, *entry} for entry in entries)
    if "model_type" not in file:  # no file of transformers: a base stands in its rope_parameters, or in a params.json
        return ["rope_theta"] * (lacks_base and ("rope_parameters" in file or "n_heads" in file))
    if file["model_type"] in RECORDS:
        return []
    shares = {*SHARES, "rotary_dim", "qk_rope_head_dim"}
    lacks_share = any(not shares & {*file, *entry} for entry in entries)
    lacks_head = not {*HEAD_DIMS, "qk_rope_head_dim"} & {*file}
    lacks = {"rope_theta": lacks_base, "head_dim": lacks_head, "partial_rotary_factor": lacks_share}
    return [name for name, lacking in lacks.items() if lacking]
