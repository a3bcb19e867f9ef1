"""Figures of the pages: in the colours of the theme, counted by chapter, with a text for each."""

import re

import pytest

from _ext import drawings
from tests.conftest import HTML
from tests.pages.conftest import Book, Visit


def test_inlined_svg_clashes_with_nothing():
    text = '<?xml?><svg width="1"><style>*{}</style><path id="a"/><use href="#a" clip-path="url(#a)"/></svg>'
    svg = drawings.inline_svg(text, "fig", 'a "wave"')
    assert svg.startswith('<svg class="rb-figure" role="img" aria-label="a &quot;wave&quot;"')
    assert 'id="fig-a"' in svg
    assert 'href="#fig-a" clip-path="url(#fig-a)"' in svg
    assert "style" not in svg


def test_figures_are_counted_by_chapter(tmp_path):
    files = {"a.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>"}
    pages = ("one", "two", "plain")
    for page in pages:
        figures = [f"```{{figure}} a.svg\n:name: {page}-{name}\nA caption.\n```" for name in "ab"]
        files[f"{page}.md"] = "\n\n".join([f"# {page}", "## Section", *figures])
    made = Book(tmp_path / "book", files)
    assert made.warnings == ""
    numbers = {page: re.findall(r'<span class="caption-number">(.*?) </span>', made[page]) for page in pages}
    assert numbers == {"one": ["Fig. 1.1", "Fig. 1.2"], "two": ["Fig. 2.1", "Fig. 2.2"], "plain": []}
    assert re.search(r"<h1><span class=\"section-number\">2. </span>two</h1><section|2. </span>two", made["two"])
    assert 'section-number">2.1' not in made["two"]


def test_every_figure_of_the_pages_has_a_text(html):
    count = 0
    for path in (html / "chapters").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        for figure in re.findall(r"<figure.*?</figure>", text, flags=re.DOTALL):
            assert re.search(r'<svg class="rb-figure" role="img" aria-label="[^"]{40,}"', figure), path.name
            count += 1
        assert "<img" not in re.sub(r'<img [^>]*alt="[^"]+"', "", text), path.name
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), [i for i in ids if ids.count(i) > 1][:5]
    assert count >= 10


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


@pytest.mark.parametrize(("width", "shown"), [(1280, "svg.rb-figure:not(.rb-narrow)"), (360, "svg.rb-narrow")])
def test_one_of_the_two_forms_of_each_figure_is_shown(width, shown, browser, html):
    with Visit(browser, f"{HTML.as_uri()}/chapters/02_sinusoidal_encoding.html") as visit:
        visit.page.set_viewport_size({"width": width, "height": 800})
        drawings = visit.page.locator(".rb-drawing")
        assert drawings.count() >= 5
        for drawing in drawings.all():
            seen = drawing.locator("svg").evaluate_all(
                "all => all.filter(one => getComputedStyle(one).display !== 'none')"
            )
            assert len(seen) == drawing.locator(shown).count() == 1
            assert drawing.evaluate("one => one.scrollWidth <= one.clientWidth")
