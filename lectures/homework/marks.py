"""Marks hand-ins of homework 1, one or many:

    python marks.py handed-in                 a folder as Moodle, Canvas or Gradescope writes it
    python marks.py hw1_rope.ipynb other.py

Into a new folder `marks`: points.csv, moodle.csv, and for each file a text in feedback and one for Gradescope in
results. A file runs in a process of its own, which is asked for results (see hand_in.py); cases, comparison and points
are here. The page beside this file says what that stops, what it does not, and how to do it in a container.
"""

import contextlib
import csv
import ctypes
import difflib
import functools
import html
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

if __package__:
    from lectures.homework import check, hand_in
else:  # both stand beside this file, and this check has other numbers than that of the book
    import check
    import hand_in

clean, runner = hand_in.clean, check.runner
STATEMENT, CALL, WHOLE = 20, 20, 120  # seconds: for a statement of a cell, for a call, for a file
LIMITS = {"RLIMIT_AS": 8 * 2**30, "RLIMIT_FSIZE": 2**26, "RLIMIT_CORE": 0}  # bytes
HIDDEN = ("marks", "hand_in", "rope_lib", "lectures", "lab", "figures")  # where a right answer could be found
SUFFIXES, LARGEST = (".ipynb", ".py"), 50 * 2**20  # bytes
PROGRAM = Path(hand_in.__file__).read_text(encoding="utf-8")
ENDED = "its program ended (os._exit, or a crash)"
FORGED = "something else than a result came through its pipe"
TOO_LARGE = f"what came back is larger than {hand_in.MOST_NUMBERS // 2**20} MiB"


# -- A hand-in in a process of its own ---------------------------------------------------------------------------------


class HandIn:
    """Cells in a process, and their functions. A statement that ends it is left out, and the others are run again."""

    def __init__(self, cells: list[str], *, of_notebook: bool = True) -> None:
        self.cells, self.of_notebook, self.until = cells, of_notebook, time.monotonic() + WHOLE
        self.process: subprocess.Popen | None = None
        self.remarks: dict[tuple[int, int], str] = {}  # one for a cell, and one for each statement that is left out
        self.left_out: set[tuple[int, int]] = set()
        self.names: list[str] = []

    def __enter__(self) -> "HandIn":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self) -> None:
        """Start the process and run the cells."""
        while self.process is None:
            self.place = None
            self.launch()
            try:
                self.run_cells()
            except runner.Untold as why:
                if self.place in self.left_out | {None} or time.monotonic() > self.until:
                    raise
                self.left_out.add(self.place)
                self.remarks[self.place] = f"{self.title(self.place[0])}: a statement was left out, {why}."

    def launch(self) -> None:
        """A process in an empty folder, and nothing that says where this file is."""
        self.folder, self.number = tempfile.mkdtemp(), 0
        kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
        places = dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP"), self.folder)
        options: dict = {"start_new_session": True} if os.name == "posix" else {}
        self.user = unused_user() if other_users() else None
        if self.user:
            os.chown(self.folder, self.user, self.user)
            options |= {"user": self.user, "group": self.user, "extra_groups": []}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", **kept, **places}, **options,
        )  # fmt: skip
        packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        name = "__main__" if self.of_notebook else "handed_in"
        self.order({"packages": packages, "hidden": HIDDEN, "limits": LIMITS, "name": name}, WHOLE)

    def run_cells(self) -> None:
        """From top to bottom. A statement that stops is named, and the next one is run."""
        for cell, source in enumerate(self.cells):
            self.place = cell, 0
            reply, _ = self.order({"read": source}, STATEMENT)
            stops, count = told(reply), reply.get("count", 0)
            for statement in range(count if type(count) is int else 0):
                self.place = cell, statement
                if self.place not in self.left_out:
                    reply, _ = self.order({"run": statement}, STATEMENT)
                    stops = stops or told(reply)
            if stops:
                what = f"{self.title(cell)} stopped, run from top to bottom. {stops[0]}: {stops[1]}"
                self.remarks.setdefault((cell, -1), what)
        reply, _ = self.order({"defined": None}, STATEMENT)
        names = reply.get("names")
        self.names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def title(self, cell: int) -> str:
        """A cell in words."""
        source = self.cells[cell].strip()
        return f'code cell {cell + 1} ("{source.splitlines()[0] if source else ""}")' if self.of_notebook else "it"

    def call(self, name: str, arguments: tuple, given: dict[str, Callable]) -> object:
        """The result of a function; what it wrote into its arguments is written into these."""
        self.begin()
        numbers, functions, end = bytearray(), list(given.values()), time.monotonic() + CALL
        head = {"call": name, "given": {helper: number for number, helper in enumerate(given)}}
        head["arguments"] = [hand_in.packed(argument, numbers, functions) for argument in arguments]
        reply, numbers = self.order(head, CALL, numbers)
        try:
            while "ask" in reply:
                head, numbers = answered(functions, reply, numbers)
                reply, numbers = self.order(head, end - time.monotonic(), numbers)
            if stops := told(reply):
                if stops[0] == "MemoryError" or "t allocate memory" in stops[1]:
                    raise runner.Untold(f"it needs more memory than {LIMITS['RLIMIT_AS'] // 2**30} GiB")
                raise runner.Stopped(*stops)
            for argument, after in zip(arguments, reply["after"], strict=True):
                if isinstance(argument, Tensor):
                    argument.data = hand_in.unpacked(after, numbers)
            return hand_in.unpacked(reply["result"], numbers)
        except (runner.Stopped, runner.Untold):
            raise
        except Exception as error:  # whatever may come of a message
            self.close()
            raise runner.Untold(FORGED) from error

    def order(self, head: dict, seconds: float, numbers: bytes = b"") -> tuple[dict, bytes]:
        """Send a message and wait for the answer to it."""
        self.number += 1
        process, box, end = self.process, queue.SimpleQueue(), min(time.monotonic() + seconds, self.until)

        def work() -> None:
            try:
                hand_in.send(process.stdin, {**head, "number": self.number}, bytes(numbers))
                box.put(hand_in.receive(process.stdout))
            except Exception as error:
                box.put(error)

        threading.Thread(target=work, daemon=True).start()
        found, ended = None, 0
        while found is None and ended < 3:
            with contextlib.suppress(queue.Empty):
                found = box.get(timeout=0.1)
                break
            ended += process.poll() is not None  # and one that it left behind may hold the pipe
            if time.monotonic() > end:
                whole = f"{WHOLE} seconds for the file" if end == self.until else f"{seconds:.0f} seconds"
                found = runner.Untold(f"it took more than {whole} (a loop without end?)")
        if isinstance(found, tuple) and found[0].get("number") == self.number:
            return found
        self.close()
        if isinstance(found, runner.Untold):
            raise found
        reasons = {type(None): ENDED, EOFError: ENDED, BrokenPipeError: ENDED, OverflowError: TOO_LARGE}
        raise runner.Untold(reasons.get(type(found), FORGED))

    def close(self) -> None:
        """End the process and what it left behind, as far as that can be found."""
        if self.process is None:
            return
        with contextlib.suppress(OSError, AttributeError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        while self.user and (left := processes_of(self.user)):
            for number in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.process = None


def told(reply: dict) -> tuple[str, str, str] | None:
    """The class of an error, its message and the function in which it was raised, if there is one."""
    stops = reply.get("stopped")
    if stops is None:
        return None
    if not (isinstance(stops, list) and len(stops) == 3 and all(isinstance(part, str) for part in stops)):
        return "Error", "", ""
    kind, why, within = (clean(part) for part in stops)
    return kind, why, within


def answered(functions: list[Callable], reply: dict, numbers: bytes) -> tuple[dict, float, bytes]:
    """The answer to a hand-in that calls one of the functions that it was given, unless that is too much work."""
    number, out = reply["ask"], bytearray()
    if type(number) is not int or not 0 <= number < len(functions):
        raise ValueError(number)
    arguments = [hand_in.unpacked(argument, numbers) for argument in reply["arguments"]]
    named = {name: hand_in.unpacked(argument, numbers) for name, argument in reply["named"].items()}
    largest = max((abs(value) for value in [*arguments, *named.values()] if isinstance(value, int | float)), default=1)
    if len(numbers) > 2**20 or not len(numbers) * largest < 10**8:
        return {"stopped": "ValueError: too large for the check"}, b""
    try:
        return {"result": hand_in.packed(functions[number](*arguments, **named), out, [])}, out
    except Exception as error:
        return {"stopped": str(error)}, b""


def processes_of(user: int) -> list[int]:
    """On Linux; elsewhere none are found."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [int(entry.name)] * (
                entry.stat().st_uid == user and "State:\tZ" not in (entry / "status").read_text()
            )
    return found


@functools.cache
def other_users() -> bool:
    """Whether each file can run as a user of its own: it takes root, and a Python that others may start."""
    if os.name != "posix" or os.geteuid() != 0:
        return False
    command = [sys.executable, "-I", "-S", "-c", "import sys; open(sys.argv[1])", torch.__file__]
    user = unused_user()
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return (
            subprocess.run(command, user=user, group=user, extra_groups=[], stderr=subprocess.DEVNULL).returncode == 0
        )
    return False


def unused_user() -> int:
    """The number of a user that has neither a name nor a process."""
    import pwd

    taken = {entry.pw_uid for entry in pwd.getpwall()}
    while (user := random.SystemRandom().randrange(60001, 65000)) in taken or processes_of(user):
        pass
    return user


# -- What a file earns -------------------------------------------------------------------------------------------------


class Function:
    """A function of a hand-in, as the check calls it: results of its own helpers can be given (`__globals__`)."""

    def __init__(self, program: HandIn, name: str) -> None:
        self.program, self.__name__, self.__globals__ = program, name, {}

    def __call__(self, *arguments: object) -> object:
        return self.program.call(self.__name__, arguments, self.__globals__)


def missing(name: str, names: Iterable[str]) -> Callable:
    """In the place of a function that is not in the file."""
    wanted = {function for task in check.TASKS.values() for function in task.functions}
    near = difflib.get_close_matches(name, set(names) - wanted, n=1)
    instead = f"; there is `{clean(near[0])}`" if near else ""

    def function(*_: object) -> None:
        raise runner.Wrong(f"no function `{name}` in this file{instead}.")

    return function


class Marks(NamedTuple):
    """What a file earned: for each task its steps, or why it could not be marked."""

    file: str  # below the common folder
    student: str
    number: str  # as the system writes it into the name of the folder or file
    tasks: Mapping[str, list[runner.Step] | str] = MappingProxyType({})
    remarks: tuple[str, ...] = ()
    run_rope: str = ""
    why_none: str = ""  # nothing could be marked

    @property
    def points(self) -> int | None:
        """None if a task could not be marked."""
        if self.why_none or not self.tasks or any(isinstance(steps, str) for steps in self.tasks.values()):
            return None
        return sum(map(runner.earned, self.tasks.values()))

    def headline(self) -> str:
        """One line."""
        if self.why_none:
            return f"{self.file}: not marked: {self.why_none}"
        return f"{self.file}: {'not marked' if self.points is None else f'{self.points} of {5 * len(check.TASKS)}'}"

    def text(self) -> str:
        """What the student gets."""
        lines = [self.headline(), *self.remarks]
        for task, steps in self.tasks.items():
            lines.append(of_task(task, steps))
        return "\n".join([*lines, self.run_rope]).strip() + "\n"


def of_task(task: str, steps: list[runner.Step] | str) -> str:
    """A task in words."""
    if isinstance(steps, str):
        return f"{task}: not marked: {steps}."
    return check.in_words(task, steps)


def marked(path: Path, file: str) -> Marks:
    """Run a file and ask its functions."""
    marks = Marks(file, *whose(path, file))
    try:
        with HandIn(cells_of(path), of_notebook=path.suffix == ".ipynb") as program:
            program.begin()
            tasks = {task: of_file(program, task) for task in check.TASKS}
            rope = ""
            if "run_rope" in program.names:
                try:
                    rope = check.said("run_rope", check.of_run_rope(Function(program, "run_rope")))
                except runner.Untold as why:
                    rope = f"run_rope: not marked: {why}."
            if not any(name in program.names for task in check.TASKS.values() for name in task.functions):
                tasks = {}
            none = "" if tasks or rope else "none of the functions of the sheet is in it."
            return marks._replace(
                tasks=tasks, remarks=tuple(map(clean, program.remarks.values())), run_rope=rope, why_none=none
            )
    except (runner.Untold, OSError) as why:
        return marks._replace(why_none=f"{clean(str(why))}.")


def of_file(program: HandIn, task: str) -> list[runner.Step] | str:
    """The steps of a task, or why it cannot be marked."""
    names = program.names
    functions = (Function(program, n) if n in names else missing(n, names) for n in check.TASKS[task].functions)
    try:
        return check.TASKS[task].steps(*functions)
    except runner.Untold as why:
        return str(why)
    except Exception as error:  # of the check: to be mended here, and no fault of the student's
        return f"the check itself stopped ({type(error).__name__}: {clean(str(error))})"


def cells_of(path: Path) -> list[str]:
    """The code of a notebook, cell by cell, or of a file."""
    if path.stat().st_size > LARGEST:
        raise runner.Untold(f"the file is larger than {LARGEST // 2**20} MiB")
    content = path.read_bytes()
    if path.suffix != ".ipynb":
        with contextlib.suppress(UnicodeDecodeError):
            return [content.decode("utf-8-sig")]
        return [content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1")]
    try:
        notebook = json.loads(content)  # with a byte order mark or without
        sheets = notebook.get("worksheets", [notebook])  # nbformat 3
        cells = [cell for sheet in sheets for cell in sheet["cells"] if cell["cell_type"] == "code"]
        return ["".join(cell["source" if "source" in cell else "input"]) for cell in cells]
    except json.JSONDecodeError as error:
        raise runner.Untold(f"{path.name} is no notebook, broken in line {error.lineno}: {error.msg}") from None
    except (KeyError, TypeError, AttributeError, RecursionError, UnicodeDecodeError, ValueError):
        raise runner.Untold(f"{path.name} is no notebook") from None


# -- Files, students, tables -------------------------------------------------------------------------------------------

MOODLE = re.compile(r"(?P<student>.+)_(?P<number>\d+)_assignsubmission_")  # a folder, or in front of the file's name
GRADESCOPE = re.compile(r"(?P<student>submission)_(?P<number>\d+)$")  # a folder
CANVAS = re.compile(r"(?P<student>[^_]+)(?:_LATE)?_(?P<number>\d+)_\d+_")  # in front of the file's name
SUBMITTERS = "submission_metadata.yml"  # beside Gradescope's folders: whose each of them is


def whose(path: Path, file: str) -> tuple[str, str]:
    """Name and number of a student, as far as a system wrote them; else the folder, or the file's name.

    The outermost folder decides: the folders in it, and the names of files, are a student's own.
    """
    path = path.absolute()
    for place in [*reversed(path.parents), path]:
        for system in (MOODLE, GRADESCOPE, CANVAS):
            if (system is not CANVAS or place == path) and (found := system.match(place.name)):
                people = submitters(place.parent).get(place.name, []) if system is GRADESCOPE else []
                names = ", ".join(name for name, _ in people) or shown(found["student"].replace("_", " "))
                return names, ", ".join(filter(None, (number for _, number in people))) or found["number"]
    return file.split("/")[0] if "/" in file else Path(file).stem, ""


@functools.cache
def submitters(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Who handed in each of Gradescope's folders: names, and numbers or else addresses, as far as it has them."""
    path, found = folder / SUBMITTERS, {}
    if not path.is_file():
        return {}
    try:
        import yaml

        for name, about in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            people = about[":submitters"] or []
            people = ([shown(one.get(key) or "") for key in (":name", ":sid", ":email")] for one in people)
            found[name] = [(called or sid or email, sid or email) for called, sid, email in people]
        return found
    except ImportError:
        why = "this Python has no PyYAML: pip install pyyaml"
    except Exception as error:  # whatever form the file has
        why = f"{type(error).__name__}: {clean(str(error))}"
    print(f"{path} cannot be read, so students have the numbers of Gradescope's folders for names. ({why})")
    return {}


def shown(name: object) -> str:
    """A name that can be written, whatever a disk made of it."""
    return clean(os.fsencode(str(name)).decode("utf-8", "replace"))


def gathered(given: list[Path]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Hand-ins by their path below the common folder, and students of whom there are other files only."""
    paths = sorted(path for one in given for path in (one.rglob("*") if one.is_dir() else [one]) if seen(path, one))
    common = given[0] if len(given) == 1 and given[0].is_dir() else Path(os.path.commonpath([p.parent for p in paths]))
    files = {shown(path.relative_to(common).as_posix()): path for path in paths}
    sheets = {file: path for file, path in files.items() if path.suffix in SUFFIXES and not path.is_symlink()}
    have = {whose(path, file) for file, path in sheets.items()}
    others = {file: path for file, path in files.items() if "/" in file and path.name != SUBMITTERS}
    return sheets, {file: path for file, path in others.items() if whose(path, file) not in have}


def seen(path: Path, below: Path) -> bool:
    """Whether it is a file, and none that a program keeps for itself."""
    parts = path.relative_to(below).parts if path != below else ()
    return path.is_file() and not any(part[0] == "." or part in ("__MACOSX", "__pycache__") for part in parts)


def first_sentence(complaint: str) -> str:
    """What a table has room for."""
    if complaint.startswith("It stopped."):
        return complaint.split(" Arguments: ")[0]
    return re.match(r".*?[.?!](?= |$)|.*", complaint.removeprefix(check.rounding.FORMULA_RIGHT))[0]


def mistakes(marks: Marks) -> set[str]:
    """The first sentences of what is wrong, task by task; of two mistakes at once both."""
    found = set()
    for task, steps in marks.tasks.items():
        for step in () if isinstance(steps, str) else steps:
            if step.worth and step.complaint and step.complaint != runner.LATER:
                both = re.findall(r"(?:First|Second): (.*?[.?!])(?= |$)", step.complaint)
                found |= {f"{task}, {step.name}: {what}" for what in both or [first_sentence(step.complaint)]}
    return found


def column(steps: list[runner.Step] | str) -> tuple[object, str]:
    """The points of a task and the first sentence on it."""
    if isinstance(steps, str):
        return "", f"not marked: {steps}."
    wrong = [step.complaint for step in steps if step.complaint and step.worth]
    return runner.earned(steps), first_sentence(wrong[0]) if wrong else "right."


def cell(value: object) -> object:
    """For a spreadsheet, which would compute what begins like a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def write_points(path: Path, all_marks: list[Marks]) -> None:
    """A row for each file, a column for each task."""
    heads = [head for task in check.TASKS for head in (task, f"{task} says")]
    rows = [["student", "number", "file", "points", *heads, "remarks"]]
    for marks in all_marks:
        tasks = (
            [part for task in check.TASKS for part in column(marks.tasks.get(task, ""))] if marks.tasks else [""] * 8
        )
        remarks = " ".join(
            filter(None, [marks.why_none and f"not marked: {marks.why_none}", *marks.remarks, marks.run_rope])
        )
        points = "" if marks.points is None else marks.points
        rows.append([cell(part) for part in (marks.student, marks.number, marks.file, points, *tasks, remarks)])
    with path.open("w", newline="", encoding="utf-8-sig", errors="replace") as table:  # Excel looks for the mark
        csv.writer(table).writerows(rows)


def write_moodle(path: Path, all_marks: list[Marks]) -> None:
    """As Moodle's grading worksheet, which an assignment takes back. Who handed in two sheets gets no grade here."""
    sheets = Counter((marks.student, marks.number) for marks in all_marks if marks.tasks or marks.why_none)
    rows = [["Identifier", "Full name", "Grade", "Last modified (grade)", "Feedback comments"]]
    for marks in all_marks:
        number = f"Participant {marks.number}" if marks.number else marks.file
        once = sheets[marks.student, marks.number] == 1
        grade = marks.points if once and marks.points is not None else ""
        comment = html.escape(marks.text(), quote=False).replace("\n", "<br>")
        rows.append([cell(number), cell(marks.student), grade, "-", comment])
    with path.open("w", newline="", encoding="utf-8", errors="replace") as table:
        csv.writer(table).writerows(rows)


def write_one(folder: Path, marks: Marks) -> None:
    """The text for a student, and the same as Gradescope reads it; without a score where a task is not marked."""
    text, results = (folder / kind / f"{marks.file}{end}" for kind, end in (("feedback", ".txt"), ("results", ".json")))
    for path in (text, results):
        path.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(marks.text(), encoding="utf-8", errors="replace")
    found: dict = {"output": "\n".join([marks.headline(), *marks.remarks, marks.run_rope]).strip(), "tests": []}
    for task, steps in marks.tasks.items():
        found["tests"].append({"name": task, "max_score": 5, "output": of_task(task, steps)})
        if marks.points is not None:
            found["tests"][-1]["score"] = runner.earned(steps)
    if marks.points is not None:
        found["score"] = marks.points
    results.write_text(json.dumps(found, indent=1), encoding="utf-8")


def new_folder() -> Path:
    """For results: no earlier ones are written over."""
    folder, number = Path("marks"), 1
    while folder.exists():
        number += 1
        folder = Path(f"marks-{number}")
    if number > 1:
        print(f"There is a folder `marks` already, which stays as it is. The results go to `{folder}`.")
    folder.mkdir(mode=0o700)
    return folder


def in_container() -> bool:
    """As far as podman, Docker and their like say so."""
    return "container" in os.environ or any(map(os.path.exists, ("/run/.containerenv", "/.dockerenv")))


def keep_to_oneself() -> None:
    """On Linux, what this process has in its memory is not for others of the same user to read."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def main(arguments: list[str]) -> None:
    """Mark what is given, and write tables."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")
    given = [Path(argument).absolute() for argument in arguments]
    if not given or not all(path.exists() for path in given):
        sys.exit("\n".join([__doc__, *(f"There is no {path}." for path in given if not path.exists())]))
    sheets, others = gathered(given)
    if not sheets and not others:
        sys.exit("There is no .ipynb and no .py.")
    if not in_container():
        print("This runs the students' programs as you, on this machine: they may read and change what you may.")
    elif not other_users():
        print("This runs the students' programs as the user of this program: they may read the check and one another.")
    keep_to_oneself()
    folder, all_marks = new_folder(), []
    try:
        for file, path in sheets.items():
            all_marks.append(marked(path, file))
            write_one(folder, all_marks[-1])
            print(all_marks[-1].headline() if len(sheets) > 1 else all_marks[-1].text(), flush=True)
        for file, path in others.items():
            all_marks.append(Marks(file, *whose(path, file), why_none="neither a notebook nor a Python file."))
            print(all_marks[-1].headline())
    finally:
        write_points(folder / "points.csv", all_marks)
        write_moodle(folder / "moodle.csv", all_marks)
    counts = Counter(mistake for marks in all_marks for mistake in mistakes(marks))
    for mistake, count in counts.most_common():
        if count > 1:  # what one got wrong stands in the table
            print(f"{count} of {len(all_marks)}  {mistake}")
    print(f"In {folder}: points.csv, moodle.csv, feedback, results.")


if __name__ == "__main__":
    main(sys.argv[1:])
