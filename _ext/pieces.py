"""Pieces to play with: each has a page of its own, for a lecture; the first page's piece, and its pictures."""

import html
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)
FIGURES = Path(__file__).parent.parent / "figures"
FIRST = FIGURES / "out" / "first"
# What a notebook shows before its cell is run.
REST = re.compile(r'<p class="rp-rest">.*?</p><div hidden="hidden" (class="rope-piece)', re.DOTALL)
SETS = re.compile(r"#piece-([\w-]+)/(.+)")
PIECE = re.compile(r'class="rope-piece[^>]*? id="piece-([\w-]+)"')
RIGHT = "margin:.3rem 0 0;font-size:.85rem;text-align:right"
PIECE_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: {name}</title><link rel="icon" href="../_static/favicon.svg">
<link rel="stylesheet" href="../_static/piece_page.css">
<script>try {{
  if (/light|dark/.test(localStorage.mode)) document.documentElement.dataset.theme = localStorage.mode; }} catch {{}}
</script>
</head>
<body><main{wide}><h1>{question}</h1>{piece}</main><a class="back" href="../{page}.html">{title}</a>
<script src="../_static/{script}"></script>
<script>const first = document.querySelector(".rope-piece :is(input[type=range], input:checked)");
if (matchMedia("(pointer: fine)").matches) first?.focus({{ preventScroll: true }});</script>
</body></html>
"""


class FirstPictures(SphinxPostTransform):
    """In HTML, pictures from figures/out/first become part of the page: the piece that plays, and thumbnails."""

    default_priority = 9
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for image in list(self.document.findall(nodes.image)):
            path = Path(image["uri"])
            if path.parent.parts[-3:] == FIRST.parts[-3:]:
                is_paragraph = isinstance(image.parent, nodes.paragraph) and len(image.parent) == 1
                (image.parent if is_paragraph else image).replace_self(
                    nodes.raw("", markup_of(path.stem), format="html")
                )


def markup_of(name: str) -> str:
    """The piece itself, or a thumbnail as inline SVG without its styles: decoration beside a text that says it."""
    if (FIRST / f"{name}.html").exists():
        return (FIRST / f"{name}.html").read_text(encoding="utf-8")
    svg = re.sub(r"<style>.*?</style>", "", (FIRST / f"{name}.svg").read_text(encoding="utf-8"), flags=re.DOTALL)
    return svg.replace("<svg ", '<svg class="rb-thumbnail" aria-hidden="true" ').strip()


# -- A page for each piece ---------------------------------------------------------------------------------------------


def without_rest(output: str) -> str:
    """A piece as a page has it, where it can be seen before any script."""
    return REST.sub(r"<div \1", output)


def script_of(piece: str) -> str:
    """Its script: one that most pieces share, or its own."""
    named = re.search(r'data-script="([\w.]+)"', piece)
    return named[1] if named else "piece.js"


class LinkPiecesAlone(SphinxPostTransform):
    """A piece is there before any script, which comes with the page; below it, a link to the piece alone."""

    default_priority = 300
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for raw in list(self.document.findall(nodes.raw)):
            if match := PIECE.search(raw.astext()):
                piece = without_rest(raw.astext())
                raw[:] = [nodes.Text(piece)]
                root = self.app.builder.get_relative_uri(self.env.docname, "index").removesuffix("index.html")
                link = f'<p style="{RIGHT}"><a href="{root}pieces/{match[1]}.html">Full screen</a></p>'
                raw.parent.insert(raw.parent.index(raw) + 1, nodes.raw("", link, format="html"))
                self.env.metadata[self.env.docname].setdefault("pieces", {})[match[1]] = piece
                self.env.metadata[self.env.docname].setdefault("asked", {})[match[1]] = question_above(raw)
                self.env.metadata[self.env.docname].setdefault("scripts", []).append(script_of(piece))


def question_above(piece: nodes.raw) -> str:
    """What a piece answers: the question below the heading of its section, else that heading."""
    section = piece.parent
    while not isinstance(section, nodes.section):
        section = section.parent
    heading, below = section[:2]
    bold = below.next_node(nodes.strong) if isinstance(below, nodes.paragraph) else None
    return (bold if bold and bold.astext().endswith("?") else heading).astext()


def is_wide(piece: str) -> bool:
    """Whether its one drawing is so wide that its sentence and controls have more room below it than beside it."""
    sizes = re.findall(r'<svg viewBox="0 0 (\d+) (\d+)"', piece)
    return len(sizes) == 1 and int(sizes[0][0]) > 1.55 * int(sizes[0][1])


# -- Links that set a piece --------------------------------------------------------------------------------------------


class KeepSettingLinks(SphinxTransform):
    """[text](#piece-decay/10/4) is no link to a heading, so MyST shall not look for one."""

    default_priority = 878  # before MyST

    def apply(self, **kwargs) -> None:
        for link in self.document.findall(nodes.reference):
            if link.get("id_link") and SETS.match(unquote(link["refuri"])):
                del link["id_link"]


class SetPieces(SphinxPostTransform):
    """Such a link sets the piece of its page: a step for each control, by its name with _ for a space, or nothing.

    set_piece.js gets the numbers of the steps. Without a script the link leads to the piece.
    """

    default_priority = 301  # when outputs of cells are there
    formats = ("html",)

    def run(self, **kwargs) -> None:
        shown = self.env.metadata[self.env.docname].get("pieces", {})
        for link in list(self.document.findall(nodes.reference)):
            if match := SETS.match(unquote(link.get("refuri", ""))):
                name, places = match[1], places_of(match[2].split("/"), shown.get(match[1], ""))
                if places is None:
                    logger.warning("piece %r has no state %r", name, match[2], location=link)
                    continue
                begin = f'<a class="rb-set" href="#piece-{name}" data-set="{places}" title="Sets the piece">'
                link.replace_self([nodes.raw("", begin, format="html"), *link, nodes.raw("", "</a>", format="html")])
                self.env.metadata[self.env.docname].setdefault("scripts", []).append("set_piece.js")


def places_of(wanted: list[str], piece: str) -> str | None:
    """For each control the number of the step that a link names, "" for one that stays; None if there is no such."""
    packed = re.search(r"data-states='([^']*)'", piece)
    steps = json.loads(html.unescape(packed[1]))["steps"] if packed else []
    names = [[re.sub(r"<.*?>|\s", lambda m: "_" if m[0].isspace() else "", step) for step in row] for row in steps]
    if len(wanted) > len(names) or any(one and one not in row for one, row in zip(wanted, names, strict=False)):
        return None
    return ",".join(str(row.index(one)) if one else "" for one, row in zip(wanted, names, strict=False))


def write_pieces(app: Sphinx, exception: Exception | None) -> None:
    """pieces/<name>.html: one piece as large as the screen, without code, its arrow keys ready. It works from disk."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "pieces"
    folder.mkdir(exist_ok=True)
    pages = {}
    for page, metadata in sorted(app.env.metadata.items()):
        for name, piece in metadata.get("pieces", {}).items():
            pages.setdefault(name, (page, piece))  # the first screen's is on two pages
    for name, (page, piece) in pages.items():
        title = html.escape(app.env.titles[page].astext())
        text = PIECE_PAGE.format(
            title=title,
            name=name.replace("-", " "),
            question=html.escape(app.env.metadata[page]["asked"][name]),
            wide=' class="wide"' if is_wide(piece) else "",
            piece=piece,
            page=page,
            script=script_of(piece),
        )
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    shutil.copyfile(FIRST / "shared.png", Path(app.outdir) / "_static" / "shared.png")


def setup(app: Sphinx) -> None:
    app.add_post_transform(FirstPictures)
    app.add_post_transform(LinkPiecesAlone)
    app.add_transform(KeepSettingLinks)
    app.add_post_transform(SetPieces)
    app.connect("build-finished", write_pieces)
