"""A page on paper."""

import pytest

from tests.conftest import HTML
from tests.pages.conftest import CHAPTER, PAGES, Visit, squeezed, text_of


@pytest.mark.parametrize(
    "name", ["04_rope_from_complex_numbers", pytest.param("06_rope_in_code", marks=pytest.mark.slow)]
)
def test_a_printed_page_has_its_solutions_and_no_controls(name, browser, html):
    with Visit(browser, f"{HTML.as_uri()}/chapters/{name}.html") as visit:
        page = visit.page
        solutions = page.locator("article details:not([class]) > p").evaluate_all(
            """all => all.flatMap(one => [...one.childNodes].filter(node => node.nodeType === Node.TEXT_NODE))
                .map(node => node.textContent)"""
        )
        hidden = page.locator("details.hide pre").all_text_contents()
        printed = text_of(page.pdf(print_background=True))
        wanted = [squeezed(text) for text in [*solutions, *hidden] if len(text) > 30]
        assert len(wanted) >= 6
        assert [text for text in wanted if text not in printed] == []
        assert f"Fig.{int(name[:2])}.1" in printed
        words = squeezed("".join(page.locator("article p").all_text_contents()))
        assert printed.count("Tryit") == words.count("Tryit")
        assert visit.complaints == []


def test_a_printed_page_is_light_and_afterwards_as_it_was(browser, html):
    with Visit(browser, CHAPTER, scheme="dark") as visit:
        theme = "document.documentElement.dataset.theme"
        assert visit.page.evaluate(theme) == "dark"
        assert visit.page.evaluate(f"dispatchEvent(new Event('beforeprint')) && {theme}") == "light"
        assert visit.page.evaluate(f"dispatchEvent(new Event('afterprint')) && {theme}") == "dark"


@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_the_paper(name, browser, html):
    """One such table would print the whole book smaller."""
    with Visit(browser, name, width=665, folds=True) as visit:  # what is left of A4 between the margins
        visit.page.emulate_media(media="print")
        width, room = visit.page.evaluate(
            "(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])(document.documentElement)"
        )
        assert width <= room


@pytest.mark.parametrize("name", ["01_why_position", "04_rope_from_complex_numbers", "06_rope_in_code"])
def test_nothing_printed_is_empty_or_wider_than_the_paper(name, browser, html):
    with Visit(browser, f"{HTML.as_uri()}/chapters/{name}.html", width=690) as visit:
        page = visit.page
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        bad = page.evaluate(
            """() => {
                const boxes = [...document.querySelectorAll(
                    "article :is(div.cell_input, div.cell_output, blockquote, figure, details:not(.rb-source))")]
                    .filter(node => !node.closest(".rb-source"));
                const box = node => node.getBoundingClientRect();
                return {
                    empty: boxes.filter(node => box(node).height < 10 || getComputedStyle(node).opacity !== "1"
                        || !(node.innerText.trim() || node.querySelector("svg"))).length,
                    fading: boxes.flatMap(node => node.getAnimations({subtree: true})).length,
                    controls: [...document.querySelectorAll("article :is(button, input, .rb-live)")]
                        .filter(node => box(node).height).length,
                    cut: boxes.filter(node => getComputedStyle(node).breakInside !== "avoid"
                        && !node.matches("details")).length,
                    boxes: boxes.length,
                };
            }"""
        )
        assert bad.pop("boxes") > 20
        assert set(bad.values()) == {0}, bad
        beside = page.evaluate(
            """() => [...document.querySelectorAll("article :is(pre, figure, table, .rope-piece, div.math)")]
                .filter(node => node.getBoundingClientRect().right > innerWidth)
                .map(node => node.outerHTML.slice(0, 120))"""
        )
        assert beside == []
