"""Each page in Firefox and in WebKit, the engine of Safari; a proof, a piece, covers and the search."""

import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from figures import engines
from tests.conftest import CI, HTML
from tests.pages.conftest import CHAPTER, PAGES, WITHOUT_MATH, serving

pytestmark = pytest.mark.slow
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")  # Debian's name, everybody else's
NEEDED = {"firefox": (FIREFOX or "firefox",), "webkit": ("WebKitWebDriver", "Xvfb")}
# What stands first in each page and remembers what goes wrong in it: a script's error, or a script, sheet or picture
# that did not come. Icon, font and next page are hints: a browser may give up fetching them, and fetch them again.
WATCH = b"""<script>addEventListener('error', ({ message, target }) => {
    if (!['icon', 'preload', 'next'].includes(target.rel)) (window.wrong ??= []).push(message ?? target.outerHTML)
}, true)</script>"""


@contextmanager
def firefox():
    from marionette_driver.marionette import Marionette

    browser = Marionette(bin=FIREFOX, headless=True)
    browser.start_session()
    try:
        yield browser.navigate, lambda code: browser.execute_script(code, sandbox=None)
    finally:
        browser.delete_session()
        browser.cleanup()


@contextmanager
def webkit():
    from selenium import webdriver
    from selenium.webdriver.webkitgtk.options import Options
    from selenium.webdriver.webkitgtk.service import Service

    screen = subprocess.Popen(["Xvfb", ":97", "-screen", "0", "1400x1000x24"], stderr=subprocess.DEVNULL)
    options = Options()
    options.set_capability("browserName", "MiniBrowser")
    options.binary_location = str(next(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser")))
    options.add_argument("--automation")
    environment = os.environ | {"DISPLAY": ":97", "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    try:
        service = Service(executable_path=shutil.which("WebKitWebDriver"), env=environment)
        browser = webdriver.WebKitGTK(options=options, service=service)
        yield browser.get, browser.execute_script
        browser.quit()
    finally:
        screen.terminate()


@pytest.fixture(scope="module", params=[firefox, webkit], ids=["firefox", "webkit"])
def engine(request):
    """How to go to an address, and how to ask the page."""
    missing = [name for name in NEEDED[request.param.__name__] if not shutil.which(name)]
    if missing:
        assert not CI, f"no {missing[0]} found: install it, or the pages are not tested in it"
        pytest.skip(f"no {missing[0]} found: the pages are not tested in {request.param.__name__}")
    with request.param() as running:
        yield running


@pytest.fixture(scope="module")
def watched(html):
    """A server that puts the watch into each page."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            path = Path(self.translate_path(self.path))
            if path.suffix != ".html":
                return super().do_GET()
            page = path.read_bytes().replace(b"<head>", b"<head>" + WATCH, 1)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)
            return None

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(HTML))) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def until(ask, code, seconds=60):
    """What the code returns, once that is something."""
    end = time.perf_counter() + seconds
    while not (found := ask(f"return {code}")):
        assert time.perf_counter() < end, f"not within {seconds} s: {code}"
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_formulas_and_figures_are_drawn_and_nothing_goes_wrong(name, engine, watched):
    go, ask = engine
    go(f"{watched}/{name}")
    until(ask, "document.readyState === 'complete'")
    assert ask("return window.wrong ?? []") == []
    stem = Path(name).stem
    formulas = "[...document.querySelectorAll('article math')].filter(one => one.checkVisibility())"
    ask("for (const one of document.querySelectorAll('article section')) one.style.contentVisibility = 'visible'")
    time.sleep(0.3)  # what scrolls is looked at when it comes near the screen
    faded = "[...document.querySelectorAll('.rb-more-left, .rb-more-right')]"
    assert ask(f"return {faded}.filter(one => getComputedStyle(one).display === 'inline').length") == 0
    heights = ask(f"return {formulas}.map(one => one.getBoundingClientRect().height)")
    assert bool(heights) is (stem not in WITHOUT_MATH)
    assert all(height > 5 for height in heights)
    if heights:
        until(ask, "document.fonts.check('16px STIX2', 'x')")
    figures = "[...document.querySelectorAll('svg.rb-figure:not(.rb-narrow)')]"
    widths = ask(f"return {figures}.map(one => one.getBoundingClientRect().width)")
    assert all(width > 400 for width in widths)
    assert ask("return document.documentElement.scrollWidth <= innerWidth")


def test_a_proof_runs_in_the_page(engine, watched):
    go, ask = engine
    go(f"{watched}/chapters/05_rotation_matrix.html")
    button = "document.querySelector('.rb-live .rb-try')"
    until(ask, f"document.readyState === 'complete' && {button} !== null")
    ask(f"window.bar = {button}.closest('.rb-live'); bar.querySelector('.rb-try').click()")
    until(ask, "[...bar.querySelectorAll('button')].some(one => one.textContent === 'Run')")
    ask("[...bar.querySelectorAll('button')].find(one => one.textContent === 'Run').click()")
    until(ask, "bar.querySelector('.rb-status').textContent.includes('Ran in')", seconds=120)
    assert ask("return window.wrong ?? []") == []


def test_a_piece_moves_and_results_can_be_covered(engine, watched):
    go, ask = engine
    go(f"{watched}/{CHAPTER}")
    until(ask, "document.readyState === 'complete'")
    said = "document.querySelector('#piece-rotation .rp-said').textContent"
    before = ask(f"return {said}")
    ask(
        "const input = document.querySelector('#piece-rotation input'); input.stepUp();"
        "input.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    assert ask(f"return {said}") != before
    ask("document.querySelector('.rb-predict input').click()")
    assert ask("return getComputedStyle(document.querySelector('.rb-cover')).display") == "block"
    ask("document.querySelector('.rb-predict input').click()")
    assert ask("return getComputedStyle(document.querySelector('.rb-cover')).display") == "none"


@pytest.mark.weights
def test_a_model_writes_in_the_page(engine, html):
    """What is stored, which another browser has written; where the engine cannot run, it is said why."""
    go, ask = engine
    texts = engines.stored()["texts"][3]
    with serving() as address:
        go(f"{address}/chapters/12_a_published_model.html")
        until(ask, "document.readyState === 'complete'")
        ask("window.piece = document.querySelector('#piece-engines'); piece.querySelector('.re-yours input').click()")
        ask(f"piece.querySelector('textarea').value = {json.dumps(engines.SENTENCES['advice'])}")
        ask("piece.querySelector('.re-write').click()")
        ended = "/written and read|ended|needs/.exec(piece.querySelector('.re-status').textContent)?.input"
        said = until(ask, ended, seconds=300)
        wide = "(() => { try { return new WebAssembly.Memory({address: 'i64', initial: 1n}) && true } catch {} })()"
        if not ask(f"return {wide}"):
            assert said.endswith("lacks what the engine needs: addresses of 64 bits.")
            return
        assert "words were written and read" in said, said
        for part, words in (("right", texts[0]), ("wrong", texts[1])):
            shown = ask(f"return piece.querySelector('.re-{part}').textContent")
            assert shown == "".join(word for word, *_ in words)


def test_the_search_finds_a_theorem(engine, watched):
    go, ask = engine
    go(f"{watched}/search.html?q=Theorem%205.2")
    link = until(ask, "document.querySelector('#search-results li a')?.getAttribute('href')")
    assert link.startswith("chapters/05_rotation_matrix.html#theorem-5-2")
