"""The small models: they learn, they are causal, their stored results are those of their settings."""

import json
from itertools import pairwise, product, starmap

import numpy as np
import pytest
import torch

import figures.trained
from lab import experiments, published
from lab.experiments import EXPERIMENTS, by_position, rescued, runs_of, shipped
from lab.model import ENCODINGS, LINEAR, Model
from lab.training import batches, held_out, language_model, text
from tests.conftest import ROOT

STORED = sorted(EXPERIMENTS)


@pytest.fixture(scope="module")
def bytes_of_text():
    return torch.randint(128, (2, 24), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("encoding", [*ENCODINGS, *LINEAR])
def test_no_byte_sees_a_later_one(encoding, bytes_of_text):
    torch.manual_seed(0)
    model = Model(encoding=encoding, layers=2, width=32, heads=4, longest=24)
    changed = bytes_of_text.clone()
    changed[:, 12] = (changed[:, 12] + 1) % 128
    before, after = model(bytes_of_text), model(changed)
    assert before.shape == (2, 24, 128)
    torch.testing.assert_close(before[:, :12], after[:, :12], rtol=0, atol=1e-5)
    assert (before[:, 12:] - after[:, 12:]).abs().amax(-1).min() > 1e-6


@pytest.mark.parametrize("encoding", ["rope", "alibi", "none"])
def test_a_window_hides_what_is_older(encoding, bytes_of_text):
    torch.manual_seed(0)
    model = Model(encoding=encoding, layers=1, width=32, heads=4)
    changed = bytes_of_text.clone()
    changed[:, 3] = (changed[:, 3] + 1) % 128
    difference = (model(bytes_of_text, window=5) - model(changed, window=5)).abs().amax((0, 2))
    assert difference[8:].max() < 1e-5
    assert difference[3:8].min() > 1e-6


def test_a_learned_table_ends():
    with pytest.raises(IndexError):
        Model(encoding="learned", layers=1, width=32, heads=4, longest=8)(torch.zeros(1, 9, dtype=torch.long))


def test_a_short_training_learns():
    settings = {"layers": 1, "width": 32, "heads": 4, "length": 32, "batch": 16}
    model, losses = language_model(seed=0, steps=60, encoding="rope", **settings)
    assert losses[0] > 4.5
    assert np.mean(losses[-5:]) < 4
    once, twice = (language_model(seed=0, steps=3, encoding="rope", **settings)[1] for _ in range(2))
    assert once == twice
    assert not model.training
    assert text().max() < 128
    assert len(text()) > 1_000_000


def test_the_texts_that_are_read_are_not_trained_on_and_the_same_for_all(monkeypatch):
    draw, seen = batches(64, 500, seed=0), bytes(text().tolist())
    first_held_out = len(seen) + -len(seen) // 20
    ends = [seen.find(bytes(row.tolist())) + 65 for row in next(draw)]
    assert 0.9 * first_held_out < max(ends) <= first_held_out
    assert seen.find(bytes(held_out(512, 64)[0].tolist())) >= first_held_out
    read = []
    monkeypatch.setattr(experiments, "language_model", lambda **_: (Model(layers=1, width=32), [0.0] * 600))
    monkeypatch.setattr(experiments, "by_position", lambda model, texts, edges: read.append((texts, edges)))
    for settings, measure in experiments.encodings():
        if settings["seed"] == 0 and settings["rate"] == 3e-3:
            measure()
    longest, _ = read[-1]
    assert [len(each) for _, each in read] == [6, 3, 6, 6, 6]
    assert all((texts == longest[:, : texts.shape[1]]).all() for texts, _ in read)


def test_losses_are_those_between_the_edges(bytes_of_text):
    model = Model(layers=1, width=32)
    losses = model.losses(bytes_of_text).mean(0)  # of bytes 1 to 23
    found = by_position(model, bytes_of_text, (0, 8, 24))
    assert found == pytest.approx([losses[:7].mean().item(), losses[7:].mean().item()], abs=1e-3)


def test_learned_speeds_are_trained():
    model, _ = language_model(
        seed=0, steps=3, encoding="rope", layers=1, width=32, heads=4, length=16, batch=4, learn_speeds=True
    )
    assert (model.log_speeds.detach() != model.rope.inv_freq.log()).any()


@pytest.mark.parametrize("name", STORED)
def test_stored_runs_are_those_of_the_settings(name):
    wanted = [settings for settings, _ in EXPERIMENTS[name][0]()]
    stored = json.loads(json.dumps(wanted))
    assert [run["settings"] for run in runs_of(name)] == stored
    assert all(run["minutes"] >= 0 for run in runs_of(name))


def test_the_shipped_model_still_says_what_is_stored():
    model, texts = shipped()
    edges, losses = rescued()
    assert by_position(model, texts, edges) == pytest.approx(losses["as it is"], abs=0.01)
    for method, stored in losses.items():  # the first 256 bytes know nothing of the others
        assert experiments.rescued_by(method, 256) == pytest.approx(stored[:3], abs=0.01), method
    assert (ROOT / "lab" / "trained" / "model.npz").stat().st_size < 1_500_000


def test_finished_runs_are_kept_when_one_fails(tmp_path, capsys):
    done = []

    def measure(number):
        if number == 2 and len(done) < 3:
            done.append("broken")
            raise KeyboardInterrupt
        done.append(number)
        return {"accuracy": number}

    def runs():
        for number in range(4):
            yield {"number": number}, lambda number=number: measure(number)

    with pytest.raises(KeyboardInterrupt):
        experiments.run("short", runs(), tmp_path)
    experiments.run("short", runs(), tmp_path)
    assert done == [0, 1, "broken", 2, 3]
    stored = json.loads((tmp_path / "short.json").read_text())
    assert [run["accuracy"] for run in stored["runs"]] == [0, 1, 2, 3]
    assert not list(tmp_path.glob("*.new"))
    assert "short" in capsys.readouterr().out


def test_figures_draw_what_is_stored():
    edges, losses = rescued()
    lines = figures.trained.draw_rescue().axes[0].lines
    assert [list(line.get_ydata()) for line in lines] == [
        losses[method] for method in ("as it is", "cropped", "linear", "NTK-aware", "by parts", "YaRN")
    ]
    best = [run for encoding in ENCODINGS for run in experiments.at_its_rate("encodings", encoding)]
    dots = [list(line.get_ydata()) for line in figures.trained.draw_encodings().axes[0].lines]
    assert sorted(dots) == sorted(run["by_position"][1:] for run in best)
    curves = [list(line.get_ydata()) for line in figures.trained.draw_learning().axes[0].lines]
    assert sorted(curves) == sorted(run["curve"] for run in best)
    lowest, highest = figures.trained.draw_learning().axes[0].get_ylim()
    assert all(lowest < curve[-1] < highest for curve in curves)
    ratios = [list(line.get_ydata()) for line in figures.trained.draw_trained_speeds().axes[0].lines[:-1]]
    assert ratios == [run["speed_ratios"] for run in runs_of("speeds")]
    assert all(a < b for a, b in pairwise(edges))
    shown = product((1, 4), figures.trained.HALVES)
    for ax, (keys, method) in zip(figures.trained.draw_needles().axes, shown, strict=True):
        runs = [run for run in runs_of("needles") if run["settings"]["encoding"] == "rope"]
        counts = [run["found"][method] for run in runs if run["settings"]["keys"] == keys]
        percent = [sum(of_cell) / 10 for of_cell in zip(*counts, strict=True)]  # of 5 times 200
        assert ax.images[0].get_array().compressed() == pytest.approx(percent)
        assert [text.get_text() for text in ax.texts] == [f"{share:.0f}" for share in percent]
    dots = [list(line.get_ydata()) for line in figures.trained.draw_linear_encodings().axes[0].lines]
    assert sorted(dots) == sorted(run["by_position"][1:] for run in runs_of("linear"))
    attention, energy, _ = figures.trained.draw_heads().axes
    assert [list(line.get_ydata()) for line in energy.lines] == [run["energy"] for run in runs_of("heads")]
    assert attention.images[0].get_array().tolist() in [run["map"] for run in runs_of("heads")]


def test_the_energy_shows_all_heads_of_the_shipped_model():
    model, texts = shipped()
    with torch.no_grad():
        shares = experiments.energies(model, texts[:, :128])
    shown = figures.trained.draw_energy().axes[0].images[0].get_array()
    layers, heads, _ = shares.shape
    for row, share in enumerate(shown):
        assert share.tolist() == pytest.approx(shares[row // heads, row % heads].tolist(), abs=5.1e-5)  # four digits
    assert len(shown) == layers * heads


def test_attention_maps_are_those_of_the_model(bytes_of_text):
    """Each row spreads 1 over what it may see; shifted by the rotation, the last layer's output is the model's."""
    torch.manual_seed(0)
    for encoding in ENCODINGS:
        model = Model(encoding=encoding, layers=2, width=32, heads=4, longest=24)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(3)  # far from uniform
        maps = model.attention_maps(bytes_of_text)
        assert maps.shape == (2, 2, 4, 24, 24)
        torch.testing.assert_close(maps.sum(-1), torch.ones(2, 2, 4, 24))
        assert (maps.triu(1) == 0).all()
        seen = []
        block = model.blocks[0]
        hook = block.to_out.register_forward_pre_hook(lambda layer, inputs, seen=seen: seen.append(inputs[0]))
        block.register_forward_pre_hook(lambda block, inputs, seen=seen: seen.append(block.qkv(inputs[0])[2]))
        model.hidden(bytes_of_text)
        hook.remove()
        values, mixed = seen
        torch.testing.assert_close((maps[0] @ values).transpose(1, 2).flatten(-2), mixed, rtol=1e-4, atol=1e-5)


def test_energies_are_shares_of_pairs(bytes_of_text):
    torch.manual_seed(0)
    model = Model(layers=2, width=32, heads=4)
    q, k = model.queries_keys(bytes_of_text)[1]
    shares = experiments.energies(model, bytes_of_text)
    assert shares.shape == (2, 4, 4)
    torch.testing.assert_close(shares.sum(-1), torch.ones(2, 4))
    by_hand = [(q[:, 3, :, [2 * i, 2 * i + 1]].norm(dim=-1).mean() * k[:, 3, :, [2 * i, 2 * i + 1]].norm(dim=-1).mean())
               for i in range(4)]  # fmt: skip
    torch.testing.assert_close(shares[1, 3], torch.stack(by_hand) / sum(by_hand))


def test_the_head_that_looks_back_is_found(monkeypatch):
    found = experiments.looking_back(seed=0, steps=1)
    assert len(found["energy"]) == 8
    assert sum(found["energy"]) == pytest.approx(1, abs=0.01)
    assert len(found["map"]) == len(found["map"][0]) == 24
    assert found["looks"] == pytest.approx(found["map"][-1][-6], abs=0.01)


def test_cases_are_whole_numbers_that_round_to_the_percentage():
    for size, count in ((1536, 1049), (3, 1), (7, 7), (1500, 0)):
        assert published.cases(round(100 * count / size, 2), size) == count
    assert published.cases(64.13, 1792) is None
    assert published.sizes_that_fit([33.33, 66.67], range(2, 10)) == [3, 6, 9]


def test_the_standard_error_is_that_of_a_simulation():
    generator = torch.Generator().manual_seed(0)
    right = (torch.rand(2, 4000, 500, generator=generator) < 0.69).double().mean(-1) * 100
    gaps = right[0] - right[1]
    assert gaps.std().item() == pytest.approx(published.standard_error(69, 69, 500), rel=0.05)
    assert (gaps.abs() >= 3).double().mean().item() == pytest.approx(published.as_extreme(3, 69, 500), abs=0.03)


# What the papers print, typed a second time: name and numbers, as a row of the table.
PRINTED = """
Transformer-base 27.3
RoFormer 27.5
BERT 88.9 93.5 90.5 85.8 71.2 84.6 83.4
RoFormer 89.5 90.7 88.0 87.0 86.4 80.2 79.8
1 512 256 200000 1.73 65.0
2 1536 256 12500 1.61 66.8
3 256 256 120000 1.75 64.6
4 128 512 80000 1.83 63.4
5 1536 256 10000 1.58 67.4
6 512 512 30000 1.66 66.2
BERT-512 64.13 67.77
WoBERT-512 64.07 68.10
RoFormer-512 64.13 68.29
RoFormer-1024 66.07 69.79
CNN 62.27 69.53
best_team 70.07 72.66
learned 2.809 16.59
T5_bias 2.801 16.46
RoPE 2.759 15.78
learned 2.240 9.393
T5_bias 2.223 9.234
RoPE 2.173 8.784
none 0.69
T5_bias 0.55
ALiBi 0.50
RoPE 0.33
sinusoidal 0.22
none 2.850 2.666 2.620 41.194 536.225
ALiBi 2.830 2.735 2.742 13.814 150.322
RoPE 2.774 2.607 3.323 674.506 760.104
"""


def test_the_typed_tables_are_those_that_the_papers_print():
    def row(name, numbers):
        return [str(name).replace(" ", "_"), *(numbers if isinstance(numbers, tuple) else (numbers,))]

    stages = [row(stage[0], stage[1:]) for stage in published.STAGES]
    tables = published.BLEU, published.GLUE, stages, published.CAIL, published.CAIL_OTHERS
    tables += published.OPENWEBTEXT2, published.PILE, published.RECIPROCAL_RANKS, published.CODE
    typed = [each for table in tables for each in (table if table is stages else starmap(row, table.items()))]
    assert typed == [[name, *map(float, numbers)] for name, *numbers in map(str.split, PRINTED.strip().splitlines())]
    assert published.CODE_LENGTHS == (512, 1024, 1200, 1800, 2560)
    assert (published.DOWNSTREAM, published.CAIL_SIZES) == (
        {"RoPE": 22, "learned": 24, "equal": 10},
        {"training": 5102, "validation": 1500, "test": 1536},
    )


@pytest.mark.parametrize("keys", [1, 4])
@pytest.mark.parametrize("n", [32, 33, 1024])
def test_what_is_asked_for_stands_behind_its_key_and_nowhere_else(keys, n):
    text = next(experiments.haystacks(keys, 50, n, torch.Generator().manual_seed(0)))
    assert text.shape == (50, n + 1)
    asked, answers = text[:, -2 * keys :: 2], text[:, 1 - 2 * keys :: 2]
    assert (asked.sort(1).values == 8 + torch.arange(keys)).all()
    assert (answers < 8).all()
    assert (values_behind(text[:, : -2 * keys], asked) == answers).all()
    if n == 32:  # every place can hold a key
        more = next(experiments.haystacks(keys, 3000, 34, torch.Generator().manual_seed(1)))[:, : -2 * keys]
        assert {*(more >= 8).nonzero()[:, 1].tolist()} == {*range(more.shape[1] - 1)}


def values_behind(body, asked):
    """(count, n), (count, keys) -> (count, keys): what stands behind each key, which stands nowhere else."""
    is_key = body[:, None] == asked[:, :, None]
    assert (is_key.sum(-1) == 1).all()
    return body.gather(1, is_key.int().argmax(-1) + 1)


@pytest.mark.parametrize("keys", [1, 4])
@pytest.mark.parametrize(("before", "back"), [(20, 60), (21, 61), (1, 8), (900, 120)])
def test_a_needle_stands_at_its_place_and_is_asked_for_at_its_distance(keys, before, back):
    text = experiments.needles_at(keys, 50, before, back, torch.Generator().manual_seed(0))
    assert text.shape == (50, before + back + 2)
    body, asked, answer = text[:, :-2], text[:, -2], text[:, -1]
    assert (body[:, before - 1] == asked).all()
    assert (body[:, before] == answer).all()
    everything = torch.arange(8, 8 + keys).expand(50, keys)
    assert (values_behind(body, everything) < 8).all()
    assert len({*asked.tolist()}) == keys
    if keys > 1:
        others = body.gather(1, (body >= 8).nonzero()[:, 1].view(50, keys))
        assert len({*others[:, 0].tolist()}) == keys


def test_temperature_in_both_layers_is_the_temperature():
    torch.manual_seed(0)
    model, warm = Model(layers=2, width=64, heads=2, symbols=9), 0.1 * np.log(8) + 1
    text = torch.randint(8, (3, 40))
    cos, sin = experiments.tables("by parts", 40)
    both = model(text, tables=experiments.tables("by parts, temperature", 40))
    torch.testing.assert_close(model(text, tables=(warm * cos, warm * sin)), both)
    seen = []
    for block in model.blocks:
        block.register_forward_hook(lambda block, inputs, out, seen=seen: seen.append(inputs[1][0][1, -1].item()))
    for method in experiments.ONE_LAYER:
        experiments._searched(model, text, method)
    plain = cos[1, -1].item()
    assert seen == pytest.approx([warm * plain, plain, plain, warm * plain])


def test_how_much_a_head_looks_one_back_is_what_the_attention_maps_say():
    torch.manual_seed(0)
    model, text = Model(layers=2, width=64, heads=2, symbols=9), torch.randint(9, (20, 30))
    with torch.no_grad():
        model.blocks[0].to_qkv.weight.mul_(20)  # far from uniform
    expected = model.attention_maps(text)[0, :, :, -1, -2].mean(0)
    torch.testing.assert_close(experiments._one_back(model, text, "as it is"), expected)
    assert (experiments._one_back(model, text, "linear") - expected).abs().min() > 1e-3


def test_values_are_compared_where_they_are_asked_for():
    text = next(experiments.haystacks(4, 20, 40, torch.Generator().manual_seed(0)))

    def oracle(text, **_):
        logits = torch.zeros(*text.shape, 12)
        for row, said in zip(text, logits, strict=True):
            for at, letter in enumerate(row.tolist()):
                said[at, row[row.tolist().index(letter) + 1]] = 50.0
        return logits

    assert experiments.looked_up(oracle, text, 4).all()
    assert experiments.lookup_loss(oracle, text, 4) < 1e-6
    text[0, -1] = (text[0, -1] + 1) % 8
    assert experiments.looked_up(oracle, text, 4).sum() == 79
    assert experiments.lookup_loss(oracle, text, 4) > 0.5


def test_each_encoding_is_shown_at_the_rate_that_trained_it_best():
    for encoding in ENCODINGS:
        runs = experiments.at_its_rate("encodings", encoding)
        rates = {run["settings"]["rate"] for run in runs}
        assert [run["settings"]["seed"] for run in runs] == [*experiments.SEEDS]
        assert len(rates) == 1
        ends = {rate: [] for rate in experiments.RATES}
        for run in runs_of("encodings"):
            if run["settings"]["encoding"] == encoding:
                ends[run["settings"]["rate"]].append(run["curve"][-1])
        assert min(ends, key=lambda rate: np.mean(ends[rate])) == rates.pop()
