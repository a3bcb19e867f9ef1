"""The source map, for authors: for each passage of the five documents the places that cover and correct it.

tools/documents.json lists the passages. A cell of a notebook says in its metadata which of them its section covers,
{"covers": ["A 3.2a", "E 2.1c"]}; a cell of the page of claims says what it corrects, with "corrects". The section is
that of the cell's first heading or, in a cell without one, of the last heading before it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

CHAPTERS = Path(__file__).parent.parent / "chapters"
PAGE, DOCUMENTS = (Path(__file__).with_name(name) for name in ("source_map.md", "documents.json"))
KINDS = ("covers", "corrects")
HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
HEAD = "| No. | Subject | In the book | Corrected |\n|---|---|---|---|\n"
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def passages(documents: dict) -> dict[str, str]:
    """The subject of each passage, by its name: "A 3.2a"."""
    return {f"{name} {number}": subject for name, document in documents.items()
            for number, subject in document["sections"].items()}  # fmt: skip


def declared(notebook: dict) -> list[tuple[str, str, str]]:
    """What the cells declare: the kind, the passage, and the heading that it belongs to."""
    found, heading = [], ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
        headings = HEADING.findall(FENCED.sub("", source))
        where = headings[0] if headings else heading
        found += [(kind, passage, where) for kind in KINDS for passage in cell["metadata"].get(kind, ())]
        heading = headings[-1] if headings else heading
    return found


def problems(documents: dict, declarations: dict[str, list[tuple[str, str, str]]]) -> Iterator[str]:
    """What is wrong: passages that are declared and not listed, and listed ones that nobody covers."""
    known = passages(documents)
    for page, found in declarations.items():
        for kind, passage, _ in found:
            if passage not in known:
                yield f"{page} {kind} {passage!r}, which is no passage in tools/documents.json"
    covered = {passage for found in declarations.values() for kind, passage, _ in found if kind == "covers"}
    for passage, subject in known.items():
        if passage not in covered:
            yield f'no cell covers {passage} ("{subject}")'


def link(page: str, heading: str) -> str:
    """A link to a section, with its title."""
    anchor = re.sub(r"[^\w\- ]", "", re.sub(r"\$.*?\$", "", heading).strip().lower()).replace(" ", "-")
    in_a_table = re.sub(r"\$.*?\$", lambda math: re.sub(r"\|(.*?)\|", r"\\lvert \1\\rvert", math[0]), heading)
    return f"[{in_a_table}](../chapters/{page}.ipynb#{anchor})"


def name(page: str) -> str:
    """What a reader calls a page."""
    return (
        f"Chapter {int(page[:2])}" if page[0].isdigit() else page.replace("_", " ").capitalize().replace("Rope", "RoPE")
    )


def tables(documents: dict, declarations: dict[str, list[tuple[str, str, str]]]) -> str:
    """A section for each document, with the table of its passages."""
    places = {}
    for page, found in sorted(declarations.items(), key=lambda one: (not one[0][0].isdigit(), one[0])):
        for kind, passage, heading in dict.fromkeys(found):
            places.setdefault((kind, passage), {}).setdefault(page, []).append(link(page, heading))
    text = ""
    for letter, document in documents.items():
        text += f"\n## Document {letter}, {document['name']}\n\n{HEAD}"
        for number, subject in document["sections"].items():
            found = [places.get((kind, f"{letter} {number}"), {}) for kind in KINDS]
            cells = ("; ".join(f"{name(page)}: {' · '.join(links)}" for page, links in one.items()) for one in found)
            text += f"| {letter}\N{NO-BREAK SPACE}{number} | {subject} | {' | '.join(cells)} |\n"
    return text


def page() -> str:
    """The whole page: its own words, and behind them the tables."""
    documents = json.loads(DOCUMENTS.read_text(encoding="utf-8"))
    paths = sorted(CHAPTERS.glob("*.ipynb"))
    declarations = {path.stem: declared(json.loads(path.read_text(encoding="utf-8"))) for path in paths}
    if wrong := list(problems(documents, declarations)):
        raise ValueError("; ".join(wrong))
    words = PAGE.read_text(encoding="utf-8").partition("\n## ")[0].rstrip("\n")
    return f"{words}\n{tables(documents, declarations)}"
