"""Figures of the page RoPE in five minutes."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from figures.rotation import arrow, plane, turn
from figures.style import KEY, OTHER, QUERY, SCORE, on_phone, sheet, styled

BOXES = {  # name: (text, x, y, colour)
    "words": ("words\n(no position)", -0.2, 1.0, None),
    "W_q": ("$W_q$", 1.0, 2.0, QUERY),
    "W_k": ("$W_k$", 1.0, 1.0, KEY),
    "W_v": ("$W_v$", 1.0, 0.0, OTHER),
    "turn q": ("turn by\n$m\\,\\theta_i$", 2.25, 2.0, QUERY),
    "turn k": ("turn by\n$n\\,\\theta_i$", 2.25, 1.0, KEY),
    "scores": ("scores\n$q^T R_{n-m} k/\\sqrt{d}$", 3.7, 1.5, SCORE),
    "softmax": ("softmax", 5.0, 1.5, None),
    "sum": ("weighted\nsum", 5.0, 0.0, OTHER),
}
ARROWS = (
    ("words", "W_q"), ("words", "W_k"), ("words", "W_v"), ("W_q", "turn q"), ("W_k", "turn k"),
    ("turn q", "scores"), ("turn k", "scores"), ("scores", "softmax"), ("softmax", "sum"), ("W_v", "sum"),
)  # fmt: skip
HALF_WIDTH, HALF_HEIGHT = 0.36, 0.28


@styled
def draw_idea(*, places: tuple[tuple[int, int], ...] = ((2, 0), (5, 3), (8, 6)), theta: float = np.pi / 9) -> Figure:
    """A text with two words marked, and their query and key turned by the positions: always two words apart."""
    q, k = np.exp(0.35j), 0.8 * np.exp(0.75j)
    figure = sheet(2.9, 7.6)
    if on_phone():
        texts, planes = figure.subplots(2 * len(places), 1, height_ratios=(1, 5) * len(places)).reshape(-1, 2).T
    else:
        texts, planes = figure.subplots(2, len(places), height_ratios=(1, 6))
    for text, ax, (m, n) in zip(texts, planes, places, strict=True):
        text_row(text, {m: ("q", QUERY), n: ("k", KEY)})
        plane(ax, 1.3)
        ends = turn(q, m, theta), turn(k, n, theta)
        for start, end, colour, name in zip((q, k), ends, (QUERY, KEY), "qk", strict=True):
            arrow(ax, start, colour, faint=True)
            arrow(ax, end, colour)
            ax.annotate(f"${name}$", (1.17 * end.real, 1.17 * end.imag), ha="center", va="center", color=colour)
        between = np.exp(1j * np.linspace(np.angle(ends[1]), np.angle(ends[1]) + angle_between(*ends), 60))
        ax.plot(0.4 * between.real, 0.4 * between.imag, color=SCORE)
    return figure


def angle_between(y: complex, x: complex) -> float:
    """By how much y is turned past x, between -pi and pi."""
    return float(np.angle(y / x))


def text_row(ax: Axes, marked: dict[int, tuple[str, str]], length: int = 9) -> None:
    """A row of words as boxes, some of them with a letter in its colour."""
    ax.set(xlim=(-0.6, length - 0.4), ylim=(-0.6, 1.4), aspect="equal")
    ax.axis("off")
    for place in range(length):
        letter, colour = marked.get(place, ("", "0.5"))
        box = Rectangle((place - 0.4, -0.4), 0.8, 0.8, fill=False, edgecolor=colour, linewidth=1.5 if letter else 0.7)
        ax.add_patch(box)
        ax.text(place, 0, f"${letter}$" if letter else "", ha="center", va="center", color=colour)
        ax.text(place, 0.95, str(place), ha="center", va="center", fontsize=8, color=colour if letter else "0.5")


@styled
def draw_where_it_sits() -> Figure:
    """One head of one layer: q and k are turned after their matrices, v is not. On a phone from top to bottom."""
    below = on_phone()
    figure = sheet(2.7, 5.6)
    ax = figure.subplots()
    ax.set(xlim=(-0.6, 2.5) if below else (-0.8, 5.5), ylim=(-5.4, 0.6) if below else (-0.45, 2.45))
    ax.axis("off")
    middles, halves = {}, {}
    for name, (text, x, y, colour) in BOXES.items():
        wide = (1.05 if below else 1.5) if "theta" in text else 1.5 if "R_" in text or "(" in text else 1.0
        middles[name] = x, y = (2 - y, -x) if below else (x, y)
        halves[name] = half = wide * HALF_WIDTH
        style = "round,pad=0.02" if "turn" not in text else "round4,pad=0.06"
        place = (x - half, y - HALF_HEIGHT)
        size = (2 * half, 2 * HALF_HEIGHT)
        ax.add_patch(FancyBboxPatch(place, *size, boxstyle=style, fill=False, edgecolor=colour or "0.5", linewidth=1.5))
        ax.text(x, y, text, ha="center", va="center", fontsize=8)
    for start, end in ARROWS:
        (xa, ya), (xb, yb) = middles[start], middles[end]
        if (ya != yb) if below else (xa == xb):
            tail, head = (xa, ya - HALF_HEIGHT - 0.05), (xb, yb + HALF_HEIGHT + 0.05)
        else:
            tail, head = (xa + halves[start] + 0.05, ya), (xb - halves[end] - 0.05, yb)
        ax.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "linewidth": 1.0, "color": "black"})
    return figure
