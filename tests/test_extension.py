"""The book's own Sphinx extension, and what it left in the built pages."""

import ast
import json
import re
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

sys.path.insert(0, str(ROOT / "_ext"))
import rope_book

STEMS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))


class Links(HTMLParser):
    """All ids, links and pictures of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.images = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.add(attrs["id"])
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("img", "script", "link"):
            self.images.append(attrs.get("src") or attrs.get("href") or "")


def test_inlined_svg_clashes_with_nothing():
    text = '<?xml?><svg width="1"><style>*{}</style><path id="a"/><use href="#a" clip-path="url(#a)"/></svg>'
    svg = rope_book.inline_svg(text, "fig", 'a "wave"')
    assert svg.startswith('<svg class="rb-figure" role="img" aria-label="a &quot;wave&quot;"')
    assert 'id="fig-a"' in svg
    assert 'href="#fig-a" clip-path="url(#fig-a)"' in svg
    assert "style" not in svg


@pytest.mark.parametrize("stem", STEMS)
def test_downloaded_chapter_runs_in_an_empty_folder(stem, html, tmp_path):
    notebook = nbformat.read(html / "_sources" / "chapters" / f"{stem}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].id == "book-code"
    measured = any("lab.results" in cell.source or "lab import results" in cell.source for cell in notebook.cells)
    assert len(notebook.cells[0].source) < (60_000 if measured else 45_000)  # results travel as data
    where = nbformat.v4.new_code_cell("import rope_lib; print(rope_lib.__file__, figures.__file__)")
    notebook.cells.append(where)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert where.outputs[0].text.count("book.zip") == 2
    assert list(tmp_path.iterdir()) == []


def test_travelling_cell_is_the_same_each_time_and_carries_what_is_needed():
    notebook = json.loads((ROOT / "chapters" / "04_rope_from_complex_numbers.ipynb").read_text(encoding="utf-8"))
    assert rope_book.travelling_cell(notebook) == rope_book.travelling_cell(notebook)
    carried = rope_book.files_of(notebook)
    assert {"rope_lib/symbolic.py", "rope_lib/rotary.py", "rope_lib/_checks.py", "figures/style.py"} <= set(carried)
    assert not {
        "rope_lib/scaling.py",
        "rope_lib/relative.py",
        "figures/__main__.py",
        "figures/decay.py",
        "lab/speed.py",
    } & set(carried)
    notebook = json.loads((ROOT / "chapters" / "08_linear_attention.ipynb").read_text(encoding="utf-8"))
    assert "lab/results/speed-cpu.json" in rope_book.files_of(notebook)


def test_theorems_have_anchors_and_an_index(html):
    index = (html / "chapters" / "theorems.html").read_text(encoding="utf-8")
    stated = []
    for stem in STEMS:
        for cell in nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", as_version=4).cells:
            heads = re.findall(r"^> \*\*(?:Theorem|Corollary) [\d.]+\d", cell.source, re.MULTILINE)
            stated += [(stem, head.split("**")[1]) for head in heads if cell.cell_type == "markdown"]
    assert len(stated) >= 10
    for stem, name in stated:
        anchor = name.lower().replace(" ", "-").replace(".", "-")
        assert f'href="{stem}.html#{anchor}">{name}' in index
        page = (html / "chapters" / f"{stem}.html").read_text(encoding="utf-8")
        assert re.search(rf'<blockquote class="rb-statement [^>]*id="{anchor}"', page)


def test_every_internal_link_leads_somewhere(html):
    built = [path for path in html.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in built}
    checked = 0
    for path, page in pages.items():
        for link in page.links + page.images:
            if re.match(r"(https?|mailto|data|javascript):", link):
                continue
            target, anchor = urldefrag(link)
            file = (path.parent / unquote(target.split("?")[0])).resolve() if target else path
            assert file.exists(), f"{path.name}: {link}"
            if anchor and file in pages and path.name != "genindex.html":
                assert anchor in pages[file].ids | {"top"}, f"{path.name}: {link}"
            checked += 1
    assert checked > 100


def test_nothing_is_loaded_from_outside(html):
    for path in html.rglob("*.html"):
        assert "cdn." not in path.read_text(encoding="utf-8"), path.name
        outside = [link for link in Links(path.read_text(encoding="utf-8")).images if re.match(r"(https?:)?//", link)]
        assert outside == [], path.name


def test_every_figure_of_the_pages_has_a_text(html):
    count = 0
    for path in (html / "chapters").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        for figure in re.findall(r"<figure.*?</figure>", text, flags=re.DOTALL):
            assert re.search(r'<svg class="rb-figure" role="img" aria-label="[^"]{40,}"', figure), path.name
            count += 1
        assert "<img" not in re.sub(r'<img [^>]*alt="[^"]+"', "", text), path.name
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), [i for i in ids if ids.count(i) > 1][:5]
    assert count >= 10


def test_each_page_has_a_description(html):
    for path in (html / "chapters").glob("*.html"):
        assert path.read_text(encoding="utf-8").count('name="description"') == 1, path.name


@pytest.mark.parametrize("address", ["", "https://github.com/someone/some-book"])
def test_launch_buttons_need_an_address(address):
    class Config:
        pass

    Config.html_theme_options = {"repository_url": address, "launch_buttons": {"colab_url": "https://colab"}}
    rope_book.no_buttons_without_address(None, Config)
    assert ("launch_buttons" in Config.html_theme_options) is bool(address)


def test_reference_page_has_every_public_name(html):
    """And nothing else: names come from the modules, where a function or class does not begin with an underscore."""
    public = {
        node.name
        for path in (ROOT / "rope_lib").glob("[a-z]*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and path.stem != "reference"
    }
    page = (html / "chapters" / "reference.html").read_text()
    described = re.findall(r'<dt class="sig sig-object py" id="([\w.]+)"', page)
    assert len(described) == len(set(described))
    assert {name for name in described if "." not in name} == public
    assert "RotaryEmbedding.forward" in described


def test_entry_of_the_reference():
    source = '''
def turn(x: Tensor, *, by: float = 0.5) -> Tensor:
    """Turn x; see `cos_sin`.

    Args:
        x: (n,), with |x| = 1.

    Raises:
        ValueError: never.
    """
'''
    entry = "\n".join(rope_book.describe(ast.parse(source).body[0]))
    assert entry.startswith(".. py:function:: turn(x, *, by=0.5)\n\n   Turn x; see :py:obj:`cos_sin`.")
    assert r":param x: (n,), with \|x\| = 1." in entry
    assert ":raises ValueError: never." in entry
