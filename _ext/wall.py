"""For each chapter a page for the wall of a lecture room: its question and its piece, three sentences, and the votes.

All of it is taken from the chapter's page, and the votes from lectures/questions.yaml.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

from _ext.statements import full_title
from lectures import pages, questions

PAGE = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: for the wall</title><link rel="icon" href="../_static/favicon.svg">
<link rel="stylesheet" href="../_static/book.css"><link rel="stylesheet" href="../_static/wall.css">
<script>try {{ var mode = localStorage.mode; }} catch {{}}
document.documentElement.dataset.theme = /light|dark/.test(mode) ? mode
  : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";</script>
</head>
<body class="rb-wall"><main><h1>{title}</h1><p>{question}</p>
<div>{piece}<section><h2>In three sentences</h2><ol>{sentences}</ol></section></div>
{votes}</main><p><a href="../{page}.html">{title}</a></p></body></html>
"""
VOTE = "<section><h2>Vote</h2>{}</section>"


def parts_of(chapter: str) -> tuple[str, str, list[str]]:
    """The question below the title, the first piece, and the three sentences, from the HTML of a chapter."""
    question = re.search(r"</h1>\s*<p>(.*?)</p>", chapter, re.DOTALL)[1]
    piece = re.search(r'<div class="rope-piece.*?</script></div>', chapter, re.DOTALL)[0]
    quote = re.search(r'<blockquote class="[^"]*rb-three[^"]*">(.*?)</blockquote>', chapter, re.DOTALL)[1]
    text = re.sub(r"</?(?:div|p)>|<strong>In three sentences\.</strong>", "", quote).strip()
    return question, piece, re.split(r"(?<=\.)\s+(?=[A-Z])", text)


def write_walls(app: Sphinx, exception: Exception | None) -> None:
    """wall/<chapter>.html, which works from disk as the other pages do."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "wall"
    folder.mkdir(exist_ok=True)
    for page in sorted(page for page in app.env.found_docs if Path(page).name[:2].isdigit()):
        question, piece, sentences = parts_of((Path(app.outdir) / f"{page}.html").read_text(encoding="utf-8"))
        votes = (vote.html() for vote in questions.questions() if vote.chapter == f"{Path(page).name}.ipynb")
        text = PAGE.format(
            page=page,
            title=full_title(app.env, page),
            question=question,
            piece=piece,
            sentences="".join(f"<li>{sentence}</li>" for sentence in sentences),
            votes=pages.with_formulas("".join(map(VOTE.format, votes))),
        )
        (folder / f"{Path(page).name}.html").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the part."""
    app.connect("build-finished", write_walls)
