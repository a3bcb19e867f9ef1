"""What a page loads, and when: little, the text first, and no rule less than the page needs."""

import gzip
import re
import sys
import threading
import time
import urllib.request
from urllib.parse import urlparse

import pytest
from browsing import Visit
from conftest import HTML, ROOT

sys.path.insert(0, str(ROOT / "_ext"))
import serve
import weight

CHAPTERS = ["04_rope_from_complex_numbers", "07_long_range_decay"]
READY = "html[data-reading=ready]"


@pytest.fixture(scope="module")
def served(html):
    with serve.serve(html, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


# -- How much ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "most"), [("index", 120_000), *((name, 850_000) for name in CHAPTERS)])
def test_the_first_load_is_light(name, most, served, browser):
    """All that comes over the wire until the page is whole, compressed as a host on the web does."""
    context = browser.new_context(viewport={"width": 412, "height": 823})
    page = context.new_page()
    wire, weights, urls = context.new_cdp_session(page), {}, {}
    wire.on("Network.requestWillBeSent", lambda event: urls.update({event["requestId"]: event["request"]["url"]}))
    wire.on(
        "Network.loadingFinished",
        lambda event: weights.update({urlparse(urls[event["requestId"]]).path: event["encodedDataLength"]}),
    )
    wire.send("Network.enable")
    page.goto(f"{served}/chapters/{name}.html")
    page.locator(READY).wait_for()
    page.wait_for_timeout(300)
    context.close()
    weights = {path: size for path, size in weights.items() if not path.startswith("image/")}  # in the style sheet
    print(f"{name}: {len(weights)} files, {sum(weights.values())} bytes")
    assert sum(weights.values()) <= most, weights
    assert len(weights) <= 14, weights
    assert any("tex-svg.js" in path for path in weights) is (name != "index")


def test_the_books_own_scripts_come_without_comments(html):
    """How many bytes a page loads of them: test_access.py."""
    for path in (ROOT / "_ext" / "static").glob("*.js"):
        source = path.read_text(encoding="utf-8")
        assert (html / "_static" / path.name).read_text(encoding="utf-8") == weight.jsmin(source)
        assert source.startswith("// ")
    assert "\n  const piece" not in (html / "chapters" / f"{CHAPTERS[0]}.html").read_text(encoding="utf-8")


def test_the_server_compresses_text_and_says_when_it_changed(served, html):
    def ask(path, **headers):
        with urllib.request.urlopen(urllib.request.Request(served + path, headers=headers)) as answer:
            return answer.read(), answer.headers

    plain, headers = ask("/chapters/index.html")
    assert plain == (html / "chapters" / "index.html").read_bytes()
    assert "Content-Encoding" not in headers
    packed, headers = ask("/chapters/index.html", **{"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed) == plain
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Content-Type"] == "text/html"
    with pytest.raises(urllib.error.HTTPError, match="304"):
        ask("/chapters/index.html", **{"Accept-Encoding": "gzip", "If-Modified-Since": headers["Last-Modified"]})
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask("/nothing.html", **{"Accept-Encoding": "gzip"})
    assert gzip.decompress(ask("/", **{"Accept-Encoding": "gzip"})[0]) == (html / "index.html").read_bytes()


# -- In which order ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chapters/index", f"chapters/{CHAPTERS[0]}", "chapters/glossary"])
def test_one_style_sheet_and_no_script_stand_before_the_text(name, html):
    page = (html / f"{name}.html").read_text(encoding="utf-8")
    sheets = [link for link in re.findall(r'<link [^>]*rel="stylesheet"[^>]*>', page) if "media=" not in link]
    assert len(sheets) == 1
    scripts = re.findall(r"<script[^>]* src=[^>]*>", page)
    assert len(scripts) >= 3
    assert all("defer" in script for script in scripts)
    assert not re.search(r"searchindex|searchtools|fontawesome|preload", page)
    [theme] = re.findall(r'<script defer="defer" src="[./]*(_static/book-\w+\.js)"', page)
    code = (html / theme).read_text(encoding="utf-8")
    assert code.startswith(";")  # else all of it would be strict
    assert 'addEventListener("load",I)' not in code  # the theme's own look at what scrolls


def test_what_typesets_is_asked_for_when_the_text_is_on_the_screen(served, browser):
    def late(route):
        time.sleep(0.5)
        route.continue_()

    context = browser.new_context(viewport={"width": 412, "height": 823})
    page = context.new_page()
    page.route("**/book-*.css", late)  # all else is there before
    page.goto(f"{served}/chapters/{CHAPTERS[0]}.html")
    page.locator(READY).wait_for()
    asked, painted = page.evaluate(
        """() => [performance.getEntriesByType('resource').find(one => one.name.includes('tex-svg')).startTime,
            performance.getEntriesByName('first-contentful-paint')[0].startTime]"""
    )
    assert asked > painted > 500
    context.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_what_typesets_is_asked_for_behind_the_first_frame_only(name, browser):
    """On a clock that stands still nothing is painted, and no script that typesets is in the page."""
    asked = "document.querySelectorAll('script[src*=tex-svg]').length"
    page = browser.new_context().new_page()
    page.clock.install()
    page.clock.pause_at(time.time() + 3600)
    page.goto(f"{HTML.as_uri()}/chapters/{name}.html")
    assert page.evaluate(asked) == 0
    page.clock.run_for(1000)
    assert page.evaluate(asked) == 1
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_paint_has_the_colours_of_the_theme(scheme, browser):
    """Before any script of the theme, and with none."""
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.route("**/*.js*", lambda route: route.abort())
    page.goto(f"{HTML.as_uri()}/chapters/index.html")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    page.add_init_script("localStorage.setItem('mode', 'dark')")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    context.close()


# -- Rules that no page uses -------------------------------------------------------------------------------------------

SHEET = """@charset "UTF-8"; @import "other.css";
/* .gone { } */
.here, .gone:hover { color: red; content: "}" }
.gone > p, p:is(.gone, .here:not(.x, .y)), [class*=gone] a { margin: 0 }
@media print { .gone { color: red } .here { color: blue } }
@media print { .gone { color: red } }
@keyframes turn { from { top: 0 } to { top: 1px } }
.w-50\\% { width: 50% }
#there .here { background: url(data:a;b) }
"""


def test_a_rule_stays_if_a_page_may_use_it():
    kept = weight.used(weight.TOKEN.sub(lambda t: "" if t[0].startswith("/*") else t[0], SHEET), {"here", "w-50%"})
    assert [head for head, _ in weight.rules(kept)] == [
        '@import "other.css"', ".here", "p:is(.gone, .here:not(.x, .y)),[class*=gone] a",
        "@media print", "@keyframes turn", ".w-50\\%",
    ]  # fmt: skip
    assert 'content: "}"' in kept
    assert dict(weight.rules(kept))["@media print"] == ".here{color: blue}"


def test_an_imported_sheet_takes_its_place_and_its_addresses_are_moved(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.css").write_text('@import "../b.css"; a { background: url("x/y.svg") }')
    (tmp_path / "b.css").write_text("b { background: url(z.svg), url(data:q) } /* no */")
    text = weight.sheet(tmp_path / "in" / "a.css", tmp_path)
    assert " ".join(text.split()) == 'b { background: url(z.svg), url(data:q) } a { background: url("in/x/y.svg") }'


def dropped(html):
    """The selectors of the theme that the pages went without."""
    pages = weight.Pages(html)
    paths = (path for path in html.rglob("*.html") if html / "_static" not in path.parents)
    pages.texts = {path: path.read_text(encoding="utf-8") for path in paths}
    words = pages.words()

    def walk(css):
        for head, body in weight.rules(css):
            if body and head.startswith(("@media", "@supports")):
                yield from walk(body)
            elif body and not head.startswith("@"):
                yield from (one for one in weight.selectors(head) if not weight.names(one) <= words)

    theme = html / "_static" / "styles"
    files = [*theme.glob("*.css"), *html.glob("_static/*.css")]
    files = [path for path in files if path.name not in weight.OWN and not path.name.startswith("book-")]
    found = {selector for path in files for selector in walk(weight.sheet(path, html / "_static"))}
    return sorted({re.sub(r"::?[\w-]+(\([^()]*\))?", "", selector) for selector in found} - {""})


@pytest.mark.parametrize("name", ["chapters/index", *(f"chapters/{name}" for name in CHAPTERS), "search"])
def test_no_rule_is_missing_that_a_page_uses(name, html, browser):
    """What no page was found to use finds nothing in the page either, also with its sidebars and its search open."""
    selectors = dropped(html)
    assert len(selectors) > 1000
    with Visit(browser, f"{HTML.as_uri()}/{name}.html", width=360) as visit:
        for button in (".primary-toggle", ".search-button__button"):
            if visit.page.locator(f"{button}:visible").count():
                visit.page.locator(f"{button}:visible").first.click()
                visit.page.keyboard.press("Escape")
        found = visit.page.evaluate(
            """selectors => selectors.filter(selector => {
                try { return document.querySelector(selector) } catch { return false }
            })""",
            selectors,
        )
        assert found == []


def test_the_theme_still_has_what_is_replaced(html):
    script = (html / "_static" / "scripts" / "pydata-sphinx-theme.js").read_text(encoding="utf-8")
    assert weight.SCROLLS in script
    for name in ("index", *CHAPTERS):
        text = (html / "chapters" / f"{name}.html").read_text(encoding="utf-8")
        assert weight.jsmin(weight.DECIDED) in text
        assert "search-button-field" in text
        assert not weight.LABEL.search(text)
        [bundle] = re.findall(r'src="\.\./(_static/book-\w+\.js)"', text)
        assert weight.SCROLLS not in (html / bundle).read_text(encoding="utf-8")
