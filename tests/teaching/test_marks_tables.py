"""Tables of marks: a row for each student, in the shape that Moodle and Gradescope read, and never written over."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lectures.homework import build as making
from lectures.homework import check, marks
from tests.conftest import ON_LINUX
from tests.teaching.test_marks import RIGHT, notebook_of

TASKS = list(check.TASKS)
LAYOUTS = {
    "Moodle": (
        ["Anna_Alt_101_assignsubmission_file/hw1_rope.ipynb", "Bo Bär_102_assignsubmission_file_/hw1_rope.ipynb"],
        [("Anna Alt", "101"), ("Bo Bär", "102")],
    ),
    "Moodle without folders": (
        ["Anna Alt_101_assignsubmission_file_hw1_rope.ipynb", "Bo Bär_102_assignsubmission_file_hw1_rope.ipynb"],
        [("Anna Alt", "101"), ("Bo Bär", "102")],
    ),
    "Canvas": (
        ["altanna_12345_67890_hw1_rope.ipynb", "baerbo_LATE_12346_67891_hw1_rope-1.ipynb"],
        [("altanna", "12345"), ("baerbo", "12346")],
    ),
    "Gradescope": (
        ["assignment_7_export/submission_123456/hw1.ipynb", "assignment_7_export/submission_123457/hw1.ipynb"],
        [("submission", "123456"), ("submission", "123457")],
    ),
    "folders": (["anna/hw1_rope.ipynb", "bo/hw1_rope.ipynb"], [("anna", ""), ("bo", "")]),
    "names of files": (["anna.ipynb", "bo.py"], [("anna", ""), ("bo", "")]),
}


def put(folder, *files):
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_student_is_a_row(layout, tmp_path):
    files, students = LAYOUTS[layout]
    beside = Path(files[0]).parent
    put(tmp_path, *files, beside / ".ipynb_checkpoints" / "hw1.ipynb", beside / "__MACOSX" / "hw1.ipynb")
    found, others = marks.gathered([tmp_path])
    assert (list(found), others) == (files, {})
    assert [marks.whose(path, file) for file, path in found.items()] == students
    found, _ = marks.gathered([tmp_path / file for file in files])  # as a shell writes them out
    assert len(found) == 2
    if layout != "folders":  # there the name stands in the common folder alone
        [(file, path)] = marks.gathered([tmp_path / files[0]])[0].items()
        assert marks.whose(path, file) == students[0]


def test_who_handed_in_something_else_is_a_row_too(tmp_path):
    put(tmp_path, "Anna_1_assignsubmission_file/hw1.pdf", "Bo_2_assignsubmission_file/hw1.ipynb", "list.csv")
    link = tmp_path / "Cy_3_assignsubmission_file" / "hw1.ipynb"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "Bo_2_assignsubmission_file" / "hw1.ipynb")
    sheets, others = marks.gathered([tmp_path])
    assert list(sheets) == ["Bo_2_assignsubmission_file/hw1.ipynb"]
    assert list(others) == ["Anna_1_assignsubmission_file/hw1.pdf", "Cy_3_assignsubmission_file/hw1.ipynb"]


GRADESCOPE = """\
submission_123456:
  :submitters:
  - :name: Zoë Müller
    :sid: '0031'
    :email: zoe@example.org
  :created_at: 2026-04-26 17:34:00.861687000 Z
  :score: 2.0
  :results:
    output: |-
      =====
      Final Score:2.0
submission_123457:
  :submitters:
  - :name: Anna O'Alt
    :sid:
    :email: anna@example.org
  - :name: "Bo \\u738b"
    :sid: 32
submission_123458:
  :submitters:
  - :sid: '33'
submission_123459:
  :submitters: []
"""


def exported(folder, text=GRADESCOPE):
    """As Gradescope's export lies in a folder; one has no line in the list, one brings a folder of another's name."""
    folder = folder / "assignment_7_export"
    files = ["123456/hw1.ipynb", "123457/a/hw1.ipynb", "123458/hw1.pdf", "123459/hw1.ipynb", "123460/hw1.ipynb"]
    files += ["123460/submission_123456/hw1.ipynb", "123460/Bo_102_assignsubmission_file/a_1_2_b.ipynb"]
    put(folder, *(f"submission_{file}" for file in files))
    (folder / "submission_metadata.yml").write_text(text, encoding="utf-8")


def students(folder):
    sheets, others = marks.gathered([folder])
    return [marks.whose(path, file) for file, path in (sheets | others).items()]


def test_gradescopes_list_says_whose_a_folder_is(tmp_path, capsys):
    exported(tmp_path)
    assert students(tmp_path) == students(tmp_path / "assignment_7_export") == [
        ("Zoë Müller", "0031"),
        ("Anna O'Alt, Bo 王", "anna@example.org, 32"),
        ("submission", "123459"),
        *[("submission", "123460")] * 3,
        ("33", "33"),
    ]  # fmt: skip
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("submission_123456: [", "ParserError: "),
        ("- a", "AttributeError: "),
        ("submission_123456:\n  :score: 2", "KeyError: "),
        (GRADESCOPE, "this Python has no PyYAML: pip install pyyaml"),
    ],
    ids=["no YAML", "a list", "no names", "no reader"],
)
def test_a_list_that_cannot_be_read_is_named_once(text, why, tmp_path, capsys, monkeypatch):
    exported(tmp_path, text)
    if why.startswith("this Python"):
        monkeypatch.setitem(sys.modules, "yaml", None)
    assert students(tmp_path)[0] == ("submission", "123456")
    said = capsys.readouterr().out
    assert said.count("submission_metadata.yml cannot be read, so students have the numbers of") == 1
    assert f"for names. ({why}" in said


def test_who_handed_in_something_else_to_gradescope_has_a_name(tmp_path, monkeypatch):
    exported(tmp_path)
    monkeypatch.setattr(marks, "marked", lambda path, file: marks.Marks(file, *marks.whose(path, file)))
    monkeypatch.setattr(marks, "keep_to_oneself", lambda: None)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    monkeypatch.chdir(tmp_path)
    marks.main([str(tmp_path / "assignment_7_export")])
    table = rows(tmp_path / "marks" / "points.csv", "utf-8-sig")
    assert table["33"]["remarks"] == "not marked: neither a notebook nor a Python file."
    assert table["Zoë Müller"]["number"] == "0031"


RESTARTS = check.mistakes.CACHE_MISTAKES[0]
TWO_AT_ONCE = check.runner.both(f"{RESTARTS.says} See chapter 6.", "Rotated backwards. A quarter turn. See chapter 5.")


def some_marks(file, student, number, complaint=None):
    tasks = {
        task: [check.runner.Step("one", 3, None), check.runner.Step("two", 2, check.runner.LATER)] for task in TASKS[:3]
    }
    return marks.Marks(file, student, number, tasks | {"Task 4": [check.runner.Step("one", 5, complaint)]})


ANNA, BO, CY, DI = (
    some_marks("Anna_101_assignsubmission_file/a.ipynb", "Anna", "101", f"{RESTARTS.says} See {RESTARTS.page}."),
    some_marks("Bo Bär_102_assignsubmission_file/a.ipynb", "Bo Bär", "102", "It stopped. E: <b>=1. Arguments: 5."),
    some_marks("=cy.ipynb", "=cy", "")._replace(
        tasks={"Task 1": "it ended", "Task 2": [check.runner.Step("a", 5, None)]}
    ),
    some_marks("di.ipynb", "di", "", TWO_AT_ONCE),
)
FILES = {found.file: found for found in (ANNA, BO, CY, DI)}


@pytest.fixture
def marking(tmp_path, monkeypatch):
    """Marks a folder by decree, and returns what was printed."""
    put(tmp_path / "in", *FILES)
    monkeypatch.setattr(marks, "marked", lambda path, file: FILES[file])
    monkeypatch.setattr(marks, "keep_to_oneself", lambda: None)
    monkeypatch.chdir(tmp_path)

    def run():
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
        marks.main(["in"])
        sys.stdout.flush()
        return sys.stdout.buffer.getvalue().decode("utf-8")

    return run


def rows(path, encoding="utf-8"):
    table = csv.DictReader(io.StringIO(path.read_text(encoding=encoding)))
    return {row.get("student", row.get("Full name")): row for row in table}


def test_tables_name_students_tasks_and_mistakes(marking, tmp_path):
    said = marking()
    table = rows(tmp_path / "marks" / "points.csv", "utf-8-sig")
    assert list(table["Anna"])[:6] == ["student", "number", "file", "points", "Task 1", "Task 1 says"]
    assert {name: row["points"] for name, row in table.items()} == {"Anna": "9", "Bo Bär": "9", "'=cy": "", "di": "9"}
    assert (table["Anna"]["Task 4"], table["Anna"]["Task 4 says"]) == ("0", "Each call begins again at position 0.")
    cy = table["'=cy"]  # a spreadsheet would compute what begins so
    assert (cy["Task 1"], cy["Task 1 says"], cy["Task 2"]) == ("", "not marked: it ended.", "5")
    assert "=cy.ipynb: not marked\n" in said
    assert "Anna_101_assignsubmission_file/a.ipynb: 9 of 20\n" in said
    assert "2 of 4  Task 4, one: Each call begins again at position 0.\n" in said
    assert "Rotated backwards." not in said
    assert table["Bo Bär"]["Task 4 says"] == "It stopped. E: <b>=1."
    assert check.runner.LATER not in said
    assert marks.mistakes(DI) == {
        "Task 4, one: Each call begins again at position 0.",
        "Task 4, one: Rotated backwards.",
    }
    text = (tmp_path / "marks" / "feedback" / f"{ANNA.file}.txt").read_text(encoding="utf-8")
    assert "Task 4, one: Each call begins again at position 0." in text
    assert "Task 4: 0 of 5\n" in text


def test_moodle_takes_its_table_back(marking, tmp_path):
    """Headings and identifiers are those of Moodle's grading worksheet (mod/assign/feedback/offline)."""
    marking()
    path = tmp_path / "marks" / "moodle.csv"
    assert path.read_bytes().startswith(b"Identifier,Full name,Grade,Last modified (grade),Feedback comments\r\n")
    table = rows(path)
    assert (table["Anna"]["Identifier"], table["Anna"]["Grade"]) == ("Participant 101", "9")
    assert (table["Bo Bär"]["Identifier"], table["Bo Bär"]["Grade"]) == ("Participant 102", "9")
    assert (table["'=cy"]["Identifier"], table["'=cy"]["Grade"]) == ("'=cy.ipynb", "")
    comment = table["Bo Bär"]["Feedback comments"]
    assert "&lt;b&gt;" in comment
    assert "<b>" not in comment
    assert "<br>" in comment


def test_who_handed_in_two_sheets_gets_no_grade_by_chance(tmp_path):
    found = [some_marks(f"{student}/{name}.ipynb", student, "") for student, name in ("ax", "ay", "bx")]
    marks.write_moodle(tmp_path / "moodle.csv", found)
    with (tmp_path / "moodle.csv").open(encoding="utf-8") as table:
        assert [row["Grade"] for row in csv.DictReader(table)] == ["", "", "14"]


def test_gradescope_reads_the_results(marking, tmp_path):
    """As its page on autograders wants results.json: a score, an output, and a list of tests."""
    marking()
    anna, cy = (
        json.loads((tmp_path / "marks" / "results" / f"{found.file}.json").read_text(encoding="utf-8"))
        for found in (ANNA, CY)
    )
    assert anna["score"] == 9
    scores = [(test["name"], test["score"], test["max_score"]) for test in anna["tests"]]
    assert scores == [*((task, 3, 5) for task in TASKS[:3]), ("Task 4", 0, 5)]
    assert "Each call begins again" in anna["tests"][3]["output"]
    assert not [found for found in (cy, *cy["tests"]) if "score" in found]
    assert cy["tests"][0]["output"] == "Task 1: not marked: it ended."


def test_nothing_is_written_over(marking, tmp_path):
    marking()
    before = (tmp_path / "marks" / "points.csv").stat().st_mtime_ns
    said = marking()
    assert "There is a folder `marks` already, which stays as it is. The results go to `marks-2`." in said
    assert "In marks-2: points.csv" in said
    assert (tmp_path / "marks" / "points.csv").stat().st_mtime_ns == before
    assert (tmp_path / "marks-2" / "moodle.csv").exists()
    assert os.name != "posix" or (tmp_path / "marks").stat().st_mode & 0o077 == 0


def test_what_was_marked_before_an_interruption_is_kept(marking, tmp_path, monkeypatch):
    def marked(path, file):
        if file == BO.file:
            raise KeyboardInterrupt
        return FILES[file]

    monkeypatch.setattr(marks, "marked", marked)
    with pytest.raises(KeyboardInterrupt):
        marking()
    assert set(rows(tmp_path / "marks" / "points.csv", "utf-8-sig")) == {"Anna", "'=cy"}


@pytest.mark.parametrize("inside", [True, False])
def test_it_says_where_students_programs_run(inside, marking, monkeypatch):
    monkeypatch.setattr(marks, "in_container", lambda: inside)
    monkeypatch.setattr(marks, "other_users", lambda: True)
    assert marking().startswith("This runs the students' programs as you, on this machine") == (not inside)


def test_names_and_words_of_any_language_travel(tmp_path):
    """In a shell that knows no letter beyond ASCII; one file gets its tables, too."""
    path = tmp_path / "Zoë Müller 王_7_assignsubmission_file" / "hw1_rope.ipynb"
    path.parent.mkdir()
    wrong = "def tables(*a):\n    print('größer')\n    raise ValueError('größer als π: 王')"
    path.write_text(notebook_of([*RIGHT, wrong]), encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "lectures.homework.marks", str(path)]
    environment = os.environ | plain | {"PYTHONPATH": str(making.ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ValueError: größer als π: 王." in done.stdout.decode("utf-8")
    row = rows(tmp_path / "marks" / "points.csv", "utf-8-sig")["Zoë Müller 王"]
    assert row["points"] == "15"
    assert row["Task 1 says"] == "It stopped. ValueError: größer als π: 王."


@ON_LINUX
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="to root no memory is closed")
def test_the_memory_of_the_marks_is_closed_to_students(tmp_path):
    look = """
import os
opened, parent = [], f"/proc/{os.getppid()}/"
for name in ("environ", "maps", "mem", "cwd"):
    try:
        os.readlink(parent + name) if name == "cwd" else open(parent + name, "rb").close()
        opened.append(name)
    except OSError:
        pass
def tables(*a):
    raise LookupError(opened)
"""
    (tmp_path / "hw1.py").write_text(look, encoding="utf-8")
    command = [sys.executable, "-m", "lectures.homework.marks", "hw1.py"]
    environment = os.environ | {"PYTHONPATH": str(making.ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "LookupError: []." in done.stdout


def test_results_and_hand_ins_are_not_for_git():
    ignored = (making.ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {"marks/", "marks-[0-9]*/", "handed-in/"} <= set(ignored)
