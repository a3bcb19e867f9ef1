"""Figures of the chapter on reading evidence: published numbers, with what they leave out."""

import math
from itertools import product

from matplotlib.figure import Figure

from figures.interactive import KEY_INK, QUERY_INK, Piece, View, grip, label, line, minus, path
from figures.style import BLUE, GREEN, VERMILLION, on_phone, sheet, styled
from lab import published


@styled
def draw_cases() -> Figure:
    """The test column of table 5, with one standard error each way, and two systems of the paper of the data set."""
    rows = {name: test for name, (_, test) in (published.CAIL | published.CAIL_OTHERS).items()}
    figure = sheet(2.6)
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
    figure = sheet(2.6)
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
    figure = sheet(2.2, 3.8)
    ax = figure.subplots()
    place = published.GLUE_TASKS.index("QQP")
    rows = [("BERT, test set", published.GLUE["BERT"][place], VERMILLION)]
    rows += [("RoFormer, validation set", published.GLUE["RoFormer"][place], BLUE)]
    rows += [(f"{name}, validation set", value, GREEN) for name, value in published.QQP_VALIDATION.items()]
    for height, (_, value, colour) in enumerate(reversed(rows)):
        ax.plot(value, height, "o" if colour != VERMILLION else "s", color=colour, markersize=5)
        ax.annotate(f"{value:g}", (value, height), (7, 0), textcoords="offset points", va="center")
    test, validation = len(rows) - 1, len(rows) - 2  # the rows of table 2
    ends, between = (rows[0][1], rows[1][1]), (test + validation) / 2
    for value, height in zip(ends, (test, validation), strict=True):
        ax.plot([value, value], [height, between], color="0.5", linewidth=0.8, linestyle=":")
    ax.annotate("", (ends[1], between), (ends[0], between), arrowprops={"arrowstyle": "<->", "color": "0.5"})
    ax.text(sum(ends) / 2, between, f"{ends[1] - ends[0]:.1f}", ha="center", va="bottom")
    ax.set_yticks(range(len(rows)), [name.replace(", ", ",\n") if on_phone() else name for name, *_ in reversed(rows)])
    ax.set(xlabel="F1 on QQP", xlim=(69, 94), ylim=(-0.6, len(rows) - 0.4))
    return figure


def explore_gap() -> Piece:
    """Two equally good models, tested on cases of their own: how far apart do they come out, and how often?"""
    sizes, gaps, states = (100, 400, 1536, 6000, 25_000), (0.2, 0.5, 1.0, 1.5, 1.69, 3.0), {}
    for (i, size), (j, gap) in product(enumerate(sizes), enumerate(gaps)):
        error = published.standard_error(69, 69, size)
        bell = [(160 + 30 * z * error, 200 - 170 * math.exp(-z * z / 2)) for z in [x / 8 for x in range(-32, 33)]]
        inside = path([(x, y) for x, y in bell if 0 <= x <= 320])
        states[i, j] = {
            "bell": {"d": inside},
            "gap": {"d": f"M{160 - 30 * gap:.1f} 200V20M{160 + 30 * gap:.1f} 200V20"},
            "grip": {"d": f"M{160 + 30 * gap:.1f} 110h0"},
            "share": {"text": f"{published.as_extreme(gap, 69, size):.1%}"},
            "points": {"text": f"{gap:g}"},
            "cases": {"text": f"{round(gap / 100 * size, 1):g}"},
        }
    svg = (
        '<path d="M0 200H320" stroke="currentColor"></path>' + line("bell", QUERY_INK)
        + f'<path stroke="{KEY_INK}" stroke-width="2" stroke-dasharray="5 4" data-part="gap"></path>'
        + grip(1, part="grip")
        + "".join(label(160 + 30 * x, 218, minus(f"{x:+d}") if x else "0", anchor="middle") for x in range(-5, 6))
        + label(160, 238, "difference of two models that are equally", anchor="middle")
        + label(160, 255, "good, 69 % right (percentage points)", anchor="middle")
    )  # fmt: skip
    alt = "A bell curve of differences of two equally good models, and dashed lines at the gap on both sides."
    said = (
        'Gap in points: <b data-part="points"></b>, in cases: <b data-part="cases"></b>. Of equally good '
        'pairs <b data-part="share"></b> differ by that much or more.'
    )
    words = tuple(f"{size:,}" for size in sizes), tuple(f"{gap:g}" for gap in gaps)
    sliders = (("test cases", words[0], 2), ("gap in points", words[1], 4))
    return Piece("gap", said, (View(alt, svg, (320, 262)),), sliders, states)
