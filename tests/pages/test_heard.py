"""What a screen reader says: each thing once, with its name, when it happens. First heard with Orca, and kept here.

A live region is what is read aloud when it changes. Orca asks only once how a region is live, and reads each element in
it by itself; so a region here never changes its kind, and holds one text.
"""

import re

import pytest

from tests.conftest import HTML
from tests.pages.conftest import Live, Visit, live_cells

FIRST, CHAPTER = "chapters/index.html", "chapters/04_rope_from_complex_numbers.html"
# All that is put into a live region, in its order, with the number of elements that would be read by themselves.
EAR = """addEventListener("DOMContentLoaded", () => {
    window.heard = [];
    new MutationObserver(changes => {
        const element = ({target}) => target.closest ? target : target.parentElement;
        const live = change => element(change)?.closest("[aria-live], [role=status]");
        for (const region of new Set(changes.map(live)))
            if (region?.textContent) heard.push([region.textContent, region.childElementCount]);
    }).observe(document, {subtree: true, childList: true, characterData: true});
})"""
pieces = pytest.mark.parametrize(
    ("page_name", "piece", "slider"),
    [(FIRST, "hero", "words in front"), (CHAPTER, "rotation", "shift both: n")],
)


class Heard(Visit):
    """A page with an ear on it."""

    def __init__(self, browser, address, motion="reduce"):
        super().__init__(Listening(browser, motion), address)

    def heard(self):
        """What was said since the last time it was asked."""
        self.page.wait_for_timeout(100)
        said = self.page.evaluate("heard.splice(0)")
        assert {elements for _, elements in said} <= {0}, said
        return [text for text, _ in said]


class Listening:
    """A browser whose contexts bring the ear along."""

    def __init__(self, browser, motion):
        self.browser, self.motion = browser, motion

    def new_context(self, **settings):
        context = self.browser.new_context(reduced_motion=self.motion, **settings)
        context.add_init_script(EAR)
        return context


def of(page_name):
    return f"{HTML.as_uri()}/{page_name}"


# -- Pieces ------------------------------------------------------------------------------------------------------------


@pieces
def test_a_piece_says_its_result_once_and_names_its_slider_without_its_value(page_name, piece, slider, browser, html):
    with Heard(browser, of(page_name)) as visit:
        whole = visit.page.locator(f"#piece-{piece}")
        control = whole.get_by_role("slider", name=slider, exact=True)
        for key in (None, "ArrowRight", "ArrowLeft"):
            if key:
                control.press(key)
            said = whole.locator(".rh-said, .rp-said").text_content()
            assert visit.heard() == ([said] if key else [])
            assert whole.aria_snapshot().count(said) == 1


@pytest.mark.slow
def test_a_piece_is_silent_while_it_plays_and_says_where_it_stopped(browser, html):
    with Heard(browser, of(CHAPTER)) as visit:
        whole = visit.page.locator("#piece-rotation")
        slider = whole.get_by_role("slider", name="shift both: n")
        whole.get_by_role("button", name="Play").click()
        visit.page.wait_for_function("document.querySelector('#piece-rotation input').value > 4")
        assert visit.heard() == []
        whole.get_by_role("button", name="Pause").click()
        assert visit.heard() == [whole.locator(".rp-said").text_content()]
        slider.press("End")
        whole.get_by_role("button", name="Play").click()
        visit.heard()
        end = slider.get_attribute("max")
        visit.page.wait_for_function(f"document.querySelector('#piece-rotation input').value === '{end}'")
        assert visit.heard() == [whole.locator(".rp-said").text_content()]


def test_what_plays_unasked_says_nothing(browser, html):
    with Heard(browser, of(FIRST), motion="no-preference") as visit:
        visit.page.wait_for_function("document.querySelector('#piece-hero input').value === '7'", timeout=20_000)
        assert visit.page.get_by_role("button", name="Play").is_visible()
        assert visit.heard() == []


# -- Cells -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_told_in_one_piece_and_once(browser, served):
    cell = next(cell for _, cell in live_cells("04_rope_from_complex_numbers") if "break" in cell.metadata)
    with Heard(browser, f"{served[0]}/{CHAPTER}") as visit:
        proof = Live(visit.page, cell.source)
        proof.click(cell.metadata["break"]["label"])
        proof.result()
        told = visit.heard()
        assert told[-2] == "Running."
        changed = r"Changed in line 4: .* is now .* − I.*\. "
        assert re.match(changed + r"Refused in line 4 after .* s\. lhs − rhs reduces to", told[-1])
        assert proof.cell.locator(".rb-live").aria_snapshot().count("Refused in line 4") == 1
        proof.click("Reset")
        assert visit.heard() == ["The text and the result of the book are back."]
        proof.click("Close")
        visit.heard()
        proof.click("Try it")
        assert visit.heard() == []


def test_the_editor_is_there_before_it_has_the_focus(browser, served):
    """Else Orca reads all of its text and not its name, and takes what one types for commands."""
    with Visit(browser, f"{served[0]}/chapters/05_rotation_matrix.html") as visit:
        visit.page.evaluate(
            """() => {
                const see = () => window.built ??= document.querySelector(".rb-code") && performance.now();
                new MutationObserver(see).observe(document, {subtree: true, childList: true});
                addEventListener("focusin", () => window.waited = performance.now() - window.built);
            }"""
        )
        Live(visit.page, "J = rotation(pi / 2)").click("Try it")
        visit.page.wait_for_function("document.activeElement.matches('textarea')")
        assert visit.page.evaluate("waited") >= 40
        name = "Python code of this cell. Control and Enter run it."
        assert visit.page.get_by_role("textbox", name=name, exact=True).count() == 1


def test_what_was_covered_is_read_when_it_is_shown(browser, html):
    """A focus on something with a name of its own would say the name only, and reading would go on behind it."""
    with Heard(browser, of(CHAPTER)) as visit:
        page = visit.page
        page.get_by_role("switch", name="Predict first").click()
        for place, kind in ((0, "pre"), (1, "math")):
            output = page.locator(".tag_predict .cell_output").nth(place)
            output.locator(".rb-cover").press("Enter")
            page.wait_for_function(
                "document.activeElement.closest('.rb-shown') && !document.activeElement.closest('button')"
            )
            focused = page.evaluate_handle("document.activeElement").as_element()
            assert focused.evaluate("node => node.localName") == kind
            assert output.locator(kind).evaluate("(node, focused) => node === focused", focused)
            assert focused.get_attribute("aria-label") is None


# -- Pages -------------------------------------------------------------------------------------------------------------
