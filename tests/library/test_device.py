import subprocess
import sys

import pytest
import torch

from rope_lib import RotaryEmbedding, cos_sin, default_device, interleaved_to_half_split, inverse_frequencies
from rope_lib.frequencies import axial_cos_sin, sectioned_cos_sin
from rope_lib.linear import Rotation, linear_attention
from rope_lib.softmax import attention, attention_from_scores
from rope_lib.theory import relative
from rope_lib.theory.decay import abel_bound, cosine_sum, mean_partial_sum
from rope_lib.theory.matrices import rotation_matrix
from rope_lib.theory.sinusoidal import sinusoidal_encoding


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


WORDS, SLOPES, SPEEDS = torch.arange(9), relative.alibi_slopes(2), inverse_frequencies(8)


def distances(x):
    return relative.relative_distances(*[WORDS.to(x.device)] * 2)


def linear(x, *, causal):
    tables = cos_sin(WORDS.to(x.device), inverse_frequencies(4, device=x.device), dtype=x.dtype)
    turn = Rotation(*tables, interleaved=True, denominator=False)
    return linear_attention(x, x, x, causal=causal, rotation=turn, decay=0.9 if causal else None, chunk_size=2)


def rotated(x, *, interleaved):
    return RotaryEmbedding(4, interleaved=interleaved)(x, x, positions=WORDS.to(x.device))[0]


RESULTS = {  # of x, (heads, seq_len, head_dim)
    "rotation, interleaved": lambda x: rotated(x, interleaved=True),
    "rotation, half-split": lambda x: rotated(x, interleaved=False),
    "positions of two coordinates": lambda x: axial_cos_sin(WORDS.view(3, 3).to(x.device), SPEEDS)[0],
    "positions in sections": lambda x: sectioned_cos_sin(
        WORDS.view(3, 3).to(x.device), SPEEDS, sections=(2, 1, 1), interleaved_sections=False
    )[0],
    "weights in the other layout": lambda x: interleaved_to_half_split(x, head_dim=4, dim=-1),
    "rotation matrix": lambda x: rotation_matrix(0.3, inverse_frequencies(4, device=x.device)),
    "attention": lambda x: attention(x, x, x, causal=True),
    "attention with a bias": lambda x: attention(
        x, x, x, causal=True, bias=relative.alibi_bias(distances(x), SLOPES.to(x))
    ),
    "attention with the cache": lambda x: attention(x[:, 6:], x, x, causal=True),
    "attention from scores": lambda x: attention_from_scores(x @ x.mT, x, causal=True),
    "linear attention, causal": lambda x: linear(x, causal=True),
    "linear attention": lambda x: linear(x, causal=False),
    "Shaw": lambda x: relative.shaw_scores(x, x, x[0, :5], distances(x)),
    "Transformer-XL": lambda x: relative.transformer_xl_scores(x, x, x[0], x[0, 0], x[1, 0], distances(x)),
    "DeBERTa": lambda x: relative.deberta_scores(x, x, x[0, :6], x[1, :6], distances(x)),
    "TUPE": lambda x: relative.tupe_scores(x, x, x[0], x[1]),
    "T5": lambda x: relative.t5_bias(x[0, :8], distances(x), bidirectional=True, max_distance=8),
    "sinusoidal code": lambda x: sinusoidal_encoding(WORDS.to(x.device), 4),
    "mean of partial sums": lambda x: mean_partial_sum(WORDS.to(x.device), dim=8),
    "sum of cosines": lambda x: cosine_sum(WORDS.to(x.device), dim=8),
    "Abel's bound": lambda x: abel_bound(x[0, 0], WORDS.to(x.device)),
}
WITHOUT_FLOAT64 = {"mps"}  # results that are float64 cannot be had there


@pytest.mark.parametrize("name", RESULTS)
def test_results_follow_their_inputs_and_agree_with_float64(name, device, generator):
    """In float32; sums of nine terms of size one are off by a few roundings of 2^-24, softmax included."""
    x = torch.randn(2, 9, 4, generator=generator)
    exact = RESULTS[name](x.double())
    if device.type in WITHOUT_FLOAT64 and RESULTS[name](x).dtype == torch.float64:
        pytest.skip("float64 by definition")
    ours = RESULTS[name](x.to(device))
    assert ours.device.type == device.type
    torch.testing.assert_close(ours.cpu().double(), exact.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", RESULTS)
def test_results_do_not_follow_the_default_device(name, generator):
    x = torch.randn(2, 9, 4, generator=generator)
    with torch.device("meta"):
        assert RESULTS[name](x).device.type == "cpu"


@pytest.mark.parametrize("name", RESULTS)
def test_results_do_not_follow_the_default_type(name, generator, request):
    x = torch.randn(2, 9, 4, generator=generator)
    expected = RESULTS[name](x)
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    for default in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(default)
        result = RESULTS[name](x)
        assert result.dtype == expected.dtype
        assert torch.equal(result, expected)


@pytest.mark.parametrize("name", ["attention", "linear attention, causal", "Shaw", "T5", "sum of cosines"])
def test_nothing_is_made_on_a_device_of_its_own(name):
    """Tensors of the device `meta` have no values, and meet no others."""
    assert RESULTS[name](torch.zeros(2, 9, 4, device="meta")).device.type == "meta"


def test_importing_the_library_is_light_and_changes_nothing():
    """No symbols, no pictures, and no setting of torch is touched."""
    code = (
        "import sys, torch; before = torch.get_default_dtype(), torch.get_rng_state().sum().item();"
        "import rope_lib; assert before == (torch.get_default_dtype(), torch.get_rng_state().sum().item());"
        "print(sorted({'rope_lib.theory.symbolic', 'matplotlib', 'figures'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
