"""Figures of the chapters on the complex-number derivation and the rotation matrix."""

import math
from itertools import cycle, product

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from figures.interactive import (
    KEY_INK,
    OTHER_INK,
    QUERY_INK,
    SCORE_INK,
    Piece,
    State,
    View,
    grip,
    label,
    minus,
    path,
    pointer,
)
from figures.style import (
    BLUE,
    GREEN,
    GREY,
    KEY,
    OTHER,
    QUERY,
    SCORE,
    SIGNED,
    VERMILLION,
    arrow,
    frame,
    on_phone,
    panels,
    sheet,
    signed,
    styled,
)  # fmt: skip
from figures.words import CAR, RED, TURN, rotated, two_words
from rope_lib import inverse_frequencies
from rope_lib.theory.matrices import rotation_matrix


def turn(vector: complex, steps: float, theta: float) -> complex:
    """The vector turned counter-clockwise by `steps` times theta rad."""
    return vector * np.exp(1j * steps * theta)


@styled
def draw_relative_angle(*, positions: tuple[tuple[int, int], ...] = ((3, 1), (6, 4))) -> Figure:
    """The same q and k at two pairs of positions with the same distance: everything turns, the angle between stays."""
    figure = sheet(3.3, 6.6)
    for ax, (m, n) in zip(panels(figure, len(positions)), positions, strict=True):
        two_words(ax, m, n, (f"$f(q, {m})$", f"$f(k, {n})$"), outside=True)
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
    figure = sheet(2.5, 7.5)
    for ax, (title, (orbit, colour)) in zip(panels(figure, 3), orbits.items(), strict=True):
        plane(ax, 1.2 * max(abs(orbit)))
        ax.plot(orbit.real, orbit.imag, "o-", color=colour, linewidth=0.6, markersize=3)
        arrow(ax, q, colour)
        ax.set_title(title)
    return figure


@styled
def draw_aliases(*, theta: float = 0.5, turns: tuple[int, ...] = (0, 1), length: int = 9) -> Figure:
    """Speeds that differ by full turns give the same angle at every whole position."""
    m = np.linspace(0, length - 1, 2001)
    figure = sheet(2.4)
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
    figure = sheet(3.0)
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
    figure = sheet(3.7, 7.4)
    for ax, factor, star in zip(panels(figure, 2, sharey=True), (k, k.conjugate()), ("", "^*"), strict=True):
        ax.set(xlim=(numbers.real.min() - 0.5, numbers.real.max() + 0.8), aspect="equal", xlabel="real part")
        ax.set(
            ylim=(numbers.imag.min() - 0.6, numbers.imag.max() + 0.6),
            ylabel="imaginary part" if on_phone() or not star else "",
        )
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
def draw_rotation_blocks(
    *, positions: tuple[int, ...] = (0, 1, 10, 100), dim: int = 8, base: float = 100.0, shown: int = 10
) -> Figure:
    """The matrix R_m at one position, its blocks in the colours of the pairs; the angles of the pairs at several."""
    inv_freq = inverse_frequencies(dim, base=base)
    figure = sheet(3.7, 6.8)
    left, right = panels(figure, 2, **{"height_ratios": (1.15, 1)} if on_phone() else {"width_ratios": (1.3, 1)})
    colours = [colour for colour, _ in zip(cycle((BLUE, VERMILLION, GREEN, OTHER)), inv_freq, strict=False)]
    matrix = rotation_matrix(shown, inv_freq).numpy()
    left.set(xlim=(-0.6, dim - 0.4), ylim=(dim - 0.4, -0.6), aspect="equal", title=f"$R_{{{shown}}}$")
    for row, column in product(range(dim), range(dim)):
        inside = row // 2 == column // 2
        text = f"{matrix[row, column]:.2f}".replace("-", "−") if inside else "0"
        left.text(column, row, text, ha="center", va="center", fontsize=8, color=colours[row // 2] if inside else GREY)
    right.set(xlim=(-1.6, len(positions) - 0.5), ylim=(len(inv_freq) - 0.5, -1), aspect="equal")
    for pair, (colour, speed) in enumerate(zip(colours, inv_freq.tolist(), strict=True)):
        left.add_patch(Rectangle((2 * pair - 0.5, 2 * pair - 0.5), 2, 2, fill=False, edgecolor=colour, linewidth=1.5))
        right.text(-0.6, pair, f"pair {pair}", ha="right", va="center", color=colour)
        for place, m in enumerate(positions):
            right.add_patch(Circle((place, pair), 0.4, fill=False, edgecolor="0.5", linewidth=0.8))
            hand = 0.4 * turn(1, m, speed)
            right.plot([place, place + hand.real], [pair, pair - hand.imag], color=colour, solid_capstyle="round")
    for place, m in enumerate(positions):
        right.text(place, -0.75, f"$m = {m}$", ha="center", va="center", fontsize=8)
    for ax in (left, right):
        ax.axis("off")
    return figure


@styled
def draw_not_relative(*, length: int = 24, seed: int = 0) -> Figure:
    """Scores of one q and k at all pairs of positions: rotations that commute, and rotations that do not."""
    tables = score_tables(length=length, seed=seed)
    figure = sheet(2.9, 5.8)
    titles = ("rotations that commute", "rotations that do not")
    for ax, table, title in zip(panels(figure, 2, sharex=True, sharey=True), tables, titles, strict=True):
        ax.imshow(table, **signed(table))
        ax.set(xlabel="position $n$ of $k$ (tokens)", ylabel="position $m$ of $q$ (tokens)", title=title)
        ax.label_outer()
        frame(ax)
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


def plane_speeds(way: str, *, pairs: int = 32, base: float = 100.0) -> np.ndarray:
    """(pairs, 2): what a step down and a step to the right turn each pair by, in rad.

    *axial*: each pair belongs to the row or to the column. *random* and *golden*: slanted directions, drawn or half a
    turn divided by the golden ratio apart, for pairs from fast to slow.
    """
    if way == "axial":
        speeds = base ** (-np.arange(pairs // 2) / (pairs // 2))
        return np.kron(np.eye(2), speeds[:, None])
    golden = (1 + 5**0.5) / 2
    angles = np.arange(pairs) * np.pi / golden if way == "golden" else np.random.default_rng(0).uniform(0, np.pi, pairs)
    speeds = base ** (-np.arange(pairs) / pairs)
    return speeds[:, None] * np.stack((np.sin(angles), np.cos(angles)), axis=-1)


def plane_scores(way: str, *, reach: int = 15) -> np.ndarray:
    """(2 reach + 1, 2 reach + 1): the scores of one query in the middle with equal keys, its own place having 1."""
    steps = np.arange(-reach, reach + 1)
    places = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1)
    return np.cos(places @ plane_speeds(way).T).mean(-1)


@styled
def draw_plane_scores() -> Figure:
    """Three maps of one query's scores; the same scale of colours."""
    figure = sheet(2.35, 8.0)
    names = {"axial": "axial", "random": "mixed, directions drawn", "golden": "mixed, golden directions"}
    for ax, (way, name) in zip(panels(figure, 3), names.items(), strict=True):
        scores = plane_scores(way)
        reach = len(scores) // 2
        ax.imshow(scores, cmap=SIGNED, vmin=-1, vmax=1, extent=(-reach - 0.5, reach + 0.5, reach + 0.5, -reach - 0.5))
        ax.set(xticks=[-10, 0, 10], yticks=[-10, 0, 10], xlabel=name)
        frame(ax)
    return figure


def plane(ax: Axes, reach: float) -> None:
    """Axes of a plane with equal scales and no frame."""
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.axhline(0, color="0.5", linewidth=0.5, zorder=0)
    ax.axvline(0, color="0.5", linewidth=0.5, zorder=0)
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    ax.plot(circle.real, circle.imag, color="0.5", linewidth=0.8, linestyle=":", zorder=0)


# -- The piece: a query and a key that turn ----------------------------------------------------------------------------

UNIT = 112 / abs(complex(*CAR))  # pixels for 1


def explore_rotation() -> Piece:
    """A query and a key that turn with their positions: shift both, and neither the angle nor the score changes."""
    shifts, distances = range(12), range(7)
    states = {(n, distance): rotation_state(n, distance) for n, distance in product(shifts, distances)}
    views = (
        View(
            "Two arrows from the centre of a circle, query and key, with their earlier positions behind them and the "
            "angle between them.",
            two_hands() + label(4, 14, "q: “car”") + label(316, 14, "k: “red”", anchor="end"),
            (320, 270),
        ),
        View(
            "The score against the distance, a cosine, with a dot at the present distance.",
            score_curve(distances),
            (320, 216),
        ),
    )
    said = (
        '“car” asks at m = <span data-part="m"></span>, “red” answers at n = <span data-part="n"></span>, distance '
        '<b data-part="distance"></b>: their angle is <b data-part="degree"></b>, the score <b data-part="score"></b>.'
    )
    sliders = (("shift both: n", tuple(map(str, shifts)), 3), ("distance m\xa0−\xa0n", tuple(map(str, distances)), 2))
    return Piece("rotation", said, views, sliders, states, play=0, pace=700)


def rotation_state(n: int, distance: int) -> State:
    """The key at n and the query at n + distance."""
    m = n + distance
    score = (rotated(CAR, torch.tensor([m])) * rotated(RED, torch.tensor([n]))).sum().item()
    query, key = np.angle(complex(*CAR)) + m * TURN, np.angle(complex(*RED)) + n * TURN
    between = query - key
    wedge = [(0, 0), *((34 * math.cos(a), -34 * math.sin(a)) for a in (between * i / 24 for i in range(25)))]
    degrees = minus(f"{math.degrees(between):.0f}°")
    return {
        "query": {"style": f"--a:{-math.degrees(query):.1f}deg;--g:{min(m, 4)}"},
        "key": {"style": f"--a:{-math.degrees(key):.1f}deg;--g:{min(n, 4)}"},
        "wedge": {"d": path(wedge)},
        "turn": {"style": f"--a:{-math.degrees(key):.1f}deg"},
        "degrees": {"style": f"--a:{-math.degrees(key + between / 2):.1f}deg;--l:{54 if abs(between) > 0.6 else 80}"},
        "angle": {"text": degrees},
        "dot": {"style": f"--x:{44 + 42 * distance};--y:{112 - 34 * score:.1f}"},
        "q": {"text": m},
        "k": {"text": n},
        "m": {"text": m},
        "n": {"text": n},
        "distance": {"text": distance},
        "degree": {"text": degrees},
        "score": {"text": minus(f"{score:.2f}")},
    }


def two_hands() -> str:
    """The circles, the hands, and the angle between them."""
    lengths = [UNIT * abs(complex(*word)) for word in (CAR, RED)]
    return (
        '<g transform="translate(160 138)">'
        + "".join(
            f'<circle r="{radius:.0f}" fill="none" stroke="currentColor" opacity=".45" stroke-dasharray="2 4"></circle>'
            for radius in lengths
        )
        + f'<g class="rp-turn" data-part="turn"><path fill="{SCORE_INK}" opacity=".35" data-part="wedge"></path></g>'
        + hand("key", "k", lengths[1], KEY_INK, slider=0)
        + hand("query", "q", lengths[0], QUERY_INK, slider=1)
        + '<g class="rp-tip" data-part="degrees">'
        f'<text class="rp-halo" text-anchor="middle" dominant-baseline="central" style="fill:{SCORE_INK}" '
        'data-part="angle"></text></g></g>'
    )


def hand(part: str, letter: str, length: float, colour: str, slider: int) -> str:
    """An arrow with its letter, by which it can be dragged, and up to four earlier ones behind it."""
    back = math.degrees(TURN)
    ghosts = "".join(
        f'<path stroke="{colour}" stroke-width="2" transform="rotate({back * i:.0f})" d="M0 0H{length:g}" '
        f'style="opacity:calc(clamp(0,var(--g) - {i - 1},1)*{0.5 - 0.1 * i:.1f})"></path>'
        for i in range(4, 0, -1)
    )
    return (
        f'<g data-part="{part}"><g class="rp-turn">{ghosts}{pointer(length, colour)}</g>'
        # WebKit gives a baseline of the text to the small number anew, which would be a power.
        f'<g class="rp-tip" style="--l:{length + 15:g}">'
        f'<text class="rp-name" dy="6" style="fill:{colour};dominant-baseline:auto">{letter}'
        f'<tspan dy="4" font-size="12" data-part="{letter}"></tspan></text>{grip(slider)}</g></g>'
    )


def score_curve(distances: range) -> str:
    """Scores against the distance, with a dot at one."""
    fine = torch.arange(0, 8 * len(distances) - 7, dtype=torch.float64) / 8
    scores = (rotated(CAR, fine) * torch.tensor(RED)).sum(-1).tolist()
    points = [(44 + 42 * x, 112 - 34 * y) for x, y in zip(fine.tolist(), scores, strict=True)]
    return (
        '<path d="M44 16V206" stroke="currentColor"></path><path d="M44 112H310" stroke="currentColor"></path>'
        f'<path fill="none" stroke="{SCORE_INK}" stroke-width="2.5" d="{path(points)}"></path>'
        + "".join(label(44 + 42 * x, 130, str(x), anchor="middle") for x in distances[1:])
        + "".join(label(38, 116 - 34 * score, minus(str(score)), anchor="end") for score in (-2, 0, 2))
        + label(50, 12, "score")
        + label(310, 102, "distance m − n", anchor="end")
        + f'<g class="rp-move" data-part="dot"><circle r="7" fill="{SCORE_INK}" stroke="var(--rh-paper,Canvas)" '
        f'stroke-width="2"></circle>{grip(1)}</g>'
    )


PLACES, EVENNESS = 7, 8  # words, and steps from a way of growing to equal ones
LOT = (0.0, 1.9, 2.3, 2.9, 4.6, 5.2, 6.0)  # angles drawn by lot, in steps of TURN


SCORES_SAID = '“red” 1 before “car”: score <b data-part="near"></b>; 2 before: <b data-part="far"></b>.'


def range_of(scores: list[float]) -> str:
    """The scores of a distance, in words."""
    low, high = (minus(f"{end:.2f}") for end in (min(scores), max(scores)))
    return f"{low} at every place" if low == high else f"{low} to {high}, by the place"


def grown(way: str, evenness: int) -> list[float]:
    """The angle at each place, in rad: a way of growing, and on the way to equal steps; the last one stays."""
    last = PLACES - 1
    at = {
        "growing": lambda m: m * m / last,
        "shrinking": lambda m: last * math.sqrt(m / last),
        "by lot": lambda m: LOT[m],
    }[way]
    share = evenness / EVENNESS
    return [TURN * ((1 - share) * at(m) + share * m) for m in range(PLACES)]


def explore_steps() -> Piece:
    """The angle grows with the place, by unequal steps or by equal ones: what is the score of neighbours worth?"""
    ways, states = ("growing", "shrinking", "by lot"), {}
    length, between = abs(complex(*CAR)) * abs(complex(*RED)), np.angle(complex(*CAR)) - np.angle(complex(*RED))
    for (i, way), evenness in product(enumerate(ways), range(EVENNESS + 1)):
        angles, state, said = grown(way, evenness), {}, []
        for m, angle in enumerate(angles):
            state[f"hand{m}"] = {"style": f"--a:{-math.degrees(angle):.1f}deg"}
        for apart, name in ((1, "one"), (2, "two")):
            scores = [length * math.cos(between + angles[m] - angles[m - apart]) for m in range(apart, PLACES)]
            for m, score in enumerate(scores, start=apart):
                state[f"{name}{m}"] = {"style": f"--x:{44 + 42 * m};--y:{108 - 32 * score:.1f}"}
            said.append(range_of(scores))
        state |= {"near": {"text": said[0]}, "far": {"text": said[1]}}
        states[i, evenness] = state
    hands = "".join(
        f'<g data-part="hand{m}"><path class="rp-turn" stroke="currentColor" stroke-width="2" d="M0 0H80"></path>'
        f'<g class="rp-tip" style="--l:{92 + 10 * (m % 2)}">{label(0, 5, str(m), anchor="middle")}</g></g>'
        for m in range(PLACES)
    )
    circle = '<circle r="80" fill="none" stroke="currentColor" opacity=".45" stroke-dasharray="2 4"></circle>'
    views = (
        View(
            "Seven hands from the centre of a circle, numbered by place: the angle by which a word is turned there.",
            f'<g transform="translate(160 104)">{circle}{hands}</g>',
            (320, 206),
        ),
        View(
            "The score of “car” at each place with “red” one before it, and two before: dots on two level lines, or "
            "scattered.",
            score_dots(PLACES, 42, 108, 32, (-2, 0, 2)),
            (320, 200),
        ),
    )
    shares = tuple(f"{100 * evenness / EVENNESS:.0f}\xa0%" for evenness in range(EVENNESS + 1))
    return Piece("steps", SCORES_SAID, views, (("steps", ways, 0), ("made equal", shares, 0)), states,
                 buttons=(0,), play=1, pace=500)  # fmt: skip


def score_dots(places: int, apart: int, zero: int, unit: int, ticks: tuple[int, ...]) -> str:
    """Axes for the score of a word at each place with the one 1 before it, `one1` ..., and 2 before, `two2` ..."""
    colours = (1, "one", SCORE_INK), (2, "two", OTHER_INK)
    return (
        f'<path d="M44 22V194M44 {zero}H310" stroke="currentColor"></path>'
        + "".join(label(44 + apart * m, zero + 18, str(m), anchor="middle") for m in range(1, places))
        + "".join(label(38, zero + 5 - unit * score, minus(str(score)), anchor="end") for score in ticks)
        + label(50, 12, "score")
        + "".join(
            f'<circle cx="{x}" cy="8" r="6" fill="{colour}"></circle>{label(x + 10, 12, text)}'
            for x, text, (*_, colour) in zip((138, 232), ("1 before", "2 before"), colours, strict=True)
        )
        + label(310, max(192, zero + 36), "place of “car”", anchor="end")
        + "".join(
            f'<g class="rp-move" data-part="{name}{m}"><circle r="6" fill="{colour}"></circle></g>'
            for before, name, colour in colours
            for m in range(before, places)
        )
    )


def between(word: complex, m: int, share: float) -> complex:
    """A word with a code added to it, at share 0; turned, at 1; and on the way from the one to the other."""
    return (1 - share) * (word + turn(1, m, TURN)) + share * turn(word, m, TURN)


def explore_morph() -> Piece:
    """The circle of an added code moves to 0 and becomes a turn: what is the score of neighbours worth?"""
    car, red, places, states = complex(*CAR), complex(*RED), 10, {}
    for step in range(EVENNESS + 1):
        share, said = step / EVENNESS, []
        centre, radius = (1 - share) * car, abs(1 - share + share * car)
        state = {
            "circle": {"cx": f"{34 * centre.real:.1f}", "cy": f"{-34 * centre.imag:.1f}", "r": f"{34 * radius:.1f}"}
        }
        for m in range(places):
            tip = 34 * between(car, m, share)
            state[f"tip{m}"] = {"style": f"--x:{tip.real:.1f};--y:{-tip.imag:.1f}"}
        for apart, name in ((1, "one"), (2, "two")):
            pairs = [(between(car, m, share), between(red, m - apart, share)) for m in range(apart, places)]
            scores = [(q * k.conjugate()).real for q, k in pairs]
            for m, score in enumerate(scores, start=apart):
                state[f"{name}{m}"] = {"style": f"--x:{44 + 29 * m};--y:{170 - 21 * score:.1f}"}
            said.append(range_of(scores))
        states[(step,)] = state | {"near": {"text": said[0]}, "far": {"text": said[1]}}
    tips = "".join(
        f'<g class="rp-move" data-part="tip{m}"><circle r="10" fill="var(--rh-paper,Canvas)" stroke="{QUERY_INK}">'
        f"</circle>{label(0, 5, str(m), anchor='middle')}</g>"
        for m in range(places)
    )
    plane = (
        '<g transform="translate(128 104)"><path d="M-90 0H190M0 -96V96" stroke="currentColor" opacity=".25"></path>'
        f'<circle fill="none" stroke="{OTHER_INK}" stroke-dasharray="2 4" data-part="circle"></circle>'
        f'<g transform="rotate({-math.degrees(np.angle(car)):.1f})">{pointer(34 * abs(car), QUERY_INK)}</g>{tips}</g>'
    )
    views = (
        View(
            "The tips of “car” at ten places: on a circle about the tip of the word if a code is added, on one about 0 "
            "if the word is turned.",
            plane,
            (320, 208),
        ),
        View(
            "The score of “car” at each place with “red” one before it, and two before: dots in waves if a code is "
            "added, on two level lines if the words are turned.",
            score_dots(places, 29, 170, 21, (0, 2, 4, 6)),
            (320, 208),
        ),
    )
    steps = ("added", *("on the way",) * (EVENNESS - 1), "turned")
    return Piece("morph", SCORES_SAID, views, (("the code is", steps, 0),), states, play=0, pace=500)


def explore_blocks() -> Piece:
    """The matrix R_m for d = 4, and below each block the clock hand that it turns."""
    inv_freq = inverse_frequencies(4, base=100.0)
    in_blocks = [(a, b) for a, b in product(range(4), range(4)) if a // 2 == b // 2]
    states = {}
    for m in range(33):
        matrix = rotation_matrix(m, inv_freq)
        state = {f"r{a}{b}": {"text": minus(f"{matrix[a, b]:.2f}")} for a, b in in_blocks}
        for pair, speed in enumerate(inv_freq.tolist()):
            state[f"hand{pair}"] = {"style": f"--a:{-math.degrees(m * speed):.1f}deg"}
            state[f"turned{pair}"] = {"text": f"{math.degrees(m * speed):.0f}°"}
        state["m"] = {"text": m}
        states[m,] = state
    colours = (QUERY_INK, KEY_INK)
    entries = "".join(
        label(63 + 65 * b, 40 + 42 * a, "" if (a, b) in in_blocks else "0", anchor="middle", part=part)
        for a, b in product(range(4), range(4))
        for part in [f"r{a}{b}" if (a, b) in in_blocks else ""]
    )
    frames = "".join(
        f'<rect x="{33 + 130 * pair}" y="{15 + 84 * pair}" width="124" height="78" rx="6" fill="{colour}" '
        f'fill-opacity=".12" stroke="{colour}" stroke-width="2"></rect>'
        for pair, colour in enumerate(colours)
    )
    brackets = '<path d="M32 8H24V184H32M288 8H296V184H288" fill="none" stroke="currentColor" stroke-width="2"></path>'
    discs = "".join(
        f'<g transform="translate({95 + 130 * pair} 252)">'
        '<circle r="50" fill="none" stroke="currentColor" opacity=".45" stroke-dasharray="2 4"></circle>'
        f'<path d="M0 0H50" stroke="{colour}" opacity=".4" stroke-width="1.5"></path>'
        f'<g class="rp-turn" data-part="hand{pair}">{pointer(50, colour)}{grip(0, "M50 0")}</g>'
        f'<text y="70" text-anchor="middle">pair {pair}: <tspan data-part="turned{pair}"></tspan></text></g>'
        for pair, colour in enumerate(colours)
    )
    alt = "A four by four matrix with two framed rotation blocks and zeros; below each block a disc with its hand."
    said = (
        'At position <b data-part="m"></b> the first block has turned its plane by <b data-part="by0"></b>, the second '
        'by <b data-part="by1"></b>: a tenth.'
    )
    for state in states.values():
        state |= {f"by{pair}": state[f"turned{pair}"] for pair in range(2)}
    views = (View(alt, brackets + frames + entries + discs, (320, 330)),)
    return Piece("blocks", said, views, (("position m", tuple(map(str, range(33))), 3),), states, play=0, pace=700)
