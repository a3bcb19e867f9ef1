"""What reading.js and the style do for who reads: the place after a reload, the contents beside the text, roots."""

import io
from itertools import groupby

import pytest
from PIL import Image

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


@pytest.mark.parametrize("anchor", ["#rope_lib.scaling.longrope_attention_factor", ""])
def test_the_mark_in_the_contents_is_in_sight(anchor, browser, html):
    """Also on arrival by a link, at the end, and on the way back; the page itself stays where the reader has it."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{html.as_uri()}/chapters/reference.html{anchor}")
    page.evaluate("document.documentElement.classList.add('rb-laid-out')")
    marked = page.locator(".page-toc a.active")
    for share in (None, 0.6, 1, 0.3):
        if share:
            page.evaluate(f"scrollTo(0, {share} * document.documentElement.scrollHeight)")
        elif not anchor:
            continue
        before = page.evaluate("scrollY")
        page.wait_for_timeout(400)
        assert page.evaluate("scrollY") == before
        assert marked.count() == 1
        assert marked.evaluate(
            """mark => {
                const [at, of] = [mark, mark.closest('.bd-sidebar-secondary')].map(one => one.getBoundingClientRect());
                return of.top <= at.top && at.bottom <= of.bottom;
            }"""
        )
    page.close()


def test_names_in_the_contents_fit_beside_the_text(browser, html):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{html.as_uri()}/chapters/reference.html")
    names = page.locator(".page-toc code")
    assert names.count() > 40
    assert max(names.evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")) < 1270
    assert names.first.evaluate("one => getComputedStyle(one).borderTopWidth") == "0px"
    page.close()


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
@pytest.mark.parametrize("place", ["07_long_range_decay.html#exercises", "reference.html#rope_lib.frequencies.cos_sin"])
def test_where_a_link_has_led_is_marked_for_two_seconds(place, motion, browser, html):
    page = browser.new_context(reduced_motion=motion).new_page()
    page.goto(f"{html.as_uri()}/chapters/{place}")
    mark = page.locator(":target > h2, dt:target")
    ground = "one => getComputedStyle(one).backgroundColor"
    seen = []
    for time in (1900, 2250, 2600):
        mark.evaluate(f"one => one.getAnimations().forEach(fades => {{ fades.pause(); fades.currentTime = {time} }})")
        seen.append(mark.evaluate(ground))
    first, between, last = seen
    assert last == "rgba(0, 0, 0, 0)" != first
    assert (between == first) is (motion == "reduce")
    page.context.close()


def test_the_bar_of_a_root_does_not_touch_its_digits(browser, html):
    page = browser.new_context(device_scale_factor=4).new_page()
    page.goto(f"{html.as_uri()}/chapters/07_long_range_decay.html")
    page.evaluate("document.documentElement.classList.add('rb-laid-out')")
    root = page.locator("msqrt:has(> mn)").first
    root.scroll_into_view_if_needed()
    box = root.locator("mn").bounding_box()
    clip = {"x": box["x"] + 1, "y": box["y"] - 6, "width": box["width"] - 2, "height": box["height"] + 6}
    picture = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("L")
    rows = [picture.crop((0, y, picture.width, y + 1)).getextrema()[0] < 128 for y in range(picture.height)]
    strokes = [(ink, len(list(run))) for ink, run in groupby(rows)]
    bar = next(i for i, (ink, _) in enumerate(strokes) if ink)
    assert strokes[bar][1] < 12
    assert strokes[bar + 1][1] >= 8, "two pixels of a usual screen"
    page.context.close()


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
