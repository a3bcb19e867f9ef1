"""Tables on a phone: each row is a card there, whose cells say what they are, so that none lies off the screen."""

import html

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

OWN = {"rb-cards", "rb-claims"}  # these have a form of their own


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
                    cell["head"] = text if text.endswith("?") else f"{text}:"


def visit_entry(self: HTML5Translator, node: nodes.entry) -> None:
    """As ever, with its head."""
    HTML5Translator.visit_entry(self, node)
    if "head" in node:
        self.body[-1] = self.body[-1].replace("<td", f'<td data-head="{html.escape(node["head"])}"', 1)


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", name_cells)
    app.add_node(nodes.entry, override=True, html=(visit_entry, HTML5Translator.depart_entry))
