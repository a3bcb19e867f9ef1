"""The doctor names what is wrong: from its own table, and from a real engine's answers."""

import json

import nbformat
import numpy as np
import pytest

from lab import opened
from lab.doctor import __main__ as program
from lab.doctor import judge, shifts
from lab.doctor.judge import between, diagnose, distances, report
from lab.doctor.table import CAUSES, RIGHT, Table
from tests.conftest import ROOT

TABLE = Table.stored()
RECORDED = json.loads((ROOT / "tests" / "data" / "engines.json").read_text(encoding="utf-8"))
ENGINES = RECORDED["runs"]
EXPECTED = {
    "as it is": RIGHT,
    "rope_freq_base 10,000": "base 10,000",
    "rope_freq_scale 0.5": "positions divided by 2",
    "YaRN by 4": "YaRN by 4",
    "called qwen2": "the other layout",
    "rows not reordered": "weights in the other order",
    "a context of 1,024": RIGHT,
}


def known_of(mistake: str) -> np.ndarray:
    return TABLE.known[TABLE.mistakes.index(mistake)]


def said_of(answers: list, table: Table = TABLE) -> str:
    return report(diagnose(answers, table))


def answers_of(mistake: str) -> list:
    """What an engine with this mistake says."""
    return [
        [{int(t): float(x) for t, x in zip(*row, strict=True) if t >= 0} for row in zip(tokens, known, strict=True)]
        for tokens, known in zip(TABLE.tokens, known_of(mistake), strict=True)
    ]


def recorded(name: str) -> list:
    return [one and [{int(t): x for t, x in place.items()} for place in one] for one in ENGINES[name]]


def found_in(said: str) -> str:
    [line] = [line for line in said.splitlines() if line.startswith("Found: ")]
    return line.removeprefix("Found: ").removesuffix(".")


@pytest.mark.parametrize("mistake", CAUSES)
def test_each_mistake_is_found_or_said_to_be_hidden(mistake):
    said = said_of(answers_of(mistake))
    found, said = found_in(said), " ".join(said.split())
    assert found == judge.named(mistake) or mistake in said.partition("cannot be told from: ")[2], said
    assert all(cause in said for name, cause in CAUSES.items() if judge.named(name) == found)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_engine(name):
    """llama.cpp's server, with four-bit weights and rounded activations; see tools/record_engines.py."""
    said = said_of(recorded(name))
    assert found_in(said) == judge.named(EXPECTED[name]), said


def test_a_real_shift():
    """Its cache of 512 was full, and half of it was dropped, the first token with it, or not."""
    prompt = opened.texts()["book"][: 512 - shifts.BEFORE].tolist()
    for keep, found in (("0", "the first token with it"), ("1", "the first token kept")):
        apart = shifts.distances_of_shifts(prompt, RECORDED["shifts"][keep], 512)
        said = shifts.shift_report(apart, 512)
        assert f"Found behind 512 tokens: half was dropped, and {found}." in said
        assert ("--keep 1" in said) == (keep == "0")
    assert shifts.distances_of_shifts(prompt, RECORDED["shifts"]["0"][:31], 512) == {}
    assert shifts.shift_report({}, 512) == "It stopped writing: it does not shift at 512 tokens."


def test_a_lost_first_token_is_a_mistake(tmp_path, monkeypatch, capsys):
    """The rotation is right, and the status says all the same that something is wrong."""
    prompt = opened.texts()["book"][: 512 - shifts.BEFORE].tolist()
    monkeypatch.setattr(program, "ask_all", lambda address, table: (recorded("as it is"), {}))
    for keep, status in (("0", 1), ("1", 0)):
        written = RECORDED["shifts"][keep]
        monkeypatch.setattr(program, "over_the_border", lambda address, context, written=written: (prompt, written))
        assert program.main(["http://localhost:8080", "--context", "512"]) == status
    assert "Found: nothing wrong." in capsys.readouterr().out


def test_the_page_shows_what_the_doctor_says():
    page = nbformat.read(ROOT / "chapters" / "in_practice.ipynb", as_version=4)
    [shown] = [cell.source for cell in page.cells if cell.id == "doctor"]
    assert f"```text\n{said_of(recorded('rope_freq_base 10,000'))}\n```" in shown


def test_what_was_refused_is_not_judged():
    said = said_of(recorded("a context of 1,024"))
    refused = sum(one is None for one in recorded("a context of 1,024"))
    assert f"{40 - refused} of 40 prompts were answered." in said
    assert "Prompts of 1,024 tokens and more were refused: nothing is said of such texts." in said
    said = said_of([None, *recorded("as it is")[1:]])
    assert "39 of 40 prompts were answered." in said
    assert "were refused" not in said  # others of that length were answered
    assert said_of([None] * 40) == "No prompt was answered: nothing can be said."


def test_another_model_is_none_of_them():
    rng = np.random.default_rng(0)
    answers = [
        [{int(t): float(x) for t, x in zip(rng.permutation(49_000)[:20], -np.sort(rng.random(20)) * 5, strict=True)}]
        for _ in TABLE.prompts
    ]
    assert "None of the mistakes that this program knows explains it" in said_of(answers)


def test_what_fits_two_mistakes_is_not_decided():
    """Both say the same of what the engine named."""
    assert "It cannot be told from: the other layout" in said_of([[{7: -0.5}, {9: -0.5}]], table_of(-0.5, -0.5, -3))
    assert "Not decided between " in said_of([[{7: -0.55}, {9: -0.55}]], table_of(-0.5, -0.6, -3))
    assert diagnose([[{7: -0.55}, {9: -0.55}]], table_of(-0.5, -0.6, -3)).found is None


def table_of(*numbers: float) -> Table:
    """One prompt, and one token at both places, with the same log-probability."""
    known = np.array(numbers)[:, None, None, None] + np.zeros((1, 1, 2, 1))
    return Table([[1]], [*CAUSES][: len(numbers)], np.array([[[7], [9]]]), known, {})


def test_a_distance_by_hand():
    known = np.log([[[[0.5, 0.25], [0.5, 1.0]]]])
    table = Table([[1, 2]], [RIGHT], np.array([[[7, 8], [9, -1]]]), known, {})
    [[apart]] = distances([[{7: np.log(0.5), 8: np.log(0.125)}, {9: np.log(0.25)}]], table)
    assert apart == pytest.approx((0.25 * np.log(2) + 0.5 * np.log(2)) / (0.5 + 0.25 + 0.5))
    [[apart]] = distances([[{8: np.log(0.5), 7: np.log(0.25)}, {9: np.log(0.25)}]], table)
    assert apart == pytest.approx(np.log(2))  # another token went before the second place: it is not counted
    [[apart]] = distances([[{7: np.log(0.5)}]], table)
    assert apart == 0  # 8 was not named, and is less likely than the last one that was
    assert np.isnan(distances([None], table)).all()


def test_nothing_is_stored_twice():
    assert len(TABLE.known) == len(CAUSES)
    assert len(TABLE.prompts) == 40
    assert {len(prompt) for prompt in TABLE.prompts} == {64, 384, 1024, 3000}
    apart = {(a, b): between(a, b, TABLE, [*range(40)]) for a in CAUSES for b in CAUSES if a < b}
    same = {pair for pair, distance in apart.items() if distance < judge.SAME}
    assert same <= {("inverse frequencies in bfloat16", RIGHT)}
