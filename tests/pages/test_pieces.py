"""The first page: its piece has the library's numbers and works; its cards and claims say what the chapters say."""

import html as entities
import json
import math
import re
from itertools import product

import nbformat
import pytest

from figures import hero, thumbnails
from figures.files import OUT, first_page, functions
from rope_lib.theory import reference
from tests.conftest import HTML, ROOT, luminance
from tests.pages.conftest import Visit

INDEX = (ROOT / "chapters" / "index.md").read_text(encoding="utf-8")
STATES = [hero.state(n) for n in range(hero.IN_FRONT + 1)]
places = pytest.mark.parametrize(
    ("in_front", "distance"), [(n, d) for n in range(hero.IN_FRONT + 1) for d in range(1, hero.APART + 1)]
)
FIRST = f"{HTML.as_uri()}/chapters/index.html"
themes = pytest.mark.parametrize("scheme", ["light", "dark"])


# -- Numbers -----------------------------------------------------------------------------------------------------------


def pair(vector):
    """A vector of a head, zero but for the pair that is drawn."""
    whole = [0.0] * hero.HEAD_DIM
    whole[2 * hero.PAIR : 2 * hero.PAIR + 2] = vector
    return whole


def by_loop(word, place, method):
    """The two numbers that are drawn, from the definitions as plain loops."""
    drawn = slice(2 * hero.PAIR, 2 * hero.PAIR + 2)
    if method == "added":
        code = reference.sinusoidal_encoding(place, hero.HEAD_DIM)[drawn]
        return [x + c for x, c in zip(word, code, strict=True)]
    return reference.rotate(pair(word), place, interleaved=True)[drawn]


@places
def test_scores_are_those_of_the_plain_loops(in_front, distance):
    state = hero.state(in_front, distance)
    for method, shown in (("added", state.score_added), ("rotated", state.score_rotated)):
        q = by_loop(hero.CAR, in_front + distance, method)
        k = by_loop(hero.RED, in_front, method)
        assert float(shown.replace("−", "-")) == pytest.approx(q[0] * k[0] + q[1] * k[1], abs=0.0051)
        assert shown in state.said


def test_the_rotation_is_flat_and_the_added_code_is_not():
    assert len({state.score_rotated for state in STATES}) == 1
    added = [float(state.score_added) for state in STATES]
    assert max(added) - min(added) > 3
    heights = [state.variables["h"] for state in STATES]
    assert len(set(heights)) == len(heights)


def vector_of(angle, length):
    """The arrow that CSS draws, in units and upwards."""
    a = math.radians(float(angle.removesuffix("deg")))
    return [length / hero.UNIT * math.cos(a), -length / hero.UNIT * math.sin(a)]


def test_further_apart_is_another_score():
    assert len({hero.state(n, d).score_rotated for n in (0, 5) for d in range(1, hero.APART + 1)}) == hero.APART


@places
def test_arrows_are_those_of_the_plain_loops(in_front, distance):
    at = hero.state(in_front, distance).variables
    assert (at["n"], at["d"]) == (in_front, distance)
    for name, word, place in (("q", hero.CAR, in_front + distance), ("k", hero.RED, in_front)):
        assert vector_of(at[f"{name}a"], at[f"{name}l"]) == pytest.approx(by_loop(word, place, "added"), abs=0.003)
    turn = -math.radians(float(at["t"].removesuffix("deg")))
    x, y = by_loop(hero.RED, 0, "rotated")
    turned = [x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)]
    assert turned == pytest.approx(by_loop(hero.RED, in_front, "rotated"), abs=0.001)
    code = math.radians(90 - float(at["c"].removesuffix("deg")))
    assert [math.cos(code), math.sin(code)] == pytest.approx(by_loop((0, 0), in_front, "added"), abs=0.001)


def test_the_text_under_the_picture_has_its_numbers():
    [text] = re.findall(r"<summary>What is in the picture</summary>\n\n(.*)", INDEX)
    turn = math.degrees(10_000 ** (-2 * hero.PAIR / hero.HEAD_DIM))
    for number in (f"car = {hero.CAR}", f"red = {hero.RED}", f"pair {hero.PAIR} ", f"{hero.HEAD_DIM} dimensions"):
        assert number in text
    assert f"turns by {turn:.1f}° per word" in text
    assert f"n = m − {hero.DISTANCE}" in text


def test_stored_files_are_up_to_date():
    stored = {path.name: path.read_bytes() for path in (OUT / "first").iterdir()}
    drawn = first_page()
    assert set(stored) == set(drawn)
    for name, content in drawn.items():
        assert content == stored[name], f"{name} is stale: run `make figures`"


def test_nothing_comes_from_outside():
    piece = hero.piece()
    assert "<script" not in piece  # which comes with the page
    assert len(piece) < 26_000
    assert not re.search(r"https?://|src=|@import|url\(", piece)


# -- The page in a browser ---------------------------------------------------------------------------------------------


def still(browser, **settings):
    """A page of a reader who wants no motion."""
    context = browser.new_context(reduced_motion="reduce", **settings)
    page = context.new_page()
    page.goto(FIRST)
    return page


def shown(page):
    """The state of the piece on a page."""
    place = int(page.locator("#piece-hero input").first.input_value())
    state = STATES[place]
    assert page.locator('#piece-hero [data-part="added"]').text_content() == state.score_added
    assert page.locator('#piece-hero [data-part="rotated"]').text_content() == state.score_rotated
    assert page.locator("#piece-hero .rh-said").text_content() == state.said
    return place


def test_keyboard_moves_the_words(browser, html):
    page = still(browser)
    slider = page.get_by_role("slider", name="words in front")
    slider.focus()
    assert shown(page) == hero.START
    for key, place in (
        ("ArrowRight", hero.START + 1),
        ("Home", 0),
        ("End", hero.IN_FRONT),
        ("ArrowLeft", hero.IN_FRONT - 1),
    ):
        page.keyboard.press(key)
        assert shown(page) == place
        word = page.locator(".rh-key").bounding_box()
        slot = page.locator(".rh-places span").nth(place).bounding_box()
        assert word["x"] == pytest.approx(slot["x"], abs=1)
    live = page.locator("#piece-hero [aria-live=polite]")
    assert live.text_content() == STATES[place].said
    assert live.locator("xpath=ancestor::*[@role='img']").count() == 0


def test_the_drawn_arrows_of_the_rotation_keep_their_angle(browser, html):
    page = still(browser)
    seen = []
    for place in (0, 3, 8):
        page.locator("#piece-hero input").first.evaluate(
            f"node => {{node.value = {place}; node.dispatchEvent(new Event('input'))}}"
        )
        heads = page.locator(".rh-turn .rh-head").evaluate_all(
            "all => all.map(one => { const m = one.getScreenCTM(); return [m.e, m.f]; })"
        )
        seen.append((math.dist(*heads), tuple(heads[0])))
    assert [round(distance) for distance, _ in seen] == [round(seen[0][0])] * 3
    assert len({head for _, head in seen}) == 3


def test_play_pause_and_end(browser, html):
    page = still(browser)
    button = page.get_by_role("button", name="Play")
    page.wait_for_timeout(1200)
    assert shown(page) == hero.START  # no motion of its own for who wants none
    button.click()
    page.get_by_role("button", name="Pause").wait_for()
    page.wait_for_function(f"document.querySelector('#piece-hero input').value == {hero.START + 1}")
    assert page.locator("#piece-hero [aria-live]").text_content() == ""
    page.get_by_role("button", name="Pause").click()
    stopped = shown(page)
    assert page.locator("#piece-hero [aria-live]").text_content() == STATES[stopped].said
    page.wait_for_timeout(1200)
    assert shown(page) == stopped
    button.click()
    page.wait_for_function(f"document.querySelector('#piece-hero input').value == {hero.IN_FRONT}", timeout=15_000)
    button.wait_for()
    button.click()  # at the end it begins anew
    assert shown(page) == 0


def test_it_plays_once_by_itself_and_the_reader_can_take_over(browser, html):
    with Visit(browser, FIRST) as visit:
        slider = visit.page.locator("#piece-hero input").first
        visit.page.wait_for_function(f"document.querySelector('#piece-hero input').value > {hero.START}")
        slider.focus()
        visit.page.keyboard.press("Home")
        visit.page.wait_for_timeout(1200)
        assert shown(visit.page) == 0
        assert visit.complaints == []


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_motion_is_as_the_reader_wants_it(motion, browser, html):
    page = browser.new_context(reduced_motion=motion).new_page()
    page.goto(FIRST)
    seconds = page.locator(".rh-turn").evaluate("node => parseFloat(getComputedStyle(node).transitionDuration)")
    assert (seconds > 0) is (motion == "no-preference")


def test_it_can_be_read_without_a_script(browser, html):
    page = still(browser, java_script_enabled=False)
    assert page.get_by_text(STATES[hero.START].said).is_visible()
    assert page.locator("#piece-hero svg").count() == 4
    assert not page.get_by_role("button", name="Play").is_visible()
    assert page.locator(".rb-cards .rb-thumbnail").first.is_visible()


@pytest.mark.parametrize("width", [320, 360, 640, 768, 1280])
def test_nothing_is_wider_than_the_screen(width, browser, html):
    page = still(browser, viewport={"width": width, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.locator(
        "article :is(.rope-hero, .rb-cards tr, .rb-doors li, .rb-counts li, .rb-formula) *"
    ).evaluate_all(
        f"""all => all.filter(one => !one.closest('.rh-text, svg, .visually-hidden') && one.getClientRects().length &&
            one.getBoundingClientRect().right > {width} + 0.5).map(one => one.outerHTML.slice(0, 80))"""
    )
    assert cut == []


def test_both_panels_are_on_the_first_screen(browser, html):
    for width, height in ((1280, 800), (360, 740)):
        page = still(browser, viewport={"width": width, "height": height})
        box = page.locator(".rh-views").nth(1).bounding_box()
        assert box["y"] + box["height"] <= height


def test_targets_are_large_enough(browser, html):
    page = still(browser, viewport={"width": 360, "height": 740})
    for node in page.locator("#piece-hero :is(button, input), .rb-doors a").all():
        box = node.bounding_box()
        assert min(box["width"], box["height"]) >= 24


@themes
def test_colours_can_be_read(scheme, browser, html):
    """4.5:1 against what is behind, for every coloured text of the first page."""
    page = still(browser, color_scheme=scheme)
    found = page.locator(
        ".rb-q, .rb-k, .rb-s, .rb-no, .rb-half, .rb-yes, .rh-score b, .rh-key, .rh-query, .rh-controls button, "
        ".rb-counts strong, .rh-word, .rb-doors a, .rb-picture, .rb-picture summary"
    ).evaluate_all(
        """all => all.map(node => {
            const layers = [];
            for (let up = node; up; up = up.parentElement) layers.push(getComputedStyle(up).backgroundColor);
            const style = getComputedStyle(node);
            const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
            for (const layer of layers.reverse()) { canvas.fillStyle = layer; canvas.fillRect(0, 0, 1, 1); }
            const behind = [...canvas.getImageData(0, 0, 1, 1).data];
            canvas.fillStyle = node.ownerSVGElement ? style.fill : style.color;
            canvas.fillRect(0, 0, 1, 1);
            return [node.outerHTML.slice(0, 60), behind, [...canvas.getImageData(0, 0, 1, 1).data]];
        })"""
    )
    assert len(found) > 25
    for what, behind, ink in found:
        light, dark = sorted((luminance(behind), luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (what, behind, ink)


# -- Pieces alone ------------------------------------------------------------------------------------------------------


def test_each_piece_is_served_alone(browser, html):
    built = {path.stem: path for path in (html / "pieces").glob("*.html")}
    linked = set()
    for page in (html / "chapters").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        here = set(re.findall(r'id="piece-([\w-]+)"', text))
        assert here == set(re.findall(r'href="\.\./pieces/([\w-]+)\.html"', text)), page.name
        linked |= here
    assert set(built) == linked
    assert "hero" in built
    for name, path in built.items():
        with Visit(browser, path.as_uri()) as visit:
            values = "[...document.querySelectorAll('input')].map(x => x.type === 'radio' ? x.checked : x.value).join()"
            first, here = visit.page.evaluate(values), visit.page.locator("input:focus")
            at_end = here.get_attribute("max") == here.input_value()
            visit.page.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
            assert visit.page.evaluate(values) != first, name
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1280, name
            is_drawn = visit.page.locator("svg").count() > 0  # else it is a text, which one scrolls
            assert visit.page.locator("svg, .rp-views").first.bounding_box()["height"] > (200 if is_drawn else 80), name
            assert all(url.startswith(("file:", "data:")) for url in visit.requests), name
            assert visit.complaints == []
            visit.page.set_viewport_size({"width": 740, "height": 360})  # a phone on its side
            assert visit.page.evaluate("document.documentElement.scrollHeight") <= 360 or not is_drawn, name
            sizes = visit.page.locator("svg text").evaluate_all(
                "all => all.filter(one => one.textContent.trim()).map(one => "
                "parseFloat(getComputedStyle(one).fontSize) * Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b))"
            )
            assert min(sizes, default=16) >= 10, name


@pytest.mark.parametrize(
    ("page", "name"), [("index", "hero"), ("07_long_range_decay", "decay"), ("10_does_it_work", "needles")]
)
def test_a_piece_goes_on_in_full_screen_where_it_was(page, name, browser, html):
    values = "[...document.querySelectorAll('.rope-piece input')].map(one => [one.value, one.checked]).join()"
    with Visit(browser, f"{HTML.as_uri()}/chapters/{page}.html") as visit:
        piece, now = visit.page.locator(f"#piece-{name}"), f"({values.replace('.rope-piece', f'#piece-{name}')})"
        before = visit.page.evaluate(now)
        for fieldset in piece.locator("fieldset").all():
            fieldset.evaluate("one => one.querySelector('details')?.setAttribute('open', '')")
            fieldset.locator("label").last.click()
        for slider in piece.locator("input[type=range]").all():
            slider.press("Home")
            slider.press("ArrowRight")
        here, said = visit.page.evaluate(now), piece.locator(".rp-said, .rh-said").first.inner_text()
        assert here != before
        visit.page.locator(f"a[href*='/{name}.html']").click()
        visit.page.wait_for_url("**/pieces/**")
        assert visit.page.evaluate(now) == here
        assert piece.locator(".rp-said, .rh-said").first.inner_text() == said
        assert visit.complaints == []


# -- What the page says ------------------------------------------------------------------------------------------------


def test_each_chapter_has_a_card_with_a_sentence_that_leads_there():
    rows = re.findall(
        r"^\| \[(\d+) [^]]*\]\((\S+)\) \| (?:!\[\]\((\S+)\))? \| (.*?) \| \d+ min \| \d+ s \|$", INDEX, re.MULTILINE
    )
    chapters = sorted(path.name for path in (ROOT / "chapters").glob("[0-9]*.ipynb"))
    assert [name for _, name, *_ in rows] == chapters
    for number, name, picture, sentence in rows:
        assert not picture or (ROOT / "chapters" / picture).resolve() == OUT / "first" / f"{int(number):02}.svg"
        assert f"]({name}#" in sentence or re.search(rf"Theorems? {number}\.\d", sentence), sentence
    assert set(thumbnails.THUMBNAILS) == {int(number) for number, _, picture, _ in rows if picture}


def test_six_claims_have_the_verdicts_of_their_page():
    notebook = nbformat.read(ROOT / "chapters" / "claims.ipynb", as_version=4)
    page = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    verdicts = dict(re.findall(r'^## ("[^\n]*)\n.*?\*\*Verdict: ([^\n]*?)\*\*', page, re.MULTILINE | re.DOTALL))
    rows = re.findall(r'^\| \[("[^]]*")\]\(claims\.ipynb#\S+\) \| (.*) \|$', INDEX, re.MULTILINE)
    assert len(rows) == 6
    for claim, verdict in rows:
        plain = re.sub(r"<.*?>", "", verdict)
        assert plain.casefold().startswith(verdicts[claim].casefold()), claim


def test_the_formula_is_text(html):
    page = (html / "chapters" / "index.html").read_text(encoding="utf-8")
    [formula] = re.findall(r'<p class="rb-formula">(.*?)</p>', page, flags=re.DOTALL)
    plain = re.sub(r"\s|<small>.*", "", entities.unescape(re.sub(r"</?(?!small)\w.*?>", "", formula)))
    assert plain == "⟨Rmq,Rnk⟩=qTRn−mk"


def test_states_travel_with_the_piece():
    packed = re.search(r'data-states="([^"]*)"', hero.piece())[1]
    data = json.loads(entities.unescape(packed))
    in_front, apart = ([int(step) for step in steps] for steps in data["steps"])
    assert in_front == [*range(hero.IN_FRONT + 1)]
    for (i, n), (j, distance) in product(enumerate(in_front), enumerate(apart)):
        found = {}
        for on, columns, rows in data["tables"]:
            row = rows[{(0,): i, (1,): j, (0, 1): i * len(apart) + j}[tuple(on)]]
            for (part, name), value in zip(columns, row, strict=True):
                found.setdefault(part, {})[name] = value
        assert found == hero.state(n, distance).parts


# -- Dragged -----------------------------------------------------------------------------------------------------------

PLACE = """grip => {
    const {left, top, width, height} = grip.getBoundingClientRect();
    return [left + width / 2, top + height / 2];
}"""


GRIPS = {"waves": 1, "rotation": 3, "blocks": 2, "decay": 1, "winner": 1, "linear": 3, "longer": 1, "gap": 1, "hero": 6}


def phone(browser, html, name):
    """A piece on a phone, and a finger, which moves along a list of places."""
    page_name = "chapters/index.html" if name == "hero" else f"pieces/{name}.html"
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, reduced_motion="reduce", has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(f"{html.as_uri()}/{page_name}")
    finger = context.new_cdp_session(page)

    def drag(here, there):
        for step in range(10):
            x, y = (a + (b - a) * step / 8 for a, b in zip(here, there, strict=True))
            kind = "touchStart" if step == 0 else "touchMove" if step < 9 else "touchEnd"
            points = [{"x": x, "y": y}] if step < 9 else []
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    return page, drag


@pytest.mark.parametrize("name", GRIPS)
def test_a_finger_drags_it_and_does_not_scroll_the_page(name, browser, html):
    page, drag = phone(browser, html, name)
    for grip in page.locator(f"#piece-{name} [data-grip]").all():
        grip.evaluate("grip => grip.scrollIntoView({block: 'center'})")
        sliders = page.locator(f"#piece-{name} input[type=range], #piece-{name} fieldset")
        slider = sliders.nth(int(grip.get_attribute("data-grip")))
        start, last = int(slider.input_value()), int(slider.get_attribute("max"))
        goal = start + 1 if start < last else start - 1
        here = grip.evaluate(PLACE)
        slider.fill(str(goal))
        there = grip.evaluate(PLACE)
        slider.fill(str(start))
        before = page.evaluate("scrollY")
        drag(here, there)
        assert page.evaluate("scrollY") == before
        assert page.locator(".rp-held").count() == 0
        if there != here:
            assert slider.input_value() == str(goal)
        slider.fill(str(start))
    page.context.close()


@pytest.mark.parametrize("word", ["I", "love", "you"])
def test_a_finger_drags_a_word(word, browser, html):
    page, drag = phone(browser, html, "order")
    held, other = (page.locator(f'[data-word="{one}"] rect') for one in (word, "love" if word == "you" else "you"))
    drag(held.evaluate(PLACE), other.evaluate(PLACE))
    order = page.locator("#piece-order input[type=range]").get_attribute("aria-valuetext").split()
    assert order.index(word) == (0 if word == "you" else 2)
    page.context.close()


@pytest.mark.parametrize("name", ["hero", *(name.removeprefix("explore_") for name in functions("explore_"))])
@themes
def test_its_controls_can_be_read_in_forced_colours(name, scheme, browser, html):
    """Windows calls this high contrast. What is chosen has another ground than what is not."""
    page = browser.new_context(forced_colors="active", color_scheme=scheme).new_page()
    page.goto(f"{html.as_uri()}/pieces/{name}.html")
    shown = page.locator(":is(.rp-controls, .rh-controls) > button:visible, fieldset label").evaluate_all(
        "all => all.map(one => [one.textContent, getComputedStyle(one).color, getComputedStyle(one).backgroundColor])"
    )
    choices = page.locator(".rp-controls fieldset").count()
    assert shown or page.locator("input[type=range]").count()
    grounds = set()
    for text, *colours in shown:
        ink, ground = ([float(part) for part in re.findall(r"[\d.]+", colour)] for colour in colours)
        grounds.add(tuple(ground))
        if ground[3:] != [0]:  # else that of the page
            light, dark = sorted((luminance(ink[:3]), luminance(ground[:3])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, colours)
    assert len(grounds) > (1 if choices else 0) or not shown
    page.context.close()


@pytest.mark.parametrize("name", GRIPS)
def test_what_is_shown_can_be_dragged(name, browser, html):
    """Dragged to where it stands at another step of its slider, it brings the slider there, and says so once."""
    page_name = "chapters/index.html" if name == "hero" else f"pieces/{name}.html"
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{html.as_uri()}/{page_name}")
    grips = page.locator(f"#piece-{name} [data-grip]")
    sliders = page.locator(f"#piece-{name} input[type=range], #piece-{name} fieldset")
    assert grips.count() == GRIPS[name]
    for grip in grips.all():
        slider = sliders.nth(int(grip.get_attribute("data-grip")))
        start, steps = int(slider.input_value()), int(slider.get_attribute("max"))
        for goal in (start + 1, start - 1):
            if not 0 <= goal <= steps:
                continue
            here = grip.evaluate(PLACE)
            slider.fill(str(goal))
            there = grip.evaluate(PLACE)
            slider.fill(str(start))
            page.mouse.move(*here)
            page.mouse.down()
            page.mouse.move(*there, steps=4)
            page.mouse.up()
            assert grip.evaluate(PLACE) == pytest.approx(there, abs=1)
            if there != here:
                assert slider.input_value() == str(goal)
            heard = page.locator(f"#piece-{name} [aria-live]")
            assert heard.text_content() == heard.evaluate("node => node.previousElementSibling.textContent")
            slider.fill(str(start))
    context.close()
