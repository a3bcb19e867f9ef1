"""Every page on a phone of 360 pixels. Each is opened once, and asked all that there is to ask."""

import gzip

import pytest
from playwright.sync_api import TimeoutError

from tests.pages.conftest import ALL, PAGES, WIDTH, Visit, judge, on_disk, own_script


@pytest.fixture(scope="module", params=PAGES)
def phone_visit(request, browser):
    with Visit(browser, request.param, width=360, folds=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def phone(phone_visit):
    return phone_visit.page


def test_its_own_script_is_small_on_a_phone(phone_visit):
    own = own_script(phone_visit)
    assert own.pop("engines.js", 0) <= 7_500, "the second script that chapter 12 has"
    assert sum(own.values()) <= 16_000, own


def test_the_first_load_is_light(phone_visit):
    """All that is asked for until the page is whole, compressed as a host on the web does; pictures are in the page."""
    files = {on_disk(url) for url in phone_visit.requests if url.startswith("file:")}
    weights = {path.name: len(gzip.compress(path.read_bytes())) for path in files}
    print(f"{phone_visit.page.url}: {len(weights)} files, {sum(weights.values())} bytes")
    assert sum(weights.values()) <= (160_000 if "index" in phone_visit.page.url else 300_000), weights
    assert len(weights) <= 20, weights


def test_formulas_break_on_a_phone(phone):
    """They need not be scrolled, but for matrices that a cell computes."""
    cut = phone.locator("article div.math:not(.output)").evaluate_all(
        """all => all.filter(one => !one.closest('.cell_output') && Math.max(one.scrollWidth,
            ...[...one.children].map(formula => formula.scrollWidth)) > one.clientWidth + 1)
            .map(one => one.dataset.tex)"""
    )
    assert cut == []


def test_numbers_of_equations_are_on_the_page(phone):
    boxes = phone.locator(".rb-number").evaluate_all("all => all.map(one => one.getBoundingClientRect().toJSON())")
    assert all(0 <= box["left"] < box["right"] <= 360 for box in boxes)


def test_nothing_is_out_of_reach_on_a_phone(phone):
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    unreachable = phone.evaluate(
        """() => [...document.querySelectorAll('article *')].filter(node => {
            const box = node.getBoundingClientRect();
            if (!box.width || !box.height || (box.right <= 361 && box.left >= -1)) return false;
            if (getComputedStyle(node).position === 'absolute') return false;
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


def test_on_a_phone_the_rows_of_a_table_of_words_are_cards(phone):
    """Each cell is on the screen, and says what it is."""
    cut = phone.evaluate(
        """() => [...document.querySelectorAll('article td[data-head]')].filter(cell => {
            const box = cell.getBoundingClientRect();
            return !box.height || box.right > innerWidth || cell.scrollWidth > cell.clientWidth + 1;
        }).map(cell => cell.textContent.slice(0, 60))"""
    )
    assert cut == []
    if on_disk(phone.url).stem == "papers":
        row = phone.locator("td[data-head^='Verdict']").first
        assert row.evaluate("cell => getComputedStyle(cell, '::before').content").startswith('"Verdict')
        assert row.locator("xpath=..").locator("td").first.inner_text() == "1"


def test_a_table_of_words_that_a_cell_computes_is_cards_too(phone):
    """Where it is wider than the screen; each row is named, and its cells say their heads."""
    asked = {"models": 2, "rope_in_five_minutes": 1, "if_you_train": 1, "06_rope_in_code": 0, "after_rope": 0}
    tables = phone.locator("article table.dataframe:has(td[data-head])")
    assert tables.count() == asked.get(on_disk(phone.url).stem, tables.count())
    for table in tables.all():
        assert table.evaluate(
            "table => table.closest('.output').scrollWidth <= table.closest('.output').clientWidth + 1"
        )
        heads = table.locator("thead th").all_text_contents()
        row = table.locator("tbody tr").first
        told = row.locator("td").evaluate_all("all => all.map(one => one.dataset.head)")
        assert [head for head in told if head] == [f"{head}:" for head, at in zip(heads[1:], told, strict=True) if at]
        assert row.locator("th").is_visible()


def test_what_is_cut_on_a_phone_says_so_and_can_be_scrolled_by_keyboard(phone):
    """Once it comes near the screen."""
    cut = phone.evaluate_handle(
        """() => [...document.querySelectorAll('article *')].filter(node => {
            const style = getComputedStyle(node);
            if (!node.clientWidth || node.scrollWidth <= node.clientWidth + 1) return false;
            return style.overflowX !== 'visible' && style.position !== 'absolute';
        })"""
    )
    says = "node => node.tabIndex >= 0 && getComputedStyle(node).maskImage.includes('gradient')"
    for area in (one.as_element() for one in cut.get_properties().values()):
        area.scroll_into_view_if_needed()
        try:
            phone.wait_for_function(says, arg=area, timeout=5000)
        except TimeoutError:
            pytest.fail(area.evaluate("node => node.outerHTML.slice(0, 150)"))


def test_axe_finds_nothing_serious_on_a_phone(phone):
    """The rest is that of a wide page: the head and the foot, which differ, are those of one template."""
    first = on_disk(phone.url).stem == "index"
    assert judge(phone, schemes=("light",), rules=ALL if first else WIDTH) == []


LABELS = """() => {
    const found = [];
    for (const piece of document.querySelectorAll(".rope-piece")) for (const drawing of piece.querySelectorAll("svg")) {
        const texts = [...drawing.querySelectorAll("text")].filter(text => text.textContent.trim());
        const {left, right} = piece.getBoundingClientRect(), boxes = texts.map(text => text.getBoundingClientRect());
        boxes.forEach((box, i) => {
            if (box.left < left - 1 || box.right > right + 1) found.push([piece.id, texts[i].textContent, "is cut"]);
            boxes.slice(0, i).forEach((other, j) => {
                const width = Math.min(box.right, other.right) - Math.max(box.left, other.left);
                const height = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
                if (width > 1.5 && height > 5) found.push([piece.id, texts[i].textContent, texts[j].textContent]);
            });
        });
    }
    return found;
}"""


@pytest.mark.parametrize(("width", "height"), [(360, 640), (400, 900)])
def test_labels_of_pieces_are_whole_and_apart(width, height, browser, html):
    """In their first states. The higher the screen, the larger is a drawing, and with it its type."""
    with Visit(browser, "chapters/index.html", width=width) as visit:
        visit.page.set_viewport_size({"width": width, "height": height})
        for page in PAGES:
            path = html / page
            if 'class="rope-piece' in path.read_text(encoding="utf-8"):
                visit.page.goto(path.as_uri())
                assert visit.page.evaluate(LABELS) == [], page
