"""The table of models: its configurations against the recorded ones, its numbers against a computation by hand."""

import json
import math

import pytest

from lab.models import MODELS, SHORT, TRAINED_BY, Model, files, row, short_table, table
from tests.conftest import ROOT

RECORDED = json.loads((ROOT / "tests" / "data" / "transformers_configs.json").read_text(encoding="utf-8"))["models"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_configurations_are_those_that_were_recorded(model):
    """Which test_config.py compares with transformers."""
    (recorded,) = [entry for entry in RECORDED if entry["model"].split(",")[0] == model.source.split(",")[0]]
    assert recorded["config"] == model.config
    longest = recorded["config"].get("max_position_embeddings", recorded["config"].get("n_positions"))
    promised = {"Qwen2.5 7B": 131_072}  # its card: YaRN by 4
    assert row(model)["longest"] == promised.get(model.name, longest)


def test_the_slowest_pair_is_that_of_the_longest_text():
    """LongRoPE has other speeds for texts within the trained length: 152,992 tokens per turn."""
    [phi] = [model for model in MODELS if model.name == "Phi-3 mini 128k"]
    found = row(phi)
    pair = 10_000.0 ** (94 / 96) * phi.config["rope_scaling"]["long_factor"][-1]
    assert found["slowest"] == pytest.approx(2 * math.pi * pair)
    assert found["longest"] == 131_072


def test_a_model_whose_configuration_is_missing_is_named():
    with pytest.raises(KeyError, match=r"Tomorrow 7B is of some/tomorrow, which .* does not have"):
        assert Model("Tomorrow 7B", "half-split", None, "some/tomorrow, config.json").config


def test_rows_by_hand():
    found = {model.name: row(model) for model in MODELS}
    assert found["GPT-NeoX 20B"]["rotated"] == "24 of 96"
    assert found["DeepSeek-V3"]["rotated"] == "64 of 192"
    assert found["Llama 2 7B"]["slowest"] == pytest.approx(2 * math.pi * 10000 ** (126 / 128), rel=1e-12)
    assert found["Gemma 3 12B, global layers"]["slowest"] == pytest.approx(16e6 * math.pi * 1e6 ** (-2 / 256), rel=1e-9)
    assert found["Gemma 3 12B, local layers"]["scaling"] == "none"
    assert found["DeepSeek-V3"]["attention_factor"] == 1
    bases = {"Llama 3 8B": 500_000, "gpt-oss 20B": 150_000, "GLM-4 9B": 5_000_000, "Gemma 4 E2B, local layers": 10_000}
    assert {name: found[name]["base"] for name in bases} == bases
    assert found["Gemma 4 E2B, global layers"]["rotated"] == "128 of 512"
    assert found["Gemma 4 E2B, global layers"]["slowest"] == pytest.approx(2 * math.pi * 1e6 ** (126 / 512), rel=1e-12)
    assert found["Phi-3 mini 128k"]["scaling"] == "longrope"
    assert found["OLMo 3 7B, local layers"]["base"] == 500_000
    assert found["OLMo 3 7B, local layers"]["slowest"] == found["Llama 3 8B"]["slowest"]
    assert found["OLMo 3 7B, global layers"]["attention_factor"] == pytest.approx(0.1 * math.log(8) + 1, rel=1e-12)
    assert found["MiniMax-M2"]["slowest"] == pytest.approx(2 * math.pi * 5e6 ** (62 / 64), rel=1e-12)
    assert found["Ministral 3 8B"]["scaling"] == "yarn"
    assert found["Qwen3-VL 8B"]["scaling"] == "none (M-RoPE)"


def test_a_length_in_training_comes_with_its_source():
    assert {model.name for model in MODELS if model.trained} == set(TRAINED_BY)


def test_tables_have_a_row_for_each_model_and_no_two_names():
    assert [cells[0] for cells in table().rows] == [cells[0] for cells in files().rows] == [m.name for m in MODELS]
    assert len({model.name for model in MODELS}) == len(MODELS)
    assert [cells[0] for cells in short_table().rows] == list(SHORT)


@pytest.mark.parametrize("made", [table(), short_table(), files()])
def test_a_table_shows_the_same_on_a_page_and_as_text(made):
    assert {len(cells) for cells in made.rows} == {len(made.heads)}
    page, text = made._repr_html_(), repr(made)
    assert page.count("<tr>") == len(text.splitlines()) == 1 + len(made.rows)
    for cells in made.rows:
        assert all(f">{cell}</t" in page and cell in text for cell in cells)
