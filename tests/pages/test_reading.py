"""What reading.js and the style do for who reads: the place after a reload, the contents beside the text, roots."""

import pytest

CHAPTER = "chapters/07_long_range_decay.html"
MARKED = """() => {
    const links = [...document.querySelectorAll(".page-toc a[href^='#']")];
    const begins = link => document.getElementById(decodeURIComponent(link.hash.slice(1))).getBoundingClientRect().top;
    const text = link => link?.textContent;
    return [text(links.find(link => link.classList.contains("active"))),
            text(links.findLast(link => begins(link) < innerHeight / 4))];
}"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 360])
def test_a_reload_comes_back_to_where_one_was(width, browser, html):
    page = browser.new_page(viewport={"width": width, "height": 740})
    page.goto(f"{html.as_uri()}/{CHAPTER}")
    for share in (0.3, 0.7):
        page.evaluate(f"scrollTo(0, {share} * document.documentElement.scrollHeight)")
        page.wait_for_timeout(500)
        place = "() => { const one = document.elementFromPoint(innerWidth / 2, innerHeight / 2).closest('section'); "
        place += "return [one.id, one.getBoundingClientRect().top]; }"
        section, top = page.evaluate(place)
        page.reload()
        page.wait_for_timeout(1000)
        after = page.evaluate(f"document.getElementById({section!r}).getBoundingClientRect().top")
        assert after == pytest.approx(top, abs=80)
    page.close()


def test_the_contents_mark_the_section_on_the_way_down_and_up(browser, html):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{html.as_uri()}/{CHAPTER}")
    page.evaluate("document.documentElement.classList.add('rb-laid-out')")
    seen = []
    for step in [900] * 12 + [-900] * 12:
        page.evaluate(f"scrollBy(0, {step})")
        page.wait_for_timeout(200)
        marked, right = page.evaluate(MARKED)
        assert marked == right
        seen.append(marked)
    assert len(set(seen)) > 4
    page.close()


def test_behind_a_root_is_no_gap(browser, html):
    page = browser.new_page()
    page.goto(f"{html.as_uri()}/chapters/01_why_position.html")
    page.evaluate("document.documentElement.classList.add('rb-laid-out')")
    gaps = page.locator("math msqrt").evaluate_all(
        """all => all.filter(root => root.nextElementSibling).map(root => {
            const [own, next] = [root.lastElementChild, root.nextElementSibling].map(one => one.getClientRects()[0]);
            return (next.left - own.right) / parseFloat(getComputedStyle(root).fontSize);
        })"""
    )
    assert gaps
    assert min(gaps) < 0.15
    page.close()
