"""What the benchmark found, as stored in lab/results: read, ranked, printed."""

import json
import pkgutil
from importlib.resources import files

import numpy as np

import lab

FIRST_SHAPE = [1, 32, 4096, 128]
NO_ROTATION = ("clone", "copy_")


def stored(name: str = "speed-cpu") -> dict:
    """One stored run, e.g. speed-cpu-neighbours-1; read in a way that also works from a zip archive."""
    return json.loads(pkgutil.get_data(lab.__name__, f"results/{name}.json"))


def cards() -> list[dict]:
    """The stored runs of `python -m bench.speed --card`, one for each GPU that somebody had."""
    names = sorted(path.name for path in files(lab).joinpath("results").iterdir())
    return [stored(name.removesuffix(".json")) for name in names if name.startswith("speed-card-")]


def card_report(found: dict) -> str:
    """For each setting of a card: each form's share of the speed of its own copy, with the spread, in percent."""
    lines = [found["machine"]["device"]]
    for row in found["rotation"]:
        single = "a single token" if row["shape"][2] == 1 else "prefill"
        lines.append(f"{single}, {setting(row)}, {row['direction']}:")
        for name, ratio in sorted(row["ratios"].items(), key=lambda pair: pair[1]):
            low, high = (100 / end for end in reversed(row["spreads"][name]))
            lines.append(f"    {name:20} {100 / ratio:4.0f} % ({low:.0f} to {high:.0f})")
    return "\n".join(lines)


def rows_of(found: dict, **settings) -> list[dict]:
    """The rows of the rotation with these settings, e.g. mode="eager", direction="forward"."""
    return [row for row in found["rotation"] if all(row[name] == value for name, value in settings.items())]


def best_other(row: dict) -> tuple[str, float]:
    """The fastest other library of a row, and its ratio to clone."""
    others = {name: ratio for name, ratio in row["ratios"].items() if name not in (*NO_ROTATION, "rope_lib")}
    best = min(others, key=others.get)
    return best, others[best]


def setting(row: dict) -> str:
    """A row's setting in words."""
    return f"{row['mode']}, {row['dtype']}, {'interleaved' if row['interleaved'] else 'half-split'}"


def exponent(rows: list[dict], form: str, direction: str = "forward") -> float:
    """The growth of time with n, fitted to n >= 2048: 1 is linear, 2 quadratic."""
    far = [row for row in rows if row["n"] >= 2048]
    times = [row[direction][form] for row in far]
    return float(np.polyfit(np.log([row["n"] for row in far]), np.log(times), 1)[0])


def report(found: dict) -> str:
    """The tables, in Markdown."""
    lines = [", ".join(f"{key} {value}" for key, value in found["machine"].items()), ""]
    for row in found.get("rotation", []):
        lines.append(f"{tuple(row['shape'])} {setting(row)}, {row['direction']}: in clones of {row['clone_ms']} ms")
        ranked = sorted(row["ratios"].items(), key=lambda pair: pair[1])
        lines.append("    " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ranked))
        low, high = row["spread"]
        lines += [f"    rope_lib in nine rounds of ten: {low:.2f} to {high:.2f}", ""]
    if "bfloat16_errors" in found:
        ranked = sorted(found["bfloat16_errors"].items(), key=lambda pair: pair[1])
        lines.append("error in bfloat16 (root mean square), in multiples of one rounding; 0 returns float32")
        lines += ["    " + ", ".join(f"{name} {error:.2f}" for name, error in ranked), ""]
    rows = found.get("linear_attention", [])
    for direction in ("forward", "forward and backward") if rows else ():
        lines.append(f"linear attention, {direction}: ms, and as a share of softmax attention")
        for row in rows:
            times = row[direction]
            shares = ", ".join(f"{k} {v:.1f} ({v / times['softmax']:.3f})" for k, v in times.items())
            lines.append(f"    n = {row['n']}: {shares}")
        if sum(row["n"] >= 2048 for row in rows) > 1:
            fitted = ", ".join(f"{form} {exponent(rows, form, direction):.2f}" for form in rows[0][direction])
            lines += [f"    time grows as n to the power of: {fitted}", ""]
    memory = ", ".join(f"n = {row['n']}: {row['extra_bytes_per_output_byte']}" for row in rows if len(row) > 3)
    return "\n".join([*lines, f"extra memory of linear attention, in outputs: {memory}" if memory else ""])
