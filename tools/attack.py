"""Break each proof and see it fail: python -m tools.attack [chapter-number ...] [--per-cell N] [--store]

A cell with a claim (`proved`, `refuted`, `assert`, `assert_close`) is worth something only if it can fail. So this
program changes one thing on the way to the claim, runs the changed cell in the state that its chapter has reached
there, and sees what happens:

    refused     the claim fails, as it should
    survived    the cell runs through: it does not see the change, or what it says now is true as well
    no program  another error: the change says nothing about the claim
    no verdict  still computing after LIMIT seconds

The exit status is 1 if there is a cell in which no change is refused. What is no claim is left alone: what is only
shown, strings, tolerances and other bounds, seeds and shapes of data, the cases for which a loop checks a claim, the
point of a refutation (any will do, but at the origin all should be equal), and the comparison of an assert itself
(turned round, it fails whenever it held).
"""

import argparse
import ast
import contextlib
import copy
import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice, zip_longest
from numbers import Number
from pathlib import Path

import nbformat
import numpy as np
import sympy as sp
import torch
from tqdm import tqdm

ROOT = Path(__file__).parent.parent
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
STORED = ROOT / "tests" / "data" / "attack.json"
VERDICTS = ("refused", "survived", "no program", "no verdict")
LIMIT = 20  # seconds of computing for one change
CLAIMS = {"proved", "refuted", "assert_close"}
SYMMETRIC = {"allclose", "display", "Eq", "equal", "has", "isclose", "max", "min", "print"}  # order is no claim
EVEN = {"abs", "Abs", "cos", "norm", "square"}  # a sign is no claim
# What the data are, not what is claimed of them: all arguments of these calls, and these arguments of any call.
DATA = {"empty", "ones", "zeros", "arange", "range", "rand", "randint", "randn", "randperm", "manual_seed"}
DATA |= {"Function", "Symbol", "symbols", "expand", "flatten", "reshape", "unflatten", "view"}
SETTINGS = {"at", "atol", "commutative", "device", "dim", "dtype", "evaluate", "integer", "keepdim", "positive", "real"}
SETTINGS |= {"rtol", "simultaneous", "strict"}
OPPOSITE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OPPOSITE |= {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
TURNING = {"rotation": 0, "rotation_matrix": 0, "shift_matrix": 0, "apply_rotary_emb": 2, "rotate_pairs": 2}


def replacements(node: ast.AST, even: bool) -> Iterator[tuple[str, ast.AST]]:
    """What can be put in the place of one node, each with the kind of the change; even: its sign does not matter."""
    match node:
        case ast.BinOp(left, op, right):
            if type(op) in OPPOSITE:
                yield "opposite", ast.BinOp(left, OPPOSITE[type(op)](), right)
            if isinstance(op, ast.Mult | ast.Div) and not even:
                yield "sign", ast.UnaryOp(ast.USub(), node)
            if isinstance(op, ast.MatMult) or (isinstance(op, ast.Sub) and not even):
                yield "order", ast.BinOp(right, op, left)
        case ast.Compare(left, [op], right) if type(op) in OPPOSITE:
            yield "opposite", ast.Compare(left, [OPPOSITE[type(op)]()], right)
        case ast.UnaryOp(ast.USub(), operand) if not even:
            yield "sign", operand
        case ast.Constant(bool(value)):
            yield "number", ast.Constant(not value)
        case ast.Constant(int() | float() | complex() as value):
            yield "number", ast.Constant(value + 1)
        case ast.Subscript(value, ast.Name() as index, ast.Load() as context):
            yield "number", ast.Subscript(value, ast.BinOp(index, ast.Add(), ast.Constant(1)), context)
        case ast.Name("sin" | "cos" as name, ast.Load() as context):
            yield "function", ast.Name({"sin": "cos", "cos": "sin"}[name], context)
        case ast.Attribute(value, "sin" | "cos" as name, context):
            yield "function", ast.Attribute(value, {"sin": "cos", "cos": "sin"}[name], context)
        case ast.Attribute(value, "T" | "mT") | ast.Call(ast.Attribute(value, "conj"), []):
            yield "function", value
        case ast.Call(_, [argument, *_]) if called(node) in ("conjugate", "Transpose"):
            yield "function", argument
        case ast.Call(function, [first, second, *rest], keywords) if called(node) not in CLAIMS | SYMMETRIC | DATA:
            yield "order", ast.Call(function, [second, first, *rest], keywords)
        case ast.keyword("at", point) if ast.unparse(point) != "{}":
            yield "point", ast.keyword("at", ast.parse(f"dict.fromkeys({ast.unparse(point)}, 0)", mode="eval").body)


def spoilt(value, how: str):
    """A wrong function, layer or result in the place of one of the library's."""
    if callable(value):
        return lambda *args, **kwargs: spoilt(value(*args, **kwargs), how)
    match value:
        case torch.Tensor() | np.ndarray() | sp.MatrixBase() | Number() if how == "zeros":
            return value * 0
        case tuple() | list():
            return type(value)(spoilt(entry, how) for entry in value) if how == "zeros" else value[::-1]
        case dict():
            return dict(zip(value, spoilt([*value.values()], how), strict=True))
        case torch.Tensor():
            return value.flip(-1)
        case np.ndarray():
            return np.flip(value, -1)
        case sp.MatrixBase():
            return value.T
    return value


def backwards(function):
    """The function with the sign of its angle, or of its sine, turned round."""
    turned = TURNING[function.__name__]
    return lambda *args, **kwargs: function(*args[:turned], -args[turned], *args[turned + 1 :], **kwargs)


WRONG = {"zeros": partial(spoilt, how="zeros"), "swapped": partial(spoilt, how="swapped"), "backwards": backwards}


def called(node: ast.AST) -> str:
    """The last name of what a call calls: "randn" for torch.randn(3)."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def holds_claim(tree: ast.AST) -> bool:
    """Is there anything in the cell that is meant to fail when it is wrong?"""
    return any(isinstance(node, ast.Assert) or called(node) in CLAIMS for node in ast.walk(tree))


def changed_by(part: ast.AST) -> Iterator[str]:
    """The names that a statement sets, or changes in place."""
    for node in ast.walk(part):
        match node:
            case ast.Name(name, ast.Store()) | ast.Subscript(ast.Name(name), _, ast.Store()):
                yield name
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
                yield name


def attackable(node: ast.AST, asserted: bool = False, even: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes below this one that are part of a claim, each with whether its sign does not matter."""
    asserted = asserted or isinstance(node, ast.Assert)
    if called(getattr(node, "left", None)).startswith("rand"):
        return  # the scale of random data
    if not (asserted and isinstance(node, ast.Compare)):
        yield node, even
    children = list(ast.iter_child_nodes(node))
    passes = isinstance(node, ast.Attribute | ast.Subscript | ast.UnaryOp)
    match node:
        case ast.JoinedStr():
            children = []
        case ast.keyword(name) if name in SETTINGS:
            children = []
        case ast.BinOp(left, ast.Mult() | ast.Div()):
            passes = True
        case ast.Call(function) if called(node) in DATA:
            children = [function]
        case ast.Compare(left, [ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE(), *_], others):
            children = [side for side in (left, *others) if not isinstance(side, ast.Constant)]
            if asserted:
                children = others[:-1] or children[:1]  # what is not the bound: a in a < b, in 0 < a, in b < a < c
        case ast.Assert(test):
            children = [test]
    for child in children:
        yield from attackable(child, asserted, called(node) in EVEN or (even and passes))


def leads_to_claims(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """The attackable nodes in the statements, and in the heads of loops, on which the claims of a cell depend."""
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        cases = [isinstance(entry, ast.Constant) for entry in getattr(loop.iter, "elts", [loop.iter])]
        parts.append(ast.Tuple([loop.target] if all(cases) else [loop.target, loop.iter]))
    chosen = [part for part in parts if holds_claim(part)]
    for part in chosen:  # it grows
        nodes = list(attackable(part))
        yield from nodes
        read = {node.id for node, _ in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        chosen += [other for other in parts if other not in chosen and not read.isdisjoint(changed_by(other))]


def of_library(node: ast.AST, space: dict) -> bool:
    """Does the node name a function, or a layer, of the library or the laboratory?"""
    match node:
        case ast.Name(name, ast.Load()):
            value = space.get(name)
        case ast.Attribute(ast.Name(module), name, ast.Load()):
            value = getattr(space.get(module), name, None)
        case _:
            return False
    home = getattr(value, "__module__", None) or ""
    return callable(value) and home.split(".")[0] in ("rope_lib", "lab") and name not in CLAIMS | {"default_device"}


def changes(tree: ast.Module, space: dict) -> Iterator[tuple[str, dict]]:
    """Each change of a cell: in words, and as {id of a node: the node in its place}. The kinds take turns."""
    kinds, functions = {}, {}
    for node, even in leads_to_claims(tree):
        for kind, new in replacements(node, even):
            if ast.unparse(new) != ast.unparse(node):
                kinds.setdefault(kind, []).append((f"{ast.unparse(node)} -> {ast.unparse(new)}", {id(node): new}))
        if of_library(node, space):
            functions.setdefault(ast.unparse(node), []).append(node)
    for wrong in WRONG:
        for name in (name for name in functions if wrong != "backwards" or name in TURNING):
            new = {id(node): ast.Call(ast.Name(f"_{wrong}", ast.Load()), [node], []) for node in functions[name]}
            kinds.setdefault(wrong, []).append((f"{name} -> {wrong}({name})", new))
    return filter(None, chain.from_iterable(zip_longest(*kinds.values())))


class OutOfTime(BaseException):
    """Not an Exception, so that nobody on the way takes it for an error of his own."""


def out_of_time(*_):
    """What the clock calls."""
    raise OutOfTime


def verdict(tree: ast.Module, space: dict) -> str:
    """Run a changed cell and say what came of it."""
    code = compile(ast.fix_missing_locations(tree), "changed cell", "exec")
    signal.signal(signal.SIGPROF, out_of_time)  # counts what this process computes, so a busy machine changes nothing
    try:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        exec(code, space)
    except AssertionError:
        return "refused"
    except OutOfTime:
        return "no verdict"
    except Exception:
        return "no program"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "survived"


def fresh(value):
    """A copy of what a cell could change in place, so that the next change finds it as it was."""
    match value:
        case torch.Generator():
            return torch.Generator(value.device).set_state(value.get_state())
        case torch.Tensor():
            return value.clone()
        case list() | dict() | sp.MatrixBase():
            return copy.copy(value)
    return value


def parsed(source: str) -> ast.Module:
    """The program of a cell; that of a picture is empty."""
    source = re.sub(r"^[%!].*", "", source, flags=re.MULTILINE)
    return ast.parse(re.sub(r"\Afigures\.\w+\.(draw|explore)_\w+\(.*\)\Z", "", source, flags=re.DOTALL))


def code_cells(path: Path) -> list:
    """The code cells of a notebook."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def attack(
    cells: list, per_cell: int | None = None, until_refused: bool = False, known: dict[str, str] | None = None
) -> Iterator[dict]:
    """Run the cells of a chapter in order; for each with a claim, yield what came of changing it.

    known: for each cell a change that was refused before.
    """
    known, space = known or {}, {"__name__": "__main__", "display": lambda *_: None}
    for cell in cells:
        tree, before = parsed(cell.source), dict(space)
        used = names(tree)
        before |= {name: fresh(value) for name, value in before.items() if name in used}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(tree, cell.id, "exec"), space)
        if holds_claim(tree):
            after = dict(space)
            found = attack_cell(tree, before, after, space, per_cell, until_refused, known.get(cell.id))
            space.clear()
            space |= after
            yield {"cell": cell.id, "begins": cell.source.splitlines()[0], **found}


def attack_cell(
    tree: ast.Module,
    before: dict,
    after: dict,
    space: dict,
    per_cell: int | None = None,
    until_refused: bool = False,
    known: str | None = None,
) -> dict:
    """Change a cell in each way, and run it from the names that it found, `before`; those that it left say what is a
    function of the library. The dictionary `space` is that of the cell's functions: they look their names up in it.

    known: a change that was refused before. It is tried first, so that with until_refused a cell which is as good as it
    was costs one change.
    """
    used, found = names(tree), {**dict.fromkeys(VERDICTS, 0), "unseen": []}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for text, new in sorted(islice(changes(tree, after), per_cell), key=lambda change: change[0] != known):
            space.clear()
            space |= {name: fresh(value) if name in used else value for name, value in before.items()}
            space |= {f"_{name}": wrong for name, wrong in WRONG.items()}
            outcome = verdict(copy.deepcopy(tree, dict(new)), space)  # with the new node in its place
            found[outcome] += 1
            if outcome == "survived":
                line = min(node.lineno for node in ast.walk(tree) if id(node) in new)
                found["unseen"].append(f"line {line}: {textwrap.shorten(text, 100)}")
            if outcome == "refused":
                found.setdefault("refused by", text)
                if until_refused:
                    break
    return found


def attack_source(source: str, before: dict, space: dict, known: str | None) -> dict:
    """What came of changing a cell until it refused a change, from the names that a run of it left."""
    return attack_cell(parsed(source), before, dict(before), space, until_refused=True, known=known)


def names(tree: ast.AST) -> set[str]:
    """All names in a program."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def attack_all(paths: list[Path], *options: str) -> dict[str, list[dict]]:
    """Each chapter in a process of its own, as many at a time as there are cores; a crash ends that chapter only."""
    settings = {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    total = sum(holds_claim(parsed(cell.source)) for path in paths for cell in code_cells(path))

    def one(path: Path) -> list[dict]:
        command, found = [sys.executable, __file__, path.stem, "--alone", *options], []
        pipe = {"env": os.environ | settings, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=path.parent, **pipe) as child:
            for line in child.stdout:
                found.append(json.loads(line))
                bar.update()
        if child.returncode:
            begins = f"(ended with {child.returncode} after {len(found)} cells)"
            found.append({"cell": None, "begins": begins, **dict.fromkeys(VERDICTS, 0), "unseen": []})
        return found

    with tqdm(total=total, unit="cell") as bar, ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((path.stem for path in paths), pool.map(one, paths), strict=True))


def main() -> int:
    """The program; its answer is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="chapters by number, or by another part of their names; none: all")
    parser.add_argument("--per-cell", type=int, metavar="N", help="try at most N changes of a cell")
    parser.add_argument("--until-refused", action="store_true", help="leave each cell after the first refusal")
    parser.add_argument("--store", action="store_true", help=f"write {STORED.relative_to(ROOT)}")
    parser.add_argument("--alone", action="store_true", help="one chapter, in this process, as lines of JSON")
    given = parser.parse_args()
    paths = [path for path in CHAPTERS if not given.chapters or any(part in path.stem for part in given.chapters)]
    if given.alone:
        known = json.loads(STORED.read_text(encoding="utf-8"))["refused"].get(paths[0].stem)
        for found in attack(code_cells(paths[0]), given.per_cell, given.until_refused, known):
            print(json.dumps(found), flush=True)
        return 0
    options = [f"--per-cell={given.per_cell}"] * bool(given.per_cell) + ["--until-refused"] * given.until_refused
    chapters = attack_all(paths, *options)
    counts = {
        name: {outcome: sum(cell[outcome] for cell in cells) for outcome in VERDICTS}
        for name, cells in chapters.items()
    }
    counts["total"] = {outcome: sum(row[outcome] for row in counts.values()) for outcome in VERDICTS}
    print(f"{'':32} cells changes", *(f"{outcome:>10}" for outcome in VERDICTS))
    for name, row in counts.items():
        cells = chapters.get(name, [*chain(*chapters.values())])
        print(f"{name:32}{len(cells):6}{sum(row.values()):8}", *(f"{count:10}" for count in row.values()))
    blind = [(name, cell) for name, cells in chapters.items() for cell in cells if not cell["refused"]]
    for name, cell in blind:
        print(f"no change is refused in {name}, cell {cell['cell']}: {cell['begins']}")
    if given.store:
        cells = {name: [cell["cell"] for cell in cells] for name, cells in chapters.items()}
        unseen = {name: [f"{c['cell']} {text}" for c in chapters[name] for text in c["unseen"]] for name in chapters}
        refused = {name: {c["cell"]: c["refused by"] for c in chapters[name] if "refused by" in c} for name in chapters}
        if STORED.exists() and given.chapters:  # the others stay as they are
            known = json.loads(STORED.read_text(encoding="utf-8"))
            cells, unseen = known["cells"] | cells, known["survived"] | unseen
            refused = known["refused"] | refused
            counts = known["counts"] | counts
        write({"counts": counts, "cells": cells, "survived": unseen, "refused": refused})
    return int(bool(blind))


def write(found: dict) -> None:
    """Store it, of the chapters that are there, with its total."""
    there = {path.stem for path in (ROOT / "chapters").glob("*.ipynb")}
    stored = {part: {name: x for name, x in rows.items() if name in there} for part, rows in found.items()}
    rows = [*stored["counts"].values()]
    stored["counts"]["total"] = {outcome: sum(row[outcome] for row in rows) for outcome in VERDICTS}
    STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
