"""The source map: the passages of the five documents, and the places of the book that cover and correct each of them.

chapters/documents.json lists the passages. A cell of a notebook says in its metadata which of them its section covers,
{"covers": ["A 3.2a", "E 2.1c"]}; a cell of the page of claims says what it corrects, with "corrects". The section is
that of the cell's first heading or, in a cell without one, of the last heading before it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from statements import link, number_of, pages_in_order, pieces
from theorem_index import INLINE

logger = logging.getLogger(__name__)
DOCUMENTS = Path("chapters") / "documents.json"
PAGE = "chapters/source_map.md"  # not in the table of contents, and so not in the sidebar
KINDS = ("covers", "corrects")
COLUMNS = {"No.": 11, "Subject": 29, "In the book": 38, "Corrected in the claims": 22}  # with widths in percent
HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


# -- What is declared --------------------------------------------------------------------------------------------------


def headings_in(cell: dict) -> int:
    """How many headings a cell has."""
    is_text = cell["cell_type"] == "markdown"
    return len(HEADING.findall(FENCED.sub("", "".join(cell["source"])))) if is_text else 0


def declared(notebook: dict) -> list[tuple[str, str, int]]:
    """What the cells declare: the kind, the passage, and the number of the heading it belongs to, from 0."""
    found, before = [], 0
    for cell in notebook["cells"]:
        here = headings_in(cell)
        heading = before if here else max(before - 1, 0)
        found += [(kind, passage, heading) for kind in KINDS for passage in cell["metadata"].get(kind, ())]
        before += here
    return found


def passages(documents: dict) -> dict[str, str]:
    """The subject of each passage, by its name: "A 3.2a"."""
    return {f"{name} {number}": subject for name, document in documents.items()
            for number, subject in document["sections"].items()}  # fmt: skip


def problems(documents: dict, declarations: dict[str, list[tuple[str, str, int]]]) -> Iterator[str]:
    """What is wrong: passages that are declared and not listed, and listed ones that nobody covers."""
    known = passages(documents)
    for page, found in declarations.items():
        for kind, passage, _ in found:
            if passage not in known:
                yield f"{page} {kind} {passage!r}, which is no passage in {DOCUMENTS.as_posix()}"
    covered = {passage for found in declarations.values() for kind, passage, _ in found if kind == "covers"}
    for passage, subject in known.items():
        if passage not in covered:
            yield f'no cell covers {passage} ("{subject}")'


# -- The page ----------------------------------------------------------------------------------------------------------


class passage_list(nodes.General, nodes.Element):
    """Placeholder for the table of one document."""


class SourceMap(SphinxDirective):
    """A section for each document, with the table of its passages."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        documents = documents_of(self.env)
        return [
            nodes.section(
                "", nodes.title("", f"Document {name}, {document['name']}"), passage_list(document=name),
                ids=[f"document-{name.lower()}"], names=[f"document {name.lower()}"],
            ) for name, document in documents.items()
        ]  # fmt: skip


class FillSourceMap(SphinxPostTransform):
    """For each passage its number, its subject, and links to what covers and corrects it."""

    default_priority = 100

    def run(self, **kwargs) -> None:
        placeholders = list(self.document.findall(passage_list))
        documents, places = (documents_of(self.env), self.places()) if placeholders else ({}, {})
        for placeholder in placeholders:
            name = placeholder["document"]
            rows = [
                row(
                    f"{name}\N{NO-BREAK SPACE}{number}",
                    subject,
                    *(places.get((kind, f"{name} {number}"), {}) for kind in KINDS),
                )
                for number, subject in documents[name]["sections"].items()
            ]
            specs = [nodes.colspec(colwidth=width, stub=title == "No.") for title, width in COLUMNS.items()]
            head = nodes.thead("", row(*COLUMNS))
            group = nodes.tgroup("", *specs, head, nodes.tbody("", *rows), cols=len(COLUMNS))
            placeholder.replace_self(nodes.table("", group, classes=["rb-index", "colwidths-given"]))
            self.env.get_domain("math").data["has_equations"][self.env.docname] = True  # titles may have some

    def places(self) -> dict[tuple[str, str], dict[str, list[nodes.reference]]]:
        """By kind and passage, for each page its links, in the order of the book."""
        found = {}
        declarations = declarations_of(self.env)
        for page in (page for page in pages_in_order(self.env) if page in declarations):
            number, title = number_of(self.env, page), self.env.titles[page].astext()
            where = {"covers": f"Chapter {number}: " if number else f"{title}: ", "corrects": ""}
            for kind, passage, heading in dict.fromkeys(declarations[page]):
                pages = found.setdefault((kind, passage), {})
                pages.setdefault(where[kind] if heading or number else "", []).append(self.link_to(page, heading))
        return found

    def link_to(self, page: str, heading: int) -> nodes.reference:
        """A link to a section, with its title."""
        anchor, title = self.env.metadata[page]["headings"][heading]
        reference = link(self.app, "", page, anchor)
        reference += [INLINE[kind](text) for kind, text in title]
        return reference


def row(*cells: str | dict[str, list[nodes.reference]]) -> nodes.row:
    """A row of a table; in a cell with links each page has a line, "Chapter 4: The wish · Four tools"."""
    entries = []
    for cell in cells:
        lines = cell.items() if isinstance(cell, dict) else [(cell, [])]
        entries.append(nodes.entry())
        for where, links in lines:
            dotted = [node for one in links for node in (nodes.Text(" · "), one)][1:]
            entries[-1] += nodes.paragraph("", "", nodes.Text(where), *dotted)
    return nodes.row("", *entries)


# -- Reading and checking ----------------------------------------------------------------------------------------------


def documents_of(env: BuildEnvironment) -> dict:
    """The documents and their passages; none in a book that has no list of them."""
    path = Path(env.srcdir) / DOCUMENTS
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def declarations_of(env: BuildEnvironment) -> dict[str, list[tuple[str, str, int]]]:
    """What each notebook of the book declares."""
    paths = {page: Path(env.doc2path(page)) for page in sorted(env.found_docs)}
    return {page: declared(json.loads(path.read_text(encoding="utf-8")))
            for page, path in paths.items() if path.suffix == ".ipynb"}  # fmt: skip


def remember_headings(app: Sphinx, doctree: nodes.document) -> None:
    """Anchor and title of each section of a page, in their order."""
    app.env.metadata[app.env.docname]["headings"] = [
        (section["ids"][0], list(pieces(section.next_node(nodes.title)))) for section in doctree.findall(nodes.section)
    ]


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each problem, so that the build of the book fails."""
    for problem in problems(documents_of(env), declarations_of(env)):
        logger.warning(f"source map: {problem}", type="rope_book", subtype="source_map")


def build_the_page(app: Sphinx, config: Config) -> None:
    """Take the page from the list of files that are not built because the table of contents lacks them."""
    config.exclude_patterns = [pattern for pattern in config.exclude_patterns if pattern != PAGE]


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.add_node(passage_list)
    app.add_directive("source-map", SourceMap)
    app.add_post_transform(FillSourceMap)
    app.connect("config-inited", build_the_page, priority=990)  # after the table of contents has been read
    app.connect("doctree-read", remember_headings)
    app.connect("env-check-consistency", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
