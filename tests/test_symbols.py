"""Queries, keys and scores keep one colour each in all formulas, and no other letter has it."""

import re
import unicodedata
from collections import Counter

import pytest
from browsing import Visit
from conftest import HTML, ROOT
from test_figures import contrast
from test_pages import PAGES, WITHOUT_MATH

from figures.interactive import COLOURS

WITH_MATH = [name for name in PAGES if name.split("/")[1].removesuffix(".html") not in WITHOUT_MATH]
MEANING = {"q": "q", "Q": "q", "k": "k", "K": "k", "g": "s", "S": "s"}
# Of a formula what is drawn, each letter with its colour and what is behind it; and what is read aloud, MathML, each
# letter with what it stands in. (The letters of both have not the same order: below and above a letter are exchanged.)
FORMULAS = """() => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const paint = colour => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).join(' ');
    };
    const behind = node => {
        const layers = [];
        for (let up = node; up; up = up.parentElement) layers.push(getComputedStyle(up).backgroundColor);
        return layers.reverse().map(paint).at(-1);
    };
    const ink = (node, name) => (paint('#fff'), paint(getComputedStyle(node)[name]));
    return [...document.querySelectorAll('mjx-container')].map(formula => ({
        text: ink(formula, 'color'),
        behind: behind(formula),
        drawn: [...formula.querySelectorAll('[data-mml-node=mi] > use')]
            .map(one => [String.fromCodePoint(parseInt(one.dataset.c, 16)), ink(one, 'fill')]),
        others: [...formula.querySelectorAll('use')].filter(one => one.parentNode.dataset.mmlNode != 'mi')
            .map(one => ink(one, 'fill')),
        read: [...formula.querySelectorAll('math mi')].map(one => [one.textContent,
            one.parentNode.firstChild == one && one.parentNode.localName.startsWith('msub'),
            one.dataset.mjxVariant ?? one.getAttribute('mathvariant')]),
    }));
}"""
A_RUN = r"""async () => {
    const result = Object.assign(document.createElement('div'), {className: 'cell_output rb-result'});
    const formula = Object.assign(document.createElement('div'), {className: 'output text_latex math'});
    formula.textContent = '\\[\\displaystyle q^{T} k = g + S_{1} + \\sin{\\left(m \\right)}\\]';
    result.append(formula);
    document.querySelector('article div.cell').append(result);
    await MathJax.typesetPromise([result]);
}"""


def rgb(colour):
    """#ff8f4d -> 255 143 77."""
    return " ".join(str(byte) for byte in bytes.fromhex(colour[1:]))


def meant(letter, has_index, variant):
    """Whose colour a letter has: that of "q", "k", "s", or None for that of the text."""
    if variant in ("normal", "-tex-mathit") or (letter == "S" and has_index):
        return None
    return MEANING.get(letter)


def plain(letters):
    return unicodedata.normalize("NFKC", letters)


@pytest.fixture(scope="module", params=WITH_MATH)
def page(request, browser):
    with Visit(browser, f"{HTML.as_uri()}/{request.param}") as visit:
        visit.page.locator("html[data-reading=ready]").wait_for()
        visit.page.add_style_tag(content="* {transition: none !important}")  # else colours are on their way
        if visit.page.locator(".rb-try").count():
            visit.page.evaluate(A_RUN)
        yield visit.page


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_each_letter_has_the_colour_of_its_meaning(mode, page):
    """In text, statements, tables and outputs, also those of a run in the page; on paper as on a light screen."""
    page.emulate_media(media="print" if mode == "print" else "screen")
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", "dark" if mode == "dark" else "light")
    inks = {name: rgb(pair[mode == "dark"]) for name, pair in COLOURS.items()}
    formulas, pairs, seen = page.evaluate(FORMULAS), set(), Counter()
    for formula in formulas:
        expected = Counter()
        for letters, has_index, variant in formula["read"]:
            colour = inks.get(meant(letters, has_index, variant), formula["text"])
            expected.update((letter, colour) for letter in plain(letters))
        assert Counter((plain(letter), colour) for letter, colour in formula["drawn"]) == expected
        assert set(formula["others"]) <= {formula["text"]}
        pairs |= {(colour, formula["behind"]) for _, colour in formula["drawn"]}
        seen.update(name for _, colour in formula["drawn"] for name in "qks" if colour == inks[name])
    assert seen
    least = min(contrast(*([int(x) / 255 for x in colour.split()] for colour in pair)) for pair in pairs)
    grounds = len({behind for _, behind in pairs})
    print(f"{len(formulas)} formulas, {dict(seen)}, on {grounds} grounds: at least {least:.2f}:1")
    assert least >= 4.5


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
