"""What a cell needs of the cells above it, and what it shows: for the build, and inside the page, beside sympy.

A cell does not run after all cells above it, but after those of their statements that its names come from. So a proof
at the end of a chapter needs no minute of other proofs first, and each run begins anew, with no state of the last one.
"""

import ast
import builtins
import contextlib
import dis
import io
import json
import re
import sys
import time
import traceback
from types import CodeType
from typing import NamedTuple

IN_PAGE = {"sympy", "mpmath", "rope_lib.theory.symbolic"} | sys.stdlib_module_names
CLAIM = re.compile(r"\b(proved|refuted)\(|\bassert\b")
LONGEST = 20_000  # characters that a run may show
ONLY = ". The page has sympy alone; the notebook behind the download button can import what you have installed."


# -- Names -------------------------------------------------------------------------------------------------------------


def statements(source: str) -> list[ast.stmt]:
    """The statements of a cell. A line that begins with % is for notebooks only."""
    return ast.parse(re.sub(r"^%.*", "", source, flags=re.MULTILINE)).body


class Names(NamedTuple):
    """Those that must be there before code runs, those that it gives a value, and the modules that it imports."""

    read: set[str]
    bound: set[str]
    imported: set[str]


def names_of(*cell: ast.stmt) -> Names:
    """The names of statements."""
    return names_in(compile(ast.Module(list(cell), []), "<cell>", "exec"))


def names_in(code: CodeType) -> Names:
    """The names of code, by its instructions, which say what comes first."""
    read, bound, imported = Names(set(), set(), set())
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL") and step.argval not in bound:
            read.add(step.argval)
        elif step.opname == "STORE_NAME":
            bound.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            imported.add(step.argval)
        elif isinstance(step.argval, CodeType):  # a function, which may name itself
            inner = names_in(step.argval)
            read |= inner.read - bound - {step.argval.co_name}
            imported |= inner.imported
    return Names(read, bound, imported)


def changes(node: ast.AST) -> set[str]:
    """The names whose values a statement may change: a[0] = 1, a.b = 1, and a.append(1), a[0].append(1) alone."""
    found = set()
    for part in ast.walk(node):
        match part:
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                found |= named(part.value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
                while isinstance(owner, ast.Attribute | ast.Subscript | ast.Call):
                    owner = owner.func if isinstance(owner, ast.Call) else owner.value
                found |= named(owner)
    return found


def named(node: ast.AST) -> set[str]:
    """The names in an expression."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


# -- Which cells, and what before them ---------------------------------------------------------------------------------


def live(sources: list[str]) -> list[bool]:
    """For each cell of a chapter, whether it can run in the page: all that it imports and reads is there."""
    there, found = set(dir(builtins)), []
    for source in sources:
        every, works = True, False
        for statement in statements(source):
            read, bound, imported = names_of(statement)
            possible = read <= there and all({name, name.split(".")[0]} & IN_PAGE for name in imported)
            there = there | bound if possible else there - bound - changes(statement)
            every &= possible
            works |= not isinstance(statement, ast.Import | ast.ImportFrom)
        found.append(every and works)
    return found


def statements_needed(above: list[str], source: str) -> list[ast.stmt]:
    """The statements of the cells above that a cell builds on, in their order."""
    kept, needed = [], names_of(*statements(source)).read | {"sp"}  # sp.init_printing says how results are typeset
    for text in reversed(above):
        cell = statements(text)
        for statement in reversed(cell):
            read, bound, _ = names_of(statement)
            only_shows = statement is cell[-1] and isinstance(statement, ast.Expr)
            if (bound if only_shows else bound | changes(statement)) & needed:
                kept.append(statement)
                if isinstance(statement, ast.Assign | ast.Import | ast.ImportFrom):
                    needed -= bound
                needed |= read
    return kept[::-1]


# -- Running -----------------------------------------------------------------------------------------------------------


def run(above: str, source: str) -> str:
    """Run a cell after what it needs of the cells above (a list, as JSON); the result as JSON."""
    import sympy

    settings, names, printed, result = {}, {}, io.StringIO(), {}
    sympy.init_printing = lambda **given: settings.update(given)  # there is no IPython: `typeset` looks at them
    begin, place = time.perf_counter(), "<cell>"
    try:
        cell = statements(source)
        place = "<above>"
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(ast.Module(statements_needed(json.loads(above), source), []), place, "exec"), names)
        place = "<cell>"
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            last = cell.pop() if cell and isinstance(cell[-1], ast.Expr) else None
            exec(compile(ast.Module(cell, []), place, "exec"), names)
            if last:
                value = eval(compile(ast.Expression(last.value), place, "eval"), names)
                result = typeset(value, settings)
    except BaseException as error:
        result = describe_error(error, source, place) | counter_example(error, settings)
    result |= {"printed": shortened(printed.getvalue()), "seconds": time.perf_counter() - begin}
    return json.dumps(result | {"claims": bool(CLAIM.search(source))})


def shortened(text: str) -> str:
    """What a page can show of it, and how much it does not."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... and {len(text) - LONGEST:,} characters more"


def typeset(value, settings: dict) -> dict:
    """A value as LaTeX, as sympy gives it to a notebook, or else as text."""
    from sympy.printing.latex import LatexPrinter, latex

    if value is None:
        return {}
    if not hasattr(value, "_repr_latex_"):
        return {"text": shortened(repr(value))}
    known = {key: settings[key] for key in settings if key in LatexPrinter._default_settings}
    tex = latex(value, mode="plain", **known)
    return {"latex": tex} if len(tex) <= LONGEST else {"text": shortened(repr(value))}


def counter_example(error: BaseException, settings: dict) -> dict:
    """What a false claim says, set as a formula, where it fails, and both sides there."""
    if getattr(error, "at", None) is None:
        return {}
    import sympy

    claim = typeset(sympy.Ne(*error.sides, evaluate=False), settings)
    places = [typeset(sympy.Eq(*pair, evaluate=False), settings).get("latex", "") for pair in error.at.items()]
    return {"false": claim.get("latex"), "at": ", \\quad ".join(places), "sides": error.values}


def describe_error(error: BaseException, source: str, place: str) -> dict:
    """What went wrong, in the words of the error, and in which line of the cell; no stack."""
    if isinstance(error, SyntaxError):
        line, words = error.lineno, error.msg
    else:
        frames = traceback.walk_tb(error.__traceback__)
        line = next((line for frame, line in frames if frame.f_code.co_filename == place), None)
        words = str(error)
    if isinstance(error, ModuleNotFoundError):
        words += ONLY
    if place != "<cell>":
        return {"error": f"{type(error).__name__} in a cell above", "words": words}
    kind = "Refused" if isinstance(error, AssertionError) else type(error).__name__
    code = source.splitlines()[line - 1 : line] if line else []
    return {"error": f"{kind} in line {line}" if line else kind, "code": "".join(code).strip(), "words": words}
