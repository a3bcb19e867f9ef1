"""Figures of the chapter on contexts longer than the trained one."""

import math
from itertools import product

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from figures.interactive import QUERY_INK, SCORE_INK, Piece, State, View, grip, label, line, path
from figures.style import BLUE, GREEN, GREY, OTHER, VERMILLION, on_phone, sheet, styled
from lab.extensions import EXTENSIONS
from rope_lib import inverse_frequencies
from rope_lib.scaling import linear_scaling, ntk_by_parts_scaling, ntk_scaling, yarn_scaling

METHODS = ("as trained", "linear", "NTK-aware", "by parts", "YaRN")


def speeds(method: str, *, dim: int, length: int, factor: float, base: float = 10000.0) -> Tensor:
    """(dim // 2,) float64: the speeds of a method, by its name in METHODS."""
    trained = {"factor": factor, "original_max_position_embeddings": length, "base": base}
    return {
        "as trained": lambda: inverse_frequencies(dim, base=base, device="cpu"),
        "linear": lambda: linear_scaling(dim, factor=factor, base=base),
        "NTK-aware": lambda: ntk_scaling(dim, factor=factor, base=base),
        "by parts": lambda: ntk_by_parts_scaling(dim, **trained),
        "YaRN": lambda: yarn_scaling(dim, **trained),
    }[method]()


@styled
def draw_turns_in_training(*, dim: int = 128) -> Figure:
    """How often each pair goes round within the trained length; below one turn, part of the circle is never seen."""
    figure = sheet(2.9)
    ax = figure.subplots()
    models = (("Llama 2: 4096 tokens, base 10,000", 4096, 1e4, BLUE), ("Llama 3: 8192, 500,000", 8192, 5e5, VERMILLION))
    for (name, length, base, colour), dash in zip(models, ("-", "--"), strict=True):
        turns = length * inverse_frequencies(dim, base=base).cpu().numpy() / (2 * np.pi)
        ax.semilogy(turns, color=colour, linestyle=dash)
        first = int((turns >= 1).sum())
        ax.plot(first, turns[first], "o", color=colour)
        text = f"{name}\n{dim // 2 - first} of {dim // 2} pairs below one turn"
        if on_phone():
            text = f"{name[:7]}: {dim // 2 - first} of\n{dim // 2} pairs below\none turn"
        ax.annotate(
            text,
            (first, turns[first]),
            xytext=(-8, -36 if on_phone() else -26) if base > 1e4 else (6, 14),
            textcoords="offset points",
            ha="right" if base > 1e4 else "left",
            color=colour,
            fontsize=8,
        )
    ax.axhline(1, color="0.5", linewidth=0.8)
    ax.axhspan(ax.get_ylim()[0], 1, color="0.5", alpha=0.12, linewidth=0)
    ax.set(xlabel="pair $i$", ylabel="turns within the trained length", xlim=(0, dim // 2 - 1))
    return figure


@styled
def draw_unmet_angles(*, dim: int = 128, length: int = 4096, factor: int = 8, base: float = 10000.0) -> Figure:
    """The cosine of the slowest pairs against the distance, within the trained length and beyond."""
    distance = np.linspace(0, factor * length, 801)
    inv_freq = inverse_frequencies(dim, base=base).cpu().numpy()
    figure = sheet(2.6)
    ax = figure.subplots()
    for pair, colour, dash in ((dim // 2 - 1, BLUE, "-"), (dim // 2 - 9, VERMILLION, "--")):
        ax.plot(distance, np.cos(distance * inv_freq[pair]), color=colour, linestyle=dash, label=f"pair {pair}")
    ax.axvspan(0, length, color="0.5", alpha=0.2, linewidth=0)
    ax.annotate("trained", (length / 2, -0.9), ha="center", fontsize=8, rotation=90 if on_phone() else 0)
    ticks = [length * multiple for multiple in range(0, factor + 1, 2)]
    ax.set(
        xlabel="distance (tokens)",
        ylabel="cosine of the angle",
        ylim=(-1.35, 1.05),
        xlim=(0, factor * length),
        xticks=ticks,
    )
    place = {"bbox_to_anchor": (0, 1)} if on_phone() else {"bbox_to_anchor": (0.4, 0)}
    ax.legend(loc="lower left", **place, ncols=2)
    return figure


@styled
def draw_hands(
    *, pairs: tuple[int, ...] = (0, 40, 63), dim: int = 128, length: int = 4096, factor: float = 8.0
) -> Figure:
    """Pairs as hands of a clock: the arc that each met in training, and beyond it the one of a longer text."""
    figure = sheet(2.6, 2.2)
    theta = inverse_frequencies(dim, device="cpu")
    for ax, pair in zip(figure.subplots(1, len(pairs)), pairs, strict=True):
        met, reached = (min(steps * theta[pair].item(), 2 * math.pi) for steps in (length, factor * length))
        for begin, end, colour in ((0, met, BLUE), (met, reached, VERMILLION)):
            angles = np.linspace(begin, end, 200)
            ax.plot(np.cos(angles), np.sin(angles), color=colour, linewidth=6, solid_capstyle="butt")
        circle = np.linspace(0, 2 * np.pi, 200)
        ax.plot(0.9 * np.cos(circle), 0.9 * np.sin(circle), color="0.5", linewidth=0.8)
        hand = length * theta[pair].item()
        ax.annotate("", (0.85 * np.cos(hand), 0.85 * np.sin(hand)), (0, 0), arrowprops={"arrowstyle": "-|>"})
        turns = hand / (2 * math.pi)
        ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", title=f"pair {pair}\n{turns:.3g} turns")
        ax.axis("off")
    return figure


@styled
def draw_scaled_speeds(*, dim: int = 128, length: int = 4096, factor: float = 8.0) -> Figure:
    """By how much each method slows each pair down."""
    plain = speeds("as trained", dim=dim, length=length, factor=factor)
    figure = sheet(2.8)
    ax = figure.subplots()
    styles = ((OTHER, ":"), (VERMILLION, "--"), (BLUE, "-"), (GREEN, "-."))
    for method, (colour, dash) in zip(METHODS[1:], styles, strict=True):
        ratio = plain / speeds(method, dim=dim, length=length, factor=factor)
        ratio = ratio.round(decimals=9)  # the last digits differ between processors
        ax.plot(ratio, color=colour, linestyle=dash, label=method)
    once = int((length * plain / (2 * math.pi) >= 1).sum())
    ax.axvline(once - 0.5, color="0.5", linewidth=0.8)
    ax.annotate("one turn", (once - 0.5, 1), xytext=(3, 2), textcoords="offset points", fontsize=8, color="0.4")
    ax.set(xlabel="pair $i$", ylabel="slowed down by", yscale="log", yticks=[1, 2, 4, 8], yticklabels=[1, 2, 4, 8])
    ax.minorticks_off()
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2 if on_phone() else 4)
    return figure


DIM, LENGTH, FACTORS = 32, 128, (1, 2, 4, 8)  # of the piece


def explore_longer() -> Piece:
    """Each method and factor: the turns of each pair within the new length, and the score of one probe."""
    states = {
        (i, j): longer_state(method, factor)
        for (i, method), (j, factor) in product(enumerate(METHODS), enumerate(FACTORS))
    }
    views = (
        View("Bars for the turns of 16 pairs, in training and in the longer text.", turns_of_pairs(), (320, 224)),
        View("The score of q = k against the distance, with the trained part shaded.", PROBE, (320, 224)),
    )
    said = (
        '“<span data-part="method"></span>” at <span data-part="factor"></span> × the trained length: '
        f'<b data-part="unseen"></b> of {DIM // 2} pairs come to angles never met (red).'
    )
    sliders = (("method", METHODS, 0), ("text length", tuple(f"{f} ×" for f in FACTORS), 3))
    return Piece("longer", said, views, sliders, states, buttons=(0,))


def longer_state(method: str, factor: int) -> State:
    """The turns, the score, and how many pairs come to angles that were not met in training."""
    distances = torch.linspace(8, 8 * LENGTH - 8, 127, dtype=torch.float64)
    near = distances[:, None] + torch.arange(-8, 8)  # their mean: single distances flicker with the fast pairs
    plain = speeds("as trained", dim=DIM, length=LENGTH, factor=1)
    scaled = speeds(method, dim=DIM, length=LENGTH, factor=factor)
    score = torch.cos(near[..., None] * scaled).mean((1, 2))
    unseen = (LENGTH * plain < 2 * math.pi) & (factor * scaled > plain * (1 + 1e-9))
    points = [
        (30 + 280 * x / (8 * LENGTH), 113 - 81 * y) for x, y in zip(distances.tolist(), score.tolist(), strict=True)
    ]
    return {
        "turns": {"d": bars(factor * LENGTH * scaled, ~unseen)},
        "unmet": {"d": bars(factor * LENGTH * scaled, unseen) or "M0 0"},
        "score": {"d": path(points)},
        "read": {"x": 65, "width": 35 * (factor - 1)},
        "grip": {"d": f"M{30 + 35 * factor} 184h0"},
        "unseen": {"text": int(unseen.sum())},
        "method": {"text": method},
        "factor": {"text": factor},
    }


def bars(angles: Tensor, shown: Tensor | None = None) -> str:
    """The turns of the pairs, of all or of those that are shown, as strokes at their heights."""
    turns = (angles / (2 * math.pi)).tolist()
    pairs = range(len(turns)) if shown is None else shown.nonzero().flatten().tolist()
    return "".join(f"M{24 + 17 * pair} {level(turns[pair])}h10" for pair in pairs)


CLOCKS, RADIUS = (0, 3, 6, 9), 32  # of 16 pairs: two that went round in training, and two that did not


def explore_hands() -> Piece:
    """Four pairs as hands of clocks: the arc of the training, and the one of a longer text, by each method."""
    states = {
        (i, j): hands_state(method, factor)
        for (i, method), (j, factor) in product(enumerate(METHODS), enumerate(FACTORS))
    }
    trained = LENGTH * speeds("as trained", dim=DIM, length=LENGTH, factor=1)
    svg = "".join(
        f'<g transform="translate({40 + 80 * place} 66)"><circle r="{RADIUS}" fill="none" stroke="currentColor" '
        'stroke-opacity=".3"></circle>'
        f'<path d="{arc(RADIUS, trained[pair].item())}" fill="none" stroke="currentColor" '
        'stroke-opacity=".45" stroke-width="9"></path>'
        f'<path class="rp-bend" fill="none" stroke="{QUERY_INK}" stroke-width="4" data-part="read{pair}"></path>'
        f'<path class="rp-bend" fill="none" stroke="var(--rp-wrong)" stroke-width="4" data-part="unmet{pair}"></path>'
        + label(0, 60, f"pair {pair}", anchor="middle")
        + label(0, 76, part=f"turns{pair}", anchor="middle")
        + "</g>"
        for place, pair in enumerate(CLOCKS)
    )
    svg += label(160, 14, "grey: met in training; now: blue, red if never met", anchor="middle")
    alt = (
        "Four clocks. A thick grey arc is what the hand met in training, a thin one what it comes to in the longer "
        "text, red where it was never before."
    )
    said = (
        '“<span data-part="method"></span>” at <span data-part="factor"></span> × the trained length: of these four '
        'hands <b data-part="unseen"></b> come to angles never met. Pair 0 turns by '
        '<b data-part="near"></b> rad a word; in training, by 1.'
    )
    sliders = (("method", METHODS, 0), ("text length", tuple(f"{f} ×" for f in FACTORS), 3))
    return Piece("hands", said, (View(alt, svg, (320, 148)),), sliders, states, buttons=(0,))


def hands_state(method: str, factor: int) -> State:
    """How far each of these hands comes, and how much of that was met in training."""
    plain = speeds("as trained", dim=DIM, length=LENGTH, factor=1)
    scaled = speeds(method, dim=DIM, length=LENGTH, factor=factor)
    state: State = {"method": {"text": method}, "factor": {"text": factor}, "near": {"text": f"{scaled[0]:.2g}"}}
    unseen = 0
    for pair in CLOCKS:
        met, now = LENGTH * plain[pair].item(), factor * LENGTH * scaled[pair].item()
        beyond = met < 2 * math.pi and now > met * (1 + 1e-9)
        unseen += beyond
        state[f"read{pair}"] = {"d": arc(RADIUS - 9, min(met, now) if beyond else now)}
        state[f"unmet{pair}"] = {"d": arc(RADIUS - 9, min(now, 2 * math.pi), begin=met) if beyond else "M0 0"}
        turns = now / (2 * math.pi)
        state[f"turns{pair}"] = {"text": f"{turns:.0f} turns" if turns >= 10 else f"{turns:.2g} turns"}
    return state | {"unseen": {"text": unseen}}


def arc(radius: float, end: float, *, begin: float = 0.0) -> str:
    """The d attribute of an arc around 0, counterclockwise, from one angle to another; at most one turn of it."""
    end = min(end, begin + 1.98 * math.pi)  # a whole turn would begin where it ends, and be nothing
    (x, y), (to_x, to_y) = ((radius * math.cos(angle), -radius * math.sin(angle)) for angle in (begin, end))
    return f"M{x:.1f} {y:.1f}A{radius} {radius} 0 {int(end - begin > math.pi)} 0 {to_x:.1f} {to_y:.1f}"


def turns_of_pairs() -> str:
    """The turns in training, grey, and those in the longer text."""
    trained = bars(LENGTH * speeds("as trained", dim=DIM, length=LENGTH, factor=1))
    return (
        f'<path d="{trained}" stroke="currentColor" stroke-opacity="0.45" stroke-width="3"></path>'
        f'<path stroke="{QUERY_INK}" stroke-width="5" data-part="turns"></path>'
        '<path stroke="var(--rp-wrong)" stroke-width="5" data-part="unmet"></path>'
        f'<path d="M20 {level(1)}H300" stroke="currentColor" stroke-dasharray="4 4"></path>'
        + label(300, level(1) - 6, "one turn", anchor="end")
        + label(12, 16, "turns of 16 pairs, grey: trained")
        + label(20, 216, "pair 0")
        + label(300, 216, "pair 15", anchor="end")
    )


PROBE = (
    '<rect x="30" y="24" width="35" height="170" fill="currentColor" fill-opacity="0.12"></rect>'
    '<rect y="24" height="170" fill="none" stroke="currentColor" stroke-dasharray="3 4" stroke-opacity="0.6" '
    'data-part="read"></rect>'
    '<path d="M30 113H310" stroke="currentColor" stroke-opacity="0.4"></path>'
    + line("score", SCORE_INK)
    + grip(1, part="grip")
    + label(30, 16, "score of a word with itself")
    + label(310, 216, "grey: trained, framed: now", anchor="end")
)


def level(turns: float) -> float:
    """Height in the drawing: a decade is 34."""
    return round(113 - 34 * math.log10(turns), 1)


NAMED = {  # and where the name stands beside the last point, in points
    "SmolLM3 3B": (4, -4), "Instella 3B": (4, -6), "Code Llama": (-3, 4), "Apple AFM": (-4, 4),
}  # fmt: skip


@styled
def draw_extensions() -> Figure:
    """Each published extension as a path over length and base; along a dotted line one and the same pair turns once."""
    figure = sheet(3.8)
    ax = figure.subplots()
    lengths = np.array([700, 1.4e6])
    for place in (0.55, 0.6, 0.65, 0.7, 0.75):
        bases = (lengths / (2 * math.pi)) ** (1 / place)
        ax.plot(lengths, bases, ":", color="0.6", linewidth=0.8)
        ax.text(1.6e6, bases[-1], f"{place:.2f}", fontsize=8, color=GREY, va="center")
    for extension in EXTENSIONS:
        by_rule = 0.8 < extension.used_over_rule < 1.25
        look = {"color": BLUE, "marker": "o"} if by_rule else {"color": GREY, "marker": "x", "linewidth": 0.8}
        ax.plot(*zip(*extension.stages, strict=True), markersize=3.5 if by_rule else 3, **look)
        if extension.name in NAMED:
            ax.annotate(
                extension.name,
                extension.stages[-1],
                xytext=NAMED[extension.name],
                textcoords="offset points",
                fontsize=8,
                color=look["color"],
                ha="right" if NAMED[extension.name][0] < 0 else "left",
            )
    ax.set(xscale="log", yscale="log", xlim=(800, 3e6), ylim=(6e3, 1e10))
    ax.set(xlabel="tokens of a training text", ylabel="base")
    return figure
