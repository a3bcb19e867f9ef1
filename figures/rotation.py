"""Figures of the chapters on the complex-number derivation and the rotation matrix."""

import math
from itertools import product

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.interactive import Piece, label
from figures.style import BLUE, GREEN, KEY, OTHER, QUERY, SCORE, SIGNED, VERMILLION, WIDTH, styled
from rope_lib import inverse_frequencies, rotation_matrix


def turn(vector: complex, steps: float, theta: float) -> complex:
    """The vector turned counter-clockwise by `steps` times theta rad."""
    return vector * np.exp(1j * steps * theta)


@styled
def draw_relative_angle(
    *, positions: tuple[tuple[int, int], ...] = ((3, 1), (6, 4)), theta: float = np.pi / 9, angle: float = 0.35
) -> Figure:
    """The same q and k at two pairs of positions with the same distance: everything turns, the angle between stays."""
    q, k = np.exp(1j * angle), 0.8 * np.exp(1j * (angle + 0.3))
    figure = Figure(figsize=(WIDTH, 3.3))
    for ax, (m, n) in zip(figure.subplots(1, len(positions)), positions, strict=True):
        plane(ax, 1.25)
        for vector, steps, colour, name in ((q, m, QUERY, "q"), (k, n, KEY, "k")):
            arrow(ax, vector, colour, faint=True)
            turned = turn(vector, steps, theta)
            arrow(ax, turned, colour)
            ax.annotate(
                f"$f({name}, {steps})$",
                (turned.real, turned.imag),
                xytext=(7 * np.sign(turned.real), 6),
                textcoords="offset points",
                ha="left" if turned.real > 0 else "right",
                color=colour,
            )
        ends = np.angle([turn(k, n, theta), turn(q, m, theta)])
        arc = 0.35 * np.exp(1j * np.linspace(ends[0], ends[0] + (ends[1] - ends[0]) % (2 * np.pi), 60))
        ax.plot(arc.real, arc.imag, color=SCORE)
        ax.set_title(f"$m = {m},\\ n = {n},\\ m - n = {m - n}$")
    return figure


@styled
def draw_solutions(*, theta: float = np.pi / 7, zeta: float = 1.08, steps: int = 12) -> Figure:
    """The orbit of one vector under a rotation, a reflection and a scaled rotation."""
    q = np.exp(0.25j)
    m = np.arange(steps + 1)
    orbits = {
        "rotation": (turn(q, m, theta), BLUE),
        "powers of a reflection": (np.where(m % 2, np.conj(q), q), VERMILLION),
        "scaled rotation (two encoders)": (turn(q, m, theta) * zeta**m, GREEN),
    }
    figure = Figure(figsize=(WIDTH, 2.5))
    for ax, (title, (orbit, colour)) in zip(figure.subplots(1, 3), orbits.items(), strict=True):
        plane(ax, 1.2 * max(abs(orbit)))
        ax.plot(orbit.real, orbit.imag, "o-", color=colour, linewidth=0.6, markersize=3)
        arrow(ax, q, colour)
        ax.set_title(title)
    return figure


@styled
def draw_aliases(*, theta: float = 0.5, turns: tuple[int, ...] = (0, 1), length: int = 9) -> Figure:
    """Speeds that differ by full turns give the same angle at every whole position."""
    m = np.linspace(0, length - 1, 2001)
    figure = Figure(figsize=(WIDTH, 2.4))
    ax = figure.subplots()
    for extra, colour, width in zip(turns, (BLUE, VERMILLION), (2.0, 0.9), strict=False):
        name = "$\\theta$" if extra == 0 else f"$\\theta + {2 * extra}\\pi$"
        ax.plot(m, np.cos(m * (theta + 2 * np.pi * extra)), color=colour, linewidth=width, label=name)
    whole = np.arange(length)
    ax.plot(whole, np.cos(whole * theta), "o", color=BLUE, zorder=3)
    ax.set(xlabel="position $m$ (tokens)", ylabel="$\\cos$ of the angle")
    ax.legend(loc="upper right", bbox_to_anchor=(1, 1.25), ncols=2)
    return figure


@styled
def draw_basis_images(*, angle: float = 0.6) -> Figure:
    """R(alpha) is read off the images of the two basis vectors."""
    figure = Figure(figsize=(WIDTH, 3.0))
    ax = figure.subplots()
    plane(ax, 1.35)
    for start, name, image, colour in (
        (1, "$e_1$", "$(\\cos \\alpha, \\sin \\alpha)$", BLUE),
        (1j, "$e_2$", "$(-\\sin \\alpha, \\cos \\alpha)$", VERMILLION),
    ):
        arrow(ax, start, colour, faint=True)
        end = turn(start, 1, angle)
        arrow(ax, end, colour)
        ax.annotate(name, (start.real, start.imag), xytext=(5, 5), textcoords="offset points", color=colour)
        side = "left" if end.real > 0 else "right"
        offset = (6 if end.real > 0 else -6, 4)
        ax.annotate(image, (end.real, end.imag), xytext=offset, textcoords="offset points", ha=side, color=colour)
        arc = 0.4 * start * np.exp(1j * np.linspace(0, angle, 40))
        ax.plot(arc.real, arc.imag, color=GREEN)
        middle = 0.55 * start * np.exp(0.5j * angle)
        ax.annotate("$\\alpha$", (middle.real, middle.imag), ha="center", va="center", color=GREEN)
    return figure


@styled
def draw_complex_numbers(*, q: complex = 2 + 1j, k: complex = 1 + 1j) -> Figure:
    """The product of two numbers and that with a conjugate: angles add, and subtract; Re q k* is the scalar product."""
    numbers = np.array([0, q, k, k.conjugate(), q * k, q * k.conjugate()])
    figure = Figure(figsize=(WIDTH, 3.7))
    for ax, factor, star in zip(figure.subplots(1, 2, sharey=True), (k, k.conjugate()), ("", "^*"), strict=True):
        ax.set(xlim=(numbers.real.min() - 0.5, numbers.real.max() + 0.8), aspect="equal", xlabel="real part")
        ax.set(ylim=(numbers.imag.min() - 0.6, numbers.imag.max() + 0.6), ylabel="imaginary part" if not star else "")
        ax.locator_params(integer=True)
        ax.axhline(0, color="0.5", linewidth=0.5, zorder=0)
        ax.axvline(0, color="0.5", linewidth=0.5, zorder=0)
        for number, name, colour in ((q, "q", QUERY), (factor, f"k{star}", KEY), (q * factor, f"qk{star}", OTHER)):
            arrow(ax, number, colour)
            place = (6, 4 if number.imag > 0 else -12)
            ax.annotate(f"${name}$", (number.real, number.imag), place, textcoords="offset points", color=colour)
            arc = (0.3 + 0.25 * len(ax.lines)) * np.exp(1j * np.linspace(0, np.angle(number), 40))
            ax.plot(arc.real, arc.imag, color=colour, linewidth=1)
    arrow(ax, k, KEY, faint=True)
    ax.annotate("$k$", (k.real, k.imag), (6, 4), textcoords="offset points", color=KEY)
    score, height = (q * k.conjugate()).real, (q * k.conjugate()).imag
    ax.plot([0, score], [0, 0], color=SCORE, linewidth=3, zorder=1)
    ax.plot([score, score], [0, height], color=SCORE, linewidth=0.8, linestyle=":")
    name = f"$\\langle q, k\\rangle = {score:g}$"
    ax.annotate(name, (score, 0), (4, 5), textcoords="offset points", ha="center", color=SCORE)
    return figure


@styled
def draw_rotation_blocks(*, positions: tuple[int, ...] = (0, 1, 10, 100), dim: int = 8, base: float = 100.0) -> Figure:
    """The matrix R_m at several positions: 2 x 2 blocks on the diagonal, fast ones first."""
    inv_freq = inverse_frequencies(dim, base=base)
    inside = np.kron(np.eye(dim // 2), np.ones((2, 2))) == 1  # entries outside the blocks are zero and stay blank
    figure = Figure(figsize=(WIDTH, 2.2))
    axes = figure.subplots(1, len(positions), sharey=True)
    for ax, m in zip(axes, positions, strict=True):
        image = ax.imshow(np.where(inside, rotation_matrix(m, inv_freq).numpy(), np.nan), cmap=SIGNED, vmin=-1, vmax=1)
        ax.set(title=f"$m = {m}$", xticks=[0, dim // 2, dim - 1], yticks=[0, dim // 2, dim - 1])
    axes[0].set_ylabel("row")
    figure.supxlabel("column", fontsize=9)
    figure.colorbar(image, ax=axes, label="entry", ticks=[-1, 0, 1], shrink=0.8)
    return figure


@styled
def draw_not_relative(*, length: int = 24, seed: int = 0) -> Figure:
    """Scores of one q and k at all pairs of positions: rotations that commute, and rotations that do not."""
    tables = score_tables(length=length, seed=seed)
    figure = Figure(figsize=(WIDTH, 2.9))
    axes = figure.subplots(1, 2, sharey=True)
    titles = ("rotations that commute", "rotations that do not")
    for ax, table, title in zip(axes, tables, titles, strict=True):
        ax.imshow(table, cmap=SIGNED)
        ax.set(xlabel="position $n$ of $k$ (tokens)", title=title)
    axes[0].set_ylabel("position $m$ of $q$ (tokens)")
    return figure


def score_tables(*, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(length, length) scores f(q,m).f(k,n) in four dimensions, for rotations that commute and others that do not."""
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, 4))
    inv_freq = torch.tensor([0.5, 0.2], dtype=torch.float64)
    blocks = np.stack([rotation_matrix(m, inv_freq).numpy() for m in range(length)])
    swap = np.eye(4)[[0, 2, 1, 3]]
    not_commuting = blocks @ (swap @ blocks @ swap)
    return tuple(np.einsum("mab,b,nac,c->mn", f, q, f, k) for f in (blocks, not_commuting))


def plane(ax: Axes, reach: float) -> None:
    """Axes of a plane with equal scales and no frame."""
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.axhline(0, color="0.5", linewidth=0.5, zorder=0)
    ax.axvline(0, color="0.5", linewidth=0.5, zorder=0)
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    ax.plot(circle.real, circle.imag, color="0.5", linewidth=0.5, linestyle=":", zorder=0)


def arrow(ax: Axes, vector: complex, colour: str, *, faint: bool = False) -> None:
    """An arrow from the origin; faint for where a vector was before it was turned."""
    ax.annotate(
        "",
        (vector.real, vector.imag),
        xytext=(0, 0),
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "alpha": 0.45 if faint else 1.0,
            "linewidth": 1.0 if faint else 1.8,
            "linestyle": "--" if faint else "-",
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def explore_rotation() -> Piece:
    """A query and a key that turn with their positions: shift both, and the angle between them stays."""
    step, q, k = math.pi / 9, (1.0, 0.35), (0.8, 0.65)
    states = {}
    for n, distance in product(range(12), range(7)):
        state, m = {}, n + distance
        for part, (length, angle), place in (("query", q, m), ("key", k, n)):
            x, y = (length * f(angle + place * step) for f in (math.cos, math.sin))
            state[part] = {"x2": round(150 + 130 * x, 1), "y2": round(150 - 130 * y, 1)}
        between = q[1] - k[1] + distance * step
        state["positions"] = {"text": f"m = {m}, n = {n}"}
        state["angle"] = {"text": f"angle from key to query: {math.degrees(between):.0f}°"}
        state["score"] = {"text": f"score: {q[0] * k[0] * math.cos(between):.3f}"}
        states[n, distance] = state
    arrows = "".join(
        f'<line x1="150" y1="150" stroke="{colour}" stroke-width="3" {dash}data-part="{part}"></line>'
        for part, colour, dash in (("query", BLUE, ""), ("key", VERMILLION, 'stroke-dasharray="8 4" '))
    )
    svg = (
        '<circle cx="150" cy="150" r="130" fill="none" stroke="currentColor" stroke-opacity="0.3"></circle>'
        + arrows
        + label(330, 60, "query: solid, key: dashed")
        + "".join(label(330, 110 + 35 * row, part=part) for row, part in enumerate(("positions", "angle", "score")))
    )
    alt = "A query and a key as arrows from the centre of a circle, at positions 4 and 2."
    sliders = (("shift both: n", tuple(map(str, range(12))), 2), ("distance m − n", tuple(map(str, range(7))), 2))
    return Piece("rotation", alt, svg, sliders, states)


def explore_blocks() -> Piece:
    """The matrix R_m for d = 4, its numbers and the two planes that it turns."""
    inv_freq = inverse_frequencies(4, base=100.0)
    in_blocks = [(a, b) for a, b in product(range(4), range(4)) if a // 2 == b // 2]
    states = {}
    for m in range(33):
        matrix = rotation_matrix(m, inv_freq)
        state = {
            f"r{a}{b}": {"text": f"{matrix[a, b]:.2f}"} for a, b in product(range(4), range(4)) if a // 2 == b // 2
        }
        for pair, centre in enumerate((400, 550)):
            x, y = matrix[2 * pair, 2 * pair].item(), matrix[2 * pair + 1, 2 * pair].item()
            state[f"plane{pair}"] = {"x2": round(centre + 60 * x, 1), "y2": round(150 - 60 * y, 1)}
        states[m,] = state
    numbers = "".join(
        label(70 + 70 * b, 70 + 55 * a, anchor="middle", part=f"r{a}{b}")
        if (a, b) in in_blocks
        else label(70 + 70 * b, 70 + 55 * a, "0", anchor="middle")
        for a, b in product(range(4), range(4))
    )
    planes = "".join(
        f'<circle cx="{centre}" cy="150" r="60" fill="none" stroke="currentColor" stroke-opacity="0.3"></circle>'
        f'<line x1="{centre}" y1="150" stroke="{colour}" stroke-width="3" data-part="plane{pair}"></line>'
        + label(centre, 250, f"pair {pair}", anchor="middle")
        for pair, (centre, colour) in enumerate(((400, BLUE), (550, VERMILLION)))
    )
    frames = "".join(
        f'<rect x="{x}" y="{y}" width="140" height="105" fill="none" stroke="{colour}" stroke-width="2"></rect>'
        for x, y, colour in ((35, 37, BLUE), (175, 147, VERMILLION))
    )
    alt = "A four by four matrix with two framed rotation blocks and zeros, and the two planes that they turn."
    return Piece("blocks", alt, frames + numbers + planes, (("position m", tuple(map(str, range(33))), 3),), states)
