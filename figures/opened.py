"""Figures of the chapter on a published model: all from stored results."""

from itertools import product

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures.interactive import KEY_INK, QUERY_INK, SCORE_INK, Piece, View, label, minus, packed_bars
from figures.style import BLUE, GREEN, MAP, OTHER, VERMILLION, frame, on_map, on_phone, panels, sheet, styled
from lab.opened import BACK, EDGES, FAR_GAPS, FIRST, LAST, NEAR_GAPS, far_copies, heads, stored
from rope_lib import inverse_frequencies

KINDS = {"this book's words": (BLUE, "o"), "documentation of Python": (VERMILLION, "^")}
TURNS = 8192 * inverse_frequencies(64, base=100_000).numpy() / (2 * np.pi)  # of each pair, in a text as in training
BELOW_A_TURN = int((TURNS >= 1).sum())  # the first pair that makes less than one


@styled
def draw_prices() -> Figure:
    """What each mistake costs: a mark for each of sixteen stretches of text."""
    found = stored("break it")["losses"]
    right = np.array(found.pop("right"))
    figure = sheet(3.9, 4.9)
    ax = figure.subplots()
    order = sorted(found, key=lambda name: np.mean(found[name]))
    for row, name in enumerate(order):
        prices = (np.array(found[name]) - right).reshape(2, -1)
        for shift, values, (kind, (colour, marker)) in zip((0.16, -0.16), prices, KINDS.items(), strict=True):
            heights = np.full(len(values), row + shift)
            named = None if row else kind
            ax.plot(values, heights, marker, color=colour, markersize=3.5, markerfacecolor="none", label=named)
    ax.set_yticks(range(len(order)), [wrapped(name) if on_phone() else name for name in order])
    ax.set(xlabel="price (nats per token)", xlim=(-0.1, None))
    figure.legend(loc="outside upper center", ncols=2, columnspacing=0.8, handletextpad=0.3)
    return figure


def wrapped(name: str) -> str:
    """A long name on two lines."""
    head, space, tail = name.partition(" in bfloat16")
    return f"{head}\n{space[1:]}{tail}" if space else name


@styled
def draw_pairs_in_use() -> Figure:
    """Energy by pair, with the band that was predicted; and what it costs to stop the pairs from p on."""
    figure = sheet(2.8, 5.4)
    left, right = panels(figure, 2)
    left.axvspan(20.5, 23.5, color="0.5", alpha=0.2, linewidth=0)
    left.bar(range(32), stored("energies")["mean"], color=BLUE)
    left.set(xlabel="pair $i$; shaded: predicted", ylabel="share of the energy")
    found = stored("which pairs")
    for n, colour, marker in (("384", GREEN, "o"), ("4096", VERMILLION, "^")):
        whole = np.array(found[n]["as it is"])
        cut = {int(name.split()[2]): np.array(x) - whole for name, x in found[n].items() if name.startswith("none")}
        places = sorted(cut)
        right.plot(
            places,
            [cut[p].mean() for p in places],
            marker=marker,
            color=colour,
            markersize=4,
            label=f"{int(n):,} tokens",
        )
        right.vlines(
            places, [cut[p].min() for p in places], [cut[p].max() for p in places], color=colour, linewidth=0.8
        )
    right.axhline(0, color="0.5", linewidth=0.8)
    right.set(xlabel="pairs from here on stand still", ylabel="price (nats per token)")
    right.legend()
    return figure


@styled
def draw_score_curves() -> Figure:
    """Mean scores by distance in six heads, as measured, and from the two mean vectors alone."""
    found = stored("scores by distance")
    figure = sheet(3.6, 5.6)
    axes = figure.subplots(*((3, 2) if on_phone() else (2, 3)), sharex=True)
    for ax, (name, curves) in zip(axes.flat, found["heads"].items(), strict=True):
        ax.plot(found["distances"], curves["mean"], color=BLUE, linewidth=3.5, alpha=0.5, label="measured")
        ax.plot(found["distances"], curves["predicted"], color="black", linewidth=1, label="from two means")
        ax.set_title(name.replace(", ", ",\n") if on_phone() else name)
        ax.set_xticks([0, 200, 400])
    axes[0, 0].legend()
    for ax in axes[-1]:
        ax.set_xlabel("distance" if on_phone() else "distance (tokens)")
    for ax in axes[:, 0]:
        ax.set_ylabel("mean score")
    return figure


@styled
def draw_reach() -> Figure:
    """The loss of a second half that was moved away, by the gap."""
    found = stored("reach")
    figure = sheet(2.9)
    ax = figure.subplots()
    gaps = [int(gap) for gap in found["by_gap"] if int(gap) <= 15_000]
    halves = np.array([found["by_gap"][str(gap)] for gap in gaps]).reshape(len(gaps), 2, -1)
    alone = np.array(found["second half alone"]).reshape(2, -1).mean(-1)
    for i, (kind, (colour, marker)) in enumerate(KINDS.items()):
        ax.plot(gaps, halves[:, i].mean(-1), color=colour, marker=marker, markersize=4, label=kind)
        ax.vlines(gaps, halves[:, i].min(-1), halves[:, i].max(-1), color=colour, linewidth=0.8)
        ax.axhline(alone[i], color=colour, linestyle=":", linewidth=1)
    ax.axvline(8192, color="0.5", linewidth=0.8)
    ax.annotate("8,192", (8192, 2.0), xytext=(4, 0), textcoords="offset points", color="0.5")
    ax.set(xlabel="gap (tokens); dotted: the second half alone", ylabel="loss (nats per token)")
    ax.legend(loc="upper left")
    return figure


COPIED = {"as it is": ("black", "o"), "pairs 22 to 25": (OTHER, "s"), "pairs 20 to 31": (BLUE, "^"),
          "YaRN": (VERMILLION, "v")}  # fmt: skip


@styled
def draw_copies() -> Figure:
    """What a copy of random words costs at each gap: within the trained length as it is, beyond it in some ways."""
    found = stored("rescue")
    figure = sheet(3.0, 3.6)
    ax = figure.subplots()
    ax.plot(NEAR_GAPS, found["copies by gap"], color="black", marker="o", markersize=4)
    for way, (colour, marker) in COPIED.items():
        ax.plot(FAR_GAPS, found["ways"][way]["copy, far"], color=colour, marker=marker, markersize=4, label=way)
    ax.axvspan(0, 8192, color="0.5", alpha=0.12, linewidth=0)
    ax.set(xlabel="gap (tokens); shaded: trained", ylabel="loss (nats per word)", ylim=(0, None))
    ax.legend(loc="lower right", ncols=2)
    return figure


@styled
def draw_rescue_map() -> Figure:
    """Far copies with pairs slowed: by 4 between two borders, and by several factors from one border on."""
    found, costs = stored("map of rescue"), far_copies().mean(-1).numpy()
    copy, factors = np.array(found["copy"]), found["factors"]
    lost = copy.max()
    figure = sheet(3.0, 5.6)
    left, right = panels(figure, 2)
    ends = FIRST[0] - 0.5, FIRST[-1] + 0.5, LAST[0] - 0.5, LAST[-1] + 0.5
    shades = {"cmap": MAP, "vmin": 0, "vmax": lost - copy.min(), "aspect": "auto"}
    left.imshow(lost - costs.T, origin="lower", extent=ends, **shades)
    for (first, last), cost in zip(product(FIRST, LAST), costs.flatten(), strict=True):
        colour = on_map((lost - cost) / shades["vmax"])
        left.text(first, last, f"{cost:.1f}", ha="center", va="center", fontsize=8, color=colour)
    left.add_patch(Rectangle((BELOW_A_TURN - 0.5, 30.5), 1, 1, fill=False, linewidth=1.5))
    left.set(xlabel="slowed by 4: from pair", ylabel="to pair", xticks=FIRST, yticks=LAST)
    picture = right.imshow(lost - copy, **shades)
    right.set_xticks(range(0, 33, 4))
    right.set_yticks(range(len(factors)), [f"{factor:g}" for factor in factors])
    right.set(xlabel="slowed: from pair, to 31", ylabel="factor")
    for ax in (left, right):
        ax.axvline(BELOW_A_TURN - 0.5, color="black", linewidth=1)
        frame(ax)
    bar = figure.colorbar(picture, ax=[left, right], label="loss (nats)")
    bar.set_ticks(lost - np.array([12, 10, 8, 6]), labels=["12", "10", "8", "6"])
    return figure


WAYS = {"as it is": ("black", "-"), "linear": (OTHER, ":"), "NTK-aware": (VERMILLION, "--"),
        "by parts": (BLUE, "-."), "pairs 20 to 31": (BLUE, ":")}  # fmt: skip


@styled
def draw_long_text() -> Figure:
    """The loss by position in texts of 16,384 tokens, both kinds, in seven ways."""
    figure = sheet(3.7, 7.2)
    places = range(len(EDGES) - 1)
    ends = [f"{edge // 1024}k" if edge >= 1024 else f"{edge}" for edge in EDGES[1:]]
    for ax, kind, name in zip(panels(figure, 2, sharey=True), ("book", "python"), KINDS, strict=True):
        for way, (colour, dash) in WAYS.items():
            losses = np.mean(stored("long text", kind=kind, way=way)["by_position"], axis=1)
            ax.plot(places, losses, color=colour, linestyle=dash, marker="o", markersize=3, label=way)
        for window, dash in (("window, first token in place", ":"), ("window, first token moved", "-")):
            kept = np.mean(stored("long window", kind=kind)[window], axis=1)
            ax.plot(places, kept, color=GREEN, linestyle=dash, marker="o", markersize=3, label=window)
        ax.axvspan(-0.4, 4.5, color="0.5", alpha=0.12, linewidth=0)
        ax.set_xticks(places, ends)
        ax.set(title=name, xlabel="position (tokens), up to; shaded: trained")
    figure.axes[0].set_ylabel("loss (nats per token)")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2 if on_phone() else 3)
    return figure


def explore_rescue() -> Piece:
    """Slow the pairs between two borders by 4: what copies 12,000 to 24,000 tokens away cost."""
    costs, states = far_copies().mean(-1), {}
    one_turn, lost = 8 + 9 * BELOW_A_TURN, np.mean(stored("map of rescue")["copy"][0])  # slowed by 1
    for (i, first), (j, last) in product(enumerate(FIRST), enumerate(LAST)):
        states[i, j] = {
            "pairs": {"d": f"M8 200V90H{8 + 9 * first}V172.5H{17 + 9 * last}V90H296V200Z"},
            "first": {"text": f"{first}"}, "last": {"text": f"{last}"},
            "most": {"text": f"{TURNS[first]:.2f}"}, "least": {"text": f"{TURNS[last]:.2f}"},
            "copy": {"text": f"{costs[i, j]:.1f}"}, "mark": {"cx": f"{20 + 20 * costs[i, j]:.0f}"},
        }  # fmt: skip
    svg = (
        f'<g transform="translate(0 -66)"><path fill="{QUERY_INK}" data-part="pairs"></path>'
        f'<path d="M8 200H300M{one_turn} 84V204" stroke="currentColor"></path>'
        + label(8, 80, "speed, as a share of the usual")
        + label(12, 216, "pair 0, fast")
        + label(one_turn, 216, "one turn", anchor="middle")
        + label(300, 216, "31, slow", anchor="end")
        + '<path d="M20 262H300" stroke="currentColor"></path>'
        + f'<circle cy="262" r="8" fill="{KEY_INK}" data-part="mark"></circle>'
        + label(20, 288, "0 nats")
        + label(300, 288, "14 nats", anchor="end")
        + "</g>"
    )
    alt = "The speeds of 32 pairs as shares of the usual, lower between two; below, what far copies cost."
    said = (
        'Pairs <b data-part="first"></b> to <b data-part="last"></b> turn 4 times as slowly. In training they made '
        '<span data-part="most"></span> to <span data-part="least"></span> turns. A word of a far copy costs '
        '<b data-part="copy"></b> nats, '
        f"{lost:.1f} if it is lost."
    )
    sliders = (
        ("from pair", tuple(map(str, FIRST)), FIRST.index(20)),
        ("to pair", tuple(map(str, LAST)), len(LAST) - 1),
    )
    return Piece("rescue", said, (View(alt, svg, (320, 230)),), sliders, states, buttons=(0,))


# -- The piece: a map of heads -----------------------------------------------------------------------------------------

COLOURED = {  # on its button: what a map shows, how much is darkest, and what that means
    "word before": (lambda found: found["back"][..., 1], 1.0, "all of it"),
    "first word": (lambda found: found["first"], 1.0, "all of it"),
    "64 back and more": (lambda found: found["back"][..., 7:].sum(-1), 1.0, "all of it"),
    "price in a text": (lambda found: found["text, all pairs"], 0.1, "0.1 nats or more"),
    "price in a copy": (lambda found: found["copy, all pairs"], 1.0, "1 nat or more"),
}
PLACES = (  # where a head looks: first at the first word, then by distance
    "at the first word", "at the word itself", "at the word before", "2 or 3 words back",
    *(f"{low} to {2 * low - 1} words back" for low in BACK[3:-1]), f"{BACK[-1]} and more words back",
)  # fmt: skip
HEADS = range(30), range(9)
STRONGEST = 0.4  # the share of the energy that a bar of full height stands for; what has more is cut


def explore_heads() -> Piece:
    """Each head of the published model: choose one, or a colour for all."""
    found, states = heads(), {}
    shades = [(of(found) / most).clamp(0, 1) for of, most, _ in COLOURED.values()]
    looks = torch.cat((found["first"][..., None], found["back"]), dim=-1)
    cells = [
        {f"c{layer}-{head}": {"fill-opacity": f"{shade[layer, head]:.2f}"} for layer, head in product(*HEADS)}
        for shade in shades
    ]
    for layer, head in product(*HEADS):
        at, most = looks[layer, head], int(looks[layer, head].argmax())
        state = {
            "mark": {"x": 10 + 10 * layer, "y": 24 + 11 * head},
            "pairs": {"bars": packed_bars((found["energy"][layer, head] / STRONGEST).tolist())},
            "looks": {"bars": packed_bars(at.tolist())},
            "layer": {"text": layer}, "head": {"text": head},
            "most": {"text": f"{PLACES[most]}, with {at[most]:.0%} of its attention"},
            "text": {"text": in_nats(found["text, all pairs"][layer, head])},
            "copy": {"text": in_nats(found["copy, all pairs"][layer, head])},
            "fast": {"text": in_nats(found["copy, pairs 0 to 7"][layer, head])},
        }  # fmt: skip
        for i, (*_, darkest) in enumerate(COLOURED.values()):
            states[layer, head, i] = state | cells[i] | {"darkest": {"text": f"strongest: {darkest}"}}
    squares = "".join(
        f'<rect x="{10 + 10 * layer}" y="{24 + 11 * head}" width="9" height="10" fill="{SCORE_INK}" '
        f'data-set="{layer},{head}" data-part="c{layer}-{head}"></rect>'
        for layer, head in product(*HEADS)
    )
    drawn = (
        label(10, 14, "270 heads: 30 layers of 9")
        + '<rect x="9.5" y="23.5" width="300" height="99" fill="none" stroke="currentColor" stroke-opacity=".4"></rect>'
        + f'<g style="cursor:pointer" pointer-events="all">{squares}</g>'
        + '<rect width="9" height="10" fill="none" stroke="currentColor" stroke-width="2.5" pointer-events="none" '
        'data-part="mark"></rect>'
        + label(10, 140, "layer 0")
        + label(310, 140, "29", anchor="end")
        + label(160, 140, part="darkest", anchor="middle")
    )
    ends = ("first", "0", "1", *(str(low) if low in (4, 16, 64, 256) else "" for low in BACK[2:]))
    bars = (
        label(10, 14, "pairs 0 to 31; top 40 % or more")
        + f'<path transform="translate(10 84) scale(9.4 2)" fill="{QUERY_INK}" data-part="pairs"></path>'
        + '<path d="M10 84H311M10 164H311" stroke="currentColor"></path>'
        + label(10, 106, "where it looks: words back")
        + f'<path transform="translate(10 164) scale(27.3 1.5)" fill="{KEY_INK}" data-part="looks"></path>'
        + "".join(label(23.6 + 27.3 * i, 179, end, anchor="middle") for i, end in enumerate(ends) if end)
    )
    views = (
        View("A map of squares, one for each head: layers from left to right, heads from above.", drawn, (320, 146)),
        View(
            "Bars for the share of each pair in the energy of the head, and for its attention by distance, the first "
            "word apart.",
            bars,
            (320, 184),
        ),
    )
    said = (
        'Layer <b data-part="layer"></b>, head <b data-part="head"></b> looks mostly <span data-part="most"></span>. '
        'Stopping its rotation adds <b data-part="text"></b> nats to the loss of a word in a text and '
        '<b data-part="copy"></b> in a copy, <span data-part="fast"></span> if only pairs 0 to 7 stop.'
    )
    sliders = (
        ("layer", tuple(map(str, HEADS[0])), 16),
        ("head", tuple(map(str, HEADS[1])), 0),
        ("colour", tuple(COLOURED), 4),
    )
    return Piece("heads", said, views, sliders, states, buttons=(2,))


def in_nats(price: float) -> str:
    """With its sign, and none if it is nothing."""
    return minus(f"{price:+.2f}") if abs(price) >= 0.005 else "0.00"
