"""Figures of the chapter on sinusoidal encoding."""

import numpy as np
import torch
from matplotlib.figure import Figure

from figures.interactive import Piece, label
from figures.style import BLUE, GREEN, OTHER, SIGNED, VERMILLION, WIDTH, styled
from lab.similarity import closest_codes
from rope_lib import inverse_frequencies, sinusoidal_encoding
from rope_lib.decay import cosine_sum


def codes(length: int, dim: int, base: float = 10000.0) -> np.ndarray:
    """(length, dim) float64: the codes of positions 0 .. length - 1."""
    return sinusoidal_encoding(torch.arange(length), dim, base=base, dtype=torch.float64).numpy()


@styled
def draw_wavelengths(*, dim: int = 128, base: float = 10000.0) -> Figure:
    """How many tokens each pair needs for one full turn."""
    turn = 2 * np.pi / inverse_frequencies(dim, base=base).numpy()
    figure = Figure(figsize=(WIDTH, 2.6))
    ax = figure.subplots()
    ax.semilogy(turn, color=BLUE)
    for pair in (0, len(turn) - 1):
        ax.plot(pair, turn[pair], "o", color=BLUE)
        ax.annotate(
            f"pair {pair}: {turn[pair]:.4g} tokens",
            (pair, turn[pair]),
            xytext=(10, -5) if pair == 0 else (-10, 0),
            textcoords="offset points",
            ha="left" if pair == 0 else "right",
            va="center",
        )
    ax.set(xlabel="pair $i$", ylabel="tokens per full turn", ylim=(1, 2 * turn[-1]))
    return figure


@styled
def draw_sinusoidal_heatmap(*, length: int = 64, dim: int = 64, base: float = 10000.0) -> Figure:
    """The code of each position, one row per position."""
    figure = Figure(figsize=(WIDTH, 3.6))
    ax = figure.subplots()
    image = ax.imshow(codes(length, dim, base), cmap=SIGNED, aspect="auto", vmin=-1, vmax=1)
    ax.set(xlabel="dimension (even: sine, odd: cosine)", ylabel="position $m$ (tokens)")
    figure.colorbar(image, ax=ax, label="value", ticks=[-1, 0, 1])
    return figure


@styled
def draw_binary_clock(*, length: int = 32, bits: int = 5) -> Figure:
    """Binary digits beside a sinusoidal code whose pairs turn once in 2, 4, 8, ... tokens."""
    digits, waves = clock(length, bits)
    figure = Figure(figsize=(WIDTH, 2.8))
    for ax, values, title in zip(figure.subplots(2, 1, sharex=True), (digits, waves), ("digit", "wave"), strict=True):
        ax.imshow(values.T, cmap=SIGNED, aspect="auto", vmin=0, vmax=1)
        ax.set(ylabel=title, yticks=range(bits), yticklabels=[f"{2**b}s" for b in range(bits)])
    ax.set_xlabel("position $m$ (tokens)")
    return figure


def clock(length: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(length, bits) binary digits of 0 .. length - 1, and sines of the same periods, as values in [0, 1]."""
    m = np.arange(length)[:, None]
    period = 2.0 ** (np.arange(bits) + 1)
    return (m >> np.arange(bits)) & 1, 0.5 - 0.5 * np.sin(2 * np.pi * (m + 0.5) / period)


@styled
def draw_code_similarity(*, dims: tuple[int, ...] = (32, 128, 512), reach: int = 120, base: float = 10000.0) -> Figure:
    """The scalar product of two codes against their distance, divided by its value at distance 0."""
    delta = torch.arange(-reach, reach + 1, dtype=torch.float64)
    figure = Figure(figsize=(WIDTH, 2.8))
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
    figure = Figure(figsize=(WIDTH, 2.5))
    axes = figure.subplots(1, 3, sharey=True)
    for ax, matrix, title in zip(axes, matrices, titles, strict=True):
        ax.imshow(pe @ matrix @ pe.T, cmap=SIGNED)
        ax.set(xlabel="position $n$ (tokens)", title=title, xticks=[0, 30, 60], yticks=[0, 30, 60])
    axes[0].set_ylabel("position $m$ (tokens)")
    return figure


@styled
def draw_nearest_twin(*, length: int = 10000, dims: tuple[int, ...] = (2, 4, 8, 64), base: float = 10000.0) -> Figure:
    """The closest pair of codes among all positions up to a distance, per square root of the number of pairs."""
    delta = np.arange(1, length)
    figure = Figure(figsize=(WIDTH, 2.8))
    ax = figure.subplots()
    styles = zip(dims, (OTHER, VERMILLION, GREEN, BLUE), ("-", "--", "-.", "-"), strict=False)
    for dim, colour, dash in styles:
        closest = closest_codes(length, dim, base)
        ax.loglog(delta, closest, color=colour, linestyle=dash, drawstyle="steps-post")
        ax.annotate(f"$d = {dim}$", (length, closest[-1]), xytext=(3, 0), textcoords="offset points", va="center")
    ax.set(xlabel="distances up to $\\Delta$ (tokens)", ylabel="smallest $|PE_m - PE_{m+\\Delta}|\\,/\\,\\sqrt{d/2}$")
    return figure


def explore_code() -> Piece:
    """The heat map of sinusoidal codes with a cursor, and the code at the cursor as bars."""
    length, dim = 32, 16
    codes = sinusoidal_encoding(torch.arange(length), dim).tolist()
    cells = "".join(
        f'<rect x="{20 + 17 * c}" y="{10 + 8 * m}" width="17" height="8" fill="{BLUE if v >= 0 else VERMILLION}" '
        f'fill-opacity="{abs(v):.2f}"></rect>'
        for m, row in enumerate(codes)
        for c, v in enumerate(row)
    )
    states = {}
    for m, row in enumerate(codes):
        bars = "".join(f"M{350 + 17 * c} 140V{140 - 100 * v:.1f}" for c, v in enumerate(row))
        states[m,] = {"cursor": {"y": 10 + 8 * m}, "bars": {"d": bars}}
    svg = (
        cells
        + '<rect x="18" width="276" height="8" fill="none" stroke="currentColor" stroke-width="2" data-part="cursor">'
        + "</rect>"
        + f'<path stroke="{BLUE}" stroke-width="11" data-part="bars"></path>'
        + '<path d="M340 140h280" stroke="currentColor"></path>'
        + label(156, 285, "dimension; positions downwards", anchor="middle")
        + label(480, 285, "the code of the position", anchor="middle")
    )
    alt = "Heat map of 32 sinusoidal codes of 16 numbers with a cursor at position 5, and the code there as bars."
    return Piece("code", alt, svg, (("position", tuple(map(str, range(length))), 5),), states)
