"""Formulas: set when the book is built, with colours and places to break; what one copies of them is TeX."""

import html
import re

import pytest
from fontTools.ttLib import TTFont

from _ext import formulas
from tests.conftest import HTML, ROOT
from tests.pages.conftest import CHAPTER, PAGES, Visit

FONTS = formulas.STATIC
ITALIC = {chr(code): chr(0x1D44E + place) for place, code in enumerate(range(ord("a"), ord("z") + 1))} | {
    chr(code): chr(0x1D434 + place) for place, code in enumerate(range(ord("A"), ord("Z") + 1))
} | {chr(code): chr(0x1D6FC + place) for place, code in enumerate(range(ord("α"), ord("ω") + 1))}  # fmt: skip
ITALIC |= {"h": "ℎ", "ϕ": "𝜙", "Δ": "𝛥"}  # which Unicode has elsewhere


def shown(tex, *, display=False):
    """A formula without the attributes that nobody asks for here."""
    return re.sub(r' (?!class="rb-|form=)[\w-]+="[^"]*"', "", formulas.mathml(tex, display=display))


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        ("q", '<math><mi class="rb-q">q</mi></math>'),
        (r"\mathbf{k}", '<math><mi class="rb-k">𝐤</mi></math>'),
        ("S_j", "<math><msub><mi>S</mi><mi>j</mi></msub></math>"),  # a sum, no score
        ("S(q)", 'class="rb-s">S'),
        (r"g_{k}", '<math><msub><mi class="rb-s">g</mi><mi class="rb-k">k</mi></msub></math>'),
        (r"\mathit{k}", '<math><mi class="rb-plain">k</mi></math>'),
        (r"\mathit{k}_1", '<mi class="rb-plain">k</mi><mn>1</mn>'),
        (r"\mathrm{K}", "<mi>K</mi>"),
        (r"\sqrt{K}", '<mi class="rb-k">K</mi>'),
        (r"\text{k}", "<math><mtext>k</mtext></math>"),
    ],
)
def test_letters_have_the_class_of_their_meaning(tex, expected):
    assert expected in shown(tex)


@pytest.mark.parametrize(
    ("tex", "parts"),
    [
        ("a = b + c", 1),
        (f"{'a' * 16} = {'b' * 16}", 2),
        (f"{'a' * 16} = {'b' * 16} + c", 3),
        (f"f({'a' * 16} = {'b' * 16})", 1),  # not in brackets
        (rf"{'a' * 16} = b \quad {'c' * 16} = d", 2),  # at the gap, as each part is short then
        (rf"{'a' * 32} = b \quad c = d", 3),
        (rf"\frac{{{'a' * 20}}}{{{'b' * 20}}} = c", 1),  # as wide as the wider of the two
        (f"{'a' * 16} = - {'b' * 16}", 2),  # a sign is no sum
        (rf"{'a' * 16}\big((m - n)\,a\big) = b", 2),  # not in brackets that stand alone
        (f"({'a' * 16})({'b' * 16})", 2),  # between brackets
    ],
)
@pytest.mark.parametrize("display", [False, True])
def test_a_long_formula_may_break_and_a_short_one_does_not(tex, parts, display):
    made = formulas.mathml(tex, display=display)
    assert made.count("<math") == parts
    assert made.count('form="infix"') == sum(
        part in ("=", "+") for part in re.findall(r"<math[^>]*><mrow><mo[^>]*>(.)</mo>", made)
    )


@pytest.mark.parametrize("tex", ["-1", r"(\cos x, 1)", r"- (a, b)"])
def test_a_sign_at_the_begin_stands_close_to_its_number(tex):
    assert 'form="prefix"' in formulas.mathml(tex)
    assert 'form="infix"' not in formulas.mathml(tex)


@pytest.mark.parametrize(
    ("tex", "stretched"),
    [
        (r"\varphi{\left(m \right)} = m \theta", 0),
        (r"e^{i \left(\theta + 2 \pi\right)}", 0),
        (r"\left[x^{2}\right]", 0),
        (r"\sin{\left(\frac{m}{2} \right)}", 2),
        (r"\left(\frac{1}{\left(x\right)}\right)", 2),
        (r"\left[\begin{matrix}1\\2\end{matrix}\right]", 2),
        ("(x)", 0),
    ],
)
def test_brackets_stretch_around_what_is_tall_only(tex, stretched):
    """WebKit raises each that may stretch."""
    assert formulas.mathml(tex, display=True).count('stretchy="true"') == stretched


def test_what_is_displayed_is_so_with_and_without_the_command():
    assert formulas.mathml(r"\displaystyle \sum_i x", display=True) == formulas.mathml(r"\sum_i x", display=True)
    assert "munder" in formulas.mathml(r"\sum_i x", display=True)
    assert "munder" not in formulas.mathml(r"\sum_i x")


def test_a_formula_with_an_error_fails_the_build_and_says_where(book):
    made = book(one="# One\n\nFirst.\n\nAn error: $\\frac{1$ and $\\nosuch{x}$.")
    assert "one.md:5" in made.warnings
    assert made.warnings.count("in the formula") == 2
    assert r"in the formula \frac{1" in made.warnings
    assert r"in the formula \nosuch{x}" in made.warnings


def test_brackets_and_full_stops_stay_beside_a_formula(book):
    made = book(one="# One\n\nA word ($x$), and $y$.\n\n*Proof.* So it is. $\\square$")
    assert made.warnings == ""
    assert re.search(
        r'A word <span class="rb-together">\(<span class="math" data-tex="x">.*?</span>\),</span> and', made["one"]
    )
    assert re.search(r'<span class="rb-together"><span class="math" data-tex="y">.*?</span>\.</span>', made["one"])
    assert re.search(r"is\.&nbsp;□", made["one"])


def test_the_number_of_an_equation_stands_beside_it_and_can_be_linked(book):
    made = book(one="# One\n\n$$a = b. \\tag{1.2}$$")
    assert re.search(
        r'<div class="rb-equation docutils container" id="equation-1-2"> <div class="math" data-tex="a = b\.">',
        made["one"],
    )
    assert '<span class="rb-number">(1.2)</span>' in made["one"]


def test_the_fonts_have_all_that_formulas_and_figures_show(html):
    pages = "".join((html / page).read_text(encoding="utf-8") for page in PAGES)
    letters = set(
        "".join(re.sub(r"<[^>]+>", "", formula) for formula in re.findall(r"<math.*?</math>", pages, re.DOTALL))
    )
    letters = {one for letter in set(html_text("".join(letters))) for one in (letter, ITALIC.get(letter, letter))}
    known = set(map(chr, TTFont(FONTS / "STIXTwoMath.woff2").getBestCmap()))
    assert letters - known - {"\n"} == set()
    assert "MATH" in TTFont(FONTS / "STIXTwoMath.woff2")
    assert list(TTFont(FONTS / "theta.woff2").getBestCmap()) == [ord("𝜃")]
    figures = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "figures" / "out").glob("*.svg"))
    for form, style in (
        ("400-normal", ""),
        ("400-italic", "font-style: (?:oblique|italic)"),
        ("700-normal", "font-weight: 700"),
    ):
        texts = re.findall(rf'<t(?:ext|span)[^>]*style="[^"]*{style}[^"]*"[^>]*>([^<]*)<', figures)
        assert len(texts) > 30
        known = set(map(chr, TTFont(FONTS / f"dejavu-sans-{form}.woff2").getBestCmap()))
        assert set(html_text("".join(texts))) - known == set()


def html_text(text):
    return html.unescape(text)


def test_copied_formulas_are_tex(browser):
    with Visit(browser, CHAPTER) as visit:
        copied = visit.page.evaluate(
            """() => {
                const equation = document.querySelector('#equation-4-1');
                const range = document.createRange();
                range.setStartBefore(equation.previousElementSibling);
                range.setEndAfter(equation);
                getSelection().addRange(range);
                const data = new DataTransfer();
                const settings = {clipboardData: data, bubbles: true, cancelable: true};
                document.dispatchEvent(new ClipboardEvent('copy', settings));
                return data.getData('text/plain');
            }"""
        )
        assert "the query $q$ after it has been told its position $m$, and $f(k, n)$" in copied
        assert "\n$$\\langle f(q, m),\\, f(k, n)\\rangle = g(q, k, m-n)" in copied
        assert visit.complaints == []


@pytest.mark.parametrize("width", [1280, 360])
def test_a_link_to_a_far_section_lands_there_and_stays(width, browser):
    """Though what is far away has no layout yet."""
    with Visit(browser, f"{HTML.as_uri()}/{CHAPTER}#theorem-4-3", width=width) as visit:
        visit.page.wait_for_timeout(500)
        assert -20 <= visit.page.evaluate("document.getElementById('theorem-4-3').getBoundingClientRect().top") <= 120
        assert visit.page.evaluate("scrollY") > 3000


def test_what_is_far_away_can_be_found_in_the_page(browser):
    with Visit(browser, CHAPTER) as visit:
        assert visit.page.evaluate("window.find('nobody assumed it', false, false, true)") or visit.page.evaluate(
            "window.find('Nobody assumed it')"
        )
        assert visit.page.evaluate("scrollY") > 1000


def test_each_formula_is_read_with_its_structure(browser):
    """To a screen reader a formula is mathematics, and none is a table of one."""
    with Visit(browser, CHAPTER, folds=True) as visit:
        visit.page.add_style_tag(content="* { content-visibility: visible !important }")
        written = visit.page.evaluate(
            "[...document.querySelectorAll('article math')].filter(node => node.checkVisibility()).length"
        )
        tree = visit.context.new_cdp_session(visit.page).send("Accessibility.getFullAXTree")["nodes"]
        roles = [node["role"]["value"] for node in tree if not node["ignored"]]
        assert roles.count("MathMLMath") == written > 300
        assert {"MathMLFraction", "MathMLSub", "MathMLSup", "MathMLSquareRoot"} <= set(roles)
        alone = visit.page.evaluate(
            """[...document.querySelectorAll('math mtable')].filter(table => table.childElementCount === 1)
                .filter(table => table.firstElementChild.childElementCount === 1).map(table => table.outerHTML)"""
        )
        assert alone == []
