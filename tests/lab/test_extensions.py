"""The rule for the base, the published extensions, and the block of what was proposed after RoPE."""

import math

import pytest
import torch

import figures.trained
from lab import after_rope, experiments
from lab.extensions import EXTENSIONS, base_by_rule, errors, table, turns_once
from lab.proposals import KINDS, Mixer, Proposal, dropped
from rope_lib import apply_rotary_pos_emb, cos_sin, inverse_frequencies


def test_the_rule_keeps_the_pair_that_turns_once():
    for length, base, longer in ((4096, 1e4, 32768), (128, 1e4, 512), (8192, 5e5, 65536)):
        new = base_by_rule(base, length, longer)
        pair = turns_once(length, base)
        assert turns_once(longer, new) == pytest.approx(pair)
        assert length * base**-pair == pytest.approx(2 * math.pi)
    assert round(base_by_rule(5e5, 8192, 32768)) == 6_315_089  # what Apple's report prints


def test_each_published_extension_has_a_source_and_grows():
    for model in EXTENSIONS:
        lengths, bases = zip(*model.stages, strict=True)
        assert len(lengths) > 1, model.name
        assert list(lengths) == sorted(set(lengths)), model.name
        assert list(bases) == sorted(bases), model.name
        assert bases[-1] > bases[0], model.name
    assert len({model.name for model in EXTENSIONS}) == len(EXTENSIONS)
    page, plain = table()._repr_html_(), repr(table())
    assert page.count("bibliography.html#") == len(EXTENSIONS)
    assert "<" not in plain
    assert plain.count("°") == page.count("°") == sum(model.transcribed for model in EXTENSIONS)


def test_the_errors_are_median_factors():
    found = errors()
    ratios = sorted(max(ratio, 1 / ratio) for ratio in (model.used_over_rule for model in EXTENSIONS))
    assert found["this rule"] == pytest.approx((ratios[13] + ratios[14]) / 2)


def test_kinds_have_as_many_weights():
    counts = {kind: sum(weight.numel() for weight in Proposal(kind).parameters()) for kind in KINDS}
    assert max(counts.values()) < 1.002 * min(counts.values()), counts


def test_kinds_that_rotate_are_the_library(generator):
    q, k = torch.randn(2, 1, 2, 5, 16, generator=generator)
    for kind, speeds in {
        "RoPE": inverse_frequencies(16),
        "p-RoPE": inverse_frequencies(16) * (torch.arange(8) < 6),
        "a quarter": inverse_frequencies(4),
    }.items():
        wide = torch.cat((speeds, torch.zeros(8 - len(speeds)))) if kind == "a quarter" else speeds
        expected = apply_rotary_pos_emb(q, k, *cos_sin(torch.arange(5), wide), interleaved=True)
        torch.testing.assert_close(Mixer(kind, 32, 2).placed(q, k, q), expected)


def test_polar_scores_are_the_plain_sum(generator):
    q, k = torch.randn(2, 1, 1, 6, 8, generator=generator)
    layer = Mixer("PoPE", 8, 1)
    with torch.no_grad():
        layer.shift.copy_(-torch.rand(1, 1, 8, generator=generator))
    turned_q, turned_k = layer.placed(q, k, q)
    score = 0.0
    for j in range(8):
        lengths = math.log(1 + math.exp(q[0, 0, 5, j])) * math.log(1 + math.exp(k[0, 0, 2, j]))
        score += lengths * math.cos((5 - 2) * 10000 ** (-j / 8) - layer.shift[0, 0, j].item())
    assert (turned_q[0, 0, 5] @ turned_k[0, 0, 2]).item() == pytest.approx(score, rel=1e-4)


def test_words_that_choose_nothing_leave_the_rotation(generator):
    x = torch.randn(1, 6, 32, generator=generator)
    layer, rope = Mixer("by the words", 32, 2), Mixer("RoPE", 32, 2)
    torch.nn.init.zeros_(layer.to_turns.weight)
    q, k, _ = layer.qkv(x)
    ours, plain = layer.placed(q, k, x), rope.placed(q, k, x)  # counted from 1: the scores are the same
    torch.testing.assert_close(ours[0] @ ours[1].mT, plain[0] @ plain[1].mT, rtol=1e-4, atol=1e-5)


def test_dropped_is_a_model_without_positions():
    torch.manual_seed(0)
    model, text = Proposal("RoPE"), torch.randint(128, (2, 12))
    assert not torch.allclose(model(text), dropped(Proposal("RoPE"))(text))
    none = Proposal("none")
    none.load_state_dict(model.state_dict())
    torch.testing.assert_close(dropped(model)(text), none(text))


def test_alibi_has_its_bias_and_a_window_hides(generator):
    model, text = Proposal("ALiBi"), torch.randint(128, (1, 12), generator=generator)
    bias = model.bias(torch.arange(4), None)
    assert bias.shape == (4, 4, 4)
    assert bias[0, 3, 1] == 2 * bias[0, 3, 2] < 0
    changed = text.clone()
    changed[0, 0] = (text[0, 0] + 1) % 128
    last = [model(each, window=4)[0, -1] for each in (text, changed)]
    torch.testing.assert_close(*last, msg="two layers of a window of four reach six back")


def test_bits_and_their_parity():
    bits = next(after_rope._bits(50, 20, torch.Generator().manual_seed(0)))
    assert bits.shape == (50, 20)
    assert set(bits.unique().tolist()) == {0, 1}
    found = after_rope.count_ones(kind="none", rate=1e-3, seed=0, steps=20)
    assert len(found["accuracy"]) == 3


def test_behind_a_start_the_answers_are_those_of_the_bits():
    bits = torch.tensor([[1, 0, 1]])
    text = after_rope._started(bits)
    assert text.tolist() == [[2, 1, 0, 1]]

    def knows(text):  # is the number of ones so far odd? and nothing of the start
        return torch.nn.functional.one_hot(text.eq(1).cumsum(1) % 2, 3).double() * 50

    assert after_rope._start_loss(knows, text) < 1e-6
    many = next(after_rope._bits(4, 256, torch.Generator().manual_seed(0)))
    assert after_rope._right_from_start(knows, many) == [1, 1, 1, 1]
    assert after_rope._right_from_start(lambda text: -knows(text)[..., :2], many) == [0, 0, 0, 0]


def test_steps_near_half_turns_are_made_whole(generator):
    """Only those; the angles are then sums of half turns."""
    layer, x = Mixer("by the words", 32, 2), torch.randn(1, 6, 32, generator=generator)
    with torch.no_grad():
        layer.to_turns.weight.mul_(20)  # many steps near half turns
        before = layer.steps(x) / torch.pi
        layer.exact = 0.1
        after = layer.steps(x) / torch.pi
    near = (before - before.round()).abs() < 0.1
    assert 5 < near.sum() < near.numel() - 5
    torch.testing.assert_close(after[near], before[near].round(), rtol=0, atol=1e-6)
    assert torch.equal(after[~near], before[~near])


def test_the_bench_is_drawn_as_it_is_stored():
    runs = {kind: after_rope.at_best_rate("proposals", kind) for kind in after_rope.KINDS}
    dots = [list(line.get_ydata()) for line in figures.trained.draw_proposals().axes[0].lines]
    assert dots == [run["by_position"][1:] for of_kind in runs.values() for run in of_kind]
    for kind, of_kind in runs.items():  # by hand
        stored = [run for run in experiments.runs_of("proposals") if run["settings"]["kind"] == kind]
        ends = {run["curve"][-1]: run["settings"]["rate"] for run in stored if run["settings"]["seed"] == 0}
        assert {run["settings"]["rate"] for run in of_kind} == {ends[min(ends)]}
        assert [run["settings"]["seed"] for run in of_kind] == list(range(len(of_kind)))
    needles = experiments.runs_of("proposals_needles")
    maps = figures.trained.draw_proposals_needles().axes
    assert [ax.get_title() for ax in maps] == [*after_rope.KINDS, "RoPE, then dropped"]
    for ax, kind, which in zip(maps, [*after_rope.KINDS, "RoPE"], [*["found"] * 7, "dropped"], strict=True):
        counts = [run[which] for run in needles if run["settings"]["kind"] == kind]
        percent = [sum(of_cell) / 2 / len(counts) for of_cell in zip(*counts, strict=True)]  # of 200
        assert ax.images[0].get_array().compressed() == pytest.approx(percent)
