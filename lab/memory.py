"""How much memory a piece of code takes anew, whether or not it gives it back."""

from collections.abc import Callable

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
