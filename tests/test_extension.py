"""The book's own Sphinx extension, and what it left in the built pages."""

import ast
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import nbformat
import pytest
from browsing import Visit
from conftest import HTML, ROOT
from nbclient import NotebookClient
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

sys.path.insert(0, str(ROOT / "_ext"))
import rope_book
import statements

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
    code = "\n".join(cell.source for cell in notebook.cells)
    limit = 80_000 if "lab import results" in code else 1_700_000 if "lab.experiments" in code else 70_000
    assert len(notebook.cells[0].source) < limit  # results travel as data, and so does the trained model
    ours = "n.split('.')[0] in ('rope_lib', 'figures', 'lab')"
    files = f"(m.__file__ for n, m in sys.modules.items() if {ours} and m.__file__)"
    where = nbformat.v4.new_code_cell(f"import sys; print(*{files}, sep='\\n')")
    notebook.cells.append(where)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    imported = where.outputs[0].text.splitlines()
    assert imported
    assert all("book.zip" in file for file in imported)
    assert list(tmp_path.iterdir()) == []


def test_travelling_cell_is_the_same_each_time_and_carries_what_is_needed():
    notebook = json.loads((ROOT / "chapters" / "04_rope_from_complex_numbers.ipynb").read_text(encoding="utf-8"))
    assert rope_book.travelling_cell(notebook) == rope_book.travelling_cell(notebook)
    carried = rope_book.files_of(rope_book.imports_of(notebook))
    assert {"rope_lib/symbolic.py", "rope_lib/rotary.py", "rope_lib/_checks.py", "figures/style.py"} <= set(carried)
    assert not {
        "rope_lib/scaling.py",
        "rope_lib/relative.py",
        "figures/__main__.py",
        "figures/decay.py",
        "lab/speed.py",
    } & set(carried)
    notebook = json.loads((ROOT / "chapters" / "08_linear_attention.ipynb").read_text(encoding="utf-8"))
    assert "lab/results/speed-cpu.json" in rope_book.files_of(rope_book.imports_of(notebook))


FIRST_CELL = """
import json, os, sys
changes, own = [], os.environ["TMPDIR"]
def watch(event, details):
    if event in ("os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.connect", "subprocess.Popen"):
        changes.append(event)
    writes = event == "open" and details[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir"):
        if not os.path.realpath(details[0]).startswith(own):
            changes.append([event, str(details[0])])
path, environment = list(sys.path), dict(os.environ)
sys.addaudithook(watch)
exec(sys.stdin.read())
assert (sys.path[1:], dict(os.environ)) == (path, environment)
import figures, lab, rope_lib, neighbour
print(json.dumps([changes, [module.__path__[0] for module in (figures, lab, rope_lib)], neighbour.__file__]))
"""


def test_first_cell_changes_nothing_that_is_installed(tmp_path):
    """No program, no network, no file but in a folder that goes. Others' modules of the same names lose."""
    notebook = json.loads((ROOT / "chapters" / "06_rope_in_code.ipynb").read_text(encoding="utf-8"))
    installed, own = tmp_path / "installed", tmp_path / "own"
    own.mkdir()
    for name in ("figures", "lab", "rope_lib", "neighbour"):
        for folder in (installed, tmp_path / "here"):
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.py").write_text("")
    cell = "".join(rope_book.travelling_cell(notebook)["source"])
    environment = os.environ | {"TMPDIR": str(own), "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", FIRST_CELL]
    done = subprocess.run(
        command, input=cell, env=environment, cwd=tmp_path / "here", capture_output=True, text=True, check=True
    )
    changes, ours, neighbour = json.loads(done.stdout)
    assert changes == []
    assert all("book.zip" in path for path in ours)
    assert "book.zip" not in neighbour
    assert list(own.iterdir()) == []
    assert "pip" not in cell.replace(re.search(r'b64decode\("(.*?)"', cell)[1], "")


def test_notebook_says_what_it_needs_and_whether_it_gains_from_a_gpu(html):
    said = {}
    for stem in STEMS:
        notebook = nbformat.read(html / "_sources" / "chapters" / f"{stem}.ipynb", as_version=4)
        line = notebook.cells[0].source.splitlines()[2]
        needed = re.fullmatch(r"# The notebook needs ([\w, ]+)\. It needs no network and no GPU(; .*)?\.", line)
        assert set(needed[1].split(", ")) <= {"matplotlib", "mpmath", "numpy", "sympy", "torch", "tqdm"}
        said[stem] = bool(needed[2])
        assert (notebook.metadata.get("accelerator") == "GPU") == said[stem]
    assert [stem for stem, gains in said.items() if gains] == ["08_linear_attention"]


def test_theorems_have_anchors_and_an_index(html):
    index = (html / "chapters" / "theorems.html").read_text(encoding="utf-8")
    stated = []
    for stem in STEMS:
        for cell in nbformat.read(ROOT / "chapters" / f"{stem}.ipynb", as_version=4).cells:
            heads = re.findall(r"^> \*\*(?:Theorem|Corollary) [\d.]+\d", cell.source, re.MULTILINE)
            stated += [(stem, head.split("**")[1]) for head in heads if cell.cell_type == "markdown"]
    assert len(stated) >= 10
    places = []
    for stem, name in stated:
        anchor = name.lower().replace(" ", "-").replace(".", "-")
        places.append(index.index(f'href="{stem}.html#{anchor}">{name}'))
        page = (html / "chapters" / f"{stem}.html").read_text(encoding="utf-8")
        assert re.search(rf'<blockquote class="rb-statement [^>]*id="{anchor}"', page)
    assert places == sorted(places)


# -- A small book, built for each question -----------------------------------------------------------------------------

TOC = """# A book

```{toctree}
:numbered: 1
one
two
```
```{toctree}
plain
```
"""
THEOREM = "> **Theorem 1.1 (a name).** *Proved by cells.* It holds."


class Book:
    """Pages of a book in tmp_path, built with the book's extension; what Sphinx warned of."""

    def __init__(self, folder, files):
        folder.mkdir(parents=True)
        pages = {"index.md": TOC, "two.md": "# Two", "plain.md": "# Plain"} | files
        if "one.ipynb" not in files:
            pages = {"one.md": "# One"} | pages
        for name, content in pages.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")
        settings = {
            "extensions": ["myst_nb", "sphinxcontrib.bibtex", "rope_book"],
            "bibtex_bibfiles": [],
            "myst_enable_extensions": ["dollarmath"],
            "nb_execution_mode": "off",
            "numfig": True,
            "root_doc": "index",
        }
        self.out = folder / "_build"
        warnings = io.StringIO()
        with docutils_namespace():
            app = Sphinx(folder, None, self.out, folder / "_trees", "html", settings, status=None, warning=warnings)
            app.build()
        self.warnings = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue())

    def __getitem__(self, page):
        """The article of a page, white space and tags of no interest left out."""
        text = (self.out / f"{page}.html").read_text(encoding="utf-8")
        text = re.search(r'<div class="body" role="main">(.*?)<div class="clearer">', text, re.DOTALL)[1]
        return " ".join(re.sub(r'<span class="pre">(.*?)</span>|<a class="headerlink".*?</a>', r"\1", text).split())


@pytest.fixture
def book(tmp_path):
    return lambda **files: Book(tmp_path / "book", {f"{name}.md": text for name, text in files.items()})


@pytest.mark.parametrize(("mark", "word"), statements.MARKS.items())
def test_a_mark_becomes_a_badge(mark, word, book):
    made = book(one=f"# One\n\n> **Theorem 1.1 (a name).** *{mark}* It holds, *mostly*.")
    shown, stop = mark[:-1], '<span class="visually-hidden">.</span>'
    assert (
        f'</strong> <span class="rb-mark rb-mark-{word}">{shown}{stop}</span> It holds, <em>mostly</em>.' in made["one"]
    )
    assert made.warnings == ""


@pytest.mark.parametrize("kind", statements.INDEXED)
@pytest.mark.parametrize("rest", ["It holds.", "*Proved.* It holds.", "It holds. *Cited.*", "Cited. It holds.", ""])
def test_a_statement_without_a_mark_is_a_warning(kind, rest, book):
    made = book(one=f"# One\n\n> **{kind} 1.1 (a name).** {rest}")
    assert f"{kind} 1.1 (a name). has no mark" in made.warnings
    assert "*Proved by hand.*, *Proved by hand and by cells.*" in made.warnings


def test_an_exercise_needs_no_mark(book):
    made = book(one="# One\n\n> **Exercise 1.1 (★, 5 minutes).** Why?")
    assert made.warnings == ""
    assert 'class="rb-statement rb-exercise"' in made["one"]


def test_names_of_statements_become_links(book):
    heads = {
        "Theorem 1.1": "*Cited.*",
        "Theorem 1.2 (more)": "*Cited.*",
        "Corollary 1.3": "*Cited.*",
        "Exercise 1.1": "",
    }
    first = "\n\n".join(["# One", *(f"> **{head}.** {mark} By Theorem 1.1." for head, mark in heads.items())])
    second = """# Two

## After Theorem 1.1

See Theorem 1.1, Corollary 1.3, theorem 1.1, Theorem 1, and Exercise 1.1. Theorem 1.1, 9.9 times.

Theorems 1.1 and 1.2, Corollaries 1.3, Theorems 1.1, 1.2, and\n1.1 to 1.2; Theorem\n1.2.

`Theorem 1.1`, $\\text{Theorem 1.1}$, [Theorem 1.1](https://example.org), *Theorem 1.1*.

    Theorem 1.1
"""
    made = book(one=first, two=second)
    assert made.warnings == ""
    assert '<strong class="rb-head">Theorem 1.1.</strong>' in made["one"]
    assert 'By <a class="reference internal" href="#theorem-1-1">Theorem 1.1</a>.' in made["one"]
    links = re.findall(r'<a class="reference internal" href="one.html#([\w-]+)">(.*?)</a>', made["two"])
    assert links == [
        ("theorem-1-1", "Theorem 1.1"), ("corollary-1-3", "Corollary 1.3"), ("exercise-1-1", "Exercise 1.1"),
        ("theorem-1-1", "Theorem 1.1"),
        ("theorem-1-1", "Theorems 1.1"), ("theorem-1-2", "1.2"), ("corollary-1-3", "Corollaries 1.3"),
        ("theorem-1-1", "Theorems 1.1"), ("theorem-1-2", "1.2"), ("theorem-1-1", "1.1"), ("theorem-1-2", "1.2"),
        ("theorem-1-2", "Theorem 1.2"), ("theorem-1-1", "Theorem 1.1"),
    ]  # fmt: skip
    assert "<h2>After Theorem 1.1</h2>" in made["two"]
    assert "</a>, theorem 1.1, Theorem 1, and <a" in made["two"]


def test_a_name_that_is_stated_nowhere_is_a_warning(book):
    made = book(one=f"# One\n\n{THEOREM}\n\nSee Theorem 1.2, Exercise 1.1 and Corollary 1.1.")
    for name in ("Theorem 1.2", "Exercise 1.1", "Corollary 1.1"):
        assert f"{name} is stated nowhere" in made.warnings
    assert "one.md:5" in made.warnings
    assert "See Theorem 1.2, Exercise 1.1 and Corollary 1.1." in made["one"]


def test_the_index_of_theorems(book):
    one = r"""# One

> **Theorem 1.1 (a name).** *Proved by hand.* For *all* $x$, e.g. $x = 1.5$, with `code`,
>
> $$x = x. \tag{1.1}$$
>
> Second sentence.

> **Exercise 1.1 (★, 5 minutes).** Why?

> **Corollary 1.2.** *Measured.* By Theorem 1.1 it holds. It does.
"""
    two = "# Two\n\n> **Lemma 2.1 (last).** *Cited.* It follows from Theorem 1.1"
    plain = "# Plain\n\nBy Lemma 2.1 and Theorem 1.1.\n\n```{theorem-index}\n```"
    made = book(one=one, two=two, plain=plain)
    assert made.warnings == ""
    table = re.search(r"<table.*</table>", made["plain"])[0]
    rows = [re.findall(r"<t[hd].*?</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", table)]
    text = [[re.sub(r"<.*?>", "", cell).strip() for cell in row] for row in rows]
    assert text == [
        ["Number", "Statement", "Mark", "Used in"],
        ["1. One"],
        [
            "Theorem 1.1",
            r"A name. For all \(x\), e.g. \(x = 1.5\), with code, \(x = x.\)",
            "Proved by hand.",
            "2; Plain",
        ],
        ["Corollary 1.2", "By Theorem 1.1 it holds.", "Measured.", ""],
        ["2. Two"],
        ["Lemma 2.1", "Last. It follows from Theorem 1.1", "Cited.", "Plain"],
    ]
    assert 'colspan="4"' in rows[1][0]
    assert '<a class="reference internal" href="one.html#theorem-1-1">Theorem 1.1</a>' in rows[3][1]
    assert '<a class="reference internal" href="two.html" title="2. Two">2</a>' in rows[2][3]
    assert "tex-svg.js" in (made.out / "plain.html").read_text() or "MathJax" in (made.out / "plain.html").read_text()


def test_marks_can_be_shown_and_must_be_known(book):
    made = book(plain="# Plain\n\n{rb-mark}`Cited.` {rb-mark}`Sung.`")
    assert '<span class="rb-mark rb-mark-cited">Cited' in made["plain"]
    assert "Sung. is no mark" in made.warnings


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_badges_can_be_read(scheme, browser):
    """Contrast of at least 4.5 (WCAG 2.2, 1.4.3); the index of theorems explains all of them."""

    def luminance(colour):
        channels = [int(channel) / 255 for channel in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    with Visit(browser, f"{HTML.as_uri()}/chapters/theorems.html", scheme=scheme) as visit:
        for word in statements.MARKS.values():
            style = visit.page.locator(f".rb-mark-{word}").first.evaluate(
                "node => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]"
            )
            dark, light = sorted(map(luminance, style))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (word, style)


def test_index_of_theorems_scrolls_on_a_phone_and_says_so(browser):
    with Visit(browser, f"{HTML.as_uri()}/chapters/theorems.html", width=360) as visit:
        box = visit.page.locator("div:has(> table.rb-index)")
        assert box.evaluate("node => node.scrollWidth > node.clientWidth && node.clientWidth < 360")
        assert "scroll" in box.evaluate("node => getComputedStyle(node, '::before').content")


def test_a_solution_opens_without_a_script(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{HTML.as_uri()}/chapters/01_why_position.html")
    fold = page.locator("article details", has=page.get_by_text("Solution", exact=True)).first
    assert not fold.locator(".cell_input").is_visible()
    fold.locator("summary").click()
    assert fold.locator(".cell_input").is_visible()
    assert fold.locator("summary").count() == 1
    context.close()


COUNTED = """# One

> **In this chapter.** Much.
>
> **Time:** 25 minutes to read, 10 seconds to run.

> **Theorem 1.1.** *Proved by hand.* A.

> **Corollary 1.2.** *Proved by cells.* A.

> **Exercise 1.1 (★, 5 minutes).** Why?

> **Exercise 1.2 (★★, 1500 minutes).** Why?

```{figure} a.svg
A caption.
```

<div class="rope-piece"></div>
"""


def test_numbers_are_counted(book, tmp_path):
    wanted = [
        "chapters", "theorems", "by-hand", "by-cells", "by-hand-and-cells", "measured", "cited", "exercises",
        "exercise-minutes", "reading-minutes", "figures", "pieces", "attacks-tried", "attacks-refused",
    ]  # fmt: skip
    places = " ".join(f'<span data-count="{word}">more than 0</span>' for word in wanted)
    files = {
        "a.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
        "one.md": COUNTED,
        "plain.md": f"# Plain\n\n**Time:** 7 minutes to read\n\n{places}.",
        "tests/data/attack.json": json.dumps({"counts": {"total": {"refused": 39, "survived": 1}}}),
    }
    made = Book(tmp_path / "book", files)
    assert made.warnings == ""
    assert "<p>2 2 1 1 0 0 0 2 1,505 25 1 1 40 39.</p>" in made["plain"]


@pytest.mark.parametrize("word", ["theorem", "attacks-tried"])  # no such word; no such file
def test_a_number_that_nobody_counts_is_a_warning(word, book):
    made = book(plain=f'# Plain\n\n<span data-count="{word}">some</span>')
    assert f"'{word}' is not counted; these are: chapters, figures" in made.warnings


def test_words_that_promise_more_than_there_is_are_a_warning(book):
    """They are what a reader sees where the book is not built."""
    made = book(plain='# Plain\n\n<span data-count="figures">more than 1,000</span>')
    assert "'more than 1,000' is too much: there are 0 figures" in made.warnings
    assert "<p>0</p>" in made["plain"]


def test_figures_are_counted_by_chapter(tmp_path):
    files = {"a.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>"}
    pages = ("one", "two", "plain")
    for page in pages:
        figures = [f"```{{figure}} a.svg\n:name: {page}-{name}\nA caption.\n```" for name in "ab"]
        files[f"{page}.md"] = "\n\n".join([f"# {page}", "## Section", *figures])
    made = Book(tmp_path / "book", files)
    assert made.warnings == ""
    numbers = {page: re.findall(r'<span class="caption-number">(.*?) </span>', made[page]) for page in pages}
    assert numbers == {"one": ["Fig. 1.1", "Fig. 1.2"], "two": ["Fig. 2.1", "Fig. 2.2"], "plain": []}
    assert re.search(r"<h1><span class=\"section-number\">2. </span>two</h1><section|2. </span>two", made["two"])
    assert 'section-number">2.1' not in made["two"]


# -- Folded solutions --------------------------------------------------------------------------------------------------


def notebook_of(*cells):
    """A notebook: strings are Markdown, pairs are code with its metadata."""
    make = nbformat.v4
    made = [make.new_markdown_cell(cell) if isinstance(cell, str) else make.new_code_cell(
        cell[0], metadata=cell[1], execution_count=1, outputs=[make.new_output("stream", text="printed")])
        for cell in cells]  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.writes(make.new_notebook(cells=made, metadata={"kernelspec": kernel}))


HIDDEN = {"tags": ["hide-cell"], "jupyter": {"source_hidden": True, "outputs_hidden": True}}
PROMPTS = {"mystnb": {"code_prompt_show": "Show", "code_prompt_hide": "Hide"}, "tags": ["hide-cell"]}
SOLUTION = "<details><summary>Solution</summary>\n\nBecause $x$.\n\n</details>"


def folded(tmp_path, *cells):
    made = Book(tmp_path / "book", {"one.ipynb": notebook_of("# One", *cells)})
    assert made.warnings == ""
    return made["one"]


def test_a_solution_and_its_cell_are_in_one_fold(tmp_path):
    page = folded(tmp_path, SOLUTION, ("check()", HIDDEN), "Afterwards.", ("seen()", {}))
    fold = re.search(r"<details><summary>Solution</summary> <p>Because .*?</details>", page)[0]
    assert page.count("<details") == 1
    assert "check" in fold
    assert "printed" in fold
    assert "Afterwards" not in fold
    assert "seen" not in fold
    assert fold.index("Because") < fold.index("check") < fold.index("printed")


@pytest.mark.parametrize(
    "cells",
    [
        ("Text", ("check()", HIDDEN)),
        ("<details><summary>Hint</summary>\n\nThink.\n\n</details>", ("check()", HIDDEN)),
        (SOLUTION + "\n\nText", ("check()", HIDDEN)),
        (SOLUTION, ("seen()", {}), ("check()", HIDDEN)),
        (SOLUTION, "<details><summary>Hint</summary>\n\nThink.\n\n</details>", ("check()", PROMPTS)),
        ("Text", ("check()", PROMPTS)),
    ],
)
def test_other_hidden_cells_keep_their_own_fold(cells, tmp_path):
    page = folded(tmp_path, *cells)
    own = re.search(r'<details class="admonition hide.*?</details>', page)[0]
    assert "check" in own


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
            if anchor and file in pages:
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

    Example:
        >>> turn({} | {})
    """
'''
    entry = "\n".join(rope_book.describe(ast.parse(source).body[0]))
    assert entry.startswith(".. py:function:: turn(x, *, by=0.5)\n\n   Turn x; see :py:obj:`cos_sin`.")
    assert r"**x** -- (n,), with \|x\| = 1." in entry
    assert ":raises ValueError: never." in entry
    assert ">>> turn({} | {})" in entry
