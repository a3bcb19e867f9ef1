"""Predict first: outputs that stay covered until one asks for them, and chapters without outputs for students."""

import builtins
import re

import nbformat
import pytest
from nbclient import NotebookClient

from _ext import in_page
from lectures.homework import build as homework
from tests.conftest import HTML, ROOT
from tests.pages.conftest import Live, Visit, judge, live_cells
from tools import take_away

NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))
STEMS = [path.stem for path in NOTEBOOKS]
CHAPTER, OTHER = "04_rope_from_complex_numbers", "10_does_it_work"
ON = "localStorage.predict = 'on'"
# For each marked output: whether its content can be seen, and whether its cover can.
STATE = """() => [...document.querySelectorAll('.tag_predict .cell_output')].map(output => {
    const seen = node => node.checkVisibility({visibilityProperty: true});
    const content = [...output.children].filter(node => !node.matches('.rb-cover'));
    return [content.some(seen), [...output.querySelectorAll('.rb-cover')].some(seen)];
})"""
COVERED, OPEN = [False, True], [True, False]
DISK = HTML.as_uri()


def cells(path):
    return nbformat.read(path, as_version=4).cells


def tags(cell):
    return cell.metadata.get("tags", [])


MARKED = {path.stem: sum("predict" in tags(cell) for cell in cells(path)) for path in NOTEBOOKS}


def address(stem, root=DISK):
    return f"{root}/chapters/{stem}.html"


def switch(page):
    return page.get_by_role("switch", name="Predict first")


class Opened(Visit):
    """A chapter, and its switch turned on.

    What one page remembers for the next is tested on pages that are served: from disk, a busy Chromium hands nothing on
    to one page in 25 (of 1,138 served ones it forgot none).
    """

    def __init__(self, browser, stem=CHAPTER, root=DISK, *, on=True, **settings):
        super().__init__(browser, address(stem, root), **settings)
        if on:
            switch(self.page).click()


# -- Which cells -------------------------------------------------------------------------------------------------------


def test_marked_cells_have_something_to_predict():
    assert 20 <= sum(MARKED.values()) <= 50
    assert MARKED[CHAPTER] >= 10
    for path in NOTEBOOKS:
        for cell in cells(path):
            if "predict" in tags(cell):
                assert cell.outputs, cell.id
                assert "hide-cell" not in tags(cell), cell.id


@pytest.mark.parametrize("stem", STEMS)
def test_only_pages_with_marked_cells_have_switch_and_script(stem, html):
    text = (html / "chapters" / f"{stem}.html").read_text(encoding="utf-8")
    assert text.count("tag_predict") == MARKED[stem]
    for part in ('role="switch"', "predict.js"):
        assert text.count(part) == (MARKED[stem] > 0), part
    if MARKED[stem]:
        assert f"Covers {MARKED[stem]} results" in text or MARKED[stem] == 1


def test_the_script_is_small(html):
    assert (html / "_static" / "predict.js").stat().st_size < 3000


# -- On the page -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", [stem for stem in STEMS if MARKED[stem]])
def test_off_at_first_then_all_are_covered_and_nothing_moves(stem, browser, html):
    places = "() => [...document.querySelectorAll('article *')].filter(node => !node.matches('.rb-cover, .rb-cover *'))"
    places += ".map(node => node.getBoundingClientRect()).map(box => [box.left, box.top + scrollY, box.height])"
    with Opened(browser, stem, on=False) as visit:
        page = visit.page
        visit.lay_out()
        assert not switch(page).is_checked()
        assert page.evaluate(STATE) == MARKED[stem] * [OPEN]
        before = page.evaluate(places)
        switch(page).click()
        assert page.evaluate(STATE) == MARKED[stem] * [COVERED]
        assert page.evaluate(places) == before
        told = page.locator(".tag_predict:not(.rb-shown) ~ .rb-told")  # it tells the result, and waits with it
        assert not any(one.is_visible() for one in told.all())
        for cover in page.locator(".rb-cover").all():
            assert cover.bounding_box() == cover.locator("..").bounding_box()
            assert cover.bounding_box()["height"] >= 24
        switch(page).click()
        assert page.evaluate(STATE) == MARKED[stem] * [OPEN]
        assert visit.complaints == []


def test_on_a_phone_covers_and_switch_are_large_enough(browser, html):
    with Visit(browser, address(CHAPTER), width=360) as visit:
        switch(visit.page).click()
        assert visit.page.evaluate(STATE) == MARKED[CHAPTER] * [COVERED]
        for target in (switch(visit.page), *visit.page.locator(".rb-cover").all()):
            box = target.bounding_box()
            assert min(box["width"], box["height"]) >= 24
            assert 0 <= box["x"] < box["x"] + box["width"] <= 360
            assert target.evaluate("node => node.scrollHeight <= node.clientHeight + 1")


def test_the_code_stays_and_nothing_of_a_covered_output_is_read_aloud(browser, html):
    with Opened(browser) as visit:
        cell = visit.page.locator(".tag_predict").first
        assert "rotation(m * theta)" in cell.locator(".cell_input pre").inner_text()
        output = cell.locator(".cell_output")
        assert output.aria_snapshot() == '- button "What will come out? Show"'
        cell.get_by_role("button", name="What will come out? Show").click()
        assert "m = 3, n = 1: 1.5884" in output.aria_snapshot()


def test_each_is_shown_by_keyboard_alone(browser, html):
    with Opened(browser, on=False) as visit:
        page = visit.page
        switch(page).focus()
        page.keyboard.press("Space")
        assert switch(page).is_checked()
        assert page.evaluate("localStorage.predict") == "on"  # from disk, too
        page.locator(".rb-cover").nth(2).focus()
        ring = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(ring) != "none"
        page.keyboard.press("Enter")
        state = page.evaluate(STATE)
        assert state.pop(2) == OPEN
        assert state == len(state) * [COVERED]
        page.wait_for_function("document.activeElement.matches('.tag_predict .cell_output *:not(button)')")
        assert page.evaluate(ring) != "none"


def test_the_switch_is_remembered_for_the_book(browser, served):
    root, _ = served
    with Opened(browser, CHAPTER, root) as visit:
        page = visit.page
        page.locator(".rb-cover").first.click()
        page.reload()
        assert switch(page).is_checked()
        assert page.evaluate(STATE) == MARKED[CHAPTER] * [COVERED]
        page.goto(address(OTHER, root))
        assert switch(page).is_checked()
        assert page.evaluate(STATE) == MARKED[OTHER] * [COVERED]
        switch(page).click()
        page.go_back()
        assert not switch(page).is_checked()
        assert page.evaluate(STATE) == MARKED[CHAPTER] * [OPEN]
        page.evaluate(f"{ON}, dispatchEvent(new Event('pageshow'))")  # a page that the browser kept alive comes back
        assert switch(page).is_checked()
        assert page.evaluate(STATE) == MARKED[CHAPTER] * [COVERED]
        assert visit.complaints == []


def test_where_nothing_may_be_remembered_it_works_for_the_page(browser, html):
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden') }})")
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(error.stack))
    page.goto(address(CHAPTER))
    assert page.evaluate(STATE) == MARKED[CHAPTER] * [OPEN]
    switch(page).click()
    assert page.evaluate(STATE) == MARKED[CHAPTER] * [COVERED]
    assert [stack for stack in errors if "predict.js" in stack] == []  # the theme's own scripts do complain
    context.close()


def test_nothing_is_seen_for_a_moment(browser, html):
    """Before the scripts run, what is covered is out of sight, and switch and covers stand in their places."""
    with Opened(browser, on=False) as visit:
        page = visit.page
        visit.context.add_init_script(ON)
        page.route("**/predict.js*", lambda route: route.abort())
        page.goto(address(CHAPTER))
        assert page.evaluate(STATE) == MARKED[CHAPTER] * [COVERED]
        assert switch(page).is_visible()


def test_a_link_into_a_covered_output_shows_it(browser, served):
    root, _ = served
    with Opened(browser, OTHER, root) as visit:
        page = visit.page
        anchors = page.locator(".tag_predict figure[id]").evaluate_all("all => all.map(one => one.id)")
        assert len(anchors) >= 2
        for anchor in anchors:
            page.goto(f"{address(OTHER, root)}#{anchor}")
            assert page.locator(f"#{anchor}").is_visible()
        assert sum(state == OPEN for state in page.evaluate(STATE)) == len(anchors)
        page.goto("about:blank")
        page.goto(f"{address(OTHER, root)}#{anchor}")
        assert [state for state in page.evaluate(STATE) if state == OPEN] == [OPEN]
        switch(page).click()
        switch(page).click()  # covered again, and a link to where one is already
        assert OPEN not in page.evaluate(STATE)
        again = "id => Object.assign(document.querySelector('article a[href]'), {href: '#' + id}).click()"
        page.evaluate(again, anchor)
        assert page.locator(f"#{anchor}").is_visible()


def test_on_paper_all_is_shown(browser, html):
    with Opened(browser) as visit:
        visit.page.emulate_media(media="print")
        assert visit.page.evaluate(STATE) == MARKED[CHAPTER] * [OPEN]
        assert not visit.page.locator(".rb-predict").is_visible()


def test_the_pdf_has_neither_switch_nor_covers(browser, html):
    with Opened(browser) as visit:
        content = visit.page.evaluate(take_away.TAKE, [CHAPTER, STEMS])["content"]
        assert content.count("tag_predict") == MARKED[CHAPTER]
        for control in ("Predict first", "rb-predict", "What will come out"):
            assert control not in content


def test_without_a_script_nothing_is_covered(browser, html):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address(CHAPTER))
    outputs = page.locator(".tag_predict .cell_output")
    assert all(output.is_visible() for output in outputs.all())
    assert outputs.count() == MARKED[CHAPTER]
    assert page.evaluate(STATE) == MARKED[CHAPTER] * [OPEN]
    assert page.get_by_text("Predict first", exact=True).count() == 1
    assert not page.get_by_text("Predict first", exact=True).is_visible()
    context.close()


@pytest.mark.slow
def test_a_run_of_ones_own_shows_its_result(browser, served):
    cell = next(cell for _, cell in live_cells(CHAPTER) if "predict" in tags(cell) and "print(" in cell.source)
    with Opened(browser, CHAPTER, served[0]) as visit:
        mine = Live(visit.page, cell.source)
        assert mine.cell.locator(".rb-cover").is_visible()
        mine.click("Try it")
        mine.click("Run")
        mine.result()
        assert mine.cell.locator(".rb-result").is_visible()
        assert mine.cell.locator(".rb-result").inner_text().strip() == cell.outputs[0].text.strip()
        assert not mine.cell.locator(".rb-cover").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("stem", "width"), [(CHAPTER, 1280), pytest.param(OTHER, 360, marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious_where_it_is_on(stem, width, browser, html):
    """How it judges a page whose switch is off: test_wide.py and test_phone.py."""
    with Opened(browser, stem, width=width) as visit:
        assert judge(visit.page) == []


# -- For students ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    folder = tmp_path_factory.mktemp("student") / "chapters"
    homework.write_chapters(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=STEMS)
def test_a_cleared_chapter_has_all_but_outputs_solutions_and_assertions(path, student):
    notebook = nbformat.read(student / path.name, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown", "the title comes first"
    [first] = [cell for cell in notebook.cells if cell.id == "book-code"]
    kept = [cell for cell in notebook.cells if cell is not first]
    assert not any("hide-cell" in tags(cell) for cell in kept)
    assert all((cell.outputs, cell.execution_count) == ([], None) for cell in (first, *kept) if "outputs" in cell)
    source = {cell.id: cell for cell in cells(path)}
    left_out = set(source) - {cell.id for cell in kept}
    for name in left_out:
        text, hidden = source[name].source, "hide-cell" in tags(source[name])
        assert hidden or text.startswith("<details><summary>Solution") or not homework.without_assertions(text), name
    assert [cell.source for cell in kept if "outputs" in cell] == [
        homework.without_assertions(cell.source)
        for cell in source.values()
        if "outputs" in cell and cell.id not in left_out
    ]
    text, whole = ("\n".join(cell.source for cell in some) for some in (kept, source.values()))
    assert "Solution" not in text
    for part in ("<summary>Hint", "> **Exercise", "\n## ", "> **Theorem", ".check(answer)"):
        assert text.count(part) == whole.count(part), part
    folds = whole.count("<details>") - whole.count("<summary>Solution")
    assert text.count("<details>") == text.count("</details>") == folds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=STEMS)
def test_a_cleared_chapter_needs_nothing_that_was_left_out(path, student):
    code = [cell.source for cell in cells(student / path.name)[1:] if "outputs" in cell]
    needed = in_page.names_of(*(statement for source in code for statement in in_page.statements(source))).read
    assert needed <= set(dir(builtins)) | {"display"}


def test_links_of_cleared_chapters_lead_somewhere(student):
    for path in student.glob("*.ipynb"):
        text = "\n".join(cell.source for cell in cells(path) if "outputs" not in cell)
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert link.startswith("https:") or (student / link).exists(), (path.name, link)
    for path in student.glob("*.md"):
        for picture in re.findall(r"\S+\.svg", path.read_text(encoding="utf-8")):
            assert (student / picture.split("(")[-1]).exists(), (path.name, picture)


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["01_why_position", CHAPTER])
def test_a_cleared_chapter_runs_in_an_empty_folder(stem, student, tmp_path):
    notebook = nbformat.read(student / f"{stem}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    asked = sum(".check(" in cell.source for cell in notebook.cells if "outputs" in cell)
    said = [out.text for cell in notebook.cells for out in cell.get("outputs", ()) if out.output_type == "stream"]
    assert sum("Not written yet" in text for text in said) == asked
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=STEMS)
def test_no_assertion_that_is_seen_tells_a_covered_result(path):
    for cell in cells(path):
        if "predict" in tags(cell) and "assert" in cell.source:
            assert "hide-input" in tags(cell), f"cell {cell.id} asserts beside its cover what comes out: fold its code"
