"""Notebooks behind the download buttons: they carry the code that they import."""

import base64
import io
import json
import lzma
import os
import re
import subprocess
import sys
import zipfile

import nbformat
import pytest
from nbclient import NotebookClient

from _ext import travelling
from tests.conftest import ROOT

STEMS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))


def test_travelling_cell_is_the_same_each_time_and_carries_what_is_needed():
    notebook = json.loads((ROOT / "chapters" / "04_rope_from_complex_numbers.ipynb").read_text(encoding="utf-8"))
    assert travelling.travelling_cell(notebook) == travelling.travelling_cell(notebook)
    carried = travelling.files_of(travelling.imports_of(notebook))
    assert {"rope_lib/theory/symbolic.py", "rope_lib/rotary.py", "rope_lib/_checks.py", "figures/style.py"} <= set(
        carried
    )
    assert not {
        "rope_lib/theory/relative.py",
        "figures/__main__.py",
        "figures/decay.py",
        "lab/opened/shared.py",
    } & set(carried)
    notebook = json.loads((ROOT / "chapters" / "08_linear_attention.ipynb").read_text(encoding="utf-8"))
    assert "lab/results/speed-cpu.json" in travelling.files_of(travelling.imports_of(notebook))


FIRST_CELL = """
import json, os, sys, torch  # torch first: its CUDA build starts ldconfig when it is imported, and is not the book's
changes, own = [], os.environ["TMPDIR"]
def watch(event, details):
    if event in ("os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.connect", "subprocess.Popen"):
        changes.append(event)
    writes = event == "open" and details[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir"):
        if not os.path.realpath(details[0]).startswith(own):
            changes.append([event, str(details[0])])
path, environment = list(sys.path), dict(os.environ)
sys.addaudithook(watch)
exec(sys.stdin.read())
assert (sys.path[1:], dict(os.environ)) == (path, environment)
import figures, lab, rope_lib, neighbour
print(json.dumps([changes, [module.__path__[0] for module in (figures, lab, rope_lib)], neighbour.__file__]))
"""


def test_first_cell_changes_nothing_that_is_installed(tmp_path):
    """No program, no network, no file but in a folder that goes. Others' modules of the same names lose."""
    notebook = json.loads((ROOT / "chapters" / "06_rope_in_code.ipynb").read_text(encoding="utf-8"))
    installed, own = tmp_path / "installed", tmp_path / "own"
    own.mkdir()
    for name in ("figures", "lab", "rope_lib", "neighbour"):
        for folder in (installed, tmp_path / "here"):
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.py").write_text("")
    cell = "".join(travelling.travelling_cell(notebook)["source"])
    environment = os.environ | {"TMPDIR": str(own), "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", FIRST_CELL]
    done = subprocess.run(
        command, input=cell, env=environment, cwd=tmp_path / "here", capture_output=True, text=True, check=True
    )
    changes, ours, neighbour = json.loads(done.stdout)
    assert changes == []
    assert all("book.zip" in path for path in ours)
    assert "book.zip" not in neighbour
    assert list(own.iterdir()) == []
    assert "pip" not in cell.replace(re.search(r'b85decode\("(.*?)"', cell)[1], "")


def carrying(notebook):
    """The one cell that carries the book's code."""
    [cell] = [cell for cell in notebook.cells if cell.id == "book-code"]
    return cell


def test_notebook_says_what_it_needs_and_whether_it_gains_from_a_gpu(html):
    said = {}
    for stem in STEMS:
        notebook = nbformat.read(html / "_sources" / "chapters" / f"{stem}.ipynb", as_version=4)
        assert carrying(notebook).metadata["cellView"] == "form", "what Colab folds"
        title, *_, line = carrying(notebook).source.splitlines()[:4]
        assert title.startswith("#@title ")
        needed = re.fullmatch(
            r"# The notebook needs ([\w, ]+)\. (It needs no network and|It fetches.* needs) no GPU(; .*)?\.", line
        )
        assert set(needed[1].split(", ")) <= {"matplotlib", "mpmath", "numpy", "sympy", "torch", "tqdm"}
        said[stem] = bool(needed[3])
        assert needed[2].startswith("It fetches") == (stem == "12_a_published_model")
        assert (notebook.metadata.get("accelerator") == "GPU") == said[stem]
    assert [stem for stem, gains in said.items() if gains] == ["08_linear_attention"]


@pytest.mark.parametrize("stem", STEMS)
def test_a_downloaded_chapter_is_small(stem, html):
    """Each is run by nbval, in a folder of its own (`make test`). Results travel as data, and so does the model."""
    notebook = nbformat.read(html / "_sources" / "chapters" / f"{stem}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown", "the title comes first"
    code = "\n".join(cell.source for cell in notebook.cells)
    data = {"lab.experiments": 1_700_000, "lab.opened": 450_000, "lab.doctor": 200_000}
    assert len(carrying(notebook).source) < next((limit for name, limit in data.items() if name in code), 100_000)


@pytest.mark.parametrize("stem", STEMS)
def test_a_downloaded_chapter_carries_the_code_of_today(stem, html):
    """Also where the code has changed since, and the page has not."""
    notebook = nbformat.read(html / "_sources" / "chapters" / f"{stem}.ipynb", as_version=4)
    packed = base64.b85decode(re.search(r'b85decode\("(.*?)"', carrying(notebook).source)[1])
    with zipfile.ZipFile(io.BytesIO(lzma.decompress(packed))) as archive:
        old = [name for name in archive.namelist() if archive.read(name) != (ROOT / name).read_bytes()]
    assert old == []


@pytest.mark.slow
def test_a_downloaded_chapter_imports_what_it_carries_and_leaves_nothing_behind(html, tmp_path):
    notebook = nbformat.read(html / "_sources" / "chapters" / "05_rotation_matrix.ipynb", as_version=4)
    ours = "n.split('.')[0] in ('rope_lib', 'figures', 'lab')"
    files = f"(m.__file__ for n, m in sys.modules.items() if {ours} and m.__file__)"
    where = nbformat.v4.new_code_cell(f"import sys; print(*{files}, sep='\\n')")
    notebook.cells.append(where)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    imported = where.outputs[0].text.splitlines()
    assert imported
    assert all("book.zip" in file for file in imported)
    assert list(tmp_path.iterdir()) == []
