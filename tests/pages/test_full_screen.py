"""A piece alone on a screen: below its question, as large as fits, with a way back; and its buttons in a wide face."""

import re

import pytest

from tests.conftest import HTML
from tests.pages.conftest import PAGES, Visit

SHARE = """() => [...document.querySelectorAll('.rp-views svg')].reduce((sum, svg) => {
    const {width, height} = svg.getBoundingClientRect(), drawn = svg.viewBox.baseVal;
    const scale = Math.min(width / drawn.width, height / drawn.height);
    return sum + scale * scale * drawn.width * drawn.height / innerWidth / innerHeight;
}, 0)"""
WIDE = """@font-face { font-family: wide; src: url("../_static/dejavu-sans-400-normal.woff2"); }
* { font-family: wide !important; }"""
CUT = """() => [...document.querySelectorAll(".rp-controls, .rp-controls fieldset")]
    .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.trim().slice(0, 50))"""


def test_a_piece_stands_below_its_question(browser, html):
    """That of its chapter if it opens it, else the heading of its section."""
    for page in PAGES:
        text = (html / page).read_text(encoding="utf-8")
        first = text[: text.find("<h2")]
        question = re.search(r"</h1>\s*<p><strong>([^<]*\?)</strong>", text)
        names = re.findall(r'id="piece-([\w-]+)"', first if question else "")
        for name in names:
            alone = (html / "pieces" / f"{name}.html").read_text(encoding="utf-8")
            assert f"<h1>{question[1]}</h1>" in alone, name
    assert "<h1>The rescue</h1>" in (html / "pieces" / "rescue.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (1280, 720)])
def test_on_a_projector_it_fills_the_screen(width, height, browser, html):
    with Visit(browser, "pieces/clock.html") as visit:
        visit.page.set_viewport_size({"width": width, "height": height})
        for path in sorted((html / "pieces").glob("*.html")):
            visit.page.goto(path.as_uri())
            assert visit.page.evaluate("document.documentElement.scrollHeight") <= height, path.stem
            back = visit.page.locator(".back")
            assert back.evaluate("link => parseFloat(getComputedStyle(link).fontSize)") > 0.02 * height
            if "rope-piece rp" in path.read_text(encoding="utf-8") and visit.page.locator(".rp-views svg").count():
                assert visit.page.evaluate(SHARE) > 0.33, path.stem
                for control in visit.page.locator(".rp-controls > *").all():
                    here, there = control.bounding_box(), back.bounding_box()
                    beside = here["x"] + here["width"] <= there["x"]
                    assert beside or here["y"] + here["height"] <= there["y"], path.stem
            assert visit.page.locator("h1").bounding_box()["y"] >= 0
        assert visit.complaints == []


def test_on_a_phone_the_way_back_is_below_all(browser, html):
    with Visit(browser, "pieces/needles.html", width=360) as visit:
        question, piece, back = (visit.page.locator(one).bounding_box() for one in ("h1", ".rope-piece", ".back"))
        assert question["y"] + question["height"] <= piece["y"]
        assert piece["y"] + piece["height"] <= back["y"]


@pytest.mark.parametrize("width", [1280, 768, 360])
def test_in_a_wide_face_buttons_break_and_nothing_is_cut(width, browser, html):
    """Other browsers take wider faces for letters without a name."""
    pages = [path for folder in ("chapters", "pieces", "wall") for path in sorted((html / folder).glob("*.html"))]
    with Visit(browser, "pieces/needles.html", width=width) as visit:
        for path in pages:
            if "<fieldset" not in path.read_text(encoding="utf-8"):
                continue
            visit.page.goto(path.as_uri())
            visit.page.add_style_tag(content=WIDE)
            visit.page.evaluate("document.fonts.load('16px wide')")
            visit.page.evaluate("document.querySelectorAll('fieldset details').forEach(fold => { fold.open = true })")
            assert visit.page.evaluate(CUT) == [], path.relative_to(HTML)
