"""The rules that keep the chapters readable everywhere: in the book, on GitHub, in JupyterLab, on Colab."""

import json
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if path.stem[0].isdigit()]  # the others are single pages, without exercises
MEASURES = ("10_does_it_work", "11_reading_the_evidence")  # models and published numbers: nothing to prove
DEFINES = ("rope_in_five_minutes",)  # its functions are there to be copied
TAGS = {"hide-cell", "hide-input", "nbval-ignore-output", "predict"}
FOLDED = {  # by the page, and so by JupyterLab
    "hide-input": {"source_hidden": True},
    "hide-cell": {"source_hidden": True, "outputs_hidden": True},
}
SECTIONS = ("## Exercises", "## Further reading")
HEADS = r"^> \*\*((?:Theorem|Corollary|Lemma|Proposition) \d+\.\d+)[^*]*\*\*(.*)"
MARKS = r" \*(Proved by hand\.|Proved by hand and by cells\.|Proved by cells\.|Measured\.|Cited\.)\*"
FORBIDDEN = {  # works in one place and fails in another
    r"^(```|~~~)\{|^:::": "a directive",
    r"\\begin\{align\*?\}|\\label|\\eqref": "bare align, \\label or \\eqref",
    r"^\$\$.*\$\$ *\([\w-]+\)": "an equation label",
    r"\{[a-z]+\}`": "a role",
    r"^\([\w-]+\)=": "a target",
    r"\[\^\w+\]": "a footnote",
    r"^\s*[-*] \[[ x]\]": "a task list",
    r"> \[!": "a GitHub alert",
    r"!\[[^\]]*\]\((?!http)": "a relative image",
    r"<div": "a div",
}

chapters = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def lines_outside_math(source: str) -> list[str]:
    return re.sub(r"\$\$.+?\$\$", "", source, flags=re.DOTALL).splitlines()


def test_there_are_chapters():
    assert len(CHAPTERS) >= 3


@notebooks
def test_canonical_form(path):
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert set(notebook.metadata) == {"kernelspec"}
    assert text == nbformat.writes(notebook) + "\n"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags", "mystnb", "jupyter", "break", "covers", "corrects"}, cell.id
        assert set(cell.metadata.get("tags", [])) <= TAGS, cell.id
        folded = [FOLDED[tag] for tag in cell.metadata.get("tags", []) if tag in FOLDED]
        assert [cell.metadata[key] for key in cell.metadata if key == "jupyter"] == folded, cell.id
        assert cell.source.strip(), cell.id


@notebooks
def test_every_cell_was_run_in_order_without_a_word_on_stderr(path):
    code = cells(path, "code")
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run `make chapters`"
    for cell in code:
        for output in cell.outputs:
            assert output.output_type != "error", cell.source
            assert output.get("name") != "stderr", cell.source


@notebooks
def test_code_is_short_and_defines_nothing(path):
    for cell in cells(path, "code"):
        assert len(cell.source.splitlines()) <= 16, cell.source
        if path.stem not in DEFINES and ".check(" not in cell.source:  # what a reader is asked to write
            assert not re.search(r"^\s*(class|def|async def) ", cell.source, re.MULTILINE), cell.source
        assert not cell.source.rstrip().endswith(";"), cell.source


@notebooks
def test_compared_output_holds_nothing_that_changes_from_run_to_run(path):
    for cell in cells(path, "code"):
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            continue
        shown = json.dumps([output for output in cell.outputs if output.output_type == "stream"])
        assert not re.search(r"/home|/tmp|/root|0x[0-9a-f]{6}|\bcuda\b|\bcpu\b", shown), shown
        assert not re.search(r"\d\.\d{8}", shown), f"more digits than two machines share: {shown}"


@notebooks
def test_figures_have_a_caption_a_name_and_a_text(path):
    drawn = 0
    for cell in cells(path, "code"):
        pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        if not pictures and "draw_" not in cell.source:
            continue
        drawn += 1
        match = re.fullmatch(r"figures\.(\w+)\.(draw_\w+)\(\)", cell.source)
        assert match, f"a figure cell is one call without parameters, so that the page can show its SVG: {cell.source}"
        assert hasattr(import_module(f"figures.{match[1]}"), match[2])
        assert len(pictures) == 1, "no picture is stored: is `%matplotlib inline` in the first cell?"
        settings = cell.metadata["mystnb"]
        assert settings["figure"]["name"] == "fig-" + match[2].removeprefix("draw_").replace("_", "-")
        assert settings["figure"]["caption"].endswith(".")
        assert len(settings["image"]["alt"]) > 40
    assert drawn >= 3 or path not in CHAPTERS


@chapters
def test_each_chapter_has_a_piece_to_play_with(path):
    cells_with_one = [cell for cell in cells(path, "code") if "explore_" in cell.source]
    assert cells_with_one
    for cell in cells_with_one:
        match = re.fullmatch(r"figures\.(\w+)\.(explore_\w+)\(\)", cell.source)
        assert match, cell.source
        assert hasattr(import_module(f"figures.{match[1]}"), match[2])
        assert "text/html" in cell.outputs[0]["data"]


@notebooks
def test_markdown_reads_the_same_everywhere(path):
    for cell in cells(path, "markdown"):
        for line in lines_outside_math(cell.source):
            for pattern, what in FORBIDDEN.items():
                assert not re.search(pattern, line), f"{what}: {line}"
            if line.startswith("|"):
                assert not any("|" in math for math in re.findall(r"\$([^$]*)\$", line)), (
                    f"| in math in a table: {line}"
                )
        for equation in re.findall(r"\$\$(.+?)\$\$", cell.source, flags=re.DOTALL):
            assert not ("\\tag" in equation and "\\\\" in equation), f"\\tag with a line break: {equation}"
        assert cell.source.count("$$") % 2 == 0, cell.source


@chapters
def test_form_of_a_chapter(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    headings = re.findall(r"^#.*$", text, re.MULTILINE)
    assert sum(heading.startswith("# ") for heading in headings) == 1
    assert [heading for heading in headings if heading in SECTIONS] == list(SECTIONS)
    assert "> **In this chapter.**" in text
    assert "**Time:**" in text
    assert "**Next:**" in text
    exercises = re.findall(r"\*\*Exercise (\d+\.\d+) \((★+), \d+ minutes\)\.\*\*", text)
    assert len(exercises) >= 3
    assert len(exercises) == text.count("> **Exercise")
    for (number, stars), part in zip(exercises, re.split(r"> \*\*Exercise ", text)[1:], strict=True):
        assert part.count("<summary>Solution") == 1, number
        assert stars != "★★★" or "<summary>Hint" in part.split("<summary>Solution")[0], number


@chapters
def test_hidden_cells_stand_behind_a_solution(path):
    """The page puts them inside its fold, if nothing stands between."""
    for before, cell in pairwise(nbformat.read(path, as_version=4).cells):
        if "hide-cell" in cell.metadata.get("tags", []):
            assert "<details><summary>Solution</summary>\n\n" in before.source, cell.id
            assert before.source.endswith("\n\n</details>"), cell.id
            assert "mystnb" not in cell.metadata, cell.id


@chapters
def test_every_statement_has_a_mark_and_every_proof_one_sign(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    for head, rest in re.findall(HEADS, text, re.MULTILINE):
        assert re.match(MARKS, rest), f"the first words behind the head of {head} must be a mark: {rest[:60]}"
    assert r"\blacksquare" not in text


@chapters
def test_numbers_of_statements_and_equations_are_unique_and_of_this_chapter(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    chapter = str(int(path.stem[:2]))
    for pattern in (r"\\tag\{([\d.]+)\}", r"^> \*\*(?:Theorem|Corollary) ([\d.]+) ?\(?", r"^> \*\*Exercise ([\d.]+)"):
        numbers = [number.rstrip(".") for number in re.findall(pattern, text, re.MULTILINE)]
        assert len(numbers) == len(set(numbers)), numbers
        assert all(number.split(".")[0] == chapter for number in numbers), numbers
        assert [int(number.split(".")[1]) for number in numbers] == list(range(1, len(numbers) + 1)), numbers


@chapters
def test_each_chapter_proves(path):
    code = "\n".join(cell.source for cell in cells(path, "code"))
    if path.stem in MEASURES:
        assert code.count("assert ") >= 10
        return
    assert code.count("proved(") >= 5
    assert "refuted(" in code
    assert "assert_close" in code


@chapters
def test_the_index_has_the_minutes_of_the_chapter(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    read, run = re.search(r"\*\*Time:\*\* (\d+) minutes to read.*?(\d+) seconds to run", text).groups()
    index = (ROOT / "chapters" / "index.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| \[{int(path.stem[:2])} .*?\]\({path.name}\).*$", index, re.MULTILINE)
    assert line.endswith(f"| {read} min | {run} s |")


def test_each_claim_names_who_says_it_and_has_a_verdict():
    text = "\n".join(cell.source for cell in cells(ROOT / "chapters" / "claims.ipynb", "markdown"))
    claims = [part for part in text.split("\n## ")[1:] if part.startswith('"')]
    assert len(claims) >= 15
    for claim in claims:
        assert "*Who says it.* " in claim
        assert re.search(r"\*\*Verdict: [^*]+\*\*", claim), claim.splitlines()[0]
        assert "ipynb)" in claim, f"no link to what decides: {claim.splitlines()[0]}"


EXERCISE = re.compile(r"> \*\*Exercise \d+\.\d+ \(★{1,3}, \d+ minutes\)\.\*\* \S")


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").glob("*.ipynb")), ids=lambda path: path.stem)
def test_an_exercise_has_the_form_that_numbers_and_links_it(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if re.match(r"[>\s]*\*\*Exercise\b", line):
                right = "> **Exercise 4.6 (★★, 10 minutes).** Show that ..."
                assert EXERCISE.match(line), f"{path.name}, cell {cell.id}: {line!r} must look like {right!r}"
