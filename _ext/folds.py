"""Folds: what a chapter hides until one asks for it, and what each fold says that it hides."""

import ast
import re

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput, visit_HideCellInput
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from _ext import in_page
from _ext.statements import HEAD

BEFORE = "<summary>Before you start"  # the fold at the head of a chapter
CHECK = re.compile(r"\bassert|\b(proved|refuted)\(")
CODE, CHECKED = "Show the code", "Checked by a cell"  # the second shows nothing: it would have stopped the notebook


def fold_together(app: Sphinx, doctree: nodes.document) -> None:
    """A hidden cell right behind a fold in Markdown goes to its end, and needs no fold of its own.

    That is so for the check of a solution, and for the set-up behind what stands before a chapter.
    """
    for cell in list(doctree.findall(nodes.container)):
        summary = {"all": "<summary>Solution", "input": BEFORE}.get(cell.get("hide_mode"))
        end = cell.previous_sibling() if summary else None
        if isinstance(end, nodes.raw) and end.astext().strip() == "</details>":
            before = cell.parent[: cell.parent.index(end)]
            folds = [raw.astext() for raw in before if isinstance(raw, nodes.raw) and "<details" in raw.astext()]
            if folds and summary in folds[-1]:
                del cell["hide_mode"]
                cell.parent.remove(cell)
                end.parent.insert(end.parent.index(end), cell)


def name_solutions(app: Sphinx, doctree: nodes.document) -> None:
    """A page has several folds "Solution"; read aloud, each says whose it is."""
    exercise = ""
    for node in doctree.findall(lambda node: isinstance(node, nodes.block_quote | nodes.raw)):
        if isinstance(node, nodes.block_quote) and "rb-exercise" in node["classes"]:
            exercise = HEAD.match(next(node.findall(nodes.strong)).astext())[2]
        elif isinstance(node, nodes.raw) and exercise:
            text = re.sub(
                r"<summary>(Solution|Hint)</summary>",
                rf'<summary aria-label="\1 of exercise {exercise}">\1</summary>',
                node.astext(),
            )
            node.rawsource, node[:] = text, [nodes.Text(text)]


def name_cells(app: Sphinx, doctree: nodes.document) -> None:
    """A hidden cell says what it is; the call that draws a figure goes below the figure, into a fold of its own."""
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") != "cell_code" or not cell.children:
            continue
        code = cell[0]
        source = next((block.astext() for block in code.findall(nodes.literal_block)), "")
        if cell.get("hide_mode") == "input" and cell["prompt_show"] == "Show code cell {type}":
            lines = source.strip().splitlines()
            size = f"({len(lines)} lines)" if len(lines) > 1 else "(1 line)"
            if is_setup(source):
                cell["prompt_show"], cell["prompt_hide"] = f"Setup {size}", "Hide the setup"
                cell["classes"] += [] if len(cell) > 1 else ["rb-setup"]
            elif len(cell) == 1 and CHECK.search(source):
                cell["prompt_show"], cell["prompt_hide"] = f"{CHECKED} {size}", "Hide the check"
                cell["classes"].append("rb-checked")
            else:
                cell["prompt_show"], cell["prompt_hide"] = f"{CODE} {size}", "Hide the code"
        elif len(cell) > 1 and only_draws(source):
            cell.remove(code)
            begin = '<details class="rb-source"><summary>Code of this figure</summary>'
            cell += [nodes.raw("", begin, format="html"), code, nodes.raw("", "</details>", format="html")]


class JoinRuns(SphinxPostTransform):
    """Folds of code with nothing between them become one, that of the last, which alone may show something."""

    default_priority = 200  # when hidden cells have their folds
    formats = ("html",)

    def run(self, **kwargs) -> None:
        runs = []
        for cell in list(self.document.findall(is_folded)):
            if runs and runs[-1][-1] is cell.previous_sibling() and len(runs[-1][-1]) == 1:
                runs[-1].append(cell)
            else:
                runs.append([cell])
        for *above, last in (run for run in runs if len(run) > 1):
            fold = last[0]
            for cell in above:
                cell.parent.remove(cell)
                cell[:] = cell[0][:]
            fold[:0] = above
            if not all("rb-checked" in cell["classes"] for cell in (*above, last)):
                last["classes"] = [name for name in last["classes"] if name != "rb-checked"]
            sources = [block.astext().strip() for block in fold.findall(nodes.literal_block)]
            size = f"({sum(len(source.splitlines()) for source in sources)} lines)"
            if "rb-checked" in last["classes"]:
                fold["prompt_show"], fold["prompt_hide"] = f"Checked by {len(sources)} cells {size}", "Hide the checks"
            else:
                fold["prompt_show"], fold["prompt_hide"] = f"{CODE} of {len(sources)} cells {size}", "Hide the code"


def is_folded(node: nodes.Node) -> bool:
    """Whether it is a cell whose code, which is no setup, stands in a fold of its own."""
    fold = node[0] if isinstance(node, nodes.container) and node.children else None
    return isinstance(fold, HideCodeCellNode) and fold["prompt_show"].startswith((CODE, CHECKED))


def is_setup(source: str) -> bool:
    """Whether a cell prepares the notebook: most of its statements, or its first lines, are for that."""
    kinds = [isinstance(statement, ast.Import | ast.ImportFrom) for statement in in_page.statements(source)]
    return source.startswith("%matplotlib") or 2 * sum(kinds) > len(kinds)


def only_draws(source: str) -> bool:
    """Whether a cell only asks for a figure or a piece: figures.rotation.draw_aliases(). It may import what it asks."""
    match in_page.statements(source):
        case [*before, ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="figures")))))]:
            return all(isinstance(statement, ast.Import) for statement in before)
    return False


def visit_fold(writer: HTML5Translator, node: HideCodeCellNode) -> None:
    """Without the label "Toggle hidden content", which is read in the place of the words that one sees."""
    begin = len(writer.body)
    visit_HideCellInput(writer, node)
    writer.body[begin:] = [part.replace(' aria-label="Toggle hidden content"', "") for part in writer.body[begin:]]


def setup(app: Sphinx) -> None:
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_HideCellInput))
    app.connect("doctree-read", fold_together)
    app.connect("doctree-read", name_solutions, priority=900)  # when statements are read, and cells in their folds
    app.connect("doctree-read", name_cells, priority=900)
    app.add_post_transform(JoinRuns)
