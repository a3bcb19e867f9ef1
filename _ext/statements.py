"""Statements and exercises: quotes that begin with "**Theorem 4.1 (name).**", their marks, and links to them.

What a page states is kept as plain data in its metadata; links are made when all pages are read.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
MARKS = {
    "Proved by hand.": "by-hand",
    "Proved by hand and by cells.": "by-hand-and-cells",
    "Proved by cells.": "by-cells",
    "Measured.": "measured",
    "Cited.": "cited",
}
SIGNS = {"by-hand": "H", "by-hand-and-cells": "H C", "by-cells": "C", "measured": "M", "cited": "L"}
SUMMARIES = {"In this chapter.": "rb-before", "In three sentences.": "rb-three"}
INDEXED = ("Theorem", "Corollary", "Lemma", "Proposition")
ONE = {kind: kind for kind in (*INDEXED, "Exercise")}
MANY = {f"{kind}s": kind for kind in ONE} | {"Corollaries": "Corollary"}
NUMBER = r"\d+\.\d+"
HEAD = re.compile(rf"({'|'.join(ONE)}) ({NUMBER})(?: \((.+?)\))?\.?$")
NAMED = re.compile(
    rf"\b(?:({'|'.join(ONE)})\s{NUMBER}|({'|'.join(MANY)})\s{NUMBER}(?:(?:,|,?\sand|,?\sor|\sto)\s{NUMBER})*)"
)


class Statement(NamedTuple):
    """A theorem or an exercise, as its page states it."""

    kind: str
    number: str
    name: str
    anchor: str


# -- Reading a page ----------------------------------------------------------------------------------------------------


def mark_quotes(app: Sphinx, doctree: nodes.document) -> None:
    """Give quotes with a known head a class, an anchor and a badge; remember what is stated."""
    join_lines(doctree)
    found = []
    for quote in doctree.findall(nodes.block_quote):
        head = next((child for child in quote[0] if child.astext()), None)  # MyST puts an empty text in front
        if not isinstance(head, nodes.strong):
            continue
        if head.astext() in SUMMARIES:
            quote["classes"] += ["rb-summary", SUMMARIES[head.astext()]]
        elif match := HEAD.match(head.astext()):
            kind, number, name = match.groups("")
            anchor = f"{kind.lower()}-{number.replace('.', '-')}"
            quote["ids"].append(anchor)
            quote["classes"] += ["rb-statement", f"rb-{kind.lower()}"]
            head["classes"].append("rb-head")
            if kind in INDEXED:
                mark_behind(head)
            found.append(Statement(kind, number, name, anchor))
    metadata = app.env.metadata[app.env.docname]
    metadata["statements"] = found
    slugs = {
        one.anchor: (0, one.anchor, f"{one.kind} {one.number}") for one in found
    }  # for links page.ipynb#theorem-4-1
    metadata.setdefault("myst_slugs", {}).update(slugs)


def join_lines(doctree: nodes.document) -> None:
    """MyST makes a text of each line of a paragraph; a name may begin in one line and end in the next."""
    for element in list(doctree.findall(nodes.TextElement)):
        runs = groupby(list(element), lambda node: isinstance(node, nodes.Text))
        element[:] = [node for is_text, run in runs for node in ([nodes.Text("".join(run))] if is_text else run)]


def mark_behind(head: nodes.strong) -> None:
    """The emphasized mark behind a head, which becomes a badge; a warning if there is none."""
    behind = head.parent[head.parent.index(head) + 1 :]
    first = next((node for node in behind if node.astext().strip()), nodes.Text(""))
    mark = " ".join(first.astext().split())
    if isinstance(first, nodes.emphasis) and mark in MARKS:
        first.replace_self(badge(mark))
    else:
        expected = ", ".join(f"*{mark}*" for mark in MARKS)
        warn(f"{head.astext()} has no mark. The first words behind the head must be one of {expected}", head)


def badge(mark: str) -> nodes.inline:
    """The words of a mark in a frame. Its full stop is not shown, but read aloud and copied."""
    stop = nodes.inline("", ".", classes=["visually-hidden"])
    return nodes.inline("", mark.removesuffix("."), stop, classes=["rb-mark", f"rb-mark-{MARKS[mark]}"])


def open_texts(node: nodes.Element, *closed: type[nodes.Node]) -> Iterator[nodes.Text]:
    """The texts below a node, but for headings, heads of statements, code, mathematics and other closed kinds."""
    for child in node.children:
        if isinstance(child, nodes.Text):
            yield child
        elif isinstance(child, (nodes.title, nodes.literal, nodes.math, nodes.FixedTextElement, *closed)):
            continue
        elif "rb-head" not in child["classes"]:
            yield from open_texts(child, *closed)


def named_in(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, kind and number of each statement that a text names: "Theorem 4.1", "Exercises 4.1 and 4.3"."""
    for match in NAMED.finditer(text):
        for i, number in enumerate(re.compile(NUMBER).finditer(text, *match.span())):
            start = match.start() if i == 0 else number.start()
            yield start, number.end(), (ONE | MANY)[match[1] or match[2]], number[0]


def warn(message: str, location: nodes.Node | None) -> None:
    """A warning, so that the build of the book fails."""
    logger.warning(message, location=location, type="rope_book", subtype="statements")


# -- Links, when all pages have been read ------------------------------------------------------------------------------


def statements_of(env: BuildEnvironment, page: str) -> list[Statement]:
    """The theorems and exercises of a page."""
    return env.metadata[page].get("statements", [])


def pages_in_order(env: BuildEnvironment) -> list[str]:
    """All pages in the order of reading: the first one, then those of the table of contents."""
    return [env.config.root_doc, *env.toctree_includes.get(env.config.root_doc, [])]


def full_title(env: BuildEnvironment, page: str) -> str:
    """The title as the reader sees it: "4. RoPE from complex numbers"."""
    number = ".".join(map(str, env.titles[page].get("secnumber") or ()))
    return (f"{number}. " if number else "") + env.titles[page].astext()


class LinkStatements(SphinxPostTransform):
    """Where a text says "Theorem 4.1", make a link of it."""

    default_priority = 200  # behind the index of theorems, which quotes statements that name others

    def run(self, **kwargs) -> None:
        pages = self.env.metadata
        places = {(one.kind, one.number): (page, one.anchor) for page in pages for one in statements_of(self.env, page)}
        for text in list(open_texts(self.document, nodes.reference, pending_xref)):
            parts, done = [], 0
            for start, end, kind, number in named_in(text):
                if (kind, number) in places:
                    page, anchor = places[kind, number]
                    uri = self.app.builder.get_relative_uri(self.env.docname, page) + f"#{anchor}"
                    link = nodes.reference("", text[start:end], refuri=uri, internal=True)
                    parts += [nodes.Text(text[done:start]), link]
                    done = end
                else:
                    warn(f"{kind} {number} is stated nowhere. If it is another work's, link to that work", text.parent)
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(text[done:])])


def sign(mark: str) -> nodes.inline:
    """A mark in a narrow column: a letter for each way; on a phone, where each row is a card, its words."""
    words, kind = mark.removesuffix("."), MARKS[mark]
    letters = nodes.abbreviation("", SIGNS[kind], explanation=words)
    return nodes.inline("", "", letters, nodes.inline("", words), classes=["rb-mark", f"rb-mark-{kind}", "rb-sign"])


def mark_role(name, rawtext, text, lineno, inliner, options=None, content=None):
    """{rb-mark}`Proved by cells.`: the badge itself, for a page that explains it; {rb-sign}`Proved by cells.`: C."""
    if text not in MARKS:
        return [], [inliner.reporter.error(f"{text} is no mark", line=lineno)]
    return [badge(text) if name == "rb-mark" else sign(text)], []


def setup(app: Sphinx) -> None:
    app.add_role("rb-mark", mark_role)
    app.add_role("rb-sign", mark_role)
    app.add_post_transform(LinkStatements)
    app.connect("doctree-read", mark_quotes)
