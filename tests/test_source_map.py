"""Each passage of the five documents has a place in the book, and the page that says where is right."""

import json
import re
import sys
from collections import Counter

import pytest
from conftest import ROOT
from test_extension import Book

sys.path.insert(0, str(ROOT / "_ext"))
import source_map

DOCUMENTS = json.loads((ROOT / source_map.DOCUMENTS).read_text(encoding="utf-8"))
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
        (["A 1", "A 2.1a", "B 1", "A 3"], ["one covers 'A 3', which is no passage in chapters/documents.json"]),
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


@pytest.mark.parametrize("stem", sorted(stem for stem in NOTEBOOKS if stem[0].isdigit() and stem[:2] != "10"))
def test_without_a_chapter_some_passage_has_no_place(stem):
    """Chapter 10 measures what others explain, so that nothing hangs on it alone."""
    others = {other: found for other, found in DECLARED.items() if other != stem}
    assert any(message.startswith("no cell covers") for message in source_map.problems(DOCUMENTS, others))


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
        ("covers", "A 1", 1),
        ("covers", "A 2.1a", 2),
        ("corrects", "B 1", 2),
        ("covers", "B 1", 3),
    ]


def small_book(folder, *cells):
    files = {"chapters/documents.json": SMALL, "one.ipynb": notebook(*cells)}
    pages = {"plain.md": "# Map\n\nText.\n\n```{source-map}\n```\n"}
    return Book(folder / "book", {name: json.dumps(content) for name, content in files.items()} | pages)


def test_the_page_is_made_from_the_declarations(tmp_path):
    made = small_book(
        tmp_path,
        cell("# One", covers=["A 1"]),
        cell("## Wave $x$\n\nText.\n\n## Last", covers=["A 2.1a", "A 1"]),
        cell("Text.", covers=["B 1"], corrects=["A 1"]),
    )
    assert made.warnings == ""
    rows = [re.findall(r"<t[hd].*?</t[hd]>", line) for line in re.findall(r"<tr.*?</tr>", made["plain"])]
    text = [[re.sub(r"<.*?>", "", part).strip() for part in line] for line in rows]
    head = list(source_map.COLUMNS)
    assert text == [
        head,
        ["A 1", "One subject", r"Chapter 1: One · Wave \(x\)", "Last"],
        ["A 2.1a", "Another", r"Chapter 1: Wave \(x\)", ""],
        head,
        ["B 1", "A third", "Chapter 1: Last", ""],
    ]
    assert re.findall(r'href="one.html#([\w-]+)"', made["plain"]) == ["one", "wave-x", "last", "wave-x", "last"]
    assert "<h2>Document A, first" in made["plain"]


def test_a_broken_declaration_is_a_warning_of_the_build(tmp_path):
    made = small_book(tmp_path, cell("# One", covers=["A 1", "C 1"]), cell("Text.", covers=["B 1"]))
    assert sorted(line.partition("WARNING: ")[2] for line in made.warnings.splitlines()) == [
        'source map: no cell covers A 2.1a ("Another")',
        "source map: one covers 'C 1', which is no passage in chapters/documents.json",
    ]


def test_the_built_page_has_a_place_for_each_passage_and_is_not_in_the_sidebar(html):
    page = (html / "chapters" / "source_map.html").read_text(encoding="utf-8")
    rows = [re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL)]
    rows = {
        re.sub(r"<.*?>", "", row[0]).replace("\xa0", " "): row for row in rows if row[0].startswith('<th class="stub"')
    }
    assert list(rows) == list(source_map.passages(DOCUMENTS))
    assert all("href=" in row[2] for row in rows.values())
    for stem, found in DECLARED.items():
        texts = ["".join(one["source"]) for one in NOTEBOOKS[stem]["cells"] if one["cell_type"] == "markdown"]
        titles = re.findall(r"^#+ (.*)", re.sub(r"```.*?```", "", "\n\n".join(texts), flags=re.DOTALL), re.MULTILINE)
        for kind, passage, heading in found:
            place = rows[passage][2 + source_map.KINDS.index(kind)]
            assert f'href="{stem}.html#' in place
            if heading and re.fullmatch(r"[\w ,:?]+", titles[heading]):
                assert titles[heading] in place, (passage, titles[heading])
    for other in ("claims", "04_rope_from_complex_numbers", "source_map"):
        text = (html / "chapters" / f"{other}.html").read_text(encoding="utf-8")
        sidebar = re.search(r'<nav class="bd-links.*?</nav>', text, re.DOTALL)[0]
        assert "claims.html" in sidebar or other == "claims"
        assert "source_map.html" not in sidebar
