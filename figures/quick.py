"""Figures of the page RoPE in five minutes."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from figures.interactive import KEY_INK, OTHER_INK, QUERY_INK, SCORE_INK, Piece, View, pointer
from figures.style import KEY, OTHER, QUERY, SCORE, on_phone, sheet, styled
from figures.words import DISTANCE, two_words
from rope_lib import inverse_frequencies

BOXES = {  # name: (text, x, y, colour)
    "words": ("words\n(no position)", -0.2, 1.0, None),
    "W_q": ("$W_q$", 1.0, 2.0, QUERY),
    "W_k": ("$W_k$", 1.0, 1.0, KEY),
    "W_v": ("$W_v$", 1.0, 0.0, OTHER),
    "turn q": ("turn by\n$m\\,\\theta_i$", 2.25, 2.0, QUERY),
    "turn k": ("turn by\n$n\\,\\theta_i$", 2.25, 1.0, KEY),
    "scores": ("scores\n$q^T R_{n-m} k\\,/$√$d$", 3.7, 1.5, SCORE),
    "softmax": ("softmax", 5.0, 1.5, None),
    "sum": ("weighted\nsum", 5.0, 0.0, OTHER),
}
ARROWS = (
    ("words", "W_q"), ("words", "W_k"), ("words", "W_v"), ("W_q", "turn q"), ("W_k", "turn k"),
    ("turn q", "scores"), ("turn k", "scores"), ("scores", "softmax"), ("softmax", "sum"), ("W_v", "sum"),
)  # fmt: skip
HANDS = (*range(13), 20, 50, 100, 200, 355, 500, 709, 710, 711)  # positions of the clock
HALF_WIDTH, HALF_HEIGHT = 0.36, 0.28


@styled
def draw_idea(*, places: tuple[int, ...] = (0, 3, 6)) -> Figure:
    """A text with "red" and "car", and their key and query turned by the positions: always two words apart."""
    figure = sheet(2.9, 7.6)
    if on_phone():
        texts, planes = figure.subplots(2 * len(places), 1, height_ratios=(1, 5) * len(places)).reshape(-1, 2).T
    else:
        texts, planes = figure.subplots(2, len(places), height_ratios=(1, 6))
    for text, ax, n in zip(texts, planes, places, strict=True):
        text_row(text, n)
        two_words(ax, n + DISTANCE, n)
    return figure


def text_row(ax: Axes, first: int, length: int = 9) -> None:
    """A row of places; "red" stands at the first one given, and "car" two behind it, in their colours."""
    ax.set(xlim=(-0.6, length - 0.4), ylim=(-1.3, 0.7))
    ax.axis("off")
    ax.axhline(-0.5, color="0.5", linewidth=0.7)
    words = {first: ("red", KEY), first + 1: ("toy", "0.5"), first + DISTANCE: ("car", QUERY)}
    for place in range(length):
        word, colour = words.get(place, ("·", "0.5"))
        ax.text(place, 0, word, ha="center", va="center", fontsize=8, color=colour)
        ax.text(place, -1, str(place), ha="center", va="center", fontsize=8, color=colour)


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


def explore_clock() -> Piece:
    """The four pairs of a head of eight dimensions as hands, at each of some positions."""
    speeds, inks = inverse_frequencies(8).tolist(), (QUERY_INK, KEY_INK, SCORE_INK, OTHER_INK)
    states = {}
    for step, m in enumerate(HANDS):
        states[step,] = {"m": {"text": m}, "turns": {"text": f"{m / (2 * math.pi):.2f}"}} | {
            part: change
            for pair, speed in enumerate(speeds)
            for part, change in (
                (f"hand{pair}", {"style": f"--a:{-math.degrees(m * speed) % 360:.2f}deg"}),
                (f"angle{pair}", {"text": f"{m * speed:.6g} rad"}),
            )
        }
    svg = "".join(
        f'<g transform="translate({42 + 79 * pair} 62)"><circle r="36" fill="none" stroke="currentColor" opacity=".45">'
        f'</circle><path d="M0 0H36" stroke="{ink}" opacity=".4"></path><g class="rp-turn" data-part="hand{pair}">'
        f'{pointer(36, ink)}</g><g text-anchor="middle"><text y="-46">pair {pair}</text>'
        f'<text y="56" data-part="angle{pair}"></text></g></g>'
        for pair, ink in enumerate(inks)
    )
    alt = "Four dials, one for each pair of a head of eight dimensions; each hand has turned by position times speed."
    said = (
        'At position <b data-part="m"></b> pair 0 has made <b data-part="turns"></b> turns. Each hand is ten times as '
        "slow as the one before."
    )
    views = (View(alt, svg, (320, 126)),)
    return Piece("clock", said, views, (("position", tuple(map(str, HANDS)), 5),), states, play=0, pace=700)
