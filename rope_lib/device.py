"""Where to compute: one way to choose, used by every chapter."""

from __future__ import annotations

import os

import torch


def default_device(name: str | None = None) -> torch.device:
    """Return the device named by `name`, else by the variable ROPE_DEVICE, else the GPU if there is one, else the CPU.

    Args:
        name: "cpu", "cuda", "cuda:1", "mps" ...; None asks the environment.

    Raises:
        ValueError: the name is unknown, or this machine has no such device.

    Example:
        >>> default_device("cpu")
        device(type='cpu')
    """
    source, asked = ("ROPE_DEVICE", os.environ.get("ROPE_DEVICE", "").strip()) if name is None else ("name", name)
    if not asked:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=asked)
    except (RuntimeError, AssertionError) as error:  # in torch's words, which for some devices are a page
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{source} is {asked!r}, but no such device can be used here ({reason}); "
            "use 'cpu', or leave it unset to let the book choose"
        ) from None
    return torch.device(asked)
