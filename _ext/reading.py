"""What makes a page easy to read, on any screen and aloud: folds that say what they hide, and text that keeps together.

What depends on the width of the screen is in reading.js: equations that break, and areas that scroll and say so.
"""

import ast
import re

import in_page
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput, visit_HideCellInput
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator
from statements import HEAD, open_texts

CLOSING = re.compile(r"[.,;:!?)\]”’'%…–-]+")
OPENING = re.compile(r"[(\[“‘]+$")
CHINESE = re.compile(r"[\u4e00-\u9fff][\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]*")  # with its punctuation
TAG = re.compile(r"\s*\\tag\{(.*?)\}")
INNER = re.compile(r"\\begin\{(\w+\*?)\}(?:(?!\\begin\b).)*?\\end\{\1\}|(?<!\\begin)(?<!\\end)\{[^{}]*\}", re.DOTALL)


# -- Folds -------------------------------------------------------------------------------------------------------------


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
            what = "setup" if is_setup(source) else "code"
            cell["prompt_show"] = f"Setup {size}" if what == "setup" else f"Show the code {size}"
            cell["prompt_hide"] = f"Hide the {what}"
        elif len(cell) > 1 and draws(source):
            cell.remove(code)
            begin = '<details class="rb-source"><summary>Code of this figure</summary>'
            cell += [nodes.raw("", begin, format="html"), code, nodes.raw("", "</details>", format="html")]


def is_setup(source: str) -> bool:
    """Whether a cell prepares the notebook: most of its statements, or its first lines, are for that."""
    kinds = [isinstance(statement, ast.Import | ast.ImportFrom) for statement in in_page.statements(source)]
    return source.startswith("%matplotlib") or 2 * sum(kinds) > len(kinds)


def draws(source: str) -> bool:
    """Whether a cell only asks for a figure or a piece: figures.rotation.draw_aliases()."""
    match in_page.statements(source):
        case [ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="figures")))))]:
            return True
    return False


def visit_fold(writer: HTML5Translator, node: HideCodeCellNode) -> None:
    """Without the label "Toggle hidden content", which is read in the place of the words that one sees."""
    begin = len(writer.body)
    visit_HideCellInput(writer, node)
    writer.body[begin:] = [part.replace(' aria-label="Toggle hidden content"', "") for part in writer.body[begin:]]


def visit_citation(writer: HTML5Translator, node: nodes.citation) -> None:
    """An entry of the bibliography is an item of its list; what docutils calls it is obsolete."""
    begin = len(writer.body)
    HTML5Translator.visit_citation(writer, node)
    writer.body[begin:] = [part.replace('role="doc-biblioentry"', 'role="listitem"') for part in writer.body[begin:]]


# -- Tables that are none ----------------------------------------------------------------------------------------------


def list_cards(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The cards of the first page are a table in its source, and have no columns: aloud they are a list."""

    def listed(cards: re.Match) -> str:
        head, body = re.sub(r"<thead>.*?</thead>\s*", "", cards[0], flags=re.DOTALL).split("<tbody")
        head = head.replace("<table", '<table role="presentation"')
        return head + '<tbody role="list"' + body.replace("<tr", '<tr role="listitem"')

    cards = re.compile(r'<div class="rb-cards\b.*?</table>', re.DOTALL)
    context["body"] = cards.sub(listed, context.get("body", ""))


# -- Text --------------------------------------------------------------------------------------------------------------


class KeepTogether(SphinxPostTransform):
    """A formula in a line, with brackets and the full stop that touch it; the box that ends a proof, with a word."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for formula in list(self.document.findall(nodes.math)):
            line = formula.parent
            place = line.index(formula)
            before = line[place - 1] if place else None
            behind = line[place + 1] if place + 1 < len(line) else None
            opening = OPENING.search(before) if isinstance(before, nodes.Text) else None
            closing = CLOSING.match(behind) if isinstance(behind, nodes.Text) else None
            if formula.astext() == r"\square" and isinstance(before, nodes.Text):
                opening = re.search(r"\S+\s+$", before)
                if not before.strip() and place > 1 and isinstance(line[place - 2], nodes.inline):
                    line[place - 2] += [before.copy(), line.pop(place)]  # a formula with its full stop
                    line.pop(place - 1)
                    continue
            if not opening and not closing:
                continue
            whole = nodes.inline("", "", classes=["rb-together"])
            line[place] = whole
            if opening:
                whole += nodes.Text(opening[0])
                line[place - 1] = nodes.Text(before[: opening.start()])
            whole += formula
            if closing:
                whole += nodes.Text(closing[0])
                line[place + 1] = nodes.Text(behind[closing.end() :])


class NumberBeside(SphinxPostTransform):
    r"""Takes the number of an equation, \tag{4.1}, out of it: on a narrow screen it goes below."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for equation in list(self.document.findall(nodes.math_block)):
            if tag := TAG.search(equation.astext()):
                text = TAG.sub("", equation.astext())
                whole = nodes.container("", classes=["rb-equation"])
                equation.replace_self(whole)
                equation.rawsource, equation[:] = text, [nodes.Text(text)]
                whole += [equation, nodes.inline("", f"({tag[1]})", classes=["rb-number"])]


class OneRow(SphinxPostTransform):
    r"""An equation in which only a matrix has rows, \\, is none of several rows: aloud it would be a table of one."""

    default_priority = 910
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for equation in self.document.findall(nodes.math_block):
            text = outer = equation.astext()
            while outer != (outer := INNER.sub("", outer)):
                pass
            if r"\\" in text and r"\\" not in outer and not equation.get("nowrap"):
                equation["nowrap"] = True  # else Sphinx would put `split` around it
                text = rf"\[{text}\]"
                equation.rawsource, equation[:] = text, [nodes.Text(text)]


class MarkChinese(SphinxPostTransform):
    """Chinese words say that they are Chinese: another voice reads them, and other glyphs show them."""

    default_priority = 910
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for text in list(open_texts(self.document)):
            parts, done = [], 0
            for words in CHINESE.finditer(text):
                parts += [nodes.Text(text[done : words.start()]), nodes.inline("", words[0], classes=["language-zh"])]
                done = words.end()
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(text[done:])])


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_HideCellInput))
    app.add_node(nodes.citation, override=True, html=(visit_citation, HTML5Translator.depart_citation))
    app.add_js_file("reading.js", loading_method="defer")
    app.connect("doctree-read", name_solutions, priority=900)  # when statements are read, and cells in their folds
    app.connect("doctree-read", name_cells, priority=900)
    app.connect("html-page-context", list_cards)
    for transform in (KeepTogether, NumberBeside, OneRow, MarkChinese):
        app.add_post_transform(transform)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
