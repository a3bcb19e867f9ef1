"""Folds: a solution with the cell that checks it, and what each fold says that it hides."""

import re

import nbformat
import pytest

from tests.conftest import HTML
from tests.pages.conftest import CHAPTER, Book, Visit


def notebook_of(*cells):
    """A notebook: strings are Markdown, pairs are code with its metadata."""
    make = nbformat.v4
    made = [make.new_markdown_cell(cell) if isinstance(cell, str) else make.new_code_cell(
        cell[0], metadata=cell[1], execution_count=1, outputs=[make.new_output("stream", text="printed")])
        for cell in cells]  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.writes(make.new_notebook(cells=made, metadata={"kernelspec": kernel}))


HIDDEN = {"tags": ["hide-cell"], "jupyter": {"source_hidden": True, "outputs_hidden": True}}


PROMPTS = {"mystnb": {"code_prompt_show": "Show", "code_prompt_hide": "Hide"}, "tags": ["hide-cell"]}


SOLUTION = "<details><summary>Solution</summary>\n\nBecause $x$.\n\n</details>"


def folded(tmp_path, *cells):
    made = Book(tmp_path / "book", {"one.ipynb": notebook_of("# One", *cells)})
    assert made.warnings == ""
    return made["one"]


def test_a_solution_and_its_cell_are_in_one_fold(tmp_path):
    page = folded(tmp_path, SOLUTION, ("check()", HIDDEN), "Afterwards.", ("seen()", {}))
    fold = re.search(r"<details><summary>Solution</summary> <p>Because .*?</details>", page)[0]
    assert page.count("<details") == 1
    assert "check" in fold
    assert "printed" in fold
    assert "Afterwards" not in fold
    assert "seen" not in fold
    assert fold.index("Because") < fold.index("check") < fold.index("printed")


@pytest.mark.parametrize(
    "cells",
    [
        ("Text", ("check()", HIDDEN)),
        ("<details><summary>Hint</summary>\n\nThink.\n\n</details>", ("check()", HIDDEN)),
        (SOLUTION + "\n\nText", ("check()", HIDDEN)),
        (SOLUTION, ("seen()", {}), ("check()", HIDDEN)),
        (SOLUTION, "<details><summary>Hint</summary>\n\nThink.\n\n</details>", ("check()", PROMPTS)),
        ("Text", ("check()", PROMPTS)),
    ],
)
def test_other_hidden_cells_keep_their_own_fold(cells, tmp_path):
    page = folded(tmp_path, *cells)
    own = re.search(r'<details class="admonition hide.*?</details>', page)[0]
    assert "check" in own


HIDDEN_CODE = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}}


def run_of_cells(*cells):
    """Hidden cells behind each other, (source, whether it prints), as one notebook."""
    made = nbformat.reads(notebook_of("# One", *((source, HIDDEN_CODE) for source, _ in cells), "After."), as_version=4)
    for cell, (_, prints) in zip(made.cells[1:], cells, strict=False):
        cell.outputs = cell.outputs if prints else []
    return nbformat.writes(made)


@pytest.mark.parametrize(
    ("cells", "folds"),
    [
        ([("assert a", 0), ("b\nassert c", 0), ("proved(d)", 0)], ["Checked by 3 cells (4 lines)"]),
        ([("assert a", 0), ("b", 0)], ["Show the code of 2 cells (2 lines)"]),
        ([("assert a", 0), ("assert b", 1)], ["Show the code of 2 cells (2 lines)"]),
        ([("assert a", 0)], ["Checked by a cell (1 line)"]),
        ([("assert a", 1)], ["Show the code (1 line)"]),
        ([("b", 0), ("assert a", 0)], ["Show the code of 2 cells (2 lines)"]),
        ([("a", 1), ("b", 1)], ["Show the code (1 line)", "Show the code (1 line)"]),
        ([("import a", 0), ("b", 0), ("c", 0)], ["Setup (1 line)", "Show the code of 2 cells (2 lines)"]),
    ],
)
def test_folds_with_nothing_between_are_one(cells, folds, tmp_path):
    """What the last one prints stands below it."""
    page = Book(tmp_path / "book", {"one.ipynb": run_of_cells(*cells)})["one"]
    assert re.findall(r'class="collapsed[^>]*>(.*?)</p>', page) == folds
    assert page.count("<details") == page.count("</details>") == len(folds)
    assert bool(re.search(r"rb-checked[^>]*> <details", page)) == folds[0].startswith("Checked")
    assert page.count('<div class="cell ') == page.count('<div class="cell_input') == len(cells)
    if cells[-1][1]:
        assert page.rindex("</details>") < page.rindex("printed")


def test_a_cell_in_a_common_fold_can_be_tried_and_printed(browser):
    """Each keeps its own controls, and on paper all of them are there."""
    with Visit(browser, "chapters/06_rope_in_code.html") as visit:
        fold = visit.page.locator("details.hide:has(> div.cell):has(.rb-live)").first
        tried = fold.locator(".rb-try").first
        assert not tried.is_visible()
        fold.locator("summary").click()
        tried.click()
        fold.get_by_text("A page from disk may not load Python").first.wait_for()
        assert fold.locator(".rb-status").count() == 1
        visit.page.emulate_media(media="print")
        closed = visit.page.locator("details.hide:not([open]):has(> div.cell) pre")
        assert closed.count() > 3
        assert all(one.is_visible() for one in closed.all())


def test_a_solution_opens_without_a_script(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{HTML.as_uri()}/chapters/01_why_position.html")
    fold = page.locator("article details", has=page.get_by_text("Solution", exact=True)).first
    assert not fold.locator(".cell_input").is_visible()
    fold.locator("summary").click()
    assert fold.locator(".cell_input").is_visible()
    assert fold.locator("summary").count() == 1
    context.close()


def test_solutions_say_whose_they_are(browser):
    with Visit(browser, CHAPTER) as visit:
        named = visit.page.get_by_label("Solution of exercise 4.1", exact=True)
        assert named.count() == 1
        assert named.text_content().strip() == "Solution"
        assert visit.page.locator("[aria-label='Toggle hidden content']").count() == 0


def test_a_figure_comes_without_its_call_which_is_folded_below_it(browser):
    with Visit(browser, CHAPTER) as visit:
        cell = visit.page.locator("div.cell:has(figure)").first
        assert not cell.locator(".cell_input").is_visible()
        cell.get_by_text("Code of this figure").click()
        assert "figures.rotation.draw_relative_angle()" in cell.locator(".cell_input").inner_text()
        figure, code = (cell.locator(part).bounding_box()["y"] for part in ("figure", ".cell_input"))
        assert figure < code
