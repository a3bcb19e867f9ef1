"""The slides, from text.

Each block of slides is one file, *.md; plans.yaml says which blocks make which lecture. For each lecture this writes
one page of HTML that needs nothing else, the same as PDF, and its notes as PDF, beside the built pages of the book;
and the live demo, cleared and done.
"""

import base64
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from _ext.formulas import with_formulas
from _ext.questions import questions
from _ext.travelling import before_its_use
from figures.palette import LIGHT
from lectures.homework.build import carrying, with_solution, without_solution
from lectures.pages import address, math_style

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
PAGES = ROOT / "_build" / "html"
OUT = PAGES / "lectures"  # beside the pages, so that links to chapters work from disk and from a server
PLANS = yaml.safe_load((FOLDER / "plans.yaml").read_text(encoding="utf-8"))
MACROS = {r"\Q": r"\class{q}", r"\K": r"\class{k}", r"\S": r"\class{s}"}  # colours of query, key and score
PATTERNS = {
    "notes": r"(?s)<!-- (\d+) min\. (.*?)-->",
    "source": r"(?m)^Source: (.*)$",
    "from": r"<!-- from (\S+) (\S+): (.*?) -->",  # chapter, cell, the numbers on the slide that stand in it
    "look": r"<!-- look: (.*?) -->",
    "late": r"<!-- late: (.*?) -->",  # whether it is the first or the second to leave out
}


@dataclass(frozen=True)
class Slide:
    """One slide: what is shown, what is said, for how many minutes, and where the book has it."""

    body: str
    notes: str
    minutes: int
    source: str
    numbers: tuple[tuple[str, str, tuple[str, ...]], ...]  # chapter, cell, numbers
    look: str
    late: str

    @property
    def title(self) -> str:
        """Its heading."""
        return re.search(r"^#+ (.*)$", self.body, re.MULTILINE)[1]


def block(name: str) -> list[Slide]:
    """The slides of one file; lines of three dashes stand between them."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    text = re.sub(r"<!-- vote: ([\w-]+) -->", lambda match: vote(match[1]), text)
    return [_slide(part) for part in re.split(r"^---$", text, flags=re.MULTILINE)]


def vote(name: str) -> str:
    """One of the ten votes."""
    [question] = [question for question in questions() if question.id == name]
    return "\n".join([question.text, "", *(f"1. {option.text}" for option in question.options)])


def _slide(text: str) -> Slide:
    found = {key: re.findall(pattern, text) for key, pattern in PATTERNS.items()}
    for pattern in PATTERNS.values():
        text = re.sub(pattern, "", text)
    [(minutes, notes)] = found["notes"]
    numbers = tuple((chapter, cell, tuple(listed.split())) for chapter, cell, listed in found["from"])
    look, late = ((found[key] or [""])[0] for key in ("look", "late"))
    return Slide(text.strip(), notes.strip(), int(minutes), *found["source"], numbers, look, late)


def lecture(name: str, without: Sequence[str] = ()) -> Iterator[tuple[Slide, int, int]]:
    """The slides of one lecture but for those with these titles, each with its part and the minute where it begins."""
    for part, blocks in enumerate(PLANS[name]["parts"]):
        minute = 0
        for slide in (slide for name in blocks for slide in block(name) if slide.title not in without):
            yield slide, part, minute
            minute += slide.minutes


# -- HTML --------------------------------------------------------------------------------------------------------------


def figure(path: str, size: str) -> str:
    """A figure of the book for the last row: drawn again, on fewer inches, so that its letters are larger."""
    from figures.files import functions, svg

    drawn = functions("draw_")[Path(path).stem]()
    drawn.set_size_inches(*map(float, size.split(" x ")))
    text = re.sub(r"@media\(prefers-color-scheme:dark\)\{.*?\}\}", "", svg(drawn, outlines=True))
    text = text.replace("currentColor", "#000")
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def markdown() -> MarkdownIt:
    """Markdown to HTML: figures inside, formulas for with_formulas."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table").use(dollarmath_plugin)
    rules = parser.renderer.rules
    rules["math_inline"] = lambda tokens, i, *_: rf"\({html.escape(tokens[i].content)}\)"
    rules["math_block"] = lambda tokens, i, *_: rf'<div class="math">\[{html.escape(tokens[i].content)}\]</div>'

    def image(tokens: list, i: int, *_: object) -> str:
        given = tokens[i].attrs
        data = figure(given["src"], given["title"])
        return f'<img src="{data}" alt="{html.escape(tokens[i].content)}">'

    rules["image"] = image
    return parser


def linked(text: str) -> str:
    """Links into the sources become links to the pages."""
    pages = address() or "../"
    text = re.sub(r"\.\./\.\./chapters/(\w+)\.(ipynb|md)", rf"{pages}chapters/\1.html", text)
    return re.sub(r"\[([^\]]*)\]\(piece:(\w+)\)", r'<a class="piece" href="#" data-piece="\2">\1</a>', text)


def sections(name: str, course: str = "", without: Sequence[str] = ()) -> str:
    """All slides of a lecture, each with its notes; the first one with the line for course, name and date."""
    parser, parts = markdown(), []
    slides = list(lecture(name, without))
    where = f'<a href="{address()}">{address().removeprefix("https://")}</a> ' if address() else ""
    for number, (slide, part, minute) in enumerate(slides, start=1):
        when = f"{minute} to {minute + slide.minutes}"
        when = f"part {part + 1}, minutes {when}" if len(PLANS[name]["parts"]) > 1 else f"minutes {when}"
        when += f"; if you are late, leave this out {slide.late}" if slide.late else ""
        parts.append(
            f'<section id="{number}" class="{slide.look}" data-when="{when}">'
            f'<div class="body">{parser.render(linked(slide.body))}'
            + (f"<p>{html.escape(course)}</p></div>" if course and number == 1 else "</div>")
            + f"<footer><span>{parser.renderInline(linked(slide.source))}</span><span>{where}{number}</span></footer>"
            f'<aside data-head="{number}. {when}">{parser.render(linked(slide.notes))}</aside></section>\n'
        )
    return "".join(parts)


def pieces(text: str) -> str:
    """The pieces that are linked, whole, so that the lecture is a single file."""
    found = []
    for name in sorted(set(re.findall(r'data-piece="(\w+)"', text))):
        page = (PAGES / "pieces" / f"{name}.html").read_text(encoding="utf-8")
        style = (PAGES / "_static" / "piece_page.css").read_text(encoding="utf-8")
        page = re.sub(r'<link rel="icon".*?>|<a class="back".*?</a>', "", page)
        script = (PAGES / "_static" / "piece.js").read_text(encoding="utf-8")
        page = re.sub(r'<link rel="stylesheet".*?>', lambda _, style=style: f"<style>{style}</style>", page)
        page = page.replace('<script src="../_static/piece.js">', f"<script>{script}")
        found.append(f'<template data-name="{name}">{html.escape(page)}</template>\n')
    return "".join(found)


def page(name: str, course: str = "", without: Sequence[str] = ()) -> str:
    """A lecture."""
    body = with_formulas(sections(name, course, without), MACROS)
    style, script = ((FOLDER / f"slide.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f"{PLANS[name]['title']}</title>\n<style>{math_style()}:root{{{LIGHT}}}\n{style}</style></head>\n"
        f"<body><main>{body}</main>{pieces(body)}\n<script>{script}</script></body></html>\n"
    )


# -- Files -------------------------------------------------------------------------------------------------------------


def lectures(browser, out: Path, course: str = "", without: Sequence[str] = ()) -> None:
    """Each lecture as a page, as PDF, and its notes."""
    titles = [slide.title for name in PLANS for slide, *_ in lecture(name)]
    if unknown := set(without) - set(titles):
        raise SystemExit(f"Error: no slide is called {', '.join(sorted(unknown))}; there are: {'; '.join(titles)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in PLANS:
        text = page(name, course, without)
        (out / f"{name}.html").write_text(text, encoding="utf-8")
        for suffix, kind in ((".pdf", ""), ("-notes.pdf", "paper")):
            tab = browser.new_page()
            tab.set_content(text.replace("<html ", f'<html class="{kind}" ', 1))
            tab.emulate_media(media="print")
            tab.pdf(path=out / f"{name}{suffix}", prefer_css_page_size=True, print_background=True)
            tab.close()


def demo(out: Path) -> None:
    """The live demo, cleared for the lecture, and done in case that something fails there."""
    from nbclient import NotebookClient

    for name, change in (("demo", without_solution), ("demo-done", with_solution)):
        notebook = nbformat.read(FOLDER.parent / "demo.ipynb", as_version=4)
        for cell in notebook.cells:
            cell.source = change(cell.source, code=cell.cell_type == "code").rstrip()
        first = carrying(notebook)
        first.source = "".join(first.source)
        notebook.cells.insert(before_its_use(notebook), first)
        if change is with_solution:
            NotebookClient(notebook, timeout=120, record_timing=False).execute()
        nbformat.write(notebook, out / f"{name}.ipynb")


def linked_from(page: Path) -> None:
    """On the page for teachers the lectures' names become links, and the PDFs stand beside them."""
    text = page.read_text(encoding="utf-8")
    for name in PLANS:
        links = (f'<a href="../lectures/{name}{end}">{word}</a>'
                 for end, word in ((".html", name), (".pdf", "PDF"), ("-notes.pdf", "notes")))  # fmt: skip
        text = re.sub(rf"<code[^>]*><span[^>]*>{name}</span></code>", "{} ({}, {})".format(*links), text)
    page.write_text(text, encoding="utf-8")
