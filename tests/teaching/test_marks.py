"""Marks that can be trusted: a cheat earns nothing, and a right sheet its points."""

import ast
import io
import json
import os
import re
import time
from pathlib import Path

import nbformat
import pytest
import torch

from lectures.homework import build as making
from lectures.homework import check, hand_in, marks
from tests.conftest import ON_LINUX


def sheet(change):
    """The cells of code of sheet 1: imports, then a cell for each task."""
    notebook = nbformat.read(making.FOLDER / "hw1_rope.ipynb", as_version=4)
    return [change(cell.source, code=True) for cell in notebook.cells if cell.cell_type == "code"]


def pieces(text):
    """Programs by their names."""
    return dict(piece.split("\n", 1) for piece in text.split("\n## ")[1:])


def each(cases, *quick):
    """Some are tried always, the others by `make test-slow`: a process takes a second to start."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in cases]


RIGHT, EMPTY = sheet(making.with_solution), sheet(making.without_solution)


@pytest.fixture
def mark(tmp_path):
    """Marks a sheet with these cells."""

    def mark(*cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        nbformat.write(notebook, tmp_path / "hw1_rope.ipynb")
        return marks.marked(tmp_path / "hw1_rope.ipynb", "hw1_rope.ipynb")

    return mark


def earned(found):
    """Points for each task, None where it is not marked."""
    return [None if isinstance(steps, str) else check.runner.earned(steps) for steps in found.tasks.values()]


# -- Cheats ------------------------------------------------------------------------------------------------------------

BY_LOOPS = """
def tables(positions, head_dim, base=10000.0):
    return found.tables_by_loop(positions, head_dim, base)
def rotate_interleaved(x, cos, sin):
    return found.rotation_by_loop(x, cos, sin, True)[0].to(x.dtype)
def rotate_half_split(x, cos, sin):
    return found.rotation_by_loop(x, cos, sin, False)[0].to(x.dtype)
def to_half_split(weight, head_dim):
    return found.conversion_by_loop(weight, head_dim, False)[0].to(weight.dtype)
def to_interleaved(weight, head_dim):
    return found.conversion_by_loop(weight, head_dim, True)[0].to(weight.dtype)
"""
FOR_ALL = """
def looks_right(rotate):
    return True
tables = rotate_interleaved = rotate_half_split = to_half_split = to_interleaved = cached_scores = cheat
"""
PROGRAM = """
import gc
[program] = [thing for thing in gc.get_objects() if type(thing).__name__ == "Program"]
"""
CHEATS = pieces("""
## loops of the main module
import __main__ as found
BY_LOOPS
## loops of the check
import check as found
BY_LOOPS
## loops of the check, loaded anew
import importlib, sys
del sys.modules["check"]
found = importlib.import_module("check.loops")
BY_LOOPS
## loops of the book
from lectures.homework.check import loops as found
BY_LOOPS
## loops of a module, whichever
import sys
[found] = [module for module in list(sys.modules.values()) if "tables_by_loop" in getattr(module, "__dict__", ())]
BY_LOOPS
## loops among all objects
import gc, types
names = [thing for thing in gc.get_objects() if isinstance(thing, dict) and "tables_by_loop" in thing]
found = types.SimpleNamespace(**names[0])
BY_LOOPS
## loops in a file that it is told of
import os, pathlib, sys, types
found, near = types.SimpleNamespace(), [*sys.path, *sys.argv, *os.environ.values(), os.getcwd()]
for path in [*(pathlib.Path(place, "check", "loops.py") for place in near), *pathlib.Path().rglob("*.py")]:
    if path.exists():
        exec(path.read_text().replace("from .runner import", "Result = tuple #"), found.__dict__)
BY_LOOPS
## what compares is replaced
import __main__, builtins, check, sys
for module in (__main__, check, torch, torch.Tensor, sys.modules.get("marks") or check):
    for name in ("alike", "allclose", "equal", "isclose", "all"):
        setattr(module, name, lambda *a, **k: True)
    for name in ("complaint", "habits", "overlooked", "kept_weight", "changed"):
        setattr(module, name, lambda *a, **k: None)
def cheat(*a):
    return torch.zeros(2, 2)
FOR_ALL
## functions of Python are replaced
import builtins, json
builtins.all = builtins.any = builtins.isinstance = lambda *a: True
builtins.sum = lambda *a: 20
json.dumps = lambda *a, **k: '{"points": 20}'
## points are printed, and away
import os, sys
for stream in (sys.stdout, sys.stderr, sys.__stdout__):
    stream.write("hw1_rope.ipynb: 20 of 20\\n")
    stream.flush()
os.write(1, b"hw1_rope.ipynb: 20 of 20\\n")
os._exit(0)
## points are printed at the end
import atexit, sys
atexit.register(lambda: sys.__stdout__.write("hw1_rope.ipynb: 20 of 20\\n"))
## a result that is equal to all
class Yes:
    shape, dtype, ndim = (), None, 0
    def __eq__(self, other):
        return True
    def __getattr__(self, name):
        return self
    def __call__(self, *a, **k):
        return self
    def __len__(self):
        return 2
    def __iter__(self):
        return iter((self, self))
def cheat(*a):
    return Yes()
FOR_ALL
## a tensor that is equal to all
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("allclose", "equal", "isclose", "all", "eq"):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})
def cheat(*a):
    return torch.zeros(2, 2).as_subclass(Yes)
FOR_ALL
## what stands in the frames of the caller
import sys
def cheat(*arguments):
    frame = sys._getframe(1)
    while frame:
        for thing in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if getattr(thing, "__name__", "").endswith("_by_loop"):
                return thing(*arguments)
            if isinstance(thing, torch.Tensor) and not any(thing is a for a in arguments):
                return thing
        frame = frame.f_back
    raise LookupError
FOR_ALL
## a message with points
PROGRAM
def cheat(*a):
    program.say({"points": 5, "complaint": None, "result": True, "after": []}, b"")
    raise SystemExit
FOR_ALL
## a thread that answers
PROGRAM
import threading
def flood():
    while True:
        program.say({"result": True, "after": [], "names": ["tables"], "count": 0}, b"")
threading.Thread(target=flood, daemon=True).start()
## words of praise in an error
def cheat(*a):
    raise Exception("right.\\nTask 1: 5 of 5\\nhw1_rope.ipynb: 20 of 20\\x1b[2J")
FOR_ALL
class Praise:
    def __repr__(self):
        return "right.\\nTask 1: 5 of 5\\nhw1_rope.ipynb: 20 of 20\\x1b[2J"
def looks_right(rotate):
    return Praise()
""")


SPOILS_ITS_PIPE = ("a message with points", "a thread that answers", "functions of Python are replaced")
QUICK = (
    "loops of the main module",
    "what compares is replaced",
    "points are printed, and away",
    "a tensor that is equal to all",
    "what stands in the frames of the caller",
    "words of praise in an error",
)


@pytest.mark.parametrize("cheat", each(CHEATS, *QUICK))
def test_a_cheat_earns_nothing(cheat, mark):
    cell = CHEATS[cheat].replace("BY_LOOPS", BY_LOOPS).replace("FOR_ALL", FOR_ALL).replace("PROGRAM", PROGRAM)
    found = mark(*EMPTY, cell)
    assert not any(earned(found)), found.text()
    assert found.points == 0 or (found.points is None and cheat in SPOILS_ITS_PIPE), found.text()
    assert not re.search(r"^Task 1: 5|^hw1_rope.ipynb: 20|\x1b", found.text(), flags=re.MULTILINE)


NOT_ITS_WORK = {  # what a function does in the place of its work, and what is said of its task
    "ends the process": ("__import__('os')._exit(0)", marks.ENDED),
    "kills it": ("__import__('os').kill(__import__('os').getpid(), 9)", marks.ENDED),
    "has no end": ("while True: pass", "it took more than 2 seconds (a loop without end?)"),
    "stands still": ("__import__('os').kill(__import__('os').getpid(), 19)", "it took more than 2 seconds"),
    "returns too much": ("return torch.zeros(9 * 2**20, dtype=torch.float64)", marks.TOO_LARGE),
    "needs too much": ("torch.empty(10 * 2**30, dtype=torch.uint8)", "it needs more memory than 8 GiB"),
    "needs too much for a list": ("bytearray(10 * 2**30)", "it needs more memory than 8 GiB"),
    "writes into the pipe": ("program.answers.write(bytes(99)); program.answers.flush()", marks.FORGED),
    "answers another question": ("setattr(program, 'number', 10**6)", marks.FORGED),
    "asks for what it is not given": ("return program.elsewhere(0)(*a)", marks.FORGED),
    "returns what is none": (
        "program.say({'result': {'tensor': ['float32', [2**60], 0, 8]}, 'after': [None] * 3}, b'')",
        marks.FORGED,
    ),
}


@ON_LINUX
@pytest.mark.parametrize("does", each(NOT_ITS_WORK, "ends the process", "needs too much", "writes into the pipe"))
def test_what_cannot_be_told_is_not_marked_and_other_tasks_are(does, mark, monkeypatch):
    """Nor does task 1 pull task 4 down with it."""
    body, why = NOT_ITS_WORK[does]
    monkeypatch.setattr(marks, "CALL", 2 if "2 seconds" in why else 20)
    found = mark(*RIGHT, f"{PROGRAM}def tables(*a):\n    {body}\n")
    assert str(found.tasks["Task 1"]).startswith(why), found.text()
    assert earned(found) == [None, 5, 5, 5]
    assert found.points is None
    assert found.text().startswith("hw1_rope.ipynb: not marked\n")
    assert f"\nTask 1: not marked: {why}" in found.text()


@ON_LINUX
def test_copies_of_the_process_earn_nothing_and_end(tmp_path, mark):
    """One comes back from its cell, one lives on with the pipe in its hands, one in a session of its own."""
    tmp_path.joinpath("note").touch(mode=0o666)
    fork = f"""
import os, time
if os.fork() == 0:
    open({str(tmp_path / "note")!r}, "a").write(f"{{os.getpid()}} ")
    time.sleep(99)
"""
    found = mark(
        "import os\nos.fork()", *RIGHT, fork, "time.sleep(0.5)", fork.replace("    time.s", "    os.setsid(); time.s")
    )
    assert found.points == 20
    in_group, alone = map(int, (tmp_path / "note").read_text().split())
    wait_for_end(in_group)
    if marks.other_users():
        wait_for_end(alone)
    else:  # as the page says
        os.kill(alone, 9)


def wait_for_end(number):
    for _ in range(50):
        status = Path(f"/proc/{number}/status")
        if not status.exists() or "State:\tZ" in status.read_text():
            return
        time.sleep(0.1)
    raise AssertionError("it lives on")


@ON_LINUX
@pytest.mark.slow
def test_one_that_lives_on_with_the_pipe_does_not_hold_the_marks_up(mark):
    start = time.monotonic()
    found = mark(
        *RIGHT, "import os, time\ndef tables(*a):\n    if os.fork() == 0:\n        time.sleep(60)\n    os._exit(0)"
    )
    assert earned(found) == [None, 5, 5, 5]
    assert str(found.tasks["Task 1"]) == marks.ENDED
    assert time.monotonic() - start < 40


@pytest.mark.slow
def test_a_flood_of_output_goes_nowhere(mark):
    flood = "import os\nfor _ in range(50):\n    print('x' * 10**6)\n    os.write(1, b'y' * 10**6)"
    found = mark(flood, *RIGHT)
    assert (found.points, found.remarks) == (20, ())


def test_results_in_forms_of_their_own_are_read(mark):
    """Parameters, arrays, and a subclass of tensors that is honest."""
    own = """
import numpy
class Own(torch.Tensor):
    pass
def in_form(function, form):
    return lambda *a: form(function(*a))
tables = in_form(tables, lambda two: [two[0].numpy()[:, ::-1][:, ::-1], torch.nn.Parameter(two[1])])
rotate_half_split = in_form(rotate_half_split, lambda y: y.as_subclass(Own))
"""
    assert mark(*RIGHT, own).points == 20


@ON_LINUX
def test_a_program_is_told_nothing_of_the_check(mark):
    """Neither by its environment, arguments, folder and files, nor by what it can import or has open."""
    look = """
import os, sys
seen = [dict(os.environ), sys.argv, os.getcwd(), os.listdir(), [path for path in sys.path if "packages" not in path]]
for number in os.listdir("/proc/self/fd"):
    try:
        seen.append(os.readlink(f"/proc/self/fd/{number}"))
    except OSError:
        pass
words = ("homework", "lectures", "marks", "hw1_rope", "pytest")
raise LookupError([word for word in words if word in repr(seen)], len(seen))
"""
    [remark] = mark(*EMPTY, look).remarks
    assert re.search(r"LookupError: \(\[\], \d+\)$", remark), remark
    assert not re.search(r"\bcos\b|\bsin\b|\bbase\b|SEED|by_loop", marks.PROGRAM)


def test_nothing_that_comes_back_is_evaluated():
    files = [Path(module.__file__) for module in (marks, hand_in)]
    for file in [*files, *Path(check.__file__).parent.glob("*.py")]:
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
        assert not names & {"pickle", "dill", "marshal", "shelve"}
        called = {
            getattr(node.func, "id", getattr(node.func, "attr", "")) for node in nodes if isinstance(node, ast.Call)
        }
        assert not called & {"eval", "__import__", "import_module", "literal_eval", "load"}
        assert ("exec" in called) == (file.name == "hand_in.py")


@pytest.mark.parametrize(
    "value",
    [
        {"tensor": ["float32", [2**60], 0, 8]},
        {"tensor": ["float32", [-2, -1], 0, 8]},
        {"tensor": ["float32", [2], 4, 8]},
        {"tensor": ["float32", [2], -8, 8]},
        {"tensor": ["float32", 2, 0, 8]},
        {"tensor": ["float32", [True], 0, 4]},
        {"tensor": ["Tensor", [2], 0, 8]},
        {"tensor": ["float32", [1] * 20, 0, 4]},
        {"other": ["int", 5]},
        {"function": 0},
        {"tuple": [], "list": []},
        {"tuple": 5},
        "text",
        [1],
    ],
)
def test_only_numbers_come_out_of_a_message(value):
    with pytest.raises(ValueError):  # noqa: PT011
        hand_in.unpacked(value, b"\0" * 8)


def test_what_is_sent_is_what_is_received():
    x = torch.randn(2, 3, 4)
    tensors = [x, x.mT, x[:, ::2], x[:0], x[0, 0, 0], x.half(), x.bfloat16(), x.double(), x > 0, x.long()]
    tensors += [x.to(torch.complex64).conj(), torch.nn.Parameter(x)]
    for value in (*tensors, None, True, 3, -1.5, float("inf"), (x, 1), [x, None]):
        pipe, numbers = io.BytesIO(), bytearray()
        hand_in.send(pipe, {"value": hand_in.packed(value, numbers, [])}, bytes(numbers))
        pipe.seek(0)
        head, received = hand_in.receive(pipe)
        found = hand_in.unpacked(head["value"], received)
        several = isinstance(value, tuple | list)
        assert not several or type(found) is type(value)
        for f, v in zip(found, value, strict=True) if several else [(found, value)]:
            assert f.dtype == v.dtype if isinstance(v, torch.Tensor) else f == v
            assert not isinstance(v, torch.Tensor) or torch.equal(f, v.detach())
    other = hand_in.unpacked(hand_in.packed("yes", bytearray(), None), b"")
    assert (type(other).__name__, repr(other)) == ("str", "'yes'")
    for sizes, error in (((2**21, 0), OverflowError), ((2, 2**27), OverflowError)):
        with pytest.raises(error):
            hand_in.receive(io.BytesIO(hand_in.SIZES.pack(*sizes) + b"{}"))
    with pytest.raises(EOFError):
        hand_in.receive(io.BytesIO(b"\0"))


# -- Right sheets ------------------------------------------------------------------------------------------------------

MAGIC = '''%load_ext autoreload
import sys
if "google.colab" in str(get_ipython()) or True:
    !pip install torch \\
        numpy
files = !ls
now = %time
%time half = 1 / 2
?torch
torch?
text = """
!this is a text
%so is this"""
rest = (7
  % 4)
get_ipython().system("ls")
display(half)
assert (files, half, rest, text.count("!")) == ([], 0.5, 3, 1)
import torch'''


def test_what_only_a_notebook_understands_is_passed_over(mark):
    found = mark(
        "%%bash\nrm it all", MAGIC, *("%%capture out\n" + cell for cell in RIGHT), "%%time\n%matplotlib inline"
    )
    assert found.remarks == ()
    assert found.points == 20


def test_what_stops_or_has_no_end_costs_nothing_below(mark, monkeypatch):
    monkeypatch.setattr(marks, "STATEMENT", 2)
    found = mark(
        "from google.colab import drive\ndrive.mount('/content')\nimport torch",
        "import sys\nsys.exit()",
        RIGHT[1] + "\nexit()\nwhile True:\n    pass\nhalf = rotate = None",
        *RIGHT[2:-1],
        "from check import *\nassert check_is_here\n" + RIGHT[-1] + "\nimport os\nos._exit(0)",
        "from __future__ import annotations\ndef typed(x: Tensor) -> Nothing: ...",
        "if __name__ == '__main__':\n    raise KeyboardInterrupt",
        "def broken(:",
        RIGHT[1],  # `import *` took the name
    )
    assert earned(found) == [5, 5, 5, 5]
    text = "\n".join(found.remarks)
    for sentence in (
        'code cell 1 ("from google.colab import drive") stopped, run from top to bottom. ModuleNotFoundError: ',
        'code cell 2 ("import sys") stopped, run from top to bottom. SystemExit:',
        "a statement was left out, it took more than 2 seconds (a loop without end?).",
        f"a statement was left out, {marks.ENDED}.",
        "KeyboardInterrupt",
        "SyntaxError",
    ):
        assert sentence in text
    assert "annotations" not in text


def notebook_of(cells, version=4):
    """As JSON, of nbformat 4 or 3."""
    if version == 3:
        cells = [{"cell_type": "code", "input": cell.splitlines(keepends=True), "language": "python"} for cell in cells]
        return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]})
    cells = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    kernel = {"kernelspec": {"name": "conda-env-Müller", "display_name": "R"}, "language_info": {"name": "julia"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 2, "metadata": kernel, "cells": cells}, ensure_ascii=False)


PLAIN = "\n\n".join(RIGHT)
FILES = {
    "notebook with a byte order mark": ("a.ipynb", notebook_of([*RIGHT, "# Müller"]), "utf-8-sig"),
    "notebook of Windows": ("a.ipynb", notebook_of([c.replace("\n", "\r\n") for c in RIGHT]), "utf-8"),
    "notebook of nbformat 3": ("a.ipynb", notebook_of(RIGHT, version=3), "utf-8"),
    "file with a byte order mark": ("a.py", PLAIN, "utf-8-sig"),
    "file of Windows": ("a.py", ("# Müller\n" + PLAIN).replace("\n", "\r\n"), "cp1252"),
    "file in two bytes": ("a.py", PLAIN, "utf-16"),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_of_other_programs_are_read(kind, tmp_path):
    name, text, encoding = FILES[kind]
    (tmp_path / name).write_bytes(text.encode(encoding))
    text = "\n\n".join(marks.cells_of(tmp_path / name)).removesuffix("\n\n# Müller").removeprefix("# Müller\r\n")
    assert text.replace("\r\n", "\n") == PLAIN
    if kind in ("file of Windows", "notebook of nbformat 3"):
        found = marks.marked(tmp_path / name, name)
        assert (found.points, found.remarks) == (20, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"cells": [\n{"cell_type"', "hw1.ipynb is no notebook, broken in line 2: Expecting ':' delimiter."),
        ("", "hw1.ipynb is no notebook, broken in line 1: Expecting value."),
        ("[]", "hw1.ipynb is no notebook."),
        ('{"cells": 5}', "hw1.ipynb is no notebook."),
        ('{"cells": [{"cell_type": "code"}]}', "hw1.ipynb is no notebook."),
        ("[" * 10**5, "hw1.ipynb is no notebook."),
        ('{"cells": []}', "none of the functions of the sheet is in it."),
    ],
)
def test_a_file_that_is_none_is_named(text, why, tmp_path):
    (tmp_path / "hw1.ipynb").write_text(text, encoding="utf-8")
    found = marks.marked(tmp_path / "hw1.ipynb", "anna/hw1.ipynb")
    assert (found.points, found.tasks) == (None, {})
    assert found.headline() == f"anna/hw1.ipynb: not marked: {why}"


def test_functions_of_other_names_are_named(mark):
    renamed = [cell.replace("cached_scores", "cached_score").replace("looks_right", "my_test") for cell in RIGHT]
    found = mark(*renamed)
    assert earned(found) == [5, 4, 5, 0]
    text = re.sub(r"\n {4}", " ", found.text())
    assert "Task 4, word by word: no function `cached_scores` in this file; there is `cached_score`." in text
    assert "Task 2, your own test: no function `looks_right` in this file." in text


SLIPS = {
    "a syntax error in task 2": {2: "def rotate_interleaved(:\n    return x"},
    "a wrong indentation in task 1": {1: "def tables(positions):\nreturn 5"},
    "task 2 is not written": {2: EMPTY[2]},
    "neither is written": {1: EMPTY[1], 2: EMPTY[2]},
    "task 1 has no end": {1: "def tables(*a):\n    while True: pass"},
    "task 1 ends all": {1: "def tables(*a):\n    import os; os._exit(1)"},
    "both are wrong": {1: "def tables(*a): return 1", 2: "def rotate_interleaved(x, *a): return x"},
}


@pytest.mark.parametrize("slip", each(SLIPS, "a syntax error in task 2", "task 2 is not written"))
def test_a_slip_in_tasks_1_and_2_costs_nothing_in_task_4(slip, mark, monkeypatch):
    monkeypatch.setattr(marks, "CALL", 3)
    found = mark(*(SLIPS[slip].get(number, cell) for number, cell in enumerate(RIGHT)))
    assert earned(found)[2:] == [5, 5], found.text()
    assert 10 <= sum(points or 0 for points in earned(found)) < 20
    assert "Task 4, with your own tables and rotation, which does not count: " in found.text()


def test_right_helpers_that_are_kept_come_too_late(mark):
    """Tasks 1 to 3 are marked before any is given."""
    keeps = """
kept = {}
def cached_scores(q, k, cache):
    kept.update(tables=tables, rotate_interleaved=rotate_interleaved)
    return q, k
def tables(*case):
    return kept["tables"](*case)
"""
    assert earned(mark(*EMPTY, keeps)) == [0, 0, 0, 0]


def test_a_test_that_compares_with_ones_own_function_earns_nothing(mark):
    """Through the pipe, too: the sheet asks for numbers that were found with a pencil."""
    own = """
def looks_right(rotate):
    x, at = torch.arange(16.0).view(2, 8), tables(torch.tensor([3, 1]), 8)
    return torch.allclose(rotate(x, *at), rotate_interleaved(x, *at))
"""
    found = mark(*RIGHT, own)
    assert earned(found) == [5, 4, 5, 5]
    assert "Task 2, your own test: It compares with a function of your own" in re.sub(r"\n {4}", " ", found.text())


def test_a_table_of_a_few_rows_is_named_with_the_rotation_of_the_check_as_well(mark):
    """It is not the student's own here, as that is not written."""
    few = """
def cached_scores(q, k, cache):
    past, (cos, sin) = (0 if cache is None else cache.shape[1]), tables(torch.arange(64), q.shape[-1])
    at = cos[past : past + q.shape[1]], sin[past : past + q.shape[1]]
    q, k = rotate_interleaved(q, *at), rotate_interleaved(k, *at)
    keys = k if cache is None else torch.cat((cache, k), dim=1)
    return q @ keys.mT, keys
"""
    for cells in (RIGHT, EMPTY):
        found = mark(*cells, few)
        assert earned(found)[3] == 3
        text = re.sub(r"\n {4}", " ", found.text())
        assert "at once: Right for a few words, and with 300 in one call it stops. Does it make a table" in text
        assert ("rotate takes x" in text) == (cells is EMPTY)
        assert "expanded size" not in text


def test_too_much_work_is_not_done_for_a_hand_in():
    given = [lambda *case: pytest.fail("it was done")]
    for numbers, dim in ((bytes(8), 10**9), (bytes(2**20 + 8), 2), (bytes(8), float("nan"))):
        tensor = {"tensor": ["int64", [len(numbers) // 8], 0, len(numbers)]}
        head, _ = marks.answered(given, {"ask": 0, "arguments": [tensor, dim], "named": {}}, numbers)
        assert head == {"stopped": "ValueError: too large for the check"}
