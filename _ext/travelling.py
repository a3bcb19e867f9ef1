"""Notebooks that run in an empty folder: those behind the download buttons carry the code that they import."""

import base64
import io
import json
import lzma
import re
import sys
import tempfile
import zipfile
from modulefinder import ModuleFinder
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
OF_THE_BOOK = re.compile(r"^(?:from|import) (?:rope_lib|lab|figures)\b", re.MULTILINE)
READ = {  # modules that read files, and which: data, and whose it is; the script of pieces
    "rope_lib/config/_classes.py": "rope_lib/config/classes.json",
    "lab/results.py": "lab/results/*.json",
    "lab/traffic.py": "lab/kernel.py",  # whose source the page on costs shows
    "lab/experiments.py": "lab/trained/*.[jmn]*",  # json, npz, and the notice in md
    "lab/opened/found.py": "lab/published_models/[gs]*",  # what was found in SmolLM2 and in Gemma 3
    "lab/opened/shared.py": "lab/published_models/texts.npz",
    "lab/doctor/table.py": "lab/published_models/doctor.npz",
    "lab/doctor/engines.py": "lab/published_models/engines.npz",
    "lab/doctor/judge.py": "lab/published_models/doctor_tried.json",
    "figures/interactive.py": "figures/*.js",
    "figures/engines.py": "lab/published_models/two_engines.json",
}


def imports_of(notebook: dict) -> ModuleFinder:
    """The modules that the notebook imports, directly or through one another: the book's found, all others missing."""
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    finder = ModuleFinder(path=[str(ROOT)])
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "notebook.py")
        script.write_text(re.sub(r"^%.*", "", code, flags=re.MULTILINE), encoding="utf-8")
        finder.run_script(str(script))
    return finder


def packages_needed(finder: ModuleFinder) -> list[str]:
    """What has to be installed, beside the notebook's own IPython."""
    found, missing = ({name.split(".")[0] for name in names} for names in (finder.modules, finder.badmodules))
    return sorted(missing - found - sys.stdlib_module_names - {"IPython", "gguf"})  # what reads weights: see there


def files_of(finder: ModuleFinder) -> dict[str, bytes]:
    """What is needed of the book, by path."""
    files = (Path(module.__file__) for module in finder.modules.values() if module.__file__)
    paths = {path for path in files if path.is_relative_to(ROOT)}
    for reader, read in READ.items():
        if ROOT / reader in paths:
            paths.update(ROOT.glob(read))
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in sorted(paths)}


def measures_time(notebook: dict) -> bool:
    """Whether a GPU would show more: a cell that measures time does it there."""
    measured = [cell for cell in notebook["cells"] if "nbval-ignore-output" in cell["metadata"].get("tags", [])]
    return any("default_device" in "".join(cell["source"]) for cell in measured)


def travelling_cell(notebook: dict) -> dict:
    """A cell that carries what the notebook imports as a zip archive which Python imports from."""
    buffer, finder = io.BytesIO(), imports_of(notebook)
    with zipfile.ZipFile(buffer, "w") as archive:  # not compressed by itself: all files together are a quarter smaller
        for name, content in files_of(finder).items():
            archive.writestr(zipfile.ZipInfo(name), content)  # a fixed date: the same bytes in each build
    packed = base64.b85encode(lzma.compress(buffer.getvalue(), preset=9)).decode()
    needed, gpu = packages_needed(finder), "; with one, it measures its times there" if measures_time(notebook) else ""
    network = "It needs no network and no GPU"
    if any("INSTALL" in "".join(cell["source"]) for cell in notebook["cells"]):
        network = "It fetches the weights of a model where they are not installed, and needs no GPU"
    lines = [
        "#@title The code of the book: run this first",  # for Colab, which folds the cell below its title
        "# The code of the book travels in this cell, zipped (MIT). Nothing that is installed is changed:",
        "# Python imports the book's modules from a folder that goes when the session ends.",
        f"# The notebook needs {', '.join(needed)}. {network}{gpu}.",
        "import base64, lzma, pathlib, sys, tempfile",
        "",
        "book_folder = tempfile.TemporaryDirectory()",
        'archive = pathlib.Path(book_folder.name, "book.zip")',
        f'archive.write_bytes(lzma.decompress(base64.b85decode("{packed}")))',
        "sys.path.insert(0, str(archive))",
    ]
    source = [line + "\n" for line in lines[:-1]] + lines[-1:]
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "book-code",
        "metadata": {"tags": ["hide-input"], "jupyter": {"source_hidden": True}, "cellView": "form"},
        "outputs": [],
        "source": source,
    }


def before_its_use(notebook: dict) -> int:
    """The place of the cell that carries the code: below the title, before the first cell that imports from it."""
    sources = ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in notebook["cells"]]
    return next((i for i, source in enumerate(sources) if OF_THE_BOOK.search(source)), 0)


def pack_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Replace the notebooks behind the download buttons by copies that carry the library."""
    if exception is not None or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if all(cell.get("id") != "book-code" for cell in notebook["cells"]):
            if measures_time(notebook):
                notebook["metadata"]["accelerator"] = "GPU"  # Colab then asks for one
            notebook["cells"].insert(before_its_use(notebook), travelling_cell(notebook))
            path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", pack_notebooks)
