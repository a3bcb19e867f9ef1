"""The reference: an entry for every public name of rope_lib, from its docstring."""

import ast
import re

from _ext import reference
from tests.conftest import ROOT


def test_reference_page_has_every_public_name(html):
    """And nothing else: names come from the modules, where a function or class does not begin with an underscore."""
    public = {
        node.name
        for path in (ROOT / "rope_lib").rglob("*.py")
        if path.name[0] != "_" or path.name == "__init__.py"
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and path.stem != "reference"
    }
    page = (html / "chapters" / "reference.html").read_text()
    described = re.findall(r'<dt class="sig sig-object py" id="rope_lib\.(?:theory\.)?\w+\.([\w.]+)"', page)
    assert len(described) == len(set(described))
    assert {name for name in described if "." not in name} == public
    assert "RotaryEmbedding.forward" in described
    assert "RotaryEmbedding(rotary_dim=None,*,interleaved,base=None" in re.sub(r"<.*?>|\s", "", page)


def test_an_entry_reads_markdown_and_leaves_examples_alone():
    lines = ["With |x| = 1; see `cos_sin`.", ">>> turn({} | {})"]
    reference.read_markdown(None, "function", "turn", None, None, lines)
    assert lines == [r"With \|x\| = 1; see `cos_sin`.", ">>> turn({} | {})"]


def test_entries_link_to_each_other_and_show_no_types(html):
    page = (html / "chapters" / "reference.html").read_text(encoding="utf-8")
    assert re.search(r'<a class="reference internal" href="#rope_lib.frequencies.cos_sin"', page)
    assert "problematic" not in page
    assert "Tensor" not in re.search(r'<dt class="sig[^>]*rope_lib.formula.rotate_pairs.*?</dt>', page, re.DOTALL)[0]
