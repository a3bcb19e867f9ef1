"""Every page on a wide screen, light and dark. Each is opened once, and asked all that there is to ask."""

import html as markup
import re
from collections import Counter
from itertools import pairwise

import pytest

from figures.palette import HUES, MEANINGS
from tests.conftest import HTML, ROOT, contrast
from tests.pages.conftest import PAGES, WITHOUT_MATH, Visit, judge, on_disk, own_script

COLUMNS = 76  # of code, which fit beside both sidebars in a size of type that one can read


@pytest.fixture(scope="module", params=PAGES)
def wide_visit(request, browser):
    with Visit(browser, request.param, folds=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def wide(wide_visit):
    return wide_visit.page


def stem_of(page):
    return on_disk(page.url).stem


def test_it_needs_nothing_from_outside_and_complains_of_nothing(wide_visit):
    asked = [url for url in wide_visit.requests if not url.startswith((HTML.as_uri(), "data:", "blob:"))]
    assert asked == []
    assert wide_visit.complaints == []


def test_its_own_script_is_small(wide_visit):
    own = own_script(wide_visit)
    assert "reading.js" in own
    assert own.pop("engines.js", 0) <= 7_500, "the second script that chapter 12 has"
    assert sum(own.values()) <= 16_000, own


def test_formulas_are_there_without_a_script(wide):
    """As MathML; none is written that no script will set."""
    assert (wide.locator("article math").count() > 0) is (stem_of(wide) not in WITHOUT_MATH)
    assert wide.locator("merror, .math:not(:has(math))").count() == 0


def test_no_equation_of_the_text_is_cut_on_a_desktop(wide):
    """On a desktop each displayed equation fits beside its number; wide outputs of cells may scroll."""
    cut = wide.evaluate(
        """() => [...document.querySelectorAll('article div.math')]
            .filter(node => !node.closest('.cell_output') && node.scrollWidth > node.clientWidth + 1)
            .map(node => node.dataset.tex)"""
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


def test_code_is_as_large_as_that_of_cells_and_is_whole(wide):
    """Also listings and examples; and 76 columns fit, so that none of them has to be scrolled."""
    blocks = wide.locator("article pre").evaluate_all(
        "all => all.map(one => [parseFloat(getComputedStyle(one).fontSize), one.scrollWidth - one.clientWidth])"
    )
    for size, hidden in blocks:
        assert size > 13.2
        assert hidden <= 1


def test_headings_are_the_stronger_the_higher_their_level(wide):
    strengths = wide.evaluate(
        """() => ['h1', 'h2', 'h3', 'h4'].map(level => document.querySelector(`article ${level}`)).filter(Boolean)
            .map(node => getComputedStyle(node)).map(style => [parseFloat(style.fontSize), +style.fontWeight])"""
    )
    for (size, weight), (next_size, next_weight) in pairwise(strengths):
        assert size > 1.1 * next_size
        assert weight >= next_weight


MEANING = {"q": "q", "Q": "q", "𝐪": "q", "k": "k", "K": "k", "𝐤": "k", "g": "s", "S": "s"}
LETTERS = """() => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const paint = colour => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const behind = node => {
        const layers = [];
        for (let up = node; up; up = up.parentElement) layers.push(getComputedStyle(up).backgroundColor);
        return layers.reverse().map(paint).at(-1);
    };
    const ink = node => (paint('#fff'), paint(getComputedStyle(node).color));
    return [...document.querySelectorAll('article math')].map(formula => [
        ink(formula), behind(formula), [...formula.querySelectorAll('mi, mn, mo, mtext')].map(one => [
            one.matches('mi:not([mathvariant], .rb-plain, .rb-plain *)') ? one.textContent : '',
            one.parentNode.firstChild === one && one.parentNode.localName.startsWith('msub'), ink(one)])]);
}"""


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_each_letter_has_the_colour_of_its_meaning(mode, wide):
    """In text, statements, tables and outputs; on paper as on a light screen; and all can be read."""
    if stem_of(wide) in WITHOUT_MATH:
        return
    wide.emulate_media(media="print" if mode == "print" else "screen")
    wide.evaluate("theme => { document.documentElement.dataset.theme = theme }", "dark" if mode == "dark" else "light")
    wide.add_style_tag(content="* { transition: none !important }")  # else colours are on their way
    hues = {letter: HUES[name].on_dark if mode == "dark" else HUES[name].text for letter, name in MEANINGS.items()}
    inks = {letter: list(bytes.fromhex(colour[1:])) for letter, colour in hues.items()}
    seen, least = Counter(), 21.0
    for text, behind, letters in wide.evaluate(LETTERS):
        for letter, has_index, colour in letters:
            name = None if letter == "S" and has_index else MEANING.get(letter)
            assert colour == inks.get(name, text), (letter, name)
            seen[name] += 1
            least = min(least, contrast(colour, behind))
    wide.emulate_media(media="screen")
    assert sum(seen.values()) > 5
    assert least >= 4.5


def test_axe_finds_nothing_serious(wide):
    assert judge(wide) == []


# -- As files ----------------------------------------------------------------------------------------------------------


def test_the_list_of_pages_is_complete(html):
    assert sorted(PAGES) == sorted(f"chapters/{path.name}" for path in (html / "chapters").glob("*.html"))


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


@pytest.mark.parametrize("name", PAGES)
def test_no_sentence_stands_twice_in_a_row(name, html):
    page = re.sub(
        r"<(pre|script|svg|summary)\b.*?</\1>", "", (html / name).read_text(encoding="utf-8"), flags=re.DOTALL
    )
    sentences = re.split(r"(?<=[.!?)])\s+", re.sub(r"<[^>]+>", "", page))
    assert [one for one, next_one in pairwise(sentences) if one == next_one and len(one) > 25] == []


@pytest.mark.parametrize("name", PAGES)
def test_no_markup_is_left_in_the_text(name, html):
    """Raw Markdown or TeX where a reader reads words: one | in a table's formula is enough for it."""
    page = (html / name).read_text(encoding="utf-8")
    page = page[page.index("<article") : page.index("</article>")]
    for element in ("pre", "script", "style", "svg", "math", "code"):
        page = re.sub(rf"<{element}\b.*?</{element}>", "", page, flags=re.DOTALL)
    text = markup.unescape(re.sub(r"<[^>]+>", "", page))
    assert re.findall(r".{0,30}(?:\$|\]\(|\*\*|\[“|\\\w|`).{0,30}", text) == []


def test_no_coloured_letter_means_something_else():
    """In the tables of symbols, but for the indices of matrices; such a letter would be written as \\mathit."""
    table = (ROOT / "chapters" / "notation.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\)\|", line)[1:3] for line in table.splitlines() if line.startswith("| $")]
    found = 0
    for symbol, meaning in rows:
        symbol = re.sub(r"_[qk]\b|\\[a-z]+(\{[^}]*\})?|S_", "", symbol)
        if set(re.findall(r"[a-zA-Z]", symbol)) & set(MEANING):
            found += 1
            assert re.search("quer|key|score", meaning), symbol
    assert found >= 7
