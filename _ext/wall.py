"""For each chapter a page for the wall of a lecture room: question, piece and votes, and folded the three sentences.

All of it is taken from the chapter as Sphinx writes it, and the votes from lectures/questions.yaml.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from _ext import questions
from _ext.formulas import with_formulas
from _ext.line_ends import unbroken
from _ext.pieces import script_of
from _ext.statements import full_title

PAGE = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: for the wall</title><link rel="icon" href="../_static/favicon.svg">
<link rel="stylesheet" href="../_static/book.css"><link rel="stylesheet" href="../_static/wall.css">
<script>try {{ var mode = localStorage.mode; }} catch {{}}
document.documentElement.dataset.theme = /light|dark/.test(mode) ? mode
  : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";</script>
<script src="../_static/{script}" defer></script>
</head>
<body class="rb-wall"><main><h1>{title}</h1><p>{question}</p>
<div>{piece}{vote}</div>
{votes}<details class="rb-after"><summary>Afterwards: in three sentences</summary>
<ol>{sentences}</ol></details></main>
<p><a href="../{page}.html">{title}</a></p></body></html>
"""
VOTE = "<section><h2>Vote</h2>{}</section>"


def parts_of(app: Sphinx, doctree: nodes.document, page: str) -> tuple[str, str, list[str]]:
    """Of a chapter the question below the title, the first piece, and the three sentences, as HTML."""
    title = next(iter(doctree.findall(nodes.title)))
    question = next((node for node in title.parent if isinstance(node, nodes.paragraph)), None)
    piece = next(iter(app.env.metadata[page].get("pieces", {}).values()), None)
    quote = next((node for node in doctree.findall(nodes.block_quote) if "rb-three" in node["classes"]), None)
    missing = {"question below the title": question, "piece": piece, 'quote "In three sentences."': quote}
    if missing := [what for what, found in missing.items() if found is None]:
        raise ExtensionError(f"{page}: no {', no '.join(missing)} for its page for the wall")
    quote = quote[0].deepcopy()
    quote.remove(quote.next_node(nodes.strong))
    return inside(app, question), piece, re.split(r"(?<=\.)\s+(?=[A-Z])", inside(app, quote))


def inside(app: Sphinx, paragraph: nodes.paragraph) -> str:
    """A paragraph as HTML, without its own element."""
    return app.builder.render_partial(paragraph)["body"].strip().removeprefix("<p>").removesuffix("</p>").strip()


def write_wall(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """wall/<chapter>.html, which works from disk as the other pages do."""
    if app.builder.format != "html" or not Path(page).name[:2].isdigit():
        return
    folder = Path(app.outdir) / "wall"
    folder.mkdir(exist_ok=True)
    question, piece, sentences = parts_of(app, doctree, page)
    asked = [vote for vote in questions.questions() if vote.chapter == f"{Path(page).name}.ipynb"]
    votes = [with_formulas(VOTE.format(vote.html())) for vote in asked]
    text = PAGE.format(
        page=page,
        title=full_title(app.env, page),
        question=question,
        piece=piece,
        script=script_of(piece),
        sentences="".join(f"<li>{sentence}</li>" for sentence in sentences),
        vote="".join(votes[:1]),
        votes="".join(votes[1:]),
    )
    (folder / f"{Path(page).name}.html").write_text(unbroken(text), encoding="utf-8")


def depend_on_votes(app: Sphinx, doctree: nodes.document) -> None:
    """A chapter is written again when the votes have changed."""
    app.env.note_dependency(str(questions.FILE))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", depend_on_votes)
    app.connect("doctree-resolved", write_wall)
