"""Figures of the chapter on sinusoidal encoding."""

import math
from itertools import product

import numpy as np
import torch
from matplotlib.figure import Figure

from figures.interactive import (
    KEY_INK,
    OTHER_INK,
    QUERY_INK,
    Piece,
    State,
    View,
    colour_key,
    grip,
    label,
    minus,
    path,
    pointer,
)
from figures.style import BLUE, GREEN, MAP, OTHER, SIGNED, VERMILLION, frame, panels, sheet, signed, styled
from lab.similarity import closest_codes
from rope_lib import inverse_frequencies
from rope_lib.theory.decay import cosine_sum
from rope_lib.theory.sinusoidal import sinusoidal_encoding


def codes(length: int, dim: int, base: float = 10000.0) -> np.ndarray:
    """(length, dim) float64: the codes of positions 0 .. length - 1."""
    return sinusoidal_encoding(torch.arange(length), dim, base=base, dtype=torch.float64).numpy()


@styled
def draw_wavelengths(*, dim: int = 128, base: float = 10000.0) -> Figure:
    """How many tokens each pair needs for one full turn."""
    turn = 2 * np.pi / inverse_frequencies(dim, base=base).numpy()
    figure = sheet(2.6)
    ax = figure.subplots()
    ax.semilogy(turn, color=BLUE)
    for pair in (0, len(turn) - 1):
        ax.plot(pair, turn[pair], "o", color=BLUE)
        ax.annotate(
            f"pair {pair}: {turn[pair]:,.{1 if pair == 0 else 0}f} tokens",
            (pair, turn[pair]),
            xytext=(10, -5) if pair == 0 else (-10, 3),
            textcoords="offset points",
            ha="left" if pair == 0 else "right",
            va="center",
        )
    ax.set(xlabel="pair $i$", ylabel="tokens per full turn", ylim=(1, 2 * turn[-1]))
    return figure


@styled
def draw_sinusoidal_heatmap(*, length: int = 64, dim: int = 64, base: float = 10000.0) -> Figure:
    """The code of each position, one row per position."""
    figure = sheet(3.6)
    ax = figure.subplots()
    image = ax.imshow(codes(length, dim, base), cmap=SIGNED, aspect="auto", vmin=-1, vmax=1)
    ax.set(xlabel="dimension (even: sine, odd: cosine)", ylabel="position $m$ (tokens)")
    frame(ax)
    figure.colorbar(image, ax=ax, label="value", ticks=[-1, 0, 1])
    return figure


@styled
def draw_binary_clock(*, length: int = 32, bits: int = 5) -> Figure:
    """Binary digits beside a sinusoidal code whose pairs turn once in 2, 4, 8, ... tokens."""
    digits, waves = clock(length, bits)
    figure = sheet(2.8)
    for ax, values, title in zip(figure.subplots(2, 1, sharex=True), (digits, waves), ("digit", "wave"), strict=True):
        ax.imshow(values.T, cmap=MAP, aspect="auto", vmin=0, vmax=1)
        ax.set(ylabel=title, yticks=range(bits), yticklabels=[f"{2**b}s" for b in range(bits)])
        frame(ax)
    ax.set_xlabel("position $m$ (tokens)")
    return figure


def clock(length: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(length, bits) binary digits of 0 .. length - 1, and sines of the same periods, as values in [0, 1]."""
    m = np.arange(length)[:, None]
    period = 2.0 ** (np.arange(bits) + 1)
    return (m >> np.arange(bits)) & 1, 0.5 - 0.5 * np.sin(2 * np.pi * (m + 0.5) / period)


@styled
def draw_turning_digits(*, length: int = 8, bits: int = 3) -> Figure:
    """Each binary digit as a clock: it is 0 in the first half of the turn, and 1 in the second."""
    figure = sheet(2.6, 2.0)
    ax = figure.subplots()
    circle = np.linspace(0, 2 * np.pi, 100)
    for m, bit in product(range(length), range(bits)):
        turn = 2 * np.pi * m / 2 ** (bit + 1)  # clockwise, from the top
        ax.plot(m + 0.36 * np.cos(circle), -bit + 0.36 * np.sin(circle), color="0.6", linewidth=0.8)
        ax.plot((m, m + 0.34 * np.sin(turn)), (-bit, -bit + 0.34 * np.cos(turn)), color=BLUE, linewidth=1.8)
    for m in range(length):
        ax.text(m, -bits + 0.3, f"{m:0{bits}b}", ha="center", va="center", family="monospace")
    ax.set(xlim=(-0.6, length - 0.4), ylim=(-bits, 0.5), aspect="equal", yticks=[-bit for bit in range(bits)])
    ax.set(xticks=range(length), xlabel="place $m$, and in binary digits")
    ax.set_yticklabels([f"{2**bit}s" for bit in range(bits)])
    frame(ax)
    ax.tick_params(length=0)
    return figure


@styled
def draw_code_similarity(*, dims: tuple[int, ...] = (32, 128, 512), reach: int = 120, base: float = 10000.0) -> Figure:
    """The scalar product of two codes against their distance, divided by its value at distance 0."""
    delta = torch.arange(-reach, reach + 1, dtype=torch.float64)
    figure = sheet(2.8, 2.6)
    ax = figure.subplots()
    for dim, colour, dash in zip(dims, (BLUE, VERMILLION, GREEN, OTHER), ("-", "--", "-.", ":"), strict=False):
        ax.plot(
            delta,
            cosine_sum(delta, dim=dim, base=base) / (dim // 2),
            color=colour,
            linestyle=dash,
            label=f"$d = {dim}$",
        )
    ax.set(xlabel="shift $\\Delta$ (tokens)", ylabel="$PE_m \\cdot PE_{m+\\Delta}\\,/\\,(d/2)$", ylim=(0, 1.02))
    ax.legend()
    return figure


@styled
def draw_projected_similarity(*, length: int = 64, dim: int = 64, seed: int = 0) -> Figure:
    """Products of codes with nothing between them, and with two random matrices between them."""
    pe = codes(length, dim)
    rng = np.random.default_rng(seed)
    matrices = [np.eye(dim), *(rng.standard_normal((dim, dim)) / np.sqrt(dim) for _ in range(2))]
    titles = ["$PE_m^T PE_n$", "$PE_m^T W PE_n$, random $W$", "$PE_m^T W PE_n$, another $W$"]
    figure = sheet(2.5, 7.2)
    for ax, matrix, title in zip(panels(figure, 3, sharex=True, sharey=True), matrices, titles, strict=True):
        products = pe @ matrix @ pe.T
        ax.imshow(products, **signed(products))
        ax.set(xlabel="position $n$ (tokens)", ylabel="position $m$ (tokens)", title=title)
        ax.set(xticks=[0, 30, 60], yticks=[0, 30, 60])
        ax.label_outer()
        frame(ax)
    return figure


@styled
def draw_nearest_twin(*, length: int = 10000, dims: tuple[int, ...] = (2, 4, 8, 64), base: float = 10000.0) -> Figure:
    """The closest pair of codes among all positions up to a distance, per square root of the number of pairs."""
    delta = np.arange(1, length)
    figure = sheet(2.8)
    ax = figure.subplots()
    styles = zip(dims, (OTHER, VERMILLION, GREEN, BLUE), ("-", "--", "-.", "-"), strict=False)
    for dim, colour, dash in styles:
        closest = closest_codes(length, dim, base)
        ax.loglog(delta, closest, color=colour, linestyle=dash, drawstyle="steps-post")
        place = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "color": colour}
        ax.annotate(f"$d = {dim}$", (length, closest[-1]), **place)
    if length > 710 and 2 in dims:  # 710 is 113 turns of one rad per token but for 0.00006
        low = closest_codes(length, 2, base)[709]
        ax.annotate("710 = 2 · 355", (710, low), (-4, 8), textcoords="offset points", ha="right", color=OTHER)
    ax.set(xlabel="distances up to $\\Delta$ (tokens)", ylabel="smallest $|PE_m - PE_{m+\\Delta}|\\,/$√$(d/2)$")
    return figure


ROW = 6  # pixels of the heat map


def explore_code() -> Piece:
    """The heat map of sinusoidal codes with a cursor; the code at the cursor as bars, and each pair as a clock hand."""
    length, dim = 32, 16
    codes = sinusoidal_encoding(torch.arange(length), dim).tolist()
    states = {(m,): code_state(m, code) for m, code in enumerate(codes)}
    views = (
        View("Heat map of 32 sinusoidal codes of 16 numbers with a cursor.", code_map(codes), (320, 226)),
        View("The code at the cursor as 16 bars, and its 8 pairs as clock hands of different speed.",
             bars_and_hands(dim // 2), (320, 230)),
    )  # fmt: skip
    said = (
        'Position <b data-part="m"></b>: the fast hand, pair 0, stands at sine <b data-part="first"></b>. Two bars are '
        "a hand: its sine and its cosine."
    )
    return Piece("code", said, views, (("position", tuple(map(str, range(length))), 5),), states, play=0, pace=500)


def code_state(m: int, code: list[float]) -> State:
    """The cursor, the bars above and below zero, and the hands."""
    state = {"cursor": {"y": 10 + ROW * m}, "m": {"text": m}, "first": {"text": minus(f"{code[0]:.2f}")}}
    for name, negative in (("above", False), ("below", True)):
        bars = [f"M{33 + 18 * c} 52V{52 - 44 * v:.1f}" for c, v in enumerate(code) if (v < 0) is negative]
        state[name] = {"d": "".join(bars) or "M0 0"}
    for pair, speed in enumerate(inverse_frequencies(len(code)).tolist()):
        state[f"hand{pair}"] = {"style": f"--a:{math.degrees(m * speed) - 90:.1f}deg"}
    return state


def code_map(codes: list[list[float]], levels: int = 8) -> str:
    """A square for each number, in the colour of its sign, stronger for larger ones; and a cursor."""
    squares: dict[tuple[bool, int], str] = {}
    for (m, code), c in product(enumerate(codes), range(len(codes[0]))):
        kind = code[c] < 0, round(abs(code[c]) * levels)
        squares[kind] = squares.get(kind, "") + f"M{24 + 18 * c} {10 + ROW * m}h18v{ROW}h-18z"
    cells = "".join(
        f'<path fill="{KEY_INK if negative else QUERY_INK}" fill-opacity="{level / levels:g}" d="{d}"></path>'
        for (negative, level), d in sorted(squares.items())
        if level
    )
    return (
        cells
        + f'<rect x="22" width="292" height="{ROW}" fill="none" stroke="currentColor" stroke-width="2" '
        + 'data-part="cursor"></rect>'
        + label(24, 220, "numbers of the code")
        + colour_key(222, 220, ("−1", "1"), [(KEY_INK if v < 0 else QUERY_INK, abs(v) / 4) for v in range(-4, 5)])
        + f'<g transform="translate(14 106) rotate(-90)">{label(0, 0, "position, downwards", anchor="middle")}</g>'
    )


def bars_and_hands(pairs: int) -> str:
    """The code as bars, and below them its pairs as clock hands."""
    hands = "".join(
        f'<g transform="translate({51 + 72 * (pair % 4)} {126 + 64 * (pair // 4)})">'
        '<circle r="22" fill="none" stroke="currentColor" opacity=".4"></circle>'
        f'<g class="rp-turn" data-part="hand{pair}">{pointer(22, OTHER_INK)}</g>'
        f'<text y="37" text-anchor="middle">pair {pair}</text></g>'
        for pair in range(pairs)
    )
    return (
        f'<path stroke="{QUERY_INK}" stroke-width="12" data-part="above"></path>'
        f'<path stroke="{KEY_INK}" stroke-width="12" data-part="below"></path>'
        '<path d="M20 52h296" stroke="currentColor"></path>' + hands
    )


LAST, SPEED, LOOKS = 24, 0.5, 6  # places; rad a place; steps from one view to the next


def seen(look: int, m: float) -> tuple[float, float]:
    """Where a point of the spiral is seen, in pixels: from above at 0, from the side at LOOKS, along it at 2 LOOKS.

    The spiral runs to the right; its height is the cosine, and its depth the sine.
    """
    sine, cosine = math.sin(SPEED * m), math.cos(SPEED * m)
    above, along = (math.pi / 2 * max(0, share) for share in (1 - look / LOOKS, look / LOOKS - 1))
    x, y = on_axis(look, m)
    return x + 70 * sine * math.sin(along), y - 70 * (cosine * math.cos(above) + sine * math.sin(above))


def on_axis(look: int, m: float) -> tuple[float, float]:
    """Where the spoke of a place begins."""
    return 160 + 11 * (m - LAST / 2) * math.sin(math.pi / 2 * min(1, 2 - look / LOOKS)), 96


def explore_waves() -> Piece:
    """A spiral that one can turn: from above it is a sine, from the side a cosine, along its axis a clock hand."""
    looks = {0: "from above", LOOKS: "from the side", 2 * LOOKS: "from its end"}
    axes = {0: ("sine", "place"), LOOKS: ("cosine", "place"), 2 * LOOKS: ("cosine", "sine")}
    steps = tuple(looks.get(look, "on the way") for look in range(2 * LOOKS + 1))
    states = {}
    for look, m in product(range(2 * LOOKS + 1), range(LAST + 1)):
        tip, (up, right) = seen(look, m), axes.get(look, ("", ""))
        states[look, m] = {
            "spiral": {"d": path([seen(look, place / 4) for place in range(4 * LAST + 1)])},
            "axis": {"d": path([on_axis(look, 0), on_axis(look, LAST)])},
            "hand": {"d": path([on_axis(look, m), tip])},
            "tip": {"d": path([tip]) + "h0"},
            "held": {"d": path([tip]) + "h0"},
            "up": {"text": up},
            "right": {"text": right},
            "look": {"text": steps[look]},
            "m": {"text": m},
            "sine": {"text": minus(f"{math.sin(SPEED * m):.2f}")},
            "cosine": {"text": minus(f"{math.cos(SPEED * m):.2f}")},
        }
    drawing = (
        '<g fill="none" stroke="currentColor"><path class="rp-bend" stroke-width="2" data-part="spiral"></path>'
        '<path class="rp-bend" opacity=".45" data-part="axis"></path></g>'
        f'<g stroke="{OTHER_INK}" stroke-width="3" stroke-linecap="round">'
        '<path class="rp-bend" data-part="hand"></path>'
        '<path class="rp-bend" stroke-width="14" data-part="tip"></path></g>'
        + grip(1, part="held")
        + label(14, 16, part="up")
        + label(310, 196, part="right", anchor="end")
    )
    alt = "A spiral with a spoke at one place: a wave from above and from the side, a circle with a hand from its end."
    said = (
        'Place <b data-part="m"></b>, seen <span data-part="look"></span>: sine <b data-part="sine"></b>, cosine '
        '<b data-part="cosine"></b>.'
    )
    sliders = ("look", steps, LOOKS), ("place", tuple(map(str, range(LAST + 1))), 4)
    return Piece("waves", said, (View(alt, drawing, (320, 210)),), sliders, states, play=0, pace=200)
