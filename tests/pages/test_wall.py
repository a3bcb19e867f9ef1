"""The pages for the wall: each is its chapter's question, piece and votes, and folded its three sentences."""

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
        answers = page.locator(".rb-after ol > li")
        assert not any(one.is_visible() for one in answers.all())  # they answer the votes
        page.locator(".rb-after summary").click()
        sentences = answers.all_inner_texts()
        assert len(sentences) == 3
        assert all(sentence.endswith(".") and len(sentence) > 30 for sentence in sentences), sentences
        votes = [vote for vote in questions.questions() if vote.chapter == name.replace(".html", ".ipynb")]
        assert page.locator("details:not(.rope-piece *)").count() == 4 * len(votes) + 1
        assert page.locator("merror, .rope-piece").count() == 1
        piece = page.locator(".rope-piece")
        before = piece.locator(".rp-said").inner_text()
        control = piece.locator("input[type=range], input:checked").first
        control.focus()
        page.keyboard.press("ArrowRight")
        assert piece.locator(".rp-said").inner_text() != before
        assert visit.complaints == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("name", CHAPTERS)
def test_on_a_projector_the_vote_and_its_options_are_on_the_first_screen(name, browser, html):
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    page.goto(f"{html.as_uri()}/wall/{name}")
    beside = page.locator("main > div > section")
    assert beside.count() == any(vote.chapter == name.replace(".html", ".ipynb") for vote in questions.questions())
    for one in (*beside.locator("summary").all(), page.locator(".rope-piece")):
        box = one.bounding_box()
        assert box["y"] + box["height"] <= 1080, (one.inner_text()[:40], box)
    page.close()


def test_how_to_teach_leads_to_each_of_them():
    text = (ROOT / "chapters" / "teach_it.md").read_text(encoding="utf-8")
    assert [name for name in CHAPTERS if f'href="../wall/{name}"' not in text] == []
