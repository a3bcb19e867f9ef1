"""One look for every figure: two widths, size of type, colours with one meaning each."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from figures.palette import HUES

WIDTH, NARROW_WIDTH = 6.4, 3.4  # inches; every figure has the first width, and a second form for phones
BLUE, VERMILLION, GREEN, PURPLE, _ = (hue.line for hue in HUES.values())
QUERY, KEY, SCORE, OTHER = BLUE, VERMILLION, GREEN, PURPLE  # the same quantity has the same colour in the whole book
GREY = HUES["grey"].text

# Zero is the page itself, light or dark. What cannot be negative has the first map, signed quantities the second.
MAP = LinearSegmentedColormap.from_list("share", [to_rgba(HUES["green"].text, 0), to_rgba(HUES["green"].text)])
SIGNED = LinearSegmentedColormap.from_list(
    "signed",
    [(0, to_rgba(VERMILLION)), (0.5, to_rgba(VERMILLION, 0)), (0.5, to_rgba(BLUE, 0)), (1, to_rgba(BLUE))],
)

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
    "svg.hashsalt": "rotate",
    "svg.fonttype": "none",  # text is text: a changed label is a changed line, in the font that the page brings
    "font.family": "DejaVu Sans",
    "legend.frameon": False,
}

_narrow = ContextVar("narrow", default=False)


@contextmanager
def narrow_form() -> Iterator[None]:
    """Inside, every draw_* draws the form for a phone: 3.4 inches wide, panels below each other."""
    token = _narrow.set(True)
    try:
        yield
    finally:
        _narrow.reset(token)


def on_phone() -> bool:
    """Whether the form for a phone is wanted."""
    return _narrow.get()


def sheet(height: float, narrow_height: float | None = None) -> Figure:
    """An empty figure; the heights in inches, the second one on a phone."""
    return Figure(figsize=(NARROW_WIDTH, narrow_height or height) if on_phone() else (WIDTH, height))


def panels(figure: Figure, count: int, **settings) -> np.ndarray:
    """Axes beside each other, on a phone below each other."""
    return figure.subplots(*((count, 1) if on_phone() else (1, count)), **settings)


def frame(ax: Axes) -> None:
    """A line around a map: its zero has no colour."""
    ax.spines[:].set(visible=True, linewidth=0.6, color="0.5")


def arrow(ax: Axes, vector: complex, colour: str, *, faint: bool = False) -> None:
    """An arrow from the origin; faint for where a vector was before it was turned."""
    ax.annotate(
        "",
        (vector.real, vector.imag),
        xytext=(0, 0),
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "alpha": 0.65 if faint else 1.0,
            "linewidth": 1.0 if faint else 1.8,
            "linestyle": "--" if faint else "-",
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def on_map(share: float) -> str:
    """The colour of a number on its cell of MAP."""
    return "black" if share < 0.875 else "white"


def name_if_flat(ax: Axes, values: np.ndarray) -> None:
    """A map of one value looks like a picture that failed, unless it says what it is."""
    if np.ptp(values) < 1e-6:
        ax.text(0.5, 0.5, "all equal", transform=ax.transAxes, ha="center", va="center", fontsize=8)


def signed(values: np.ndarray) -> dict:
    """Settings for imshow: zero in the middle of the map; rounding is no pattern."""
    reach = max(float(np.nanmax(np.abs(values))), 1e-3)
    return {"cmap": SIGNED, "vmin": -reach, "vmax": reach}


def readable(figure: Figure) -> Figure:
    """Give text a colour of 4.5:1 on white, of the same name as the line that it belongs to."""
    by_colour = {hue.line.lower(): hue.text for hue in HUES.values()}
    for text in figure.findobj(Text):
        colour = to_hex(text.get_color())
        red, green, blue = colour[1:3], colour[3:5], colour[5:7]
        if red == green == blue and colour not in ("#000000", "#ffffff"):
            text.set_color(GREY)
        text.set_color(by_colour.get(colour, text.get_color()))
    return figure


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Run a draw_* function under STYLE and nothing else, whatever the reader has set."""

    @functools.wraps(draw)
    def wrapper(**parameters) -> Figure:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(STYLE)
            return readable(draw(**parameters))

    return wrapper
