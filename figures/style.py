"""One look for every figure: width, size of type, colours with one meaning each."""

import functools
from collections.abc import Callable

import matplotlib as mpl
from matplotlib.figure import Figure

WIDTH = 6.4  # inches; every figure has this width
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"  # Okabe-Ito, 3:1 on white and on black
QUERY, KEY, SCORE, OTHER = BLUE, VERMILLION, GREEN, PURPLE  # the same quantity has the same colour in the whole book
MAP, SIGNED = "viridis", "cividis"
DARK = "#111111"  # on light cells of a map; black itself would turn white with a dark theme

STYLE = {
    "figure.figsize": (WIDTH, 3.0),
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "lines.linewidth": 1.5,
    "image.interpolation": "none",
    "image.cmap": MAP,
    "svg.hashsalt": "rotate",
    "svg.fonttype": "path",
    "legend.frameon": False,
}


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Run a draw_* function under STYLE and nothing else, whatever the reader has set."""

    @functools.wraps(draw)
    def wrapper(**parameters) -> Figure:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(STYLE)
            return draw(**parameters)

    return wrapper
