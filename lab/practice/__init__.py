"""Exercises that ask for code. The check names the mistake, or shows the smallest case in which something is wrong.

Each chapter has a module here with its exercises. In a notebook:

    from lab.practice.chapter_05 import exercise
    exercise.check(my_function)
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor

TOLERANCE = 1e-4  # of the largest number that is wanted, or of each: float32 passes, and no mistake of a list does
SHOWN = 6  # numbers of a result


class Exercise(NamedTuple):
    """What is asked for, the cases that it is tried on, and what goes wrong most often."""

    asked: str  # the call, as the exercise writes it: "score(q, k, m, n)"
    right: Callable[..., Any]  # numbers, or lists or arrays of them
    cases: list[tuple]  # arguments, from the smallest case to the largest
    mistakes: dict[str, Callable[..., Any]]  # what to say: the function that makes the mistake
    each: bool = False  # numbers of many sizes, such as speeds, each have to be right to its own size

    def check(self, answer: Callable[..., Any] | None) -> None:
        """Print the verdict on a function."""
        print(self.verdict(answer))

    def verdict(self, answer: Callable[..., Any] | None) -> str:
        """Some sentences on a function; of the right numbers they show one case at most."""
        if answer is None:
            return f"Not written yet. Wanted: {self.asked}"
        if not callable(answer):
            return f"This is a {type(answer).__name__}; wanted is a function, {self.asked}: its name, without brackets."
        try:
            results = self._results(answer)
        except Exception as error:  # the reader's own
            return f"It stopped. {type(error).__name__}: {error}"
        if any(result is None for result in results):
            return "It returned None: is there a `return`?"
        try:
            found = [_numbers(result) for result in results]
        except (TypeError, ValueError, RuntimeError):
            return f"It returned a {type(results[0]).__name__}; wanted are numbers."
        wanted = self._numbers(self.right)
        wrong = [i for i, pair in enumerate(zip(found, wanted, strict=True)) if not self._equal(*pair)]
        if not wrong:
            return f"Right, in all {len(wanted)} cases."
        for says, mistake in self.mistakes.items():
            if all(map(self._equal, found, self._numbers(mistake))):
                return says
        case, got, want = (numbers[wrong[0]] for numbers in (self.cases, found, wanted))
        where = ""
        if got.shape == want.shape:
            place = int(self._apart(got, want).flatten().nonzero()[0])
            if place >= SHOWN:  # the first numbers are alike
                where = f" number {place + 1} of {want.numel()},"
                got, want = got.flatten()[place], want.flatten()[place]
        case = f"{_call(self.asked, case)}:{where}"
        return f"Wrong. The smallest case is {case}\ngot    {_shown(got)}\nwanted {_shown(want)}"

    def _results(self, function: Callable[..., Any]) -> list:
        return [function(*deepcopy(case)) for case in self.cases]

    def _numbers(self, function: Callable[..., Any]) -> list[Tensor]:
        return [_numbers(result) for result in self._results(function)]

    def _apart(self, found: Tensor, wanted: Tensor) -> Tensor:
        size = wanted.abs() if self.each else max(1.0, wanted.abs().max().item())
        return ~((found - wanted).abs() <= TOLERANCE * size)  # a nan is apart from everything

    def _equal(self, found: Tensor, wanted: Tensor) -> bool:
        return found.shape == wanted.shape and not self._apart(found, wanted).any()


def _numbers(result: Any) -> Tensor:
    if isinstance(result, list | tuple) and result and all(isinstance(row, Tensor) for row in result):
        result = torch.stack([*result])
    return torch.as_tensor(result).detach().to(torch.complex128)


def _call(asked: str, case: tuple) -> str:
    return f"{asked.split('(')[0]}({', '.join(_shown(x) for x in case)})"


def _shown(x: Any) -> str:
    """Numbers with four digits, and of many the first ones."""
    if isinstance(x, int | str):
        return repr(x)
    x = torch.as_tensor(x)
    x = x.real if x.is_complex() and not x.imag.any() else x
    shape = f" (shape {tuple(x.shape)})" if x.ndim else ""
    first = [f"{number:.4g}" for number in x.flatten()[:SHOWN].tolist()]
    more = ", ..." if x.numel() > SHOWN else ""
    return f"[{', '.join(first)}{more}]{shape}" if x.ndim else first[0]
