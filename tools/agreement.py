"""Does the reader of configurations agree with transformers? python -m tools.agreement

Each class of transformers was given the same files, and its answers are stored: tools/record_classes.py writes
tests/data/transformers_files.json. This reads the files anew and counts, by kind of file and kind of layer, where the
library says the same, where it refuses, and where it says something else. `--list` names what is refused, and why.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rope_lib.config import rotation_from_config
from rope_lib.config._classes import RECORDS

FILES = Path(__file__).parent.parent / "tests" / "data" / "transformers_files.json"
USED_IF = {"granitemoehybrid": {"position_embedding_type": "rope"}}  # else no layer uses what its module computes
DIGITS = 2e-6  # seven digits of float32
AGREE, REFUSED, DIFFER, FAILS = "agree", "refused", "differ", "no such file"


class Case(NamedTuple):
    """One class, one file, one kind of layer."""

    kind: str  # of file
    model_type: str
    layer_type: str | None
    verdict: str
    why: str


def cases() -> Iterator[Case]:
    """All that are stored."""
    stored = json.loads(FILES.read_text(encoding="utf-8"))["files"]
    for kind, rows in stored.items():
        for file, made, names in rows:
            for name in names:
                for layer_type in made or [""]:
                    asked = file | {"model_type": name} | USED_IF.get(name, {})
                    yield case(kind, name, asked, layer_type, (made or {}).get(layer_type))


def case(kind: str, name: str, file: dict, layer_type: str, theirs: list[float] | None) -> Case:
    """What the library says of a file, beside what transformers makes of it; None: it makes nothing of it."""
    seq_len = 16384 if kind == "dynamic" else None
    try:
        inv_freq, factor = rotation_from_config(file, layer_type=layer_type or None).frequencies(seq_len)
    except (ValueError, TypeError) as error:
        return Case(kind, name, layer_type, REFUSED if theirs else FAILS, str(error))
    if theirs is None:
        return Case(kind, name, layer_type, DIFFER, "transformers fails on it")
    ours = [len(inv_freq), inv_freq[1 % len(inv_freq)].item(), inv_freq[-1].item(), factor]
    same = all(math.isclose(x, y, rel_tol=DIGITS) for x, y in zip(ours, theirs, strict=True))
    return Case(kind, name, layer_type, AGREE if same else DIFFER, "" if same else f"{ours} and not {theirs}")


def table() -> str:
    """Counts as Markdown: a row for each kind of file."""
    found = Counter((one.kind, one.verdict) for one in cases())
    kinds, verdicts = dict.fromkeys(kind for kind, _ in found), (AGREE, REFUSED, DIFFER, FAILS)
    rows = [[kind, *(str(found[kind, verdict]) for verdict in verdicts)] for kind in kinds]
    rows.append(["**all**", *(f"{sum(found[kind, verdict] for kind in kinds):,}" for verdict in verdicts)])
    head = f"| Files | {' | '.join(verdicts)} |\n|---|{'--:|' * len(verdicts)}\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name what is refused or differs, and why")
    if parser.parse_args().list:
        for one in cases():
            if one.verdict in (REFUSED, DIFFER):
                print(f"{one.verdict}: {one.kind}: {one.model_type} {one.layer_type}: {one.why}")
    print(f"{sum(record is not None for record in RECORDS.values())} names of classes that rotate are recorded.\n")
    print(table())


if __name__ == "__main__":
    main()
