"""The pieces to play with: complete states, right numbers, one small script, and controls that work in a browser."""

import cmath
import html
import json
import math
import re
from itertools import pairwise, product

import pytest
import torch

from _ext.pieces import without_rest
from figures import hero, interactive
from figures.decay import COLUMNS, LEFT, RADIUS, REACH, WIDE
from figures.files import functions
from figures.interactive import Piece, chain, packed_chain
from figures.layouts import VECTOR
from rope_lib.theory import reference
from tests import oracles
from tests.conftest import ROOT
from tests.pages.conftest import Visit

CAR, RED, SPEED = 1.8 + 0.4j, 1.2 + 0.8j, 10000 ** (-6 / 128)
PIECES = {name: explore() for name, explore in functions("explore_").items()}
PIECES = {name: piece for name, piece in PIECES.items() if isinstance(piece, Piece)}  # not those with their own script
pieces = pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
playing = pytest.mark.parametrize("piece", [piece for piece in PIECES.values() if piece.play is not None], ids=repr)


UNPACKED = {"chain": chain, "bars": interactive.bars}


def numbers(path):
    return [float(number) for number in re.findall(r"-?[\d.]+", path)]


def number(text):
    return float(text.replace("−", "-"))


def variable(style, name):
    return float(re.search(rf"--{name}:(-?[\d.]+)", style)[1])


def start_of(piece):
    return tuple(start for *_, start in piece.sliders)


# -- States ------------------------------------------------------------------------------------------------------------


@pieces
def test_every_combination_of_steps_moves_the_same_parts(piece):
    combinations = set(product(*(range(len(steps)) for _, steps, _ in piece.sliders)))
    assert set(piece.states) == combinations
    parts = re.findall(r'data-part="([^"]+)"', "".join(view.svg for view in piece.views) + piece.said)
    assert len(parts) == len(set(parts))
    names = {part: set(changes) for part, changes in piece.states[start_of(piece)].items()}
    for state in piece.states.values():
        assert {part: set(changes) for part, changes in state.items()} == names
        assert set(state) == set(parts)


@pieces
def test_the_tables_hold_every_state(piece):
    packed = re.search(r"data-states='([^']*)'", piece._repr_html_())[1]
    tables = json.loads(html.unescape(packed))["tables"]
    for key, state in piece.states.items():
        found = {}
        for on, columns, rows in tables:
            place = 0
            for i in on:
                place = place * len(piece.sliders[i][1]) + key[i]
            for (part, name), value in zip(columns, rows[place], strict=True):
                found.setdefault(part, {})[name] = value
        assert found == state


@pieces
def test_first_state_is_drawn_before_any_script_runs(piece):
    shown = piece._repr_html_()
    for part, changes in piece.states[start_of(piece)].items():
        element = re.search(rf'<[^>]*data-part="{part}"[^>]*>[^<]*', shown)[0]
        for name, value in changes.items():
            name, value = ("d", UNPACKED[name](value)) if name in UNPACKED else (name, value)
            assert (html.escape(str(value)) if name == "text" else f'{name}="{value}"') in element
    assert len(re.findall(r' aria-label="[^"]{40,}"', shown)) == len(piece.views)


@pieces
def test_piece_is_small_and_needs_nothing_from_outside(piece):
    shown = piece._repr_html_()
    assert len(shown) < 100_000
    assert len(re.search(r"<script>(.*?)</script>", shown, re.DOTALL)[1]) < 10_000
    assert not re.search(r"https?://|src=|@import|url\(", shown)
    # Without it the arrow keys leave the control in JupyterLab.
    controls = [len(steps) if i in piece.buttons else 1 for i, (_, steps, _) in enumerate(piece.sliders)]
    assert shown.count('data-lm-suppress-shortcuts="true"') == sum(controls)


@pieces
def test_drawings_are_readable_on_a_phone(piece):
    for view in piece.views:
        assert view.size[0] == 320  # 328 pixels on a screen of 360: a text of 13 units has 13 pixels
        assert not re.search(r'font-size="(?!1[1-9])', view.svg)


def test_names_are_unique():
    assert len({piece.name for piece in PIECES.values()}) == len(PIECES)


# -- Numbers -----------------------------------------------------------------------------------------------------------


def test_shifting_both_keeps_angle_and_score():
    states = PIECES["rotation"].states
    for n, distance in product(range(12), range(7)):
        state, first = states[n, distance], states[0, distance]
        for part in ("score", "angle", "degree", "dot", "wedge"):
            assert state[part] == first[part]
        angle = cmath.phase(CAR) - cmath.phase(RED) + distance * SPEED
        score = abs(CAR) * abs(RED) * math.cos(angle)
        assert number(state["score"]["text"]) == pytest.approx(score, abs=0.0051)
        assert number(state["angle"]["text"].removesuffix("°")) == pytest.approx(math.degrees(angle), abs=0.51)
        assert variable(state["dot"]["style"], "y") == pytest.approx(112 - 34 * score, abs=0.051)
        for part, word, place in (("query", CAR, n + distance), ("key", RED, n)):
            turned = -math.degrees(cmath.phase(word) + SPEED * place)
            assert variable(state[part]["style"], "a") == pytest.approx(turned, abs=0.051)
    assert len({state["dot"]["style"] for state in states.values()}) == 7


def test_the_wedge_goes_from_key_to_query():
    for distance in range(7):
        *_, x, y = numbers(PIECES["rotation"].states[0, distance]["wedge"]["d"])
        between = cmath.rect(1, cmath.phase(CAR) - cmath.phase(RED) + distance * SPEED)
        assert complex(x, -y) / abs(complex(x, y)) == pytest.approx(between, abs=0.01)


def test_the_piece_shows_the_score_of_the_first_page():
    assert {PIECES["rotation"].states[n, 2]["score"]["text"] for n in range(12)} == {hero.state(3).score_rotated}


def test_blocks_are_the_plain_loop():
    for (m,), state in PIECES["blocks"].states.items():
        column = reference.rotate([1.0, 0.0, 0.0, 1.0], m, interleaved=True, base=100.0)
        shown = [number(state[part]["text"]) for part in ("r00", "r10", "r23", "r33")]
        assert shown == pytest.approx(column, abs=0.0051)
        for pair in range(2):
            turned = math.degrees(m * reference.inverse_frequency(pair, 4, 100.0))
            assert variable(state[f"hand{pair}"]["style"], "a") == pytest.approx(-turned, abs=0.051)


def bars(state, *names):
    """The heights of bars that two paths hold, one for each sign, by place."""
    found = [numbers(path) for name in names for path in re.findall(r"M[^M]+", state[name]["d"])]
    return [bar[2] for bar in sorted(found) if len(bar) == 3]


def test_code_is_the_plain_loop():
    for (m,), state in PIECES["code"].states.items():
        code = reference.sinusoidal_encoding(m, 16)
        assert bars(state, "above", "below") == pytest.approx([52 - 44 * v for v in code], abs=0.051)
        for pair in range(8):
            up = math.radians(90 + variable(state[f"hand{pair}"]["style"], "a"))  # clockwise from the top
            assert (math.sin(up), math.cos(up)) == pytest.approx(code[2 * pair : 2 * pair + 2], abs=0.001)


def test_layouts_are_the_plain_loop():
    x = list(VECTOR)
    for (m, half), state in PIECES["layouts"].states.items():
        turned = reference.rotate(x, m, interleaved=True, base=100)
        wrong = reference.rotate(x, m, interleaved=False, base=100)
        for name, vector, shown in (("bar", turned, "right"), ("wrong", wrong, "off")):
            tops = [numbers(state[f"{name}{i}"]["d"])[-1] for i in range(8)]
            assert tops == pytest.approx([-44 * value for value in vector], abs=0.051)
            score = sum(a * b for a, b in zip(vector, x, strict=True))
            assert number(state[shown]["text"]) == pytest.approx(score, abs=0.00051)
        places = [i + variable(state[f"entry{i}"]["style"], "x") / 38 for i in range(8)]
        assert places == ([0, 4, 1, 5, 2, 6, 3, 7] if half else list(range(8)))


def test_the_corners_of_the_chain_are_the_partial_sums():
    piece = PIECES["decay"]
    (_, distances, _), (_, dims, _), (_, bases, _) = piece.sliders
    for (k, i, j), state in piece.states.items():
        dim, base = int(dims[i]), float(bases[j].replace(",", ""))
        sums = oracles.partial_sums(float(distances[k].replace(",", "")), dim, base)
        packed, at = state["chain"]["chain"], 0j
        assert len(packed) == dim
        for corner, x, y in zip(sums, packed[::2], packed[1::2], strict=True):
            at += complex(ord(x) - 94, 94 - ord(y)) / 30
            assert abs(at - corner) < 0.024  # half of 1/30 each way
        mean = sum(map(abs, sums)) / len(sums)
        assert number(state["bound"]["text"]) == pytest.approx(mean, abs=0.0051)
        assert state["ring"]["r"] == pytest.approx(240 * mean, abs=0.51)
        share = mean / float(state["start"]["text"])
        assert state["dot"]["cy"] == pytest.approx(324 - 276 * share, abs=0.51)
        zoom = variable(state["zoom"]["style"], "z")
        scale = RADIUS / (dim // 2) * zoom  # the field is 2 * WIDE units wide and 2 * RADIUS high
        assert max(abs(corner.real) for corner in sums) * scale <= WIDE + 1e-6
        assert max(mean, *(abs(corner.imag) for corner in sums)) * scale <= RADIUS + 1e-6


def test_the_chain_is_drawn_as_its_corners():
    turns = [cmath.exp(1j * a) for a in (0.3, 2.0, 4.0)]
    corners = [turns[0], turns[0] + turns[1], sum(turns)]
    drawn = numbers(chain(packed_chain(corners)))
    moves = [complex(*pair) for pair in zip(drawn[::2], drawn[1::2], strict=True)]
    at, found = 0j, []
    for i in range(1, len(moves), 5):
        assert sum(moves[i + 1 : i + 5]) == 0  # the head comes back to the tip
        at += moves[i]
        found.append(at.conjugate() / 240)
    assert found == pytest.approx(corners, abs=0.024)


def test_the_band_holds_the_curve_at_every_whole_distance():
    piece = PIECES["decay"]
    dim, base, start = 16, 100, 4.5
    strokes = numbers(piece.states[0, 1, 0]["curve"]["d"])
    x, y = strokes[:2]
    columns = []
    for dx, dy, height in zip(strokes[2::3], strokes[3::3], strokes[4::3], strict=True):
        x, y = x + dx, y + dy + height
        columns.append((x / 2, (y - height) / 2, y / 2))
    assert len(columns) == COLUMNS
    assert all(b[0] - a[0] == 2 for a, b in pairwise(columns))
    seen = {}
    for distance in [*range(1, 400), *range(5000, 5400), *range(REACH - 400, REACH + 1)]:
        at = min(COLUMNS - 1, int(COLUMNS * math.log10(distance) / math.log10(REACH)))
        share = sum(map(abs, oracles.partial_sums(distance, dim, base))) / 8 / start
        _, top, bottom = columns[at]
        assert top - 0.26 <= 162 - 138 * share <= bottom + 0.26
        seen.setdefault(at, []).append(162 - 138 * share)
    x, top, bottom = columns[-1]  # no wider than the values that it holds
    every = range(math.ceil(REACH ** ((COLUMNS - 1) / COLUMNS)), REACH + 1)
    values = [162 - 138 * sum(map(abs, oracles.partial_sums(d, dim, base))) / 8 / start for d in every]
    assert top >= min(values) - 1
    assert bottom <= max(values) + 1
    assert x == pytest.approx(LEFT + 2 * COLUMNS - 1)


def test_words_carry_their_bars_without_a_mask_only():
    states = PIECES["order"].states
    orders = PIECES["order"].sliders[0][1]
    for kind in range(3):
        for word in range(3):
            same = {states[place, kind][f"bars{word}"]["d"] for place in range(6)}
            assert (len(same) == 1) is (kind == 0)
        changed = [states[place, kind]["changed"]["text"] for place in range(6)]
        assert changed[0] == 0
        assert (max(changed) == 0) is (kind == 0)
    # With one causal layer the last word has the same output in either order of the words before it (Theorem 1.3).
    assert orders[1] == "love I you", "where the piece begins"
    assert states[1, 1]["bars2"] == states[0, 1]["bars2"]
    assert states[1, 2]["bars2"] != states[0, 2]["bars2"]
    for place, order in enumerate(orders):
        for word, text in enumerate(("I", "love", "you")):
            assert variable(states[place, 0][f"word{word}"]["style"], "x") == 107 * order.split().index(text)


def test_relative_methods_have_equal_diagonals_for_equal_words():
    piece = PIECES["family"]
    says = {
        name: [piece.states[i, equal]["verdict"]["text"].startswith("equal") for equal in (0, 1)]
        for i, name in enumerate(piece.sliders[0][1])
    }
    assert not any(similar for similar, _ in says.values())
    assert [name for name, (_, equal) in says.items() if not equal] == ["no position", "TUPE"]
    assert [piece.states[i, 1]["verdict"]["text"].startswith("all equal") for i in range(8)] == [True] + 7 * [False]


def test_linear_counts_what_it_shows():
    for state in PIECES["linear"].states.values():
        for form in ("none", "both", "numerator"):
            drawn = state[f"{form}-down"]["d"].count("M") - (state[f"{form}-down"]["d"] == "M0 0")
            assert drawn == state[f"{form}-negative"]["text"]
        assert state["none-sum"]["text"] == state["both-sum"]["text"] == "1.00"
        assert state["none-negative"]["text"] == 0
    assert any(state["numerator-sum"]["text"] != "1.00" for state in PIECES["linear"].states.values())


def test_the_chosen_distance_wins():
    piece, draw = PIECES["winner"], torch.Generator().manual_seed(0)
    pairs = torch.randn(128, generator=draw, dtype=torch.float64).view(-1, 2).square().sum(-1).tolist()
    for (place,), state in piece.states.items():
        r = int(piece.sliders[0][1][place])
        loop = [
            sum(h * math.cos((d - r) * reference.inverse_frequency(i, 128)) for i, h in enumerate(pairs)) / sum(pairs)
            for d in range(129)
        ]
        assert loop[r] == max(loop) == pytest.approx(1)
        assert float(state["second"]["text"]) == round(sorted(loop)[-2], 2)
        beside = [d for d in (r - 1, r + 1) if 0 <= d <= 128]
        assert max(loop[d] for d in range(129) if d != r) == pytest.approx(min(loop[d] for d in beside))
        assert ("neighbours" in state["next"]["text"]) is (len(beside) == 2)
        drawn = numbers(state["curve"]["d"])
        assert drawn[::2] == [40 + 2 * d for d in range(129)]
        assert drawn[1::2] == pytest.approx([150 - 116 * score for score in loop], abs=0.06)
        assert state["winner"]["cx"] == 40 + 2 * r


def test_a_spiral_is_seen_as_sine_cosine_and_hand():
    """Each point is where a camera sees it that is turned about one axis of the space, then about another."""
    for (look, m), state in PIECES["waves"].states.items():
        above, along = (math.radians(15 * max(0, steps)) for steps in (6 - look, look - 6))

        def camera(place, radius, above=above, along=along):
            turned = complex(11 * (place - 12), -70 * radius * math.sin(place / 2)) * cmath.exp(1j * along)
            raised = complex(70 * radius * math.cos(place / 2), turned.imag) * cmath.exp(1j * above)
            return 160 + turned.real, 96 - raised.real

        spiral = numbers(state["spiral"]["d"])
        expected = [part for place in range(97) for part in camera(place / 4, 1)]
        assert spiral == pytest.approx(expected, abs=0.06)
        assert numbers(state["hand"]["d"]) == pytest.approx([*camera(m, 0), *camera(m, 1)], abs=0.06)
        assert numbers(state["tip"]["d"])[:2] == pytest.approx(camera(m, 1), abs=0.06)
        if look == 12:
            centre, tip = camera(m, 0), camera(m, 1)
            assert centre == pytest.approx((160, 96))
            assert (tip[0] - 160, 96 - tip[1]) == pytest.approx((70 * math.sin(m / 2), 70 * math.cos(m / 2)))
        said = [number(state[name]["text"]) for name in ("sine", "cosine")]
        assert said == pytest.approx([math.sin(m / 2), math.cos(m / 2)], abs=0.005)


def test_equal_steps_and_no_others_give_one_score_for_each_distance():
    """Each dot is the score of the turned words; those of a distance are level just if the steps are equal."""
    for (_, evenness), state in PIECES["steps"].states.items():
        angles = [-math.radians(variable(state[f"hand{m}"]["style"], "a")) for m in range(7)]
        assert (angles[0], angles[6]) == pytest.approx((0, 6 * SPEED), abs=0.001)
        for apart, name, says in ((1, "one", "near"), (2, "two", "far")):
            heights = []
            for m in range(apart, 7):
                turned = CAR * cmath.exp(1j * angles[m]) * (RED * cmath.exp(1j * angles[m - apart])).conjugate()
                style = state[f"{name}{m}"]["style"]
                heights.append(variable(style, "y"))
                place = variable(style, "x"), heights[-1]
                assert place == pytest.approx((44 + 42 * m, 108 - 32 * turned.real), abs=0.3)
            level = max(heights) - min(heights) < 0.2
            assert level is (evenness == 8) is ("every place" in state[says]["text"])


def test_an_added_code_becomes_a_turn_and_its_scores_level():
    """The tips lie on a circle that moves to 0; there they are the turned word, and each distance has one score."""
    for (step,), state in PIECES["morph"].states.items():
        share, tips = step / 8, {}
        for word in (CAR, RED):
            added = [word + cmath.exp(1j * SPEED * m) for m in range(10)]
            tips[word] = [a + share * (word * cmath.exp(1j * SPEED * m) - a) for m, a in enumerate(added)]
        centre, circle = 34 * (CAR - share * CAR), {name: float(value) for name, value in state["circle"].items()}
        assert complex(circle["cx"], -circle["cy"]) == pytest.approx(centre, abs=0.1)
        for m, tip in enumerate(tips[CAR]):
            at = complex(variable(state[f"tip{m}"]["style"], "x"), -variable(state[f"tip{m}"]["style"], "y"))
            assert at == pytest.approx(34 * tip, abs=0.1)
            assert abs(at - centre) == pytest.approx(circle["r"], abs=0.2)
        for apart, name, says in ((1, "one", "near"), (2, "two", "far")):
            scores = [(tips[CAR][m] * tips[RED][m - apart].conjugate()).real for m in range(apart, 10)]
            drawn = [variable(state[f"{name}{m}"]["style"], "y") for m in range(apart, 10)]
            assert drawn == pytest.approx([170 - 21 * score for score in scores], abs=0.1)
            assert (max(scores) - min(scores) < 1e-9) is (step == 8) is ("every place" in state[says]["text"])


def test_hands_come_where_a_method_takes_them():
    """Each arc ends at the angle of its pair, or is whole; what was never met is red."""
    piece = PIECES["hands"]
    for (i, j), state in piece.states.items():
        method, factor = piece.sliders[0][1][i], (1, 2, 4, 8)[j]
        speeds = {
            "as trained": lambda k, s: reference.inverse_frequency(k, 32),
            "linear": lambda k, s: reference.inverse_frequency(k, 32) / s,
            "NTK-aware": lambda k, s: reference.inverse_frequency(k, 32) * s ** (-2 * k / 30),
            "by parts": lambda k, s: reference.ntk_by_parts_frequency(k, 32, s, 128, 32.0, 1.0),
        }
        if method not in speeds:
            continue
        unseen = 0
        for pair in (0, 3, 6, 9):
            met, now = 128 * reference.inverse_frequency(pair, 32), factor * 128 * speeds[method](pair, factor)
            beyond = met < 2 * math.pi and now > met * (1 + 1e-9)
            unseen += beyond
            assert float(state[f"turns{pair}"]["text"].split()[0]) == pytest.approx(now / (2 * math.pi), rel=0.05)
            assert (state[f"unmet{pair}"]["d"] != "M0 0") is beyond
            end = min(now, 2 * math.pi if beyond else 1.98 * math.pi)
            *_, x, y = numbers(state[f"{'unmet' if beyond else 'read'}{pair}"]["d"])
            assert (x, y) == pytest.approx((23 * math.cos(end), -23 * math.sin(end)), abs=0.06)
        assert state["unseen"]["text"] == unseen


def test_the_map_shows_what_was_stored_of_each_head():
    piece, runs = PIECES["heads"], json.loads((ROOT / "lab" / "published_models" / "smollm2.json").read_text())["runs"]
    layers = {run["settings"]["layer"]: run for run in runs if run["settings"]["experiment"] == "each head"}
    assert [len(steps) for _, steps, _ in piece.sliders] == [len(layers), 9, 5]

    def heights(packed):
        return [ord(one) - 94 for one in packed]

    for (layer, head, colour), state in piece.states.items():
        found = layers[layer]
        first, back = found["first"][head], found["back"][head]
        shown = [
            back[1],
            first,
            sum(back[7:]),
            found["text"]["all pairs"][head] / 0.1,
            found["copy"]["all pairs"][head],
        ]
        opacity = float(state[f"c{layer}-{head}"]["fill-opacity"])
        assert opacity == pytest.approx(min(max(shown[colour], 0), 1), abs=0.0051)
        if colour == 0:
            shares = [min(32, 32 * share / 0.4) for share in found["energy"][head]]
            assert heights(state["pairs"]["bars"]) == pytest.approx(shares, abs=0.51)
            assert heights(state["looks"]["bars"]) == pytest.approx([32 * share for share in (first, *back)], abs=0.51)
            for part, price in (("text", found["text"]["all pairs"]), ("copy", found["copy"]["all pairs"]),
                                ("fast", found["copy"]["pairs 0 to 7"])):  # fmt: skip
                assert number(state[part]["text"]) == pytest.approx(price[head], abs=0.0051)
            at = max(range(11), key=(first, *back).__getitem__)
            where = ["first", "itself", "before", "2 or 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63", "64 to 127"]
            assert [*where, "128 to 255", "256 and more"][at] in state["most"]["text"]
            assert (state["mark"]["x"], state["mark"]["y"]) == (10 + 10 * layer, 24 + 11 * head)


# -- In a browser ------------------------------------------------------------------------------------------------------


def page_of(piece, tmp_path):
    page = tmp_path / "piece.html"
    head = '<!doctype html><meta charset=utf-8><meta name=viewport content="width=device-width"><title>piece</title>'
    page.write_text(f"{head}<body style='margin:16px'>{piece._repr_html_()}", encoding="utf-8")
    return page.as_uri()


def assert_shows(page, piece, key):
    for part, changes in piece.states[tuple(key)].items():
        node = page.locator(f'[data-part="{part}"]')
        for name, value in changes.items():
            name, value = ("d", UNPACKED[name](value)) if name in UNPACKED else (name, value)
            assert (node.text_content() if name == "text" else node.get_attribute(name)) == str(value)


@pieces
def test_controls_work_by_keyboard(piece, browser, tmp_path):
    now = list(start_of(piece))
    with Visit(browser, page_of(piece, tmp_path)) as visit:
        assert_shows(visit.page, piece, now)
        for index, (name, steps, _) in enumerate(piece.sliders):
            if index in piece.buttons:
                group = visit.page.get_by_role("group", name=name)
                group.get_by_role("radio", checked=True).focus()
            else:
                slider = visit.page.get_by_role("slider", name=name)
                slider.focus()
            forward = now[index] + 1 < len(steps)
            visit.page.keyboard.press("ArrowRight" if forward else "ArrowLeft")
            now[index] += 1 if forward else -1
            if index not in piece.buttons:
                assert slider.get_attribute("aria-valuetext") == steps[now[index]]
            assert_shows(visit.page, piece, now)
        assert visit.complaints == []


@pieces
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_it_reads_on_a_phone(piece, scheme, browser, tmp_path):
    with Visit(browser, page_of(piece, tmp_path), width=360, scheme=scheme) as visit:
        visit.page.set_viewport_size({"width": 360, "height": 740})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
        for node in visit.page.locator("input, button").all():
            box = node.bounding_box()
            assert not node.is_visible() or (box["height"] >= 24 and box["width"] >= 24)
        for node in visit.page.locator("svg text, svg tspan").all():
            box = node.bounding_box()
            if box and node.text_content():
                assert 0 <= box["x"] <= 360 - box["width"], node.text_content()
        sizes = visit.page.locator("svg text").evaluate_all(
            "all => all.map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)"
        )
        assert all(abs(size) >= 11 for size in sizes if abs(size) > 1)  # a text turned upright has a = 0
        ends = [visit.page.locator(part).last.bounding_box() for part in (".rp-views", ".rp-controls")]
        assert ends[1]["y"] + ends[1]["height"] - ends[0]["y"] <= 684  # what a screen of 740 has below the bar


@pieces
def test_it_is_whole_without_a_script(piece, browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(without_rest(piece._repr_html_()))  # as a page of the book has it
    assert page.locator("svg").count() == len(piece.views)
    assert page.locator(".rp-said").is_visible()
    assert not page.locator("button").is_visible()
    for part, changes in piece.states[start_of(piece)].items():
        if "text" in changes:
            assert page.locator(f'[data-part="{part}"]').text_content() == str(changes["text"])
    context.close()


@pieces
def test_in_a_notebook_a_sentence_stands_for_it_until_its_cell_is_run(piece, browser):
    """Stored without its script, which a notebook that is not trusted would not run either."""
    page = browser.new_page()
    page.set_content(re.sub(r"<script>.*?</script>", "", piece._repr_html_(), flags=re.DOTALL))
    words = " ".join(["Run this cell, and its piece can be played with.", *(view.alt for view in piece.views)])
    assert page.locator("body").inner_text().strip() == words
    page.set_content(piece._repr_html_())
    assert page.locator(".rp-rest").count() == 0
    assert page.locator(".rp-said").is_visible()
    page.close()


@playing
def test_play_pause_and_end(piece, browser, tmp_path):
    with Visit(browser, page_of(piece, tmp_path)) as visit:
        moving = visit.page.locator("input[type=range], fieldset").nth(piece.play)
        button, said, heard = (visit.page.locator(part) for part in ("button", ".rp-said", "[aria-live]"))
        visit.page.wait_for_timeout(piece.pace + 100)
        assert moving.input_value() == str(start_of(piece)[piece.play])  # no motion of its own
        button.click()
        assert button.text_content() == "Pause"
        visit.page.wait_for_function("[...document.querySelectorAll('input')].some(x => x.value !== x.defaultValue)")
        assert heard.text_content() == ""
        moving.focus()
        visit.page.keyboard.press("End")  # the reader takes over
        assert (button.text_content(), heard.text_content()) == ("Play", said.text_content())
        button.click()  # at the end it begins anew
        assert moving.input_value() == "0"
        assert visit.complaints == []


def test_no_motion_for_who_wants_none(browser, tmp_path):
    for motion in ("reduce", "no-preference"):
        page = browser.new_context(reduced_motion=motion).new_page()
        page.goto(page_of(PIECES["rotation"], tmp_path))
        arrow = page.locator(".rp-turn").first
        seconds = arrow.evaluate("node => parseFloat(getComputedStyle(node).transitionDuration)")
        assert (seconds > 0) is (motion == "no-preference")


def test_the_drawn_arrows_keep_their_angle(browser, tmp_path):
    page = browser.new_context(reduced_motion="reduce").new_page()
    page.goto(page_of(PIECES["rotation"], tmp_path))
    apart = []
    for key in ("Home", "ArrowRight", "End"):
        page.get_by_role("slider", name="shift").focus()
        page.keyboard.press(key)
        k, query = page.locator('[data-part="query"] .rp-turn, [data-part="key"] .rp-turn').evaluate_all(
            "all => all.map(one => { const m = one.getScreenCTM(); return Math.atan2(-m.b, m.a); })"
        )
        apart.append((query - k) % (2 * math.pi))
    assert apart == pytest.approx([cmath.phase(CAR) - cmath.phase(RED) + 2 * SPEED] * 3, abs=0.01)


def test_a_click_on_the_map_chooses_the_head(browser, tmp_path):
    with Visit(browser, page_of(PIECES["heads"], tmp_path)) as visit:
        visit.page.locator('[data-set="3,7"]').click()
        assert visit.page.locator('[data-part="layer"]').text_content() == "3"
        assert visit.page.locator('[data-part="head"]').text_content() == "7"
        assert [one.input_value() for one in visit.page.locator("input[type=range]").all()] == ["3", "7"]
        assert visit.complaints == []


def test_words_can_be_dragged(browser, tmp_path):
    with Visit(browser, page_of(PIECES["order"], tmp_path)) as visit:
        box = visit.page.locator("svg").bounding_box()

        def over(place):
            visit.page.mouse.move(box["x"] + (place + 0.5) / 3 * box["width"], box["y"] + 25)

        slider = visit.page.locator("input").first
        over(0)
        visit.page.mouse.down()
        for place, order in ((1, "I love you"), (2, "I you love"), (0, "love I you")):
            over(place)
            assert slider.get_attribute("aria-valuetext") == order
            assert visit.page.locator('[data-part="order"]').text_content() == order
        visit.page.mouse.up()
        over(2)  # let go: nothing moves any more
        assert slider.get_attribute("aria-valuetext") == "love I you"
        assert visit.complaints == []
