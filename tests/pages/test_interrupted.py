"""A build that was broken off leaves nothing that passes for whole."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

BUILD = """
import os, sys
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace
folder, moment = sys.argv[1:]
settings = {"extensions": ["myst_nb", "sphinxcontrib.bibtex", "_ext.rope_book"], "bibtex_bibfiles": [],
            "html_math_renderer": "temml", "nb_execution_mode": "off", "root_doc": "index"}
with docutils_namespace():
    app = Sphinx(folder, None, f"{folder}/out/html", f"{folder}/out/trees", "html", settings, status=None)
    if moment:
        app.connect(moment, lambda *_: os._exit(9))
    app.build()
"""


def build(folder, moment=""):
    """A build, or one that is killed when it comes to this moment, in a process of its own."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run([sys.executable, "-c", BUILD, folder, moment], env=environment, check=False).returncode


def written(folder):
    return {path.relative_to(folder): path.read_bytes() for path in (folder / "out" / "html").rglob("*.*")}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    (folder / "index.md").write_text("# A book\n\n```{toctree}\none\ntwo\n```\n", encoding="utf-8")
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text(f"# Page {name}\n\nWords.\n", encoding="utf-8")
    assert build(folder) == 0
    return folder, written(folder)


OTHERS = ("env-before-read-docs", "env-check-consistency", "html-page-context", "build-finished")


@pytest.mark.parametrize(
    "moment", ["doctree-read", *(pytest.param(moment, marks=pytest.mark.slow) for moment in OTHERS)]
)
def test_the_build_after_one_that_was_killed_is_whole(moment, book):
    folder, whole = book
    (folder / "one.md").write_text("# Page one\n\nWords.\n", encoding="utf-8")  # else there is nothing to do
    assert build(folder, moment) == 9
    assert (folder / "out" / "running").read_text() != ""
    assert build(folder) == 0
    assert written(folder) == whole


def test_a_whole_build_is_taken_up(book):
    folder, _ = book
    stale = folder / "out" / "html" / "kept.txt"
    stale.write_text("from the build before")
    assert build(folder) == 0
    assert stale.exists()
    stale.unlink()


def test_a_page_that_was_taken_out_is_gone(book):
    folder, whole = book
    (folder / "three.md").write_text("# Page three\n\nWords.\n", encoding="utf-8")
    index = folder / "index.md"
    before = index.read_text(encoding="utf-8")
    index.write_text(before.replace("two\n", "two\nthree\n"), encoding="utf-8")
    assert build(folder) == 0
    assert (folder / "out" / "html" / "three.html").exists()
    (folder / "three.md").unlink()
    index.write_text(before, encoding="utf-8")
    assert build(folder) == 0
    assert written(folder).keys() == whole.keys()
