"""What a cell needs of the cells above it, and what it shows: for the build, and inside the page, beside sympy.

A cell does not run after all cells above it, but after those of their statements that its names come from. So a proof
at the end of a chapter needs no minute of other proofs first, and each run begins anew, with no state of the last one.
"""

import ast
import builtins
import contextlib
import io
import json
import re
import sys
import time
import traceback

IN_PAGE = {"sympy", "mpmath", "rope_lib.symbolic"} | sys.stdlib_module_names
CLAIM = re.compile(r"\b(proved|refuted)\(|\bassert\b")
LONGEST = 20_000  # characters that a run may show
MODULES = 680  # with sympy 1.14; only the progress bar needs it


# -- Names -------------------------------------------------------------------------------------------------------------


def statements(source: str) -> list[ast.stmt]:
    """The statements of a cell. A line that begins with % is for notebooks only."""
    return ast.parse(re.sub(r"^%.*", "", source, flags=re.MULTILINE)).body


def stored(node: ast.AST | None) -> set[str]:
    """The names that a target binds."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} if node else set()


def reads(node: ast.AST) -> set[str]:
    """The names that must be there before a statement or an expression runs."""
    match node:
        case ast.Name():
            return {node.id} if isinstance(node.ctx, ast.Load) else set()
        case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = {n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)}
            body = reads_in_order(node.body) if isinstance(node.body, list) else reads(node.body)
            return reads_of(node.args) | (body - arguments)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            inner = set().union(*(stored(part.target) for part in node.generators))
            return reads(node.generators[0].iter) | (reads_of(node) - inner)
        case ast.For():
            return reads(node.iter) | (reads_in_order(node.body + node.orelse) - stored(node.target))
        case ast.With():
            bound = set().union(*(stored(item.optional_vars) for item in node.items))
            return reads_in_order(node.items) | (reads_in_order(node.body) - bound)
        case ast.ExceptHandler():
            return reads_of(node) - {node.name}
        case ast.If() | ast.While() | ast.Try():
            blocks = (block for _, block in ast.iter_fields(node) if isinstance(block, list))
            return set().union(*(reads_in_order(block) for block in blocks), reads(getattr(node, "test", ast.Pass())))
        case ast.AugAssign():
            return reads(node.value) | reads(node.target) | stored(node.target)
        case _:
            return reads_of(node)


def reads_of(node: ast.AST) -> set[str]:
    """What the children of a node read."""
    return set().union(*map(reads, ast.iter_child_nodes(node)))


def reads_in_order(nodes: list[ast.AST]) -> set[str]:
    """What a block reads of what it does not bind itself first."""
    read, bound = set(), set()
    for node in nodes:
        read |= reads(node) - bound
        bound |= binds(node)
    return read


def binds(node: ast.AST) -> set[str]:
    """The names that a statement gives a value."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Name():
            return stored(node)
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return set()
        case _:
            return set().union(*map(binds, ast.iter_child_nodes(node)))


def changes(node: ast.AST) -> set[str]:
    """The names whose values a statement may change: a[0] = 1, a.b = 1, and a.append(1), a[0].append(1) alone."""
    found = set()
    for part in ast.walk(node):
        match part:
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                found |= reads(part.value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
                while isinstance(owner, ast.Attribute | ast.Subscript | ast.Call):
                    owner = owner.func if isinstance(owner, ast.Call) else owner.value
                found |= reads(owner)
    return found


# -- Which cells, and what before them ---------------------------------------------------------------------------------


def imports_outside(statement: ast.stmt) -> bool:
    """Whether a statement imports what the page does not bring along."""
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        if any(name not in IN_PAGE and name.split(".")[0] not in IN_PAGE for name in names):
            return True
    return False


def live(sources: list[str]) -> list[bool]:
    """For each cell of a chapter, whether it can run in the page: all that it imports and reads is there."""
    there, found = set(dir(builtins)), []
    for source in sources:
        every, works = True, False
        for statement in statements(source):
            possible = reads(statement) <= there and not imports_outside(statement)
            there = there | binds(statement) if possible else there - binds(statement) - changes(statement)
            every &= possible
            works |= not isinstance(statement, ast.Import | ast.ImportFrom)
        found.append(every and works)
    return found


def before(above: list[str], source: str) -> list[ast.stmt]:
    """The statements of the cells above that a cell builds on, in their order."""
    kept, needed = [], reads_in_order(statements(source)) | {"sp"}  # sp.init_printing says how results are typeset
    for text in reversed(above):
        cell = statements(text)
        for statement in reversed(cell):
            bound = binds(statement)
            only_shows = statement is cell[-1] and isinstance(statement, ast.Expr)
            if (bound if only_shows else bound | changes(statement)) & needed:
                kept.append(statement)
                if isinstance(statement, ast.Assign | ast.Import | ast.ImportFrom):
                    needed -= bound
                needed |= reads(statement)
    return kept[::-1]


# -- Running -----------------------------------------------------------------------------------------------------------


def load(report) -> None:
    """Import sympy; report(share) is told how far it is."""

    class Counter:
        @staticmethod
        def find_spec(*args):
            report(min(len(sys.modules) / MODULES, 1))

    sys.meta_path.insert(0, Counter)
    import sympy  # noqa: F401

    sys.meta_path.remove(Counter)


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
            exec(compile(ast.Module(before(json.loads(above), source), []), place, "exec"), names)
        place = "<cell>"
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            last = cell.pop() if cell and isinstance(cell[-1], ast.Expr) else None
            exec(compile(ast.Module(cell, []), place, "exec"), names)
            if last:
                value = eval(compile(ast.Expression(last.value), place, "eval"), names)
                result = typeset(value, settings)
    except (Exception, SystemExit) as error:
        result = why(error, source, place)
    result |= {"printed": printed.getvalue()[:LONGEST], "seconds": time.perf_counter() - begin}
    return json.dumps(result | {"claims": bool(CLAIM.search(source))})


def typeset(value, settings: dict) -> dict:
    """A value as LaTeX, as sympy gives it to a notebook, or else as text."""
    from sympy.printing.latex import LatexPrinter, latex

    if value is None:
        return {}
    if not hasattr(value, "_repr_latex_"):
        return {"text": repr(value)}
    known = {key: settings[key] for key in settings if key in LatexPrinter._default_settings}
    return {"latex": latex(value, mode="plain", **known)}


def why(error: BaseException, source: str, place: str) -> dict:
    """What went wrong, in the words of the error, and in which line of the cell; no stack."""
    if isinstance(error, SyntaxError):
        line, words = error.lineno, error.msg
    else:
        frames = traceback.walk_tb(error.__traceback__)
        line = next((line for frame, line in frames if frame.f_code.co_filename == place), None)
        words = str(error)
    if place != "<cell>":
        return {"error": f"{type(error).__name__} in a cell above", "words": words}
    kind = "Refused" if isinstance(error, AssertionError) else type(error).__name__
    code = source.splitlines()[line - 1 : line] if line else []
    return {"error": f"{kind} in line {line}" if line else kind, "code": "".join(code).strip(), "words": words}
