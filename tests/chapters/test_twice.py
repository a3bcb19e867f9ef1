"""What a reader does and a test does not: run a cell, and run it again, with all that it left behind."""

import re
from copy import deepcopy

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

PICTURE = re.compile(r"figures\.\w+\.\w+\(\)")  # one call, which leaves nothing behind
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_cell_runs_twice_in_a_row(path):
    notebook = nbformat.read(path, as_version=4)
    programs = [cell for cell in notebook.cells if cell.cell_type == "code" and not PICTURE.fullmatch(cell.source)]
    # What trains or is timed for seconds runs once.
    times = [1 if "nbval-ignore-output" in cell.metadata.get("tags", []) else 2 for cell in programs]
    notebook.cells = [deepcopy(cell) for cell, many in zip(programs, times, strict=True) for _ in range(many)]
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": path.parent}}).execute()  # errors are raised
