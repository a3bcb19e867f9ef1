import subprocess
import sys

import pytest
import torch

from rope_lib import RotaryEmbedding, default_device, sinusoidal_encoding


def test_name_comes_first_then_the_environment_then_the_machine(monkeypatch):
    monkeypatch.setenv("ROPE_DEVICE", "meta")
    assert default_device("cpu") == torch.device("cpu")
    assert default_device() == torch.device("meta")
    monkeypatch.delenv("ROPE_DEVICE")
    assert default_device() == torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "xla:7"])
def test_unknown_devices(name, monkeypatch):
    with pytest.raises(ValueError, match=f"name is '{name}', but no such device can be used here"):
        default_device(name)
    monkeypatch.setenv("ROPE_DEVICE", name)
    with pytest.raises(ValueError, match=f"ROPE_DEVICE is '{name}'.*leave it unset"):
        default_device()


def test_results_follow_their_inputs():
    device = default_device()
    x = torch.zeros(1, 4, 8, device=device)
    assert RotaryEmbedding(8, interleaved=True)(x, x)[0].device == x.device
    assert sinusoidal_encoding(torch.arange(3, device=device), 8).device == x.device


def test_importing_the_library_is_light_and_changes_nothing():
    """No symbols, no pictures, and no setting of torch is touched."""
    code = (
        "import sys, torch; before = torch.get_default_dtype(), torch.get_rng_state().sum().item();"
        "import rope_lib; assert before == (torch.get_default_dtype(), torch.get_rng_state().sum().item());"
        "print(sorted({'rope_lib.symbolic', 'matplotlib', 'figures'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
