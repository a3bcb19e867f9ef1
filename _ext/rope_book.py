"""The book's own Sphinx extension: one module for each thing that a page has, and this list of them."""

import hashlib
import sys
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parent.parent
PARTS = (
    "head", "styles", "statements", "formulas", "drawings", "pieces", "folds",
    "predict", "live", "engine", "languages", "bibliography", "search", "reference", "travelling", "tables", "wall",
    "line_ends",
)  # fmt: skip


def version_of(*suffixes: str, folders: tuple[str, ...] = ("_ext",)) -> str:
    """What changes with one of the files."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def setup(app: Sphinx) -> dict:
    """Connect the parts. The library and the figures are not installed where only pages are built."""
    sys.path.insert(0, str(ROOT))
    try:
        import_module("_ext.fetched").fetch_if_needed()
    except OSError as error:
        raise ExtensionError(str(error)) from None
    import_module("_ext.interrupted").begin(app)
    for part in PARTS:
        import_module(f"_ext.{part}").setup(app)
    # When the extension changes, all pages are read again; when only a style, a script or the code that their notebooks
    # carry does, they are written again.
    app.add_config_value("extension_version", version_of(".py", ".mjs", ".html"), "env")
    app.add_config_value("static_version", version_of(".css", ".js"), "html")
    app.add_config_value(
        "code_version", version_of(".py", ".js", ".json", ".npz", folders=("rope_lib", "lab", "figures")), "html"
    )
    app.add_js_file("reading.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
