"""Pieces to play with: each has a page of its own, for a lecture; the first page's piece, and its pictures."""

import html
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

FIRST = Path(__file__).parent.parent / "figures" / "out" / "first"
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
<body><main>{piece}</main><a class="back" href="../{page}.html">{title}</a>
<script>const first = document.querySelector(".rope-piece :is(input[type=range], input:checked)");
first?.focus({{ preventScroll: true }});</script>
</body></html>
"""


class FirstPictures(SphinxPostTransform):
    """In HTML, pictures from figures/out/first become part of the page: the piece that plays, and thumbnails.

    A chapter has its own below the title.
    """

    default_priority = 9
    formats = ("html",)

    def run(self, **kwargs) -> None:
        number = Path(self.env.docname).name[:2]
        if number.isdigit():
            title = next(self.document.findall(nodes.title))
            title.parent.insert(1, nodes.raw("", markup_of(number), format="html"))
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


class LinkPiecesAlone(SphinxPostTransform):
    """Below each piece to play with, a link to the piece alone."""

    default_priority = 300
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for raw in list(self.document.findall(nodes.raw)):
            if match := PIECE.search(raw.astext()):
                root = self.app.builder.get_relative_uri(self.env.docname, "index").removesuffix("index.html")
                link = f'<p style="{RIGHT}"><a href="{root}pieces/{match[1]}.html">Full screen</a></p>'
                raw.parent.insert(raw.parent.index(raw) + 1, nodes.raw("", link, format="html"))
                self.env.metadata[self.env.docname].setdefault("pieces", {})[match[1]] = raw.astext()


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
        text = PIECE_PAGE.format(title=title, name=name.replace("-", " "), piece=piece, page=page)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    shutil.copyfile(FIRST / "shared.png", Path(app.outdir) / "_static" / "shared.png")


def setup(app: Sphinx) -> None:
    """Connect the parts."""
    app.add_post_transform(FirstPictures)
    app.add_post_transform(LinkPiecesAlone)
    app.connect("build-finished", write_pieces)
