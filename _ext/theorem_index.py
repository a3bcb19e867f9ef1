"""The index of theorems: a table of all statements of the book, filled when all pages have been read."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from statements import INDEXED, Statement, badge, full_title, link, number_of, pages_in_order, statements_of

COLUMNS = {"Number": 17, "Statement": 47, "Mark": 17, "Used in": 19}  # with their widths in percent
INLINE = {  # the pieces of a sentence, as nodes again
    "text": nodes.Text,
    "math": lambda text: nodes.math(text, text),
    "emphasis": lambda text: nodes.emphasis("", text),
    "literal": lambda text: nodes.literal("", text),
}


class theorem_list(nodes.General, nodes.Element):
    """Placeholder for the table."""


class TheoremIndex(SphinxDirective):
    """List the statements of the book, but not the exercises, in the order of its pages."""

    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname]["lists_theorems"] = True
        return [theorem_list()]


def pages_to_fill(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The page of the index, where a statement or its users changed."""
    stated = {page: (data.get("statements"), data.get("names")) for page, data in env.metadata.items()}
    before, env.book_statements = getattr(env, "book_statements", None), stated
    return [page for page in env.metadata if before != stated and env.metadata[page].get("lists_theorems")]


class FillTheoremIndex(SphinxPostTransform):
    """For each statement its number, first sentence and mark, and the other pages that name it."""

    default_priority = 100

    def run(self, **kwargs) -> None:
        for placeholder in list(self.document.findall(theorem_list)):
            rows = []
            for page in pages_in_order(self.env):
                stated = [one for one in statements_of(self.env, page) if one.kind in INDEXED]
                if stated:
                    title = link(self.app, full_title(self.env, page), page)
                    rows += [row([title], morecols=len(COLUMNS) - 1), *(self.row_of(one, page) for one in stated)]
            specs = [nodes.colspec(colwidth=width, stub=name == "Number") for name, width in COLUMNS.items()]
            head = nodes.thead("", row(*([nodes.Text(name)] for name in COLUMNS)))
            group = nodes.tgroup("", *specs, head, nodes.tbody("", *rows), cols=len(COLUMNS))
            placeholder.replace_self(nodes.table("", group, classes=["rb-index", "colwidths-given"]))

    def row_of(self, one: Statement, page: str) -> nodes.row:
        name = [nodes.strong("", f"{one.name[0].upper()}{one.name[1:]}."), nodes.Text(" ")] if one.name else []
        users = [nodes.Text("; ") if semicolon else self.link_to_user(user)
                 for user in pages_in_order(self.env) if user != page
                 and (one.kind, one.number) in self.env.metadata[user].get("names", ())
                 for semicolon in (True, False)]  # fmt: skip
        return row(
            [link(self.app, f"{one.kind} {one.number}", page, one.anchor)],
            [*name, *(INLINE[kind](text) for kind, text in one.sentence)],
            [badge(one.mark)] if one.mark else [],
            users[1:],
        )

    def link_to_user(self, page: str) -> nodes.reference:
        title = full_title(self.env, page)
        return link(self.app, number_of(self.env, page) or title, page, reftitle=title)


def row(*cells: list[nodes.Node], **attributes) -> nodes.row:
    """A row of a table, from the inline content of its cells."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell), **attributes) for cell in cells))


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.add_node(theorem_list)
    app.add_directive("theorem-index", TheoremIndex)
    app.add_post_transform(FillTheoremIndex)
    app.connect("env-get-updated", pages_to_fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
