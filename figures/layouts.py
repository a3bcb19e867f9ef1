"""Figures of the chapter on code: one rotation in two layouts."""

from itertools import product

import numpy as np
import torch
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from figures.interactive import KEY_INK, OTHER_INK, QUERY_INK, SCORE_INK, Piece, State, View, label, minus
from figures.style import BLUE, GREEN, PURPLE, VERMILLION, frame, on_phone, panels, sheet, styled
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.layouts import interleaved_to_half_split
from rope_lib.theory.matrices import rotation_matrix

VECTOR = (0.9, 0.4, -0.3, 0.8, 0.6, -0.7, 1.0, 0.2)  # interleaved
NAMES = {"interleaved": "AABBCCDD", "half-split": "ABCDABCD"}  # the pair of each dimension
RED = "var(--rp-wrong)"
COLOURS = {"A": BLUE, "B": VERMILLION, "C": GREEN, "D": PURPLE}


def both_layouts(position: int) -> Tensor:
    """(2, 8): the vector, turned by its position, interleaved and half-split."""
    tables = cos_sin(torch.tensor([position]), inverse_frequencies(len(VECTOR), base=100.0), dtype=torch.float64)
    x = torch.tensor([VECTOR], dtype=torch.float64)
    other = interleaved_to_half_split(x, head_dim=len(VECTOR), dim=-1)
    return torch.cat([apply_rotary_emb(y, *tables, interleaved=y is x) for y in (x, other)])


@styled
def draw_layouts(*, positions: tuple[int, int] = (0, 4)) -> Figure:
    """The entries of one vector before and after, one row for each layout."""
    figure = sheet(3.4, 7.0)
    grid = figure.subplots(4, 1).reshape(2, 2).T if on_phone() else figure.subplots(2, 2, sharey=True)
    for column, position in zip(grid.T, positions, strict=True):
        for ax, (layout, pairs), vector in zip(column, NAMES.items(), both_layouts(position), strict=True):
            ax.bar(range(len(pairs)), vector.tolist(), color=[COLOURS[pair] for pair in pairs])
            ax.axhline(0, color="0.5", linewidth=0.8)
            ax.set_xticks(range(len(pairs)), [f"{i}\n{pair}" for i, pair in enumerate(pairs)])
            ax.set(ylim=(-1.2, 1.2), ylabel=layout if on_phone() or position == positions[0] else "")
        column[0].set_title(f"position {position}")
    figure.supxlabel("dimension and pair", fontsize=9)
    return figure


SEQUENCES = (  # what each token is (p and q: two texts, n: new, f: a filler), and its position
    ("a cache, and a new word", "ppppppn", (0, 1, 2, 3, 4, 5, 6)),
    ("two packed documents, counted on ...", "pppqqqq", (0, 1, 2, 3, 4, 5, 6)),
    ("... or each from 0", "pppqqqq", (0, 1, 2, 0, 1, 2, 3)),
    ("fillers on the left", "ffppppp", (0, 0, 0, 1, 2, 3, 4)),
    ("a tree of drafts: two next words, and one after each", "pppnnnn", (0, 1, 2, 3, 3, 4, 4)),
)
LOOKS = {
    "p": {"facecolor": to_rgba(BLUE, 0.25), "edgecolor": BLUE},
    "q": {"facecolor": to_rgba(PURPLE, 0.25), "edgecolor": PURPLE},
    "n": {"facecolor": "none", "edgecolor": VERMILLION, "linewidth": 2},
    "f": {"facecolor": "none", "edgecolor": "0.6", "linestyle": ":"},
}


@styled
def draw_positions() -> Figure:
    """Rows of tokens, each a box with its position in it."""
    figure = sheet(3.2)
    ax = figure.subplots()
    for row, (title, tokens, positions) in enumerate(SEQUENCES):
        ax.text(0, -row, title, va="bottom", fontsize=8)
        for place, (token, position) in enumerate(zip(tokens, positions, strict=True)):
            ax.add_patch(Rectangle((place + 0.04, -row - 0.5), 0.92, 0.46, **LOOKS[token]))
            ax.text(place + 0.5, -row - 0.27, str(position), ha="center", va="center")
    ax.set(xlim=(0, len(tokens)), ylim=(0.4 - len(SEQUENCES), 0.35))
    ax.set_axis_off()
    return figure


SPEEDS = {  # of four pairs
    "four different speeds": (1.0, 0.5, 0.2, 0.1),
    "the first two are equal": (1.0, 1.0, 0.2, 0.1),
    "the last one stands still": (1.0, 0.5, 0.2, 0.0),
}


def commuting(speeds: tuple[float, ...]) -> np.ndarray:
    """(d, d, free): each entry of a matrix that commutes with the rotation, as a sum of `free` numbers of one's choice.

    Computed: the null space of A R - R A, with R one step of the rotation, in its reduced form.
    """
    turned = rotation_matrix(1, torch.tensor(speeds, dtype=torch.float64)).numpy()
    one = np.eye(len(turned))
    equations = np.kron(one, turned.T) - np.kron(turned, one)  # of the rows of A, one behind the other
    _, sizes, rows = np.linalg.svd(equations)
    free = rows[sizes < 1e-9].T  # the first rows that are independent become numbers of one's choice
    chosen: list[int] = []
    for row in range(len(free)):
        if np.linalg.matrix_rank(free[[*chosen, row]], tol=1e-9) > len(chosen):
            chosen.append(row)
    return (free @ np.linalg.inv(free[chosen])).round(9).reshape(*one.shape, -1) + 0.0


@styled
def draw_commuting() -> Figure:
    """Three matrices: an empty entry is zero, and equal letters are equal numbers."""
    figure = sheet(2.5, 8.6)
    for ax, (title, speeds) in zip(panels(figure, 3), SPEEDS.items(), strict=True):
        entries = commuting(speeds)
        size, free = len(entries), entries.shape[-1]
        for row, column in product(range(size), repeat=2):
            if entries[row, column].any():
                letter = int(abs(entries[row, column]).argmax())
                colour = COLOURS["ABCD"[column // 2]]
                ax.add_patch(Rectangle((column, row), 1, 1, facecolor=to_rgba(colour, 0.25), edgecolor="none"))
                sign = "\u2212" if entries[row, column, letter] < 0 else ""
                text = sign + "abcdefghijklmnop"[letter]
                ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=8)
        for line in range(2, size, 2):
            ax.axhline(line, color="0.7", linewidth=0.6)
            ax.axvline(line, color="0.7", linewidth=0.6)
        ax.set(xlim=(0, size), ylim=(size, 0), aspect="equal", xticks=[], yticks=[])
        ax.set_xlabel(f"{title}:\n{free} numbers of one's choice")
        frame(ax)
    return figure


def explore_layouts() -> Piece:
    """One vector, turned, and the permutation that carries one layout into the other; in red, the wrong one."""
    positions = range(25)
    states = {(m, half): layouts_state(m, half) for m, half in product(positions, (0, 1))}
    views = (
        View("Eight bars, the entries of one turned vector, as neighbouring pairs above or as halves below.",
             bars_that_move(), (320, 276)),
        View("The same vector turned by code of the other layout: other numbers, in red.", wrong_bars(), (320, 140)),
    )  # fmt: skip
    said = (
        'Position <b data-part="m"></b>, <span data-part="layout"></span>: the score with the same vector at position '
        f'0 is <b data-part="right"></b>; with the wrong layout <b style="color:{RED}" data-part="off"></b>.'
    )
    sliders = (("position m", tuple(map(str, positions)), 4), ("layout", tuple(NAMES), 0))
    return Piece("layouts", said, views, sliders, states, buttons=(1,), play=0, pace=700)


def layouts_state(m: int, half: int) -> State:
    """The vector at position m, interleaved (0) or in halves (1), and turned in the wrong layout."""
    size = len(VECTOR)
    order = interleaved_to_half_split(torch.arange(size), head_dim=size, dim=-1).tolist()
    right, key = both_layouts(m)[0], both_layouts(0)[0]
    wrong_key = torch.tensor(VECTOR, dtype=torch.float64)
    tables = cos_sin(torch.tensor([m]), inverse_frequencies(size, base=100.0), dtype=torch.float64)
    wrong = apply_rotary_emb(wrong_key[None], *tables, interleaved=False)[0]
    state = {f"entry{i}": {"style": f"--x:{38 * (order.index(i) - i) * half};--y:{140 * half}"} for i in range(size)}
    state |= {f"bar{i}": {"d": f"M0 0V{-44 * value:.1f}"} for i, value in enumerate(right.tolist())}
    state |= {f"wrong{i}": {"d": f"M0 0V{-44 * value:.1f}"} for i, value in enumerate(wrong.tolist())}
    return state | {
        "m": {"text": m},
        "right": {"text": minus(f"{right @ key:.3f}")},
        "off": {"text": minus(f"{wrong @ wrong_key:.3f}")},
        "layout": {"text": tuple(NAMES)[half]},
    }


def bars_that_move() -> str:
    """A row for each layout, and the bars, each pair in a colour."""
    inks = dict(zip("ABCD", (QUERY_INK, KEY_INK, SCORE_INK, OTHER_INK), strict=True))
    rows = "".join(
        f'<path d="M8 {height}H312" stroke="currentColor" opacity=".4"></path>' + label(8, height - 52, text)
        for text, height in zip(
            ("interleaved: a pair side by side", "half-split: a pair 4 apart"), (66, 206), strict=True
        )
    )
    return rows + "".join(
        f'<g transform="translate({27 + 38 * i} 66)"><g class="rp-move" data-part="entry{i}">'
        f'<path class="rp-bend" stroke="{inks[pair]}" stroke-width="22" data-part="bar{i}"></path>'
        f'<text y="64" text-anchor="middle" font-weight="700">{pair}</text></g></g>'
        for i, pair in enumerate(NAMES["interleaved"])
    )


def wrong_bars() -> str:
    """A row of red ones."""
    return (
        '<path d="M8 66H312" stroke="currentColor" opacity=".4"></path>'
        + f'<text x="8" y="14" style="fill:{RED}">turned as if half-split: wrong</text>'
        + "".join(
            f'<g transform="translate({27 + 38 * i} 66)"><path class="rp-bend" stroke="{RED}" stroke-width="22" '
            f'data-part="wrong{i}"></path><text y="64" text-anchor="middle" font-weight="700">{pair}</text></g>'
            for i, pair in enumerate(NAMES["interleaved"])
        )
    )
