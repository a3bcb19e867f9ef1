"""What runs in the page, run here: which cells, after what of the cells above, and what a run says."""

import json
import subprocess
import sys

import pytest

from _ext import in_page, live
from tests.conftest import ROOT
from tests.pages.conftest import code_cells, live_cells

AT_LEAST = {  # cells that a reader can run in the page
    "01_why_position": 9, "02_sinusoidal_encoding": 9, "03_relative_family": 5, "04_rope_from_complex_numbers": 25,
    "05_rotation_matrix": 15, "06_rope_in_code": 5, "07_long_range_decay": 3, "08_linear_attention": 5,
}  # fmt: skip


OUTSIDE = ("torch", "numpy", "matplotlib", "IPython")  # what the page does not bring along


ALONE = f"""
import json, sys
sys.modules.update(dict.fromkeys({OUTSIDE}))  # importing one is an error
import in_page
for line in sys.stdin:
    print(in_page.run(*json.loads(line)), flush=True)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Run cells as the page does: in a Python that has sympy and the book's modules for the page, and no torch."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in live.own_files().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", ALONE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen(command, cwd=folder, env={"PYTHONPATH": str(folder)}, **pipes) as process:

        def run(above, source):
            print(json.dumps([json.dumps(above), source]), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


def stored_result(cell):
    """What the notebook stores, in the words of in_page.run."""
    result = {"printed": "".join(output.text for output in cell.outputs if output.output_type == "stream")}
    for output in cell.outputs:
        if "text/latex" in output.get("data", {}):
            result["latex"] = output.data["text/latex"].removeprefix("$\\displaystyle ").removesuffix("$")
        elif "data" in output:
            result["text"] = output.data["text/plain"]
    return result


@pytest.mark.slow
@pytest.mark.parametrize("stem", sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb")))
def test_live_cells_show_what_the_notebook_stores(stem, alone):
    for above, cell in live_cells(stem):
        result = alone(above, cell.source)
        shown = {key: result[key] for key in ("printed", "latex", "text", "error", "words") if key in result}
        assert shown == stored_result(cell), cell.id


@pytest.mark.parametrize("stem", AT_LEAST)
def test_each_prepared_change_is_refused(stem, alone):
    changed = [cell for cell in code_cells(stem) if "break" in cell.metadata]
    prepared = [(above, cell) for above, cell in live_cells(stem) if "break" in cell.metadata]
    assert len(prepared) == len(changed), "a change is prepared for a cell that does not run in the page"
    for above, cell in prepared:
        change = cell.metadata["break"]
        assert set(change) == {"from", "to", "label"}
        assert cell.source.count(change["from"]) == 1, cell.id
        result = alone(above, cell.source.replace(change["from"], change["to"]))
        assert result["error"].startswith("Refused in line "), cell.id
        assert "reduces to" in result["words"], cell.id
        assert "false at" in result["words"], cell.id
        assert (r"\neq" in result["false"], len(result["sides"])) == (True, 2), cell.id
        assert result["sides"][0] != result["sides"][1], cell.id


def test_key_proofs_have_a_prepared_change():
    for stem, number in {"04_rope_from_complex_numbers": 10, "05_rotation_matrix": 6}.items():
        assert sum("break" in cell.metadata for cell in code_cells(stem)) >= number


@pytest.mark.parametrize(
    ("cells", "runs"),
    [
        (["import sympy as sp", "x = sp.Symbol('x')", "x + 1"], [False, True, True]),
        (["import torch\nimport sympy as sp", "sp.pi", "torch.ones(2)"], [False, True, False]),
        (["x = 1", "import torch\nx = torch.ones(2)", "x + 1"], [True, False, False]),  # x is a tensor now
        (["x = [1]", "import torch\nx[0] = torch.ones(2)", "x"], [True, False, False]),
        (["import torch\ny = 2", "y"], [False, True]),
        (
            ["from rope_lib import cos_sin\nx = 1", "from rope_lib.theory.symbolic import proved\nproved(1, x)"],
            [False, True],
        ),
        (["for i in range(3):\n    j = i\n    print(j)", "i + j"], [True, True]),
        (["[k for k in range(3)]", "k"], [True, False]),  # k is the comprehension's own
        (["f = lambda a, b=1: a + b", "with open('x') as g:\n    g.read()", "h"], [True, True, False]),
        (["%matplotlib inline\n1", "import figures.rotation\nfigures.rotation.draw_solutions()"], [True, False]),
        (["x += 1", "def f(y):\n    z = y\n    return z + w"], [False, False]),
    ],
)
def test_which_cells_are_live(cells, runs):
    assert in_page.live(cells) == runs


@pytest.mark.parametrize(
    ("above", "cell", "kept"),
    [
        (["x = 1", "y = 2", "z = x"], "z", ["x = 1", "z = x"]),
        (["x = 1", "x = 2"], "x", ["x = 2"]),
        (["x = 1", "x = x + 1"], "x", ["x = 1", "x = x + 1"]),
        (["x = 1", "x += 1"], "x", ["x = 1", "x += 1"]),
        (["x = []", "x.append(1)\n0", "x.pop()"], "x", ["x = []", "x.append(1)"]),  # the last one only shows a value
        (["x = [[]]", "x[0].append(1)\n0", "x[0].copy()"], "x", ["x = [[]]", "x[0].append(1)"]),
        (["x = {}", "for k in (1, 2):\n    x[k] = k"], "x", ["x = {}", "for k in (1, 2):\n    x[k] = k"]),
        (["x = 1"], "x = 2\nx", []),
        (["x = 1", "assert x == 1", "print(x)"], "x", ["x = 1"]),
        (["import sympy as sp\nsp.init_printing()\n0"], "1", ["import sympy as sp", "sp.init_printing()"]),
        (["y = 1"], "sum(y for y in (1, 2))", []),
        (["y = 1"], "sum(z for z in (1, y))", ["y = 1"]),
    ],
)
def test_a_cell_runs_after_what_its_names_come_from(above, cell, kept):
    assert [in_page.ast.unparse(statement) for statement in in_page.statements_needed(above, cell)] == kept


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 +", {"error": "SyntaxError in line 1", "code": "1 +", "words": "invalid syntax"}),
        ("x = 1\nassert x == 2", {"error": "Refused in line 2", "code": "assert x == 2", "words": ""}),
        ("\ntorch", {"error": "NameError in line 2", "code": "torch", "words": "name 'torch' is not defined"}),
        ("print('a')\n1 / 0", {"error": "ZeroDivisionError in line 2", "printed": "a\n"}),
        ("raise SystemExit('no')", {"error": "SystemExit in line 1", "words": "no"}),
        ("print('a' * 30_000)", {"printed": "a" * in_page.LONGEST + " ... and 10,001 characters more"}),
        (
            "list(range(10**6))",
            {"text": str([*range(10**5)])[: in_page.LONGEST] + " ... and 7,868,890 characters more"},
        ),
        ("sp.Symbol('x' * 30_000)", {"text": "x" * in_page.LONGEST + " ... and 10,000 characters more"}),
        ("raise KeyboardInterrupt", {"error": "KeyboardInterrupt in line 1", "words": ""}),
        (
            "import numpyy",
            {"error": "ModuleNotFoundError in line 1", "words": f"No module named 'numpyy'{in_page.ONLY}"},
        ),
        ("proved(sp.cos(0), 1)", {"latex": "1 = 1", "claims": True}),
        ("[1, 2]", {"text": "[1, 2]", "claims": False}),
        ("x = 1", {"printed": ""}),
        ("", {"printed": ""}),
    ],
)
def test_what_a_run_says(source, expected, alone):
    result = alone(["import sympy as sp\nfrom rope_lib.theory.symbolic import proved"], source)
    assert {key: result[key] for key in expected} == expected
    assert ("error" in result) is ("error" in expected)


def test_an_error_above_is_named_as_such(alone):
    result = alone(["x = 1 / 0"], "x")
    assert (result["error"], result["words"]) == ("ZeroDivisionError in a cell above", "division by zero")


@pytest.mark.parametrize(("stem", "number"), AT_LEAST.items())
def test_a_chapter_has_live_cells(stem, number):
    assert len(live_cells(stem)) >= number
