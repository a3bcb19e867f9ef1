"""How much memory a piece of code takes anew, whether or not it gives it back."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Count(TorchDispatchMode):
    """Adds up the storage of all results that is not the storage of an argument."""

    taken = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        known = {_address(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        new = {_address(leaf): leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)}
        self.taken += sum(leaf.untyped_storage().nbytes() for address, leaf in new.items() if address not in known)
        return result


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def memory_taken(function: Callable[[], object]) -> int:
    """Bytes of all tensors that the function makes, views not counted."""
    with _Count() as count:
        function()
    return count.taken


def peak_rise(function: Callable[[int], Callable[[], object]], size: int) -> int:
    """Bytes by which function(size)(), a call that it prepares, raises the peak of a process of its own (Linux)."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_rise, (function, size))


def _rise(function: Callable[[int], Callable[[], object]], size: int) -> int:
    call = function(size)
    before = _most_memory()
    call()
    return _most_memory() - before


def _most_memory() -> int:
    """Bytes that this process has held at most (ru_maxrss would begin with the parent's)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
