"""Formulas: TeX in the chapters, MathML in the pages, set once when the book is built.

Temml does it, one process of Node for the whole build: static/formulas.mjs says how. Also for slides, handout
and the pages for the wall: `mathml(tex)`, `with_formulas(html)`.
"""

import functools
import html
import json
import re
import subprocess
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

from _ext.fetched import MODULES, NODE, STATIC

logger = logging.getLogger(__name__)
TEMML = MODULES / "temml" / "dist"
LOOP = """
import { createInterface } from "node:readline";
const { default: temml } = await import(process.argv[1]);
const { mathml } = await import(process.argv[2]);
for await (const line of createInterface({ input: process.stdin })) {
  const [tex, display] = JSON.parse(line);
  let answer;
  try { answer = { mathml: mathml(temml, tex, display) }; } catch (error) { answer = { error: error.message }; }
  console.log(JSON.stringify(answer));
}
"""
FORMULA, CLOSING = r'<span class="math" [^>]*>(?:(?!</span>).)*</span>', r"[.,;:!?)\]”’'%…–-]+"
TOUCHED = re.compile(rf"[(\[“‘]+{FORMULA}(?:{CLOSING})?|{FORMULA}{CLOSING}", re.DOTALL)
WRITTEN = re.compile(r"\\\((.*?)\\\)|\\\[(.*?)\\\]", re.DOTALL)  # in HTML: \(..\) and \[..\]
TAG = re.compile(r"\s*\\tag\{(.*?)\}")


@functools.cache
def converter() -> subprocess.Popen:
    """The process that sets formulas: a line of JSON in, a line of JSON out."""
    scripts = (path.as_uri() for path in (TEMML / "temml.mjs", Path(__file__).parent / "static" / "formulas.mjs"))
    command = [NODE, "--input-type=module", "--eval", LOOP, *scripts]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")


@functools.cache
def mathml(tex: str, *, display: bool = False) -> str:
    """A formula as <math>; a ValueError says what is wrong with it."""
    process = converter()
    process.stdin.write(json.dumps([tex, display]) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["mathml"]


def with_formulas(page: str, macros: dict[str, str] | None = None) -> str:
    r"""HTML in which \(..\) and \[..\] became MathML; macros are words that stand for others, {"\\Q": "\\class{q}"}."""

    def formula(match: re.Match) -> str:
        tex = html.unescape(match[1] or match[2])
        for macro, words in (macros or {}).items():
            tex = re.sub(re.escape(macro) + r"(?![a-zA-Z])", lambda _, words=words: words, tex)
        return mathml(tex, display=match[1] is None)

    return WRITTEN.sub(formula, page)


# -- In a page ---------------------------------------------------------------------------------------------------------


def visit_formula(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """The formula, and what was written for it, so that it can be copied; one with an error fails the build."""
    display = isinstance(node, nodes.math_block)
    tag, tex = "div" if display else "span", node.astext().strip()
    if tex == r"\square":  # the box that ends a proof: a letter, in the line of the last word
        writer.body[-1] = writer.body[-1].rstrip()
        writer.body.append("&nbsp;□")
        raise nodes.SkipNode
    try:
        formula = mathml(tex, display=display)
    except ValueError as error:
        logger.warning(f"{error}, in the formula {tex}", location=node, type="rope_book", subtype="formulas")
        formula = ""
    writer.body.append(f'<{tag} class="math" data-tex="{html.escape(tex)}">{formula}</{tag}>')
    raise nodes.SkipNode


def keep_together(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """No line ends between a formula and the brackets or the full stop that touch it."""
    context["body"] = TOUCHED.sub(r'<span class="rb-together">\g<0></span>', context.get("body", ""))


class NumberBeside(SphinxPostTransform):
    r"""Takes the number of an equation, \tag{4.1}, out of it: on a narrow screen it goes below. Links reach it."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for equation in list(self.document.findall(nodes.math_block)):
            if tag := TAG.search(equation.astext()):
                text = TAG.sub("", equation.astext())
                anchor = f"equation-{tag[1].replace('.', '-')}"
                whole = nodes.container("", classes=["rb-equation"], ids=[anchor])
                equation.replace_self(whole)
                equation.rawsource, equation[:] = text, [nodes.Text(text)]
                whole += [equation, nodes.inline("", f"({tag[1]})", classes=["rb-number"])]


def setup(app: Sphinx) -> None:
    app.connect("config-inited", lambda app, config: config.html_static_path.append(str(STATIC)))
    app.add_html_math_renderer("temml", (visit_formula, None), (visit_formula, None))
    app.add_post_transform(NumberBeside)
    app.connect("html-page-context", keep_together)
