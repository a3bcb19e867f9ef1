"""Homework for students, keys for teachers, from one source.

What stands between the marks BEGIN SOLUTION and END SOLUTION is left out for students and kept in the keys.
Students also get the chapters with nothing to look up in them: neither outputs nor solutions nor assertions.
"""

import ast
import base64
import hashlib
import io
import json
import lzma
import re
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat

from lectures.teacher.numbers import filled

FOLDER = Path(__file__).parent
CHECK = FOLDER / "check"
ROOT = FOLDER.parent.parent
BEGIN, END = r"^([ \t]*)### BEGIN SOLUTION\n", r"^[ \t]*### END SOLUTION(?:\n|\Z)"
SOLUTION = re.compile(r"<details><summary>Solution.*?</details>\s*", re.DOTALL)
WRITTEN = ".written.json"  # the state of the files when they were written
FILES = ("adapters.py", "hw1_rope.ipynb", "hw2_prove.md", "hw3_length.ipynb")
EXAMS, EXAM_NAMES = ROOT / "lectures" / "teacher", ("exam", "exam_short")
MARKING = ("marks.py", "hand_in.py")  # beside the teacher's check

CARRIED = """\
#@title The check: run this first
# The check travels in this cell, compressed (MIT). Python imports it from a file that goes when the session ends.
import base64, lzma, pathlib, sys, tempfile, zipfile

check_folder = tempfile.TemporaryDirectory()
carried = pathlib.Path(check_folder.name, "check.zip")
carried.write_bytes(lzma.decompress(base64.b85decode("PACKED")))
sys.path.insert(0, str(carried))
if getattr(sys.modules.get("check"), "__file__", None):  # one that was imported before, perhaps another
    for name in [name for name in sys.modules if name.split(".")[0] == "check"]:
        del sys.modules[name]
with zipfile.ZipFile(carried) as files:
    texts = {pathlib.Path(name): files.read(name) for name in files.namelist()}
here = {path: path.is_file() and path.read_bytes().replace(b"\\r\\n", b"\\n") for path in texts}
if pathlib.Path("check.py").exists() or (any(here.values()) and here != texts):
    print(
        "In this folder lies another check: one of another version, or a program of yours. It stays as it is and is not"
        " used; the check of this sheet is the one that came with it."
    )
del carried, files, texts, here"""


def without_solution(text: str, *, code: bool) -> str:
    """For students: a function that is not written yet says so, elsewhere nothing is left."""

    def left(match: re.Match) -> str:
        return f'{match[1]}raise NotImplementedError("your code here")\n' if code and match[1] else ""

    return re.sub(BEGIN + ".*?" + END, left, text, flags=re.MULTILINE | re.DOTALL)


def with_solution(text: str, *, code: bool) -> str:
    """For teachers: all but the marks."""
    return re.sub(f"{BEGIN}|{END}", "", text, flags=re.MULTILINE)


def write(name: str, folder: Path, change=with_solution) -> Path:
    """One file of the homework, changed cell by cell."""
    source, target = FOLDER / name, folder / name
    if source.suffix != ".ipynb":
        target.write_text(change(source.read_text(encoding="utf-8"), code=source.suffix == ".py"), encoding="utf-8")
        return target
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells:
        cell.source = change(cell.source, code=cell.cell_type == "code").rstrip()
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    if "from lab" in str(notebook.cells):
        below_title(notebook, carrying(notebook))
    if "import check" in str(notebook.cells) and change is without_solution:
        below_title(notebook, carrying_check())
    nbformat.write(notebook, target)
    return target


def carrying(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The first cell of a chapter that travels: it brings the code of the book along."""
    from _ext.travelling import travelling_cell  # with Sphinx, which the two functions above do not need

    return nbformat.from_dict(travelling_cell(notebook))


def below_title(notebook: nbformat.NotebookNode, cell: nbformat.NotebookNode) -> None:
    """Put a cell before the first one with code."""
    place = next(i for i, other in enumerate(notebook.cells) if other.cell_type == "code")
    notebook.cells.insert(place, cell)


def carrying_check() -> nbformat.NotebookNode:
    """The first cell of a sheet that is opened alone, in Colab or out of a letter: it brings its check along.

    Whatever is called check beside the sheet, it is neither used nor changed.
    """
    packed = base64.b85encode(lzma.compress(zipped_check(), preset=9)).decode()
    source = CARRIED.replace("PACKED", packed)
    hidden = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}, "cellView": "form"}
    return nbformat.v4.new_code_cell(source, id="book-code", metadata=hidden)


def zipped_check() -> bytes:
    """The check as a file from which Python imports. It is the same each time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as files:
        for path in sorted(CHECK.glob("*.py")):
            files.writestr(zipfile.ZipInfo(f"check/{path.name}"), path.read_bytes())
    return file.getvalue()


def write_check(folder: Path, seed: int = 0) -> None:
    """The check, with a number of its own for what it draws."""
    (folder / "check").mkdir(exist_ok=True)
    for path in CHECK.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name == "seed.py":
            text, count = re.subn(r"^SEED = 0\b", f"SEED = {seed}", text, flags=re.MULTILINE)
            assert count == 1
        (folder / "check" / path.name).write_text(text, encoding="utf-8")


def without_assertions(source: str) -> str:
    """A cell without those, as they say what it will find."""
    kept: list[str | None] = [*source.splitlines()]
    for node in ast.walk(ast.parse(re.sub(r"^%.*", "", source, flags=re.MULTILINE))):
        if isinstance(node, ast.stmt) and only_asserts(node):
            kept[node.lineno - 1 : node.end_lineno] = [None] * (node.end_lineno - node.lineno + 1)
    return "\n".join(line for line in kept if line is not None).strip("\n")


def only_asserts(statement: ast.stmt) -> bool:
    """Whether it is an assertion, or a loop or a block with nothing else in it."""
    body = getattr(statement, "body", ())
    return isinstance(statement, ast.Assert) or (bool(body) and all(map(only_asserts, body)))


def cleared(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A chapter without its outputs, assertions and solutions, nor the hidden cells behind these. Hints stay."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.source = without_assertions(cell.source)
        else:
            cell.source = SOLUTION.sub("", cell.source).rstrip()
    kept = (cell for cell in notebook.cells if "hide-cell" not in cell.metadata.get("tags", ()))
    notebook.cells = [cell for cell in kept if cell.source]
    return notebook


def write_chapters(folder: Path) -> None:
    """The cleared chapters, which run in an empty folder, and the pages that they link to, as they are."""
    folder.mkdir(exist_ok=True)
    for path in sorted((ROOT / "chapters").iterdir()):
        if path.suffix == ".ipynb":
            notebook = cleared(nbformat.read(path, as_version=4))
            below_title(notebook, carrying(notebook))
            nbformat.write(notebook, folder / path.name)
        elif path.suffix in (".md", ".bib"):
            (folder / path.name).write_bytes(path.read_bytes())
            for picture in re.findall(r"\.\./(figures/out/\S+\.svg)", path.read_text(encoding="utf-8")):
                target = folder.parent / picture
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((ROOT / picture).read_bytes())


def put(new: Path, folder: Path) -> None:
    """Copy files, unless one that is there was changed since it was written: a solution, perhaps, and hours of work."""
    record, known = folder / WRITTEN, {}
    if record.exists():
        known = json.loads(record.read_text(encoding="utf-8"))
    present, written = states(folder), states(new)
    changed = [name for name, state in present.items() if state not in (known.get(name), written.get(name, state))]
    if changed:
        sys.exit(
            f"Error: {', '.join(changed)} in {folder} changed since they were written (your solutions?); nothing was "
            "written. Rename the folder, or remove what you do not need, and try again."
        )
    for path in (path for path in new.rglob("*") if path.is_file()):
        target = folder / path.relative_to(new)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    record.write_text(json.dumps(written), encoding="utf-8")


def states(folder: Path) -> dict[str, str]:
    """What changes with each sheet of the homework and each chapter."""
    present = (path for path in sorted(folder.rglob("*.*")) if path.suffix in (".ipynb", ".md", ".py"))
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in present}


def student(folder: Path) -> None:
    """Everything a student gets."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as new:
        for name in FILES:
            write(name, Path(new), without_solution)
        write_check(Path(new))
        write_chapters(Path(new, "chapters"))
        put(Path(new), folder)


def teacher(folder: Path, seed: int, version: str = "A") -> None:
    """Keys, the check with other numbers and what marks with it, exams and their keys: for no other user to read."""
    exams = {name: filled((EXAMS / f"{name}.md").read_text(encoding="utf-8"), seed, version) for name in EXAM_NAMES}
    for name, text in exams.items():
        key = folder / f"{name}_key.md"
        if key.exists() and key.read_text(encoding="utf-8") != with_solution(text, code=False):
            sys.exit(
                f"Error: {key} is that of another exam (another SEED, or an older book); nothing was written. Rename "
                f"{folder}, or take the seed that it was made with."
            )
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for name in FILES:
        write(name, folder)
    write_check(folder, seed)
    for name in MARKING:
        (folder / name).write_bytes((FOLDER / name).read_bytes())
    for name, text in exams.items():
        (folder / f"{name}.md").write_text(without_solution(text, code=False), encoding="utf-8")
        (folder / f"{name}_key.md").write_text(with_solution(text, code=False), encoding="utf-8")
