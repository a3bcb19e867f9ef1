"""The pieces to play with: complete states, right numbers, one small script, and sliders that work in a browser."""

import html
import json
import math
import re
from itertools import product

import pytest
from browsing import Visit

from figures.__main__ import functions
from figures.interactive import SCRIPT
from figures.layouts import VECTOR
from rope_lib import reference

PIECES = {name: explore() for name, explore in functions("explore_").items()}
pieces = pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)


def numbers(path):
    return [float(number) for number in re.findall(r"-?[\d.]+", path)]


@pieces
def test_every_combination_of_steps_moves_the_same_parts(piece):
    combinations = set(product(*(range(len(steps)) for _, steps, _ in piece.sliders)))
    assert set(piece.states) == combinations
    parts = re.findall(r'data-part="([^"]+)"', piece.svg)
    assert len(parts) == len(set(parts))
    for state in piece.states.values():
        assert set(state) == set(parts)


@pieces
def test_first_state_is_drawn_before_any_script_runs(piece):
    shown = piece._repr_html_()
    svg = shown[shown.index("<svg") : shown.index("</svg>")]
    for part, changes in piece.states[tuple(start for *_, start in piece.sliders)].items():
        element = re.search(rf'<[^>]*data-part="{part}"[^>]*>[^<]*', svg)[0]
        for name, value in changes.items():
            assert (html.escape(str(value)) if name == "text" else f'{name}="{value}"') in element
    assert re.search(r'aria-label="[^"]{40,}"', svg)


@pieces
def test_piece_is_small_and_needs_nothing_from_outside(piece):
    shown = piece._repr_html_()
    assert len(shown) < 70_000
    assert len(SCRIPT) < 2_000
    # Without it the arrow keys leave the slider in JupyterLab.
    assert shown.count('data-lm-suppress-shortcuts="true"') == len(piece.sliders)
    assert not re.search(r"https?://|src=|@import|url\(", shown)
    packed = re.search(r'data-states="([^"]*)"', shown)[1]
    assert len(json.loads(html.unescape(packed))["states"]) == len(piece.states)


def test_names_are_unique():
    assert len({piece.name for piece in PIECES.values()}) == len(PIECES)


def test_shifting_both_keeps_angle_and_score():
    states = PIECES["rotation"].states
    for n, distance in product(range(12), range(7)):
        assert states[n, distance]["score"] == states[0, distance]["score"]
        x, y = (states[n, distance]["query"][name] for name in ("x2", "y2"))
        angle = 0.35 + (n + distance) * math.pi / 9
        assert (x, y) == pytest.approx((150 + 130 * math.cos(angle), 150 - 130 * math.sin(angle)), abs=0.051)


def test_blocks_are_the_plain_loop():
    for (m,), state in PIECES["blocks"].states.items():
        column = reference.rotate([1.0, 0.0, 0.0, 1.0], m, interleaved=True, base=100.0)
        shown = [float(state[part]["text"]) for part in ("r00", "r10", "r23", "r33")]
        assert shown == pytest.approx(column, abs=0.0051)


def test_code_is_the_plain_loop():
    for (m,), state in PIECES["code"].states.items():
        tops = numbers(state["bars"]["d"])[2::3]
        assert tops == pytest.approx([140 - 100 * v for v in reference.sinusoidal_encoding(m, 16)], abs=0.051)


def test_layouts_are_the_plain_loop():
    for (m,), state in PIECES["layouts"].states.items():
        turned = reference.rotate(list(VECTOR), m, interleaved=True, base=100)
        for name, height, vector in (("i", 85, turned), ("h", 225, turned[0::2] + turned[1::2])):
            tops = [state[f"{name}{i}"]["y2"] for i in range(8)]
            assert tops == pytest.approx([height - 50 * value for value in vector], abs=0.051)


def test_decay_is_the_plain_loop():
    state = PIECES["decay"].states[1, 0]  # d = 16, base 100
    first = numbers(state["curve"]["d"])[1]
    share = sum(abs(s) for s in reference.partial_sums(1, 16, 100)) / 8 / 4.5
    assert first == pytest.approx(260 - 240 * share, abs=0.051)
    assert state["start"]["text"] == "B(0) = 4.5"


def test_words_carry_their_bars_without_a_mask_only():
    states = PIECES["order"].states
    for masked in (0, 1):
        seen = {}
        for place in range(6):
            state = states[place, masked]
            for m in range(3):
                tops = tuple(numbers(state[f"bars{m}"]["d"])[2::3])
                seen.setdefault(state[f"word{m}"]["text"], set()).add(tops)
        assert all((len(bars) == 1) is (masked == 0) for bars in seen.values())


@pieces
def test_sliders_work_by_keyboard(piece, browser, tmp_path):
    page = tmp_path / "piece.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><title>piece</title>{piece._repr_html_()}", encoding="utf-8")
    start = [step for *_, step in piece.sliders]
    with Visit(browser, page.as_uri()) as visit:
        for index, (_, steps, _) in enumerate(piece.sliders):
            slider = visit.page.locator("input").nth(index)
            slider.focus()
            forward = start[index] + 1 < len(steps)
            visit.page.keyboard.press("ArrowRight" if forward else "ArrowLeft")
            step = start[index] = start[index] + (1 if forward else -1)
            assert slider.get_attribute("aria-valuetext") == steps[step]
            for part, changes in piece.states[tuple(start)].items():
                node = visit.page.locator(f'[data-part="{part}"]')
                for name, value in changes.items():
                    found = node.text_content() if name == "text" else node.get_attribute(name)
                    assert found == str(value)
        assert visit.complaints == []


def test_words_can_be_dragged(browser, tmp_path):
    page = tmp_path / "piece.html"
    shown = PIECES["order"]._repr_html_()
    page.write_text(f"<!doctype html><meta charset=utf-8><title>piece</title>{shown}", encoding="utf-8")
    with Visit(browser, page.as_uri()) as visit:
        words = visit.page.locator("[data-place]")
        box = words.nth(0).bounding_box()
        visit.page.mouse.move(box["x"] + 5, box["y"] + 5)
        visit.page.mouse.down()
        for place, order in ((1, "love I you"), (2, "love you I"), (0, "I love you")):
            box = words.nth(place).bounding_box()
            visit.page.mouse.move(box["x"] + 5, box["y"] + 5)
            assert " ".join(words.all_text_contents()) == order
            assert visit.page.locator("input").first.get_attribute("aria-valuetext") == order
        visit.page.mouse.up()
        box = words.nth(2).bounding_box()
        visit.page.mouse.move(box["x"] + 5, box["y"] + 5)  # let go: nothing moves any more
        assert " ".join(words.all_text_contents()) == "I love you"
        assert visit.complaints == []
