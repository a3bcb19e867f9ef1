"""Exercises that ask for code: a right function passes in any style, each mistake gets its own sentence."""

import importlib
import pkgutil
import re
from copy import deepcopy

import nbformat
import numpy as np
import pytest
import torch

from lab import practice
from lab.practice import Exercise
from tests.conftest import ROOT

CHAPTERS = sorted((ROOT / "chapters").glob("[01][0-9]_*.ipynb"))
MODULES = [importlib.import_module(f"lab.practice.{module.name}") for module in pkgutil.iter_modules(practice.__path__)]
EXERCISES = {
    f"{module.__name__.removeprefix('lab.practice.')}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Exercise)
}
exercises = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
STYLES = {
    "float32": lambda x: torch.as_tensor(x).to(torch.complex64 if torch.as_tensor(x).is_complex() else torch.float32),
    "numpy": lambda x: torch.as_tensor(x).numpy(),
    "lists": lambda x: torch.as_tensor(x).tolist(),
}
TWICE = Exercise("twice(x, m)", lambda x, m: [2 * a for a in x], [([1.0], 0), ([1.0, 2.5], 3)], {})


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@exercises
def test_the_right_numbers_pass_in_any_style(exercise, style):
    assert exercise.verdict(exercise.right) == f"Right, in all {len(exercise.cases)} cases."
    assert exercise.verdict(lambda *case: style(exercise.right(*case))).startswith("Right")


@exercises
def test_each_mistake_gets_its_own_sentence(exercise):
    assert exercise.mistakes
    for says, mistake in exercise.mistakes.items():
        assert exercise.verdict(mistake) == says


@exercises
def test_another_mistake_gets_the_smallest_case(exercise):
    said = exercise.verdict(lambda *case: 0.97 * torch.as_tensor(exercise.right(*case)) + 0.013)
    name, rest = exercise.asked.split("(", 1)
    assert said.startswith(f"Wrong. The smallest case is {name}(")
    assert rest.count(",") + 1 == len(exercise.cases[0]), "asked has as many arguments as a case"


@exercises
def test_each_number_counts(exercise):
    """Each that is wanted, set to 0 alone, is noticed, and what is shown of it differs."""
    for i, case in enumerate(exercise.cases):
        wanted = torch.as_tensor(exercise.right(*deepcopy(case)))
        for place in wanted.flatten().abs().gt(1e-9).nonzero().flatten().tolist():

            def without_one(*arguments, i=i, place=place):
                result = torch.as_tensor(exercise.right(*arguments)).clone()
                if same(arguments, exercise.cases[i]):
                    result.view(-1)[place] = 0
                return result

            said = exercise.verdict(without_one)
            assert not said.startswith("Right"), (case, place)
            if said.startswith("Wrong."):
                got, want = (line.split(None, 1)[1] for line in said.splitlines()[-2:])
                assert got != want, said


def same(some, others):
    """Whether two tuples of arguments are alike."""
    return all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(some, others, strict=True))


@exercises
def test_what_is_not_written_yet_is_told_apart(exercise):
    assert exercise.verdict(None) == f"Not written yet. Wanted: {exercise.asked}"


@exercises
def test_a_function_may_change_its_arguments(exercise):
    def careless(*case):
        result = torch.as_tensor(exercise.right(*case)).clone()
        for argument in case:
            if isinstance(argument, torch.Tensor):
                argument.zero_()
            elif isinstance(argument, list):
                argument.clear()
        return result

    assert exercise.verdict(careless).startswith("Right")
    assert exercise.verdict(careless).startswith("Right")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([2.0], "This is a list; wanted is a function, twice(x, m): its name, without brackets."),
        (lambda x: x, "It stopped. TypeError: <lambda>() takes 1 positional argument but 2 were given"),
        (lambda x, m: None, "It returned None: is there a `return`?"),
        (lambda x, m: "two", "It returned a str; wanted are numbers."),
        (lambda x, m: x, "Wrong. The smallest case is twice([1] (shape (1,)), 0):\ngot    [1] (shape (1,))\n"
                         "wanted [2] (shape (1,))"),
        (lambda x, m: [2 * x[0]], "Wrong. The smallest case is twice([1, 2.5] (shape (2,)), 3):\n"
                                  "got    [2] (shape (1,))\nwanted [2, 5] (shape (2,))"),
        (lambda x, m: [float("nan") for _ in x], "Wrong. The smallest case is twice([1] (shape (1,)), 0):\n"
                                                 "got    [nan] (shape (1,))\nwanted [2] (shape (1,))"),
    ],
)  # fmt: skip
def test_sentences_for_what_is_no_list_of_right_numbers(answer, said):
    assert TWICE.verdict(answer) == said


def test_of_many_numbers_the_first_six_are_shown():
    many = Exercise("many(n)", lambda n: np.arange(float(n)), [(20,)], {})
    assert "wanted [0, 1, 2, 3, 4, 5, ...] (shape (20,))" in many.verdict(lambda n: np.zeros(n))
    late = many.verdict(lambda n: np.arange(float(n)) * (np.arange(n) != 17))
    assert late == "Wrong. The smallest case is many(20): number 18 of 20,\ngot    0\nwanted 17"


def test_rows_may_come_one_by_one():
    rows = Exercise("rows(n)", lambda n: torch.eye(n), [(2,), (3,)], {})
    assert rows.verdict(lambda n: [*torch.eye(n)]).startswith("Right")


ASKING = [path for path in CHAPTERS if f"lab.practice.chapter_{path.stem[:2]}" in {one.__name__ for one in MODULES}]


@pytest.mark.parametrize("path", ASKING, ids=lambda path: path.stem)
def test_a_chapter_that_asks_for_code_checks_it(path):
    cells = nbformat.read(path, as_version=4).cells
    checks = [cell for cell in cells if cell.cell_type == "code" and ".check(" in cell.source]
    number = path.stem[:2]
    needed = f"two cells with `.check(` of lab/practice/chapter_{number}.py: `answer = None`, and a hidden one, solved"
    assert len(checks) == 2, f"the chapter needs {needed}; it has {len(checks)}"
    begun, solved = checks
    assert f"from lab.practice.chapter_{number} import" in begun.source
    assert begun.outputs[0].text.startswith("Not written yet.")
    assert "hide-cell" in solved.metadata.tags
    assert re.fullmatch(r"Right, in all \d+ cases.\n", solved.outputs[0].text)


@exercises
def test_sections_that_sentences_name_exist(exercise):
    titles = {
        (path.stem[:2].lstrip("0"), line.lstrip("# "))
        for path in CHAPTERS
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("#")
    }
    for says in exercise.mistakes:
        for chapter, title in re.findall(r'chapter (\d+), "([^"]+)"', says):
            assert (chapter, title) in titles
