"""What users of rotary libraries stumble over: each test is one way in which it goes wrong elsewhere."""

import pytest
import torch

from rope_lib import RotaryEmbedding, apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.attention import attention
from rope_lib.frequencies import axial_cos_sin
from rope_lib.rotary import half_split_to_interleaved, interleaved_to_half_split
from rope_lib.scaling import dynamic_ntk_scaling, proportional_scaling, yarn_scaling

HEAD_DIM = 8


@pytest.fixture
def qkv(generator):
    return torch.randn(3, 2, 2, 10, HEAD_DIM, generator=generator, dtype=torch.float64)  # (batch, heads, seq_len, ...)


def rotary_attention(q, k, v, positions=None, bias=None):
    q, k = RotaryEmbedding(HEAD_DIM, interleaved=False)(q, k, positions=positions)
    return attention(q, k, v, causal=True, bias=bias)


def test_layouts_of_checkpoint_and_code(qkv, generator):
    """A checkpoint trained interleaved, run half-split: other scores, until its weights are reordered."""
    x = torch.randn(10, 6, generator=generator, dtype=torch.float64)
    w_q, w_k = torch.randn(2, 2 * HEAD_DIM, 6, generator=generator, dtype=torch.float64)

    def scores(w_q, w_k, interleaved):
        q, k = ((x @ w.mT).unflatten(-1, (2, HEAD_DIM)).transpose(0, 1) for w in (w_q, w_k))
        q, k = RotaryEmbedding(HEAD_DIM, interleaved=interleaved)(q, k)
        return q @ k.mT

    trained = scores(w_q, w_k, interleaved=True)
    assert (scores(w_q, w_k, interleaved=False) - trained).abs().max() > 0.1
    reordered = [interleaved_to_half_split(w, head_dim=HEAD_DIM, dim=0) for w in (w_q, w_k)]
    torch.testing.assert_close(scores(*reordered, interleaved=False), trained)
    assert torch.equal(half_split_to_interleaved(reordered[0], head_dim=HEAD_DIM, dim=0), w_q)


@pytest.mark.parametrize("spoil", ["module to bfloat16", "cast before first use", "autocast", "model to half and back"])
def test_angles_survive(spoil, generator):
    """Other modules keep inv_freq in a buffer, which follows every cast of the model."""
    q = torch.randn(4, HEAD_DIM, generator=generator)
    far = torch.arange(4) + 900_000
    model = torch.nn.Sequential(RotaryEmbedding(HEAD_DIM, interleaved=True), torch.nn.Linear(2, 2))
    expected = RotaryEmbedding(HEAD_DIM, interleaved=True)(q, q, positions=far)[0]
    if spoil == "module to bfloat16":
        model[0](q, q)
        model.to(torch.bfloat16)
    elif spoil == "cast before first use":
        model.bfloat16()
    elif spoil == "model to half and back":
        model.half().float()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=spoil == "autocast"):
        assert torch.equal(model[0](q, q, positions=far)[0], expected)
    assert not list(model[0].buffers())


def test_packed_documents(qkv):
    """Two documents in one row, positions restarting: each comes out as if it were alone."""
    q, k, v = qkv
    lengths = (6, 4)
    positions = torch.cat([torch.arange(n) for n in lengths])
    document = torch.repeat_interleave(torch.arange(2), torch.tensor(lengths))
    apart = torch.zeros(10, 10, dtype=torch.float64).masked_fill(document[:, None] != document, float("-inf"))
    packed = rotary_attention(q, k, v, positions, bias=apart)
    for start, end in ((0, 6), (6, 10)):
        alone = rotary_attention(*(x[..., start:end, :] for x in (q, k, v)))
        torch.testing.assert_close(packed[..., start:end, :], alone)


def test_left_padding(qkv):
    """Rows padded on the left by different amounts: the text comes out the same, wherever counting starts."""
    q, k, v = qkv
    padding = torch.tensor([0, 3])
    places = torch.arange(10)
    hidden = (places < padding[:, None])[:, None, None, :]
    bias = torch.zeros(2, 1, 10, 10, dtype=torch.float64).masked_fill(hidden, float("-inf"))
    from_text = (places - padding[:, None]).clamp(min=0)[:, None]  # (batch, 1, seq_len): padding is cut to 0
    for positions in (from_text, places):  # counted from the text, or from the row: only distances matter
        padded = rotary_attention(q, k, v, positions, bias=bias)
        alone = rotary_attention(*(x[1, :, 3:] for x in (q, k, v)))
        torch.testing.assert_close(padded[1, :, 3:], alone)


def test_cache_offset(qkv):
    """One token at a time, keys rotated once and kept: the same as all at once."""
    q, k, v = qkv
    whole = rotary_attention(q, k, v)
    rope = RotaryEmbedding(HEAD_DIM, interleaved=False)
    cached = k[..., :0, :]
    for m in range(10):
        new_q, new_k = rope(q[..., m : m + 1, :], k[..., m : m + 1, :], positions=torch.tensor([m]))
        cached = torch.cat((cached, new_k), dim=-2)
        out = attention(new_q, cached, v[..., : m + 1, :], causal=True)
        torch.testing.assert_close(out, whole[..., m : m + 1, :])


def test_a_forgotten_cache_offset_is_seen(qkv):
    """Without positions the new token would be at 0: the same rotation only for the first one."""
    q, k, _ = qkv
    rope = RotaryEmbedding(HEAD_DIM, interleaved=False)
    first, second = q[..., :1, :], q[..., 1:2, :]
    whole = rope(q, k)[0]
    assert torch.equal(rope(first, first)[0], whole[..., :1, :])
    assert not torch.allclose(rope(second, second)[0], whole[..., 1:2, :])


def test_two_conventions_of_partial_rotary():
    """Half of the dimensions: their own full spectrum (GPT-NeoX), or the fast half of the whole one (p-RoPE)."""
    own = inverse_frequencies(HEAD_DIM // 2)
    fast_half = proportional_scaling(HEAD_DIM, partial_rotary_factor=0.5)
    assert own.tolist() == pytest.approx([1, 0.01])
    assert fast_half.tolist() == pytest.approx([1, 0.1, 0, 0])
    x = torch.arange(8.0)[None]
    by_spectrum = RotaryEmbedding(HEAD_DIM // 2, interleaved=False)(x, x, positions=torch.tensor([1]))[0]
    by_speed = RotaryEmbedding(HEAD_DIM, interleaved=False, inv_freq=fast_half)(x, x, positions=torch.tensor([1]))[0]
    assert by_spectrum[0, 4:].tolist() == [4, 5, 6, 7]  # the first half turns, pairs (0, 2) and (1, 3)
    assert by_speed[0, [2, 3, 6, 7]].tolist() == [2, 3, 6, 7]  # pairs (0, 4) and (1, 5) turn


def test_dynamic_ntk_with_cached_keys(qkv):
    """Keys rotated for a shorter text have other speeds than those of the longer one; cache them before rotating."""
    q, k, _ = qkv

    def rope(seq_len):
        speeds = dynamic_ntk_scaling(HEAD_DIM, factor=2.0, seq_len=seq_len, max_position_embeddings=8)
        return RotaryEmbedding(HEAD_DIM, interleaved=False, inv_freq=speeds)

    query, keys = rope(10)(q, k)
    right = query[..., -1:, :] @ keys.mT
    stale = rope(9)(q, k)[1]
    assert (query[..., -1:, :] @ stale.mT - right).abs().max() > 0.01
    within = rope(8)(q, k)[1], rope(4)(q, k)[1]
    assert torch.equal(*within)  # up to the trained length nothing changes


def test_grid_positions_do_not_mix_rows_and_columns(generator):
    """Moving a patch down by one changes only the first half of the dimensions."""
    x = torch.randn(1, HEAD_DIM, generator=generator)
    here, below = (
        apply_rotary_emb(x, *axial_cos_sin(torch.tensor([place]), HEAD_DIM), interleaved=True)
        for place in ((3, 5), (4, 5))
    )
    assert not torch.allclose(here[:, :4], below[:, :4])
    assert torch.equal(here[:, 4:], below[:, 4:])


def test_order_of_the_betas_and_the_attention_factor():
    settings = {"factor": 4.0, "original_max_position_embeddings": 64}
    with pytest.raises(ValueError, match="are the two swapped"):
        yarn_scaling(16, beta_fast=1, beta_slow=32, **settings)
    speeds, attention_factor = yarn_scaling(16, **settings)
    x = torch.ones(1, 16)
    q, k = RotaryEmbedding(16, interleaved=True, inv_freq=speeds, attention_factor=attention_factor)(x, x)
    assert (q @ k.mT).item() == pytest.approx(16 * attention_factor**2)  # both grow, so the score grows by the square


def test_results_are_new_tensors(qkv):
    """In-place rotation of a tensor that autograd still needs raises, or worse."""
    x = qkv[0].clone().requires_grad_()
    doubled = 2 * x
    turned = apply_rotary_emb(doubled, *cos_sin(torch.arange(10), inverse_frequencies(8)), interleaved=True)
    (turned.sum() + (doubled**2).sum()).backward()
    assert turned.data_ptr() != doubled.data_ptr()
    assert x.grad is not None


def test_built_on_the_meta_device(generator):
    q = torch.randn(4, HEAD_DIM, generator=generator)
    with torch.device("meta"):
        rope = RotaryEmbedding(HEAD_DIM, interleaved=True)
    expected = RotaryEmbedding(HEAD_DIM, interleaved=True)(q, q)[0]
    assert torch.equal(rope.to_empty(device="cpu")(q, q)[0], expected)


def test_tables_too_short_never_wrap_around(qkv):
    cos, sin = cos_sin(torch.arange(8), inverse_frequencies(HEAD_DIM))
    with pytest.raises(ValueError, match=r"seq_len of x is 10, of cos 8.*tables too short"):
        apply_rotary_emb(qkv[0], cos, sin, interleaved=True)


def test_tables_streamed_in_pieces_are_the_whole_table():
    inv_freq = inverse_frequencies(HEAD_DIM)
    whole = cos_sin(torch.arange(1000), inv_freq)
    pieces = [cos_sin(torch.arange(start, min(start + 300, 1000)), inv_freq) for start in range(0, 1000, 300)]
    for table, streamed in zip(whole, (torch.cat(part) for part in zip(*pieces, strict=True)), strict=True):
        assert torch.equal(table, streamed)
