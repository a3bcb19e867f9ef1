"""What each task of the sheet earns, step by step; and what is wrong with a run_rope, which earns nothing."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .exercises import (
    CACHE,
    CACHE_OF_SEVERAL,
    ROTATIONS,
    RUN_ROPE,
    RUN_ROPE_FAR,
    TABLES,
    TABLES_FAR,
    TO_HALF_SPLIT,
    TO_INTERLEAVED,
    a_few_words,
    single,
)
from .loops import HALF_SPLIT, INTERLEAVED, rotation_by_loop, tables_by_loop
from .mistakes import WRONG_ONES
from .pages import BITS, DTYPES, FORMS, LAYOUTS
from .rounding import rounded_or
from .runner import (
    CALLS,
    LATER,
    STOPPED,
    UNKNOWN,
    Exercise,
    Step,
    Untold,
    Wrong,
    alike,
    called,
    changed,
    described,
    earned,
    shaped,
    standing_in,
    tensors,
)
from .seed import chance, drawn

# -- Task 1: tables ----------------------------------------------------------------------------------------------------


def steps_of_tables(function: Callable) -> list[Step]:
    """Near and far; what only rounding spoils counts as far."""
    wrong, wrong_far = TABLES.complaint(function), TABLES_FAR.complaint(function)
    wrong, wrong_far = rounded_or(wrong, wrong_far, function, TABLES.cases())
    return [Step("small positions", 3, wrong), Step("large positions", 2, wrong_far)]


# -- Task 2: rotations -------------------------------------------------------------------------------------------------

NARROW = (torch.bfloat16, torch.float16)
FORMATS_OF_X = (  # and of the tables
    (torch.bfloat16, torch.float32), (torch.float32, torch.float64), (torch.float64, torch.float32),
    (torch.float16, torch.float32),
)  # fmt: skip
PRODUCTS = (
    "products are rounded before they are added. (If you did not write that: a single number of a table does not widen"
    " x, and torch rounds to x's dtype each time.)"
)


def steps_of_rotation(interleaved: Callable, half_split: Callable, looks_right: Callable) -> list[Step]:
    """Both layouts, what a right rotation can still spoil, and the student's own test."""
    functions = {INTERLEAVED: interleaved, HALF_SPLIT: half_split}
    wrong = {layout: ROTATIONS[layout].complaint(function) for layout, function in functions.items()}
    kept = LATER if any(wrong.values()) else habits(interleaved, INTERLEAVED) or habits(half_split, HALF_SPLIT)
    return [
        Step("interleaved", 2, wrong[INTERLEAVED]),
        Step("half-split", 1, wrong[HALF_SPLIT]),
        Step("x and its dtype", 1, kept),
        Step("your own test", 1, overlooked(looks_right)),
    ]


def habits(function: Callable, interleaved: bool) -> str | None:
    """What a right rotation can still do wrong: change its argument, or the format, or round too often."""
    wide = drawn(2, 16, 8), *tables_by_loop(torch.arange(16), 8, 10000.0)
    case = single(*wide)
    if changed(function, *case):
        return f"Your function changes the x that it is given, and someone else may still need it. See {FORMS}."
    for of_x, of_both in FORMATS_OF_X:
        case = tuple(part.to(dtype) for part, dtype in zip(wide, (of_x, of_both, of_both), strict=True))
        given = f"x in {of_x}, tables in {of_both}"
        try:
            [y] = tensors(called(function, *case), "the turned x")
            shaped(y, "the turned x", case[0].shape)
        except Wrong as wrong:
            return f"{given}: {wrong}"
        if y.dtype != of_x:
            return f"{given}, and the result in {y.dtype}; wanted x's dtype, at the end. See {DTYPES}."
        if of_x in NARROW and (rough := rounded_often(y, *case, interleaved)):
            return f"{given}, and the result is less exact than {of_x} allows: {rough} See {DTYPES}."
    return None


def rounded_often(y: Tensor, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> str | None:
    """A sentence if y in a narrow format is further off than by one rounding, half a unit in the last digit.

    A cause is named if it makes the same numbers, nearly all of them.
    """
    [exact] = rotation_by_loop(x, cos, sin, interleaved)
    if ((y.double() - exact).abs() <= torch.finfo(x.dtype).eps / 2 * exact.abs() + 1e-5).all():
        return None
    narrow = cos.to(x.dtype), sin.to(x.dtype)
    for tables, products_too, says in (
        (narrow, False, "the tables are rounded before they meet x."),
        (narrow, True, "the tables are rounded before they meet x."),
        ((cos, sin), True, PRODUCTS),
    ):
        none = torch.zeros_like(tables[0])
        products = rotation_by_loop(x, tables[0], none, interleaved) + rotation_by_loop(x, none, tables[1], interleaved)
        products = [product.to(x.dtype).double() if products_too else product for product in products]
        if (sum(products).to(x.dtype) == y).double().mean() > 0.95:  # the cause makes all, another at most 85 of 100
            return f"{says} Round once, at the end."
    return "its numbers are rounded more than once. Round once, at the end."


def overlooked(looks_right: Callable) -> str | None:
    """What is wrong with a student's test of an interleaved rotation.

    The right one comes twice among the wrong ones, in an order that is drawn: counting calls answers nothing. Then the
    student's own rotations get each mistake as well: a test that compares with them lets it pass now. (One that
    compares with a function of another name is not seen.)
    """
    tried = [("", turning()), ("", turning()), *((name, turning(**knobs)) for name, knobs in WRONG_ONES)]
    chance().shuffle(tried)
    passed, refused = set(), False
    for name, rotate in tried:
        try:
            answer = answered(looks_right, rotate)
        except Wrong as wrong:
            return str(wrong)
        passed |= {name} if answer else set()
        refused |= not answer and not name
    for name, knobs in WRONG_ONES:
        own = {"rotate_interleaved": turning(**knobs), "rotate_half_split": turning(HALF_SPLIT, **knobs)}
        with standing_in(looks_right, own), contextlib.suppress(Wrong):
            if name not in passed and answered(looks_right, turning(**knobs)):
                return (
                    "It compares with a function of your own, and lets a wrong rotation pass if that one has the same"
                    f" mistake: {name}. Compare with numbers that you found with a pencil."
                )
    if refused:
        return "It refuses a rotation that is right: interleaved, counter-clockwise, each word by its own row."
    return next((f"It lets a wrong rotation pass: {name}." for name, _ in WRONG_ONES if name in passed), None)


def answered(looks_right: Callable, rotate: Callable) -> bool:
    """Whether a student's test lets a rotation pass."""
    try:
        answer = called(looks_right, rotate)
    except Wrong as wrong:
        if str(wrong).startswith(f"{STOPPED}AssertionError"):
            return False  # an assert that fails is a no
        raise
    if getattr(answer, "shape", None) == ():  # one number of torch or numpy
        answer = answer.item()
    if not isinstance(answer, int):  # True and False are
        raise Wrong(f"It returned {described(answer)}; wanted True or False.")
    return bool(answer)


def turning(interleaved: bool = INTERLEAVED, **knobs) -> Callable:
    """A rotation for students to call, the right one or with a mistake. It says what it takes."""

    def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        parts = x, cos, sin
        try:
            if (
                not all(isinstance(part, Tensor) and part.ndim > 1 for part in parts)
                or x.shape[-1] != 2 * cos.shape[-1]
            ):
                raise RuntimeError
            [y] = rotation_by_loop(x, cos, sin, interleaved, **knobs)
        except RuntimeError:  # of torch, too, if there are not as many rows as words
            raise ValueError(
                "rotate takes x (..., seq_len, head_dim), cos and sin (seq_len, head_dim // 2); got "
                + ", ".join(map(described, parts))
            ) from None
        return y.to(x.dtype if x.is_floating_point() else torch.float32)

    return rotate


# -- Task 3: conversions -----------------------------------------------------------------------------------------------


def steps_of_conversion(to_half_split: Callable, to_interleaved: Callable) -> list[Step]:
    """Both ways, and what a right one can still spoil."""
    wrong = TO_HALF_SPLIT.complaint(to_half_split), TO_INTERLEAVED.complaint(to_interleaved)
    kept = (
        LATER
        if any(wrong)
        else (kept_weight(to_half_split, TO_HALF_SPLIT) or kept_weight(to_interleaved, TO_INTERLEAVED))
    )
    ways = [Step("to half-split", 2, wrong[0]), Step("to interleaved", 2, wrong[1])]
    return [*ways, Step("the weight and its dtype", 1, kept)]


def kept_weight(function: Callable, exercise: Exercise) -> str | None:
    """What a right conversion can still do wrong: change its argument, or the format, or lose digits."""
    weight = drawn(12, 5)
    if changed(function, weight.float(), 6):
        return f"Your function changes the weight that it is given, and someone may still need it. See {LAYOUTS}."
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        try:
            [found] = tensors(called(function, weight.to(dtype), 6), "the new weight")
        except Wrong:
            continue  # a matrix in float32 moves weights in float32 only; that stops, and misleads nobody
        if found.dtype != dtype:
            return f"The weight in {dtype}, and the result in {found.dtype}; wanted the weight's dtype. See {DTYPES}."
        if not torch.equal(found.double(), exercise.right(weight.to(dtype), 6)[0]):
            return (
                f"The weight in {dtype}, and the result has other numbers. Rows change places, and no number changes."
            )
    return None


# -- Task 4: a cache ---------------------------------------------------------------------------------------------------

ROUGH = f"Right to two digits only. Was something rounded, to float16 or bfloat16 perhaps? See {BITS}."
GETS_A_CACHE = (
    "The first call ends well, and one that gets a cache stops. What do you do with it? Old and new keys come together"
    " along the axis of the words, the middle one. "
)
FEW_ROWS = (
    "Right for a few words, and with 300 in one call it stops. Does it make a table with a fixed number of rows, too"
    " few for them? "
)
RIGHT_HELPERS = {
    "tables": lambda positions, head_dim, base=10000.0: tables_by_loop(positions, head_dim, base),
    "rotate_interleaved": turning(),
}
OWN_HELPERS = "with your own tables and rotation, which does not count"
STOPS = (STOPPED, CALLS, GETS_A_CACHE, FEW_ROWS)


def steps_of_cache(function: Callable) -> list[Step]:
    """With the student's own tables and rotation, or with right ones in their place: whichever earns more.

    A line says so where that makes a difference: a result that they spoil can look like a mistake of the cache.
    """
    try:
        own = with_helpers(function)
        if earned(own) == 5:
            return own
        [first, *_] = (step.complaint for step in own if step.complaint)
        why = first if first.startswith(STOPS) else "the result differs from what right ones give."
    except Untold as untold:
        own, why = [], f"not to be told: {untold}."
    with standing_in(function, RIGHT_HELPERS):
        lent = with_helpers(function)
    better = own and (earned(own), not stops(own)) > (earned(lent), not stops(lent))
    if better or list(map(kind, own)) == list(map(kind, lent)):
        return own
    return [Step(OWN_HELPERS, 0, f"{why} Below, right ones stand in their place."), *lent]


def with_helpers(function: Callable) -> list[Step]:
    """The two steps, with the helpers that the function finds under their names."""
    wrong, later = CACHE.complaint(function), LATER
    if not wrong:
        later = CACHE_OF_SEVERAL.complaint(function)
        if later and later.startswith(STOPPED) and not CACHE.results(function, a_few_words())[1]:
            later = f"{FEW_ROWS}{later}"
    else:
        [(q, k, _)] = cases = CACHE.cases()
        [found], _ = CACHE.results(function, cases)
        if found and alike(found, CACHE.right(*cases[0]), 1e-2):
            wrong = ROUGH
        elif wrong.startswith(STOPPED) and not CACHE.results(function, [(q, k, (1,))])[1]:
            wrong = f"{GETS_A_CACHE}{wrong}"
    return [Step("word by word", 3, wrong), Step("several words at once", 2, later)]


def stops(steps: list[Step]) -> bool:
    """Whether one of them says that it stops."""
    return any(step.complaint and step.complaint.startswith(STOPS) for step in steps)


def kind(step: Step) -> str | None:
    """The same for complaints which differ by digits or by the name of a function only."""
    return next((start for start in (*STOPS, UNKNOWN) if (step.complaint or "").startswith(start)), step.complaint)


# -- With the signature of a well-known course -------------------------------------------------------------------------


def of_run_rope(function: Callable) -> str | None:
    """What is wrong with run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions): interleaved."""

    def as_tables(positions: Tensor, dim: int, base: float) -> tuple[Tensor, Tensor]:
        x = torch.tensor([1.0, 0.0]).repeat(len(positions), dim // 2)
        [y] = RUN_ROPE.asked(function, dim, base, 1_000_000, x, positions)
        return y[:, 0::2], y[:, 1::2]

    def turned_so() -> bool:
        """Whether nothing is wrong but the angles."""
        for case in cases:
            dim, theta, _, x, positions = case
            own, _ = TABLES.results(as_tables, [(row, dim, theta) for row in positions.view(-1, positions.shape[-1])])
            if None in own:
                return False
            cos, sin = (torch.stack(part).view(*positions.shape, -1) for part in zip(*own, strict=True))
            [found], _ = RUN_ROPE.results(function, [case])
            if not alike(found, rotation_by_loop(x, cos, sin, INTERLEAVED), 3e-3):
                return False
        return True

    cases = RUN_ROPE.cases()
    near = [(positions, dim, theta) for dim, theta, _, _, positions in cases if positions.ndim == 1]
    wrong, wrong_far = RUN_ROPE.complaint(function), RUN_ROPE_FAR.complaint(function)
    wrong, wrong_far = rounded_or(wrong, wrong_far, as_tables, near, turned_so)
    return wrong or wrong_far


# -- The sheet ---------------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """The functions that are wanted, and what marks them."""

    functions: tuple[str, ...]
    steps: Callable[..., list[Step]]


TASKS = {
    "Task 1": Task(("tables",), steps_of_tables),
    "Task 2": Task(("rotate_interleaved", "rotate_half_split", "looks_right"), steps_of_rotation),
    "Task 3": Task(("to_half_split", "to_interleaved"), steps_of_conversion),
    "Task 4": Task(("cached_scores",), steps_of_cache),
}
