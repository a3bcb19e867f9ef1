"""Proofs that run in the page: their controls, and the Python that the pages bring along.

Python for the page is the package `pyodide`, with sympy compiled for it (fetched.py, pack_python.py). In the
page run in_page.py, live.js and live_worker.js; none is loaded before the first click, for which try.js waits.
"""

import html
import json
import shutil
import zipfile
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from _ext import in_page
from _ext.fetched import FETCHED, MODULES
from _ext.formulas import TEMML

ROOT = Path(__file__).parent.parent
PYODIDE = MODULES / "pyodide"
FROM_NPM = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
    "package.json",  # names its licence and where its source is
)
PYTHON = [*(PYODIDE / name for name in FROM_NPM), FETCHED / "python.zip"]
BROUGHT = [*PYTHON, TEMML / "temml.mjs"]


# -- Controls ----------------------------------------------------------------------------------------------------------


def add_controls(app: Sphinx, doctree: nodes.document) -> None:
    """Below the code of each cell that can run in the page: a button, and one more where a change is prepared."""
    cells = [cell for cell in doctree.findall(nodes.container) if cell.get("nb_element") == "cell_code"]
    inputs = [next(c for c in cell.findall(nodes.container) if "cell_input" in c["classes"]) for cell in cells]
    live = in_page.live([code.astext() for code in inputs])
    for cell, code, runs in zip(cells, inputs, live, strict=True):
        if runs:
            code += nodes.raw("", controls(cell["cell_metadata"].get("break")), format="html")
    if any("rb-live" in raw.astext() for raw in doctree.findall(nodes.raw)):  # with the first page's, written out
        app.env.metadata[app.env.docname].setdefault("scripts", []).append("try.js")


def controls(change: dict | None) -> str:
    """The buttons, which live.js fills with life at the first click."""
    try_it = '<button type="button" class="rb-try">Try it</button>'
    if change is None:
        return f'<div class="rb-live">{try_it}</div>'
    data = " ".join(f'data-{key}="{html.escape(change[key])}"' for key in ("from", "to"))
    return f'<div class="rb-live" {data}>{try_it}<button type="button">{html.escape(change["label"])}</button></div>'


# -- Python for the page -----------------------------------------------------------------------------------------------


def own_files() -> dict[str, str]:
    """The book's own modules. rope_lib begins empty: its real first lines import torch."""
    theory = (f"rope_lib/theory/{name}.py" for name in ("__init__", "symbolic"))
    paths = {name: ROOT / name for name in theory} | {"in_page.py": Path(in_page.__file__)}
    return {"rope_lib/__init__.py": ""} | {name: path.read_text(encoding="utf-8") for name, path in paths.items()}


def bring_python(app: Sphinx, exception: Exception | None) -> None:
    """Copy what a page loads at the first "Try it"; live.json says how many bytes that is."""
    if exception is not None or not any("try.js" in page.get("scripts", ()) for page in app.env.metadata.values()):
        return
    folder = Path(app.outdir) / "_static" / "live"
    folder.mkdir(parents=True, exist_ok=True)
    for path in BROUGHT:
        shutil.copyfile(path, folder / path.name)
    with zipfile.ZipFile(folder / "python.zip", "a") as archive:
        for name, text in own_files().items():
            archive.writestr(zipfile.ZipInfo(name), text)
    total = sum((folder / path.name).stat().st_size for path in PYTHON if path.suffix in {".wasm", ".zip"})
    (folder / "live.json").write_text(json.dumps({"bytes": total}), encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", add_controls)
    app.connect("build-finished", bring_python)
