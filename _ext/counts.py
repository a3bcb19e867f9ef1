"""Numbers that the build counts: in a page, <span data-count="exercises">more than 30</span> becomes 36.

Elsewhere, on GitHub say, such a page is read as it stands; so a number in the words must not be larger than the count.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from statements import INDEXED, MARKS, number_of, statements_of

logger = logging.getLogger(__name__)
ATTACKS = Path("tests") / "data" / "attack.json"
WANTED = re.compile(r'<span data-count="([\w-]+)">')


def wanted(document: nodes.document) -> list[tuple[nodes.raw, str]]:
    """The beginnings of the places where a number is wanted, and which one."""
    found = [(raw, WANTED.fullmatch(raw.astext())) for raw in document.findall(nodes.raw)]
    return [(raw, match[1]) for raw, match in found if match]


def count_page(app: Sphinx, doctree: nodes.document) -> None:
    """Remember what a page has of figures, pieces to play with and minutes to read."""
    app.env.metadata[app.env.docname]["wants_counts"] = bool(wanted(doctree))
    app.env.metadata[app.env.docname]["counted"] = {
        "figures": len(list(doctree.findall(nodes.figure))),
        "pieces": sum('class="rope-piece' in raw.astext() for raw in doctree.findall(nodes.raw)),
        "minutes": minutes_in(r"Time: (\d+) minutes", doctree.astext()),
        "outputs": sum(map(is_checked_output, doctree.findall(nodes.container))),
    }


def is_checked_output(node: nodes.container) -> bool:
    """Whether a node is what a cell printed or drew, and the tests compare it with a fresh run."""
    if node.get("nb_element") != "cell_code_output":
        return False
    return "nbval-ignore-output" not in node.parent.get("cell_metadata", {}).get("tags", ())


def minutes_in(pattern: str, text: str) -> int:
    """What the pattern finds, 0 if nothing."""
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def counts(env: BuildEnvironment) -> dict[str, int]:
    """All numbers, by the word that asks for them."""
    pages = {page: metadata["counted"] for page, metadata in env.metadata.items() if "counted" in metadata}
    chapters = [page for page in pages if number_of(env, page)]
    stated = [one for page in pages for one in statements_of(env, page)]
    exercises = [one for one in stated if one.kind == "Exercise"]
    numbers = {
        "chapters": len(chapters),
        "figures": sum(page["figures"] for page in pages.values()),
        "pieces": sum(page["pieces"] for page in pages.values()),
        "outputs": sum(page["outputs"] for page in pages.values()),
        "reading-minutes": sum(pages[page]["minutes"] for page in chapters),
        "exercises": len(exercises),
        "exercise-minutes": sum(minutes_in(r"(\d+) minutes", one.name) for one in exercises),
        "theorems": sum(one.kind in INDEXED for one in stated),
        **{word: sum(one.mark == mark for one in stated) for mark, word in MARKS.items()},
    }
    path = Path(env.srcdir) / ATTACKS
    if path.exists():
        total = json.loads(path.read_text(encoding="utf-8"))["counts"]["total"]
        numbers |= {"attacks-tried": total["refused"] + total["survived"], "attacks-refused": total["refused"]}
    return numbers


def pages_to_fill(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages that show numbers, where one of these changed."""
    before, env.book_counts = getattr(env, "book_counts", None), counts(env)
    changed = before != env.book_counts
    return [page for page in env.metadata if changed and env.metadata[page].get("wants_counts")]


class FillCounts(SphinxPostTransform):
    """Put the numbers where they are wanted."""

    default_priority = 100

    def run(self, **kwargs) -> None:
        for begin, word in wanted(self.document):
            numbers = counts(self.env)
            place = begin.parent.index(begin)
            _, words, _ = begin.parent[place : place + 3]
            least = re.search(r"\d[\d,]*", words.astext())
            if word not in numbers:
                known = ", ".join(numbers)
                warn(f"{word!r} is not counted; these are: {known} (attacks-*: from {ATTACKS})", begin)
            elif least and int(least[0].replace(",", "")) > numbers[word]:
                warn(f"{words.astext()!r} is too much: there are {numbers[word]:,} {word}", begin)
            begin.parent[place : place + 3] = [nodes.Text(f"{numbers.get(word, 0):,}")]


def warn(message: str, place: nodes.Node) -> None:
    """Say what is wrong with a number, and where."""
    logger.warning(f"data-count: {message}", location=place, type="rope_book", subtype="counts")


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.add_post_transform(FillCounts)
    app.connect("doctree-read", count_page)
    app.connect("env-get-updated", pages_to_fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
