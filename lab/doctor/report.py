"""What the program says: the distances, the verdict, and how far it can be trusted."""

from math import isnan
from textwrap import fill

from lab.doctor import trials
from lab.doctor.judge import Diagnosis, Verdict, tried
from lab.doctor.table import RIGHT, Table, causes

WIDTH = 70  # in letters: the page shows as many
NEVER = (
    "These prompts cannot show a shift of all positions, which changes nothing, nor what happens beyond the longest of "
    "them. They may not show a mistake in one head or in the slowest pair alone."
)
OTHERS = (
    "It may be a mistake that is not in the table, or two at once. Or the numbers are no log-probabilities of {}, but "
    "of another model, or were taken after a temperature."
)


def named(mistake: str) -> str:
    """As a report says it."""
    return "nothing wrong" if mistake == RIGHT else mistake


def report(seen: Diagnosis | None) -> str:
    """What was found, how sure it is, and what it cannot be told from."""
    if seen is None:
        return "No prompt was answered: nothing can be said."
    answered = len(seen.lengths)
    say = {
        Verdict.NOTHING: nothing,
        Verdict.FOUND: found,
        Verdict.UNKNOWN: unknown,
        Verdict.UNDECIDED: undecided,
    }[seen.verdict]
    lines = [f"{answered} of {answered + len(seen.refused)} prompts were answered."]
    if seen.table.rounded is not None:
        lines.append(f"Compared with {seen.table.model}.")
    lines += ["", *rows(seen)]
    lines += ["", *(part if part.startswith("  ") else fill(part, WIDTH, break_on_hyphens=False) for part in say(seen))]
    if seen.refused and min(seen.refused) > max(seen.lengths):
        lines.append(
            f"Prompts of {min(seen.refused):,} tokens and more were not answered: nothing is said of such texts."
        )
    return "\n".join([*lines, fill(how_often_wrong(seen.table), WIDTH, break_on_hyphens=False)])


def rows(seen: Diagnosis) -> list[str]:
    """By length of prompts: distances from the right model, from what stands, and from the nearest that does not."""
    lengths = sorted({*seen.lengths})
    rest = [row for row in seen.level if row not in seen.standing]
    shown = dict.fromkeys([*seen.standing[:2], *rest[:1], RIGHT])
    lines = ["".join(f"{length:6,}" for length in lengths) + "   all   tokens; nats from"]
    for row in sorted(shown, key=[*seen.level].index):
        numbers = (*(seen.of_length(row, length) for length in lengths), seen.level[row])
        lines.append("".join("     -" if isnan(x) else f"{x:6.2f}" for x in numbers) + f"   {named(row)}")
    return [*lines, f"Rounding leaves {seen.usual:.2f} at most; to four bits, of weights or cache, {seen.worst:.2f}."]


def nothing(seen: Diagnosis) -> list[str]:
    """The right model stands."""
    shown, hidden = [], [name for name, length in seen.shows.items() if length is None]
    families = seen.table.families
    for kind in dict.fromkeys(family.kind for family in families if RIGHT not in family.names):
        names = [name for family in families if family.kind == kind for name in family.names if seen.shows.get(name)]
        if names:
            least = min(names, key=seen.level.get)
            shown.append(f"  {kind}: {least}, from {seen.shows[least]:,} tokens on")
    said = ["Nothing wrong that these prompts would show."]
    if shown:
        said += ["The least of each kind that would have shown in these answers:", *shown]
    if hidden:
        said.append(f"Would not have shown: {'; '.join(hidden)}.")
    return [*said, NEVER]


def found(seen: Diagnosis) -> list[str]:
    """One row, or several that are not told apart."""
    first, *others = seen.standing
    rival = next(row for row in seen.level if row not in seen.standing)
    known = causes(seen.table.families)
    why = dict.fromkeys(known[row] for row in seen.standing[:3])
    said = [f"Found: {first}.", *why]
    if others:
        said = [f"Found one of these, which the answers do not tell apart: {'; '.join(seen.standing)}.", *why]
    for row in dict.fromkeys((RIGHT, rival)):
        nearer, farther = seen.votes(first, row)
        other = "the right model" if row == RIGHT else row
        said.append(f"{nearer} prompts are nearer to {first} than to {other}, and {farther} are farther.")
    return said


def unknown(seen: Diagnosis) -> list[str]:
    """No row explains the answers, and rounding does not either."""
    nearest = next(iter(seen.level))
    said = f"Nearest is {named(nearest)}, at {seen.level[nearest]:.2f} nats, where rounding leaves {seen.usual:.2f}"
    said += (
        ", and what it leaves grows, with the length or from the first token to the second."
        if seen.grows[nearest]
        else "."
    )
    return ["Something is wrong that this program does not know.", said, OTHERS.format(seen.table.model)]


def undecided(seen: Diagnosis) -> list[str]:
    """Too few prompts, or too much noise."""
    if seen.standing:
        fits = f"Not decided: the answers fit {'; '.join(map(named, seen.standing))}."
        if RIGHT in seen.standing:
            return [fits, "They are too few to tell them apart."]
        left = "what it leaves grows" if seen.grows[RIGHT] else "it leaves more than rounding does"
        return [fits, f"The right model is not much farther, but {left}. More prompts may decide."]
    return [
        "Not decided: no mistake of the table explains the answers, but rounding may.",
        f"They are {seen.level[RIGHT]:.2f} nats from nothing wrong: more than usual rounding leaves, no more than "
        "rounding to four bits does. Ask again with the file that the table was made from, and a cache of eight bits "
        "or more.",
        OTHERS.format(seen.table.model).replace("It may be", "If they stay so, it may be", 1),
    ]


def how_often_wrong(table: Table) -> str:
    """As lab/doctor/trials.py has counted for SmolLM2; for another model it counts now, and less."""
    if table.rounded is not None:
        return how_often_wrong_of_own(table)
    found = tried()["healthy"]
    simulated = f"of {found['draws']:,} healthy engines with simulated noise of up to {found['noise']} nats"
    recorded = f"of {found['engines']} that were recorded"
    accused = f"{found['accused']} were accused and {found['undecided']:,} not decided"
    return f"How often it errs: {simulated}, {accused}; {recorded}, {found['engines accused']} were accused."


def how_often_wrong_of_own(table: Table) -> str:
    """Of simulated engines; none was recorded."""
    found = trials.of_own(table)
    return (
        f"How often it errs with this model, in engines that were simulated with noise of {found['noise']} nats: of "
        f"{found['healthy']} healthy ones {found['accused']} were accused; of {found['mistaken']} with a mistake it "
        f"was named, alone or among others, in {found['named']}, missed in {found['missed']}, and called another in "
        f"{found['misnamed']}. No real engine was recorded with this model: the limits are those of SmolLM2's "
        "engines, or wider, if this model leaves more in bfloat16 than SmolLM2 does."
    )
