"""A build in any folder, and after any other, gives the same pages. Tried on four chapters and what lists them."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

LEFT_OUT = re.compile(r" +- file: chapters/(?!doctor|run_it|07|09|11|12|glossary|theorems|bibliography)\w+\n")
BUILD = "from jupyter_book.cli.main import main; main()"


def build(folder):
    """What `make book` does, in a copy of the book."""
    command = [sys.executable, "-c", BUILD, "build", folder, "-q"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", cwd=folder)
    assert done.returncode == 0, done.stdout
    pages = folder / "_build" / "html"
    return {path.relative_to(pages).as_posix(): path.read_bytes() for path in pages.rglob("*") if path.is_file()}


def copied(folder):
    others = shutil.ignore_patterns(".*", "_build", "build", "tests", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=others)
    pages, toc = folder / "chapters", folder / "_toc.yml"
    toc.write_text(LEFT_OUT.sub("", toc.read_text(encoding="utf-8")), encoding="utf-8")
    for page in (*pages.glob("*.md"), *pages.glob("*.ipynb")):
        if page.stem != "index" and f"chapters/{page.stem}\n" not in toc.read_text(encoding="utf-8"):
            page.unlink()
    return folder


def changed(folder):
    """One page has another section, and another caption."""
    path = folder / "chapters" / "07_long_range_decay.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text = next(cell for cell in notebook["cells"] if cell["source"][0].startswith("## "))
    text["source"][:0] = ["## A section\n", "\n", "That nobody has seen, $x_{77}$.\n", "\n"]
    figure = next(cell["metadata"]["mystnb"]["figure"] for cell in notebook["cells"] if "mystnb" in cell["metadata"])
    figure["caption"] = f"**Another caption.** {figure['caption']}"
    path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")
    return folder


def different(one, other):
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@pytest.mark.slow
def test_each_build_gives_the_pages_of_a_fresh_one(tmp_path):
    folder = copied(tmp_path / "book (1) [2] {3}")  # what browsers and people make of a second copy
    fresh = build(folder)
    assert different(fresh, build(folder)) == []  # nothing to do
    after = build(changed(folder))
    assert len(different(fresh, after)) > 1
    other = build(changed(copied(tmp_path / "other")))
    assert different(after, other) == []
