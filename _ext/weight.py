"""What a page loads, and when: the theme's files as one of each kind, less what no page uses, and MathJax in its parts.

The text and its style come first, then the scripts, then what typesets formulas: reading.js asks for it. Everything is
the book's own; a page from disk needs nothing else.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from rjsmin import jsmin
from sphinx.application import Sphinx

ICONS = re.compile(r'[^\n]*<script defer src="[^"]*_static/scripts/fontawesome\.js[^\n]*\n')
STYLE = re.compile(r'\s*<link (?=[^>]*rel="stylesheet")(?![^>]*media=)[^>]*href="([^"]+)"[^>]*>')
SCRIPT = re.compile(r'\s*<script\b[^>]* src="([^"]+)"[^>]*></script>')
PRELOAD = re.compile(r'\s*<link rel="preload"[^>]*>')
IN_PAGE = re.compile(r"(<script\b(?![^>]* src=)[^>]*>)(.+?)(?=</script>)", re.DOTALL)
OWN = {path.name for path in (Path(__file__).parent / "static").iterdir()}
# The theme decides between light and dark after the first paint; now the page does before. And the theme lays the page
# out anew for each area that may scroll; reading.js looks at all of them at once.
AUTO = 'document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto";'
DECIDED = """{
      const page = document.documentElement.dataset, dark = matchMedia("(prefers-color-scheme: dark)").matches;
      page.theme = page.mode === "auto" ? (dark ? "dark" : "light") : page.mode;
    }"""
SCROLLS = ',"complete"===document.readyState?I():window.addEventListener("load",I)'
# The words on the button of the search are its name: a label in other words is not what one sees.
LABEL = re.compile(r'(<button class="[^"]*\bsearch-button-field\b[^>]*?) aria-label="[^"]*"')
FOR_SEARCH = {"searchtools.js", "language_data.js", "searchindex.js"}
# What typesets formulas, in this order. The whole tex-svg.js has a menu too, of 100 kB, which the book turns off.
MATHJAX = "startup", "core", "input/tex", "output/svg", "output/svg/fonts/tex", "a11y/assistive-mml"
TOKEN = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|url\([^"')]*\)|[{};]""", re.DOTALL)


# -- Mathematics -------------------------------------------------------------------------------------------------------


def write_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """MathJax 3 as one file, from the Python package that carries it."""
    if exception is None and app.builder.format == "html":
        package = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
        parts = [(package / f"{part}.js").read_text(encoding="utf-8") for part in MATHJAX]
        (Path(app.outdir) / "_static" / "tex-svg.js").write_text("\n".join(parts), encoding="utf-8")


def drop_mathjax(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Its file, which reading.js asks for where the page has settings for it; and these, where it has no equation."""
    equations = app.env.get_domain("math").data["has_equations"].get(pagename)  # Sphinx counts pages below it, too

    def stays(script) -> bool:
        if script.filename:
            return not str(script.filename).endswith(app.config.mathjax_path)
        return bool(equations) or "MathJax" not in script.attributes["body"]

    context["script_files"] = [script for script in context["script_files"] if stays(script)]


# -- Styles ------------------------------------------------------------------------------------------------------------


def rules(css: str) -> Iterator[tuple[str, str | None]]:
    """The rules of a style sheet: what stands before the braces, and what within. A line such as @import has none."""
    depth, begin, head, inside = 0, 0, "", 0
    for token in TOKEN.finditer(css):
        if token[0] == "{":
            if depth == 0:
                head, inside = css[begin : token.start()].strip(), token.end()
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                yield head, css[inside : token.start()]
                begin = token.end()
        elif token[0] == ";" and depth == 0:
            yield css[begin : token.start()].strip(), None
            begin = token.end()


def selectors(head: str) -> list[str]:
    """A list of selectors, apart; a comma in brackets belongs to one of them."""
    found, depth = [""], 0
    for sign in head:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [one.strip() for one in found]


def names(selector: str) -> set[str]:
    """The classes and ids that a page must have, somewhere, for a selector to find anything."""
    while selector != (selector := re.sub(r"\([^()]*\)|\[[^\]]*\]", "", selector)):
        pass
    return {re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"[.#]((?:\\.|[\w-])+)", selector)}


def used(css: str, words: set[str]) -> str:
    """A style sheet without the rules for classes and ids that are not among the words."""
    kept = ""
    for head, body in rules(css):
        if body is None:
            kept += "" if head.startswith("@charset") else f"{head};"
        elif head.startswith(("@media", "@supports")):
            inner = used(body, words)
            kept += f"{head}{{{inner}}}" if inner else ""
        elif head.startswith("@"):
            kept += f"{head}{{{body}}}"
        elif found := [one for one in selectors(head) if names(one) <= words]:
            kept += f"{','.join(found)}{{{body.strip()}}}"
    return kept


def sheet(path: Path, place: Path) -> str:
    """A style sheet with those that it imports, without comments, its addresses as seen from another place."""

    def moved(address: re.Match) -> str:
        return f"url({address[1]}{os.path.relpath(path.parent / address[2], place)}{address[1]})"

    css = TOKEN.sub(lambda token: "" if token[0].startswith("/*") else token[0], path.read_text(encoding="utf-8"))
    css = re.sub(r"""url\((["']?)(?!data:|https?:|#|/)([^"')]+)\1\)""", moved, css)
    return re.sub(r"""@import "([^"]+)";""", lambda other: sheet(path.parent / other[1], place), css)


# -- Pages -------------------------------------------------------------------------------------------------------------


def words_of(text: str) -> set[str]:
    """The classes and ids of a page, and all words of its scripts, which may name others."""
    given = re.findall(r'(?:class|id)="([^"]*)"', text)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, flags=re.DOTALL)
    return {word for part in given for word in part.split()} | {
        word for part in scripts for word in re.findall(r"[\w-]+", part)
    }


class Pages:
    """The built pages, and how they become lighter."""

    def __init__(self, folder: Path):
        self.static = folder / "_static"
        paths = (path for path in folder.rglob("*.html") if self.static not in path.parents)
        texts = {path: PRELOAD.sub("", ICONS.sub("", path.read_text(encoding="utf-8"))) for path in paths}
        texts = {path: LABEL.sub(r"\1", text.replace(AUTO, DECIDED)) for path, text in texts.items()}
        self.texts = {path: text for path, text in texts.items() if "styles/sphinx-book-theme.css" in text}

    def file(self, page: Path, address: str) -> Path:
        """The file behind an address in a page."""
        return (page.parent / address.split("?")[0]).resolve()

    def linked(self, pattern: re.Pattern) -> set[Path]:
        """All files that some page loads."""
        return {self.file(page, found) for page, text in self.texts.items() for found in pattern.findall(text)}

    def words(self) -> set[str]:
        """Whatever a rule can be for: the classes and ids of the pages, and what scripts may add."""
        found = {"bs-tooltip-auto"}.union(*map(words_of, self.texts.values()))  # put together by a script
        scripts = {*self.linked(SCRIPT), *self.static.glob("live*.js")}
        for path in scripts:
            if path.name not in {"searchindex.js", "places.js"}:
                found |= set(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")))
        return found

    def write(self, kind: str, text: str) -> str:
        """A file named by what is in it, so that no browser shows an old one."""
        name = f"book-{hashlib.sha256(text.encode()).hexdigest()[:10]}.{kind}"
        (self.static / name).write_text(text, encoding="utf-8")
        return name

    def lighten(self) -> None:
        """Each page with one style sheet, and with its scripts behind the text; those of the book without comments."""
        words = self.words()
        for page, text in self.texts.items():
            text = self.with_one_sheet(page, text, words)
            if page.stem != "search":
                text = self.with_one_script(page, text)
            page.write_text(IN_PAGE.sub(lambda script: script[1] + jsmin(script[2]), text), encoding="utf-8")
        for path in self.static.glob("*.js"):
            if path.name in OWN:
                path.write_text(jsmin(path.read_text(encoding="utf-8")), encoding="utf-8")

    def with_one_sheet(self, page: Path, text: str, words: set[str]) -> str:
        """All style sheets of a page as one, in their order; of the theme's, what some page uses."""
        links = list(STYLE.finditer(text))
        files = [self.file(page, link[1]) for link in links]
        sheets = (sheet(path, self.static) for path in files)
        css = (one if path.name in OWN else used(one, words) for path, one in zip(files, sheets, strict=True))
        name = self.write("css", "\n".join(css))
        where = os.path.relpath(self.static / name, page.parent)
        for link in reversed(links[1:]):
            text = text[: link.start()] + text[link.end() :]
        first = links[0]
        return f'{text[: first.start()]}\n    <link rel="stylesheet" href="{where}" />{text[first.end() :]}'

    def with_one_script(self, page: Path, text: str) -> str:
        """The theme's scripts as one, which waits for the text; without those of the search, which has its own page."""
        parts, options = [], ""

        def without(script: re.Match) -> str:
            nonlocal options
            path = self.file(page, script[1])
            if path.name in OWN:
                return script[0]
            if path.name == "documentation_options.js":  # the scripts in the page ask for it
                options = path.read_text(encoding="utf-8")
            elif path.name not in FOR_SEARCH:
                code = path.read_text(encoding="utf-8").replace(SCROLLS, "")
                parts.append(re.sub(r"//# sourceMappingURL=.*", "", code))
            return ""

        text = SCRIPT.sub(without, text)
        code = ";\n".join(["", *parts])  # one begins with "use strict", which is not meant for the others
        where = os.path.relpath(self.static / self.write("js", code), page.parent)
        first = f'\n    <script>{options}</script>\n    <script defer="defer" src="{where}"></script>'
        place = text.index("<script", text.index('<link rel="stylesheet"'))
        return f"{text[:place].rstrip()}{first}\n    {text[place:]}"


def lighten(app: Sphinx, exception: Exception | None) -> None:
    """The last step: when all pages and their files are there."""
    if exception is None and app.builder.format == "html" and app.config.html_theme == "sphinx_book_theme":
        Pages(Path(app.outdir)).lighten()


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.connect("html-page-context", drop_mathjax, priority=900)
    app.connect("build-finished", write_mathjax, priority=800)
    app.connect("build-finished", lighten, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
