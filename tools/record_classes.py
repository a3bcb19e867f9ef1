"""Record how the classes of transformers read a configuration: python -m tools.record_classes

Writes rope_lib/config/classes.json and tests/data/transformers_files.json anew. Run it from the root of the project, in
the environment that `make bench` makes:

    ATEN_CPU_CAPABILITY=avx2 .venv-bench/bin/python -m tools.record_classes

Nothing is read out of source code. A class is given files, and its own rotary module shows what it made of them: a key
is *read* if two values of it give other speeds than none, it *fails* if the class takes neither value, and else it is
*ignored*. Classes about which this tells nothing are printed, each with the reason.
"""

import copy
import importlib
import inspect
import itertools
import json
import random
import re
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_MAPPING,
)

from lab.experiments import as_text
from rope_lib.config._spelling import (
    BASES,
    HEAD_DIM_OF,
    HEAD_DIMS,
    KNOWN,
    LAYERS,
    LAYOUTS,
    LOCAL_BASES,
    SHARES,
    speaks_of_rotation,
)

ROOT = Path(__file__).parent.parent
CLASSES, FILES = ROOT / "rope_lib" / "config" / "classes.json", ROOT / "tests" / "data" / "transformers_files.json"
SOURCE = f"transformers {transformers.__version__}"
SIZES = {"hidden_size": 2304, "num_attention_heads": 24, "num_key_value_heads": 24}
NUMBERS = {  # of a YaRN block, with a value that is not usual
    "truncate": {"truncate": False}, "beta_fast": {"beta_fast": 8.0}, "beta_slow": {"beta_slow": 2.0},
    "mscale": {"mscale": 2.0, "mscale_all_dim": 0.5}, "attention_factor": {"attention_factor": 1.5},
}  # fmt: skip
OTHER_WIDTH = {"hidden_size": 1920}  # heads of 80 dimensions and not of 96, where a class divides
VALUES = {  # for each key two values, none of which is usual
    **dict.fromkeys((*BASES, *LOCAL_BASES), (12345.0, 23456.0)),
    **dict.fromkeys(SHARES, (0.5, 0.25)),
    **dict.fromkeys((*HEAD_DIMS, *HEAD_DIM_OF, "qk_rope_head_dim"), (64, 48)),
    "rotary_dim": (32, 16),
}
ORIGINAL = "original_max_position_embeddings"
LENGTHS = {ORIGINAL: 512}
LONGEST = {"max_position_embeddings": 4096}
BLOCKS = {  # what a scaled file says, without a base
    "linear": {"rope_type": "linear", "factor": 3.0},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "yarn": {"rope_type": "yarn", "factor": 8.0, **LENGTHS},
    "yarn, mscale": {"rope_type": "yarn", "factor": 8.0, "mscale": 2.0, "mscale_all_dim": 0.5, **LENGTHS},
    "longrope": {"rope_type": "longrope", "factor": 8.0, **LENGTHS},  # with as many factors as pairs turn
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **LENGTHS},
}  # fmt: skip
SPELLED = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings")
# These rotate without rope_parameters: read in their modeling files (sinusoids turn q and k in RoFormer's).
PLAIN = {"defaults": {"": {"rope_theta": 10000.0}}, "blocks": {"rope_scaling": {}, "rope_parameters": {}}}
WITHOUT_PARAMETERS = {
    **dict.fromkeys(("gptj", "codegen"), PLAIN | {"rotary_dim": 64, "reads": {"rotary_dim": [""]}}),
    **dict.fromkeys(("esm", "roformer"), PLAIN | {"reads": {}}),
}
# Names that stand in published files and are no class of transformers, with the class whose code does the same.
OTHER_NAMES = {"deepseek": "llama", "internlm2": "llama", "kimi_k2": "deepseek_v3"}
Rotations = dict[str, tuple[list[float], float]]  # by kind of layer, "" where all are alike: speeds, factor


class UnknownClass(Exception):
    """Nothing can be recorded about this class: its files must say everything themselves."""


def text_class(name: str) -> type[transformers.PreTrainedConfig] | None:
    """The class that reads the text part of a file with this model_type; None if it is chosen by the file."""
    try:
        config = CONFIG_MAPPING[name]()
        part = config.get_text_config()
    except Exception:
        return None
    return type(part) if type(part).__module__ == type(config).__module__ else None


def rotary_class(cls: type) -> type | None:
    """The module that rotates in the models of a configuration class: that which asks for this class, or no other's."""
    try:
        modeling = importlib.import_module(cls.__module__.replace(".configuration_", ".modeling_"))
    except ImportError:
        return None
    asks = {}
    for name, module in vars(modeling).items():
        if re.fullmatch("(?!.*(Vision|DiT)).+RotaryEmbedding", name):
            config = inspect.signature(module.__init__).parameters.get("config")
            asks[module] = getattr(config and config.annotation, "__name__", config and config.annotation)
    own = [module for module, asked in asks.items() if asked == cls.__name__]
    return next(iter(own or [module for module, asked in asks.items() if asked is not None]), None)


def layers_of(rope: dict) -> dict[str, dict]:
    """rope_parameters by kind of layer; under "" where layers are alike. (Layers with null do not turn.)"""
    nested = {name: entry for name, entry in sorted(rope.items()) if isinstance(entry, dict)}
    return nested or {"": rope}


def ask_module(module: torch.nn.Module, seq_len: int, kind: str) -> None:
    """Let it make tables for a text of this length, whether its positions have one coordinate or three."""
    place, of_kind = torch.tensor([[seq_len - 1]]), {"layer_type": kind} if kind else {}
    try:
        module(torch.zeros(1, 1, 1), place, **of_kind)
    except (IndexError, RuntimeError):
        module(torch.zeros(1, 1, 1), place.expand(3, 1, 1), **of_kind)


def turned_with(config: transformers.PreTrainedConfig, module: torch.nn.Module, head_dim: int) -> None:
    """Turn a head by the tables of the module, with the function that the model's own code calls; it may raise."""
    modeling = importlib.import_module(type(module).__module__)
    apply = getattr(modeling, "apply_rotary_pos_emb", None)
    if apply is None or any(isinstance(entry, dict) for entry in config.rope_parameters.values()):
        return
    x = torch.ones(1, 2, 3, head_dim)
    apply(x, x, *module(x, torch.arange(3)[None]))


def made_of(
    cls: type, file: dict, seq_len: int | None = None, turn: int | None = None
) -> tuple[Rotations, dict[str, dict]] | None:
    """The speeds and factors that the class's own module makes of a file, and the entries it has read; None: it fails.

    With `turn`, the width of a head, it must also be able to turn one.
    """
    try:
        config = cls(**copy.deepcopy(file))
        module, entries, found = rotary_class(cls)(config), layers_of(config.rope_parameters), {}
        for kind in entries:
            prefix = f"{kind}_" if kind else ""
            if not hasattr(module, f"{prefix}inv_freq"):
                continue
            if seq_len is not None:
                ask_module(module, seq_len, kind)
            speeds, factor = getattr(module, f"{prefix}inv_freq"), getattr(module, f"{prefix}attention_scaling")
            found[kind] = (digits(speeds, 9), float(factor))
        if turn is not None:
            turned_with(config, module, turn)
    except Exception:
        return None
    return (found, entries) if found else None


def moved(before: Rotations, after: Rotations) -> list[str]:
    """The kinds of layers that turn otherwise."""
    return sorted(kind for kind in before if before[kind] != after.get(kind))


def probes(pairs: int, kinds: Iterable[str]) -> dict[str, list[tuple[dict, list[dict]]]]:
    """For each key, by the place where it stands: ways to ask, each a file without it and files with it."""
    plain, share = {"rope_type": "default", "rope_theta": 1e4}, SHARES[0]
    typed = [scaled(BLOCKS[kind], pairs) | {"rope_theta": 1e4} for kind in ("linear", "longrope")]
    typed = [{key.removeprefix("rope_") if key == "rope_type" else key: x for key, x in one.items()} for one in typed]
    scalings = [lambda pairs, kind=kind: scaled(BLOCKS[kind], pairs) for kind in ("yarn", "longrope")]
    names = ("rope_scaling", "rope_parameters")

    def inside(name: str, make: Callable[[int], dict], key: str) -> tuple[dict, list[dict]]:
        """A block without a key, and with it; a share leaves fewer pairs, for which longrope has factors."""
        turned = {x: int(pairs * x) if key == share else pairs for x in VALUES[key]}
        return {name: make(pairs)}, [{name: make(turned[x]) | {key: x}} for x in VALUES[key]]

    def entries(entry: dict) -> tuple[dict, list[dict]]:
        """An entry for each kind of layer, without a share and with one."""
        given = [entry, *(entry | {share: x} for x in VALUES[share])]
        before, *after = ({"rope_parameters": dict.fromkeys(kinds, one)} for one in given)
        return before, after

    return {
        **{key: [({}, [{key: x} for x in values])] for key, values in VALUES.items()},
        f"{BASES[0]} in the block": [inside(name, make, BASES[0]) for name in names for make in scalings],
        f"{share} in the block": [inside(name, lambda _: plain, share) for name in names],
        f"{share} in a scaled block": [inside(name, make, share) for name in names for make in scalings],
        f"{share} in the entry": [entries(plain)] if "" not in kinds else [],
        f"{share} in a scaled entry": [entries(plain | BLOCKS["linear"])] if "" not in kinds else [],
        "type in the entry": [
            ({"rope_parameters": dict.fromkeys(kinds, plain)}, [{"rope_parameters": dict.fromkeys(kinds, typed[0])}])
        ] if "" not in kinds else [],
        "type in the block": [({name: plain}, [{name: block}]) for name in names for block in typed],
        "alpha in the block": [  # Hunyuan's
            ({"rope_scaling": BLOCKS["dynamic"]}, [{"rope_scaling": BLOCKS["dynamic"] | {"alpha": 50.0}}])
        ],
        f"{ORIGINAL} in the block": [
            ({"rope_scaling": make(pairs)}, [{"rope_scaling": make(pairs) | {ORIGINAL: x}} for x in (256, 1024)])
            for make in scalings
        ],
        ORIGINAL: [
            ({"rope_scaling": block, ORIGINAL: 512}, [{"rope_scaling": block, ORIGINAL: x} for x in (256, 1024)])
            for make in scalings
            for block in [{key: x for key, x in make(pairs).items() if key != ORIGINAL}]
        ],
    }  # fmt: skip


def reads_of(cls: type, usual: Rotations, head: int) -> dict[str, dict | list]:
    """For each key that is not ignored the kinds of layers that it moves; and the keys over which the class fails."""
    reads, fails = {}, []
    for key, ways in probes(len(next(iter(usual.values()))[0]), usual).items():
        of_head = key in {*HEAD_DIMS, *HEAD_DIM_OF, "qk_rope_head_dim"}
        sizes = ({},) if of_head else ({"head_dim": head}, {})  # some classes refuse it
        for own in sizes:
            turn = head if own and key.split()[0] in {*SHARES, "rotary_dim"} else None
            asked = [
                [made_of(cls, SIZES | LONGEST | own | file, turn=turn) for file in (way[0], *way[1])] for way in ways
            ]
            asked = [[made for made in answers if made] for answers in asked if answers[0]]
            if asked:
                break
        if asked and all(len(answers) == 1 for answers in asked):
            fails.append(key)
        elif kinds := {kind for before, *after in asked for made in after for kind in moved(before[0], made[0])}:
            reads[key] = sorted(kinds)
    return {"reads": reads, "fails": fails}


def unread_numbers(cls: type, usual: Rotations) -> dict[str, list[str]]:
    """Of the numbers in a YaRN block, and in one for each kind of layer, those that move nothing: where, and for whom.

    The other way round than `reads_of`, since nearly all are read.
    """
    found, kinds = {}, [*usual]
    for number, given in NUMBERS.items():
        for place, inside in (("the block", False), ("the entry", True)):
            if inside and "" in kinds:
                continue
            for head in ({}, {"head_dim": 128}):  # that of the class, or where it divides by None, some head
                before, after = (
                    made_of(
                        cls,
                        SIZES | LONGEST | head | {"rope_parameters": dict.fromkeys(kinds, block | {"rope_theta": 1e4})},
                    )
                    if inside
                    else made_of(cls, SIZES | LONGEST | head | {"rope_scaling": block})
                    for block in (BLOCKS["yarn"], BLOCKS["yarn"] | given)
                )
                if before and after:
                    break
            reached = set() if not before else {*before[0]} if inside else {*moved(usual, before[0])}
            if before and after and (still := sorted(reached - {*moved(before[0], after[0])})):
                found[f"{number} in {place}"] = still
    return found


def nulls_of(cls: type, usual: Rotations, names: Iterable[str]) -> list[str]:
    """Keys of which null says something else than that they are missing."""
    made = {name: made_of(cls, SIZES | {name: None}) for name in names}
    return [name for name, found in made.items() if found is None or moved(usual, found[0])]


def fields_of(cls: type) -> dict[str, dict]:
    """Other keys of the class that speak of the rotation, with what is usual."""
    given = cls(**SIZES).to_dict().items()
    other = {k: value for k, value in given if value is not None and k not in KNOWN and speaks_of_rotation(k)}
    return {"other": other} if other else {}


def heads_of(cls: type) -> dict:
    """How wide a head is: fixed by the class (by kind of layer), or nothing where it is the width over the heads."""
    widths = []
    for sizes in (SIZES, SIZES | OTHER_WIDTH):
        made = made_of(cls, sizes)
        if made is None:
            raise UnknownClass("it takes other sizes")
        known, (found, entries), width = cls(**sizes).to_dict(), made, {}
        for kind, (speeds, _) in found.items():
            share = entries[kind].get("partial_rotary_factor", 1.0)
            share = 1.0 if entries[kind].get("rope_type") == "proportional" else share
            turned, likely = 2 * len(speeds), [sizes["hidden_size"] // sizes["num_attention_heads"]]
            likely += [known.get(key) for key in ("head_dim", "qk_rope_head_dim")]
            width[kind] = next((size for size in likely if size and int(size * share) == turned), int(turned / share))
        widths.append((known, width))
    (known, first), (_, second) = widths
    own = known.get("qk_rope_head_dim")
    if own and {*first.values()} == {own}:
        return {"qk_rope_head_dim": own}
    if first == second:
        return {"head_dim": first if len({*first.values()}) > 1 else next(iter(first.values()))}
    if ({*first.values()}, {*second.values()}) != ({96}, {80}):
        raise UnknownClass(f"its heads are {first} for a width of {SIZES['hidden_size']}")
    return {}


def scaled(block: dict, pairs: int) -> dict:
    """A block that is whole: longrope has a factor for each pair."""
    if block["rope_type"] != "longrope":
        return copy.deepcopy(block)
    return block | {"short_factor": [1.0] * pairs, "long_factor": [1.0 + pair for pair in range(pairs)]}


def blocks_of(cls: type, usual: Rotations, entries: dict[str, dict]) -> dict:
    """What a block does that names no kind of layer: whom it reaches, and what base and share hold under it.

    Under "default" stands the share of a block without a scaling, where that is another one.
    """
    found: dict = {}
    pairs = len(next(iter(usual.values()))[0])
    beside = {key: entry[key] for entry in entries.values() for key in ("mrope_section",) if key in entry}
    plain = {"rope_type": "default", "rope_theta": 12345.0} | beside
    for name in ("rope_scaling", "rope_parameters"):
        blocks = (scaled(BLOCKS["linear"], pairs) | beside, scaled(BLOCKS["longrope"], pairs) | beside, plain)
        tries = ((block, made_of(cls, SIZES | {name: block})) for block in blocks)
        block, made = next(((block, made) for block, made in tries if made is not None), (plain, None))
        if made is None:
            found[name] = "fails"
            continue
        read = made[1] if block is not plain else entries
        found[name] = {
            kind: {
                key: read[kind][key] for key in ("rope_theta", "partial_rotary_factor")
                if read.get(kind, {}).get(key) is not None
            }
            for kind in moved(usual, made[0])
        }  # fmt: skip
    made = made_of(cls, SIZES | {"rope_parameters": plain})
    for kind, under in found["rope_parameters"].items() if made and found["rope_parameters"] != "fails" else ():
        share = len(made[0][kind][0]) / pairs * entries[kind].get("partial_rotary_factor", 1.0)
        if share != under.get("partial_rotary_factor", 1.0):
            found.setdefault("default", {})[kind] = {"partial_rotary_factor": share}
    return found


def asks_for_more(cls: type, file: dict) -> bool:
    """Whether the class refuses a file because a key is missing."""
    try:
        cls(**copy.deepcopy(file))
    except Exception as error:
        return bool(re.search("missing|required|got None", str(error), re.IGNORECASE))
    return False


def fails_of(cls: type, usual: Rotations) -> dict[str, str]:
    """For each rope_type that does not reach the speeds: that the class ignores it, or fails."""
    found = {}
    pairs = len(next(iter(usual.values()))[0])
    for name, block in BLOCKS.items():
        if name != block["rope_type"]:
            continue
        seq_len = 16384 if name in ("dynamic", "longrope") else None
        sections = {"mrope_section": [pairs // 4, pairs - 2 * (pairs // 4), pairs // 4]}
        for head, beside in itertools.product(({}, {"head_dim": 2 * pairs}), ({}, sections)):
            file = SIZES | LONGEST | head | {"rope_scaling": scaled(block, pairs) | beside}
            made = made_of(cls, file, seq_len)
            if made is not None:
                break
        before = made_of(cls, SIZES | LONGEST | head, seq_len)
        if made is None:
            found[name] = "asks for more than is known here" if asks_for_more(cls, file) else "fails"
        elif before is not None and not moved(before[0], made[0]):
            found[name] = "ignored"
        elif needed := {**head, **beside}:
            found[name] = f"fails without {', '.join(needed)}"
    return found


# -- Which layers turn -------------------------------------------------------------------------------------------------

SMALL = {  # a model of eight layers that runs in a moment
    "num_hidden_layers": 8, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 128,
    "head_dim": 16, "global_head_dim": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16,
    "q_lora_rank": 32, "kv_lora_rank": 32, "intermediate_size": 64, "moe_intermediate_size": 32, "n_routed_experts": 4,
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
WITHOUT_WINDOW = {"sliding_window": None, "layer_types": ["full_attention"] * 8}


def turning(cls: type, **more) -> dict | None:
    """Which of eight layers turn: a small model runs, and each call of the rotation is watched.

    None if it cannot be run, or if its layers do not call a rotation by themselves.
    """
    known = cls().to_dict()
    own = {key: x for key, x in SMALL.items() if known.get(key) is not None or key in [*SMALL][:5]}
    modeling = importlib.import_module(cls.__module__.replace(".configuration_", ".modeling_"))
    rotations = {
        name: f for name, f in vars(modeling).items() if re.match("apply.*rotary", name) and inspect.isfunction(f)
    }
    called = set()

    def watched(rotate: Callable) -> Callable:
        def call(*args, **options):
            frame = inspect.currentframe().f_back
            while frame and not isinstance(frame.f_locals.get("self"), torch.nn.Module):
                frame = frame.f_back
            called.add(getattr(frame and frame.f_locals["self"], "layer_idx", None))
            return rotate(*args, **options)

        return call

    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(20)
    try:
        model = next(
            model for mapping in (MODEL_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING) if (model := mapping.get(cls, None))
        )
        config = cls(**(own | more))
        config._attn_implementation = "eager"
        model = (model[0] if isinstance(model, tuple) else model)(config).eval()
        for name, rotate in rotations.items():
            setattr(modeling, name, watched(rotate))
        with torch.no_grad():
            model(input_ids=torch.arange(3, 11)[None])
    except Exception:
        return None
    finally:
        signal.alarm(0)
        for name, rotate in rotations.items():
            setattr(modeling, name, rotate)
    turn, kinds = sorted(called - {None}), getattr(config, "layer_types", None) or [""] * 8
    if not turn or len(kinds) != 8:
        return None
    found = {kind: [i in turn for i, one in enumerate(kinds) if one == kind] for kind in dict.fromkeys(kinds)}
    if all(len({*turns}) == 1 for turns in found.values()):
        return {"kinds": {kind: turns[0] for kind, turns in found.items()}}
    return {"of eight": turn}


def too_slow(*_: object) -> None:
    """End a model that does not end."""
    raise TimeoutError


def record_of(name: str) -> dict | None:
    """How the class of a model_type reads; None where no layer rotates.

    Raises:
        UnknownClass: it cannot be determined.
    """
    if name in WITHOUT_PARAMETERS:
        return WITHOUT_PARAMETERS[name]
    cls = text_class(OTHER_NAMES.get(name, name))
    rotary = cls and rotary_class(cls)
    if cls is None:
        raise UnknownClass("its text part is chosen by the file, or it has several")
    try:
        known = cls(**SIZES).to_dict()
    except Exception as error:
        raise UnknownClass(f"it takes other sizes ({type(error).__name__})") from None
    rope = known.get("rope_parameters")
    if not rope and not rotary and (name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or known.get("qk_rope_head_dim") == 0):
        return None
    if not rope or not rotary or any(entry.get("rope_type") == "axial" for entry in layers_of(rope).values()):
        raise UnknownClass("it has no rotation by one position")
    made = made_of(cls, SIZES)
    if made is None:
        raise UnknownClass("its module makes nothing of sizes alone")
    usual, entries = made
    if "" not in entries and len(entries) == 1:
        raise UnknownClass("which kinds of layers it has is said by the file")
    record = {"defaults": {kind: defaults_of(entry) for kind, entry in entries.items()}, **heads_of(cls)}
    head = record.get("head_dim", record.get("qk_rope_head_dim", SIZES["hidden_size"] // SIZES["num_attention_heads"]))
    record |= reads_of(cls, usual, max(head.values()) if isinstance(head, dict) else head)
    record["unread"] = unread_numbers(cls, usual)
    record["nulls"] = nulls_of(cls, usual, ("head_dim", "partial_rotary_factor", "qk_rope_head_dim"))
    record["blocks"] = blocks_of(cls, usual, entries)
    record["types"] = fails_of(cls, usual)
    record["fields"] = fields_of(cls)
    record["says"] = [key for key in (*LAYERS, *LAYOUTS) if key in known]
    if isinstance(known.get(ORIGINAL), int):
        record["trained"] = known[ORIGINAL]
    record["names"] = {own: key for key, own in cls.attribute_map.items() if key in SPELLED}
    record["turn"] = turning(cls)
    if record["turn"] and False in record["turn"].get("kinds", {}).values():
        record["turn without a window"] = turning(cls, **WITHOUT_WINDOW)
    yarn = [made_of(cls, SIZES | LONGEST | {"rope_scaling": BLOCKS[kind]}) for kind in ("yarn", "yarn, mscale")]
    if all(yarn) and "yarn" not in record["types"]:
        for kind in moved(usual, yarn[0][0]):
            if all(made[0][kind][1] == 1.0 for made in yarn):  # whatever the block says
                record.setdefault("attention_factor", {})[kind] = 1.0
    return record


def defaults_of(entry: dict) -> dict:
    """What a class takes for granted, without what says nothing."""
    return {
        key: value for key, value in entry.items() if value is not None and (key, value) != ("rope_type", "default")
    }


def record_classes() -> dict[str, dict | None]:
    """All that can be recorded; the others are printed, each with its reason."""
    found = {}
    for name in sorted([*CONFIG_MAPPING_NAMES, *OTHER_NAMES]):
        try:
            found[name] = record_of(name)
        except UnknownClass as error:
            print(f"not recorded: {name}: {error}")
    return found


def as_rows(records: dict[str, dict | None]) -> str:
    """A line for all classes that read alike."""
    same: dict[str, list[str]] = {}
    for name, record in records.items():
        same.setdefault(json.dumps(record), []).append(name)
    rows = [f' {{"classes": {json.dumps(names)},\n  "record": {record}}}' for record, names in same.items()]
    return f'{{"source": "{SOURCE}", "rows": [\n' + ",\n".join(rows) + "\n]}\n"


def files_of(name: str, record: dict) -> dict[str, dict]:
    """The files that are asked about: sizes, a base, a head, a share in four spellings, seven blocks, `to_dict()`."""
    cls, base, share = text_class(name), {"rope_theta": 50000.0}, {"partial_rotary_factor": 0.5}
    kinds, inside = [*record["defaults"]], {"rope_type": "default", **base, **share}
    head = record.get("head_dim", 96)
    own = (
        {}
        if "qk_rope_head_dim" in record or "head_dim" in record["fails"] or isinstance(head, dict)
        else {"head_dim": head}
    )
    made = made_of(cls, SIZES | own)
    blocks = {
        kind: scaled(block, len(next(iter(made[0].values()))[0]) if made else 1) for kind, block in BLOCKS.items()
    }
    files = {
        "sizes": {}, "base": base, "head": base | {"head_dim": 64},
        **{f"share: {key}": base | {key: x} for key, x in (*share.items(), ("rotary_dim", 32), ("rotary_pct", 0.5))},
        "share: in the block": {"rope_parameters": inside if "" in kinds else dict.fromkeys(kinds, inside)},
        **{kind: LONGEST | base | own | {"rope_scaling": block} for kind, block in blocks.items()},
        "yarn without a base": LONGEST | own | {"rope_scaling": blocks["yarn"]},
    }  # fmt: skip
    files = {kind: SIZES | file for kind, file in files.items()}
    written = json.loads(json.dumps(cls(**SIZES).to_dict()))
    kept = {key: x for key, x in written.items() if re.search(OF_THE_ROTATION, key) or key in record["names"]}
    draws = {f"drawn {i}": drawn(random.Random(f"{name} {i}"), kinds) for i in range(3)}
    return files | {"to_dict()": kept} | draws


DRAWN = {  # keys of files that are drawn, with their values
    **{"rope_theta": (5e5, 1e4), "rotary_emb_base": (2e4,), "global_rope_theta": (9e4,), "local_rope_theta": (3e4,)},
    **{"rope_local_base_freq": (1e4, 2e4), "swa_rope_theta": (3e4,), "compress_rope_theta": (2e5,)},
    **{"partial_rotary_factor": (0.5, 0.25, 1.0), "rotary_pct": (0.5,), "rotary_dim": (32, 64)},
    **{"head_dim": (64, 96, 128), "kv_channels": (64,), "attention_head_dim": (64,), "global_head_dim": (128,)},
    **{"swa_head_dim": (64,), "qk_rope_head_dim": (64, 32), "qk_nope_head_dim": (128,)},
    **{ORIGINAL: (512, 1024), "max_position_embeddings": (4096, 8192)},
}
FOR_BLOCKS = (  # what a block that is drawn may have beside its type
    {"rope_theta": 2e4}, {"partial_rotary_factor": 0.5}, {"attention_factor": 1.2}, {"beta_fast": 16},
    {"truncate": False}, {},
)  # fmt: skip


def drawn(draw: random.Random, kinds: list[str]) -> dict:
    """A file with several keys at once, at random; half of them have a block, or one for each kind of layer."""

    def block() -> dict:
        kind = draw.choice(("default", "linear", "dynamic", "yarn", "llama3"))
        found = {draw.choice(("rope_type", "rope_type", "type")): kind} | {
            key: x for key, x in BLOCKS.get(kind, {}).items() if key != "rope_type"
        }
        beside = draw.choice(FOR_BLOCKS)
        return found | (
            beside if kind == "yarn" or not {*beside} & {"attention_factor", "beta_fast", "truncate"} else {}
        )

    keys = draw.sample([*DRAWN], draw.choice((0, 1, 1, 2, 2, 3)))
    file = SIZES | LONGEST | {key: draw.choice(DRAWN[key]) for key in keys}
    way = draw.random()
    if way < 0.5:
        file[draw.choice(("rope_scaling", "rope_parameters"))] = block()
    elif "" not in kinds:
        file["rope_parameters"] = {kind: {"rope_theta": 3e4} | block() for kind in kinds}
    return file


# What is kept of a configuration that transformers writes: sizes, and every key that by a word speaks of the rotation.
OF_THE_ROTATION = (
    "^model_type$|^hidden_size$|attention_heads|position_embeddings|n_positions|^n_embd$|^n_head$|head_dim|"
    "rope|rotary|theta|alibi|position_embedding|interleave|freq"
)


def record_files(records: dict[str, dict | None]) -> dict:
    """What the classes make of these files."""
    rows: dict[str, dict[str, list]] = {}
    for name, record in records.items():
        if record is None or name in WITHOUT_PARAMETERS or name in OTHER_NAMES:
            continue
        for kind, file in files_of(name, record).items():
            given = {key: x for key, x in file.items() if key != "model_type"}
            made = made_of(text_class(name), given, 16384 if kind == "dynamic" else None)
            row = json.dumps([file, made and summary(made[0])])
            kind = "several keys, drawn" if kind.startswith("drawn ") else kind
            rows.setdefault(kind, {}).setdefault(row, []).append(name)
    return {
        "source": f"{SOURCE}: pairs, second and last inverse frequency, attention factor, by kind of layer",
        "files": {kind: [[*json.loads(row), names] for row, names in found.items()] for kind, found in rows.items()},
    }


def summary(made: Rotations) -> dict[str, list[float]]:
    """What is compared of the speeds."""
    return {kind: [len(speeds), *(float(f"{x:.7g}") for x in (speeds[1 % len(speeds)], speeds[-1])), factor]
            for kind, (speeds, factor) in made.items()}  # fmt: skip


def digits(numbers: torch.Tensor, count: int) -> list[float]:
    """Numbers with so many digits."""
    return [float(f"{x:.{count}g}") for x in numbers.tolist()]


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    records = record_classes()
    CLASSES.parent.mkdir(exist_ok=True)
    CLASSES.write_text(as_rows(records), encoding="utf-8")
    FILES.write_bytes(as_text(record_files(records)))
