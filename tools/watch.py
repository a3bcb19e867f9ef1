"""Serve the pages; when a source is saved, write its page again and let the browser show it: python -m tools.watch 8000

All that a build imports is there already, so that it takes about two seconds. Ended by Control and C.
"""

import contextlib
import multiprocessing
import os
import sys
import time
from pathlib import Path

from jupyter_book.config import get_final_config
from livereload import Server
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tools.serve import free_port

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "_build" / "html"
WATCHED = (
    *("chapters/*.ipynb", "chapters/*.md", "chapters/*.bib", "figures/out", "rope_lib/**/*.py"),
    *("_ext/static", "_ext/templates", "_config.yml", "_toc.yml"),
)

# A server that has imported all of the above copies itself for each build; Windows has none, and imports it each time.
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PROCESSES = multiprocessing.get_context(METHOD)


def build() -> None:
    """What `make book` does, less the start of Python."""
    begin = time.perf_counter()
    toc = str(ROOT / "_toc.yml")
    given = {"external_toc_path": toc, "latex_individualpages": False, "nitpicky": True}
    settings, _ = get_final_config(user_yaml=ROOT / "_config.yml", sourcedir=ROOT, cli_config=given)
    with patch_docutils(str(ROOT)), docutils_namespace(), contextlib.suppress(KeyboardInterrupt):
        trees = ROOT / "_build" / ".doctrees"
        Sphinx(ROOT, None, PAGES, trees, "html", settings, status=None, tags=["watch"]).build()
        print(f"The pages are up to date ({time.perf_counter() - begin:.1f} s).", flush=True)


def in_a_process_of_its_own() -> None:
    """Sphinx and its extensions count chapters and more in modules, and would go on counting."""
    process = PROCESSES.Process(target=build)
    process.start()
    process.join()


def main() -> None:
    port = free_port(sys.argv[1])
    os.chdir(ROOT)  # what is watched are patterns, and the path of this folder may hold what would be taken for one
    in_a_process_of_its_own()
    server = Server()
    for pattern in WATCHED:
        server.watch(pattern, in_a_process_of_its_own)
    server.serve(port=port, root=str(PAGES))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
