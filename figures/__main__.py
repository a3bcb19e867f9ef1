"""Write every figure with its default parameters to figures/out/*.svg: python -m figures

The built page shows these files in the colours of its theme; the notebooks show the same figures as PNG.
"""

import inspect
import io
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from figures.style import STYLE

OUT = Path(__file__).parent / "out"


# Black becomes the colour of the text: on a page that of its theme, alone that of the reader's preference.
INK = "<style>:root{color:#000;fill:currentColor}@media(prefers-color-scheme:dark){:root{color:#fff}}</style>"


def svg(figure: Figure) -> str:
    """The figure as SVG text: transparent, in the colour of the text, and the same bytes each time."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
    return text.replace("#000000", "currentColor").replace("<defs>", f"{INK}\n <defs>", 1)


def functions(prefix: str) -> dict[str, Callable]:
    """All functions of the package whose names begin so, by the rest of their names."""
    modules = [import_module(f"figures.{path.stem}") for path in sorted(OUT.parent.glob("[a-z]*.py"))]
    named = dict(pair for module in modules for pair in inspect.getmembers(module, inspect.isfunction))
    return {name.removeprefix(prefix): named[name] for name in sorted(named) if name.startswith(prefix)}


def all_figures() -> dict[str, Figure]:
    """Every draw_* of the package, by the name of its file."""
    return {name: draw() for name, draw in functions("draw_").items()}


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    drawn = {f"{name}.svg": svg(figure) for name, figure in all_figures().items()}
    for path in OUT.glob("*.svg"):
        if path.name not in drawn:
            path.unlink()
    for name, text in drawn.items():
        (OUT / name).write_text(text, encoding="utf-8")
    print(f"{len(drawn)} figures in {OUT.relative_to(OUT.parent.parent)}")
