"""The pages for the wall: each is its chapter's question, piece, three sentences and votes."""

import pytest

from _ext import questions
from tests.conftest import ROOT
from tests.pages.conftest import PAGES, Visit

CHAPTERS = [name.removeprefix("chapters/") for name in PAGES if name.split("/")[1][0].isdigit()]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_page_for_the_wall_has_all_of_its_chapter(name, browser, html):
    with Visit(browser, f"wall/{name}") as visit, Visit(browser, f"chapters/{name}") as chapter:
        page = visit.page
        title = chapter.page.locator("article h1").first
        words = "one => one.firstChild.textContent + one.childNodes[1].textContent"  # without the link to itself
        assert page.locator("h1").inner_text() == title.evaluate(words)
        assert page.locator("main > p").inner_text() == chapter.page.locator("article h1 + p").inner_text()
        sentences = page.locator("ol > li").all_inner_texts()
        assert len(sentences) == 3
        assert all(sentence.endswith(".") and len(sentence) > 30 for sentence in sentences), sentences
        votes = [vote for vote in questions.questions() if vote.chapter == name.replace(".html", ".ipynb")]
        assert page.locator("details").count() == 4 * len(votes)
        assert page.locator("merror, .rope-piece").count() == 1
        piece = page.locator(".rope-piece")
        before = piece.locator(".rp-said").inner_text()
        control = piece.locator("input").first
        control.focus()
        page.keyboard.press("ArrowRight")
        assert piece.locator(".rp-said").inner_text() != before
        assert visit.complaints == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_how_to_teach_leads_to_each_of_them():
    text = (ROOT / "chapters" / "teach_it.md").read_text(encoding="utf-8")
    assert [name for name in CHAPTERS if f'href="../wall/{name}"' not in text] == []
