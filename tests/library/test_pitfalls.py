"""What users of rotary libraries stumble over: each test is one way in which it goes wrong elsewhere."""

import json
import re

import pytest
import torch

from lab import mistakes
from lab.precision import roundings
from rope_lib import (
    RotaryEmbedding,
    apply_rotary_emb,
    apply_rotary_pos_emb,
    attention,
    cos_sin,
    interleaved_to_half_split,
    inverse_frequencies,
)
from rope_lib.frequencies import axial_cos_sin
from rope_lib.scaling import dynamic_ntk_scaling, proportional_scaling, yarn_attention_factor, yarn_scaling
from rope_lib.theory import reference
from tests.conftest import ROOT

HEAD_DIM = 8


@pytest.fixture
def qkv(generator):
    return torch.randn(3, 2, 2, 10, HEAD_DIM, generator=generator, dtype=torch.float64)  # (batch, heads, seq_len, ...)


def rotary_attention(q, k, v, positions=None, bias=None):
    positions = torch.arange(q.shape[-2]) if positions is None else positions
    q, k = RotaryEmbedding(HEAD_DIM, interleaved=False)(q, k, positions=positions)
    return attention(q, k, v, causal=True, bias=bias)


# -- Layouts -----------------------------------------------------------------------------------------------------------


def test_the_layout_of_the_checkpoint_is_that_of_the_code(generator):
    """A checkpoint trained interleaved, run half-split: other scores, until its weights are reordered."""
    x = torch.randn(10, 6, generator=generator, dtype=torch.float64)
    weights = torch.randn(2, HEAD_DIM, 6, generator=generator, dtype=torch.float64)

    def scores(weights, interleaved):
        rope = RotaryEmbedding(HEAD_DIM, interleaved=interleaved)
        q, k = rope(*(x @ weights.mT), positions=torch.arange(10))
        return q @ k.mT

    trained = scores(weights, interleaved=True)
    assert (scores(weights, interleaved=False) - trained).abs().max() > 0.1
    reordered = interleaved_to_half_split(weights, head_dim=HEAD_DIM, dim=1)
    torch.testing.assert_close(scores(reordered, interleaved=False), trained)


def test_heads_and_words_are_not_swapped(qkv):
    """Counting along the wrong axis would turn each head by its number; sizes tell, if they differ."""
    words_first = qkv[0].transpose(1, 2)
    with pytest.raises(ValueError, match=r"seq_len of q is 2, of cos 10; .* did you forget q.transpose\(-3, -2\)"):
        rotary_attention(words_first, words_first, words_first, torch.arange(10))


def test_rows_of_positions_are_not_taken_for_heads(qkv):
    q, positions = qkv[0], torch.arange(20).view(2, 10)  # as many rows as heads: nothing but the axes could tell
    rope = RotaryEmbedding(HEAD_DIM, interleaved=False)
    with pytest.raises(ValueError, match=r"batch could be taken for heads.*positions\[:, None\]"):
        rope(q, q, positions=positions)
    rows = rope(q, q, positions=positions[:, None])[0]
    for row in range(2):
        assert torch.equal(rows[row], rope(q[row], q[row], positions=positions[row])[0])


def test_two_conventions_of_partial_rotary():
    """Half of the dimensions: their own full spectrum (GPT-NeoX), or the fast half of the whole one (p-RoPE)."""
    own = inverse_frequencies(HEAD_DIM // 2)
    fast_half = proportional_scaling(HEAD_DIM, partial_rotary_factor=0.5)
    assert own.tolist() == pytest.approx([1, 0.01])
    assert fast_half.tolist() == pytest.approx([1, 0.1, 0, 0])
    x, one = torch.arange(8.0)[None], torch.tensor([1])
    by_spectrum = RotaryEmbedding(HEAD_DIM // 2, interleaved=False)(x, x, positions=one)[0]
    by_speed = RotaryEmbedding(HEAD_DIM, interleaved=False, inv_freq=fast_half)(x, x, positions=one)[0]
    assert by_spectrum[0, 4:].tolist() == [4, 5, 6, 7]  # the first half turns, pairs (0, 2) and (1, 3)
    assert (by_spectrum[0, :4] != x[0, :4]).all()
    assert by_speed[0, [2, 3, 6, 7]].tolist() == [2, 3, 6, 7]  # pairs (0, 4) and (1, 5) turn
    assert (by_speed[0, [0, 1, 4, 5]] != x[0, [0, 1, 4, 5]]).all()


# -- Precision ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spoil", ["module to bfloat16", "cast before first use", "autocast", "model to half and back", "built on meta"]
)
def test_angles_survive(spoil, generator):
    """Other modules keep inv_freq in a buffer, which follows every cast of the model."""
    q = torch.randn(4, HEAD_DIM, generator=generator)
    far = torch.arange(4) + 900_000
    for settings in ({}, {"inv_freq": inverse_frequencies(HEAD_DIM) / 2}):
        expected = RotaryEmbedding(HEAD_DIM, interleaved=True, **settings)(q, q, positions=far)[0]
        with torch.device("meta" if spoil == "built on meta" else "cpu"):
            model = torch.nn.Sequential(RotaryEmbedding(HEAD_DIM, interleaved=True, **settings), torch.nn.Linear(2, 2))
        if spoil == "module to bfloat16":
            model[0](q, q, positions=far)
            model.to(torch.bfloat16)
        elif spoil == "cast before first use":
            model.bfloat16()
        elif spoil == "model to half and back":
            model.half().float()
        elif spoil == "built on meta":
            model.to_empty(device="cpu")
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=spoil == "autocast"):
            assert torch.equal(model[0](q, q, positions=far)[0], expected)
        assert not list(model[0].buffers())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_an_angle_made_in_one_format_has_three_roundings(dtype):
    """Position, speed and product: more than two roundings explain, and never more than three."""
    mu = torch.finfo(dtype).eps / 2
    inexact = range(int(1 / mu) + 1, int(1 / mu) + 200, 2)
    assert 2 / (1 - 2 * mu) < roundings(inexact, dtype) <= 3 / (1 - 3 * mu)
    assert roundings([1, 3], dtype, dim=8, base=2.0**8) == 0  # powers of two are exact


def test_half_precision_rounds_the_result_and_not_the_angles(generator):
    """Far out, angles in bfloat16 or float16 would be nonsense, and tables in them wrong in the third digit."""
    positions = torch.arange(4) + 900_000
    for dtype in (torch.bfloat16, torch.float16):
        q = torch.randn(4, HEAD_DIM, generator=generator).to(dtype)
        exact = RotaryEmbedding(HEAD_DIM, interleaved=False)(q.double(), q.double(), positions=positions)[0]
        turned = RotaryEmbedding(HEAD_DIM, interleaved=False)(q, q, positions=positions)[0]
        half_a_step = torch.finfo(dtype).eps / 2 * exact.abs().max() + 1e-6  # and what float32 does
        torch.testing.assert_close(turned.double(), exact, rtol=0, atol=half_a_step.item())


# -- Positions ---------------------------------------------------------------------------------------------------------


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


def test_the_offset_of_the_cache(qkv):
    """One token at a time, keys rotated once and kept: as all at once, unless each new token is counted from 0."""
    q, k, v = qkv
    whole = rotary_attention(q, k, v)
    rope = RotaryEmbedding(HEAD_DIM, interleaved=False)
    for offset in (1, 0):
        cached, outputs = k[..., :0, :], []
        for m in range(10):
            here = slice(m, m + 1)
            new_q, new_k = rope(q[..., here, :], k[..., here, :], positions=torch.tensor([m * offset]))
            cached = torch.cat((cached, new_k), dim=-2)
            outputs.append(attention(new_q, cached, v[..., : m + 1, :], causal=True))
        difference = (torch.cat(outputs, dim=-2) - whole).abs().max()
        assert difference < 1e-12 if offset else difference > 0.01


def test_tables_too_short_never_wrap_around(qkv):
    cos, sin = cos_sin(torch.arange(8), inverse_frequencies(HEAD_DIM))
    with pytest.raises(
        ValueError, match=r"seq_len of x is 10, of cos 8; .* Otherwise make the tables for the positions"
    ):
        apply_rotary_emb(qkv[0], cos, sin, interleaved=True)


def test_tables_streamed_in_pieces_are_the_whole_table():
    inv_freq = inverse_frequencies(HEAD_DIM)
    whole = cos_sin(torch.arange(1000), inv_freq)
    pieces = [cos_sin(torch.arange(start, min(start + 300, 1000)), inv_freq) for start in range(0, 1000, 300)]
    for table, streamed in zip(whole, (torch.cat(part) for part in zip(*pieces, strict=True)), strict=True):
        assert torch.equal(table, streamed)


def test_grid_positions_do_not_mix_rows_and_columns(generator):
    """Moving a patch down by one changes only the first half of the dimensions, moving it aside only the second."""
    x = torch.randn(1, HEAD_DIM, generator=generator)
    here, below, beside = (
        apply_rotary_emb(x, *axial_cos_sin(torch.tensor([place]), inverse_frequencies(4)), interleaved=True)
        for place in ((3, 5), (4, 5), (3, 6))
    )
    assert not torch.isclose(here[:, :4], below[:, :4]).any()
    assert torch.equal(here[:, 4:], below[:, 4:])
    assert torch.equal(here[:, :4], beside[:, :4])
    assert not torch.isclose(here[:, 4:], beside[:, 4:]).any()


# -- Longer texts ------------------------------------------------------------------------------------------------------


def test_dynamic_ntk_with_cached_keys(qkv):
    """Keys rotated for a shorter text have other speeds than those of the longer one; cache them before rotating."""
    q, k, _ = qkv

    def rotate(seq_len):
        speeds = dynamic_ntk_scaling(HEAD_DIM, factor=2.0, seq_len=seq_len, max_position_embeddings=8)
        return RotaryEmbedding(HEAD_DIM, interleaved=False, inv_freq=speeds)(q, k, positions=torch.arange(10))

    query, keys = rotate(10)
    right = query[..., -1:, :] @ keys.mT
    assert (query[..., -1:, :] @ rotate(9)[1].mT - right).abs().max() > 0.01
    assert torch.equal(rotate(8)[1], rotate(4)[1])  # up to the trained length nothing changes


def test_the_attention_factor_goes_with_its_speeds():
    """Queries and keys both grow by it, so scores grow by its square; the speeds alone do not bring it."""
    speeds = yarn_scaling(16, factor=4.0, original_max_position_embeddings=64)
    factor = yarn_attention_factor(4.0)
    assert factor > 1.1
    x = torch.ones(1, 16)
    for given, score in ((factor, 16 * factor**2), (1.0, 16.0)):
        rope = RotaryEmbedding(16, interleaved=True, inv_freq=speeds, attention_factor=given)
        q, k = rope(x, x, positions=torch.tensor([5]))
        assert (q @ k.mT).item() == pytest.approx(score)


# -- Which check would have seen it ------------------------------------------------------------------------------------


def test_the_table_of_mistakes_has_a_row_for_each_and_a_mark_where_a_check_sees_it():
    table = mistakes.Table()
    assert table.rows == {name: mistakes.seen_by(rotate) for name, rotate in mistakes.MISTAKES.items()}
    head, *rows = table._repr_html_().split("<tr>")[1:]
    plain_head, *plain_rows = repr(table).splitlines()
    assert head.count("<th ") == len(mistakes.HEADS) + 1
    assert all(name in plain_head for name in mistakes.HEADS.values())
    for row, plain, (name, seen) in zip(rows, plain_rows, table.rows.items(), strict=True):
        expected = [seen[check] for check in mistakes.HEADS]
        assert f'<th scope="row">{name}' in row
        assert [mark == "x" for mark in re.findall("<td>(.*?)</td>", row)] == expected
        assert plain.startswith(name)
        assert [mark == "x" for mark in plain[26:].split()] == expected


def test_the_case_by_hand_does_not_trust_the_loop(monkeypatch):
    """If library and loop turn the same wrong way, numbers from a pocket calculator still tell."""
    right = reference.rotate
    monkeypatch.setattr(reference, "rotate", lambda x, m, **layout: right(x, -m, **layout))
    seen = mistakes.seen_by(mistakes.MISTAKES["turned backwards"])
    assert not seen["loop"]
    assert seen["by hand"]


# -- Memory and gradients ----------------------------------------------------------------------------------------------


def test_results_are_new_tensors(qkv):
    """In-place rotation of a tensor that autograd still needs raises, or worse."""
    x = qkv[0].clone().requires_grad_()
    tables = cos_sin(torch.arange(10), inverse_frequencies(HEAD_DIM), dtype=torch.float64)
    for interleaved in (True, False):
        doubled = 2 * x
        before = doubled.detach().clone()
        turned = apply_rotary_emb(doubled, *tables, interleaved=interleaved)
        assert torch.equal(doubled, before)
        [gradient] = torch.autograd.grad(turned.sum() + (doubled**2).sum(), x)
        back = apply_rotary_emb(torch.ones_like(x), tables[0], -tables[1], interleaved=interleaved)
        torch.testing.assert_close(gradient, 2 * back + 8 * x)


def test_learned_speeds_learn(generator):
    """Other modules keep speeds in a buffer, or make tables under no_grad: then nothing is learned, in silence."""
    q, k = torch.randn(2, 3, 5, HEAD_DIM, generator=generator)
    for interleaved in (True, False):
        speeds = torch.nn.Parameter(inverse_frequencies(HEAD_DIM))
        with pytest.raises(ValueError, match="learned frequencies go to cos_sin and apply_rotary_pos_emb"):
            RotaryEmbedding(HEAD_DIM, interleaved=interleaved, inv_freq=speeds)
        tables = cos_sin(torch.arange(5), speeds)
        rotated_q, rotated_k = apply_rotary_pos_emb(q, k, *tables, interleaved=interleaved)
        (rotated_q @ rotated_k.mT)[..., 1:, 0].sum().backward()
        assert (speeds.grad != 0).all()


# -- The recipes of the reference --------------------------------------------------------------------------------------


def test_the_recipes_run_and_do_what_they_say(tmp_path, monkeypatch):
    found = {}
    recipes = re.findall(r"```python\n(.*?)```", (ROOT / "chapters" / "reference.md").read_text(), re.DOTALL)
    for recipe in recipes:
        assert len([line for line in recipe.splitlines() if line and "import" not in line]) <= 8
        exec(recipe, found)
    assert len(recipes) == 12
    rows, sines = found["latents"][:, 1], found["tables"][1]  # the last tables are those of unequal axes
    torch.testing.assert_close(sines[:, 8], rows.sin())  # pair 8 is the first of the row: speed 1
    assert found["restarted"].tolist() == [0, 1, 2, 0, 1]
    q, k, v, rope = (found[name] for name in ("q", "k", "v", "partial"))
    apart = attention(*rope(q, k, positions=found["restarted"]), v, causal=True, bias=found["apart"])
    alone = attention(*rope(q[..., 3:, :], k[..., 3:, :], positions=torch.arange(2)), v[..., 3:, :], causal=True)
    torch.testing.assert_close(apart[..., 3:, :], alone)
    hidden = attention(*rope(q, k, positions=torch.arange(5)), v, causal=True, bias=found["hidden"])
    alone = attention(
        *rope(*(x[1:, ..., 2:, :] for x in (q, k)), positions=torch.arange(3)), v[1:, ..., 2:, :], causal=True
    )
    torch.testing.assert_close(hidden[1:, ..., 2:, :], alone)
    slowest = [rope.inv_freq[-1].item() for rope in found["ropes"].values()]
    assert slowest == pytest.approx([base ** (-62 / 64) for base in (1e6, 1e4)])
    peer = json.loads((ROOT / "tests" / "data" / "transformers_rope.json").read_text())["axial"]  # of 3 x 4 patches
    tables = axial_cos_sin(found["patches"], inverse_frequencies(32, base=100.0))
    turned, _ = apply_rotary_pos_emb(*torch.ones(2, 12, 64), *tables, interleaved=False)
    torch.testing.assert_close(turned[peer["patches"]], torch.tensor(peer["turned"]), rtol=0, atol=5e-6)
    assert found["full_q"].shape == found["full_k"].shape == (2, 8, 5, 96)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(found["config"]))
    read = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL):
        exec(block, read)
    assert read["rope"].attention_factor == pytest.approx(1.1386, abs=1e-4)
