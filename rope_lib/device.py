"""Where to compute: one way to choose, used by every chapter."""

from __future__ import annotations

import os

import torch


def default_device(name: str | int | None = None) -> torch.device:
    """The device named by `name`, else by the variable ROPE_DEVICE, else CUDA's GPU if there is one, else the CPU.

    Apple's GPU (mps) has no float64, which the proofs and tables of the book compute in: it is used if it is named.

    Args:
        name: "cpu", "cuda", "cuda:1", "mps" ..., or the number of a GPU; None asks the environment.

    Raises:
        ValueError: the name is unknown, or this machine has no such device.

    Example:
        >>> default_device("cpu")
        device(type='cpu')
    """
    source, asked = ("ROPE_DEVICE", os.environ.get("ROPE_DEVICE", "").strip()) if name is None else ("name", name)
    if asked == "":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=asked)
    except (RuntimeError, AssertionError, TypeError) as error:  # in torch's words, which for some devices are a page
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{source} is {asked!r}, but no such device can be used here ({reason:.200}); "
            "use 'cpu', or leave it unset to let the book choose"
        ) from None
    return torch.device(asked)
