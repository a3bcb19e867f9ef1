"""How bounds, expectations and scores change with the distance."""

import math
from itertools import cycle, pairwise, product

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from figures.interactive import (
    KEY_INK,
    QUERY_INK,
    SCORE_INK,
    Piece,
    State,
    View,
    grip,
    label,
    line,
    minus,
    packed_chain,
    path,
)
from figures.style import BLUE, GREEN, OTHER, SCORE, VERMILLION, on_phone, panels, sheet, styled
from figures.words import CAR, RED, rotated, two_words
from rope_lib import cos_sin, inverse_frequencies
from rope_lib.theory.decay import abel_bound, cosine_sum, cosine_sum_limit, mean_partial_sum

DISTANCE = "distance $\\Delta$ (tokens)"
BOUND = "$B_d(\\Delta)$"
LOOKS = ((VERMILLION, "--"), (BLUE, "-"), (GREEN, "-."))


def log_distances(reach: int, count: int = 600) -> Tensor:
    """Whole distances from 1 to reach, evenly spread on a logarithmic axis."""
    return torch.logspace(0, math.log10(reach), count, dtype=torch.float64).round().long().unique()


@styled
def draw_one_pair(*, distances: tuple[int, ...] = (0, 2, 5, 10)) -> Figure:
    """The circle of the first page with "red" at 0 and "car" at each distance, and the score of this pair alone."""
    figure = sheet(2.0, 3.9)
    rows = 2 if on_phone() else 1
    for ax, delta in zip(figure.subplots(rows, len(distances) // rows).flat, distances, strict=True):
        two_words(ax, delta, 0)
        score = (rotated(CAR, torch.tensor([delta]))[0] @ torch.tensor(RED, dtype=torch.float64)).item()
        ax.set_title(f"$\\Delta = {delta}$: score {minus(f'{score:.2f}')}", color=SCORE)
    return figure


@styled
def draw_decay_bound(*, dims: tuple[int, ...] = (64, 128, 256), reach: int = 256) -> Figure:
    """RoFormer's figure 2 for several dimensions, from distance 0."""
    distances = torch.arange(reach + 1)
    figure = sheet(3.0)
    ax = figure.subplots()
    looks = cycle(((VERMILLION, "--", -3), (BLUE, "-", 3), (GREEN, "-.", 3)))
    for dim, (colour, dash, up) in zip(dims, looks, strict=False):
        bound = mean_partial_sum(distances, dim=dim)
        ax.plot(distances, bound, dash, color=colour)
        ax.annotate(f"$d = {dim}$", (reach, bound[-1]), (4, up), textcoords="offset points", color=colour, va="center")
        ax.plot(0, bound[0], "o", color=colour, fillstyle="none")
    ax.set(xlabel=DISTANCE, ylabel=BOUND, ylim=(0, None))
    ax.margins(x=0.02)
    return figure


@styled
def draw_decay_long(*, dim: int = 128, reach: int = 10**6) -> Figure:
    """The same curve up to a million, with its start, its lower bound and the level at which it settles."""
    distances = log_distances(reach, 1200)
    pairs = dim // 2
    figure = sheet(3.0)
    ax = figure.subplots()
    ax.semilogx(distances, mean_partial_sum(distances, dim=dim), color=BLUE, linewidth=0.8)
    levels = (
        ((pairs + 1) / 2, "$B_d(0) = (N+1)/2$", VERMILLION, "--"),
        (math.sqrt(math.pi * pairs) / 3, "√$(\\pi N)$ / 3", GREEN, "-."),
        (0.5, "$1/2$", OTHER, ":"),
    )
    for level, text, colour, dash in levels:
        ax.axhline(level, color=colour, linestyle=dash, linewidth=1)
        ax.annotate(text, (reach, level), (4, 0), textcoords="offset points", color=colour, va="center")
    ax.set(xlabel=DISTANCE, ylabel=BOUND, xlim=(1, reach), ylim=(0, None))
    return figure


def middle_and_band(dim: int, base: float, *, reach: int = 10**5, bins: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Distances and B_d over its start there: the median of each bin, and its smallest and largest value: (3, bins)."""
    edges = torch.logspace(0, math.log10(reach), bins + 1, dtype=torch.float64).round().long().unique().tolist()
    centres, shares = [], []
    for low, high in pairwise(edges):
        distances = torch.linspace(low, high - 1, min(high - low, 100), dtype=torch.float64).round().long()
        values = mean_partial_sum(distances, dim=dim, base=base) / ((dim // 2 + 1) / 2)
        centres.append(math.sqrt(low * (high - 1)))
        shares.append(torch.stack([values.quantile(0.5), values.min(), values.max()]))
    return np.array(centres), torch.stack(shares, dim=1).numpy()


@styled
def draw_decay_families(
    *, bases: tuple[float, ...] = (1e2, 1e4, 1e6), dims: tuple[int, ...] = (32, 128, 512)
) -> Figure:
    """B_d over its value at 0: for several bases (d = 128), and for several dimensions (base 10000)."""
    figure = sheet(3.0, 5.2)
    families = (
        [(f"$b = 10^{{{math.log10(base):.0f}}}$", 128, base) for base in bases],
        [(f"$d = {dim}$", dim, 1e4) for dim in dims],
    )
    for ax, family in zip(panels(figure, 2, sharex=True, sharey=True), families, strict=True):
        for (name, dim, base), (colour, dash) in zip(family, cycle(LOOKS), strict=False):
            distances, (middle, low, high) = middle_and_band(dim, base)
            ax.fill_between(distances, low, high, color=colour, alpha=0.18, linewidth=0)
            ax.semilogx(distances, middle, dash, color=colour, label=name)
            if name.startswith("$d"):
                aside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
                ax.annotate(name, (distances[-1], middle[-1]), **aside, color=colour)
        ax.set(xlabel=DISTANCE, ylabel="$B_d(\\Delta)\\,/\\,B_d(0)$", xlim=(1, 1e5), ylim=(0, 1))
        ax.label_outer()
    figure.axes[0].legend()  # these lines end in one another, and a label between them would touch them
    return figure


@styled
def draw_bound_and_score(*, dim: int = 128, reach: int = 10**5) -> Figure:
    """For one random q and k = q: the bound by Abel's sum, the sum of |h_i|, and |score|, on logarithmic axes."""
    distances = log_distances(reach, 500)
    q = torch.randn(dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = q.view(-1, 2).square().sum(-1)
    cos, _ = cos_sin(distances, inverse_frequencies(dim), dtype=torch.float64)
    figure = sheet(3.0)
    ax = figure.subplots()
    lines = (
        (abel_bound(h, distances), "Abel's bound", VERMILLION, "--", 5),
        (h.sum().expand(distances.shape), "$\\sum_i |h_i|$", BLUE, "-.", 12),
        ((h * cos).sum(-1).abs(), "|score|", SCORE, "-", -14),
    )
    for values, text, colour, dash, up in lines:
        ax.loglog(distances, values, dash, color=colour, linewidth=1)
        ax.annotate(text, (1, values[0]), (8, up), textcoords="offset points", color=colour)
    ax.set(xlabel=DISTANCE, ylabel="score", xlim=(1, reach))
    return figure


@styled
def draw_cosine_decay(*, dims: tuple[int, ...] = (64, 512), base: float = 10000.0) -> Figure:
    """C_d over the number of pairs, its limit for many pairs, and the logarithm."""
    distances = log_distances(100_000)
    figure = sheet(3.0)
    ax = figure.subplots()
    for dim, colour, dash in zip(dims, (VERMILLION, BLUE), (":", "--"), strict=True):
        ax.semilogx(distances, cosine_sum(distances, dim=dim, base=base) / (dim // 2), dash, color=colour, linewidth=1)
        ax.lines[-1].set_label(f"$d = {dim}$")
    ax.semilogx(distances, cosine_sum_limit(distances, base=base), color=SCORE, label="limit for large $d$")
    line = 1 - (np.euler_gamma + distances.log()) / math.log(base)
    ax.semilogx(distances, line, "-", color="0.5", linewidth=1, label="$1 - (\\gamma_E + \\ln\\Delta)\\,/\\,\\ln b$")
    ax.axhline(0, color="0.5", linewidth=0.5)
    ax.set(xlabel=DISTANCE, ylabel="$C_d(\\Delta)\\,/\\,N$", xlim=(1, 100_000))
    ax.legend()
    return figure


@styled
def draw_any_distance(*, winners: tuple[int, ...] = (0, 50, 200), dim: int = 128, reach: int = 256) -> Figure:
    """Scores of one query with the keys R_r q, over |q|^2: each is largest at its own distance r."""
    q = torch.randn(dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = q.view(-1, 2).square().sum(-1) / q.square().sum()
    distances = torch.arange(reach + 1)
    figure = sheet(2.8)
    ax = figure.subplots()
    for r, colour, dash in zip(winners, (BLUE, VERMILLION, GREEN), ("-", "--", "-."), strict=True):
        cos, _ = cos_sin(distances - r, inverse_frequencies(dim), dtype=torch.float64)
        ax.plot(distances, (h * cos).sum(-1), dash, color=colour, linewidth=1)
        place = (3, 16 if on_phone() and r == winners[1] else 5)
        ax.annotate(f"$k = R_{{{r}}}\\,q$", (r, 1), place, textcoords="offset points", color=colour)
    ax.set(xlabel=DISTANCE, ylabel="score $/\\,|q|^2$", ylim=(None, 1.22 if on_phone() else 1.14))
    return figure


def explore_winner() -> Piece:
    """Of the keys R_r q each wins at its own distance: choose r."""
    reach, high, low = 128, 34, 150  # of the curve: distances, and the heights of 1 and of 0 in the drawing
    q = torch.randn(128, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    h = q.view(-1, 2).square().sum(-1) / q.square().sum()
    distances, states = torch.arange(reach + 1), {}
    winners = range(0, reach + 1, 8)
    for place, r in enumerate(winners):
        cos, _ = cos_sin(distances - r, inverse_frequencies(128), dtype=torch.float64)
        scores = (h * cos).sum(-1)
        points = [(40 + 2 * d, low - (low - high) * score) for d, score in enumerate(scores.tolist())]
        states[place,] = {
            "curve": {"d": path(points)}, "winner": {"cx": 40 + 2 * r}, "grip": {"d": f"M{40 + 2 * r} {high}h0"},
            "r": {"text": r}, "second": {"text": f"{scores[distances != r].max():.2f}"},
            "next": {"text": "neighbours come" if 0 < r < reach else "neighbour comes"},
        }  # fmt: skip
    svg = (
        f'<path d="M40 {low}H300M40 {high}v{low - high}" stroke="currentColor" stroke-opacity=".4"></path>'
        + line("curve", SCORE_INK)
        + f'<circle r="6" cy="{high}" fill="{KEY_INK}" data-part="winner"></circle>{grip(0, part="grip")}'
        + label(34, high + 4, "1", anchor="end")
        + label(34, low + 4, "0", anchor="end")
        + label(40, 16, "score, as a share of the largest possible")
        + label(40, 184, "distance 0")
        + label(296, 184, str(reach), anchor="end")
    )
    alt = "A curve that is highest, at 1, at the chosen distance, and falls to both sides; a dot marks its top."
    said = (
        'The same query, and a key made for distance <b data-part="r"></b>: there its score is largest. Its '
        '<span data-part="next"></span> next, with <b data-part="second"></b> of it.'
    )
    sliders = (("a key made for", tuple(map(str, winners)), 12),)
    return Piece("winner", said, (View(alt, svg, (320, 192)),), sliders, states, play=0, pace=500)


# -- The piece: a chain of arrows --------------------------------------------------------------------------------------

CHAIN_DIMS, CHAIN_BASES, REACH = (4, 16, 32, 128), (100, 10_000, 1_000_000), 10**5
LEFT, COLUMNS = 52, 129  # of the curve: where distance 1 is, and how many columns of 2 units
FLOOR, HIGH = 162, 138  # where it is 0, and how high it is at 1
WIDE, RADIUS = 150, 108  # half of the chain's field, across and up


def column(distances: Tensor) -> Tensor:
    """The column of the curve that a distance from 1 to REACH is in."""
    return (distances.log10() / math.log10(REACH) * COLUMNS).long().clamp(max=COLUMNS - 1)


def decay_bands(dim: int, base: float) -> tuple[Tensor, Tensor]:
    """(COLUMNS,) least and largest B in each column: of all whole distances there, and of four at least."""
    edges = torch.logspace(0, math.log10(REACH), 4 * COLUMNS, dtype=torch.float64)
    distances = torch.cat([edges, torch.arange(1, REACH + 1, dtype=torch.float64)])
    bound, at = mean_partial_sum(distances, dim=dim, base=base), column(distances)
    empty = torch.zeros(COLUMNS, dtype=torch.float64)
    return tuple(empty.scatter_reduce(0, at, bound, how, include_self=False) for how in ("amin", "amax"))


def band(least: Tensor, largest: Tensor, start: float) -> str:
    """One upright stroke for each column, in half units, at least 3 high so that a smooth curve stays a line."""
    d, last = f"M{2 * LEFT + 2} 0", 0
    for index, (low, high) in enumerate(zip((least / start).tolist(), (largest / start).tolist(), strict=True)):
        top, bottom = (round(2 * FLOOR - 2 * HIGH * share) for share in (high, low))
        top, bottom = (top - 1, top + 2) if bottom - top < 3 else (top, bottom)
        d += f"m{4 * (index > 0)} {top - last}v{bottom - top}"
        last = bottom
    return d


def explore_decay() -> Piece:
    """The sums S_j as the corners of a chain of arrows, and B_d: the mean distance of the corners from the start."""
    spread = torch.logspace(0, math.log10(REACH), 42, dtype=torch.float64).round().unique()
    distances = torch.cat([torch.zeros(1, dtype=torch.float64), spread])
    states = {}
    for (i, dim), (j, base) in product(enumerate(CHAIN_DIMS), enumerate(CHAIN_BASES)):
        for step, state in enumerate(chain_states(distances, dim, base)):
            states[step, i, j] = state
    views = (
        View(
            "A chain of arrows of equal length, one for each pair, turned by the distance times the speed of the pair; "
            "a ring around its start has the mean distance of its corners as radius.",
            CHAIN,
            (320, 242),
        ),
        View(
            "B over its value at 0 against the distance, on a logarithmic axis: in each column from the least to the "
            "largest value. A dot marks the distance of the chain.",
            bound_curve(),
            (320, 206),
        ),
    )
    said = (
        'At distance <b data-part="distance"></b> the corners of a chain of <span data-part="pairs"></span> arrows lie '
        '<b data-part="bound"></b> from its start on average; at distance 0, <span data-part="start"></span>.'
    )
    sliders = (
        ("distance Δ", tuple(f"{x:,.0f}" for x in distances.tolist()), 19),
        ("dimension d", tuple(map(str, CHAIN_DIMS)), 3),
        ("base b", tuple(f"{b:,}" for b in CHAIN_BASES), 1),
    )
    return Piece("decay", said, views, sliders, states, buttons=(1, 2), play=0, pace=300)


def chain_states(distances: Tensor, dim: int, base: float) -> list[State]:
    """The chain, its ring, and the place on the curve, at each distance."""
    pairs, start = dim // 2, (dim // 2 + 1) / 2
    cos, sin = cos_sin(distances, inverse_frequencies(dim, base=base), dtype=torch.float64)
    corners = torch.complex(cos, sin).cumsum(-1)
    bounds = mean_partial_sum(distances, dim=dim, base=base).tolist()
    bars = band(*decay_bands(dim, base), start)
    level = FLOOR - HIGH * math.sqrt(math.pi * pairs) / 3 / start
    states = []
    for distance, sums, bound in zip(distances.tolist(), corners, bounds, strict=True):
        across = LEFT + 2 * COLUMNS * math.log10(distance) / math.log10(REACH) if distance else 36.0
        across_field, up = WIDE / sums.real.abs().max().item(), RADIUS / max(sums.imag.abs().max().item(), bound)
        room = min(across_field, up) * pairs / RADIUS + 1e-9
        zoom = max(z for z in (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 12, 16) if z <= room)
        states.append(
            {
                "unit": {"transform": f"scale({RADIUS / pairs / 240:.5f})"},
                "zoom": {"style": f"--z:{zoom}"},
                "times": {"text": zoom},
                "chain": {"chain": packed_chain(sums.tolist())},
                "ring": {"r": round(240 * bound)},
                "curve": {"d": bars},
                "level": {"d": f"M{LEFT} {level:.1f}H310"},
                "dot": {"cx": round(2 * across), "cy": round(2 * FLOOR - 2 * HIGH * bound / start)},
                "cursor": {"d": f"M{across:.1f} {FLOOR - HIGH}V{FLOOR}"},
                "distance": {"text": f"{distance:,.0f}"},
                "bound": {"text": f"{bound:.2f}"},
                "start": {"text": f"{start:g}"},
                "pairs": {"text": pairs},
            }
        )
    return states


CHAIN = (
    f'<g transform="translate(160 132)"><path d="M{-WIDE} 0H{WIDE}M0 {-RADIUS}V{RADIUS}" stroke="currentColor" '
    'opacity=".2"></path>'
    '<g data-part="unit"><g class="rp-zoom" data-part="zoom">'
    f'<circle fill="{SCORE_INK}" fill-opacity=".13" stroke="{SCORE_INK}" stroke-width="1.5" '
    'vector-effect="non-scaling-stroke" data-part="ring"></circle>'
    f'<path class="rp-bend" fill="none" stroke="{QUERY_INK}" stroke-width="1.5" stroke-linejoin="round" '
    'vector-effect="non-scaling-stroke" data-part="chain"></path></g></g>'
    '<circle r="3" fill="currentColor"></circle></g>'
    '<text x="4" y="14">zoom <tspan data-part="times"></tspan> ×</text>'
    f'<text x="316" y="14" text-anchor="end" style="fill:{SCORE_INK}">ring: mean from start</text>'
)


def bound_curve() -> str:
    """B against the distance, with a dot at one."""
    ticks = "".join(
        label(LEFT + 51.6 * power, FLOOR + 18, text, anchor="middle")
        for power, text in enumerate(("1", "10", "100", "1000", "10⁴", "10⁵"))
    )
    return (
        f'<path d="M{LEFT} {FLOOR - HIGH}V{FLOOR}H310M36 {FLOOR - 4}v8" fill="none" stroke="currentColor"></path>'
        + label(30, FLOOR - HIGH + 6, "1", anchor="end")
        + label(36, FLOOR + 18, "0", anchor="middle")
        + ticks
        + label(310, FLOOR + 38, "distance Δ (tokens)", anchor="end")
        + label(LEFT + 4, 14, "RoFormer’s curve")
        + label(310, 14, "dashed: level", anchor="end")
        + f'<g transform="scale(.5)"><path stroke="{QUERY_INK}" stroke-width="4" data-part="curve"></path></g>'
        + '<path stroke="currentColor" stroke-width="1.5" stroke-dasharray="5 4" data-part="level"></path>'
        + '<path stroke="currentColor" opacity=".35" data-part="cursor"></path>'
        + f'<g transform="scale(.5)"><circle r="12" fill="{SCORE_INK}" stroke="var(--rh-paper,Canvas)" '
        'stroke-width="4" data-grip="0" style="cursor:grab;touch-action:none" data-part="dot"></circle></g>'
    )
