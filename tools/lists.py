"""Write what is listed and counted from the chapters: theorems, pages for the wall, numbers, and the source map.

    python -m tools.lists

A page says where a number goes, <span data-count="exercises">47</span>; chapters/theorems.md has the table of the marks
and ends with that of the index; chapters/reference.md has the table of tools/agreement. A test sees that all of it is
up to date.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

import yaml

from _ext.statements import INDEXED, MARKS, ONE, named_in
from tools import agreement, source_map

ROOT = Path(__file__).parent.parent
CHAPTERS = ROOT / "chapters"
HEAD = re.compile(
    rf"^> \*\*({'|'.join(ONE)}) (\d+\.\d+)(?: \((.+?)\))?\.\*\* *(?:\*({'|'.join(MARKS)})\*)?", re.MULTILINE
)
MEANINGS = {
    "Proved by hand.": "The text has the full proof.",
    "Proved by hand and by cells.": "The text has the full proof, and a cell checks a step of it or special cases.",
    "Proved by cells.": "Cells cover the whole statement.",
    "Measured.": "A cell prints the numbers and compares them with the text.",
    "Cited.": "The proof is in another work, and a link leads there.",
}
INDEX, AGREED, TEACH = "theorems.md", "reference.md", "teach_it.md"
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`|^#+ .*?$", re.MULTILINE | re.DOTALL)
MATH = re.compile(r"\$\$?(.*?)\$\$?", re.DOTALL)
END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?](?=\s|$)")
TABLE = re.compile(r"(<!-- agreement -->).*(<!-- end of agreement -->)", re.DOTALL)
LEGEND = re.compile(r"(?:^\| Mark .*\n)(?:^\|.*\n)+", re.MULTILINE)
WALLS = re.compile(r"(?:^\* <a href=\"\.\./wall/.*\n)+", re.MULTILINE)
COUNT = re.compile(r'(<span data-count="([\w-]+)">).*?</span>')


class Statement(NamedTuple):
    """A theorem or an exercise, as its page states it."""

    kind: str
    number: str
    name: str
    mark: str
    sentence: str


class Page(NamedTuple):
    """What the lists need of a page."""

    file: str  # with its ending, as a link names it
    title: str
    number: str  # of a chapter, else ""
    text: str  # its Markdown, without code and headings
    cells: list[dict]  # of a notebook
    figures: int  # that are not drawn by a cell

    @property
    def statements(self) -> list[Statement]:
        """Its theorems and exercises, in their order."""
        return [Statement(*head.groups(""), sentence(self.text[head.end() :])) for head in HEAD.finditer(self.text)]


def sentence(text: str) -> str:
    """The first sentence of a statement, as a cell of a table: a displayed equation is a formula in the line."""
    quote = re.match(r".*(?:\n>.*)*", text)[0]
    words = " ".join(line.removeprefix(">").strip() for line in quote.split("\n"))
    formulas = []

    def keep(formula: re.Match) -> str:
        formulas.append(
            re.sub(r"\s*\\tag\{.*?\}", "", formula[1]).replace(r"\|", r"\Vert ").replace("|", r"\vert ").strip()
        )
        full_stop = formulas[-1].endswith(".")
        formulas[-1] = formulas[-1].removesuffix(".")
        return f"\0{len(formulas) - 1}\0" + "." * full_stop

    words = MATH.sub(keep, words)
    end = END.search(words)
    words = words[: end.end()] if end else words
    return re.sub("\0(\\d+)\0", lambda place: f"${formulas[int(place[1])]}$", words).strip()


def pages() -> list[Page]:
    """All pages, in the order of the book."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [
        (toc["root"], 0),
        *((entry["file"], part.get("numbered", 0)) for part in toc["parts"] for entry in part["chapters"]),
    ]
    found, chapter = [], 0
    for name, numbered in listed:
        path = next((ROOT / name).parent.glob(f"{Path(name).name}.*"))
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.suffix == ".ipynb" else []
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        text = "\n\n".join(texts) if cells else path.read_text(encoding="utf-8")
        chapter += bool(numbered)
        title = re.search(r"^# (.*)$", text, re.MULTILINE)[1]
        found.append(
            Page(
                path.name, title, str(chapter) if numbered else "", CODE.sub("", text), cells, text.count("```{figure}")
            )
        )
    return found


def legend(numbers: dict[str, int]) -> str:
    """The table of the marks that the book has: sign, meaning, how many."""
    rows = (
        f'| {{rb-sign}}`{mark}` {{rb-mark}}`{mark}` | {MEANINGS[mark]} | <span data-count="{word}"></span> |\n'
        for mark, word in MARKS.items()
        if numbers[word]
    )
    return "| Mark | Meaning | How many |\n|---|---|---|\n" + "".join(rows)


def theorems(book: list[Page]) -> str:
    """The table of all statements but exercises: number, first sentence, mark, and the other pages that name it."""
    named = {
        page.file: {one[2:] for one in named_in(HEAD.sub("", MATH.sub("", page.text)))}
        for page in book
        if page.file != INDEX
    }
    table = "| Number | Statement | Mark | Used in |\n|---|---|---|---|\n"
    for page in book:
        for one in (one for one in page.statements if one.kind in INDEXED):
            anchor = f"{one.kind.lower()}-{one.number.replace('.', '-')}"
            name = f"**{one.name[0].upper()}{one.name[1:]}.** " if one.name else ""
            users = [f"[{user.number or user.title}]({user.file})" for user in book
                     if user is not page and (one.kind, one.number) in named.get(user.file, ())]  # fmt: skip
            cells = (
                f"[{one.kind} {one.number}]({page.file}#{anchor})",
                f"{name}{one.sentence}",
                f"{{rb-sign}}`{one.mark}`",
            )
            table += f"| {' | '.join([*cells, '; '.join(users)])} |\n"
    return table


def counts(book: list[Page]) -> dict[str, int]:
    """All numbers, by the word that asks for them."""
    stated = [one for page in book for one in page.statements]
    exercises = [one for one in stated if one.kind == "Exercise"]
    cells = [cell for page in book for cell in page.cells if cell["cell_type"] == "code"]
    compared = [cell for cell in cells if "nbval-ignore-output" not in cell["metadata"].get("tags", ())]
    drawn = sum("figure" in cell["metadata"].get("mystnb", {}) for cell in cells)
    minutes = [re.search(r"Before you start: (\d+) minutes", page.text) for page in book if page.number]
    attacks = json.loads((ROOT / "tests" / "data" / "attack.json").read_text(encoding="utf-8"))["counts"]["total"]
    return {
        "chapters": sum(bool(page.number) for page in book),
        "figures": drawn + sum(page.figures for page in book),
        "pieces": sum('class=\\"rope-piece' in json.dumps(cell["outputs"]) for cell in cells),
        "outputs": sum(bool(cell["outputs"]) for cell in compared),
        "reading-minutes": sum(int(found[1]) for found in minutes if found),
        "exercises": len(exercises),
        "exercise-minutes": sum(minutes_of(one) for one in exercises),
        "theorems": sum(one.kind in INDEXED for one in stated),
        **{word: sum(one.mark == mark for one in stated) for mark, word in MARKS.items()},
        "attacks-tried": attacks["refused"] + attacks["survived"],
        "attacks-refused": attacks["refused"],
    }


def minutes_of(exercise: Statement) -> int:
    """What its head says; an error that shows the right form."""
    found = re.fullmatch(r"★{1,3}, (\d+) minutes", exercise.name)
    if not found:
        right = "> **Exercise 4.6 (★★, 10 minutes).** Show that ..."
        raise SystemExit(f"Error: Exercise {exercise.number} ({exercise.name}) must begin like {right!r}")
    return int(found[1])


def with_version() -> dict[Path, str]:
    """The foot of the pages and the citation, with the library's version and its day in the changelog; conf.py repeats
    the foot."""
    library = (ROOT / "rope_lib" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.*)"', library)[1]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    day = re.search(rf"## {re.escape(version)} \((.*)\)", changes)
    if not day:
        raise SystemExit(f"Error: CHANGELOG.md has no heading like '## {version} (2026-11-23)'")
    writes = (
        (r"(Version |version = \{|(?m:^version: ))[\d.]+\d", version),
        (r"(?m)(^date-released: ).*", day[1]),
        (r"(year +=\s\{|Don\\?'t Add \()\d{4}", day[1][:4]),
    )
    paths = [ROOT / name for name in ("_config.yml", "CITATION.cff", "tools/conf.py")]
    made = {path: path.read_text(encoding="utf-8") for path in paths}
    for pattern, new in writes:
        made = {path: re.sub(pattern, rf"\g<1>{new}", text) for path, text in made.items()}
    return made


def files() -> dict[Path, str]:
    """The pages that list or count, as they should be, and what names the version."""
    book = pages()
    numbers = counts(book)
    made = {source_map.PAGE: source_map.page(), **with_version()}
    for path in sorted(CHAPTERS.glob("*.md")):
        text = made.get(path, path.read_text(encoding="utf-8"))
        if path.name == INDEX:
            text = LEGEND.sub(legend(numbers), text)
            text = text.partition("\n| Number |")[0].rstrip("\n") + f"\n\n{theorems(book)}"
        if path.name == AGREED:
            text = TABLE.sub(rf"\1\n\n{agreement.table()}\n\2", text)
        if path.name == TEACH:
            chapters = (page for page in book if page.number)
            links = (f'* <a href="../wall/{Path(one.file).stem}.html">{one.title}</a>\n' for one in chapters)
            text = WALLS.sub("".join(links), text)
        made[path] = COUNT.sub(lambda place: f"{place[1]}{numbers[place[2]]:,}</span>", text)
    return made


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
