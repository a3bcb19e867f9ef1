"""Homework: what students get and what teachers get, sheets and exams, and nothing that gives away an answer."""

import ast
import hashlib
import json
import math
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
import torch

from lab import experiments
from lectures import handout
from lectures.homework import build as making
from lectures.homework import check, marks
from lectures.homework.check import loops, mistakes
from lectures.teacher.numbers import VERSIONS, filled, numbers
from rope_lib import interleaved_to_half_split
from rope_lib.theory import reference
from tests import oracles
from tests.conftest import ROOT

FIVE_MINUTES = ROOT / "chapters" / "rope_in_five_minutes.ipynb"

# -- Pages, files, keys ------------------------------------------------------------------------------------------------


def test_the_pages_that_are_named_exist():
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "lectures").rglob("*"))
        if path.suffix in (".py", ".md", ".ipynb")
    ]
    named = {found for text in texts for found in re.findall(r'[Cc]hapter (\d+), \\?"([^"\\]+)\\?"', text)}
    assert len(named) >= 12
    for chapter, section in named:
        [path] = (ROOT / "chapters").glob(f"{int(chapter):02}_*.ipynb")
        cells = nbformat.read(path, as_version=4).cells
        heads = {line.lstrip("# ") for cell in cells for line in cell.source.splitlines() if line.startswith("##")}
        assert section in heads or section.rstrip(".") in heads, (chapter, section)


@pytest.fixture(scope="module", autouse=True)
def code_is_packed_once():
    """Of a notebook that is written again the same first cell: to find and pack what it imports takes a second."""
    pack, packed = making.carrying, {}

    def carrying(notebook):
        sources = tuple(cell.source for cell in notebook.cells)
        if sources not in packed:
            packed[sources] = pack(notebook)
        return packed[sources]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "carrying", carrying)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    making.student(folder / "student")
    making.teacher(folder / "teacher", 1)
    return folder


def solutions(path):
    """Lines between the marks of a source, which no student may get."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in nbformat.reads(text, as_version=4).cells)
    parts = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", text, flags=re.DOTALL)
    return [line.strip() for part in parts for line in part.splitlines() if len(line.strip()) > 15]


@pytest.mark.parametrize("name", making.FILES)
def test_students_get_no_solution_and_teachers_do(name, built):
    lines = solutions(making.FOLDER / name)
    assert lines
    for whose, kept in (("student", False), ("teacher", True)):
        text = (built / whose / name).read_text(encoding="utf-8")
        assert "SOLUTION" not in text
        if name.endswith(".ipynb"):
            notebook = nbformat.reads(text, as_version=4)
            nbformat.validate(notebook)
            text = "\n".join(cell.source for cell in notebook.cells if cell.id != "book-code")
            assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
        assert all((line in text) == kept for line in lines), name


def test_chapters_of_students_tell_no_results(built):
    for path in sorted((built / "student" / "chapters").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                tree = ast.parse(re.sub("^%.*", "", cell.source, flags=re.MULTILINE))
                assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)], path.name


def test_only_assertions_go():
    source = "for a in b:\n    assert a\nfor a in b:\n    print(a)\n    assert a == (\n        1\n    )\nassert b\nb"
    assert making.without_assertions(source) == "for a in b:\n    print(a)\nb"


def test_sources_are_cleared():
    for path in making.FOLDER.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
        assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"


def test_what_a_student_gets_is_not_written_yet(built, tmp_path):
    found = marks.marked(built / "student" / "hw1_rope.ipynb", "hw1_rope.ipynb")
    assert found.points == 0
    assert found.text().startswith("hw1_rope.ipynb: 0 of 20\n")
    assert found.text().count("not written yet") == 7
    assert "which is not written yet" not in found.text()
    notebook = nbformat.read(built / "student" / "hw1_rope.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("assert not hasattr(check, 'seed')"))
    nbformat.write(notebook, tmp_path / "hw1_rope.ipynb")
    assert marks.marked(tmp_path / "hw1_rope.ipynb", "hw1_rope.ipynb").remarks == ()  # it finds that of the marks
    found = marks.marked(built / "student" / "adapters.py", "adapters.py")
    assert (found.points, found.run_rope, found.tasks) == (None, "run_rope: not written yet.", {})


def test_minutes_and_points_of_the_sheet_add_up(monkeypatch, capsys):
    cells = nbformat.read(making.FOLDER / "hw1_rope.ipynb", as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    head, *tasks = text.split("\n## Task ")
    assert "**90 minutes, 20 points.**" in head
    minutes = [int(re.search(r"\(5 points, (\d+) minutes\)", task)[1]) for task in tasks]
    assert sum(minutes) + int(re.search(r"takes (\d+) of the minutes", head)[1]) == 90
    monkeypatch.setitem(sys.modules, "check", check)
    names = {}
    for cell in cells:
        exec(cell.source if cell.cell_type == "code" else "", names)
    for check_task, task in zip(check.TASKS.values(), tasks, strict=True):
        steps = check_task.steps(*(names[name] for name in check_task.functions))
        points = [step.worth for step in steps if step.complaint is None]
        said_points = [
            int(number) for number in re.findall(r"\d+", re.search(r"Points: (.*)", task)[1]) if int(number) < 5
        ]
        each = [2, *said_points] if "for each way" in task else said_points
        assert sum(points) == sum(each) == 5
        assert points == each
    assert len(mistakes.WRONG_ONES) == 7
    assert "seven wrong ones" in text
    capsys.readouterr()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slip", "of_it"),
    [("/ head_dim", "/ (head_dim // 2)"), ("angles.sin()", "angles.half().sin()"), ("x0 * cos - x1", "x0 * cos + x1")],
)
def test_a_slip_in_an_earlier_task_costs_nothing_in_the_last(slip, of_it, tmp_path, built):
    sheet = (built / "teacher" / "hw1_rope.ipynb").read_text(encoding="utf-8")
    assert slip in sheet
    path = tmp_path / "hw1_rope.ipynb"
    path.write_text(sheet.replace(slip, of_it), encoding="utf-8")
    found = marks.marked(path, path.name)
    assert "Task 4: 5 of 5" in found.text()
    points = found.points
    assert points < 20


def test_what_the_five_minute_page_gives_away(tmp_path):
    cells = {cell.id: cell.source for cell in nbformat.read(FIVE_MINUTES, as_version=4).cells}
    pasted = [cells["functions"], cells["rotate"], "tables = rope_tables"]
    for layout in (True, False):
        name = "rotate_interleaved" if layout else "rotate_half_split"
        pasted.append(f"def {name}(x, cos, sin):\n    return rotate(x, cos, sin, interleaved={layout})")
    (tmp_path / "pasted.py").write_text("\n\n".join(pasted), encoding="utf-8")
    found = marks.marked(tmp_path / "pasted.py", "pasted.py")
    assert found.points == 9
    text = found.text()
    assert "Task 1: 5 of 5" in text
    assert "Task 2: 4 of 5" in text
    assert "earns 9 of the 20 points" in (making.FOLDER / "README.md").read_text(encoding="utf-8")


def test_a_sheet_that_is_opened_alone_brings_its_check(built, tmp_path):
    """Colab, or a notebook out of a letter: no book is installed. No other check that lies there is used or changed."""
    cells = nbformat.read(built / "student" / "hw1_rope.ipynb", as_version=4).cells
    first = [cell.source for cell in cells if cell.cell_type == "code"][:2]
    hidden = "import sys\nsys.modules.update(rope_lib=None, lab=None, figures=None, lectures=None)\n"
    right = {f"check/{path.name}": path.read_bytes() for path in making.CHECK.glob("*.py")}
    kernels = {
        "no file": ("", {}, False),
        "the same files": ("", right, False),
        "the same files of Windows": ("", {n: text.replace(b"\n", b"\r\n") for n, text in right.items()}, False),
        "another version": ("", right | {"check/pages.py": b"BITS = None"}, True),
        "a version with fewer files": ("", {"check/__init__.py": b"tables = print"}, True),
        "another version, and imported": (
            "import check",
            right | {"check/runner.py": right["check/runner.py"].replace(b"there a `return`", b"")},
            True,
        ),
        "another file": ("", {"check.py": b"tables = print"}, True),
        "another file, and imported": ("import check", {"check.py": b"tables = print"}, True),
        "all cells twice": ("\n".join(first), {}, False),
    }
    for number, (kernel, (before, beside, is_another)) in enumerate(kernels.items()):
        folder = tmp_path / str(number)
        (folder / "check").mkdir(parents=True)
        for name, text in beside.items():
            (folder / name).write_bytes(text)
        if not any("/" in name for name in beside):
            (folder / "check").rmdir()
        program = "\n".join([hidden, "sys.dont_write_bytecode = True", before, *first])
        command = [sys.executable, "-c", f"{program}\ncheck.tables(lambda *case: None)\nprint(check.__file__)"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert "It returned None: is there a `return`?" in done.stdout, (kernel, done.stderr)
        assert "check.zip" in done.stdout.splitlines()[-1]
        said_so = done.stdout.startswith("In this folder lies another check: one of another version, or a program of")
        assert said_so == is_another, kernel
        left = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.py")}
        assert left == beside, kernel


@pytest.mark.parametrize("name", ["hw1_rope", "hw3_length", "chapters/06_rope_in_code"])
def test_colab_folds_the_cell_that_carries_code(name, built):
    """It looks at a form, and Jupyter at `source_hidden`."""
    cells = nbformat.read(built / "student" / f"{name}.ipynb", as_version=4).cells
    [cell] = [cell for cell in cells if cell.id == "book-code"]
    assert cell.metadata["cellView"] == "form"
    assert cell.metadata["jupyter"]["source_hidden"]
    assert re.match(r"#@title The (check|code of the book): run this first\n# ", cell.source)


# -- What a sheet says -------------------------------------------------------------------------------------------------


def texts_of(path):
    """What stands in a sheet beside its code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    cells = nbformat.reads(text, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_sheet_1_needs_nothing_that_it_does_not_bring(built):
    path = built / "student" / "hw1_rope.ipynb"
    text, cells = texts_of(path), nbformat.read(path, as_version=4).cells
    assert "adapters" not in text
    assert "check.py" not in text
    head = text.split("\n## ")[0]
    assert "**First run all cells once.** Each task then says that it is not written yet." in head
    assert head.index("First run all cells") < head.index("What you need to know") < head.index("**What is meant.**")
    assert "not within the 90 minutes" in head
    assert "the last line of the cell is the check" in head
    for name in check.TASKS.values():
        [cell] = [cell for cell in cells if cell.cell_type == "code" and f"def {name.functions[0]}(" in cell.source]
        assert cell.source.splitlines()[-1].startswith("check.")
    files = re.findall(r"`(\w+\.ipynb)`", head)
    assert len(files) == 3
    assert all((built / "student" / "chapters" / file).exists() for file in files)


def test_no_sheet_gives_away_an_answer_of_the_second(built):
    """Its problem 3 asks for which dimension both ways are the same, and after how many conversions a head is back."""
    says = [mistake.says for back in (False, True) for mistake in mistakes.conversion_mistakes(back)]
    for text in (texts_of(built / "student" / "hw1_rope.ipynb"), *says):
        assert not re.search(r"(?:head_dim`?|[Ww]ith|d|dimension) (?:= )?(?:4|four)\b", text), text
    hint = texts_of(built / "student" / "hw2_prove.md").split("**Problem 3.**")[1]
    assert "2^t" not in hint


def test_sheet_2_defines_what_it_uses(built):
    text = texts_of(built / "student" / "hw2_prove.md")
    for symbol, definition in (
        (r"R_{n-m}", r"R_m = \mathrm{diag}\big(R(m\theta_0), \dots, R(m\theta_{N-1})\big)"),
        ("h_i", r"h_i = q_i k_i^*"),
        ("h_{63}", r"h_i = q_i k_i^*"),
        (r"g(\Delta)", r"g(\Delta) = \mathrm{Re} \sum_{i=0}^{N-1} h_i\, e^{\mathrm{i}\Delta\theta_i}"),
        (r"\theta_i", r"pair $i$ has the speed $\theta_i$"),
        ("Px", "Px = (x_0, x_2"),
    ):
        assert text.index(definition) <= text.index(symbol), symbol
    [title] = re.findall(r"^## Problem 2: .*", text, flags=re.MULTILINE)
    [nudge] = re.findall(r"\*\*Problem 2\.\*\* \*A nudge:\*(.*?)\*A step", text)
    assert "in absolute value" in title
    assert "in absolute value" in nudge


def test_both_forms_of_a_score_on_sheet_2_are_one(generator):
    q, k = torch.randn(2, 1, 6, generator=generator, dtype=torch.float64)
    m, n = 7, 3
    at = [loops.tables_by_loop(torch.tensor([place]), 6, 100.0) for place in (m, n, n - m)]
    (turned_q,), (turned_k,) = (loops.rotation_by_loop(x, *t, True) for x, t in zip((q, k), at, strict=False))
    [moved] = loops.rotation_by_loop(k, *at[2], True)  # by R_{n-m}
    q_i, k_i = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) for x in (q, k))
    angles = loops.angles_by_loop(torch.tensor([m - n]), 6, 100.0)
    g = (q_i * k_i.conj() * torch.exp(1j * angles)).sum().real
    for score in (turned_q @ turned_k.mT, q @ moved.mT):
        torch.testing.assert_close(score.squeeze(), g, rtol=0, atol=1e-12)


def test_the_files_of_a_teacher_work_alone(built, tmp_path):
    """With torch, and without this book; the check of the teacher has other numbers."""
    shutil.copytree(built / "teacher" / "check", tmp_path / "check")
    for name in ("marks.py", "hand_in.py", "hw1_rope.ipynb", "adapters.py"):
        (tmp_path / name).write_bytes((built / "teacher" / name).read_bytes())
    program = """
import sys, runpy
sys.modules.update(rope_lib=None, lab=None, figures=None, lectures=None)
sys.path.insert(0, "")
sys.argv[1:] = ["hw1_rope.ipynb", "adapters.py"]
runpy.run_path("marks.py", run_name="__main__")
from check import seed
assert seed.SEED == 1
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hw1_rope.ipynb: 20 of 20\n" in done.stdout
    assert "run_rope: right." in (tmp_path / "marks" / "feedback" / "adapters.py.txt").read_text(encoding="utf-8")
    command = [sys.executable, "adapters.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "run_rope: right.\n"


def test_the_teachers_folder_is_for_nobody_else(built):
    assert (built / "teacher").stat().st_mode & 0o077 == 0
    assert not {path.name for path in (built / "student").iterdir()} & {"marks.py", "hand_in.py"}


def test_the_check_travels_with_students_and_lies_beside_the_key(built):
    files = {path.name for path in making.CHECK.glob("*.py")}
    for whose, carried in (("student", 1), ("teacher", 0)):
        assert {path.name for path in (built / whose / "check").iterdir()} == files
        cells = nbformat.read(built / whose / "hw1_rope.ipynb", as_version=4).cells
        assert sum("check.zip" in cell.source for cell in cells) == carried  # the key would carry other numbers


def test_the_marks_of_sheet_3_add_up(built):
    text = (built / "teacher" / "hw3_length.ipynb").read_text(encoding="utf-8")
    cells = nbformat.reads(text, as_version=4).cells
    [table] = [cell.source for cell in cells if cell.source.startswith("## Marks of one student")]
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    heads = re.findall(r"^## ([A-D])\. .*\((\d+) points", "\n".join(cell.source for cell in cells), flags=re.MULTILINE)
    of_part = {part: sum(int(row[2]) for row in rows if row[0] == part) for part, _ in heads}
    assert of_part == {part: int(points) for part, points in heads}
    assert sum(of_part.values()) == int(rows[-1][2]) == 20
    assert all(row[3] == "" for row in rows[1:])
    assert "Marks of one student" not in (built / "student" / "hw3_length.ipynb").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(5))
def test_the_exam_has_ten_questions_with_three_levels(seed):
    drawn = numbers(seed)
    written = [(making.EXAMS / f"{name}.md").read_text(encoding="utf-8") for name in making.EXAM_NAMES]
    assert {*re.findall(r"\[\[(\w+)\]\]", "".join(written))} == {*drawn, "version"}
    source = filled(written[0], seed, "AB"[seed % 2])
    rows = {row.split("|", 2)[2] for row in drawn["full_table"].splitlines()}
    assert len(rows) == 3  # else one row guessed is three
    questions = making.with_solution(source, code=False).split("\n## ")[1:]
    assert len(questions) == 10
    for number, question in enumerate(questions, 1):
        assert question.startswith(f"{number}. ")
        assert [question.count(f"* *{level}:*") for level in ("Enough", "Good", "Full")] == [1, 1, 1]
        assert re.search(r"(Chapter|Exercise) \d", question)
        assert question.splitlines()[0].endswith("(6 points)")
    for_students = making.without_solution(source, code=False)
    assert "Enough" not in for_students
    assert for_students.count("\n## ") == 10
    base, dim, factor = (float(drawn[name]) for name in ("base", "dim", "factor"))
    assert float(drawn["raised"].replace(",", "")) == pytest.approx(base * factor ** (dim / (dim - 2)), rel=0.005)
    q, k = [float(drawn["a"]), 0.0], [0.0, float(drawn["b"])]
    speed = torch.pi / float(drawn["parts"])
    found = oracles.score(q, k, int(drawn["m"]) * speed, int(drawn["n"]) * speed, interleaved=True)
    assert abs(found - float(drawn["score"])) < 1e-3
    exchanged = oracles.score(q, k, int(drawn["n"]) * speed, int(drawn["m"]) * speed, interleaved=True)
    assert abs(exchanged - float(drawn["exchanged"])) < 1e-3
    [order] = loops.conversion_by_loop(torch.arange(int(drawn["rows"]))[:, None], int(drawn["head"]), False)
    assert ", ".join(str(int(row)) for row in order) == drawn["order"]


def test_a_second_version_is_another_exam():
    source = (making.EXAMS / "exam.md").read_text(encoding="utf-8")
    first, second = (
        making.without_solution(filled(source, 7, version), code=False).split("\n## ") for version in VERSIONS
    )
    assert [number for number in range(1, 11) if first[number] != second[number]] == [1, 3, 9, 10]
    assert ["Version A." in first[0], "Version B." in second[0]] == [True, True]
    with pytest.raises(ValueError, match="version 'C'; there are A and B"):
        filled(source, 7, "C")


def test_the_short_exam_has_three_points_for_each_question():
    source = filled((making.EXAMS / "exam_short.md").read_text(encoding="utf-8"), 7, "A")
    questions = making.with_solution(source, code=False).split("\n## ")[1:]
    assert [question.count("\n* ") for question in questions] == [3, 3, 3, 3]
    assert all(question.splitlines()[0].endswith("(3 points)") for question in questions)


def test_no_key_is_written_over(tmp_path):
    folder = tmp_path / "teacher"
    making.teacher(folder, 7)
    before = (folder / "exam_key.md").read_bytes()
    making.teacher(folder, 7)
    with pytest.raises(SystemExit, match=r"exam_key\.md is that of another exam .*; nothing was written"):
        making.teacher(folder, 8)
    assert (folder / "exam_key.md").read_bytes() == before


def test_teachers_get_the_exam_twice(built):
    exam, key = ((built / "teacher" / name).read_text(encoding="utf-8") for name in ("exam.md", "exam_key.md"))
    assert "[[" not in key
    assert "Full" in key
    assert "Full" not in exam


def test_numbers_of_the_proofs():
    """Homework 2: how often a head is converted until it comes back, and the bound of problem 4."""
    comes_back = {}
    for dim in range(2, 130, 2):
        x = order = interleaved_to_half_split(torch.arange(dim), head_dim=dim, dim=0)
        assert order[: dim - 1].tolist() == [2 * j % (dim - 1) for j in range(dim - 1)]
        count = 1
        while not torch.equal(x, torch.arange(dim)):
            x, count = x[order], count + 1
        comes_back[dim] = count
    assert [dim for dim, count in comes_back.items() if 2 % count == 0] == [2, 4]
    assert comes_back[128] == 7
    theta = torch.tensor(reference.inverse_frequency(63, 128), dtype=torch.float64)
    assert f"{theta:.2e}" == "1.15e-04"
    key = (making.FOLDER / "hw2_prove.md").read_text(encoding="utf-8")
    least = math.ceil(10 / (theta / 2).sin())
    assert f"$M \\ge {least // 1000}{{,}}{least % 1000:03}$" in key
    assert 1.7e5 < least <= 1.8e5
    assert r"Rounded up to two digits: $M = 1.8 \cdot 10^5$" in key
    for count, enough in ((least, True), (180_000, True), (170_000, False)):
        assert bool(1 / (count * (theta / 2).sin()) <= 0.1) == enough


def test_homework_3_does_what_its_key_says(capsys):
    cells = [
        cell
        for cell in json.loads((making.FOLDER / "hw3_length.ipynb").read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    names = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    text = capsys.readouterr().out
    assert text.count(": right\n") == 3
    assert "10 18\n" in text
    edges, stored = experiments.rescued()
    assert edges == names["edges"]
    assert abs(names["losses"]["by parts"][-1] - stored["by parts"][-1]) < 0.2  # 8 texts, 32 there


def test_sheets_can_be_printed(built, tmp_path, browser, monkeypatch):
    def pdf(page):
        tab = browser.new_page()
        tab.set_content(page)
        return tab.pdf(prefer_css_page_size=True)

    monkeypatch.setattr(handout, "pdf", pdf)  # there is one browser for all tests
    for whose, names in (("teacher", ("exam", "exam_key")), ("student", ("hw2_prove",))):
        for name in names:
            (tmp_path / f"{name}.md").write_bytes((built / whose / f"{name}.md").read_bytes())
            handout.print_sheets(tmp_path)
            page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
            assert page.count("<math") > 10
            assert "$" not in re.sub(r"<annotation.*?</annotation>|<style>.*?</style>", "", page, flags=re.DOTALL)
            assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
            assert not re.search(r'(?:src|href)="(?!data:)', page)


@pytest.mark.parametrize("name", ["adapters.py", "chapters/05_rotation_matrix.ipynb"])
def test_a_solved_homework_is_not_written_over(name, built, tmp_path):
    folder = tmp_path / "student"
    shutil.copytree(built / "student", folder)
    (folder / "my_notes.md").write_text("Of nobody's concern.")
    making.student(folder)  # nothing was changed
    record = json.loads((folder / ".written.json").read_text(encoding="utf-8"))
    assert "my_notes.md" not in record
    record["my_notes.md"] = hashlib.sha256(b"Of nobody's concern.").hexdigest()  # older versions took it for theirs
    (folder / ".written.json").write_text(json.dumps(record), encoding="utf-8")
    (folder / "my_notes.md").write_text("Still nobody's.")
    making.student(folder)
    assert (folder / "my_notes.md").read_text() == "Still nobody's."
    solved = (folder / name).read_text(encoding="utf-8") + " "
    (folder / name).write_text(solved, encoding="utf-8")
    before = (folder / "hw2_prove.md").stat().st_mtime_ns
    with pytest.raises(SystemExit, match=rf"Error: {name} in .* changed since they were written \(your solutions\?\)"):
        making.student(folder)
    assert (folder / name).read_text(encoding="utf-8") == solved
    assert (folder / "hw2_prove.md").stat().st_mtime_ns == before
    (folder / ".written.json").unlink()  # by a version of the book that kept no record
    with pytest.raises(SystemExit, match="nothing was written"):
        making.student(folder)


def test_a_file_of_ones_own_where_a_new_one_belongs_is_kept(tmp_path):
    folder = tmp_path / "student"
    (folder / "check").mkdir(parents=True, mode=0o700)
    (folder / "check" / "tasks.py").write_text("mine = 1")
    (folder / ".written.json").write_text(json.dumps({"check.py": "of an older version"}))
    with pytest.raises(SystemExit, match=r"Error: check/tasks\.py in .* nothing was written"):
        making.student(folder)
    assert [path.name for path in folder.rglob("*.py")] == ["tasks.py"]
    (folder / "check" / "tasks.py").unlink()
    (folder / "check.py").write_text("an older check, or mine")
    folder.chmod(0o700)
    making.student(folder)
    assert (folder / "check.py").read_text() == "an older check, or mine"
    assert (folder / "check" / "tasks.py").exists()
    assert folder.stat().st_mode & 0o777 == 0o700
