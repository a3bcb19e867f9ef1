"""The built pages in a real browser: from disk and from a server, light and dark; test_access.py looks closer."""

import functools
import html as markup
import http.server
import re
import threading
from itertools import pairwise

import pytest
from browsing import Visit
from conftest import HTML

PAGES = [f"chapters/{name}.html" for name in (
    "index", "01_why_position", "02_sinusoidal_encoding", "03_relative_family", "04_rope_from_complex_numbers",
    "05_rotation_matrix", "06_rope_in_code", "07_long_range_decay", "08_linear_attention",
    "09_beyond_training_length", "10_does_it_work", "11_reading_the_evidence", "rope_in_five_minutes", "claims",
    "models", "notation", "toolkit", "glossary", "theorems", "reference", "bibliography", "run_it", "teach_it",
    "source_map",
)]  # fmt: skip
WITHOUT_MATH = {"index", "models", "reference", "bibliography", "run_it", "teach_it"}


@pytest.fixture(scope="module")
def server(html):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(html))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_the_list_of_pages_is_complete(html):
    assert sorted(PAGES) == sorted(f"chapters/{path.name}" for path in (html / "chapters").glob("*.html"))


@pytest.mark.parametrize("from_server", [False, True], ids=["disk", "server"])
@pytest.mark.parametrize("name", PAGES)
def test_page_needs_nothing_from_outside_and_works(name, from_server, browser, server, request):
    origin = server if from_server else HTML.as_uri()
    with Visit(browser, f"{origin}/{name}") as visit:
        outside = [url for url in visit.requests if not url.startswith((origin, "data:", "blob:"))]
        assert outside == []
        assert visit.complaints == []
        stem = name.split("/")[1].removesuffix(".html")
        assert (visit.page.locator("mjx-container").count() > 0) is (stem not in WITHOUT_MATH)
        assert visit.page.locator("mjx-merror, [data-mml-node=merror]").count() == 0
        print(f"{name}: {len(visit.requests)} requests, all to the book")


COLUMNS = 76  # of code, which fit beside both sidebars in a size of type that one can read


def test_no_line_of_code_is_longer_than_its_place(html):
    """Cells, what they print, listings of the library, examples of the reference and the entry to cite."""
    blocks = [
        (path.stem, markup.unescape(re.sub(r"<[^>]+>", "", block)))
        for path in html.rglob("*.html")
        if not {"_static", "lectures"} & set(path.parts)
        for block in re.findall(r"<pre[^>]*>(.*?)</pre>", path.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert len(blocks) > 500
    long = [(page, line) for page, block in blocks for line in block.splitlines() if len(line) > COLUMNS]
    assert long == []


@pytest.mark.parametrize("name", ["04_rope_from_complex_numbers", "06_rope_in_code", "reference", "run_it"])
def test_all_code_is_as_large_as_that_of_cells(name, browser):
    """Also listings and examples; and 76 columns fit, so that none of them has to be scrolled."""
    with Visit(browser, f"{HTML.as_uri()}/chapters/{name}.html") as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(fold => (fold.open = true))")
        blocks = visit.page.locator("article pre").evaluate_all(
            "all => all.map(one => [parseFloat(getComputedStyle(one).fontSize), one.scrollWidth - one.clientWidth])"
        )
        assert blocks
        for size, hidden in blocks:
            assert size > 13.2
            assert hidden <= 1


@pytest.mark.parametrize("name", PAGES)
def test_no_sentence_stands_twice_in_a_row(name, html):
    page = re.sub(r"<(pre|script)\b.*?</\1>", "", (html / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    sentences = re.split(r"(?<=[.!?)])\s+", re.sub(r"<[^>]+>", "", page))
    assert [one for one, next_one in pairwise(sentences) if one == next_one and len(one) > 25] == []


@pytest.mark.parametrize("name", [name for name in PAGES if name.split("/")[1][:-5] not in WITHOUT_MATH])
def test_formulas_on_a_phone(name, browser):
    """They break and need not be scrolled, but for matrices that a cell computes. The end of a proof is on its line."""
    with Visit(browser, f"{HTML.as_uri()}/{name}", width=360) as visit:
        visit.page.evaluate("document.querySelectorAll('article details').forEach(fold => (fold.open = true))")
        visit.page.wait_for_timeout(500)
        cut = visit.page.locator("article div.math:not(.output)").evaluate_all(
            "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)"
        )
        assert cut == []
        alone = visit.page.locator("article span.math").evaluate_all(
            """all => all.filter(one => /^[◻□]$/.test(one.textContent.trim()) && !one.closest('.rb-together'))
                .map(one => one.parentElement.textContent.slice(0, 80))"""
        )
        assert alone == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_follow_the_theme(scheme, browser):
    def luminance(colour):
        return sum(map(int, colour[colour.index("(") + 1 : -1].split(",")[:3])) / 3

    with Visit(browser, f"{HTML.as_uri()}/chapters/02_sinusoidal_encoding.html", scheme=scheme) as visit:
        style = "node => getComputedStyle(node)"
        ink = visit.page.locator("svg.rb-figure").first.evaluate(f"{style.replace('(node)', '(node).fill')}")
        paper = visit.page.locator("body").evaluate(f"{style.replace('(node)', '(node).backgroundColor')}")
        assert (luminance(ink) > 170) is (scheme == "dark")
        assert (luminance(paper) < 80) is (scheme == "dark")
        assert abs(luminance(ink) - luminance(paper)) > 120
        widths = visit.page.locator("svg.rb-figure:not(.rb-narrow)").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().width)"
        )
        assert len(widths) >= 5
        assert min(widths) > 500


def test_search_finds_a_theorem_from_disk(browser):
    with Visit(browser, f"{HTML.as_uri()}/search.html?q=reflection") as visit:
        visit.page.locator("#search-results li a").first.wait_for(timeout=10_000)
        found = visit.page.locator("#search-results li a").all_text_contents()
        assert any("complex numbers" in title for title in found)
        assert visit.complaints == []


@pytest.mark.parametrize("width", [1280, 360])
def test_sidebar_button_and_search_box(width, browser):
    with Visit(browser, f"{HTML.as_uri()}/{PAGES[2]}", width=width) as visit:
        sidebar = visit.page.locator("#pst-primary-sidebar, .bd-sidebar-primary").first
        before = sidebar.bounding_box()
        visit.page.locator("button.primary-toggle:visible, label.primary-toggle:visible").first.click()
        visit.page.wait_for_timeout(600)
        assert sidebar.bounding_box() != before or not sidebar.is_visible()
    with Visit(browser, f"{HTML.as_uri()}/{PAGES[2]}") as visit:
        boxes = visit.page.locator("input[type=search]:visible, button.search-button-field:visible")
        assert boxes.count() == 1


def test_solutions_are_folded_and_open(browser):
    with Visit(browser, f"{HTML.as_uri()}/{PAGES[2]}") as visit:
        folded = visit.page.locator("article details:not([class])")
        assert folded.count() >= 3
        assert not folded.first.evaluate("node => node.open")
        folded.first.locator("summary").click()
        assert folded.first.evaluate("node => node.open")


def test_buttons_offer_the_notebook_and_no_launch_without_an_address(browser, html):
    with Visit(browser, f"{HTML.as_uri()}/{PAGES[2]}") as visit:
        links = visit.page.locator("a").evaluate_all("all => all.map(one => one.href)")
        notebooks = [link for link in links if link.endswith(".ipynb")]
        assert notebooks
        assert all((html / link.removeprefix(HTML.as_uri() + "/")).exists() for link in notebooks)
        assert not any("colab" in link or "mybinder" in link for link in links)
