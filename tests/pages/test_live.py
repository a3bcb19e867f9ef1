"""Proofs that run in the page, with Python in WebAssembly."""

import contextlib
import functools
import http.server
import json
import re
import subprocess
import threading
import time

import pytest

from _ext import in_page
from _ext.fetched import NODE
from rope_lib.theory.symbolic import NotProved
from tests.conftest import HTML, ROOT
from tests.pages.conftest import Live, Visit, live_cells, on_disk

AT_LEAST = {  # cells that a reader can run in the page
    "01_why_position": 9, "02_sinusoidal_encoding": 9, "03_relative_family": 5, "04_rope_from_complex_numbers": 25,
    "05_rotation_matrix": 15, "06_rope_in_code": 5, "07_long_range_decay": 3, "08_linear_attention": 5,
}  # fmt: skip


def formula(place):
    """What was made of it."""
    place.locator("math").first.wait_for(state="attached", timeout=10_000)
    return place.locator("math").first.evaluate("node => node.outerHTML")


@pytest.mark.slow
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


def test_the_first_page_says_what_the_first_press_fetches(html):
    size = json.loads((html / "_static" / "live" / "live.json").read_text())["bytes"]
    assert f"fetches Python, {size / 1e6:.0f} MB," in (html / "chapters" / "index.html").read_text(encoding="utf-8")


def test_one_click_breaks_a_proof_and_one_brings_it_back(browser, served):
    cell = next(cell for _, cell in live_cells("04_rope_from_complex_numbers") if "break" in cell.metadata)
    with Visit(browser, f"{served[0]}/chapters/04_rope_from_complex_numbers.html") as visit:
        proof, change = Live(visit.page, cell.source), cell.metadata["break"]
        proof.click(change["label"])
        words = proof.result()
        assert proof.code.input_value() == cell.source.replace(change["from"], change["to"])
        assert f"{change['from']} is now {change['to']}" in words
        assert "Refused in line" in words
        assert "since at" in words
        assert re.search(r"the left side is [−+i\d. ]+, the right side is [−+i\d. ]+\.", words)
        proof.status.locator("math").nth(1).wait_for()  # two formulas: they are set after the words
        assert "rhs reduces to" in proof.cell.locator(".rb-live [aria-live]").text_content()
        assert "Traceback" not in words
        colours = proof.cell.locator(".rb-colours")
        assert "".join(colours.locator("mark").all_text_contents()) == "-", "only the sign is marked"
        assert colours.text_content().strip() == proof.code.input_value().strip()
        assert colours.locator("span.o, span.p").count() > 10, "the other lines have the colours of the book"
        proof.click("Reset")
        assert colours.locator("mark").count() == 0
        proof.code.press("Control+End")
        proof.code.press_sequentially("\nx = 1")
        assert colours.locator("mark").all_text_contents() == ["x = 1"]
        assert proof.code.evaluate("n => [n.scrollHeight, n.clientWidth]") == colours.evaluate(
            "n => [n.scrollHeight, n.clientWidth]"
        )
        proof.click("Reset")
        assert proof.code.input_value() == cell.source
        assert "Refused" not in proof.status.inner_text()
        proof.click("Run")
        assert "Every claim of the cell holds." in proof.result()
        proof.click("Close")
        assert proof.code.count() == 0
        assert visit.page.evaluate("document.activeElement.textContent") == "Try it"


@pytest.mark.slow
def test_the_first_page_has_a_proof_that_one_click_breaks(browser, served):
    with Visit(browser, f"{served[0]}/chapters/index.html") as visit:
        proof = Live(visit.page, "both = (rotation(m * theta) * q)")
        proof.click("Flip a sign")
        words = proof.result()
        assert "n - m is now n + m" in words
        assert "Refused in line 9" in words
        assert "since at" in words
        proof.click("Reset")
        proof.click("Run")
        assert "Every claim of the cell holds." in proof.result()


def test_the_proof_of_the_first_page_holds_and_its_change_does_not():
    page = (ROOT / "chapters" / "index.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    was, becomes = re.search(r'data-from="(.*?)" data-to="(.*?)"', page).groups()
    assert code.count(was) == 1
    assert in_page.live([code]) == [True]
    exec(code, {})
    with pytest.raises(NotProved, match="false at"):
        exec(code.replace(was, becomes), {})


@pytest.mark.slow
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
        assert "2" in second.cell.locator(".rb-result math").text_content()


# What is said on the way, and how far the bar is then: a step may be over before one looks.
NOTE_STEPS = """() => {
    window.steps = [];
    const note = () => steps.push([document.querySelector('.rb-status')?.textContent,
                                   document.querySelector('progress')?.getAttribute('value')]);
    new MutationObserver(note).observe(document.querySelector('article'), {childList: true, subtree: true});
}"""


@pytest.mark.slow
def test_an_endless_loop_can_be_stopped_and_the_page_stays_awake(browser, served):
    with Visit(browser, f"{served[0]}/chapters/05_rotation_matrix.html") as visit:
        proof = Live(visit.page, "J = rotation(pi / 2)")
        text = proof.cell.locator("pre").first.inner_text().strip()
        visit.page.evaluate(NOTE_STEPS)
        proof.click("Try it")
        proof.status.filter(has_text="Python is ready").wait_for(timeout=90_000)
        assert ["Starting Python (once for this page).", None] in visit.page.evaluate("steps")
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


@pytest.mark.slow
def test_a_cell_that_waits_is_stopped_alone(browser, served):
    with Visit(browser, f"{served[0]}/chapters/05_rotation_matrix.html") as visit:
        runs, waits = Live(visit.page, "columns = [Matrix("), Live(visit.page, "J = rotation(pi / 2)")
        runs.click("Try it")
        runs.code.fill("while True:\n    pass")
        runs.click("Run")
        waits.click("Try it")
        waits.click("Run")
        assert waits.status.inner_text() == "Waits for another cell."
        waits.click("Stop")
        assert waits.status.inner_text() == "Stopped before it ran."
        assert runs.cell.get_by_role("button", name="Stop", exact=True).is_visible()
        runs.click("Stop")
        assert "Stopped." in runs.status.inner_text()
        runs.code.fill("1 + 1")
        runs.click("Run")
        waits.click("Run")
        runs.result()
        assert "Every claim of the cell holds." in waits.result()


@contextlib.contextmanager
def a_server_that(misbehaves, html, policy=None):
    """The pages, but that misbehaves(handler) may answer for a file that Python in the page needs.

    Each file comes with the content security policy, if there is one.
    """

    class Odd(http.server.SimpleHTTPRequestHandler):
        def end_headers(self):
            if policy:
                self.send_header("Content-Security-Policy", policy)
            super().end_headers()

        def do_GET(self):
            if "/live/" not in self.path or not misbehaves(self):
                super().do_GET()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Odd, directory=str(html))) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@contextlib.contextmanager
def a_proof_run_under(policy, browser, html):
    """A live proof, whose button Run was pressed on a page with this content security policy."""
    with (
        a_server_that(lambda handler: False, html, policy) as address,
        Visit(browser, f"{address}/chapters/05_rotation_matrix.html") as visit,
    ):
        proof = Live(visit.page, "J = rotation(pi / 2)")
        proof.click("Try it")
        proof.click("Run")
        yield proof


def refuses(name, status):
    def misbehaves(handler):
        if handler.path.endswith(name):
            handler.send_error(status)
        return handler.path.endswith(name)

    return misbehaves


def of_no_type(handler):
    """As servers on some machines have it, which look the type up in a registry."""
    handler.extensions_map = {".wasm": "application/octet-stream", ".zip": "text/plain"}


def falls_silent(handler):
    if not handler.path.endswith(".wasm"):
        return False
    handler.send_response(200)
    handler.send_header("Content-Length", "9000000")
    handler.end_headers()
    handler.wfile.write(bytes(1000))
    time.sleep(60)
    return True


@pytest.mark.parametrize(
    ("misbehaves", "words", "seconds"),
    [
        (refuses(".wasm", 404), "Python ended: the server answers 404 for pyodide.asm.wasm, which is among", 10),
        (refuses("python.zip", 403), "Python ended: the server answers 403 for python.zip, which is among", 10),
        (refuses("pyodide.mjs", 404), "Python ended: Failed to fetch dynamically imported module", 10),
        pytest.param(of_no_type, "Every claim of the cell holds.", 120, marks=pytest.mark.slow),
        pytest.param(
            falls_silent,
            "Python ended: nothing more of pyodide.asm.wasm came for 30 seconds, after",
            60,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["no wasm", "no zip", "no module", "no types", "silence"],
)
def test_a_server_that_misbehaves_is_told_within_seconds_or_does_not_matter(misbehaves, words, seconds, browser, html):
    with (
        a_server_that(misbehaves, html) as address,
        Visit(browser, f"{address}/chapters/05_rotation_matrix.html") as visit,
    ):
        proof = Live(visit.page, "J = rotation(pi / 2)")
        proof.click("Try it")
        proof.click("Run")
        proof.status.filter(has_text=words).wait_for(timeout=1000 * seconds)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("script-src 'self' 'unsafe-inline'", "refuses WebAssembly: its script-src lacks 'wasm-unsafe-eval'."),
        ("default-src 'self' 'unsafe-inline'", "refuses WebAssembly: its script-src lacks 'wasm-unsafe-eval'."),
        ("connect-src 'none'", "refuses live.json: see its connect-src."),
        ("worker-src 'none'", "refuses its script: see worker-src."),
    ],
)
def test_a_content_security_policy_is_named_within_seconds(policy, words, browser, html):
    with a_proof_run_under(policy, browser, html) as proof:
        proof.status.filter(has_text=f"the content security policy of this page {words}").wait_for(timeout=10_000)
        assert proof.cell.get_by_role("button", name="Run", exact=True).is_enabled()


@pytest.mark.slow
def test_a_policy_that_allows_webassembly_is_enough(browser, html):
    policy = "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; img-src 'self' data:"
    with a_proof_run_under(policy, browser, html) as proof:
        assert "Every claim of the cell holds." in proof.result()


def test_a_worker_that_does_not_come_is_no_fault_of_the_browser(browser, html):
    """No cause is known, so none is stated."""
    with (
        a_server_that(lambda handler: False, html) as address,
        Visit(browser, f"{address}/chapters/05_rotation_matrix.html") as visit,
    ):
        visit.page.route("**/live_worker.js", lambda route: route.fulfill(status=404))
        proof = Live(visit.page, "J = rotation(pi / 2)")
        proof.click("Try it")
        proof.status.filter(has_text="Python did not start: the browser does not say why; it may be").wait_for(
            timeout=10_000
        )


@pytest.mark.slow
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
        asked = [on_disk(url) for url in visit.requests if not url.endswith(".woff2")]
        assert asked == [html / "_static" / "live.js"]
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
    """How large it is: test_wide.py and test_phone.py."""
    page = (html / "chapters" / "04_rope_from_complex_numbers.html").read_text(encoding="utf-8")
    assert page.count('<script defer="defer" src="../_static/try.js') == 1
    assert not re.search("pyodide|live.js", page)
    assert "try.js" not in (html / "chapters" / "notation.html").read_text(encoding="utf-8")
    for stem, number in AT_LEAST.items():
        text = (html / "chapters" / f"{stem}.html").read_text(encoding="utf-8")
        assert text.count('<div class="rb-live"') >= number, stem


def test_no_registry_is_named():
    lock = json.loads((ROOT / "package-lock.json").read_text())
    assert not any("resolved" in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"]
    assert {name: lock["packages"][f"node_modules/{name}"]["version"] for name in pinned} == pinned


@pytest.mark.parametrize("path", sorted([*(ROOT / "_ext").rglob("*.*js"), *(ROOT / "figures").glob("*.js")]), ids=str)
def test_scripts_are_programs(path):
    """Node reads them; whether they do what they should, a browser says."""
    subprocess.run([NODE, "--check", path], check=True, capture_output=True)
