"""Asks a function, compares, says what is wrong. It knows two hints on what is asked: see `tensors` and `shaped`."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import torch
from torch import Tensor

from .pages import FLATTEN, FORMS

Result = tuple[Tensor, ...] | None  # None: there is none, as it stopped

UNWRITTEN = "not written yet"
NOT_YET = f"{UNWRITTEN}."
LATER = "looked at when the rest is right."
STOPPED = "It stopped. "
CALLS = "it calls `"
UNKNOWN = "Wrong, in a way that I do not know. The smallest case that I found: "
CHANGES = (
    "The same arguments give another result the second time. Does something count on from call to call, is something"
    " kept from an earlier one, or is it drawn by chance?"
)


class Wrong(Exception):
    """A sentence for the student."""


class Stopped(Exception):
    """A function in another process raised something. Its parts: the class, the message, what `raised` would say."""


class Untold(Exception):
    """Why nothing can be said about a function that runs elsewhere."""


class Mistake(NamedTuple):
    """What to say, where the book treats it, and the keywords with which the loops make it."""

    says: str
    page: str
    knobs: dict


class Step(NamedTuple):
    """A part of a task: its points, and what is wrong with it."""

    name: str
    worth: int
    complaint: str | None


def alike(found: Result, wanted: Result, tolerance: float = 1e-4) -> bool:
    """Equal to rounding, shapes included; None is like None."""
    if found is None or wanted is None:
        return found is wanted
    return len(found) == len(wanted) and all(
        f.shape == w.shape and torch.allclose(f, w, rtol=tolerance, atol=tolerance, equal_nan=True)
        for f, w in zip(found, wanted, strict=True)
    )


def difference(got: tuple[Tensor, ...], wanted: tuple[Tensor, ...], names: tuple[str, ...], tolerance: float) -> str:
    """The first row in which they differ."""
    for index, (g, w) in enumerate(zip(got, wanted, strict=True)):
        call = f"call {index // len(names) + 1}, " if len(got) > len(names) else ""
        name = call + names[index % len(names)]
        if g.shape != w.shape:
            return f"{name} got the shape {tuple(g.shape)}, wanted {tuple(w.shape)}.".lstrip()
        width = g.shape[-1] if g.shape[-1] > 1 else g.numel()  # a single column reads better as a row
        rows = list(zip(g.reshape(-1, width), w.reshape(-1, width), strict=True))
        for row, (left, right) in enumerate(rows):
            if not torch.allclose(left, right, rtol=tolerance, atol=tolerance):
                where = f" row {row}" if len(rows) > 1 else ""
                if width > 24:  # of a long row the first number
                    column = int((left - right).abs().nan_to_num(1, 1, 1).gt(tolerance).nonzero()[0])
                    where, left, right = f"{where} column {column}", left[column, None], right[column, None]
                return f"{name}{where} got {numbers(left)}, wanted {numbers(right)}.".lstrip()
    raise AssertionError("they do not differ")


class Exercise(NamedTuple):
    """What is asked for, the cases that it is tried on, and what goes wrong most often."""

    asked: Callable[..., tuple[Tensor, ...]]  # asked(function, *case): calls it, and looks at the form of the result
    right: Callable[..., Result]  # right(*case): by loops; with the knobs of a mistake they make it
    cases: Callable[[], list[tuple]]  # what has to be right
    small: Callable[[], Iterable[tuple]]  # more, the smallest first: one is shown if no mistake is known
    show: Callable[..., str]  # show(*case): in words
    mistakes: Sequence[Mistake] = ()
    alone: Sequence[Mistake] = ()  # more mistakes, which are not looked for in pairs
    also: Callable[[], list[tuple]] = list  # more cases, only to tell mistakes apart
    names: tuple[str, ...] = ("",)  # of the tensors of a result; if there are more of them, call by call
    tell: Callable[..., str] = difference  # what came, and what was wanted
    tolerance: float = 1e-4  # of numbers that count as right

    def results(self, function: Callable, cases: Iterable[tuple]) -> tuple[list[Result], list[str]]:
        """What comes back for each case, None where it stopped; and the complaints."""
        found, complaints = [], []
        for case in cases:
            try:
                found.append(self.asked(function, *case))
            except Wrong as wrong:
                found.append(None)
                complaints.append(str(wrong))
        return found, complaints

    def complaint(self, function: Callable) -> str | None:
        """None if all is right; else a sentence."""
        cases = self.cases()
        found, complaints = self.results(function, cases)
        if unwritten := [complaint for complaint in complaints if UNWRITTEN in complaint]:
            return unwritten[0]
        if not all(map(alike, found, self.results(function, cases)[0])):  # one call may spoil another
            return CHANGES
        if all(alike(f, self.right(*case), self.tolerance) for f, case in zip(found, cases, strict=True)):
            return None
        also = self.also()
        some = self.named([*found, *self.results(function, also)[0]], [*cases, *also])
        if some:
            return both(*(f"{mistake.says} See {mistake.page}." for mistake in some))
        if complaints:
            return complaints[0]
        for case in chain(self.small(), cases):
            ([got], _), wanted = self.results(function, [case]), self.right(*case)
            if got is not None and not alike(got, wanted, self.tolerance):
                return f"{UNKNOWN}{self.show(*case)}: {self.tell(got, wanted, self.names, self.tolerance)}"
        return CHANGES

    def named(self, found: list[Result], cases: list[tuple]) -> tuple[Mistake, ...]:
        """The known mistake that gives the same in all cases, or else two of them together, or else nothing.

        The tolerance is that of angles in float32 when a mistake has made them large.
        """
        if all(f is None for f in found):
            return ()
        one, two = ((mistake,) for mistake in (*self.mistakes, *self.alone)), combinations(self.mistakes, 2)
        for some in chain(one, two):
            knobs = {name: value for mistake in some for name, value in mistake.knobs.items()}
            if len(knobs) == sum(len(mistake.knobs) for mistake in some) and all(
                alike(f, self.right(*case, **knobs), 1e-2) for f, case in zip(found, cases, strict=True)
            ):
                return some
        return ()


def both(first: str, second: str = "") -> str:
    """One sentence, or two."""
    return f"Two mistakes at once, it seems. First: {first} Second: {second}" if second else first


def earned(steps: Iterable[Step]) -> int:
    """The points."""
    return sum(step.worth for step in steps if step.complaint is None)


# -- Calls of a student's function -------------------------------------------------------------------------------------


def called(function: Callable, *arguments: object) -> object:
    """What a student's function returns for copies of the arguments."""
    copies = [argument.clone() if isinstance(argument, Tensor) else argument for argument in arguments]
    try:
        return function(*copies)
    except (Wrong, Untold):
        raise
    except Stopped as stopped:
        kind, why, within = stopped.args
    except Exception as error:  # whatever a student's function may raise
        kind, why, within = type(error).__name__, str(error), raised(error, function)
    if kind == "NotImplementedError" and why in ("", "your code here"):  # torch raises some, too
        raise Wrong(f"{CALLS}{within}`, which is {UNWRITTEN}." if within else NOT_YET)
    given = ", ".join(map(described, arguments))
    raise Wrong(f"{STOPPED}{kind}: {why.rstrip('.') or 'no message'}. Arguments: {given}.")


def changed(function: Callable, first: Tensor, *others: object) -> bool:
    """Whether a student's function writes into its first argument."""
    own = first.clone()
    with contextlib.suppress(Wrong):  # what stops here says so elsewhere
        called(lambda: function(own, *others))
    return not (own.shape == first.shape and torch.equal(own, first))


@contextlib.contextmanager
def standing_in(function: Callable, helpers: dict[str, Callable]) -> Iterator[None]:
    """Others where a function looks for helpers of these names."""
    names = getattr(function, "__globals__", {})
    own = {name: names[name] for name in helpers if name in names}
    names.update(helpers)
    try:
        yield
    finally:
        for name in helpers:
            del names[name]
        names.update(own)


def unwritten(*_: object) -> None:
    """In the place of a function that is missing."""
    raise NotImplementedError


def raised(error: BaseException, function: Callable) -> str:
    """The name of the function in which it was raised, or nothing if it is this one."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return "" if code in (getattr(function, "__code__", code), unwritten.__code__) else code.co_name


# -- What comes back ---------------------------------------------------------------------------------------------------


def tensors(result: object, *names: str) -> tuple[Tensor, ...]:
    """The result as tensors, one for each name; arrays of numpy are as good."""
    if result is None:
        raise Wrong("It returned None: is there a `return`?")
    found = result if isinstance(result, tuple | list) else (result,)
    wanted = " and ".join(names)
    if not all(hasattr(part, "shape") and hasattr(part, "dtype") for part in found):
        kinds = " and ".join(dict.fromkeys(type(part).__name__ for part in found))
        inside = f" of {kinds}" if found is result else ""
        raise Wrong(f"Wanted {wanted}, as torch.Tensor; got {type(result).__name__}{inside}.")
    if len(found) != len(names):
        parts = described(found[0]) if len(found) == 1 else f"{len(found)} of them"
        raise Wrong(f"Wanted {wanted}, {len(names)} tensor{'s' * (len(names) > 1)}; got {parts}.")
    found = [part if isinstance(part, Tensor) else torch.as_tensor(part.copy()) for part in found]
    if any(tensor.is_complex() for tensor in found):
        raise Wrong(f"Complex numbers came back; each has to become two real ones again. See {FORMS}.")
    return tuple(tensor.detach().cpu().clone() for tensor in found)  # the next call may change it


def shaped(tensor: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """The tensor, unless its shape is another."""
    if tensor.shape != shape and tensor.numel() == math.prod(shape) and len(shape) > 2:
        raise Wrong(
            f"All numbers came back, in the shape {tuple(tensor.shape)}; wanted {tuple(shape)}. Count axes from the"
            f" right. See {FLATTEN}."
        )
    if tensor.shape != shape:
        raise Wrong(f"{name[0].upper()}{name[1:]} has the shape {tuple(tensor.shape)}; wanted {tuple(shape)}.")
    return tensor.double()


def described(thing: object) -> str:
    """A tensor by its shape and format, a function by its name, all else as it is."""
    if hasattr(thing, "shape") and hasattr(thing, "dtype"):
        return f"{tuple(thing.shape)} in {thing.dtype}"
    return f"`{thing.__name__}`" if hasattr(thing, "__name__") else repr(thing)


def numbers(x: Tensor) -> str:
    """Six digits each; large tensors by their shape."""
    if x.numel() > 24:
        return f"a tensor of shape {tuple(x.shape)}"
    return "[" + ", ".join(f"{v.item():.6g}" if v.ndim == 0 else numbers(v) for v in x + 0.0) + "]"
