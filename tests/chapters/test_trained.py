"""The small models: they learn, they are causal, their stored results are those of their settings."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

import figures.trained
from lab import experiments, published
from lab.experiments import EXPERIMENTS, by_position, rescued, runs_of, shipped
from lab.model import ENCODINGS, LINEAR, Model
from lab.training import batches, held_out, language_model, text
from tests.conftest import ROOT

STORED = ("model", "rescue", "order", "encodings", "places", "speeds", "linear", "copying", "heads", "finetuning")


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
        if settings["seed"] == 0:
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


def test_finished_runs_are_kept_when_one_fails(tmp_path, monkeypatch, capsys):
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

    monkeypatch.setattr(experiments, "RESULTS", tmp_path)
    monkeypatch.setitem(EXPERIMENTS, "short", (runs, 1))
    with pytest.raises(KeyboardInterrupt):
        experiments.run("short")
    experiments.run("short")
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
    dots = [list(line.get_ydata()) for line in figures.trained.draw_encodings().axes[0].lines]
    assert sorted(dots) == sorted(run["by_position"][1:] for run in runs_of("encodings"))
    curves = [list(line.get_ydata()) for line in figures.trained.draw_learning().axes[0].lines]
    assert sorted(curves) == sorted(run["curve"] for run in runs_of("encodings"))
    lowest, highest = figures.trained.draw_learning().axes[0].get_ylim()
    assert all(lowest < curve[-1] < highest for curve in curves)
    ratios = [list(line.get_ydata()) for line in figures.trained.draw_trained_speeds().axes[0].lines[:-1]]
    assert ratios == [run["speed_ratios"] for run in runs_of("speeds")]
    assert all(a < b for a, b in pairwise(edges))
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
        assert share.sum() == pytest.approx(1, abs=1e-6)
        assert share.tolist() == pytest.approx(shares[row // heads, row % heads].tolist(), abs=1e-7)
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
