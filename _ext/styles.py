"""One style sheet for all pages: the theme's and the extensions', less what no page uses, by PurgeCSS; the book's."""

import hashlib
import json
import subprocess
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

from _ext.fetched import MODULES, NODE
from figures import palette

STATIC = Path(__file__).parent / "static"
THEIRS = (
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "copybutton.css",
    "mystnb.*.css",
    "Temml-STIX2.css",
)
OWN = ("rope_book.css", "head.css", "live.css", "predict.css", "search.css")
PURGECSS = MODULES / "purgecss" / "lib" / "purgecss.js"
NO_PAGES = ("_static/places.js", "_static/live/")  # texts and programs that show nothing by themselves
LEAST = 0.2  # of the sheets, in bytes: a third is used


def name_version(app: Sphinx, config: Config) -> None:
    """What pages say behind the sheet's name, so that no browser shows an old one."""
    text = b"".join(path.read_bytes() for path in [Path(palette.__file__), *sorted(STATIC.glob("*.css"))])
    config.html_context["styles_version"] = hashlib.sha256(text).hexdigest()[:8]


def purged(sheets: list[Path], content: list[Path]) -> str:
    """The sheets as one, less what no page and no script of `content` uses."""
    files = json.dumps({"css": [str(path) for path in sheets], "content": [str(path) for path in content]})
    command = [NODE, Path(__file__).parent / "styles.mjs", PURGECSS.as_uri()]
    done = subprocess.run(command, input=files, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise ExtensionError(f"no style sheet could be made of {len(sheets)} sheets. Node said:\n{done.stderr}")
    whole = sum(path.stat().st_size for path in sheets)
    used = len(done.stdout.encode())
    if used < LEAST * whole:
        raise ExtensionError(
            f"of {whole} bytes of style, {len(content)} pages and scripts use {used}; it should be a fifth or more, "
            "so the pages would have no layout"
        )
    return done.stdout


def write_sheet(app: Sphinx, exception: Exception | None) -> None:
    """_static/book.css, when all pages are there; while one watches, only after a change of style."""
    if exception is None and app.config.html_theme == "sphinx_book_theme":
        pages = Path(app.outdir)
        found = {name: sorted((pages / "_static").glob(name)) for name in THEIRS}
        if gone := [name for name, paths in found.items() if not paths]:
            raise ExtensionError(f"no {', '.join(gone)} in _static: has a theme or an extension renamed its style?")
        sheets = [path for paths in found.values() for path in paths]
        newest = max(path.stat().st_mtime for path in STATIC.glob("*.css"))
        if app.tags.has("watch") and newest < (pages / "_static" / "book.css").stat().st_mtime:
            return
        content = [*pages.rglob("*.html"), *(pages / "_static").rglob("*.js")]
        content = [path for path in content if not path.relative_to(pages).as_posix().startswith(NO_PAGES)]
        css = purged(sheets, content)
        own = "".join((STATIC / name).read_text(encoding="utf-8") for name in OWN)
        (pages / "_static" / "book.css").write_text(css + palette.SHEET + own, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("config-inited", name_version)
    app.connect("build-finished", write_sheet, priority=900)  # when all pages are written, those of the pieces too
