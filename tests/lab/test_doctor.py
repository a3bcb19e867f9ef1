"""The doctor says what is wrong, what is not, and what it does not know: of its own table, and of real engines."""

import re

import nbformat
import numpy as np
import pytest

from lab import opened
from lab.doctor import __main__ as program
from lab.doctor import judge, shifts, trials
from lab.doctor.engines import HEALTHY, MISTAKEN, USUAL, WORST, Engines
from lab.doctor.judge import Limits, Rounding, Verdict, diagnose, distances, evidence, judged, rises, what_was_said
from lab.doctor.report import report
from lab.doctor.table import CAUSES, FAMILIES, RIGHT, Table
from tests.conftest import ROOT

TABLE, ENGINES, TRIED = Table.stored(), Engines.stored(), judge.tried()
HIDDEN = {"inverse frequencies in bfloat16"}  # nearer to the right model than rounding is
LENGTHS = np.array([len(prompt) for prompt in TABLE.prompts])


def known_of(mistake: str) -> np.ndarray:
    """(prompts, 2, T), NaN where there are fewer tokens."""
    return np.where(TABLE.tokens >= 0, TABLE.known[TABLE.mistakes.index(mistake)], np.nan)


def answers_of(mistake: str) -> list:
    """What an engine with this mistake says, where it is known."""
    return [
        None
        if np.isnan(known[tokens >= 0]).any()
        else [
            {int(t): float(x) for t, x in zip(*row, strict=True) if t >= 0} for row in zip(tokens, known, strict=True)
        ]
        for tokens, known in zip(TABLE.tokens, known_of(mistake), strict=True)
    ]


def said_of(answers: list, table: Table = TABLE) -> str:
    return report(diagnose(answers, table))


def words(text: str) -> str:
    return " ".join(text.split())


# -- Mistakes of the table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mistake", CAUSES)
def test_each_mistake_is_found_or_said_to_be_hidden(mistake):
    seen = diagnose(answers_of(mistake), TABLE)
    said = words(report(seen))
    if mistake == RIGHT:
        assert seen.verdict is Verdict.NOTHING
        assert "Nothing wrong that these prompts would show." in said
    else:  # without rounding even what is HIDDEN shows
        assert seen.verdict is Verdict.FOUND
        assert seen.standing == [mistake]
        assert f"Found: {mistake}. {CAUSES[mistake]}" in said
    assert not re.search(r"(: |; |than to |fits? )nothing(?! wrong| is said)", said)


def test_what_the_table_does_not_know_gets_no_name():
    """Each mistake is left out of the table in turn: its engine is never said to make another one."""
    for found in (TRIED["left out"], TRIED["left out, without noise"]):
        assert {*found} == {*CAUSES} - {RIGHT}
        alarms = {name: count for name, count in found.items() if any(key.startswith("another") for key in count)}
        assert alarms == {}
        assert {name for name, count in found.items() if "NOTHING" in count} == HIDDEN


def test_nothing_is_stored_twice():
    assert TABLE.mistakes == [*CAUSES]
    assert not np.isnan(TABLE.known).any()
    assert len(TABLE.prompts) == 40
    assert {*LENGTHS} == {64, 384, 1024, 3000}
    for place, a in enumerate(CAUSES):
        apart = judge.mean_of(distances(known_of(a), TABLE.known))
        near = {b for b, x in zip([*CAUSES][place + 1 :], apart[place + 1 :], strict=True) if x < 0.01}
        assert near <= ALIKE.get(a, set()), a


ALIKE = {  # in the mean over prompts; one of 3,000 tokens tells the last two from each other
    RIGHT: HIDDEN,
    "base 500,000": {"NTK-aware by 4"},  # which is the base 416,700
    "the last 1,024 tokens": {"the middle dropped, 1,024 tokens kept"},
}


def test_each_cause_has_a_kind_and_says_may_where_it_was_not_probed():
    assert sum(len(family.names) for family in FAMILIES) == len(CAUSES)
    assert all(cause.endswith(".") and "?" not in cause for cause in CAUSES.values())


# -- Engines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEALTHY)
def test_no_healthy_engine_is_accused(name):
    """Its own recording is left out of what the limits come from."""
    seen = diagnose(ENGINES.runs[name], TABLE, trials.limits(ENGINES, TABLE, without=name))
    assert seen.verdict in ((Verdict.NOTHING,) if name in USUAL else (Verdict.NOTHING, Verdict.UNDECIDED))
    assert "Found" not in report(seen)


NAMED = {
    "rope_freq_base 10,000": "base 10,000",
    "rope_freq_scale 0.5": "positions divided by 2",
    "YaRN by 4": "YaRN by 4",
    "called qwen2": "the other layout",
    "rows not reordered": "weights in the other order",
    "rope_freq_base 50,000": "base 50,000",
    "yarn_attn_factor 1.139": "an attention factor of 1.139",
}
OTHERS = {  # neither of the table nor healthy
    "rope_freq_base 10,000, cache Q4_0": Verdict.UNKNOWN,
    "rope_freq_base 70,000": Verdict.NOTHING,  # a base of 50,000 would show, it says
    "a token in front": Verdict.UNDECIDED,
}


@pytest.mark.parametrize("name", NAMED)
def test_a_mistaken_engine_gets_its_name(name):
    """llama.cpp's server, with four-bit weights and rounded activations; see tools/record_engines.py."""
    seen = diagnose(ENGINES.runs[name], TABLE)
    assert (seen.verdict, seen.standing) == (Verdict.FOUND, [NAMED[name]])


def test_what_is_no_row_of_the_table_gets_no_name():
    assert {*ENGINES.runs} == {*HEALTHY, *MISTAKEN}
    assert {*MISTAKEN} == {*NAMED, *OTHERS}
    assert {name: diagnose(ENGINES.runs[name], TABLE).verdict for name in OTHERS} == OTHERS
    assert diagnose(ENGINES.runs["rope_freq_base 70,000"], TABLE).shows["base 50,000"] is not None


def test_half_of_the_answers():
    """A healthy engine that answers every second prompt, or the short ones, or with one token, or with five tokens."""
    answers = ENGINES.runs["as it is"]
    parts = {
        "every second": [one if p % 2 else None for p, one in enumerate(answers)],
        "short": [one if len(prompt) == 64 else None for one, prompt in zip(answers, TABLE.prompts, strict=True)],
        "one token": [one[:1] for one in answers],
        "three prompts": [*answers[:3], *[None] * 37],
        "five tokens": [[dict([*place.items()][:5]) for place in one] for one in answers],
    }
    for name, part in parts.items():
        assert diagnose(part, TABLE).verdict is Verdict.NOTHING, name


def test_noise_alone_accuses_nobody():
    """The right model with the noise that reports had, and all that was counted."""
    given, right = Limits.stored(), TABLE.mistakes.index(RIGHT)
    for noise in (0.05, 0.1):
        for subset in ("all", "64 tokens"):
            said = [trials.simulated(right, noise, subset, seed, TABLE, given)[0] for seed in range(40)]
            assert not {Verdict.FOUND, Verdict.UNKNOWN} & {*said}
    counts = TRIED["healthy"]["by noise and subset"]
    assert [*counts] == [f"{noise}, {subset}" for noise in trials.NOISE for subset in trials.SUBSETS]
    assert sum(map(sum, (count.values() for count in counts.values()))) == TRIED["healthy"]["draws"] == 5600
    assert all({*count} == {"NOTHING"} for name, count in counts.items() if name.startswith("0.01"))
    assert TRIED["healthy"]["accused"] <= 0.002 * TRIED["healthy"]["draws"]
    assert TRIED["healthy"]["engines accused"] == 0


def test_the_counts_are_those_of_this_judge():
    """As `python -m lab.doctor.trials` stores them; of the long lists a part is counted anew."""
    given = trials.limits(ENGINES, TABLE)
    assert {name: vars(getattr(given, name)) for name in ("usual", "worst")} == TRIED["limits"]
    assert given == Limits.stored()
    assert {name: list(one) for name, one in trials.recorded(ENGINES, TABLE).items()} == TRIED["recorded"]
    assert trials.left_out(TABLE, given, noise=0.0, draws=1) == TRIED["left out, without noise"]
    right, counts = TABLE.mistakes.index(RIGHT), TRIED["healthy"]["by noise and subset"]
    for noise, subset in ((0.1, "ten"), (0.05, "two")):
        said = [trials.simulated(right, noise, subset, seed, TABLE, given)[0] for seed in range(trials.DRAWS)]
        assert trials.counted(said) == counts[f"{noise}, {subset}"]


def test_the_limits_come_from_the_noisiest():
    usual, worst = (getattr(trials.limits(ENGINES, TABLE), name) for name in ("usual", "worst"))
    assert usual.engine in USUAL
    assert worst.engine in WORST
    assert worst.mean > usual.mean
    without = trials.limits(ENGINES, TABLE, without=usual.engine)
    assert without.usual.mean < usual.mean
    assert without.worst == worst


# -- What is said ------------------------------------------------------------------------------------------------------


def test_another_model_is_not_known():
    rng = np.random.default_rng(0)
    answers = [
        [{int(t): float(x) for t, x in zip(rng.permutation(49_000)[:20], -np.sort(rng.random(20)) * 5, strict=True)}]
        for _ in TABLE.prompts
    ]
    said = words(said_of(answers))
    assert "Something is wrong that this program does not know. Nearest is " in said
    assert "the numbers are no log-probabilities of SmolLM2-135M-Instruct" in said


def test_a_fault_that_is_in_no_table():
    """A part of the way from the right model to a mistake; with the second token alone wrong."""
    right, other = known_of(RIGHT), known_of("the other layout")
    cases = {0.003: Verdict.NOTHING, 0.01: Verdict.UNKNOWN, 0.1: Verdict.UNDECIDED, 0.5: Verdict.UNKNOWN}
    for share, verdict in cases.items():
        apart = distances((1 - share) * right + share * other, TABLE.known)
        assert judged(apart, LENGTHS, 0, Limits.stored())[0] is verdict, share
    second = right.copy()
    second[:, 1] += 0.04 * np.where(np.arange(right.shape[-1]) % 2, 1, -1)
    assert judged(distances(second, TABLE.known), LENGTHS, 0, Limits.stored())[0] is Verdict.UNKNOWN


def test_what_was_refused_is_not_judged():
    answers = ENGINES.runs["a context of 1,024"]
    said = said_of(answers)
    assert f"{sum(one is not None for one in answers)} of 40 prompts were answered." in said
    assert "Prompts of 1,024 tokens and more were not answered: nothing is said of such texts." in said
    assert "a window of 512" in words(said).partition("Would not have shown: ")[2]
    said = said_of([None, *ENGINES.runs["as it is"][1:]])
    assert "39 of 40 prompts were answered." in said
    assert "were not answered" not in said  # others of that length were answered
    assert said_of([None] * 40) == "No prompt was answered: nothing can be said."


def test_what_would_have_shown():
    """What is said to show is found where it is put into the answers, and what is said to be hidden is not."""
    seen = diagnose(ENGINES.runs["as it is"], TABLE)
    assert {*seen.shows} == {*CAUSES} - {RIGHT}
    assert {name for name, length in seen.shows.items() if length is None} == HIDDEN
    assert seen.shows["the other layout"] == 64
    assert seen.shows["the last 1,024 tokens"] == 3000
    assert "what is read: the last 256 tokens, from 384 tokens on" in said_of(ENGINES.runs["a context of 1,024"])


def test_the_status(monkeypatch, capsys):
    """0 only where nothing is wrong; 3 where too little was answered to decide."""
    noisy = known_of(RIGHT) + np.random.default_rng(0).normal(0, 0.25, known_of(RIGHT).shape)
    cases = {
        0: ENGINES.runs["as it is"],
        1: ENGINES.runs["rope_freq_base 10,000"],
        2: [None] * 40,
        3: [[{int(t): min(float(x), 0) for t, x in zip(*row, strict=True) if t >= 0} for row in zip(*one, strict=True)]
            for one in zip(TABLE.tokens, noisy, strict=True)],
    }  # fmt: skip
    for status, answers in cases.items():
        monkeypatch.setattr(program, "ask_all", lambda address, table, answers=answers: (answers, {}))
        assert program.main(["http://localhost:8080"]) == status
    assert "Not decided: no mistake of the table explains the answers, but rounding may." in words(
        capsys.readouterr().out
    )


def test_the_page_shows_what_the_doctor_says():
    page = nbformat.read(ROOT / "chapters" / "in_practice.ipynb", as_version=4)
    [shown] = [cell.source for cell in page.cells if cell.id == "doctor"]
    assert f"```text\n{said_of(ENGINES.runs['rope_freq_base 10,000'])}\n```" in shown


# -- How it is computed ------------------------------------------------------------------------------------------------


def test_a_distance_by_hand():
    known = np.log([[[[0.5, 0.25], [0.5, 1.0]]]])
    table = Table([[1, 2]], [RIGHT], np.array([[[7, 8], [9, -1]]]), known, {})

    def apart(*answer: dict) -> list:
        return distances(what_was_said([[*answer]], table), known)[0, 0].tolist()

    half, quarter, eighth = np.log((0.5, 0.25, 0.125)).tolist()
    assert apart({7: half, 8: eighth}, {9: quarter}) == pytest.approx([0.25 * np.log(2) / 0.75, np.log(2)])
    assert apart({7: half, 8: half})[0] == pytest.approx(
        0.5 * np.log(2)
    )  # the engine finds token 8 likelier: it weighs more
    first, second = apart({8: half, 7: quarter}, {9: quarter})
    assert first == pytest.approx(np.log(2))
    assert np.isnan(second)  # another token went before the second place: it is not counted
    assert apart({7: half})[0] == 0  # 8 was not named, and is less likely than the last one that was
    assert np.isnan(what_was_said([None], table)).all()


def test_what_grows():
    """With the length, or from the first token to the second; not where all is finer than rounding, nor once."""
    lengths = np.repeat([64, 384, 1024], 10)
    rng = np.random.default_rng(0)
    flat = 0.05 + 0.02 * rng.random((1, 30, 2))
    farther, later = 0.02 * np.log2(lengths / 64)[:, None], np.array([0.0, 0.02])
    cases = {
        (False, False): (flat, flat - farther, flat - later, flat / 5 + farther / 20),  # the last is below FINEST
        (True, False): (flat + farther,),
        (False, True): (flat + later,),
    }
    for grows, apart in cases.items():
        assert all((*rises(one, lengths)[:, 0],) == grows for one in apart)
    once = flat.copy()
    once[0, -1] = 9
    assert not rises(once, lengths).any()


def test_evidence_by_hand():
    apart = np.array([[[0.1, 0.1]], [[0.2, 0.05]], [[9.0, np.nan]]])
    assert evidence(apart, 0).tolist() == pytest.approx([0, 1 - 0.5, 3])  # in units of 0.1, and at most 3 for a place
    assert evidence(apart / 300, 0)[2] == pytest.approx(8.9 / 300 / judge.FINEST)  # no finer unit than that


def test_the_limit_of_a_mean():
    assert Rounding("", 0.05, 0.04).at_most(16) == pytest.approx(0.05 + 3.1 * 0.04 / 4)
    apart = np.full((2, 4, 2), 0.05)
    apart[1, 3] = 0.2  # one length is too far, and the mean is not
    lengths = np.array([64, 64, 64, 384])
    assert judge.within(apart, lengths, Rounding("", 0.05, 0.04)).tolist() == [True, False]


def test_the_right_model_wins_a_tie():
    """Two rows that differ less than chance: the right one stands, although the other one is nearer."""
    rng = np.random.default_rng(0)
    known = rng.normal(-2, 1, (3, 40, 2, 5))
    known[1] = known[0] + rng.normal(0, 0.002, known[0].shape)
    said = known[1] + rng.normal(0, 0.03, known[0].shape)
    verdict, stands, _ = judged(distances(said, known), LENGTHS, 0, Limits.stored())
    assert (verdict, stands.tolist()) == (Verdict.NOTHING, [True, True, False])
    assert judged(distances(known[2], known), LENGTHS, 0, Limits.stored())[0] is Verdict.FOUND
    few = distances(known[2], known)[:, :1]
    assert judged(few, LENGTHS[:1], 0, Limits.stored())[0] is Verdict.UNDECIDED  # one prompt is no evidence


# -- What is dropped when a cache is full ------------------------------------------------------------------------------


PROMPT = opened.texts()["book"][: 512 - shifts.BEFORE].tolist()


@pytest.fixture(scope="module")
def apart():
    """How far what was written is from each shift; computed once for each cache, as it takes seconds."""
    return {keep: shifts.distances_of_shifts(PROMPT, ENGINES.shifts[keep], 512) for keep in (0, 1)}


@pytest.mark.slow
@pytest.mark.weights
def test_a_real_shift(apart):
    """Its cache of 512 was full, and half of it was dropped, the first token with it, or not."""
    for keep, found in ((0, "the first token with it"), (1, "the first token kept")):
        said = shifts.shift_report(apart[keep], 512)
        assert f"Found behind 512 tokens: half was dropped, and {found}." in said
        assert ("--keep 1" in said) == (keep == 0)
    assert shifts.distances_of_shifts(PROMPT, ENGINES.shifts[0][:31], 512) == {}
    assert shifts.shift_report({}, 512) == "It stopped writing: it does not shift at 512 tokens."


@pytest.mark.weights
def test_a_lost_first_token_is_a_mistake(monkeypatch, capsys, apart):
    """The rotation is right, and the status says all the same that something is wrong."""
    monkeypatch.setattr(program, "ask_all", lambda address, table: (ENGINES.runs["as it is"], {}))
    for keep, status in ((0, 1), (1, 0)):
        written = ENGINES.shifts[keep]
        monkeypatch.setattr(program, "over_the_border", lambda address, context, written=written: (PROMPT, written))

        def computed(*given, keep=keep, written=written):
            assert given == (PROMPT, written, 512)
            return apart[keep]

        monkeypatch.setattr(program, "distances_of_shifts", computed)
        assert program.main(["http://localhost:8080", "--context", "512"]) == status
    assert "Nothing wrong that these prompts would show." in capsys.readouterr().out
