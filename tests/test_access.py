"""Every page for everybody: light to load, judged by axe-core in both themes; what is cut says so; all has a name.

A page is opened twice, at 1280 and at 360 pixels, and all that is asked of it at a width is asked of that one visit.
"""

import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlparse

import pytest
from browsing import Visit
from conftest import CI, HTML, ROOT
from test_pages import PAGES

AXE = Path(sys.prefix) / "live" / "node_modules" / "axe-core" / "axe.min.js"
FOLDS = "document.querySelectorAll('details').forEach(fold => fold.open = true)"
# The strokes inside formulas and figures are nothing that axe judges, and nine tenths of a page.
STROKES = "document.querySelectorAll('mjx-container svg, svg.rb-figure').forEach(drawing => drawing.replaceChildren())"
JUDGE = """async rules => {
    const judged = await axe.run(document, {resultTypes: ['violations'], ...rules});
    return judged.violations.filter(one => ['serious', 'critical'].includes(one.impact))
        .flatMap(one => one.nodes.map(node => `${one.id}: ${node.html.slice(0, 200)}`));
}"""
ALL = {"rules": {"label-content-name-mismatch": {"enabled": True}}}  # off by default, and serious
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
# What Sphinx and its extensions have of script in a page.
THEIRS = re.compile(r"\s*((const )?DOCUMENTATION_OPTIONS|(let|var) toggle\w+|window\.MathJax)\b")


class Opened(Visit):
    """A page with its folds open, when everything has its size."""

    def __init__(self, browser, name, width):
        super().__init__(browser, f"{HTML.as_uri()}/{name}", width=width)
        self.page.locator("html[data-reading=ready]").wait_for()
        self.page.evaluate(FOLDS)
        self.page.wait_for_timeout(400)  # folds fade in


@pytest.fixture(scope="module", params=PAGES)
def wide_visit(request, browser):
    with Opened(browser, request.param, 1280) as opened:
        yield opened


@pytest.fixture(scope="module")
def wide(wide_visit):
    return wide_visit.page


@pytest.fixture(scope="module", params=PAGES)
def phone_visit(request, browser):
    with Opened(browser, request.param, 360) as opened:
        yield opened


@pytest.fixture(scope="module")
def phone(phone_visit):
    return phone_visit.page


def own_script(visit):
    """Bytes of the book's own scripts that a page loads before anybody clicks: the files, and what stands in it."""
    page = Path(urlparse(visit.page.url).path).read_text(encoding="utf-8")
    inside = re.findall(r"<script\b(?![^>]* src=)[^>]*>(.+?)</script>", page, re.DOTALL)
    files = {Path(urlparse(url).path) for url in visit.requests if url.startswith("file:")}
    own = {path.name for path in (ROOT / "_ext" / "static").glob("*.js")}
    return {path.name: path.stat().st_size for path in files if path.name in own} | {
        code[:40]: len(code.encode()) for code in inside if not THEIRS.match(code)
    }


def judge(page):
    """What axe finds serious or critical; in the dark theme it looks at the colours only, the rest is the same."""
    if not AXE.exists():
        assert not (CI and shutil.which("npm")), f"npm is there, but it did not fetch axe-core: {AXE} is missing"
        pytest.skip("axe-core is not there (`make book` fetches it where there is npm): the pages are not judged by it")
    page.evaluate(STROKES)
    page.add_style_tag(content="* {transition: none !important}")  # else colours are on their way
    page.add_script_tag(path=AXE)
    found = {}
    for scheme in ("light", "dark"):
        page.evaluate("scheme => document.documentElement.dataset.theme = scheme", scheme)
        page.wait_for_timeout(100)
        found |= {f"{scheme}: {one}": None for one in page.evaluate(JUDGE, COLOURS if scheme == "dark" else ALL)}
    return list(found)


# -- 1280 pixels -------------------------------------------------------------------------------------------------------


def test_its_own_script_is_small(wide_visit):
    own = own_script(wide_visit)
    assert {"reading.js", "print.js"} <= set(own)
    assert sum(own.values()) <= 12_000, own


def test_no_equation_of_the_text_is_cut_on_a_desktop(wide):
    """On a desktop each displayed equation fits beside its number; wide outputs of cells may scroll."""
    cut = wide.evaluate(
        """() => [...document.querySelectorAll('article div.math')]
            .filter(node => !node.closest('.cell_output') && node.scrollWidth > node.clientWidth + 1)
            .map(node => node.textContent.slice(0, 80))"""
    )
    assert cut == []


def test_no_line_begins_with_a_full_stop(wide):
    """Where a formula ends a line, the sign that follows it stays there."""
    apart = wide.evaluate(
        """() => [...document.querySelectorAll('article span.math')].filter(formula => {
            const text = formula.nextSibling;
            if (text?.nodeType !== Node.TEXT_NODE || !/^[.,;:!?)]/.test(text.data)) return false;
            return !formula.parentElement.matches('.rb-together');
        }).map(formula => formula.parentElement.textContent.slice(0, 80))"""
    )
    assert apart == []


def test_headings_are_the_stronger_the_higher_their_level(wide):
    strengths = wide.evaluate(
        """() => ['h1', 'h2', 'h3', 'h4'].map(level => document.querySelector(`article ${level}`)).filter(Boolean)
            .map(node => getComputedStyle(node)).map(style => [parseFloat(style.fontSize), +style.fontWeight])"""
    )
    for (size, weight), (next_size, next_weight) in pairwise(strengths):
        assert size > 1.1 * next_size
        assert weight >= next_weight


def test_axe_finds_nothing_serious(wide):
    assert judge(wide) == []


# -- 360 pixels --------------------------------------------------------------------------------------------------------


def test_its_own_script_is_small_on_a_phone(phone_visit):
    own = own_script(phone_visit)
    assert sum(own.values()) <= 12_000, own


def test_nothing_is_out_of_reach_on_a_phone(phone):
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    unreachable = phone.evaluate(
        """() => [...document.querySelectorAll('article *')].filter(node => {
            const box = node.getBoundingClientRect();
            if (!box.width || !box.height || (box.right <= 361 && box.left >= -1)) return false;
            if (getComputedStyle(node).position === 'absolute' || node.closest('mjx-assistive-mml')) return false;
            if (node.ownerSVGElement) return false;  // clipped by its <svg>, which is looked at itself
            for (let up = node; up.tagName !== 'ARTICLE'; up = up.parentElement) {
                const frame = up.getBoundingClientRect();
                const scrolls = ['auto', 'scroll'].includes(getComputedStyle(up).overflowX);
                if (scrolls && frame.right <= 361 && box.left + up.scrollLeft >= frame.left - 20) return false;
            }
            return true;
        }).map(node => node.outerHTML.slice(0, 150))"""
    )
    assert unreachable == []


def test_what_is_cut_on_a_phone_says_so_and_can_be_scrolled_by_keyboard(phone):
    silent = phone.evaluate(
        """() => [...document.querySelectorAll('article *')].filter(node => {
            const style = getComputedStyle(node);
            const formula = node.matches('span.math') ? node.querySelector('svg') : null;  // its letters may lean out
            const width = formula ? formula.getBoundingClientRect().width : node.scrollWidth;
            if (!node.clientWidth || width <= node.clientWidth + 1) return false;
            if (style.overflowX === 'visible' || style.position === 'absolute') return false;
            return node.tabIndex < 0 || !style.maskImage.includes('gradient');
        }).map(node => node.outerHTML.slice(0, 150))"""
    )
    assert silent == []


def test_axe_finds_nothing_serious_on_a_phone(phone):
    assert judge(phone) == []


# -- Single pages ------------------------------------------------------------------------------------------------------

CHAPTER = "chapters/04_rope_from_complex_numbers.html"


def open_chapter(browser, width=1280):
    return Opened(browser, CHAPTER, width)


def test_the_scripts_of_the_search_are_small(browser):
    with Opened(browser, "search.html", 1280) as visit:
        own = own_script(visit)
        assert "sections.js" in own
        assert sum(own.values()) <= 12_000, own


def test_an_equation_breaks_on_a_phone_and_its_number_is_on_the_page(browser):
    with open_chapter(browser, 360) as visit:
        broken = visit.page.locator(".rb-equation:has(> div.math + div.math)")
        assert broken.count() >= 3
        for place in range(broken.count()):
            lines = broken.nth(place).locator("> div.math").evaluate_all("all => all.map(one => one.offsetTop)")
            assert len(set(lines)) > 1
        numbers = visit.page.locator(".rb-number").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
        )
        assert len(numbers) >= 5
        assert all(0 <= left < right <= 360 for left, right in numbers)
        assert visit.page.locator("[data-mml-node=merror]").count() == 0


def test_equations_in_a_fold_are_broken_when_it_is_open(browser):
    with open_chapter(browser, 360) as visit:
        visit.page.wait_for_timeout(600)
        assert visit.page.locator("article details .math + .math").count() >= 3
        wide = visit.page.evaluate(
            """() => [...document.querySelectorAll('article details:not(.rb-source) div.math')]
                .filter(node => node.clientWidth && node.scrollWidth > node.clientWidth + 1).length"""
        )
        assert wide <= 3  # one long fraction or matrix scrolls


NOT_TYPESET = "document.querySelectorAll('.math:not(:has(> mjx-container))').length"
TYPESET_FIRST = """new MutationObserver(changes => {
    const fresh = changes.filter(({addedNodes}) => [...addedNodes].some(node => node.localName === 'mjx-container'));
    window.first ||= fresh.length && fresh.map(({target}) => target.getBoundingClientRect()).filter(box => box.height)
        .map(box => box.top);
}).observe(document, {subtree: true, childList: true})"""
# As a browser that does not hold the text on the screen when something above it changes its height.
WITHOUT_ANCHORS = """addEventListener('DOMContentLoaded', () => {
    for (const node of [document.documentElement, document.body]) node.style.overflowAnchor = 'none';
});
const supports = CSS.supports.bind(CSS);
CSS.supports = (...asked) => asked[0] !== 'overflow-anchor' && supports(...asked);"""


@pytest.mark.parametrize("script", ["", WITHOUT_ANCHORS], ids=["held by the browser", "held by the page"])
def test_a_link_to_a_far_section_lands_there_and_stays(script, browser):
    """What is on the screen is typeset first; what comes above it later does not move it."""
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page = context.new_page()
    page.add_init_script(TYPESET_FIRST + ";" + script)
    page.goto(f"{HTML.as_uri()}/{CHAPTER}#theorem-4-3")
    page.locator("html[data-reading=ready]").wait_for()
    assert page.evaluate(NOT_TYPESET) == 0
    assert -20 <= page.evaluate("document.getElementById('theorem-4-3').getBoundingClientRect().top") <= 120
    first = page.evaluate("window.first")
    assert len(first) > 3
    assert all(-400 < top < 1200 for top in first), first
    assert page.evaluate("scrollY") > 3000
    context.close()


def test_a_page_that_is_printed_early_has_all_its_formulas(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(f"{HTML.as_uri()}/{CHAPTER}", wait_until="commit")
    page.locator("mjx-container").first.wait_for(state="attached")
    before, after = page.evaluate(f"[{NOT_TYPESET}, dispatchEvent(new Event('beforeprint')) && {NOT_TYPESET}]")
    assert before > 100
    assert after == 0
    page.locator("html[data-reading=ready]").wait_for()
    assert page.evaluate("document.querySelectorAll('.math > mjx-container ~ *').length") == 0
    context.close()


def test_without_the_script_that_typesets_the_page_is_still_there(browser):
    context = browser.new_context()
    page = context.new_page()
    page.route("**/tex-svg.js*", lambda route: route.abort())
    page.goto(f"{HTML.as_uri()}/{CHAPTER}")
    page.locator("html[data-reading=ready]").wait_for()
    assert page.evaluate(NOT_TYPESET) > 100
    context.close()


def test_the_cards_of_the_first_page_are_read_as_a_list(browser):
    with Visit(browser, f"{HTML.as_uri()}/chapters/index.html") as visit:
        cards = visit.page.locator(".rb-cards").get_by_role("listitem")
        assert cards.count() == 11
        assert visit.page.locator(".rb-cards").get_by_role("table").count() == 0
        assert "Why position?" in cards.first.inner_text()


def test_solutions_say_whose_they_are(browser):
    with open_chapter(browser) as visit:
        named = visit.page.get_by_label("Solution of exercise 4.1", exact=True)
        assert named.count() == 1
        assert named.inner_text().strip() == "Solution"
        assert visit.page.locator("[aria-label='Toggle hidden content']").count() == 0


def test_a_figure_comes_without_its_call_which_is_folded_below_it(browser):
    with Visit(browser, f"{HTML.as_uri()}/{CHAPTER}") as visit:
        cell = visit.page.locator("div.cell:has(figure)").first
        assert not cell.locator(".cell_input").is_visible()
        cell.get_by_text("Code of this figure").click()
        assert "figures.rotation.draw_relative_angle()" in cell.locator(".cell_input").inner_text()
        figure, code = (cell.locator(part).bounding_box()["y"] for part in ("figure", ".cell_input"))
        assert figure < code


def test_the_contents_light_the_section_that_one_reads(browser):
    with Visit(browser, f"{HTML.as_uri()}/{CHAPTER}") as visit:
        visit.page.locator("html[data-reading=ready]").wait_for()
        sections = visit.page.locator("article > section > section").evaluate_all("all => all.map(one => one.id)")
        sections = sections[:-1]  # the last one does not reach the top
        assert len(sections) >= 6
        for section in sections:
            visit.page.evaluate("id => document.getElementById(id).scrollIntoView({behavior: 'instant'})", section)
            visit.page.mouse.wheel(0, 40)
            visit.page.wait_for_timeout(250)
            lit = visit.page.locator(".toc-entry a.nav-link.active").evaluate_all("all => all.map(one => one.hash)")
            assert f"#{section}" in lit


def test_focus_is_seen_on_each_button_of_the_page(browser):
    with Visit(browser, f"{HTML.as_uri()}/{CHAPTER}") as visit:
        focused = {}
        for _ in range(60):
            visit.page.keyboard.press("Tab")
            name, seen = visit.page.evaluate(
                """() => {
                    const node = document.activeElement, style = getComputedStyle(node);
                    const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
                    return [node.outerHTML.slice(0, 120), seen || node.matches('.skip-link, #pst-skip-link *')];
                }"""
            )
            focused[name] = seen
        assert len(focused) > 20
        assert [name for name, seen in focused.items() if not seen] == []


def test_chinese_words_are_marked(browser):
    with Visit(browser, f"{HTML.as_uri()}/chapters/glossary.html") as visit:
        bare = visit.page.locator("dl.glossary dt").evaluate_all(
            r"""all => all.flatMap(term => [...term.childNodes])
                .filter(node => node.nodeType === Node.TEXT_NODE && /[\u4e00-\u9fff]/.test(node.data))
                .map(node => node.data)"""
        )
        assert bare == []
        assert visit.page.locator("dl.glossary dt [lang=zh]").count() >= 60
