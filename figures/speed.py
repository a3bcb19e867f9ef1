"""What was measured: how long the rotation and linear attention take, from the stored results of the benchmark."""

import json
import pkgutil

from matplotlib.figure import Figure

import lab
from figures.style import BLUE, GREEN, OTHER, VERMILLION, WIDTH, styled


def stored_results() -> dict:
    """What `make bench` found on a CPU; read in a way that also works from a zip archive."""
    return json.loads(pkgutil.get_data(lab.__name__, "results/speed-cpu.json"))


def fastest_others() -> list[tuple[str, float, float, str]]:
    """For each setting of the first shape, forward: rope_lib's ratio to clone, the best other one, and its library."""
    found = []
    for row in _first_shape_forward():
        others = {name: ratio for name, ratio in row["ratios"].items() if name not in ("clone", "copy_", "rope_lib")}
        best = min(others, key=others.get)
        layout = "interleaved" if row["interleaved"] else "half-split"
        found.append((f"{row['mode']}, {row['dtype']}, {layout}", row["ratios"]["rope_lib"], others[best], best))
    return found


def _first_shape_forward() -> list[dict]:
    rows = stored_results()["rotation"]
    return [row for row in rows if row["shape"] == [1, 32, 4096, 128] and row["direction"] == "forward"]


@styled
def draw_rotation_speed() -> Figure:
    """Ratio to clone of every library, eager, forward, at the first shape; one panel per layout."""
    rows = [row for row in _first_shape_forward() if row["mode"] == "eager"]
    figure = Figure(figsize=(WIDTH, 3.2))
    for ax, interleaved in zip(figure.subplots(1, 2, sharex=True), (True, False), strict=True):
        ratios = {row["dtype"]: row["ratios"] for row in rows if row["interleaved"] is interleaved}
        names = sorted(ratios["float32"], key=ratios["float32"].get, reverse=True)
        names = [name for name in names if name not in ("clone", "copy_")]
        for dtype, marker, colour in (("float32", "o", BLUE), ("bfloat16", "s", VERMILLION)):
            values = [ratios[dtype].get(name) for name in names]
            ax.plot(values, range(len(names)), marker, color=colour, label=dtype, fillstyle="none")
        ax.axvline(1, color="0.5", linestyle="--", linewidth=1)
        ax.set_yticks(range(len(names)), names, fontsize=7)
        ax.get_yticklabels()[names.index("rope_lib")].set_weight("bold")
        ax.set(xscale="log", xlabel="time (clones)", xlim=(0.8, 150), ylim=(-0.6, len(names) - 0.4))
        ax.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        ax.set_xticks([], minor=True)
        ax.text(
            0.97, 0.97, "interleaved" if interleaved else "half-split", transform=ax.transAxes, ha="right", va="top"
        )
    ax.legend(loc="center right", fontsize=7)
    return figure


@styled
def draw_linear_attention_speed() -> Figure:
    """Milliseconds against the length of the text, forward, both axes logarithmic."""
    rows = stored_results()["linear_attention"]
    lengths = [row["n"] for row in rows]
    figure = Figure(figsize=(WIDTH, 2.8))
    ax = figure.subplots()
    styles = {
        "softmax": ("softmax attention", BLUE, "o-"),
        "naive chunks": ("chunks, written simply", OTHER, "^:"),
        "rotated": ("rope_lib, rotated numerator", GREEN, "s--"),
    }
    for form, (label, colour, style) in styles.items():
        times = [row["forward"][form] for row in rows]
        ax.plot(lengths, times, style, color=colour, fillstyle="none")
        ax.annotate(label, (lengths[-1], times[-1]), (6, 0), textcoords="offset points", color=colour, va="center")
    ax.set(xscale="log", yscale="log", xlabel="length of the text (tokens)", ylabel="time (ms)")
    shown = [n for n in lengths if n != 4096]  # its label would touch that of 2048
    ax.set_xticks(shown, [str(n) for n in shown])
    ax.set_xticks([], minor=True)
    ax.margins(x=0.03)
    return figure
