"""Figures of the chapter on reading evidence: published numbers, with what they leave out."""

import math
from itertools import product

from matplotlib.figure import Figure

from figures.interactive import Piece, label, line, path
from figures.style import BLUE, GREEN, VERMILLION, WIDTH, styled
from lab import published


@styled
def draw_cases() -> Figure:
    """The test column of table 5, with one standard error each way, and two systems of the paper of the data set."""
    rows = {name: test for name, (_, test) in (published.CAIL | published.CAIL_OTHERS).items()}
    figure = Figure(figsize=(WIDTH, 2.6))
    ax = figure.subplots()
    size = published.CAIL_SIZES["test"]
    for place, (name, percent) in enumerate(reversed(rows.items())):
        colour = BLUE if name in published.CAIL else "0.45"
        error = math.sqrt(percent * (100 - percent) / size)
        ax.errorbar(percent, place, xerr=error, fmt="o", color=colour, markersize=4, capsize=3, linewidth=1)
        count = f"{published.cases(percent, size)} of {size}"
        ax.annotate(count, (74.3, place), va="center", fontsize=8, color="0.35")
    ax.set_yticks(range(len(rows)), list(reversed(rows)))
    ax.set(xlabel="right on the test set (%)", xlim=(66, 76))
    return figure


@styled
def draw_stages() -> Figure:
    """Accuracy of the six stages of pre-training over the length of their texts."""
    figure = Figure(figsize=(WIDTH, 2.6))
    ax = figure.subplots()
    for stage, length, _, _, _, accuracy in published.STAGES:
        ax.plot(length, accuracy, "o", color=BLUE, markersize=5)
        ax.annotate(f"stage {stage}", (length, accuracy), (7, 0), textcoords="offset points", va="center")
    lengths = sorted({length for _, length, *_ in published.STAGES})
    ax.set_xscale("log", base=2)
    ax.set_xticks(lengths, [str(length) for length in lengths])
    ax.minorticks_off()
    ax.set(xlabel="longest text of the stage (tokens)", ylabel="accuracy in training (%)", xlim=(100, 2600))
    return figure


@styled
def draw_two_exams() -> Figure:
    """F1 on QQP: the two numbers of table 2, and BERT on the set on which RoFormer was measured."""
    figure = Figure(figsize=(WIDTH, 2.2))
    ax = figure.subplots()
    place = published.GLUE_TASKS.index("QQP")
    rows = [("BERT, test set", published.GLUE["BERT"][place], VERMILLION)]
    rows += [("RoFormer, validation set", published.GLUE["RoFormer"][place], BLUE)]
    rows += [(f"{name}, validation set", value, GREEN) for name, value in published.QQP_VALIDATION.items()]
    for height, (_, value, colour) in enumerate(reversed(rows)):
        ax.plot(value, height, "o" if colour != VERMILLION else "s", color=colour, markersize=5)
        ax.annotate(f"{value:g}", (value, height), (7, 0), textcoords="offset points", va="center")
    ax.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
    ax.set(xlabel="F1 on QQP", xlim=(69, 92), ylim=(-0.6, len(rows) - 0.4))
    return figure


def explore_gap() -> Piece:
    """Two equally good models, tested on cases of their own: how far apart do they come out, and how often?"""
    sizes, gaps, states = (100, 400, 1536, 6000, 25_000), (0.2, 0.5, 1.0, 1.5, 1.69, 3.0), {}
    for (i, size), (j, gap) in product(enumerate(sizes), enumerate(gaps)):
        error = published.standard_error(69, 69, size)
        bell = [(320 + 60 * z * error, 200 - 170 * math.exp(-z * z / 2)) for z in [x / 8 for x in range(-32, 33)]]
        inside = path([(x, y) for x, y in bell if 0 <= x <= 640])
        states[i, j] = {
            "bell": {"d": inside},
            "gap": {"d": f"M{320 - 60 * gap:.1f} 200V20M{320 + 60 * gap:.1f} 200V20"},
            "share": {"text": f"{published.as_extreme(gap, 69, size):.1%} of such pairs differ by that much or more"},
            "cases": {"text": f"{gap / 100 * size:.1f} cases"},
        }
    svg = (
        '<path d="M0 200H640" stroke="currentColor"></path>' + line("bell", BLUE)
        + f'<path stroke="{VERMILLION}" stroke-width="2" stroke-dasharray="5 4" data-part="gap"></path>'
        + "".join(label(320 + 60 * x, 218, f"{x:+d}" if x else "0", anchor="middle") for x in range(-5, 6))
        + label(320, 240, "difference of two models that are equally good, 69 % right (points)", anchor="middle")
        + label(8, 20, part="share") + label(632, 20, part="cases", anchor="end")
    )  # fmt: skip
    alt = "A bell curve of differences, and dashed lines at a gap of 1.69 points, well inside: 31 % lie beyond."
    words = tuple(f"{size:,}" for size in sizes), tuple(f"{gap:g} points" for gap in gaps)
    return Piece("gap", alt, svg, (("test cases", words[0], 2), ("gap", words[1], 4)), states, size=(640, 250))
