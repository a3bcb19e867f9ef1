"""Line ends: what stays beside its number, and a full stop beside its formula."""

import re

import pytest

from _ext.line_ends import unbroken
from tests.pages.conftest import PAGES, Visit

# The formulas whose full stop or comma begins a line; and the denominators that reach into a fraction below.
APART = """() => [...document.querySelectorAll('article .rb-together > span.math')].filter(formula => {
    const behind = formula.nextSibling, range = document.createRange();
    if (behind?.nodeType !== Node.TEXT_NODE || !formula.checkVisibility()) return false;
    range.setStart(behind, 0);
    range.setEnd(behind, 1);
    return range.getBoundingClientRect().top > formula.lastElementChild.getBoundingClientRect().bottom;
}).map(formula => formula.dataset.tex)"""
TOUCHING = """() => {
    const boxes = [...document.querySelectorAll('article span.math mfrac')].filter(one => one.checkVisibility())
        .map(one => one.getBoundingClientRect());
    return boxes.flatMap(a => boxes.filter(b => a.top < b.top && b.top < a.bottom + 2 && a.top + 15 < b.top
        && a.left < b.right && b.left < a.right).map(b => [a.left, a.bottom, b.top]));
}"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("in 31 % of <b>4</b> % cases", "in 31~% of <b>4</b>~% cases"),
        ("See Theorem 3.1, Figure\n4.2 and Fig. 4.3.", "See Theorem~3.1, Figure~4.2 and Fig.~4.3."),
        ("chapters 6 and 7, equation (4.1), pairs 0 to 3", "chapters~6 and 7, equation~(4.1), pairs~0 to 3"),
        ('chapter <a href="six 6.html"><span>6</span></a>', 'chapter~<a href="six 6.html"><span>6</span></a>'),
        ("<p>In this chapter</p> <p>2 words, a pair of 2</p>", "<p>In this chapter</p> <p>2 words, a pair of 2</p>"),
        ("repair 3, pairs three", "repair 3, pairs three"),
        ("<pre>layer 3, 4 %</pre> <code>pair 1</code>", "<pre>layer 3, 4 %</pre> <code>pair 1</code>"),
        ('<p title="layer 3">pair <code>1</code></p>', '<p title="layer 3">pair <code>1</code></p>'),
    ],
)
def test_a_number_stays_beside_its_name_or_sign(page, expected):
    assert unbroken(page) == expected.replace("~", "\u00a0")


@pytest.mark.parametrize("name", PAGES)
def test_no_line_of_a_page_can_end_there(name, html):
    page = (html / name).read_text(encoding="utf-8")
    page = page[page.index("<article") : page.index("</article>")]
    page = re.sub(r'<p class="r[hp]-said".*?</p>', "", page)
    for element in ("pre", "script", "style", "svg", "math", "code"):
        page = re.sub(rf"<{element}\b.*?</{element}>", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "", page)
    assert re.findall(r"\d %|\b(?:[Cc]hapters?|Theorems?|Fig\.|[Ee]xercises?|pairs?|layers?) \(?\d", text) == []


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("stem", ["03_relative_family", "08_linear_attention"])
def test_no_full_stop_begins_a_line_and_no_fraction_touches_the_next(stem, width, browser, html):
    with Visit(browser, f"chapters/{stem}.html", width=width, folds=True) as visit:
        assert visit.page.locator("article .rb-together").count() > 10
        assert visit.page.evaluate(APART) == []
        assert visit.page.evaluate(TOUCHING) == []


def test_what_is_copied_with_its_space_is_found(browser, html):
    with Visit(browser, "search.html?q=Theorem%C2%A05.2") as visit:
        first = visit.page.locator("#search-results li a").first
        first.wait_for()
        assert first.get_attribute("href").endswith("05_rotation_matrix.html#theorem-5-2")
