"""The relative family: scores of one text under each encoding, and an old experiment."""

import math
from itertools import cycle, product

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from figures.interactive import KEY_INK, QUERY_INK, SCORE_INK, Piece, View, colour_key, label
from figures.style import (
    BLUE,
    KEY,
    OTHER,
    QUERY,
    SCORE,
    VERMILLION,
    frame,
    name_if_flat,
    on_phone,
    sheet,
    signed,
    styled,
)
from rope_lib import RotaryEmbedding
from rope_lib.theory import relative
from rope_lib.theory.sinusoidal import sinusoidal_encoding

BLEU = {0: 12.5, 1: 25.5, 2: 25.8, 4: 25.9, 16: 25.8, 64: 25.9, 256: 25.8}  # Shaw et al. 2018, table 2; S3

ENTRIES = {  # what a method acts on, and where that stands in the drawing (in inches)
    "word": ("sines\nadded", (0.3, 1.72), [(0.3, 2.32), (0.3, 1.12)]),
    "turn": ("RoPE", (3.0, 1.92), [(3.0, 2.4), (3.0, 1.44)]),
    "key": ("Shaw, Transformer-XL", (2.2, 1.02), [(2.2, 1.44)]),
    "value": ("Shaw", (2.2, 0.12), [(2.2, 0.52)]),
    "score": ("T5, ALiBi: a number\nTUPE, DeBERTa: products", (4.3, 2.72), [(4.3, 1.98)]),
}
ENTRIES_BELOW = {  # the same where the drawing runs from top to bottom
    "word": ("sines\nadded", (1.47, 6.1), [(0.66, 6.1), (2.28, 6.1)]),
    "turn": ("RoPE", (1.15, 3.4), [(0.59, 3.4), (1.71, 3.4)]),
    "key": ("Shaw,\nTransf.-XL", (2.45, 4.3), [(1.79, 4.3)]),
    "value": ("Shaw", (2.65, 3.4), [(3.06, 3.4)]),
    "score": ("T5, ALiBi: a number\nTUPE, DeBERTa:\nproducts", (2.2, 2.1), [(1.2, 2.1)]),
}


def score_family(length: int = 24, dim: int = 16, *, equal: bool = False) -> dict[str, Tensor]:
    """(length, length) scores of one text of similar words, or of equal ones, under each encoding, as in a softmax."""
    generator = torch.Generator().manual_seed(5)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    unlike = 0.0 if equal else 0.5  # words that resemble each other
    q, k = (random(1, dim) + unlike * random(length, dim) for _ in range(2))
    if equal:
        q, k = q[:1].expand_as(q), k[:1].expand_as(k)
    positions = torch.arange(length)
    distance = relative.relative_distances(positions, positions)
    plain = q @ k.T / dim**0.5
    codes = sinusoidal_encoding(positions, dim, dtype=torch.float64)
    far = sinusoidal_encoding(torch.arange(-length, length), dim, dtype=torch.float64)
    mix = random(dim, dim) / dim**0.5
    turned = RotaryEmbedding(dim, interleaved=True)(q, k, positions=positions)
    return {
        "no position": plain,
        "Shaw": relative.shaw_scores(q, k, 2 * random(9, dim), distance),
        "Transformer-XL": relative.transformer_xl_scores(
            q, k, 2 * far[length:] @ mix, random(dim), random(dim), distance
        ),
        "T5": q @ k.T + relative.t5_bias(8 * random(32, 1), distance, bidirectional=True)[0],
        "ALiBi": plain + relative.alibi_bias(distance, torch.tensor([0.25]))[0],
        "TUPE": relative.tupe_scores(q, k, codes @ mix, 2 * codes),
        "DeBERTa": relative.deberta_scores(q, k, random(8, dim), random(8, dim), distance),
        "RoPE": turned[0] @ turned[1].T / dim**0.5,
    }


@styled
def draw_entry_points() -> Figure:
    """One head of attention, and an arrow from each method to what it acts on."""
    below = on_phone()
    figure = sheet(3.0, 6.5)
    figure.set_layout_engine("none")
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, figure.get_figwidth()), ylim=(0, figure.get_figheight()))
    ax.set_axis_off()

    def at(x: float, y: float) -> tuple[float, float]:
        """From left to right, or on a phone from top to bottom with the query on the left."""
        return (float(np.interp(y, (0.56, 1.4, 1.92, 2.44), (3.1, 1.75, 1.15, 0.55))), 6.4 - x) if below else (x, y)

    def box(x: float, y: float, text: str, shape: str = "round") -> None:
        frame = {"boxstyle": f"{shape},pad=0.35", "facecolor": "none", "edgecolor": "black"}
        ax.text(*at(x, y), text, ha="center", va="center", bbox=frame)

    def arrow(start: tuple[float, float], end: tuple[float, float], colour: str = "black", dash: str = "-") -> None:
        look = {"arrowstyle": "->", "color": colour, "linestyle": dash, "lw": 1.2, "shrinkA": 0}
        ax.annotate("", end, start, arrowprops=look)

    def step(start: tuple[float, float], end: tuple[float, float], colour: str = "black") -> None:
        arrow(at(*start), at(*end), colour)

    def wire(start: tuple[float, float], end: tuple[float, float], colour: str = "black") -> None:
        ax.plot(*zip(at(*start), at(*end), strict=True), color=colour, lw=1.2)

    for y, text in ((2.44, "$x_m$"), (1.0, "$x_n$")):
        ax.text(*at(0.3, y), text, ha="center", va="center")
    for start, y, name, text, colour in (
        (2.44, 2.44, "$W_q$", "query", QUERY),
        (1.0, 1.4, "$W_k$", "key", KEY),
        (1.0, 0.56, "$W_v$", "value", OTHER),
    ):
        step((0.45, start), (0.84, y))
        box(1.05, y, name)
        x_text, y_text = at(1.42 if below else 1.32, y)
        ax.text(x_text - 0.05 * below, y_text + 0.05, text, va="bottom", ha="right" if below else "left", color=colour)
        wire((1.27, y), (3.0, y), colour)
    step((3.0, 2.44), (3.54, 2.03), QUERY)
    step((3.0, 1.4), (3.54, 1.81), KEY)
    box(3.64, 1.92, r"$\cdot$", "circle")
    step((3.78, 1.92), (4.74, 1.92), SCORE)
    x, y = at(4.3, 1.92)
    ax.text(x - 0.05 * below, y - 0.05, "score", ha="right" if below else "center", va="top", color=SCORE)
    box(5.08, 1.92, "softmax")
    wire((5.3 if below else 5.42, 1.92), (5.8, 1.92))
    step((5.8, 1.92), (5.8, 0.71))
    x, y = at(5.86, 1.32)
    ax.text(x, y - 0.05 * below, "weight", ha="center" if below else "left", va="top" if below else "center")
    step((3.0, 0.56), (5.66, 0.56), OTHER)
    box(5.8, 0.56, r"$\Sigma$", "circle")
    step((5.96, 0.56), (6.2, 0.56))
    ax.text(*at(6.3, 0.56), "$o_m$", ha="center", va="center")
    for text, place, ends in (ENTRIES_BELOW if below else ENTRIES).values():
        ax.text(*place, text, ha="center", va="center", weight="bold")
        for end in ends:
            if below:  # from the side of the text
                start = place[0] + math.copysign(0.05 + 0.044 * max(map(len, text.split("\n"))), end[0] - place[0])
                arrow((start, end[1]), end, dash=":")
            else:
                side = math.copysign(0.2 if "\n" in text else 0.1, end[1] - place[1])
                arrow((end[0], place[1] + side), end, dash=":")
    return figure


@styled
def draw_score_family() -> Figure:
    """The matrices of `score_family`, less their means: of one word repeated, and of similar words."""
    equal, similar = score_family(equal=True), score_family()
    figure = sheet(6.9, 4.4)
    grid = figure.subplots(4, 4, sharex=True, sharey=True)
    order = [(2 * (i // 4), 1, i % 4) for i in range(8)]  # above each other, on a phone beside each other
    if on_phone():
        order = [(i // 2, 0, 2 * (i % 2)) for i in range(8)]
    for (row, down, column), name in zip(order, equal, strict=True):
        pair = grid[row, column], grid[row + down, column + 1 - down]
        for ax, scores in zip(pair, (equal[name], similar[name]), strict=True):
            centred = (scores - scores.mean()).numpy()
            ax.imshow(centred, **signed(centred))
            name_if_flat(ax, centred)
            ax.set(xticks=[0, 20], yticks=[0, 20])
            frame(ax)
            if name == "RoPE":
                ax.spines[:].set(linewidth=2, color=SCORE)
                ax.plot([0, 15], [8, 23], color="black", linestyle=":", linewidth=1)
        pair[0].set_title(name, loc="left", weight="bold" if name == "RoPE" else "normal")
    for ax, text in zip(grid[-1] if on_phone() else grid[:, 0], cycle(("one word", "similar"))):
        (ax.set_xlabel if on_phone() else ax.set_ylabel)(text, fontsize=8)
    figure.supxlabel("key position", fontsize=9)
    figure.supylabel("query position", fontsize=9)
    return figure


@styled
def draw_clipping_bleu() -> Figure:
    """BLEU for each clipping distance, as bars from zero."""
    figure = sheet(2.3)
    ax = figure.subplots()
    colours = [VERMILLION if reach == 0 else BLUE for reach in BLEU]
    ax.bar(range(len(BLEU)), BLEU.values(), color=colours, width=0.7)
    for place, value in enumerate(BLEU.values()):
        ax.annotate(f"{value}", (place, value), (0, 3), textcoords="offset points", ha="center")
    ax.text(-0.35, 31, r"$\kappa = 0$: only the mask is left", color=VERMILLION)
    ax.set_xticks(range(len(BLEU)), [str(reach) for reach in BLEU])
    ax.set(xlabel=r"clipping distance $\kappa$ (words)", ylabel="BLEU", ylim=(0, 34))
    return figure


def explore_family() -> Piece:
    """One score matrix at a time: choose the encoding, and whether all words are equal. Larger scores are stronger."""
    length, levels = 14, 8
    states = {}
    families = [score_family(length), score_family(length, equal=True)]
    for (i, name), equal in product(enumerate(families[0]), (0, 1)):
        scores = families[equal][name]
        spread = (scores.max() - scores.min()).item()
        stripes = [scores.diagonal(distance) for distance in range(1 - length, length)]
        flat = all(stripe.max() - stripe.min() < 1e-9 for stripe in stripes)
        level = ((scores - scores.min()) / max(spread, 1e-9) * levels).long().clamp(max=levels - 1)
        squares = dict.fromkeys(range(levels), "")
        for m, n in product(range(length), range(length)):
            squares[level[m, n].item()] += f"M{n} {m}h1"
        states[i, equal] = {f"level{part}": {"d": squares[part] or "M0 0"} for part in range(levels)}
        states[i, equal]["name"] = {"text": name}
        verdict = "equal along each diagonal: only the distance counts" if flat else "not equal along the diagonals"
        if spread < 1e-9:
            verdict = "all equal: not even the distance counts"
        elif not equal:
            verdict = "mixed with what the words are; one word repeated shows whether only the distance counts"
        states[i, equal]["verdict"] = {"text": verdict}
    squares = "".join(
        f'<path stroke="{SCORE_INK}" stroke-opacity="{part / (levels - 1):.2f}" data-part="level{part}"></path>'
        for part in range(levels)
    )
    svg = f'<g transform="translate(40 27.5) scale(19)" shape-rendering="crispEdges">{squares}</g>'
    svg += '<rect x="40" y="18" width="266" height="266" fill="none" stroke="currentColor"></rect>'
    svg += "".join(label(34, 32 + 247 * i, text, anchor="end") for i, text in enumerate(("0", "13")))
    svg += label(44, 12, "0") + label(306, 12, "13", anchor="end")
    across, down = (
        f'<tspan fill="{colour}">{name}</tspan> position' for name, colour in (("key", KEY_INK), ("query", QUERY_INK))
    )
    svg += label(173, 12, across, anchor="middle")
    svg += '<g transform="translate(16 151) rotate(-90)">' + label(0, 0, down, anchor="middle") + "</g>"
    svg += colour_key(141, 302, ("smallest", "largest"), [(SCORE_INK, part / (levels - 1)) for part in range(levels)])
    alt = "The matrix of scores of 14 queries and keys, stronger for larger scores."
    said = '<b data-part="name"></b>: the scores are <span data-part="verdict"></span>.'
    sliders = (("encoding", tuple(families[0]), 7), ("text", ("similar words", "one word repeated"), 1))
    return Piece("family", said, (View(alt, svg, (320, 308)),), sliders, states, buttons=(0, 1))


@styled
def draw_t5_buckets(*, reach: int = 160) -> Figure:
    """The bucket of each distance, for causal models and for both directions."""
    distances = torch.arange(-reach, reach + 1)
    figure = sheet(2.6)
    ax = figure.subplots()
    for both, colour, dash, name in ((False, BLUE, "-", "causal"), (True, VERMILLION, "--", "both directions")):
        buckets = relative.t5_bucket(distances, bidirectional=both)
        ax.plot(distances, buckets, dash, color=colour, drawstyle="steps-mid", label=name)
    ax.set_xscale("symlog", linthresh=16, linscale=1.2)
    shown = (0, 8, 16, 64) if on_phone() else (0, 4, 8, 12, 16, 32, 64, 128)
    places = sorted({sign * x for sign in (-1, 1) for x in shown})
    ax.set_xticks(places, [str(x).replace("-", "−") for x in places])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="distance $m - n$ (tokens); logarithmic from 16 on", ylabel="bucket")
    ax.legend(loc=(0, 0.15) if on_phone() else "lower right")
    return figure
