"""Tables on a phone: each row is a card there, whose cells say what they are, so that none lies off the screen."""

import html
import re
from itertools import cycle

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

OWN = {"rb-cards", "rb-claims"}  # these have a form of their own
ON_A_PHONE = 44  # characters of a row, with two between columns


def name_cells(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Each cell of a table of three columns and more is told the head of its column, unless heads are formulas."""
    for table in doctree.findall(nodes.table):
        up = table.parent
        while up and not OWN & set(up.get("classes", [])):
            up = up.parent
        heads = [
            list(row.findall(nodes.entry)) for head in table.findall(nodes.thead) for row in head.findall(nodes.row)
        ]
        if up or len(heads) != 1 or len(heads[0]) < 3 or any(next(head.findall(nodes.math), None) for head in heads[0]):
            continue
        for row in next(table.findall(nodes.tbody)).findall(nodes.row):
            for head, cell in zip(heads[0], row.findall(nodes.entry), strict=False):
                if text := head.astext() if cell.astext() else "":
                    cell["head"] = named(text)
    for raw in doctree.findall(nodes.raw):
        if '<table class="dataframe"' in raw.astext():
            raw[:] = [nodes.Text(with_heads(raw.astext()))]


def named(head: str) -> str:
    """A head before what it says of one row."""
    return head if head.endswith("?") else f"{head}:"


def with_heads(table: str) -> str:
    """The same of a table that a cell computes, if it has words and is wider than a phone; numbers stay in columns."""
    heads, *rows = (texts_of(row) for row in table.split("<tr>")[1:])
    widest = [max(map(len, column)) for column in zip(heads, *rows, strict=False)]
    has_words = any(re.search(r"[a-z]{3}", cell) for row in rows for cell in row[1:])
    if len(heads) < 3 or not has_words or sum(widest) + 2 * len(heads) <= ON_A_PHONE:
        return table
    told = cycle(html.escape(named(head)) for head in heads[1:])

    def begin(cell: re.Match) -> str:
        head = next(told)
        return cell[0] if cell[2] else f'<td data-head="{head}"{cell[1]}>'

    return re.sub("<td([^>]*)>(</td>)?", begin, table)


def texts_of(row: str) -> list[str]:
    """The texts of the cells of a row."""
    return [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]


def visit_entry(self: HTML5Translator, node: nodes.entry) -> None:
    """As ever, with its head."""
    HTML5Translator.visit_entry(self, node)
    if "head" in node:
        self.body[-1] = self.body[-1].replace("<td", f'<td data-head="{html.escape(node["head"])}"', 1)


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", name_cells)
    app.add_node(nodes.entry, override=True, html=(visit_entry, HTML5Translator.depart_entry))
