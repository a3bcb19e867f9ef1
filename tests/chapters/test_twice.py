"""What a reader does and a test does not: run a cell, and run it again, with all that it left behind."""

from copy import deepcopy

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_cell_runs_twice_in_a_row(path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [deepcopy(cell) for cell in notebook.cells for _ in range(1 + (cell.cell_type == "code"))]
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": path.parent}}).execute()  # errors are raised
