"""Shared by the tests of pages: a browser, a visit, what axe says, a server, a cell in a page, a small book."""

import contextlib
import functools
import http.server
import io
import re
import threading
import unicodedata
from pathlib import Path
from urllib.parse import unquote, urlparse

import nbformat
import pytest
import yaml
from playwright.sync_api import TimeoutError
from pypdf import PdfReader
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from _ext import in_page
from _ext.fetched import MODULES
from tests.conftest import HTML, ROOT
from tools.serve import Pages, Server

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = [f"{TOC['root']}.html", *(f"{page['file']}.html" for part in TOC["parts"] for page in part["chapters"])]
WITHOUT_MATH = {"index", "models", "papers", "reference", "bibliography", "run_it", "teach_it"}
CHAPTER = "chapters/04_rope_from_complex_numbers.html"


# What is asked of every page or piece and takes seconds is asked of these each time, of the others with the slow tests.
FEW = ("index", "04_rope", "decay")
OF_A_FEW = (
    "test_axe_finds_nothing_serious",
    "test_what_is_cut_on_a_phone",
    "test_off_at_first_then_all_are_covered",
    "test_each_letter_has_the_colour_of_its_meaning",
    "test_no_page_is_wider_than_the_paper",
    "test_every_word_that_sets_a_piece_does_so",
    "test_a_page_for_the_wall_has_all_of_its_chapter",
    "test_what_is_shown_can_be_dragged",
    "test_a_finger_drags_it_and_does_not_scroll_the_page",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith(OF_A_FEW) and not any(page in item.name for page in FEW):
            item.add_marker(pytest.mark.slow)


# -- A browser ---------------------------------------------------------------------------------------------------------


class Visit:
    """One page, opened, with all that it asked for and complained about."""

    def __init__(self, browser, address, *, width=1280, scheme="light", folds=False):
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.goto(address if ":" in address else f"{HTML.as_uri()}/{address}", wait_until="load")
        if folds:
            self.page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
            self.lay_out()
            self.page.evaluate("document.getAnimations().forEach(one => one.finish())")  # they fade in

    def lay_out(self):
        """All of the page, which else waits until it is near the screen, and with it its fonts."""
        self.page.evaluate("document.documentElement.classList.add('rb-laid-out'), document.body.offsetHeight")
        self.page.evaluate("document.fonts.ready.then(() => true)")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()


@pytest.fixture(scope="session")
def served(html):
    """The address of the pages, and the paths that were asked for."""
    asked = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(html))) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()


@contextlib.contextmanager
def serving(handler=Pages):
    """The address of the pages, as `make serve` serves them."""
    with Server(("127.0.0.1", 0), functools.partial(handler, directory=str(HTML))) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def on_disk(url):
    """The file that an address is of, whatever its folders are called."""
    return Path(unquote(urlparse(url).path))


def own_script(visit):
    """Bytes of the book's own scripts that a page loads before anybody clicks: the files, and what stands in it."""
    page = on_disk(visit.page.url).read_text(encoding="utf-8")
    inside = re.findall(r"<script\b(?![^>]* src=)[^>]*>(.+?)</script>", page, re.DOTALL)
    files = {on_disk(url) for url in visit.requests if url.startswith("file:")}
    own = {"piece.js", "engines.js"} | {path.name for path in (ROOT / "_ext" / "static").glob("*.*js")}
    return {path.name: path.stat().st_size for path in files if path.name in own} | {
        code[:40]: len(code.encode()) for code in inside
    }


# -- What can be seen --------------------------------------------------------------------------------------------------

AXE = MODULES / "axe-core" / "axe.min.js"
JUDGE = """async rules => {
    const judged = await axe.run(document, {resultTypes: ['violations'], ...rules});
    return judged.violations.filter(one => ['serious', 'critical'].includes(one.impact))
        .flatMap(one => one.nodes.map(node => `${one.id}: ${node.html.slice(0, 200)}`));
}"""
# The strokes inside figures and formulas are nothing that axe judges, and nine tenths of a page. It looks at no section
# that waits for its layout, and at a fold that is fading in as it is just then.
STILL = """
    document.querySelectorAll('math, svg.rb-figure').forEach(drawing => drawing.replaceChildren());
    document.head.append(Object.assign(document.createElement('style'), {
        textContent: `* { transition: none !important; animation: none !important }
                      * { content-visibility: visible !important }` }));
"""
ALL = {"rules": {"label-content-name-mismatch": {"enabled": True}}}  # off by default, and serious
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
WIDTH = {"runOnly": ["scrollable-region-focusable", "target-size", "meta-viewport"]}  # what the width decides


def judge(page, schemes=("light", "dark"), rules=ALL):
    """What axe finds serious or critical; in the dark theme it looks at the colours only, the rest is the same."""
    page.evaluate(STILL)
    page.evaluate("dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab'}))")  # what scrolls can then be reached
    page.add_script_tag(path=AXE)
    found = {}
    for scheme in schemes:
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
        page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        found |= {f"{scheme}: {one}": None for one in page.evaluate(JUDGE, COLOURS if scheme == "dark" else rules)}
    return list(found)


# -- What is printed ---------------------------------------------------------------------------------------------------


def squeezed(text: str) -> str:
    """Without spaces, and with the letters of a ligature apart."""
    return unicodedata.normalize("NFKC", "".join(text.split()))


def text_of(pdf: bytes) -> str:
    """The squeezed text of a PDF."""
    return squeezed("".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages))


# -- A cell that runs in the page --------------------------------------------------------------------------------------


def code_cells(stem):
    """The code cells of a notebook."""
    notebook = nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def live_cells(stem):
    """(cells above, cell) for each that is live."""
    cells = code_cells(stem)
    sources = [cell.source for cell in cells]
    return [(sources[:i], cells[i]) for i, runs in enumerate(in_page.live(sources)) if runs]


class Live:
    """A cell of a page, found by its code, or a piece of it."""

    def __init__(self, page, source):
        self.page = page
        number = page.evaluate(
            "source => [...document.querySelectorAll('div.cell_input')].findIndex(code => "
            "code.querySelector('pre')?.textContent.includes(source))",
            source,
        )
        self.input = page.locator("div.cell_input").nth(number)
        self.cell = self.input.locator("xpath=ancestor::div[contains(concat(@class, ' '), 'cell ')][1]")
        self.cell.evaluate(
            """cell => document.querySelectorAll('details').forEach(fold => {
                if (fold.contains(cell) || cell.contains(fold)) fold.open = true;
            })"""
        )
        self.code, self.status = self.input.locator("textarea"), self.input.locator(".rb-status")

    def click(self, name):
        self.input.get_by_role("button", name=name, exact=True).click()

    def result(self, seconds=180):
        """The words of the run, once it ended."""
        with contextlib.suppress(TimeoutError):
            self.status.filter(has_text=" s.").wait_for(timeout=seconds * 1000)
        words = self.status.inner_text()
        assert " s." in words, f"no result after {seconds} s: {words}"
        return words


# -- A small book, built for one question ------------------------------------------------------------------------------

SMALL_BOOK = """# A book

```{toctree}
:numbered: 1
one
two
```
```{toctree}
plain
```
"""


class Book:
    """Pages of a book in a folder, built with the book's extension; what Sphinx warned of."""

    def __init__(self, folder, files):
        folder.mkdir(parents=True)
        pages = {"index.md": SMALL_BOOK, "two.md": "# Two", "plain.md": "# Plain"} | files
        if "one.ipynb" not in files:
            pages = {"one.md": "# One"} | pages
        for name, content in pages.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")
        settings = {
            "extensions": ["myst_nb", "sphinxcontrib.bibtex", "_ext.rope_book"],
            "bibtex_bibfiles": [],
            "html_math_renderer": "temml",
            "myst_enable_extensions": ["dollarmath"],
            "nb_execution_mode": "off",
            "numfig": True,
            "root_doc": "index",
        }
        self.out = folder / "_build"
        warnings = io.StringIO()
        with docutils_namespace():
            app = Sphinx(folder, None, self.out, folder / "_trees", "html", settings, status=None, warning=warnings)
            app.build()
        self.warnings = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue())

    def __getitem__(self, page):
        """The article of a page, white space and tags of no interest left out."""
        text = (self.out / f"{page}.html").read_text(encoding="utf-8")
        text = re.search(r'<div class="body" role="main">(.*?)<div class="clearer">', text, re.DOTALL)[1]
        return " ".join(re.sub(r'<span class="pre">(.*?)</span>|<a class="headerlink".*?</a>', r"\1", text).split())


@pytest.fixture
def book(tmp_path):
    return lambda **files: Book(tmp_path / "book", {f"{name}.md": text for name, text in files.items()})
