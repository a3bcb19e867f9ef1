"""The promises of the project's own files."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
import yaml

from tests.conftest import ROOT
from tools import setup


def requirements():
    lines = [
        line
        for name in ("requirements-book.in", "requirements.txt", "requirements-model.txt")
        for line in (ROOT / name).read_text().splitlines()
    ]
    return [re.split("#| --hash", line)[0].strip() for line in lines if line and line[0] not in "#-"]


def test_environment_is_the_lock():
    assert int(version("jupyter-book").split(".")[0]) < 2
    for line in requirements():
        name, pinned = line.split("==")
        assert version(name).split("+")[0] == pinned, line


def test_what_makes_the_pages_is_installed_by_hashes():
    """requirements-book.txt is made from requirements-book.in: the same versions, and no file without a hash."""
    listed = setup.pinned("requirements-book.in")
    locked = setup.pinned("requirements-book.txt")
    assert locked.items() >= listed.items()
    text = (ROOT / "requirements-book.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^[\w.-]+==.*(?:\n +--hash=sha256:[0-9a-f]{64}.*)*", text, re.MULTILINE)
    assert len(entries) == len(locked)
    assert [entry for entry in entries if "--hash" not in entry] == []
    constrained = setup.pinned("constraints.txt")
    other = {name: line for name, line in locked.items() if constrained.get(name, listed.get(name, line)) != line}
    assert other == {}, "run the command in the head of requirements-book.txt"


def test_programs_of_others_in_the_workflows_are_named_by_commit():
    """A tag can be moved to another program, a commit cannot."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    used = re.findall(r"uses: *(.*)", text)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}  # v[\d.]+", one)] == []


def test_what_sphinx_is_told_is_kept(tmp_path):
    """Should `jupyter-book build` fall away: with this file as conf.py, sphinx-build makes the same pages."""
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tmp_path)
    program = "from jupyter_book.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", program, "config", "sphinx", tmp_path], check=True, capture_output=True)
    kept = (ROOT / "tools" / "conf.py").read_text(encoding="utf-8")
    assert (tmp_path / "conf.py").read_text(encoding="utf-8") == kept, (
        "run: .venv/bin/jupyter-book config sphinx . && mv conf.py tools/conf.py"
    )


def test_library_asks_for_lower_bounds_only():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"]
    assert all(re.fullmatch(r"[a-z]+>=[\d.]+", line) for line in project["dependencies"])


def test_versions_agree():
    import rope_lib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert (project["project"]["dynamic"], project["tool"]["hatch"]["version"]["path"]) == (
        ["version"],
        "rope_lib/__init__.py",
    )
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert rope_lib.__version__ == citation["version"]
    assert f"Version {rope_lib.__version__}." in (ROOT / "_config.yml").read_text()
    assert f"## {rope_lib.__version__} ({citation['date-released']})" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path):
    """Built as the release is; all that the environment has beside it is torch, from here."""
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT], check=True)
    [wheel], [source] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    assert wheel.name.partition("-py3")[0] == source.name.removesuffix(".tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"rope_lib/py.typed", "rope_lib/theory/symbolic.py"} <= names
    assert not [name for name in names if name.startswith(("tests", "figures", "lab", "bench", "chapters"))]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    [packages] = (tmp_path / "empty" / "lib").glob("python*/site-packages")
    (packages / "torch_from_here.pth").write_text(str(Path(torch.__file__).parent.parent), encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    code = blocks[0] + "\nimport rope_lib; print(rope_lib.__version__, rope_lib.__file__)"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    version, place = done.stdout.split()[-2:]
    assert version == wheel.name.split("-")[1]
    assert Path(place).is_relative_to(packages)


def test_citation_has_what_the_format_requires():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert all({"name"} == set(author) or "family-names" in author for author in citation["authors"])


def test_each_chapter_on_disk_is_in_the_table_of_contents_and_in_the_index():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = {entry["file"] for part in toc["parts"] for entry in part["chapters"]} | {toc["root"]}
    on_disk = {f"chapters/{p.stem}" for p in (ROOT / "chapters").glob("*") if p.suffix in (".ipynb", ".md")}
    assert listed == on_disk, f"in chapters/ and not in _toc.yml, or there and not here: {sorted(listed ^ on_disk)}"
    index = (ROOT / "chapters" / "index.md").read_text()
    missing = [path.name for path in sorted((ROOT / "chapters").glob("*.ipynb")) if path.name not in index]
    assert not missing, f"no link in chapters/index.md leads to {missing}"


def test_every_source_of_the_bibliography_is_cited():
    keys = re.findall(r"^@\w+\{(\w+),", (ROOT / "chapters" / "references.bib").read_text(), re.MULTILINE)
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "chapters").glob("*.ipynb"))
    cited = set(re.findall(r"bibliography\.md#(\w+)\)", text)) | set(re.findall(r"bibliography\.html#(\w+)\\", text))
    assert [key for key in keys if key not in cited] == []


def test_names_of_torch_are_public():
    for path in (ROOT / "rope_lib").rglob("*.py"):
        for line in path.read_text().splitlines():
            assert not re.search(r"\btorch(\.\w+)*\._\w|from torch(\.\w+)* import _|from torch[\w.]*\._", line), line


def test_nothing_imports_the_benchmark():
    """Chapters and figures read the results that it stored."""
    rooms = ("rope_lib", "lab", "figures", "chapters", "lectures", "tools", "_ext")
    paths = [path for room in rooms for kind in ("py", "ipynb") for path in (ROOT / room).rglob(f"*.{kind}")]
    imports = re.compile(r"\b(from|import) bench\b")
    assert not [path for path in paths if imports.search(path.read_text(encoding="utf-8"))]


def test_code_of_the_readme_runs():
    code, _ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    names = {}
    exec(code, names)
    assert names["q"].shape == names["k"].shape == (1, 8, 16, 64)


WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8"))["jobs"]


def planned(*words):
    """What make would do."""
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_workflow_runs_library_and_chapters_with_old_new_and_colabs_versions():
    legs = [leg["versions"] for leg in WORKFLOW["versions"]["strategy"]["matrix"]["include"]]
    assert legs == ["", "torch numpy", "-c constraints-colab.txt"]
    for versions in legs:
        done = planned("versions", *([f"VERSIONS={versions}"] if versions else []))
        assert f"tools.setup versions {versions or 'torch==2.5'} --venv" in done
        assert "--doctest-modules --nbval-lax rope_lib tests/library chapters/*.ipynb" in done
        told = next(setup.commands("versions", ROOT, versions.split() or ["torch==2.5"]))
        assert " ".join(told).startswith(
            f"{versions or 'torch==2.5'} torch numpy sympy matplotlib tqdm PyYAML pytest=="
        )
    named = re.findall(r"^([\w-]+)==", (ROOT / "constraints-colab.txt").read_text(), re.MULTILINE)
    assert {"torch", "numpy", "sympy", "matplotlib", "tqdm", "ipython", "ipykernel"} <= set(named)


def test_workflow_runs_every_test_and_publishes_only_if_what_is_pinned_passes():
    """Its three parts are `make test-all`: what is not slow with and without the pages, and what is slow."""
    parts = WORKFLOW["test"]["strategy"]["matrix"]["part"]
    asked = [planned(part).splitlines()[-1].partition("pytest")[2] for part in parts]
    library, pages, slow = asked
    assert '-m "not slow"' in library
    assert "--ignore tests/pages _build/downloads rope_lib tests" in library
    assert "-p tests.twice" in library  # each cell, with its first run
    assert library.rpartition("--nbval --doctest-modules")[1]
    assert pages.endswith('-m "not slow" tests/pages')
    assert slow.endswith("-m slow tests")
    everything = planned("test-all").splitlines()[-1].partition("pytest")[2]
    assert everything == library.replace(' -m "not slow"', "").replace(" --ignore tests/pages", "")
    assert set(WORKFLOW["publish"]["needs"]) == {"test", "machines", "without-make"}
    others = {"versions", "newest-book", "recorded"}  # of other versions and libraries: a failure does not stop it
    assert set(WORKFLOW) == {"publish", *WORKFLOW["publish"]["needs"], *others}
    assert WORKFLOW["machines"]["strategy"]["matrix"]["python"] == ["3.12", "3.13", "3.14"]
