"""A chapter begins with a question and its piece, on one screen; words of its sentences set the piece."""

import pytest

from tests.pages.conftest import PAGES

CHAPTERS = [name for name in PAGES if name.split("/")[1][0].isdigit()]
# In sight, but for a share of a pixel.
HERE = """node => { const {left, top, right, bottom} = node.getBoundingClientRect();
    return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight + 1; }"""


@pytest.fixture
def opened(browser, html, request):
    """Opens a page on a screen of some size, for a reader who wants no motion."""
    contexts = []

    def open_page(name, width, height):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce"))
        page = contexts[-1].new_page()
        page.goto(f"{html.as_uri()}/{name}")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (360, 740)])
@pytest.mark.parametrize("name", CHAPTERS)
def test_title_question_and_piece_are_on_the_first_screen(name, width, height, opened):
    page = opened(name, width, height)
    for part in ("h1", "h1 + p", ".rp-views", ".rp-said", ".rp-controls"):
        assert page.locator(f"article {part}").first.evaluate(HERE), part
    assert "?" in page.locator("h1 + p strong").first.inner_text()


@pytest.mark.parametrize("name", [*CHAPTERS, "chapters/rope_in_five_minutes.html"])
def test_every_word_that_sets_a_piece_does_so(name, opened):
    """By keyboard. The piece comes into sight, is where the link says, and says so to who listens."""
    page = opened(name, 1280, 800)
    links = page.locator("a.rb-set")
    assert links.count() >= 3
    for link in links.all():
        link.focus()
        page.keyboard.press("Enter")
        piece = page.locator(link.get_attribute("href"))
        found = piece.locator("input[type=range], fieldset").evaluate_all(
            "all => all.map(one => one.elements ? [...one.elements].findIndex(choice => choice.checked) : +one.value)"
        )
        wanted = link.get_attribute("data-set").split(",")
        assert [str(at) for at, to in zip(found, wanted, strict=False) if to] == [to for to in wanted if to]
        page.wait_for_function(
            f"({HERE})(document.querySelector('{link.get_attribute('href')} .rp-controls'))", timeout=3000
        )
        assert piece.locator("[aria-live]").text_content() == piece.locator(".rp-said").text_content()
        assert link.evaluate("link => link === document.activeElement")
    assert page.evaluate("location.hash") == ""


def test_the_piece_comes_to_the_sentence_and_goes_home(opened):
    page = opened("chapters/07_long_range_decay.html", 1280, 800)
    piece, far = page.locator("#piece-winner"), page.locator("a.rb-set[href='#piece-winner']").last
    home = piece.evaluate("piece => piece.getBoundingClientRect().top + scrollY")
    far.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    before = far.bounding_box()["y"]
    far.click()
    assert far.bounding_box()["y"] <= before + 1
    after = far.evaluate("link => link.closest('p').nextElementSibling.querySelector('.rope-piece')?.id")
    assert after == "piece-winner"
    page.keyboard.press("Tab")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_function("document.querySelector('#piece-winner').getBoundingClientRect().top > 0")
    assert piece.evaluate("piece => piece.getBoundingClientRect().top + scrollY") == pytest.approx(home, abs=1)


def test_a_link_stops_what_plays(opened):
    page = opened("chapters/04_rope_from_complex_numbers.html", 1280, 800)
    button = page.locator("#piece-rotation button")
    button.click()
    page.locator("a.rb-set").first.click()
    button.filter(has_text="Play").wait_for(timeout=1000)
    page.wait_for_timeout(1000)
    assert page.locator("#piece-rotation input").first.input_value() == "3"


def test_without_a_script_a_link_leads_to_the_piece(browser, html):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{html.as_uri()}/chapters/07_long_range_decay.html")
    page.locator("a.rb-set").last.click()
    assert page.locator("#piece-decay").evaluate("piece => Math.abs(piece.getBoundingClientRect().top) < innerHeight")
    context.close()


def test_a_state_that_a_piece_does_not_have_fails_the_build():
    from _ext.pieces import places_of

    piece = """<div data-states='{"steps":[["0","10,000"],["as trained","8 ×"]]}'>"""
    assert places_of(["10,000"], piece) == "1"
    assert places_of(["", "8_×"], piece) == ",1"
    assert places_of(["10000"], piece) is None
    assert places_of(["", "", "0"], piece) is None
    assert places_of(["0"], "") is None
