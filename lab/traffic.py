"""What a rotation costs on a GPU, counted without one: the memory that its operations read and write, and their number.

A GPU is done with the arithmetic of a rotation long before the numbers have come from its memory, so these counts are
what its time is made of. The operations run on "meta" tensors, which have a shape and no numbers.
"""

import pkgutil
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import lab
from rope_lib.formula import rotate_pairs
from rope_lib.rotary import apply_rotary_emb

SECTOR = 32  # bytes that a GPU fetches together (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory")


class Traffic(NamedTuple):
    """Bytes that are read and written, bytes of the sectors in which they lie, and operations that do it."""

    bytes: int
    in_sectors: int
    kernels: int


class _Counter(TorchDispatchMode):
    """Takes each operation that computes something for one kernel, which reads its inputs and writes its results."""

    counted = Traffic(0, 0, 0)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        read = args[1:] if function.name() == "aten::copy_" else args
        touched = [leaf for leaf in tree_leaves((read, result)) if isinstance(leaf, Tensor) and leaf.is_meta]
        if touched and not function.is_view and "empty" not in function.name():
            here = Traffic(*(sum(_bytes(x, unit) for x in touched) for unit in (1, SECTOR)), kernels=1)
            self.counted = Traffic(*map(sum, zip(self.counted, here, strict=True)))
        return result


def _bytes(x: Tensor, unit: int) -> int:
    """Of the memory that x lies in, in whole units. What an axis without stride repeats is at hand already."""
    axes = [(step * x.element_size(), length) for length, step in zip(x.shape, x.stride(), strict=True)]
    run, runs = x.element_size(), 1  # bytes without a gap of a unit, and how many such stretches
    for step, length in sorted(axis for axis in axes if axis[0]):
        if step <= -(-run // unit) * unit:
            run += (length - 1) * step
        else:
            runs *= length
    return runs * -(-run // unit) * unit


def traffic(function: Callable[..., object], *inputs: Tensor, **settings: object) -> Traffic:
    """Count a function, in operations as torch runs them, one after the other."""
    with _Counter() as counter:
        function(*inputs, **settings)
    return counter.counted


def rotate_half_form(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """As transformers writes it: all in the format of x, which rounds three times. A table has d columns."""
    assert not interleaved
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


FORMS = {"rotate_half": rotate_half_form, "formula": rotate_pairs, "rope_lib": apply_rotary_emb}


def rotation_traffic(shape: tuple[int, ...] = (1, 32, 4096, 128)) -> list[dict]:
    """For each format, layout and form: what was counted, and its share of a copy of x, which nothing can beat."""
    found = []
    for (name, form), dtype, interleaved in product(FORMS.items(), (torch.float32, torch.bfloat16), (True, False)):
        if name == "rotate_half" and interleaved:
            continue
        x = torch.empty(shape, dtype=dtype, device="meta")
        columns, kept_in = (shape[-1], dtype) if name == "rotate_half" else (shape[-1] // 2, torch.float32)
        tables = (torch.empty(shape[-2], columns, dtype=kept_in, device="meta") for _ in range(2))
        counted = traffic(form, x, *tables, interleaved=interleaved)
        row = {"form": name, "dtype": str(dtype).removeprefix("torch."), "interleaved": interleaved}
        copy = traffic(torch.clone, x)
        found.append(row | counted._asdict() | {"copies": counted.in_sectors / copy.in_sectors})
    return found


def kernel_listing() -> str:
    """The kernel of lab/kernel.py with its launch and its way back, read and not imported: it needs Triton."""
    source = pkgutil.get_data(lab.__name__, "kernel.py").decode()
    return source[source.index("@triton.jit") : source.index("\n\ndef rotated")].strip()
