"""Proofs that run in the page: which cells, what they need and show; then in a browser, with Python in WebAssembly."""

import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from urllib.parse import urlparse

import nbformat
import pytest
from browsing import Visit
from conftest import CI, HTML, ROOT
from playwright.sync_api import TimeoutError

sys.path.insert(0, str(ROOT / "_ext"))
import in_page
import live

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


def code_cells(stem):
    notebook = nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def live_cells(stem):
    """(cells above, cell) for each that is live."""
    cells = code_cells(stem)
    sources = [cell.source for cell in cells]
    return [(sources[:i], cells[i]) for i, runs in enumerate(in_page.live(sources)) if runs]


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


# -- Which cells, and what they show -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("stem", "number"), AT_LEAST.items())
def test_a_chapter_has_live_cells(stem, number):
    assert len(live_cells(stem)) >= number


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
        (["from rope_lib import cos_sin\nx = 1", "from rope_lib.symbolic import proved\nproved(1, x)"], [False, True]),
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
    assert [in_page.ast.unparse(statement) for statement in in_page.before(above, cell)] == kept


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 +", {"error": "SyntaxError in line 1", "code": "1 +", "words": "invalid syntax"}),
        ("x = 1\nassert x == 2", {"error": "Refused in line 2", "code": "assert x == 2", "words": ""}),
        ("\ntorch", {"error": "NameError in line 2", "code": "torch", "words": "name 'torch' is not defined"}),
        ("print('a')\n1 / 0", {"error": "ZeroDivisionError in line 2", "printed": "a\n"}),
        ("raise SystemExit('no')", {"error": "SystemExit in line 1", "words": "no"}),
        ("print('a' * 30_000)", {"printed": "a" * in_page.LONGEST}),
        ("proved(sp.cos(0), 1)", {"latex": "1 = 1", "claims": True}),
        ("[1, 2]", {"text": "[1, 2]", "claims": False}),
        ("x = 1", {"printed": ""}),
        ("", {"printed": ""}),
    ],
)
def test_what_a_run_says(source, expected, alone):
    result = alone(["import sympy as sp\nfrom rope_lib.symbolic import proved"], source)
    assert {key: result[key] for key in expected} == expected
    assert ("error" in result) is ("error" in expected)


def test_an_error_above_is_named_as_such(alone):
    result = alone(["x = 1 / 0"], "x")
    assert (result["error"], result["words"]) == ("ZeroDivisionError in a cell above", "division by zero")


# -- In a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(html):
    """The address of the pages, and the paths that were asked for."""
    if not (html / "_static" / "live" / "pyodide.mjs").exists():
        assert not (CI and shutil.which("npm")), "npm is there, but the pages were built without Python"
        pytest.skip("the pages were built without npm, so no proof in them is live")
    asked = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(html))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()


class Live:
    """A cell of a page, found by its code, or a piece of it."""

    def __init__(self, page, source):
        self.page = page
        number = page.evaluate(
            "source => [...document.querySelectorAll('div.cell')].findIndex(cell => "
            "cell.querySelector('.cell_input pre')?.textContent.includes(source))",
            source,
        )
        self.cell = page.locator("div.cell").nth(number)
        self.cell.evaluate(
            """cell => document.querySelectorAll('details').forEach(fold => {
                if (fold.contains(cell) || cell.contains(fold)) fold.open = true;
            })"""
        )
        self.code, self.status = self.cell.locator("textarea"), self.cell.locator(".rb-status")

    def click(self, name):
        self.cell.get_by_role("button", name=name, exact=True).click()

    def result(self, seconds=180):
        """The words of the run, once it ended."""
        with contextlib.suppress(TimeoutError):
            self.status.filter(has_text=" s.").wait_for(timeout=seconds * 1000)
        words = self.status.inner_text()
        assert " s." in words, f"no result after {seconds} s: {words}"
        return words


def formula(place):
    """What MathJax made of it, as MathML."""
    place.locator("mjx-assistive-mml").first.wait_for(state="attached", timeout=10_000)
    return place.locator("mjx-assistive-mml").first.inner_html()


@pytest.mark.parametrize("stem", ["04_rope_from_complex_numbers", "05_rotation_matrix"])
def test_proofs_run_in_the_page(stem, browser, served):
    address, asked = served
    asked.clear()
    proofs = [cell for _, cell in live_cells(stem) if "break" in cell.metadata]
    with Visit(browser, f"{address}/chapters/{stem}.html") as visit:
        assert not any("live/" in path for path in asked), "Python is loaded before it is asked for"
        begin, seconds = time.perf_counter(), []
        for cell in proofs:
            live_cell = Live(visit.page, cell.source)
            stored = live_cell.cell.locator(".cell_output:not(.rb-result) .math")
            shown = formula(stored) if stored.count() else None
            live_cell.click("Try it")
            assert live_cell.code.input_value() == cell.source
            live_cell.click("Run")
            assert "Every claim of the cell holds." in live_cell.result()
            seconds.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            if shown:
                assert formula(live_cell.cell.locator(".rb-result")) == shown
                assert not stored.is_visible()
        assert len(proofs) >= 5
        outside = [url for url in visit.requests if not url.startswith((address, "data:", "blob:"))]
        assert outside == []
        assert sum("pyodide.asm.wasm" in url for url in visit.requests) == 1, "requests of the worker are not seen"
        assert visit.complaints == []
        print(f"{stem}: {len(proofs)} proofs, first after {seconds[0]:.1f} s, then {max(seconds[1:]):.1f} s at most")


def test_one_click_breaks_a_proof_and_one_brings_it_back(browser, served):
    cell = next(cell for _, cell in live_cells("04_rope_from_complex_numbers") if "break" in cell.metadata)
    with Visit(browser, f"{served[0]}/chapters/04_rope_from_complex_numbers.html") as visit:
        proof, change = Live(visit.page, cell.source), cell.metadata["break"]
        proof.click(change["label"])
        words = proof.result()
        assert proof.code.input_value() == cell.source.replace(change["from"], change["to"])
        assert f"{change['from']} is now {change['to']}" in words
        assert "Refused in line" in words
        assert "lhs - rhs reduces to" in words
        assert "false at {" in words
        assert "Traceback" not in words
        proof.click("Reset")
        assert proof.code.input_value() == cell.source
        assert "Refused" not in proof.status.inner_text()
        proof.click("Run")
        assert "Every claim of the cell holds." in proof.result()
        proof.click("Close")
        assert proof.code.count() == 0
        assert visit.page.evaluate("document.activeElement.textContent") == "Try it"


def test_a_definition_that_the_reader_changes_reaches_the_cells_below(browser, served):
    with Visit(browser, f"{served[0]}/chapters/05_rotation_matrix.html") as visit:
        first, second = Live(visit.page, "columns = [Matrix("), Live(visit.page, "J = rotation(pi / 2)")
        second.click("Try it")
        second.code.fill("rotation(beta)")
        second.click("Run")
        second.result()
        first.click("Try it")
        first.code.fill('alpha, beta = sp.symbols("alpha_2 beta_2", real=True)')
        first.click("Run")
        first.result()
        second.click("Run")
        second.result()
        assert "2" in second.cell.locator(".rb-result mjx-assistive-mml").inner_text()


def test_an_endless_loop_can_be_stopped_and_the_page_stays_awake(browser, served):
    with Visit(browser, f"{served[0]}/chapters/05_rotation_matrix.html") as visit:
        proof = Live(visit.page, "J = rotation(pi / 2)")
        text = proof.cell.locator("pre").first.inner_text().strip()
        proof.click("Try it")
        proof.code.fill("while True:\n    pass")
        proof.click("Run")
        proof.status.filter(has_text="Running.").wait_for(timeout=90_000)
        visit.page.wait_for_timeout(1000)
        begin = time.perf_counter()
        assert visit.page.evaluate("new Promise(done => setTimeout(() => done(1 + 1)))") == 2
        assert time.perf_counter() - begin < 1
        proof.click("Stop")
        assert "Stopped." in proof.status.inner_text()
        proof.code.fill(text)
        proof.click("Run")
        assert "Every claim of the cell holds." in proof.result()


def test_keyboard_is_enough(browser, served):
    with Visit(browser, f"{served[0]}/chapters/05_rotation_matrix.html") as visit:
        proof, keyboard = Live(visit.page, "columns = [Matrix("), visit.page.keyboard
        proof.cell.get_by_role("button", name="Try it").focus()
        keyboard.press("Enter")
        visit.page.wait_for_function("document.activeElement.matches('textarea')")
        keyboard.press("Control+Enter")
        assert "Every claim of the cell holds." in proof.result()
        keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.textContent") == "Run"


def test_a_page_from_disk_says_what_to_do(browser, served, html):
    with Visit(browser, f"{HTML.as_uri()}/chapters/05_rotation_matrix.html") as visit:
        proof = Live(visit.page, "J = rotation(pi / 2)")
        visit.requests.clear()
        proof.click("Try it")
        proof.status.filter(has_text="make serve").wait_for(timeout=5000)
        assert proof.code.count() == 0
        assert [urlparse(url).path for url in visit.requests] == [f"{html}/_static/live.js"]
        assert visit.complaints == []


def test_the_first_click_counts_once_however_late_its_script_comes(browser, served):
    with Visit(browser, f"{served[0]}/chapters/05_rotation_matrix.html") as visit:
        proof, asked = Live(visit.page, "J = rotation(pi / 2)"), []
        button = proof.cell.get_by_role("button", name="Try it")

        def late(route):
            asked.append(route)
            if len(asked) == 1:
                route.abort()
            else:
                time.sleep(0.5)
                route.continue_()

        visit.page.route("**/live.js", late)
        with visit.page.expect_event("requestfailed"):
            button.click()
        button.dblclick()  # it did not come, so one may click again
        proof.code.wait_for()
        assert proof.code.count() == 1
        assert len(asked) == 2
        visit.page.wait_for_function("document.activeElement.matches('textarea')")


def test_only_pages_with_live_cells_have_the_script_that_waits(html, served):
    """How large it is: test_access.py."""
    page = (html / "chapters" / "04_rope_from_complex_numbers.html").read_text(encoding="utf-8")
    assert page.count('<script defer="defer" src="../_static/try.js') == 1
    assert not re.search("pyodide|live.js", page)
    assert "try.js" not in (html / "chapters" / "notation.html").read_text(encoding="utf-8")
    counted = json.loads((html / "_static" / "live" / "live.json").read_text())["cells"]
    assert all(counted[f"chapters/{stem}"] >= number for stem, number in AT_LEAST.items())


def test_without_npm_nothing_happens(monkeypatch, tmp_path):
    class App:
        def connect(self, event, handler):
            pytest.fail(f"connected to {event}")

    monkeypatch.setattr(live, "PYTHON", [tmp_path / "python.zip"])
    assert live.setup(App())


def test_no_registry_is_named():
    lock = json.loads((ROOT / "package-lock.json").read_text())
    assert not any("resolved" in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"]
    assert {name: lock["packages"][f"node_modules/{name}"]["version"] for name in pinned} == pinned
