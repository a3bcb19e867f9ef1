"""The page of symbols against the letters in the chapters' mathematics."""

import re

import nbformat
import pytest

from tests.conftest import ROOT
from tools.notation import formulas, letters

CHAPTERS = {int(path.stem[:2]): path for path in sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))}


def letters_of_chapter(path) -> set[str]:
    """The letters of a chapter's formulas."""
    cells = nbformat.read(path, as_version=4).cells
    return {
        letter
        for cell in cells
        if cell.cell_type == "markdown"
        for one in formulas(cell.source)
        for letter in letters(one)
    }


def chapters_of(words: str) -> set[int]:
    """ "1, 4 to 6" -> {1, 4, 5, 6}."""
    if words == "all":
        return set(CHAPTERS)
    ranges = re.findall(r"(\d+)(?: to (\d+))?", words)
    return {number for first, last in ranges for number in range(int(first), int(last or first) + 1)}


def rows() -> list[tuple[set[str], set[int], str]]:
    """For each row of the page: the letters of its symbols, the chapters that it names, the row itself."""
    page = (ROOT / "chapters" / "notation.md").read_text(encoding="utf-8")
    found = []
    for line in page.split("## Two layouts")[0].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and "$" in cells[0]:
            symbol = {letter for one in formulas(cells[0] + " " + cells[1]) for letter in letters(one)}
            symbol |= {"i"} if "mathrm{i}" in cells[0] else set()
            found.append((symbol, chapters_of(cells[2]), cells[0]))
    return found


def test_letters_are_read_as_a_reader_would():
    (formula,) = formulas(r"words $\theta_i^T \mathrm{Re}\,q \tag{4.1}$ and `$code$`")
    assert letters(formula) == {"theta", "i", "T", "q"}


@pytest.mark.parametrize("number", CHAPTERS)
def test_each_letter_of_a_chapter_is_on_the_page(number):
    listed = {letter for symbol, chapters, _ in rows() if number in chapters for letter in symbol}
    missing = letters_of_chapter(CHAPTERS[number]) - listed
    assert not missing, f"chapter {number} uses {sorted(missing)}; add a row to chapters/notation.md"


def test_each_row_is_used_in_the_chapters_that_it_names():
    letters_in = {number: letters_of_chapter(path) for number, path in CHAPTERS.items()}
    for symbol, chapters, row in rows():
        for number in chapters if symbol and len(chapters) < len(CHAPTERS) else ():
            used = symbol & letters_in.get(number, set())
            assert used, (
                f"{row} is not used in chapter {number}: take the number out of its row in chapters/notation.md"
            )
