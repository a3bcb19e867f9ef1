"""Calls that mean something else than what they would compute are refused, in the words of the caller."""

import json
from fractions import Fraction

import numpy as np
import pytest
import torch

from rope_lib import RotaryEmbedding, default_device, frequencies_from_config, scaling, softmax
from rope_lib.linear import linear_attention, linear_attention_step
from rope_lib.theory import relative
from rope_lib.theory.matrices import shift_matrix
from tests.library.calls import LENGTHS, LLAMA, LONGROPE, REFUSED, SPEEDS, X


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_the_callers_words(name):
    function, arguments, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        function(**arguments)


@pytest.mark.parametrize("name", ["rotary_dim", "interleaved", "head_dim", "base", "inv_freq", "attention_factor"])
def test_what_makes_the_rotation_is_fixed(name):
    rope = RotaryEmbedding(8, interleaved=True)
    with pytest.raises(AttributeError, match=f"^{name} is fixed; make another RotaryEmbedding"):
        setattr(rope, name, getattr(rope, name))


def test_a_configuration_is_not_changed_by_reading_it():
    config = LLAMA | LENGTHS | {"rope_scaling": LONGROPE | {"mscale": None}}
    before = json.dumps(config)
    for seq_len in (None, 100, 8192):
        frequencies_from_config(config, seq_len=seq_len)
    assert json.dumps(config) == before


def test_the_module_takes_its_size_from_the_speeds():
    rope = RotaryEmbedding(inv_freq=SPEEDS, interleaved=False, head_dim=8)
    assert rope.rotary_dim == 8
    assert "head_dim=8" in repr(rope)
    assert rope.base is None
    q, k = rope(X, X, positions=torch.arange(6))
    expected = RotaryEmbedding(8, interleaved=False)(X, X, positions=torch.arange(6))
    assert torch.equal(q, expected[0])
    assert torch.equal(k, expected[1])


def test_numbers_of_other_kinds_are_numbers():
    """Fractions, and numpy's."""
    for four in (Fraction(4), np.float32(4), np.int64(4)):
        assert torch.equal(scaling.linear_scaling(8, factor=four), SPEEDS / 4)
        trained = {"factor": four, "original_max_position_embeddings": 512 * four, "beta_slow": four / 4}
        expected = {"factor": 4.0, "original_max_position_embeddings": 2048}
        for scaled in (scaling.ntk_by_parts_scaling, scaling.yarn_scaling):
            assert torch.equal(scaled(8, **trained), scaled(8, **expected))
        rope = RotaryEmbedding(8, interleaved=True, attention_factor=four)
        assert torch.equal(rope.tables(torch.tensor([0]))[0], torch.full((1, 4), 4.0))
        found = softmax.attention(X, X, X, causal=True, scale=four / 8)
        torch.testing.assert_close(found, softmax.attention(X, X, X, causal=True, scale=0.5))
        found = linear_attention(X, X, X, causal=True, decay=four / 8)
        torch.testing.assert_close(found, linear_attention(X, X, X, causal=True, decay=0.5))
    assert torch.equal(relative.alibi_slopes(np.int64(4)), relative.alibi_slopes(4))


def test_who_overrides_the_speeds_changes_the_angles():
    class Slower(RotaryEmbedding):
        inv_freq = property(lambda self: SPEEDS / 2)

    found = Slower(8, interleaved=True)(X, X, positions=torch.arange(6))[0]
    expected = RotaryEmbedding(8, interleaved=True)(X, X, positions=torch.arange(6) / 2)[0]
    assert torch.equal(found, expected)


def test_speeds_that_are_handed_out_are_a_copy():
    """The line of position interpolation is refused, and what it did before that reaches no angle."""
    rope, fresh = (RotaryEmbedding(8, interleaved=True) for _ in range(2))
    with pytest.raises(AttributeError, match="inv_freq is fixed; make another RotaryEmbedding"):
        rope.inv_freq /= 4
    rope.inv_freq.mul_(2)
    with pytest.raises(AttributeError):
        del rope.inv_freq
    turned = (module(X, X, positions=torch.arange(6))[0] for module in (rope, fresh))
    assert torch.equal(*turned)
    assert torch.equal(rope.inv_freq, SPEEDS)


def test_small_things_that_went_wrong_in_silence():
    assert torch.equal(shift_matrix(torch.tensor(2, dtype=torch.uint8), 4), shift_matrix(2, 4))
    assert (
        repr(RotaryEmbedding(8, interleaved=True, base=Fraction(100)))
        == "RotaryEmbedding(8, interleaved=True, base=100)"
    )
    assert default_device("").type in ("cpu", "cuda")


@pytest.mark.parametrize("shape", [(2, 1), (2, 300), (2, 4096), (2048,), (1, 2048), (1, 1, 300)])
@pytest.mark.parametrize("decay", [None, 0.9])
def test_a_state_keeps_no_more_alive_than_it_is(shape, decay):
    """Where leading axes are 1, a view is contiguous, too."""
    q = torch.ones(*shape, 16)
    _, state = linear_attention_step(None, q, q, q, decay=decay)
    _, later = linear_attention_step(state, *[q[..., :1, :]] * 3, decay=decay)
    for part in (*state, *later):
        assert part.untyped_storage().nbytes() == part.nbytes
