"""The rules that keep the chapters readable everywhere: in the book, on GitHub, in JupyterLab, on Colab."""

import json
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from tests.conftest import ROOT
from tools import attack, new_chapter

NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if path.stem[0].isdigit()]  # the others are single pages, without exercises
DEFINES = ("rope_in_five_minutes",)  # its functions are there to be copied
TAGS = {"hide-cell", "hide-input", "nbval-ignore-output", "predict"}
KEYS = {"tags", "mystnb", "jupyter", "break", "covers", "corrects"}
FOLDED = {  # by the page, and so by JupyterLab
    "hide-input": {"source_hidden": True},
    "hide-cell": {"source_hidden": True, "outputs_hidden": True},
}
BEFORE = r"<details><summary>Before you start: (\d+) minutes to read, (\d+) seconds to run</summary>\n\n"
HEADS = r"^> \*\*((?:Theorem|Corollary|Lemma|Proposition) \d+\.\d+)[^*]*\*\*(.*)"
BY_CELLS = r" \*(Proved by hand and by cells\.|Proved by cells\.|Measured\.)\*"
MARKS = rf"{BY_CELLS}| \*(Proved by hand\.|Cited\.)\*"
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
    assert len(CHAPTERS) >= 3, "no chapters were found: has their folder moved?"


@notebooks
def test_canonical_form(path):
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    number = path.stem.split("_")[0]
    stored = f"not as `make chapters NAME={number}` stores it: run that"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5), stored
    assert set(notebook.metadata) == {"kernelspec"}, stored
    assert text == nbformat.writes(notebook) + "\n", stored
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells), "two cells have the same id"
    for cell in notebook.cells:
        tags, keys = cell.metadata.get("tags", []), set(cell.metadata)
        assert keys <= KEYS, f"cell {cell.id}: its metadata has {keys - KEYS}; known are {sorted(KEYS)}"
        assert set(tags) <= TAGS, f"cell {cell.id}: its tags are {tags}; known are {sorted(TAGS)}"
        folded = [FOLDED[tag] for tag in tags if tag in FOLDED]
        given = [cell.metadata[key] for key in keys if key == "jupyter"]
        assert given == folded, f"cell {cell.id} with tags {tags}: `jupyter` in its metadata must be {folded}"
        assert cell.source.strip(), f"cell {cell.id} is empty"


@notebooks
def test_every_cell_was_run_without_a_word_on_stderr(path):
    code = cells(path, "code")
    assert {cell.execution_count for cell in code} == {1}, f"run `make chapters NAME={path.stem[:2]}`"
    for cell in code:
        for output in cell.outputs:
            assert output.output_type != "error", f"cell {cell.id} ended in an error"
            assert output.get("name") != "stderr", f"cell {cell.id} wrote to stderr: {output.text[:200]}"


@notebooks
def test_code_is_short_and_defines_nothing(path):
    for cell in cells(path, "code"):
        lines = len(cell.source.splitlines())
        assert lines <= 16, f"cell {cell.id} has {lines} lines; more than 16 is more than one idea"
        if path.stem not in DEFINES and ".check(" not in cell.source:  # what a reader is asked to write
            defined = re.search(r"^\s*(?:class|def|async def) .*", cell.source, re.MULTILINE)
            assert not defined, f"cell {cell.id}: {defined[0]} belongs to rope_lib, lab or figures, with a test"
        assert not cell.source.rstrip().endswith(";"), f"cell {cell.id} ends with a semicolon"


@notebooks
def test_compared_output_holds_nothing_that_changes_from_run_to_run(path):
    for cell in cells(path, "code"):
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            continue
        shown = json.dumps([output for output in cell.outputs if output.output_type == "stream"])
        here = re.search(r"/home|/tmp|/root|0x[0-9a-f]{6}|\bcuda\b|\bcpu\b", shown)
        assert not here, f"cell {cell.id} shows {here[0]!r}, which differs from machine to machine: {shown}"
        assert not re.search(r"\d\.\d{8}", shown), f"cell {cell.id}: more digits than two machines share: {shown}"


@notebooks
def test_figures_have_a_caption_a_name_and_a_text(path):
    for cell in cells(path, "code"):
        pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        if not pictures and "draw_" not in cell.source:
            continue
        match = re.fullmatch(r"figures\.(\w+)\.(draw_\w+)\(\)", cell.source)
        assert match, (
            f"cell {cell.id} stores a picture. A figure is one call without parameters; of formulas, "
            f'sp.init_printing(use_latex="mathjax", imaginary_unit="ri") stores none: {cell.source}'
        )
        assert hasattr(import_module(f"figures.{match[1]}"), match[2]), f"figures/{match[1]}.py has no {match[2]}"
        assert len(pictures) == 1, f"no picture is stored: run `make chapters NAME={path.stem[:2]}`"
        name = "fig-" + match[2].removeprefix("draw_").replace("_", "-")
        settings = cell.metadata.get("mystnb", {})
        right = {
            "figure": {"name": name, "caption": "**What one sees.** How."},
            "image": {"alt": "More than 40 characters of words."},
        }
        missing = f"cell {cell.id}: mystnb in its metadata must be like {right}; it is {settings}"
        assert settings.get("figure", {}).get("name") == name, missing
        assert settings["figure"].get("caption", "").endswith("."), missing
        assert len(settings.get("image", {}).get("alt", "")) > 40, f"{missing}: what does the picture show, in words?"


def test_no_two_figures_have_one_name():
    places = {}
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in cells(path, "code"):
            if name := cell.metadata.get("mystnb", {}).get("figure", {}).get("name"):
                places.setdefault(name, []).append(path.name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@chapters
def test_a_chapter_begins_with_a_question_and_a_piece(path):
    title, piece, before, *_ = nbformat.read(path, as_version=4).cells
    assert re.fullmatch(r"# .+\n\n\*\*.+\?\*\* .+", title.source), (
        f"the first cell is a title, a question in bold, and what to do with the piece; it is {title.source}"
    )
    match = re.fullmatch(r"import figures\.(\w+)\n\nfigures\.\1\.(explore_\w+)\(\)", piece.source)
    assert match, (
        f"the second cell is `import figures.<family>` and `figures.<family>.explore_<name>()`; it is {piece.source}"
    )
    assert hasattr(import_module(f"figures.{match[1]}"), match[2]), f"figures/{match[1]}.py has no {match[2]}"
    assert "text/html" in piece.outputs[0]["data"], f"cell {piece.id} shows no piece: does the call return one?"
    whole = re.fullmatch(BEFORE + ".*\n\n</details>", before.source, re.DOTALL)
    assert whole, f"the third cell is {BEFORE} ... </details>; it is {before.source}"


@chapters
def test_sentences_set_the_piece(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    shown = [output.get("data", {}).get("text/html", "") for cell in cells(path, "code") for output in cell.outputs]
    names = re.findall(r'id="piece-([\w-]+)"', "".join(shown))
    links = re.findall(r"\]\(#piece-([\w-]+)/", text)
    assert set(links) <= set(names), f"the pieces of this chapter are {names}; there are links to {set(links)}"


@notebooks
def test_markdown_reads_the_same_everywhere(path):
    for cell in cells(path, "markdown"):
        for line in lines_outside_math(cell.source):
            for pattern, what in FORBIDDEN.items():
                assert not re.search(pattern, line), f"cell {cell.id} has {what}, which not every reader shows: {line}"
            if line.startswith("|"):
                assert not any("|" in math for math in re.findall(r"\$([^$]*)\$", line)), (
                    f"| in math in a table: {line}"
                )
        for equation in re.findall(r"\$\$(.+?)\$\$", cell.source, flags=re.DOTALL):
            assert not ("\\tag" in equation and "\\\\" in equation), f"\\tag with a line break: {equation}"
        assert cell.source.count("$$") % 2 == 0, f"cell {cell.id}: a formula $$ ... $$ is not closed"


@chapters
def test_form_of_a_chapter(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    headings = re.findall(r"^#.*$", text, re.MULTILINE)
    titles = [heading for heading in headings if heading.startswith("# ")]
    assert len(titles) == 1, f"a chapter has one title, `# ...`; this one has {titles}"
    assert headings[-1] == "## Further reading", f"the last heading is ## Further reading; it is {headings[-1]}"
    summary = re.search(r"^> \*\*In three sentences\.\*\* (.*)\n\n## (Appendix|Exercises|Further)", text, re.MULTILINE)
    assert summary, "before its exercises a chapter has a quote: > **In three sentences.** First. Second. Third."
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", summary[1])
    assert len(sentences) == 3, f"three sentences, each from one capital letter to a full stop; here are {sentences}"
    for part in ("> **In this chapter.**", "**You need**", "**Afterwards you can**", "**Next:**"):
        assert part in text, f"the chapter lacks {part}: chapter 11 has it"
    exercises = re.findall(r"> \*\*Exercise (\d+\.\d+) \((★+), \d+ minutes\)\.\*\*", text)
    assert bool(exercises) is ("## Exercises" in headings), "exercises stand below ## Exercises"
    for (number, stars), part in zip(exercises, re.split(r"> \*\*Exercise ", text)[1:], strict=True):
        solutions = part.count("<summary>Solution")
        assert solutions == 1, f"Exercise {number} needs one <details><summary>Solution</summary>; it has {solutions}"
        hint = stars != "★★★" or "<summary>Hint" in part.split("<summary>Solution")[0]
        assert hint, f"Exercise {number} has three stars and no <details><summary>Hint</summary> before its solution"


@chapters
def test_hidden_cells_stand_behind_a_solution(path):
    """The page puts them inside its fold, if nothing stands between."""
    for before, cell in pairwise(nbformat.read(path, as_version=4).cells):
        if "hide-cell" in cell.metadata.get("tags", []):
            begin, end = "<details><summary>Solution</summary>\n\n", "\n\n</details>"
            behind = begin in before.source and before.source.endswith(end)
            assert behind, (
                f"cell {cell.id} has the tag hide-cell: the cell before it must end with {begin + '...' + end!r}"
            )
            assert "mystnb" not in cell.metadata, f"cell {cell.id} is hidden, and shows no figure"


@chapters
def test_every_statement_has_a_mark_and_every_proof_one_sign(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    for head, rest in re.findall(HEADS, text, re.MULTILINE):
        assert re.match(MARKS, rest), f"the first words behind the head of {head} must be a mark: {rest[:60]}"
    assert r"\blacksquare" not in text, r"a proof ends with $\square$, here as everywhere"


@chapters
def test_numbers_of_statements_and_equations_are_unique_and_of_this_chapter(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    chapter = str(int(path.stem[:2]))
    for pattern in (r"\\tag\{([\d.]+)\}", r"^> \*\*(?:Theorem|Corollary) ([\d.]+) ?\(?", r"^> \*\*Exercise ([\d.]+)"):
        numbers = [number.rstrip(".") for number in re.findall(pattern, text, re.MULTILINE)]
        right = [f"{chapter}.{place}" for place in range(1, len(numbers) + 1)]
        assert numbers == right, f"numbers must be {right}, in the order of the chapter; they are {numbers}"


@chapters
def test_each_statement_by_cells_is_followed_by_a_cell_that_can_refuse_it(path):
    """Before the next heading: which of its cells refuses which change, tests/twice.py asks."""
    waiting = ""
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            waiting = "" if attack.holds_claim(attack.parsed(cell.source)) else waiting
            continue
        for line in cell.source.splitlines():
            if line.startswith("## "):
                assert not waiting, f"no cell before {line!r} checks {waiting}: proved, refuted, assert, assert_close"
            if (head := re.match(HEADS, line)) and re.match(BY_CELLS, head[2]):
                waiting = head[1]
    assert not waiting, f"no cell checks {waiting}: proved, refuted, assert, assert_close"


@chapters
def test_the_index_has_the_minutes_of_the_chapter(path):
    text = "\n".join(cell.source for cell in cells(path, "markdown"))
    time = re.search(BEFORE, text)
    assert time, f"the chapter has its time behind its piece, like this: {BEFORE}"
    index = (ROOT / "chapters" / "index.md").read_text(encoding="utf-8")
    lines = re.findall(rf"^\| \[{int(path.stem[:2])} .*?\]\({path.name}\).*$", index, re.MULTILINE)
    right = f"| {time[1]} min | {time[2]} s |"
    assert len(lines) == 1, f"the table in chapters/index.md needs one row for {path.name}, which ends with {right}"
    assert lines[0].endswith(right), f"its row in chapters/index.md must end with {right}: {lines[0]}"


def test_each_claim_names_who_says_it_and_has_a_verdict():
    text = "\n".join(cell.source for cell in cells(ROOT / "chapters" / "claims.ipynb", "markdown"))
    claims = [part for part in text.split("\n## ")[1:] if part.startswith('"')]
    overview = re.findall(r"^\| \[(.*)\]\(#.*\) \| (.*) \|$", text, re.MULTILINE)
    assert len(claims) == len(overview) > 10
    for claim, (said, verdict) in zip(claims, overview, strict=True):
        head = claim.splitlines()[0]
        assert head == f'"{said}"'.replace(r"\lvert q\rvert", "|q|"), "the overview at the head has other words"
        assert re.search(rf"\*\*Verdict: [^*]*{re.escape(verdict)}", claim), (
            f"the overview's verdict is another: {head}"
        )
        assert "*Who says it.* " in claim, f"nobody is named (*Who says it.*): {head}"
        assert re.search(r"\*\*Verdict: [^*]+\*\*", claim), f"no **Verdict: ...**: {head}"
        assert "ipynb)" in claim, f"no link to what decides: {head}"


EXERCISE = re.compile(r"> \*\*Exercise \d+\.\d+ \(★{1,3}, \d+ minutes\)\.\*\* \S")


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").glob("*.ipynb")), ids=lambda path: path.stem)
def test_an_exercise_has_the_form_that_numbers_and_links_it(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if re.match(r"[>\s]*\*\*Exercise\b", line):
                right = "> **Exercise 4.6 (★★, 10 minutes).** Show that ..."
                assert EXERCISE.match(line), f"{path.name}, cell {cell.id}: {line!r} must look like {right!r}"


def test_the_template_has_the_form_of_a_chapter(tmp_path):
    path = tmp_path / "98_a_subject.ipynb"
    path.write_text(new_chapter.begun("98", "A subject"), encoding="utf-8")
    test_canonical_form(path)
    test_code_is_short_and_defines_nothing(path)
    test_markdown_reads_the_same_everywhere(path)
    test_form_of_a_chapter(path)
    test_hidden_cells_stand_behind_a_solution(path)
    test_every_statement_has_a_mark_and_every_proof_one_sign(path)
    test_numbers_of_statements_and_equations_are_unique_and_of_this_chapter(path)
    test_each_statement_by_cells_is_followed_by_a_cell_that_can_refuse_it(path)
    test_an_exercise_has_the_form_that_numbers_and_links_it(path)


def test_a_chapter_that_is_begun_and_removed_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(new_chapter, "ROOT", tmp_path)
    (tmp_path / "chapters").mkdir()
    copied = ("_toc.yml", "chapters/index.md")
    before = {name: (ROOT / name).read_text(encoding="utf-8") for name in copied}
    for name, text in before.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    new_chapter.begin("98_a_subject", "A subject")
    toc = [line for line in (tmp_path / "_toc.yml").read_text().splitlines() if re.search(r"/\d\d_", line)]
    rows = re.findall(r"^\| \[\d+ .*", (tmp_path / "chapters" / "index.md").read_text(), re.MULTILINE)
    assert (toc[-1], rows[-1][:14]) == ("      - file: chapters/98_a_subject", "| [98 A subjec")
    new_chapter.remove("98_a_subject")
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in copied} == before
    assert [path.name for path in (tmp_path / "chapters").iterdir()] == ["index.md"]
