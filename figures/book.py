"""Figures about the book itself."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from figures.style import BLUE, GREEN, VERMILLION, WIDTH, styled

CHAPTERS = {  # number: (title, question, x, y, colour)
    "02": ("Sinusoidal encoding", "What does adding\nsines tell?", 0.0, 0.0, BLUE),
    "04": ("RoPE from\ncomplex numbers", "Must it be\na rotation?", 1.0, 0.0, VERMILLION),
    "05": ("The rotation matrix", "What changes in\nd dimensions?", 2.0, 0.0, GREEN),
}
ARROWS = (("02", "04", "one code is an\norbit of a rotation"), ("04", "05", "pairs side\nby side"))


@styled
def draw_book_map() -> Figure:
    """The chapters, the question each answers, and what leads from one to the next."""
    figure = Figure(figsize=(WIDTH, 2.1))
    ax = figure.subplots()
    ax.set(xlim=(-0.42, 2.42), ylim=(-0.62, 0.62))
    ax.axis("off")
    for number, (title, question, x, y, colour) in CHAPTERS.items():
        box = FancyBboxPatch(
            (x - 0.32, y - 0.42), 0.64, 0.84, boxstyle="round,pad=0.02", fill=False, edgecolor=colour, linewidth=1.5
        )
        ax.add_patch(box)
        ax.text(x, y + 0.34, number, ha="center", va="center", color=colour, weight="bold")
        ax.text(x, y + 0.12, title, ha="center", va="center", weight="bold", fontsize=8)
        ax.text(x, y - 0.22, question, ha="center", va="center", fontsize=8)
    for start, end, label in ARROWS:
        (xa, ya), (xb, yb) = CHAPTERS[start][2:4], CHAPTERS[end][2:4]
        ax.annotate("", (xb - 0.36, yb), (xa + 0.36, ya), arrowprops={"arrowstyle": "-|>", "linewidth": 1.2})
        ax.text((xa + xb) / 2, ya - 0.56, label, ha="center", va="center", fontsize=7, style="italic")
    return figure
