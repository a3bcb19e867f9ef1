"""Write every figure with its default parameters to figures/out/*.svg: python -m figures

The built page shows these files in the colours of its theme; the notebooks show the same figures as PNG.
"""

import io
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import figures
from figures.style import STYLE

OUT = Path(__file__).parent / "out"


def svg(figure: Figure) -> str:
    """The figure as SVG text: transparent, and the same bytes each time."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def all_figures() -> dict[str, Figure]:
    """Every draw_* of the package, by the name of its file."""
    return {name.removeprefix("draw_"): getattr(figures, name)() for name in figures.__all__}


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    drawn = {f"{name}.svg": svg(figure) for name, figure in all_figures().items()}
    for path in OUT.glob("*.svg"):
        if path.name not in drawn:
            path.unlink()
    for name, text in drawn.items():
        (OUT / name).write_text(text, encoding="utf-8")
    print(f"{len(drawn)} figures in {OUT.relative_to(OUT.parent.parent)}")
