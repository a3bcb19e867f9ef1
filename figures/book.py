"""Figures about the book itself."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from figures.style import SCORE, on_phone, sheet, styled

CHAPTERS = {  # title, the question that the chapter answers, and what leads to the next
    "1": ("Why\nposition?", "Does attention\nsee order?", "add\na code"),
    "2": ("Sinusoidal\nencoding", "What does adding\nsines tell?", "edit\nthe score"),
    "3": ("The relative\nfamily", "How to tell\nthe distance?", "turn q and k\ninstead"),
    "4": ("RoPE from\ncomplex numbers", "Must it be\na rotation?", "pairs side by side"),
    "5": ("The rotation\nmatrix", "What changes in\nd dimensions?", "write\nit down"),
    "6": ("RoPE\nin code", "Why do programs\nget it wrong?", "look\nfar"),
    "7": ("Long-range\ndecay", "Do far words\ncount less?", "products\nonly"),
    "8": ("Linear\nattention", "What without\nthe softmax?", "longer texts"),
    "9": ("Beyond the\ntraining length", "What if the text\nis longer?", "train\nand see"),
    "10": ("Does it\nwork?", "What do trained\nmodels say?", "look at\nothers' numbers"),
    "11": ("Reading the\nevidence", "What do the\npapers show?", "open\na real one"),
    "12": ("A published\nmodel", "Does it hold\nin a real one?", ""),
}
SUMMIT = ("4", "5")  # the chapters that derive the rotation


@styled
def draw_book_map() -> Figure:
    """The chapters, the question each answers, and what leads from one to the next; the derivation stands out."""
    return _column() if on_phone() else _rows()


def _rows() -> Figure:
    """Rows of four, every other one from right to left."""
    figure = sheet(4.8)
    ax = figure.subplots()
    ax.set(xlim=(-0.44, 3.44), ylim=(-2.4, 0.5))
    ax.axis("off")
    places = {}
    for step, (number, (title, question, _)) in enumerate(CHAPTERS.items()):
        row, column = divmod(step, 4)
        places[number] = x, y = (3 - column if row % 2 else column), -row
        _box(ax, number, (x - 0.4, y - 0.3, 0.8, 0.6))
        ax.text(x, y + 0.23, number, ha="center", va="center", weight="bold", color=_colour(number) or "black")
        ax.text(x, y + 0.05, title, ha="center", va="center", weight="bold", fontsize=8)
        ax.text(x, y - 0.18, question, ha="center", va="center", fontsize=8)
    for (xa, ya), (xb, yb), (*_, label) in zip(
        places.values(), [*places.values()][1:], CHAPTERS.values(), strict=False
    ):
        along, down = (xb > xa) - (xb < xa), yb < ya
        tail, head = (xa + 0.42 * along, ya - 0.32 * down), (xb - 0.42 * along, yb + 0.32 * down)
        ax.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "linewidth": 1.2})
        place = ((xa + xb) / 2, ya + 0.41) if along else (xa + (0.06 if xa == 0 else -0.06), ya - 0.4)
        side = "center" if along else ("left" if xa == 0 else "right")
        ax.text(*place, label, ha=side, va="center", fontsize=8, style="italic")
    return figure


def _column() -> Figure:
    """One below the other."""
    figure = sheet(4.8, 8.4)
    ax = figure.subplots()
    ax.set(xlim=(0, 1), ylim=(-len(CHAPTERS) + 0.45, 0.35))
    ax.axis("off")
    for step, (number, (title, question, label)) in enumerate(CHAPTERS.items()):
        _box(ax, number, (0.02, -step - 0.27, 0.96, 0.54))
        ax.text(0.04, -step, number, va="center", weight="bold", color=_colour(number) or "black")
        ax.text(0.13, -step + 0.12, title.replace("\n", " "), va="center", weight="bold", fontsize=9)
        ax.text(0.13, -step - 0.13, question.replace("\n", " "), va="center", fontsize=9)
        if label:
            ax.annotate(
                "", (0.07, -step - 0.7), (0.07, -step - 0.3), arrowprops={"arrowstyle": "-|>", "linewidth": 1.2}
            )
            ax.text(0.13, -step - 0.5, label.replace("\n", " "), va="center", fontsize=9, style="italic")
    return figure


def _colour(number: str) -> str | None:
    return SCORE if number in SUMMIT else None


def _box(ax, number: str, place: tuple[float, float, float, float]) -> None:
    """A rounded frame: left, bottom, width, height."""
    x, y, width, height = place
    look = {"edgecolor": _colour(number) or "0.5", "linewidth": 2 if number in SUMMIT else 1}
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.05", fill=False, **look))
