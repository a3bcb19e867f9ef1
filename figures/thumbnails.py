"""A small picture for each chapter's card on the first page: its idea in a few lines, from the library's numbers."""

import math
from collections.abc import Callable

import torch

from figures.hero import DARK, LIGHT
from lab import opened, published
from lab.experiments import rescued
from rope_lib import cos_sin, inverse_frequencies
from rope_lib.theory.sinusoidal import sinusoidal_encoding

WIDTH, HEIGHT = 160, 72
LOOK = f"svg{{{LIGHT}color:#1f2328}}@media(prefers-color-scheme:dark){{svg{{{DARK}color:#e6edf3}}}}"  # alone
THUMBNAILS: dict[int, Callable[[], str]] = {}


def chapter(number: int) -> Callable:
    """Register the picture of a chapter."""

    def register(draw: Callable[[], str]) -> Callable[[], str]:
        THUMBNAILS[number] = draw
        return draw

    return register


def shape(look: str, d: str) -> str:
    """A line in the colour q, k, s or p, "t" for a thin one, or "q f" for a filled shape."""
    colour, _, filled = look.partition(" ")
    if colour == "t":
        return f'<path stroke="currentColor" stroke-width="1" opacity=".35" d="{d}"/>'
    return f'<path {"fill" if filled else "stroke"}="var(--rb-{colour})" d="{d}"/>'


def polyline(points: list[tuple[float, float]]) -> str:
    """The d attribute of a line through points, with one decimal."""
    return "M" + " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def square(x: float, y: float, side: float) -> str:
    """The d attribute of a square by its left upper corner."""
    return f"M{x:g} {y:g}h{side:g}v{side:g}h{-side:g}z"


def circle(x: float, y: float, r: float, share: float = 1.0) -> str:
    """The d attribute of an arc from the right, counter-clockwise, as long as its share of a turn."""
    end = 2 * math.pi * min(share, 0.9999)
    return (
        f"M{x + r:g} {y:g}A{r:g} {r:g} 0 {int(share > 0.5)} 0 {x + r * math.cos(end):.2f} {y - r * math.sin(end):.2f}"
    )


@chapter(1)
def shuffled() -> str:
    """Three words change places, and their outputs go with them."""
    looks, order = ("q", "k", "s"), (2, 0, 1)
    lines = "".join(shape("t", f"M{40 * j + 40} 22L{40 * place + 40} 50") for j, place in enumerate(order))
    return lines + "".join(
        shape(f"{look} f", square(40 * j + 31, 4, 18) + square(40 * place + 31, 50, 18))
        for j, (look, place) in enumerate(zip(looks, order, strict=True))
    )


@chapter(2)
def waves() -> str:
    """Four sines of the code, the fastest above."""
    code = sinusoidal_encoding(torch.arange(73) / 3, 8, base=100.0, dtype=torch.float64)[:, ::2]
    return "".join(
        shape(look, polyline([(8 + 2 * m, 10 + 17 * i - 6 * y) for m, y in enumerate(code[:, i].tolist())]))
        for i, look in enumerate(("q", "s", "p", "k"))
    )


@chapter(3)
def stripes() -> str:
    """A table of scores that sees the distance only: one shade along each diagonal."""
    side, size = 9, 7
    table = [(m, n) for m in range(size) for n in range(size)]
    return "".join(
        f'<g opacity="{1 - 0.15 * distance:.2f}">'
        + shape("s f", "".join(square(49 + side * n, 5 + side * m, 7.5) for m, n in table if abs(m - n) == distance))
        + "</g>"
        for distance in range(size)
    )


@chapter(4)
def turned() -> str:
    """The same two arrows at three pairs of positions: the angle between them stays."""
    parts = []
    for j in range(3):
        x, start = 26 + 54 * j, 0.2 + 0.9 * j
        ends = [(x + r * math.cos(a), 36 - r * math.sin(a)) for r, a in ((23, start + 0.75), (18, start))]
        parts += [shape("t", circle(x, 36, 23))]
        parts += [shape(look, f"M{x} 36L{a:.1f} {b:.1f}") for look, (a, b) in zip("qk", ends, strict=True)]
    return "".join(parts)


@chapter(5)
def blocks() -> str:
    """A block-diagonal matrix, and one circle for each block."""
    looks = ("q", "k", "s", "p")
    frames = "".join(shape(f"{look} f", square(12 + 15 * i, 7 + 15 * i, 13)) for i, look in enumerate(looks))
    hands = ""
    for i, speed in enumerate(inverse_frequencies(8, base=100.0).tolist()):
        x, y, angle = 100 + 34 * (i % 2), 20 + 34 * (i // 2), 3 * speed
        hand = f"M{x} {y}L{x + 13 * math.cos(angle):.1f} {y - 13 * math.sin(angle):.1f}"
        hands += shape("t", circle(x, y, 13)) + shape(looks[i], hand)
    return shape("t", square(10, 5, 62)) + frames + hands


@chapter(6)
def layouts() -> str:
    """Where the entries of four pairs are, in one layout and in the other."""
    looks = ("q", "k", "s", "p")
    parts = []
    for i, look in enumerate(looks):
        for half in (0, 1):
            above, below = 2 * i + half, i + 4 * half
            parts.append(shape("t", f"M{17 * above + 20} 22L{17 * below + 20} 50"))
            parts.append(shape(f"{look} f", square(17 * above + 13, 8, 14) + square(17 * below + 13, 50, 14)))
    return "".join(parts)


@chapter(7)
def far_word_wins() -> str:
    """The score of one query with keys made for three distances: each wins at its own (Theorem 7.3)."""
    distances = torch.arange(145, dtype=torch.float64) / 2
    parts = [shape("t", "M8 64H152")]
    for look, best in (("q", 0), ("s", 24), ("k", 56)):
        cos, _ = cos_sin(distances - best, inverse_frequencies(128, device="cpu"), dtype=torch.float64)
        parts.append(shape(look, polyline([(8 + m, 62 - 56 * y) for m, y in enumerate(cos.mean(-1).tolist())])))
    return "".join(parts)


@chapter(8)
def recurrence() -> str:
    """A state that turns by one step for each word that comes in."""
    turn = inverse_frequencies(128, device="cpu")[4].item()
    parts = []
    for j, look in enumerate("qksp"):
        x, angle = 22 + 39 * j, turn * j
        parts += [shape("t", circle(x, 28, 15) + f"M{x} 68V50" + (f"M{x + 15} 28h9" if j < 3 else ""))]
        hand = f"M{x} 28L{x + 15 * math.cos(angle):.1f} {28 - 15 * math.sin(angle):.1f}"
        parts += [shape("q", hand), shape(f"{look} f", square(x - 5, 57, 10))]
    return "".join(parts)


@chapter(9)
def unfinished_turns() -> str:
    """Arcs that five pairs of Llama 2 complete in 4096 words."""
    speeds = inverse_frequencies(128, device="cpu")[[40, 46, 50, 55, 63]]
    arcs = []
    for i, share in enumerate((4096 * speeds / (2 * math.pi)).clamp(max=1).tolist()):
        place = (20 + 30 * i, 36, 13)
        arcs += [shape("t", circle(*place)), shape("s" if share == 1 else "k", circle(*place, share))]
    return "".join(arcs)


@chapter(10)
def broken_and_cropped() -> str:
    """The loss of the shipped model by position: as it is, and cropped to its window."""
    losses = rescued()[1]
    lines = "".join(
        shape(look, polyline([(14 + 33 * j, 76 - 16 * loss) for j, loss in enumerate(losses[method])]))
        for look, method in (("k", "as it is"), ("s", "cropped"))
    )
    return shape("t", "M8 4V66H152M64 66V4") + lines


@chapter(11)
def three_cases() -> str:
    """The two results on the test set with two standard errors each way: they overlap almost wholly."""
    parts = [shape("t", "M8 66H152")]
    for look, y, name in (("k", 20, "WoBERT-512"), ("q", 44, "RoFormer-512")):
        share = published.CAIL[name][1]
        error = 100 * math.sqrt(share / 100 * (1 - share / 100) / 1536)
        x, reach = 80 + 20 * (share - 68.2), 40 * error
        parts += [
            shape(look, f"M{x - reach:.1f} {y}h{2 * reach:.1f}M{x - reach:.1f} {y - 5}v10M{x + reach:.1f} {y - 5}v10")
        ]
        parts += [shape(f"{look} f", square(x - 5, y - 5, 10))]
    return "".join(parts)


@chapter(12)
def band() -> str:
    """The energy of 32 pairs in a published model: a few of the slow ones have most of it."""
    energy = opened.stored("energies")["mean"]
    bars = "".join(f"M{12 + 4.3 * i:.1f} 66v{-320 * share:.1f}" for i, share in enumerate(energy))
    return shape("t", "M8 66H152") + shape("q", bars)


def files() -> dict[str, bytes]:
    """The pictures as files, by name."""
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" fill="none" stroke-width="2"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{LOOK}</style>'
    return {f"{number:02}.svg": f"{head}{draw()}</svg>\n".encode() for number, draw in THUMBNAILS.items()}
