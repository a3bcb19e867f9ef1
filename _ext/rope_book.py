"""The book's own Sphinx extension: one module for each thing that a page has, and this list of them."""

import hashlib
import sys
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx

PARTS = (
    "head", "styles", "foot", "statements", "formulas", "drawings", "pieces", "folds",
    "predict", "live", "languages", "bibliography", "search", "reference", "travelling",
)  # fmt: skip


def setup(app: Sphinx) -> dict:
    """Connect the parts. The library and the figures are not installed where only pages are built."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    for part in PARTS:
        import_module(part).setup(app)
    # When the extension itself changes, all pages are read again.
    paths = [path for path in Path(__file__).parent.rglob("*") if path.suffix in {".py", ".mjs", ".html"}]
    sources = b"".join(path.read_bytes() for path in sorted(paths))
    app.add_config_value("extension_version", hashlib.sha256(sources).hexdigest(), "env")
    app.add_js_file("reading.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
