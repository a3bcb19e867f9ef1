import subprocess
import sys

import pytest
import torch

from rope_lib import default_device
from tests.library.calls import OF_TENSORS, RIGHT, each_tensor, tensors


def test_name_comes_first_then_the_environment_then_the_machine(monkeypatch):
    monkeypatch.setenv("ROPE_DEVICE", "meta")
    assert default_device("cpu") == torch.device("cpu")
    assert default_device() == torch.device("meta")
    monkeypatch.setenv("ROPE_DEVICE", " meta\n")
    assert default_device() == torch.device("meta")
    assert default_device("") != torch.device("meta")  # a name that is empty is one: None alone asks the environment
    for empty in ("", " "):
        monkeypatch.setenv("ROPE_DEVICE", empty)
        for available, expected in ((True, "cuda"), (False, "cpu")):
            monkeypatch.setattr(torch.cuda, "is_available", lambda available=available: available)
            assert default_device() == torch.device(expected)
    monkeypatch.delenv("ROPE_DEVICE")
    assert default_device() == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "xla:7"])
def test_unknown_devices(name, monkeypatch):
    with pytest.raises(ValueError, match=rf"^name is '{name}', but no such device can be used here"):
        default_device(name)
    monkeypatch.setenv("ROPE_DEVICE", name)
    with pytest.raises(ValueError, match=rf"^ROPE_DEVICE is '{name}'.*leave it unset"):
        default_device()


WITHOUT_FLOAT64 = {"mps"}  # results that are float64 cannot be had there
ELSEWHERE = {"decay.cosine_sum_limit", "matrices.shift_matrix"}  # results that do not live where the arguments do


def moved(arguments, device):
    """Speeds stay where they are made, if positions say where their tables belong; so does what cannot go there."""

    def to(x):
        return x if x.dtype == torch.float64 and torch.device(device).type in WITHOUT_FLOAT64 else x.to(device)

    stays = "inv_freq" if "positions" in arguments else None
    return {name: x if name == stays else each_tensor(to, x) for name, x in arguments.items()}


@pytest.mark.parametrize("name", [name for name in OF_TENSORS if name not in ELSEWHERE])
def test_results_follow_their_inputs_and_agree_with_float64(name, device):
    """In float32; sums of six terms of size one are off by a few roundings of 2^-24, softmax included."""
    function, arguments = RIGHT[name]
    if device.type in WITHOUT_FLOAT64 and any(x.dtype == torch.float64 for x in tensors(function(**arguments))):
        pytest.skip("float64 by definition")
    exact = function(**each_tensor(lambda x: x.double() if x.is_floating_point() else x, arguments))
    ours = function(**moved(arguments, device))
    for found, expected in zip(tensors(ours), tensors(exact), strict=True):
        assert found.device.type == device.type
        torch.testing.assert_close(found.cpu().double(), expected.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", OF_TENSORS)
def test_results_do_not_follow_the_default_device(name):
    function, arguments = RIGHT[name]
    with torch.device("meta"):
        assert {result.device.type for result in tensors(function(**arguments))} == {"cpu"}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_results_do_not_follow_the_default_type(name, request):
    function, arguments = RIGHT[name]
    expected = tensors(function(**arguments))
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    for default in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(default)
        torch.testing.assert_close(tensors(function(**arguments)), expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    "name",
    [
        "softmax.attention",
        "linear.linear_attention, turned, decay",
        "relative.shaw_scores",
        "relative.t5_bias, near",
        "decay.cosine_sum",
    ],
)
def test_nothing_is_made_on_a_device_of_its_own(name):
    """Tensors of the device `meta` have no values, and meet no others."""
    function, arguments = RIGHT[name]
    assert {result.device.type for result in tensors(function(**moved(arguments, "meta")))} == {"meta"}


def test_importing_the_library_is_light_and_changes_nothing():
    """No symbols, no pictures, and no setting of torch is touched."""
    code = (
        "import sys, torch; before = torch.get_default_dtype(), torch.get_rng_state().sum().item();"
        "import rope_lib; assert before == (torch.get_default_dtype(), torch.get_rng_state().sum().item());"
        "print(sorted({'rope_lib.theory.symbolic', 'matplotlib', 'figures'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
