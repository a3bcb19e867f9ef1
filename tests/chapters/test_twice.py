"""Cells that run again, as they are and changed: these runs are made, can fail, and move nothing."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import nbformat
import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a kernel is forked on Linux only")

CELLS = [  # source, its tags, what it prints, what a second run says
    ("import random, sys\nfrom types import SimpleNamespace\nrandom.seed(1)\nnumbers, y = [], 1", [], "", ""),
    ("x = 1\ndel y", [], "", "NameError: name 'y' is not defined"),
    # A generator, a list that grows, a name that is bound anew: the cells after them find what one run left.
    ("numbers.append(random.random())\nprint(len(numbers), numbers[-1])", [], "1 0.13436424411240122\n", ""),
    ("numbers.append(random.random())\nprint(len(numbers), numbers[-1])", [], "2 0.8474337369372327\n", ""),
    ("numbers = len(numbers)", [], "", "TypeError: object of type 'int' has no len()"),
    ("numbers += 1\nprint(numbers)", [], "3\n", ""),
    # A claim that can fail, one that cannot, and functions that look their names up where they were written.
    ("z = 3\ndef f(x):\n    return x + z\nassert f(2) == 5", [], "", ""),
    ("z = 3\nassert len([z, 3]) < 10", [], "", "It refuses none of these"),
    # What trains or is timed, and one call of a figure, run once.
    ("y = 1", [], "", ""),
    ("del y", ["nbval-ignore-output"], "", ""),
    ("figures = SimpleNamespace(page=SimpleNamespace(draw=iter([None]).__next__))", [], "", ""),
    ("figures.page.draw()", [], "", ""),
    # In a kernel that holds a GPU nothing runs twice, and the summary says so.
    ("sys.modules['torch'] = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True))", [], "", ""),
    ("del figures", [], "", ""),
]


@pytest.mark.slow
def test_second_run_can_fail_and_moves_nothing(tmp_path):
    notebook = nbformat.v4.new_notebook()
    for number, (source, tags, printed, _) in enumerate(CELLS, start=1):
        outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
        cell = nbformat.v4.new_code_cell(source, execution_count=number, outputs=outputs, metadata={"tags": tags})
        notebook.cells.append(cell)
    nbformat.write(notebook, tmp_path / "a.ipynb")
    command = [sys.executable, "-m", "pytest", "-p", "tests.twice", "--nbval", "-p", "no:cacheprovider"]
    command += [f"--junitxml={tmp_path / 'a.xml'}", tmp_path / "a.ipynb"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    failures = [case.find("failure") for case in ET.parse(tmp_path / "a.xml").iter("testcase")]
    for (source, _, _, expected), failure in zip(CELLS, failures, strict=True):
        said = "" if failure is None else failure.text
        assert bool(said) == bool(expected), (source, said)
        assert expected in said
        assert (
            not said or "Run twice in a row, this cell fails" in said or "Whatever is changed, this cell passes" in said
        )
    assert "\n2 cells ran once, not twice in a row: a kernel that holds a GPU cannot be forked\n" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("print(1)", ""),
        ("1 +", "SyntaxError: invalid syntax"),
        ("while True: pass", "It has not ended after 5 seconds."),
        ("import os; os.abort()", "Its process ended with -6."),
    ],
)
def test_second_run_ends_well_or_says_how(source, said):
    """In a process of its own: a fork of the tests' own would hold all that they hold."""
    program = f"""
from IPython.core.interactiveshell import InteractiveShell
from tests.twice import again
InteractiveShell.instance()
print(again({source!r}, 5))
"""
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip().endswith(said)
    assert said or not printed.strip()
