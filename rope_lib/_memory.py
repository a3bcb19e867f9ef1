"""Memory for large results. The system hands it out in pages, mostly of 4 KiB, and clears each, which takes several
times as long as the copy into it. So Linux is asked for pages of 2 MiB, as numpy does.
"""

from __future__ import annotations

import ctypes
import mmap

import torch
from torch import Tensor

LARGE = 2**22  # bytes: from here on numpy asks for large pages


def new_memory(like: Tensor, shape: tuple[int, ...] | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """An empty tensor, of the shape and dtype of another one or of these, in large pages where Linux has them.

    (Not with `torch.use_deterministic_algorithms`: that fills it first, in small pages.)
    """
    new = like.new_empty(like.shape if shape is None else shape, dtype=dtype)
    if torch.compiler.is_compiling() or not (
        hasattr(mmap, "MADV_HUGEPAGE") and new.is_cpu and new.nbytes >= LARGE and type(new) is Tensor
    ):
        return new
    try:
        begin = -(-new.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    except RuntimeError:  # inside of vmap and jvp a tensor has no memory of its own
        return new
    size = new.data_ptr() + new.nbytes - begin
    ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), mmap.MADV_HUGEPAGE)
    return new
