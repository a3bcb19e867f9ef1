"""Checks of homework 1. They say which mistake was made, or show the smallest case in which something is wrong.

It needs torch and nothing else, and no network. In a notebook:

    import check
    check.tables(tables)

A teacher marks many files with marks.py, which asks the same and runs nothing of a student's in its own process.
"""

import textwrap
from collections.abc import Callable

from .runner import Step, earned, unwritten
from .tasks import TASKS, of_run_rope


def tables(function: Callable) -> int:
    """Check task 1, print what was found, return the points."""
    return report("Task 1", function)


def rotation(interleaved: Callable, half_split: Callable, looks_right: Callable = unwritten) -> int:
    """The same for task 2."""
    return report("Task 2", interleaved, half_split, looks_right)


def conversion(to_half_split: Callable, to_interleaved: Callable) -> int:
    """The same for task 3."""
    return report("Task 3", to_half_split, to_interleaved)


def cache(function: Callable) -> int:
    """The same for task 4."""
    return report("Task 4", function)


def run_rope(function: Callable) -> bool:
    """Check a function with the signature of a well-known course, and print what was found."""
    complaint = of_run_rope(function)
    print(said("run_rope", complaint))
    return complaint is None


def report(task: str, *functions: Callable) -> int:
    """Print what was found and return the points."""
    steps = TASKS[task].steps(*functions)
    print(in_words(task, steps))
    return earned(steps)


def in_words(task: str, steps: list[Step]) -> str:
    """A line or some for each step, and the points."""
    lines = [said(f"{task}, {step.name}", step.complaint) for step in steps]
    return "\n".join([*lines, f"{task}: {earned(steps)} of {sum(step.worth for step in steps)}"])


def said(where: str, complaint: str | None) -> str:
    """A line, or some."""
    return textwrap.fill(f"{where}: {complaint or 'right.'}", 88, subsequent_indent="    ")
