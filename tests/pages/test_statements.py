"""Statements: quotes with a known head, their marks, and links to them."""

import re

import pytest

from _ext import statements
from tests.conftest import HTML
from tests.pages.conftest import Visit

THEOREM = "> **Theorem 1.1 (a name).** *Proved by cells.* It holds."


@pytest.mark.parametrize(("mark", "word"), statements.MARKS.items())
def test_a_mark_becomes_a_badge(mark, word, book):
    made = book(one=f"# One\n\n> **Theorem 1.1 (a name).** *{mark}* It holds, *mostly*.")
    shown, stop = mark[:-1], '<span class="visually-hidden">.</span>'
    assert (
        f'</strong> <span class="rb-mark rb-mark-{word}">{shown}{stop}</span> It holds, <em>mostly</em>.' in made["one"]
    )
    assert made.warnings == ""


@pytest.mark.parametrize("kind", statements.INDEXED)
@pytest.mark.parametrize("rest", ["It holds.", "*Proved.* It holds.", "It holds. *Cited.*", "Cited. It holds.", ""])
def test_a_statement_without_a_mark_is_a_warning(kind, rest, book):
    made = book(one=f"# One\n\n> **{kind} 1.1 (a name).** {rest}")
    assert f"{kind} 1.1 (a name). has no mark" in made.warnings
    assert "*Proved by hand.*, *Proved by hand and by cells.*" in made.warnings


def test_an_exercise_needs_no_mark(book):
    made = book(one="# One\n\n> **Exercise 1.1 (★, 5 minutes).** Why?")
    assert made.warnings == ""
    assert 'class="rb-statement rb-exercise"' in made["one"]


def test_names_of_statements_become_links(book):
    heads = {
        "Theorem 1.1": "*Cited.*",
        "Theorem 1.2 (more)": "*Cited.*",
        "Corollary 1.3": "*Cited.*",
        "Exercise 1.1": "",
    }
    first = "\n\n".join(["# One", *(f"> **{head}.** {mark} By Theorem 1.1." for head, mark in heads.items())])
    second = """# Two

## After Theorem 1.1

See Theorem 1.1, Corollary 1.3, theorem 1.1, Theorem 1, and Exercise 1.1. Theorem 1.1, 9.9 times.

Theorems 1.1 and 1.2, Corollaries 1.3, Theorems 1.1, 1.2, and\n1.1 to 1.2; Theorem\n1.2.

`Theorem 1.1`, $\\text{Theorem 1.1}$, [Theorem 1.1](https://example.org), *Theorem 1.1*.

    Theorem 1.1
"""
    made = book(one=first, two=second)
    assert made.warnings == ""
    assert '<strong class="rb-head">Theorem 1.1.</strong>' in made["one"]
    assert 'By <a class="reference internal" href="#theorem-1-1">Theorem 1.1</a>.' in made["one"]
    links = re.findall(r'<a class="reference internal" href="one.html#([\w-]+)">(.*?)</a>', made["two"])
    assert links == [
        ("theorem-1-1", "Theorem 1.1"), ("corollary-1-3", "Corollary 1.3"), ("exercise-1-1", "Exercise 1.1"),
        ("theorem-1-1", "Theorem 1.1"),
        ("theorem-1-1", "Theorems 1.1"), ("theorem-1-2", "1.2"), ("corollary-1-3", "Corollaries 1.3"),
        ("theorem-1-1", "Theorems 1.1"), ("theorem-1-2", "1.2"), ("theorem-1-1", "1.1"), ("theorem-1-2", "1.2"),
        ("theorem-1-2", "Theorem 1.2"), ("theorem-1-1", "Theorem 1.1"),
    ]  # fmt: skip
    assert "<h2>After Theorem 1.1</h2>" in made["two"]
    assert "</a>, theorem 1.1, Theorem 1, and <a" in made["two"]


def test_a_name_that_is_stated_nowhere_is_a_warning(book):
    made = book(one=f"# One\n\n{THEOREM}\n\nSee Theorem 1.2, Exercise 1.1 and Corollary 1.1.")
    for name in ("Theorem 1.2", "Exercise 1.1", "Corollary 1.1"):
        assert f"{name} is stated nowhere" in made.warnings
    assert "one.md:5" in made.warnings
    assert "See Theorem 1.2, Exercise 1.1 and Corollary 1.1." in made["one"]


def test_marks_can_be_shown_and_must_be_known(book):
    made = book(plain="# Plain\n\n{rb-mark}`Cited.` {rb-sign}`Cited.` {rb-mark}`Sung.`")
    assert '<span class="rb-mark rb-mark-cited">Cited' in made["plain"]
    assert '<span class="rb-mark rb-mark-cited rb-sign"><abbr title="Cited">L</abbr><span>Cited</span>' in made["plain"]
    assert "Sung. is no mark" in made.warnings


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_badges_can_be_read(scheme, browser):
    """Contrast of at least 4.5 (WCAG 2.2, 1.4.3)."""

    def luminance(colour):
        channels = [int(channel) / 255 for channel in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    with Visit(browser, f"{HTML.as_uri()}/chapters/theorems.html", scheme=scheme) as visit:
        for word in statements.MARKS.values():
            style = visit.page.locator(".rb-mark").first.evaluate(
                "(node, word) => [(node.className = `rb-mark rb-mark-${word}`, getComputedStyle(node).color), "
                "getComputedStyle(node).backgroundColor]",
                word,
            )
            dark, light = sorted(map(luminance, style))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (word, style)
