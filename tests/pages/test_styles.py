"""One style sheet for all pages, without the rules that none uses."""

import pytest
import styles

from tests.conftest import HTML
from tests.pages.conftest import CHAPTER, Visit

ALL = """sheets => Promise.all([...sheets, null].map(sheet => sheet && new Promise((done, failed) => {
    const settings = {rel: 'stylesheet', href: sheet, onload: done, onerror: failed};
    const link = Object.assign(document.createElement('link'), settings);
    document.querySelector('link[href*="book.css"]').before(link);
})))"""
STYLES = """() => [...document.querySelectorAll('*')].map(node => {
    const style = getComputedStyle(node);
    return [node.outerHTML.slice(0, 80), [...style].map(name => name + ':' + style[name]).join(';')];
})"""


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["chapters/index.html", CHAPTER, "chapters/glossary.html", "chapters/reference.html"])
def test_each_element_looks_as_with_all_rules(name, width, browser):
    """Also with its sidebar and its search open."""
    sheets = [path.as_uri() for sheet in styles.THEIRS for path in sorted((HTML / "_static").glob(sheet))]
    assert len(sheets) == len(styles.THEIRS)
    with Visit(browser, name, width=width) as visit:
        visit.page.add_style_tag(
            content="*, ::before, ::after { transition: none !important; animation: none !important }"
        )
        for button in (".primary-toggle", ".search-button__button"):
            shown = visit.page.locator(f"{button}:visible")
            if shown.count():
                shown.first.click()
                visit.page.wait_for_timeout(100)
                before = visit.page.evaluate(STYLES)
                visit.page.evaluate(ALL, sheets)
                after = visit.page.evaluate(STYLES)
                visit.page.evaluate(
                    "for (const one of document.querySelectorAll('link[rel=stylesheet][href^=file]')) one.remove()"
                )
                changed = [one for (one, style), (_, other) in zip(before, after, strict=False) if style != other]
                assert len(before) > 100
                assert changed == []
                visit.page.keyboard.press("Escape")


def test_most_of_the_themes_rules_are_used_by_no_page(html):
    sheet = (html / "_static" / "book.css").read_text(encoding="utf-8")
    whole = sum(path.stat().st_size for name in styles.THEIRS for path in (html / "_static").glob(name))
    assert len(sheet) < whole / 2
    for rule in (
        "@media print",
        "html[data-theme=",
        ".rb-statement",
        "math",
        ".rb-code",
        ".rb-cover",
        ".highlight .c1",
    ):
        assert rule in sheet, rule
