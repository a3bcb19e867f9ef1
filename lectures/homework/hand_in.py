"""Runs a hand-in, statement by statement, and answers calls of its functions. Nothing here knows what is right.

`marks.py` starts this text as a program of its own, in an empty folder, and talks with it through two pipes. A message
is the lengths of two parts, then a head in JSON, then the numbers of tensors as they lie in memory. To read one builds
numbers and lists and nothing else, so what comes back may be anything.
"""

import __future__

import ast
import ctypes
import json
import linecache
import os
import re
import struct
import sys
from collections.abc import Callable
from types import ModuleType
from typing import IO

SIZES = struct.Struct(">II")
LONGEST_HEAD, MOST_NUMBERS = 2**20, 2**26  # bytes
DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128"),
)


# -- Messages ----------------------------------------------------------------------------------------------------------


def send(pipe: IO[bytes], head: dict, numbers: bytes = b"") -> None:
    """Write a message."""
    text = json.dumps(head).encode()
    pipe.write(SIZES.pack(len(text), len(numbers)) + text + numbers)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict, bytes]:
    """Read a message: EOFError at the end, OverflowError if it is too long, ValueError if it is none."""
    sizes = pipe.read(SIZES.size)
    if len(sizes) < SIZES.size:
        raise EOFError
    of_head, of_numbers = SIZES.unpack(sizes)
    if of_head > LONGEST_HEAD or of_numbers > MOST_NUMBERS:
        raise OverflowError
    head = json.loads(pipe.read(of_head))
    if not isinstance(head, dict):
        raise ValueError(head)
    return head, pipe.read(of_numbers)


def packed(value: object, numbers: bytearray, functions: list, *, inside: bool = False) -> object:
    """A value for the head of a message; the numbers of its tensors, and its functions, are put to the others."""
    import torch

    if value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, tuple | list) and not inside:
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [packed(part, numbers, functions, inside=True) for part in value[:100]]}
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        tensor = value.as_subclass(torch.Tensor) if isinstance(value, torch.Tensor) else torch.as_tensor(value.copy())
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        start, size = len(numbers), tensor.numel() * tensor.element_size()
        numbers += ctypes.string_at(tensor.data_ptr(), size) if size else b""
        return {"tensor": [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), start, size]}
    if callable(value) and functions is not None:
        functions.append(value)
        return {"function": len(functions) - 1}
    return {"other": [type(value).__name__, repr(value)[:80]]}


def unpacked(value: object, numbers: bytes, function: Callable[[int], Callable] | None = None) -> object:
    """The inverse; ValueError if it is none. In the place of what cannot travel stands something of the same name."""
    import torch

    if value is None or isinstance(value, bool | int | float):
        return value
    [(kind, content)] = value.items() if isinstance(value, dict) and len(value) == 1 else [("", None)]
    if kind in ("tuple", "list") and isinstance(content, list):
        parts = [unpacked(part, numbers, function) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "tensor" and isinstance(content, list) and len(content) == 4:
        name, shape, start, size = content
        whole = [start, size, *shape] if isinstance(shape, list) else [None]
        if name in DTYPES and len(whole) < 12 and all(type(n) is int and 0 <= n <= MOST_NUMBERS for n in whole):
            dtype, part, count = getattr(torch, name), bytearray(numbers[start : start + size]), 1
            for n in shape:
                count *= n
            if len(part) == size == count * dtype.itemsize:
                return (torch.frombuffer(part, dtype=dtype) if size else torch.empty(0, dtype=dtype)).reshape(shape)
    if kind == "function" and function and type(content) is int:
        return function(content)
    if kind == "other" and isinstance(content, list) and len(content) == 2 and all(type(c) is str for c in content):
        name, text = (clean(part)[:80] for part in content)
        return type(name if name.isidentifier() else "object", (), {"__repr__": lambda self: text})()
    raise ValueError(kind)


def clean(text: str) -> str:
    """What a program says, in one line and of bearable length."""
    return "".join(c if c.isprintable() else " " for c in text[:500]).strip()


# -- The program -------------------------------------------------------------------------------------------------------


def without_magic(source: str) -> str:
    """The same without what only a notebook understands: lines for its own commands, for a shell, for help."""
    lines = source.splitlines()
    if first := re.match(r"\s*%%(\w+)", source):  # a command for the whole cell
        if first[1] not in ("capture", "time", "timeit", "prun"):
            return ""
        lines[next(number for number, line in enumerate(lines) if line.strip())] = ""
    for _ in range(len(lines)):  # a line is changed only if it stops the cell: one in a text or in brackets stays
        try:
            ast.parse("\n".join(lines))
        except SyntaxError as error:
            number = (error.lineno or 0) - 1
            if not 0 <= number < len(lines) or (plain := without_command(lines[number])) == lines[number]:
                break
            while lines[number].endswith("\\") and number + 1 < len(lines):
                lines[number], number = plain, number + 1
                plain = ""
            lines[number] = plain
        else:
            break
    return "\n".join(lines)


def without_command(line: str) -> str:
    """A line of Python for a line that is none."""
    line = re.sub(r"^(\s*)%time(?:it)?\s+(?=[^\s-])", r"\1", line)
    line = re.sub(r"^(\s*)[%!?].*|^(\s*)[\w.]+\?\??\s*$", r"\1\2pass", line)
    return re.sub(r"^(\s*[\w, ]+=\s*)[%!].*", r"\1[]", line)


class Notebook:
    """What a cell finds as `get_ipython()`: everything can be called, and nothing happens."""

    def __getattr__(self, name: str) -> Callable:
        return lambda *arguments, **options: None


class Program:
    """The hand-in, and its side of the pipes."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self.orders, self.answers, self.number = orders, answers, 0
        module = sys.modules["__main__"] = ModuleType("__main__")  # where a notebook's names are
        self.names, self.flags, self.cells = module.__dict__, 0, 0
        self.names.update(get_ipython=Notebook, display=lambda *things: None)
        check = sys.modules["check"] = ModuleType("check")  # what cells call to check themselves; no loop is in it
        for task in ("tables", "rotation", "conversion", "cache", "run_rope"):
            setattr(check, task, lambda *functions: 5)

    def hear(self) -> tuple[dict, bytes]:
        """The next message; what is said after it bears its number."""
        head, numbers = receive(self.orders)
        self.number = head["number"]
        return head, numbers

    def say(self, head: dict, numbers: bytes) -> None:
        """An answer to it."""
        send(self.answers, {**head, "number": self.number}, bytes(numbers))

    def read(self, source: str) -> dict:
        """Take a cell apart."""
        self.cells += 1
        file, source = f"<cell {self.cells}>", without_magic(source)
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # for who asks for source
        self.file, self.statements = file, ast.parse(source).body
        return {"count": len(self.statements)}

    def run(self, number: int) -> dict:
        """Run a statement of the cell."""
        statement = self.statements[number]
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for name in statement.names:
                self.flags |= getattr(__future__, name.name).compiler_flag
        body = ast.Module([statement], type_ignores=[])
        exec(compile(body, self.file, "exec", flags=self.flags, dont_inherit=True), self.names)
        return {}

    def defined(self) -> dict:
        """What can be called."""
        return {"names": [name for name, value in self.names.items() if callable(value)][:1000]}

    def call(self, name: str, arguments: list, given: dict, numbers: bytes) -> tuple[dict, bytes]:
        """Call a function; what is given stands in the place of its own helpers meanwhile."""
        values = [unpacked(argument, numbers, self.elsewhere) for argument in arguments]
        own = {helper: self.names[helper] for helper in given if helper in self.names}
        self.names.update({helper: self.elsewhere(number) for helper, number in given.items()})
        try:
            result = self.names[name](*values)
        finally:
            for helper in given:
                self.names.pop(helper, None)
            self.names.update(own)
        out = bytearray()
        return {"result": packed(result, out, None), "after": [packed(value, out, []) for value in values]}, out

    def elsewhere(self, number: int) -> Callable:
        """A function that is called through the pipe."""

        def function(*arguments: object, **named: object) -> object:
            numbers = bytearray()
            values = [packed(argument, numbers, None) for argument in arguments]
            options = {name: packed(argument, numbers, None) for name, argument in named.items()}
            self.say({"ask": number, "arguments": values, "named": options}, numbers)
            head, numbers = self.hear()
            if "stopped" in head:
                raise ValueError(head["stopped"])
            return unpacked(head["result"], numbers)

        return function

    def answer(self, head: dict, numbers: bytes) -> tuple[dict, bytes]:
        """What an order asks for, or why it stopped."""
        try:
            if "call" in head:
                return self.call(head["call"], head["arguments"], head["given"], numbers)
            order = {"read": self.read, "run": self.run, "defined": lambda _: self.defined()}
            return next(order[name](head[name]) for name in order if name in head), b""
        except BaseException as error:  # SystemExit, too
            try:
                why = str(error)[:500]
            except BaseException:
                why = ""
            return {"stopped": [type(error).__name__, why, within(error, self.names.get(head.get("call")))]}, b""


def within(error: BaseException, function: object) -> str:
    """The name of the function in which it was raised, or nothing if it is this one."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return "" if code is getattr(function, "__code__", code) else code.co_name


def main() -> None:
    """Until the pipe closes."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # what it prints goes nowhere
        os.dup2(nothing, stream)
    program, this = Program(orders, answers), os.getpid()
    head, _ = program.hear()
    limit(head["limits"])
    sys.path += head["packages"]
    sys.modules.update(dict.fromkeys(head["hidden"]))  # no module of these names is found
    program.names["__name__"] = head["name"]
    import torch  # noqa: F401

    program.say({}, b"")
    while True:
        reply = program.answer(*program.hear())
        if os.getpid() != this:  # a copy of itself that came back from its cell
            os._exit(0)
        program.say(*reply)


def limit(limits: dict[str, int]) -> None:
    """What no program can raise again, on Linux and macOS."""
    try:
        import resource
    except ImportError:
        return
    for name, most in limits.items():
        try:
            resource.setrlimit(getattr(resource, name), (most, most))
        except (AttributeError, ValueError, OSError):
            continue


if __name__ == "__main__":
    main()
