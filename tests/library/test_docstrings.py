"""What CONTRIBUTING promises of public names: a docstring with an example, which the doctests run, and right calls."""

import ast

import pytest

from tests.conftest import ROOT
from tests.library.calls import CALLS

PUBLIC = {
    f"{(path.parent if path.stem == '__init__' else path).stem}.{node.name}": node
    for path in sorted((ROOT / "rope_lib").rglob("*.py"))
    if path.stem == "__init__" or not path.stem.startswith("_")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name):
    docstring = ast.get_docstring(PUBLIC[name]) or ""
    assert "Example:\n    >>> " in docstring, f"rope_lib.{name}: add `Example:` and a line that begins with >>>"


@pytest.mark.parametrize("name", [name for name, node in PUBLIC.items() if isinstance(node, ast.FunctionDef)])
def test_a_public_function_has_its_calls(name):
    assert name in CALLS, f"rope_lib.{name}: add a right call to FUNCTIONS in tests/library/calls.py"


@pytest.mark.parametrize("name", [name.removeprefix("scaling.") for name in PUBLIC if name.startswith("scaling.")])
def test_a_scaling_method_says_whose_it_is_and_is_tested(name):
    docstring = ast.get_docstring(PUBLIC[f"scaling.{name}"])
    assert "\nSource: " in docstring, f"{name}: add `Source: ` and who describes it, with section or equation"
    tested = (ROOT / "tests" / "library" / "test_scaling.py").read_text(encoding="utf-8")
    assert name in tested, f"{name} has no test in tests/library/test_scaling.py"


def test_the_library_imports_nothing_of_its_theory():
    for path in (ROOT / "rope_lib").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        froms = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        assert not [name for name in froms + names if "theory" in name], path.name
