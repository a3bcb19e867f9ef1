"""The table of models: its configurations against the recorded ones, its numbers against a computation by hand."""

import json
import math

import pytest

from lab.models import MODELS, SHORT, files, row, short_table, table
from rope_lib.config import frequencies_from_config
from tests.conftest import ROOT

RECORDED = json.loads((ROOT / "tests" / "data" / "transformers_configs.json").read_text())["models"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_speeds_are_those_of_the_recorded_configuration(model):
    """Which test_config.py compares with transformers."""
    name = model.source.split(",")[0].split("/")[1]
    (recorded,) = [entry for entry in RECORDED if entry["model"].split(",")[0].split("/")[1] == name]
    mine, factor = frequencies_from_config(model.config, layer_type=model.layer_type)
    theirs, their_factor = frequencies_from_config(recorded["config"], layer_type=model.layer_type)
    assert mine.tolist() == theirs.tolist()
    assert factor == their_factor
    longest = recorded["config"].get("max_position_embeddings", recorded["config"].get("n_positions"))
    assert row(model)["longest"] == longest


def test_rows_by_hand():
    found = {model.name: row(model) for model in MODELS}
    assert found["GPT-NeoX 20B"]["rotated"] == "24 of 96"
    assert found["DeepSeek-V3"]["rotated"] == "64 of 192"
    assert found["Llama 2 7B"]["slowest"] == pytest.approx(2 * math.pi * 10000 ** (126 / 128), rel=1e-12)
    assert found["Gemma 3 12B, global layers"]["slowest"] == pytest.approx(16e6 * math.pi * 1e6 ** (-2 / 256), rel=1e-9)
    assert found["Gemma 3 12B, local layers"]["scaling"] == "none"
    assert found["DeepSeek-V3"]["attention_factor"] == 1
    assert [found[name]["base"] for name in ("Llama 3 8B", "gpt-oss 20B")] == [500_000, 150_000]


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
