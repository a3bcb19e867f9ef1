"""The example of the book: "red" and "car", two places apart. Two numbers of each, and how they are turned."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Wedge
from torch import Tensor

from figures.style import KEY, QUERY, SCORE, arrow
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies

CAR, RED, DISTANCE = (1.8, 0.4), (1.2, 0.8), 2  # the query's word, the key's, and how far "car" stands behind "red"
HEAD_DIM, PAIR = 128, 3  # the numbers are pair 3 of a head with 128 dimensions and base 10000
INV_FREQ = inverse_frequencies(HEAD_DIM, device="cpu")[PAIR : PAIR + 1]
TURN = INV_FREQ.item()  # rad per word


def rotated(word: tuple[float, float], positions: Tensor) -> Tensor:
    """(n, 2): the word turned to each position."""
    x = torch.tensor(word, dtype=torch.float64).expand(len(positions), 2)
    return apply_rotary_emb(x, *cos_sin(positions, INV_FREQ, dtype=torch.float64), interleaved=True)


def two_words(ax: Axes, m: int, n: int, names: tuple[str, str] = ("$q$", "$k$"), *, outside: bool = False) -> None:
    """The circle of the first page: "car" at m and "red" at n, thin as they were, thick as they are turned."""
    beyond, longest = 0.55 if outside else 0.3, abs(complex(*CAR))
    reach = longest + 1.7 * beyond
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.axis("off")
    places = (complex(*CAR), m, QUERY), (complex(*RED), n, KEY)
    for (word, steps, colour), name in zip(places, names, strict=True):
        ax.add_patch(Circle((0, 0), abs(word), fill=False, edgecolor="0.5", linewidth=0.8, linestyle=":"))
        ax.plot([0, word.real], [0, word.imag], color=colour, linewidth=1, alpha=0.5)
        end = word * np.exp(1j * steps * TURN)
        arrow(ax, end, colour)
        end *= ((longest if outside else abs(end)) + beyond) / abs(end)
        ax.text(end.real, end.imag, name, ha="center", va="center", color=colour)
    begin, end = (np.degrees(np.angle(word) + steps * TURN) for word, steps, _ in places)
    ends = (begin, end) if (end - begin) % 360 <= 180 else (end, begin)  # the smaller of the two angles between them
    ax.add_patch(Wedge((0, 0), 0.55, *ends, facecolor=SCORE, alpha=0.35))
