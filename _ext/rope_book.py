"""The book's own Sphinx extension: figures in the theme's colours, folds, notebooks that travel.

Its other parts: statements.py reads theorems and exercises, theorem_index.py lists them, source_map.py lists what the
chapters cover of the five documents, counts.py counts, reading.py keeps a page readable on any screen and aloud,
weight.py decides what a page loads, MathJax too, papers.py names the entries of the bibliography, foot.py writes the
foot, sections.py the search, live.py runs a cell in the page, and predict.py hides what is to be predicted.
"""

import ast
import base64
import functools
import html
import io
import json
import re
import sys
import tempfile
import zipfile
from modulefinder import ModuleFinder
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "figures" / "out"


# -- The reference, from docstrings ------------------------------------------------------------------------------------


class ApiReference(SphinxDirective):
    """Describe the public functions and classes of a module, read but not run: the pages are built without torch."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        module = ast.parse(path.read_text())
        lines = [*marked(ast.get_docstring(module)).splitlines(), ""]
        for node in module.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                lines += describe(node)
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source=str(path)), self.content_offset, container)
        return container.children


@functools.cache
def described_names() -> set[str]:
    """What the reference page has an entry for: words in backticks that are among them become links."""
    paths = [path for path in (ROOT / "rope_lib").glob("[a-z]*.py") if path.stem != "reference"]
    nodes_ = [node for path in paths for node in ast.parse(path.read_text()).body]
    entries = [node for node in nodes_ if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    methods = {f"{node.name}.{child.name}" for node in entries for child in getattr(node, "body", ())
               if isinstance(node, ast.ClassDef) and isinstance(child, ast.FunctionDef)}  # fmt: skip
    return {node.name for node in entries} | methods


def marked(docstring: str) -> str:
    """Words in backticks become links, or code where no entry has that name; a bar is a bar, and examples stay."""
    known = described_names()
    lines = (one if one.lstrip().startswith(">>>") else one.replace("|", "\\|") for one in docstring.splitlines())
    return re.sub(
        r"`([^`]+)`",
        lambda match: f":py:obj:`{match[1]}`" if match[1] in known else f"``{match[1]}``",
        "\n".join(lines),
    )


def describe(node: ast.FunctionDef | ast.ClassDef, kind: str = "function") -> list[str]:
    """An entry in reStructuredText: signature without types, docstring, and for a class its public methods."""
    methods = {child.name: child for child in node.body if isinstance(child, ast.FunctionDef)}
    caller = node if isinstance(node, ast.FunctionDef) else methods.get("__init__")
    arguments = ast.unparse(without_types(caller.args)).removeprefix("self, ") if caller else ""
    # Without use_param, as arguments that share a line would each repeat it.
    settings = Config(napoleon_custom_sections=["Source"], napoleon_use_rtype=False, napoleon_use_param=False)
    entry = GoogleDocstring(marked(ast.get_docstring(node)), settings).lines()
    kind = "class" if isinstance(node, ast.ClassDef) else kind
    for name, method in methods.items() if kind == "class" else ():
        if not name.startswith("_"):
            entry += ["", *describe(method, "method")]
    return [f".. py:{kind}:: {node.name}({arguments})", "", *(f"   {line}" for line in entry), ""]


def without_types(arguments: ast.arguments) -> ast.arguments:
    """The docstrings say what is needed, shapes included."""
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    return arguments


# -- Links [Su et al. 2021](bibliography.md#su2021) --------------------------------------------------------------------


def bibliography_anchors(app: Sphinx, env: BuildEnvironment) -> None:
    """Tell MyST which entries the bibliography has, so that links reach them and a link to no entry is a warning."""
    bibliography = env.get_domain("cite")
    for place in bibliography.bibliographies:
        slugs = env.metadata[place.docname].setdefault("myst_slugs", {})
        slugs.update({key: (0, key, key) for key in bibliography.bibdata.data.entries})


# -- Figures -----------------------------------------------------------------------------------------------------------


class InlineFigures(SphinxPostTransform):
    """In HTML, replace the picture of figure `fig-name` by figures/out/name.svg, drawn in the colours of the theme.

    The form for a phone, name.narrow.svg, stands beside it; the style sheet shows one of the two.
    """

    default_priority = 10
    formats = ("html",)

    def run(self, **kwargs) -> None:
        letters = set()
        for figure in self.document.findall(nodes.figure):
            name = next((i.removeprefix("fig-").replace("-", "_") for i in figure["ids"] if i.startswith("fig-")), None)
            path = FIGURES / f"{name}.svg"
            image = next(iter(figure.findall(nodes.image)), None)
            if image is not None and path.exists():
                markup = inline_svg(path.read_text(encoding="utf-8"), name, image.get("alt", ""))
                if (narrow := path.with_suffix(".narrow.svg")).exists():
                    phone = inline_svg(narrow.read_text(encoding="utf-8"), f"{name}-n", image.get("alt", ""))
                    markup += phone.replace('class="rb-figure', 'class="rb-narrow rb-figure', 1)
                markup = each_letter_once(markup, letters)
                image.replace_self(nodes.raw("", f'<div class="rb-drawing">{markup}</div>', format="html"))


def inline_svg(text: str, name: str, alt: str) -> str:
    """The <svg> element alone: ids made unique, its styles left to the page's, alt text as its label."""
    svg = text[text.index("<svg") :]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    return re.sub(r"<svg ", f'<svg class="rb-figure" role="img" aria-label="{html.escape(alt)}" ', svg, count=1)


def each_letter_once(markup: str, letters: set[str]) -> str:
    """The outlines of letters are the same in every figure: a page needs them once, in the figure that comes first."""

    def first(outline: re.Match) -> str:
        new = outline[1] not in letters
        letters.add(outline[1])
        return outline[0] if new else ""

    markup = re.sub(r'(\bid="|href="#)[\w-]*?-(DejaVu[\w-]+")', r"\1\2", markup)
    return re.sub(r'<path id="(DejaVu[^"]+)"[^>]*/>', first, markup)


def number_figures_of_chapters(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Figures are counted by chapter, "Fig. 4.3"; those of a page without a number have none."""
    for page in list(env.toc_fignumbers):
        if not env.titles[page].get("secnumber"):
            del env.toc_fignumbers[page]
    return []


# -- Folded solutions --------------------------------------------------------------------------------------------------


def fold_with_solution(app: Sphinx, doctree: nodes.document) -> None:
    """A hidden cell right behind a solution, <details> in Markdown, goes to its end and needs no fold of its own."""
    for cell in list(doctree.findall(nodes.container)):
        end = cell.previous_sibling() if cell.get("hide_mode") == "all" else None
        if isinstance(end, nodes.raw) and end.astext().strip() == "</details>":
            before = cell.parent[: cell.parent.index(end)]
            folds = [raw.astext() for raw in before if isinstance(raw, nodes.raw) and "<details" in raw.astext()]
            if folds and "<summary>Solution" in folds[-1]:
                del cell["hide_mode"]
                cell.parent.remove(cell)
                end.parent.insert(end.parent.index(end), cell)


# -- Notebooks that run in an empty folder -----------------------------------------------------------------------------


def imports_of(notebook: dict) -> ModuleFinder:
    """The modules that the notebook imports, directly or through one another: the book's found, all others missing."""
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as script:
        script.write(re.sub(r"^%.*", "", code, flags=re.MULTILINE))
        script.flush()
        finder = ModuleFinder(path=[str(ROOT)])
        finder.run_script(script.name)
    return finder


def needs(finder: ModuleFinder) -> list[str]:
    """What has to be installed, beside the notebook's own IPython."""
    found, missing = ({name.split(".")[0] for name in names} for names in (finder.modules, finder.badmodules))
    return sorted(missing - found - sys.stdlib_module_names - {"IPython"})


def files_of(finder: ModuleFinder) -> dict[str, bytes]:
    """What is needed of the book, by path."""
    files = (Path(module.__file__) for module in finder.modules.values() if module.__file__)
    paths = {path for path in files if path.is_relative_to(ROOT)}
    for reader, folder in (("results.py", "results"), ("experiments.py", "trained")):
        if ROOT / "lab" / reader in paths:
            paths.update((ROOT / "lab" / folder).glob("*.[jmn]*"))  # data, and whose it is
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in sorted(paths)}


def gains(notebook: dict) -> bool:
    """Whether a GPU would show more: a cell that measures time does it there."""
    measured = [cell for cell in notebook["cells"] if "nbval-ignore-output" in cell["metadata"].get("tags", [])]
    return any("default_device" in "".join(cell["source"]) for cell in measured)


def travelling_cell(notebook: dict) -> dict:
    """A first cell that carries what the notebook imports as a zip archive which Python imports from."""
    buffer, finder = io.BytesIO(), imports_of(notebook)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files_of(finder).items():
            info = zipfile.ZipInfo(name)  # a fixed date: the same bytes in each build
            archive.writestr(info, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    gpu = "; with one, it measures its times there" if gains(notebook) else ""
    lines = [
        "# The code of the book travels in this cell, zipped (MIT). Nothing that is installed is changed:",
        "# Python imports the book's modules from a folder that goes when the session ends.",
        f"# The notebook needs {', '.join(needs(finder))}. It needs no network and no GPU{gpu}.",
        "import base64, pathlib, sys, tempfile",
        "",
        "book_folder = tempfile.TemporaryDirectory()",
        'archive = pathlib.Path(book_folder.name, "book.zip")',
        f'archive.write_bytes(base64.b64decode("{base64.b64encode(buffer.getvalue()).decode()}"))',
        "sys.path.insert(0, str(archive))",
    ]
    source = [line + "\n" for line in lines[:-1]] + lines[-1:]
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "book-code",
        "metadata": {"tags": ["hide-input"], "jupyter": {"source_hidden": True}},
        "outputs": [],
        "source": source,
    }


def pack_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Replace the notebooks behind the download buttons by copies that carry the library."""
    if exception is not None or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if notebook["cells"][0].get("id") != "book-code":
            if gains(notebook):
                notebook["metadata"]["accelerator"] = "GPU"  # Colab then asks for one
            notebook["cells"].insert(0, travelling_cell(notebook))
            path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


# -- The page ----------------------------------------------------------------------------------------------------------


def no_buttons_without_address(app: Sphinx, config) -> None:
    """While the repository's address is unset, a launch button would lead to somebody else's repository."""
    if not config.html_theme_options.get("repository_url"):
        config.html_theme_options.pop("launch_buttons", None)


def describe_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """A meta description for each chapter: the text of its first quote."""
    if doctree is None or 'name="description"' in context.get("metatags", ""):
        return
    quote = next((q for q in doctree.findall(nodes.block_quote) if "rb-summary" in q["classes"]), None)
    text = quote[0].astext() if quote else next((p.astext() for p in doctree.findall(nodes.paragraph)), "")
    text = " ".join(text.removeprefix("In this chapter.").split())
    context["metatags"] = context.get("metatags", "") + f'\n<meta name="description" content="{html.escape(text)}" />'


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    parts = "statements", "theorem_index", "source_map", "counts", "live", "reading", "cards", "head"
    for part in (*parts, "foot", "papers", "sections", "predict", "weight"):
        app.setup_extension(part)
    app.add_directive("api-reference", ApiReference)
    app.add_post_transform(InlineFigures)
    app.connect("config-inited", no_buttons_without_address)
    app.connect("doctree-read", fold_with_solution)
    app.connect("env-updated", bibliography_anchors)
    app.connect("env-get-updated", number_figures_of_chapters, priority=900)  # after Sphinx has counted
    app.connect("html-page-context", describe_page)
    app.connect("build-finished", pack_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
