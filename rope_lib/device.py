"""Where to compute: one way to choose, used by every chapter."""

import os

import torch


def default_device(name: str | None = None) -> torch.device:
    """Return the device named by `name`, else by the variable ROPE_DEVICE, else the GPU if there is one, else the CPU.

    Args:
        name: "cpu", "cuda", "cuda:1", "mps" ...; None asks the environment.

    Raises:
        ValueError: the name is unknown, or this machine has no such device.
    """
    asked = name if name is not None else os.environ.get("ROPE_DEVICE", "").strip()
    source = "name" if name is not None else "ROPE_DEVICE"
    if not asked:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{source} is {asked!r}, but no such device can be used here ({reason}); "
            "use 'cpu', or leave it unset to let the book choose"
        ) from None
    return device
