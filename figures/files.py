"""Figures as files: figures/out/*.svg for the pages, *.narrow.svg for a phone, PNG for slides.

The built page shows these files in the colours of its theme; the notebooks show the same figures as PNG. What the first
page shows goes to figures/out/first: the pages are built without torch.
"""

import ast
import binascii
import functools
import hashlib
import inspect
import io
import itertools
import json
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from figures.palette import FIGURES_ON_DARK, HUES
from figures.style import STYLE, narrow_form

OUT = Path(__file__).parent / "out"
ROOT = OUT.parent.parent

# Black becomes the colour of the text: on a page that of its theme, alone that of the reader's preference. The other
# colours are variables: a dark page sets them; a light one leaves what stands behind the comma.
DARK_PAGE = f":root{{color:#fff;{FIGURES_ON_DARK.removesuffix(';')}}}"
INK = f"<style>:root{{color:#000;fill:currentColor}}@media(prefers-color-scheme:dark){{{DARK_PAGE}}}</style>"
COLOURS = {colour.lower(): name for name, hue in HUES.items() for colour in (hue.line, hue.text)}


def svg(figure: Figure, *, outlines: bool = False) -> str:
    """The figure as SVG text: transparent, in the colour of the text, and the same bytes each time.

    Its letters are text, or outlines for a place that does not bring the font.
    """
    buffer = io.StringIO()
    with mpl.rc_context(STYLE | ({"svg.fonttype": "path"} if outlines else {})):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
    text = re.sub(r' [dxy]="[^"]*"|translate\([^)]*\)', lambda place: DIGITS.sub(short, place[0]), text)
    text = re.sub(r' (?:width|height|transform)="[^"]*"', lambda size: DIGITS.sub(r"\g<1>", size[0]), text)
    for number, clip in enumerate(re.findall('<clipPath id="(.*?)"', text)):  # matplotlib's name is made of all digits
        text = text.replace(clip, f"clip{number}")
    text = re.sub(r"(?:\s*<tspan x=.*</tspan>)+", lambda letters: runs(letters[0]), text)
    for colour, name in COLOURS.items():
        text = text.replace(colour, f"var(--rb-{name}, {colour})")
    return text.replace("#000000", "currentColor").replace("<defs>", f"{INK}\n <defs>", 1)


def runs(letters: str) -> str:
    """Letters of one height and look as one line, with a place for each."""
    found = re.findall(r'<tspan x="(.*?)" y="(.*?)" style="(.*?)">(.*?)</tspan>', letters)
    text = ""
    for (y, style), run in itertools.groupby(found, lambda letter: letter[1:3]):
        places, signs = zip(*((x, sign) for x, _, _, sign in run), strict=True)
        text += f'\n<tspan x="{" ".join(places)}" y="{y}" style="{style}" xml:space="preserve">{"".join(signs)}</tspan>'
    return text


DIGITS = re.compile(r"(-?\d+\.\d{3,4})\d*")  # machines differ in the others


def short(number: re.Match) -> str:
    """A hundredth of a point is enough for a place."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def png(figure: Figure) -> bytes:
    """The figure as a picture to paste: 1920 pixels wide, on white."""
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="png", dpi=1920 / figure.get_figwidth(), metadata={"Software": None})
    return buffer.getvalue()


def functions(prefix: str) -> dict[str, Callable]:
    """All functions of the package whose names begin so, by the rest of their names."""
    modules = [import_module(f"figures.{path.stem}") for path in sorted(OUT.parent.glob("[a-z]*.py"))]
    named = dict(pair for module in modules for pair in inspect.getmembers(module, inspect.isfunction))
    return {name.removeprefix(prefix): named[name] for name in sorted(named) if name.startswith(prefix)}


def all_figures(names: Sequence[str] = ()) -> dict[str, Figure]:
    """Every draw_* of the package, or those named, by the name of its file."""
    drawn = functions("draw_")
    return {name: drawn[name]() for name in names or drawn}


def narrow_figures(names: Sequence[str] = ()) -> dict[str, Figure]:
    """The same in their form for a phone."""
    with narrow_form():
        return {f"{name}.narrow": figure for name, figure in all_figures(names).items()}


def first_page() -> dict[str, bytes]:
    """The piece, its still picture, the picture of a shared link and the thumbnails, by file name."""
    return import_module("figures.hero").files() | import_module("figures.thumbnails").files()


# -- Whether what is stored is what would be drawn ---------------------------------------------------------------------


def picture(figure: Figure) -> bytes:
    """The figure as a cell of a notebook stores it."""
    from IPython.core.pylabtools import print_figure  # where figures are stored, there is IPython

    return print_figure(figure, "png", bbox_inches="tight")


def file_of(module: str) -> Path | None:
    """Where a module, or a package, is written; None for what is neither."""
    place = ROOT / module.replace(".", "/")
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None)


@functools.cache
def program(module: str) -> dict[str, str]:
    """A module of `figures` or `lab`, and those that it imports from there, less comments and docstrings."""
    tree = ast.parse(file_of(module).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    found = {module: ast.unparse(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(str() as package, names):
                imported = [package, *(f"{package}.{name.name}" for name in names)]
            case ast.Import(names):
                imported = [name.name for name in names]
            case _:
                continue
        for name in imported:
            if name.startswith(("figures.", "lab.")) and file_of(name):
                found |= program(name)
    return found


def origin(name: str) -> str:
    """What changes with the code that draws a figure, and with the results that it may show.

    Not with rope_lib, which has tests of its own; where tests remember nothing, as in CI, each figure is drawn.
    """
    parts = program(functions("draw_")[name].__module__)
    data = [path for suffix in ("json", "npz") for path in sorted((ROOT / "lab").glob(f"*/*.{suffix}"))]
    text = "".join(parts[module] for module in sorted(parts)).encode()
    reads = any(module.startswith("lab.") for module in parts)
    return hashlib.sha256(text + b"".join(path.read_bytes() for path in data if reads)).hexdigest()


def pictures_in_chapters() -> dict[str, bytes]:
    """The picture that a chapter stores of each figure: that of the cell which is the call alone."""
    found = {}
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            call = re.fullmatch(r"figures\.\w+\.draw_(\w+)\(\)", "".join(cell["source"]))
            for output in cell["outputs"] if call else ():
                found[call[1]] = binascii.a2b_base64(output["data"]["image/png"])
    return found


def write_pngs() -> None:
    """All of them, into build/figures."""
    folder = ROOT / "build" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {name: png(figure) for name, figure in all_figures().items()}
    for name, content in drawn.items():
        (folder / f"{name}.png").write_bytes(content)
    print(f"{len(drawn)} pictures in build/figures")


def write_svgs(names: Sequence[str] = ()) -> None:
    """Those named; or all of them, and what the first page shows, into figures/out."""
    drawn = {f"{name}.svg": svg(figure) for name, figure in (all_figures(names) | narrow_figures(names)).items()}
    for name, text in drawn.items():
        (OUT / name).write_text(text, encoding="utf-8")
    if not names:
        for path in OUT.glob("*.svg"):
            if path.name not in drawn:
                path.unlink()
        for name, content in first_page().items():
            (OUT / "first" / name).write_bytes(content)
    print(f"{len(drawn)} figures in {OUT.relative_to(ROOT)}")
