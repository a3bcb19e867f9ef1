"""What is listed and counted from the chapters is up to date, and right."""

import json
import re
from collections import Counter

import pytest

from _ext.statements import MARKS, SIGNS
from tests.conftest import ROOT
from tools import lists, source_map

DOCUMENTS = json.loads(source_map.DOCUMENTS.read_text(encoding="utf-8"))
NOTEBOOKS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "chapters").glob("*.ipynb")}
DECLARED = {stem: source_map.declared(notebook) for stem, notebook in NOTEBOOKS.items()}
SMALL = {
    "A": {"name": "first", "sections": {"1": "One subject", "2.1a": "Another"}},
    "B": {"name": "second", "sections": {"1": "A third"}},
}


def cell(source, kind="markdown", **metadata):
    """A cell as a notebook has it."""
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"c{abs(hash(source))}", "metadata": metadata, "source": source} | code


def notebook(*cells):
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": list(cells), "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def test_each_passage_has_a_place_and_each_declaration_names_a_passage():
    assert list(source_map.problems(DOCUMENTS, DECLARED)) == []


def test_the_passages_are_numbered_in_order():
    assert list(DOCUMENTS) == ["A", "B", "C", "D", "E"]
    for document in DOCUMENTS.values():
        numbers = list(document["sections"])
        parts = [re.fullmatch(r"(\d+)(?:\.(\d+))?([a-z]?)", number).groups("") for number in numbers]
        assert parts == sorted(parts, key=lambda part: (int(part[0]), int(part[1] or 0), part[2]))
        for (*section, letter), before in zip(parts[1:], parts, strict=False):
            assert letter in ("", "a") or [*section, chr(ord(letter) - 1)] == list(before)
        assert all(document["sections"].values())


def test_nothing_is_declared_twice_in_a_section_and_only_claims_correct():
    for stem, found in DECLARED.items():
        assert [one for one, times in Counter(found).items() if times > 1] == [], stem
        assert stem == "claims" or not [one for one in found if one[0] == "corrects"], stem
    assert sum(kind == "corrects" for kind, *_ in DECLARED["claims"]) >= 40


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["A 1", "A 2.1a", "B 1"], []),
        (["A 1", "A 2.1a"], ['no cell covers B 1 ("A third")']),
        (["A 1", "A 2.1a", "B 1", "A 3"], ["one covers 'A 3', which is no passage in tools/documents.json"]),
        ("B 1", ["one covers 'B', which", "one covers ' ', which", "one covers '1', which",
                 "no cell covers A 1 ", "no cell covers A 2.1a ", "no cell covers B 1 "]),
    ],
    ids=["right", "no place", "no passage", "no list"],
)  # fmt: skip
def test_a_broken_declaration_is_found(lines, expected):
    declared = {"one": source_map.declared(notebook(cell("# One", covers=lines)))}
    found = list(source_map.problems(SMALL, declared))
    assert len(found) == len(expected)
    assert all(message.startswith(start) for message, start in zip(found, expected, strict=True))


@pytest.mark.parametrize("number", ["01", "02", "03", "04", "05", "06", "07", "08", "09", "11"])
def test_without_a_chapter_some_passage_has_no_place(number):
    """Those that follow the documents. (Chapter 10 measures what others explain.)"""
    others = {other: found for other, found in DECLARED.items() if not other.startswith(number)}
    missing = [message for message in source_map.problems(DOCUMENTS, others) if message.startswith("no cell covers")]
    assert missing, f"chapter {number} is the only place of no passage: does `covers` in its cells say what it covers?"


def test_a_correction_is_no_cover():
    declared = {"one": source_map.declared(notebook(cell("# One", corrects=["A 1"], covers=["A 2.1a", "B 1"])))}
    assert list(source_map.problems(SMALL, declared)) == ['no cell covers A 1 ("One subject")']


def test_a_cell_belongs_to_its_first_heading_or_to_the_last_one_before():
    cells = [
        cell("# Title\n\nText."),
        cell("Text.\n\n## Two\n\n```\n# no heading\n```\n\n### Three", covers=["A 1"]),
        cell("# a comment\nx = 1", "code", covers=["A 2.1a"]),
        cell("Text.", corrects=["B 1"]),
        cell("> # Quoted\n\n## Four", covers=["B 1"]),
    ]
    assert source_map.declared(notebook(*cells)) == [
        ("covers", "A 1", "Two"),
        ("covers", "A 2.1a", "Three"),
        ("corrects", "B 1", "Three"),
        ("covers", "B 1", "Four"),
    ]


def test_the_source_map_has_a_row_for_each_passage_and_links_to_each_place():
    declared = {
        "01_one": [("covers", "A 1", "Wave $x$"), ("corrects", "A 1", "Last")],
        "claims": [("covers", "A 1", "So?")],
    }
    assert source_map.tables({"A": SMALL["A"]}, declared).splitlines()[-2:] == [
        "| A\N{NO-BREAK SPACE}1 | One subject | Chapter 1: [Wave $x$](../chapters/01_one.ipynb#wave); "
        "Claims: [So?](../chapters/claims.ipynb#so) | Chapter 1: [Last](../chapters/01_one.ipynb#last) |",
        "| A\N{NO-BREAK SPACE}2.1a | Another |  |  |",
    ]


@pytest.fixture(scope="module")
def pages():
    """As `make lists` would write them; some seconds, for the table of agreement."""
    return lists.files()


@pytest.mark.parametrize("path", sorted(lists.CHAPTERS.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_lists_and_counts_what_there_is(path, pages):
    assert path.read_text(encoding="utf-8") == pages[path], f"{path.name} is stale: run `make lists`"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (" For all $x$, e.g. $x = 1.5$, it holds. More.", "For all $x$, e.g. $x = 1.5$, it holds."),
        (" First\n> line. Second.", "First line."),
        (" It is\n>\n> $$a |b| = c. \\tag{4.1}$$\n>\n> More.", r"It is  $a \vert b\vert  = c$."),
        (" No full stop", "No full stop"),
        (" Is it? Yes.", "Is it?"),
    ],
)
def test_the_first_sentence_of_a_statement_is_a_cell_of_a_table(statement, expected):
    assert lists.sentence(statement) == expected


def page(text, cells=(), number="1"):
    return lists.Page("one.ipynb", "One", number, text, list(cells), text.count("```{figure}"))


def test_numbers_are_counted():
    text = """
<details><summary>Before you start: 25 minutes to read, 10 seconds to run</summary>

> **Theorem 1.1.** *Proved by hand.* A.

> **Corollary 1.2 (name).** *Proved by cells.* A.

> **Exercise 1.1 (★, 5 minutes).** Why?

> **Exercise 1.2 (★★, 1500 minutes).** Why?
"""
    shown = {"outputs": [{"data": {"text/html": '<div class="rope-piece">'}}]}
    timed, drawn = {"tags": ["nbval-ignore-output"]}, {"mystnb": {"figure": {"name": "fig"}}}
    cells = [cell("1", "code") | shown, cell("2", "code", **timed) | shown, cell("3", "code", **drawn), cell("text")]
    numbers = lists.counts([page(text, cells), page("> **Theorem 2.1.** *Cited.* By Theorem 1.1.", number="")])
    assert numbers | {"attacks-tried": 0, "attacks-refused": 0} == {
        "chapters": 1, "figures": 1, "pieces": 2, "outputs": 1, "reading-minutes": 25, "exercises": 2,
        "exercise-minutes": 1505, "theorems": 3, "by-hand": 1, "by-cells": 1, "by-hand-and-cells": 0, "measured": 0,
        "cited": 1, "attacks-tried": 0, "attacks-refused": 0,
    }  # fmt: skip
    assert numbers["attacks-tried"] > numbers["attacks-refused"] > 1000


def test_the_index_says_who_uses_a_statement():
    one = page("> **Theorem 1.1 (a name).** *Proved by hand.* It holds.\n\n> **Exercise 1.1 (★, 5 minutes).** Why?")
    two = page("By Theorems 1.1 and 1.2.", number="2")._replace(file="two.md")
    assert lists.theorems([one, two]).splitlines()[2:] == [
        "| [Theorem 1.1](one.ipynb#theorem-1-1) | **A name.** It holds. | {rb-sign}`Proved by hand.` | [2](two.md) |"
    ]


def test_the_index_explains_the_marks_that_the_book_has():
    rows = lists.legend(dict.fromkeys(MARKS.values(), 0) | {"by-hand": 8, "cited": 1}).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == ["Proved by hand.", "Cited."]
    assert lists.MEANINGS.keys() == MARKS.keys() == {mark for mark in MARKS if SIGNS[MARKS[mark]]}
    assert len(set(SIGNS.values())) == len(SIGNS)
