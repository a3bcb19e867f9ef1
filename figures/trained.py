"""Figures of the chapter on trained models: all from stored results."""

from itertools import pairwise, product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.interactive import KEY_INK, SCORE_INK, Piece, View, label
from figures.style import BLUE, GREEN, MAP, OTHER, VERMILLION, frame, on_map, on_phone, panels, sheet, styled
from lab.after_rope import at_best_rate, needles_of
from lab.experiments import (
    BACK,
    BEFORE,
    GRID,
    SEARCHES,
    at_its_rate,
    energies,
    needles_found,
    rescued,
    runs_of,
    shipped,
)  # fmt: skip
from lab.proposals import KINDS

NAMES = {"none": "none", "learned": "learned table", "sinusoidal": "sinusoidal", "alibi": "ALiBi", "rope": "RoPE"}
LOOKS = {
    "none": ("0.5", "o"), "learned": (OTHER, "s"), "sinusoidal": (BLUE, "^"), "alibi": (GREEN, "D"),
    "rope": (VERMILLION, "v"),
}  # fmt: skip


@styled
def draw_rescue() -> Figure:
    """The loss of the shipped model by position, as it is, cropped, and with the speeds of each method."""
    edges, losses = rescued()
    figure = sheet(3.2)
    ax = figure.subplots()
    looks = {"as it is": ("black", "-"), "cropped": (GREEN, "-"), "linear": (OTHER, ":"),
             "NTK-aware": (VERMILLION, "--"), "by parts": (BLUE, "-."), "YaRN": (BLUE, ":")}  # fmt: skip
    aside = {"as it is": 4, "linear": -2, "by parts": -5.5, "YaRN": 5.5}  # points: these lines end close together
    for method, (colour, dash) in looks.items():
        ax.plot(range(len(edges) - 1), losses[method], color=colour, linestyle=dash, marker="o", markersize=3)
        ax.annotate(
            method,
            (len(edges) - 2, losses[method][-1]),
            xytext=(5, aside.get(method, 0)),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
        )
    names = [f"{a}\nto {b}" if on_phone() else f"{a} to {b}" for a, b in pairwise(edges)]
    ax.set_xticks(range(len(names)), names)
    ax.axvspan(-0.4, 1.5, color="0.5", alpha=0.12, linewidth=0)
    ax.set(xlabel="position (bytes); shaded: trained", ylabel="loss (nats per byte)", xlim=(-0.4, len(names) - 0.2))
    return figure


HALVES = {"as it is": "as it is", "as it is, temperature": "temperature", "by parts": "speeds",
          "by parts, temperature": "both"}  # fmt: skip


@styled
def draw_needles() -> Figure:
    """The percentage of values found, by the letters before them and back to them: neither half, each, both."""
    figure = sheet(3.9, 6.6)
    panels, wide = list(product((1, 4), HALVES)), not on_phone()
    if not wide:
        panels = list(product(HALVES, (1, 4)))
    axes = figure.subplots(*((2, 4) if wide else (4, 2)), sharex=True, sharey=True).flat
    for ax, panel in zip(axes, panels, strict=True):
        keys, method = panel if wide else panel[::-1]
        found = needles_found(method, keys=keys).mean(0)
        _share_found(ax, found)
        many = "one key" if keys == 1 else "four keys"
        ax.set_title(f"{HALVES[method]}" if wide else f"{HALVES[method]}, {many}", fontsize=8)
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(f"{many}: letters before" if wide else "letters before")
        if ax.get_subplotspec().is_last_row():
            ax.set_xlabel("letters back")
    return figure


def _share_found(ax: Axes, found: np.ndarray) -> None:
    """Percentages for each (before, back), as numbers on the colours of a map; nan stays empty."""
    ax.imshow(np.ma.masked_invalid(found), cmap=MAP, vmin=0, vmax=100, aspect="auto")
    for (row, column), percent in np.ndenumerate(found):
        if not np.isnan(percent):
            colour = on_map(percent / 100)
            ax.text(column, row, f"{percent:.0f}", ha="center", va="center", color=colour, fontsize=8)
    frame(ax)
    ax.set_xticks(range(len(BACK)), BACK)
    ax.set_yticks(range(len(BEFORE)), BEFORE)


@styled
def draw_proposals_needles() -> Figure:
    """The percentage of values found by each kind, and by RoPE when it was dropped and recalibrated."""
    figure = sheet(3.9, 6.6)
    shape = (4, 2) if on_phone() else (2, 4)
    maps = {kind: needles_of(kind) for kind in KINDS} | {"RoPE, then dropped": needles_of("RoPE", "dropped")}
    for ax, (name, found) in zip(figure.subplots(*shape, sharex=True, sharey=True).flat, maps.items(), strict=True):
        _share_found(ax, found.mean(0))
        ax.set_title(name, fontsize=8)
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel("letters before")
        if ax.get_subplotspec().is_last_row():
            ax.set_xlabel("letters back")
    return figure


@styled
def draw_encodings() -> Figure:
    """The loss of each run: within the trained length, and beyond it."""
    return _dots({NAMES[name]: at_its_rate("encodings", name) for name in LOOKS}, list(LOOKS.values()))


@styled
def draw_linear_encodings() -> Figure:
    """The same for linear attention, with and without rotation and decay."""
    names = {"linear": "neither", "linear, rope": "rotation", "linear, decay": "decay", "linear, both": "both"}
    looks = [LOOKS["none"], LOOKS["rope"], LOOKS["alibi"], LOOKS["sinusoidal"]]
    return _dots({label: at_its_rate("linear", name) for name, label in names.items()}, looks)


@styled
def draw_proposals() -> Figure:
    """The same for what was proposed in the rotation's place."""
    own = [LOOKS[name] for name in ("rope", "none", "alibi", "sinusoidal", "learned")]
    looks = [*own, ("black", "x"), ("black", "P")]
    return _dots({kind: at_best_rate("proposals", kind) for kind in KINDS}, looks)


def _dots(runs: dict[str, list[dict]], looks: list[tuple[str, str]]) -> Figure:
    """One column of dots for each name, its seeds beside one another, at each group of positions."""
    figure = sheet(3.2)
    ax = figure.subplots()
    groups = ["32 to 64\n(trained)", "64 to 128", "128 to 256", "256 to 512"]
    apart = 0.75 / len(runs)
    for j, ((name, seeds), (colour, marker)) in enumerate(zip(runs.items(), looks, strict=True)):
        for seed, run in enumerate(seeds):
            values = run["by_position"][1:]
            places = [
                group + apart * (j - (len(runs) - 1) / 2 + (seed - (len(seeds) - 1) / 2) / 7.5)
                for group in range(len(values))
            ]
            once = None if seed else name
            ax.plot(places, values, marker, color=colour, markersize=4, markerfacecolor="none", label=once)
    ax.set_xticks(range(len(groups)), [name.replace(" to", "\nto") if on_phone() else name for name in groups])
    ax.set(xlabel="position (bytes)", ylabel="loss (nats per byte)")
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2 if on_phone() else 4}
    ax.legend(**above if len(runs) > 5 else {"ncols": 2})
    return figure


@styled
def draw_learning() -> Figure:
    """The loss while learning: five seeds of each encoding."""
    figure = sheet(2.8)
    ax = figure.subplots()
    for encoding, (colour, _) in LOOKS.items():
        for seed, run in enumerate(at_its_rate("encodings", encoding)):
            steps = [25 * (part + 0.5) for part in range(len(run["curve"]))]
            ax.plot(steps, run["curve"], color=colour, linewidth=0.8, label=None if seed else NAMES[encoding])
    ax.set(xlabel="step", ylabel="loss (nats per byte)", ylim=(1.7, 3.4))
    ax.legend(ncols=2)
    return figure


@styled
def draw_trained_speeds() -> Figure:
    """Each speed after training over its start, for each seed."""
    figure = sheet(2.5)
    ax = figure.subplots()
    for run in runs_of("speeds"):
        ax.plot(range(len(run["speed_ratios"])), run["speed_ratios"], "o", color=BLUE, markersize=4, alpha=0.7)
    ax.axhline(1, color="0.5", linewidth=0.8)
    ax.set(xlabel="pair $i$", ylabel="trained speed / start", yticks=[0.8, 1, 1.2, 1.4, 1.6, 1.8])
    return figure


@styled
def draw_heads() -> Figure:
    """The head that looks five places back: its attention, and the energy of its pairs for each seed."""
    runs = runs_of("heads")
    clearest = max(runs, key=lambda run: run["looks"])
    figure = sheet(2.8, 5.2)
    figure.get_layout_engine().set(wspace=0.1)
    left, right = panels(figure, 2, **{"height_ratios" if on_phone() else "width_ratios": (1, 1.2)})
    image = left.imshow(clearest["map"], cmap=MAP, vmin=0, vmax=1)
    left.set(xlabel="key at position", ylabel="query at position")
    frame(left)
    figure.colorbar(image, ax=left, label="attention", shrink=0.8)
    for run in runs:
        right.plot(range(len(run["energy"])), run["energy"], "o", color=BLUE, markersize=4, markerfacecolor="none")
    right.set(xlabel="pair $i$", ylabel="share of the energy", ylim=(0, None))
    return figure


@styled
def draw_energy() -> Figure:
    """The share of each pair in the energy of each head of the shipped model, on its trained length."""
    model, texts = shipped()
    shares = energies(model, texts[:, :128])
    figure = sheet(2.8)
    ax = figure.subplots()
    image = ax.imshow(
        shares.flatten(0, 1).round(decimals=4), cmap=MAP, vmin=0, aspect="auto"
    )  # the same on each machine
    frame(ax)
    layers, heads, pairs = shares.shape
    for layer in range(1, layers):
        ax.axhline(layer * heads - 0.5, color="0.5", linewidth=0.5)
    names = [f"layer {layer + 1}, head {head + 1}" for layer in range(layers) for head in range(heads)]
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set_xticks(range(0, pairs, 3 if on_phone() else 1))
    ax.set(xlabel="pair $i$ (0 is the fastest)")
    figure.colorbar(image, ax=ax, label="share of the energy")
    return figure


METHOD = {"cropped": "cropped: each layer sees its last 128 letters", "as it is": "as it was trained"}
NEEDLE = (  # one text: letters, a key and its value, letters, and the key that asks
    f'<text x="0" y="16">c a f … b <tspan fill="{KEY_INK}" font-weight="700">◆</tspan>'
    f'<tspan fill="{SCORE_INK}" font-weight="700">h</tspan> d g … e a c '
    f'<tspan fill="{KEY_INK}" font-weight="700">◆</tspan> ?</text>'
    + label(0, 34, "key ◆, value h: what stood behind the key?")
)


def explore_needles() -> Piece:
    """A method, one key or four: the share of values found, by the letters before them and the letters back to them."""
    first = "as it is", "cropped", "NTK-aware", "by parts", "YaRN"
    methods = *first, *(method for method in SEARCHES if method not in first)
    many, states = {1: "one key in the text", 4: "four keys in the text"}, {}
    for (i, method), (j, keys) in product(enumerate(methods), enumerate(many)):
        found, cells = needles_found(method, keys=keys).mean(0), {}
        for row, column in np.argwhere(~np.isnan(found)):
            percent = found[row, column]
            cells[f"c{row}{column}"] = {"fill-opacity": f"{0.0045 * percent:.2f}"}
            cells[f"n{row}{column}"] = {"text": f"{percent:.0f}%"}
        states[i, j] = cells | {
            "method": {"text": METHOD.get(method, method)}, "keys": {"text": many[keys]},
            "far": {"text": f"{found[0, -1]:.0f}%"}, "crowd": {"text": f"{found[-1, 0]:.0f}%"},
        }  # fmt: skip
    svg = (
        NEEDLE + label(186, 60, "letters back to the value (trained: 128)", anchor="middle") + label(0, 78, "before it")
    )
    svg += "".join(label(92 + 47 * column, 78, str(back), anchor="middle") for column, back in enumerate(BACK))
    svg += "".join(label(52, 106 + 40 * row, str(before), anchor="end") for row, before in enumerate(BEFORE))
    for before, back in GRID:
        row, column = BEFORE.index(before), BACK.index(back)
        svg += (
            f'<rect x="{69 + 47 * column}" y="{82 + 40 * row}" width="46" height="39" fill="{SCORE_INK}" '
            f'data-part="c{row}{column}"></rect>'
        ) + label(92 + 47 * column, 106 + 40 * row, part=f"n{row}{column}", anchor="middle")
    svg += label(305, 266, "empty: not tried", anchor="end")
    alt = (
        "A text of letters with a key, the letter behind it, and the key again at the end, which asks for that letter. "
        "Below it a table of percentages, the greener the more is found: downwards the letters before the value, "
        "across the letters from the question back to it. The models were trained on texts of at most 128 letters."
    )
    said = (
        '“<b data-part="method"></b>”, <span data-part="keys"></span>: 20 letters before the value and 900 back, '
        '<b data-part="far"></b> found; 900 before and 60 back, <b data-part="crowd"></b>. A guess finds 12.5 %.'
    )
    sliders = (("method", methods, 0), ("keys", ("one", "four"), 1))
    return Piece("needles", said, (View(alt, svg, (320, 288)),), sliders, states, buttons=(0, 1), few=len(first))
