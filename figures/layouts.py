"""Figures of the chapter on code: one rotation in two layouts."""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from figures.interactive import Piece, label
from figures.style import BLUE, GREEN, PURPLE, VERMILLION, WIDTH, styled
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.layouts import interleaved_to_half_split

VECTOR = (0.9, 0.4, -0.3, 0.8, 0.6, -0.7, 1.0, 0.2)  # interleaved
NAMES = {"interleaved": "AABBCCDD", "half-split": "ABCDABCD"}  # the pair of each dimension
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
    figure = Figure(figsize=(WIDTH, 3.4))
    grid = figure.subplots(2, 2, sharey=True)
    for column, position in zip(grid.T, positions, strict=True):
        for ax, (layout, pairs), vector in zip(column, NAMES.items(), both_layouts(position), strict=True):
            ax.bar(range(len(pairs)), vector.tolist(), color=[COLOURS[pair] for pair in pairs])
            ax.axhline(0, color="0.5", linewidth=0.8)
            ax.set_xticks(range(len(pairs)), [f"{i}\n{pair}" for i, pair in enumerate(pairs)])
            ax.set(ylim=(-1.2, 1.2), ylabel=layout if position == positions[0] else "")
        column[0].set_title(f"position {position}")
    figure.supxlabel("dimension and pair", fontsize=9)
    return figure


def explore_layouts() -> Piece:
    """Both layouts at a position of the reader's choice."""
    states, bars = {}, ""
    heights = {"interleaved": 85, "half-split": 225}
    for m in range(25):
        states[m,] = {
            f"{layout[0]}{i}": {"y2": round(height - 50 * value, 1)}
            for (layout, height), vector in zip(heights.items(), both_layouts(m).tolist(), strict=True)
            for i, value in enumerate(vector)
        }
    for layout, height in heights.items():
        bars += label(10, height + 4, layout)
        bars += f'<path d="M110 {height}H600" stroke="currentColor" stroke-opacity="0.4"></path>'
        for i, pair in enumerate(NAMES[layout]):
            x = 140 + 60 * i
            bars += f'<line x1="{x}" x2="{x}" y1="{height}" stroke="{COLOURS[pair]}" stroke-width="26" '
            bars += f'data-part="{layout[0]}{i}"></line>' + label(x, height + 68, pair, anchor="middle")
    alt = "Two rows of eight bars, the entries of one vector at position 4: neighbours are pairs above, halves below."
    return Piece("layouts", alt, bars, (("position m", tuple(map(str, range(25))), 4),), states)
