"""One style sheet for all pages, without the rules that none uses."""

import io

import numpy as np
import pytest
from matplotlib.image import imread
from sphinx.errors import ExtensionError

from _ext import styles
from tests.conftest import HTML
from tests.pages.conftest import CHAPTER, Visit

# The selectors of the sheets that are not in the page's, and of these those that find something in the page.
MISSING = """async sheets => {
    const load = href => new Promise((onload, onerror) => {
        const settings = {rel: 'stylesheet', media: 'not all', href, onload: () => onload(link.sheet), onerror};
        const link = Object.assign(document.createElement('link'), settings);
        document.head.append(link);
    });
    const rules = list => [...list].flatMap(rule => rule.selectorText ? [rule] : rules(rule.cssRules ?? []));
    const selectors = sheet => rules(sheet.cssRules).flatMap(rule => rule.selectorText.split(/,\\s*(?![^(]*\\))/));
    const kept = new Set(selectors(document.querySelector('link[href*="book.css"]').sheet));
    const missing = new Set((await Promise.all(sheets.map(load))).flatMap(selectors).filter(one => !kept.has(one)));
    const plain = one => one.replace(/::?(?!is|not|where|has)[\\w-]+(\\([^()]*\\))?/g, '');
    const found = one => { try { return document.querySelector(plain(one)) } catch { return null } };
    return [missing.size, [...missing].filter(found)];
}"""


@pytest.mark.parametrize("name", ["chapters/index.html", CHAPTER, "chapters/glossary.html", "search.html"])
def test_no_rule_is_missing_that_a_page_uses(name, served, browser):
    """Also with its sidebar and its search open."""
    paths = [path for sheet in styles.THEIRS for path in sorted((HTML / "_static").glob(sheet))]
    assert len(paths) == len(styles.THEIRS)
    sheets = [f"{served[0]}/{path.relative_to(HTML).as_posix()}" for path in paths]
    with Visit(browser, f"{served[0]}/{name}", width=360) as visit:
        for button in (".primary-toggle", ".search-button__button"):
            shown = visit.page.locator(f"{button}:visible")
            if shown.count():
                shown.first.click()
                visit.page.keyboard.press("Escape")
        dropped, used = visit.page.evaluate(MISSING, sheets)
        assert dropped > 1000
        assert used == []


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


def test_a_sheet_that_most_pages_would_miss_is_refused(tmp_path):
    """As when no page was found: the build fails, and does not hand out pages without layout."""
    sheets = [path for name in styles.THEIRS for path in sorted((HTML / "_static").glob(name))]
    page = tmp_path / "page.html"
    page.write_text("<p>No class.</p>", encoding="utf-8")
    with pytest.raises(
        ExtensionError, match=r"of \d+ bytes of style, 1 pages and scripts use \d+; it should be a fifth"
    ):
        styles.purged(sheets, [page])


def test_paths_are_no_patterns(tmp_path):
    """Parentheses, as browsers name a second copy; a backslash, which is in each path on Windows."""
    folder = tmp_path / "book (1) [2] {3} a\\b"
    folder.mkdir()
    (folder / "page.html").write_text('<p class="used">Words.</p>', encoding="utf-8")
    (folder / "sheet.css").write_text(".used { color: red }\n.unused { color: blue }\n", encoding="utf-8")
    sheet = styles.purged([folder / "sheet.css"], [folder / "page.html"])
    assert "used" in sheet
    assert "unused" not in sheet


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_icons_can_be_seen_in_forced_colours(width, scheme, browser, html):
    """In the picture: an icon is cut out of its ground, which the system may give the colour of the page."""
    page = browser.new_context(
        forced_colors="active", color_scheme=scheme, viewport={"width": width, "height": 700}
    ).new_page()
    page.goto(f"{html.as_uri()}/{CHAPTER}")
    icons = page.locator(".bd-header-article :is(.fas, .fa-solid):visible")
    assert icons.count() >= 4
    for icon in icons.all():
        pixels = imread(io.BytesIO(icon.screenshot()))[..., :3].reshape(-1, 3)
        assert np.ptp(pixels, axis=0).min() > 0.7, icon.get_attribute("class")
    page.context.close()
