"""Search that finds sections: the places of the book with their texts, as a script that a page from disk may load.

Sphinx's own search finds pages. Its page and its dialog stay; _static/places.js and search.js answer in its stead.
"""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from _ext import folds
from _ext.bibliography import name_of
from _ext.formulas import TAG, mathml
from _ext.statements import full_title, pages_in_order

TYPED = {"msub": "{}_{}", "msup": "{}^{}", "msubsup": "{}_{}^{}", "mfrac": "{}/{}", "mtd": "{} "}
RELATIONS = set("=<>≈≤≥≠→↦∈")


class Place:
    """What a hit leads to: a section, a statement, a term of the glossary or a function of the reference."""

    def __init__(self, title: str, anchor: str, names: dict[str, str] | None = None):
        self.title, self.anchor, self.parts = title, anchor, []
        self.names = names or {title: anchor}  # each name that is looked for, and where it stands

    def plain(self) -> tuple[str, str, dict[str, str], str]:
        """Title, anchor, names and text, as the page keeps them."""
        return self.title, self.anchor, self.names, " ".join("".join(self.parts).split())


# -- Reading a page ----------------------------------------------------------------------------------------------------


def remember_places(app: Sphinx, doctree: nodes.document) -> None:
    """The places of a page, in its order."""
    first = Place("", "")
    found = [first]
    read(doctree, first, found)
    app.env.metadata[app.env.docname]["nosearch"] = True  # Sphinx's own index then holds the name of the page alone
    app.env.metadata[app.env.docname]["places"] = [place.plain() for place in found if place.title]
    app.env.metadata[app.env.docname]["figures"] = {
        caption.parent["ids"][0]: bold.astext()
        for caption in doctree.findall(nodes.caption)
        if caption.parent["ids"] and (bold := caption.next_node(nodes.strong))
    }


def read(node: nodes.Element, place: Place, found: list[Place]) -> None:
    """Add the text below a node to its place; a node that is a place of its own begins a new one.

    Of what a cell printed, only captions are text to be found.
    """
    for child in node.children:
        if isinstance(child, nodes.Text):
            place.parts.append(child.astext())
        elif isinstance(child, nodes.math | nodes.math_block):
            formula = plain_math(child.astext())
            place.parts.append(f" {formula} " if isinstance(child, nodes.math_block) else formula)
        elif child.get("nb_element") == "cell_code_source" and is_no_reading(child):
            continue
        elif child.get("nb_element") == "cell_code_output":
            for part in child.findall(lambda node: isinstance(node, nodes.caption | nodes.raw)):
                read(nodes.paragraph("", "", part.deepcopy()), place, found)
                place.parts.append(" ")
        elif isinstance(child, nodes.raw) and "<table" in child.astext():  # that a cell computed
            place.parts.append(re.sub(r"<style.*?</style>|<[^>]+>", " ", child.astext(), flags=re.DOTALL))
        elif not is_no_text(child):
            inner = place_at(child, place.anchor, found)
            if inner:
                found.append(inner)
            read(child, inner or place, found)
            if not isinstance(child, nodes.Inline):
                (inner or place).parts.append(" ")


def is_no_reading(code: nodes.Element) -> bool:
    """What only prepares or draws, which would stand around hits and say nothing."""
    block = code.next_node(nodes.literal_block)
    return block is not None and (folds.is_setup(block.astext()) or folds.only_draws(block.astext()))


def is_no_text(node: nodes.Element) -> bool:
    """What is no text to be found: markup, and titles, which are names."""
    skipped = nodes.raw | nodes.comment | nodes.term | addnodes.desc_signature | addnodes.index
    title = isinstance(node, nodes.title) and isinstance(node.parent, nodes.section)
    return title or isinstance(node, skipped) or bool({"rb-head", "rb-mark"} & set(node["classes"]))


def place_at(node: nodes.Element, section: str, found: list[Place]) -> Place | None:
    """The place that begins with a node, if one does; a question has the anchor of its section."""
    if isinstance(node, nodes.section):
        title = words(node.next_node(nodes.title))
        return Place(title, node["ids"][0] if len(found) > 1 else "")  # the page itself opens at its top
    if "rb-statement" in node["classes"]:
        head = words(node.next_node(nodes.strong)).removesuffix(".")
        label, _, name = head.partition(" (")
        return Place(head, node["ids"][-1], {part: node["ids"][-1] for part in (label, name.rstrip(")")) if part})
    question = node.next_node(nodes.strong) if isinstance(node, nodes.paragraph) else None
    if question and question is next((part for part in node if part.astext()), None) and question.astext()[-1] == "?":
        return Place(question.astext(), section)
    if isinstance(node, nodes.definition_list_item) and "glossary" in node.parent["classes"]:
        terms = {term.astext(): term["ids"][0] for term in node.findall(nodes.term)}
        return Place(" · ".join(terms), next(iter(terms.values())), {term.strip("()"): i for term, i in terms.items()})
    if isinstance(node, addnodes.desc) and node[0]["ids"]:
        anchor = node[0]["ids"][0]
        name = anchor.split(".", 2)[-1]  # without package and module
        return Place(f"{name}()", anchor, {name: anchor})
    return None


def words(node: nodes.Element) -> str:
    """A title, with its formulas in letters."""
    return "".join(plain_math(p.astext()) if isinstance(p, nodes.math) else p.astext() for p in node)


def plain_math(tex: str) -> str:
    """Mathematics as it can be read in a line of text: \\theta_i becomes θ_i."""
    number = "".join(f" ({tag})" for tag in TAG.findall(tex))
    try:
        return (
            " ".join(plain(ElementTree.fromstring(f"<p>{mathml(TAG.sub('', tex)).replace('<wbr>', '')}</p>")).split())
            + number
        )
    except ValueError:  # of which the build warns when the page is written
        return tex


def plain(node: ElementTree.Element) -> str:
    """The letters of a formula, with the signs that one would type between them."""
    parts = [plain(child) for child in node]
    if node.tag in TYPED:
        return TYPED[node.tag].format(*parts)
    return f" {node.text} " if node.text in RELATIONS else (node.text or "") + "".join(parts)


# -- Writing the index -------------------------------------------------------------------------------------------------


def places(env: BuildEnvironment) -> dict[str, list]:
    """All pages in the order of reading, and their places, each with the number of its page."""
    listed = pages_in_order(env)
    listed += sorted(set(env.found_docs) - set(listed))
    found = [[number, *place] for number, page in enumerate(listed) for place in env.metadata[page].get("places", ())]
    for number, page in enumerate(listed):
        for anchor, counted in env.toc_fignumbers.get(page, {}).get("figure", {}).items():
            name = f"Figure {'.'.join(map(str, counted))}"
            title = env.metadata[page]["figures"].get(anchor, "")
            found.append([number, f"{name}. {title}", anchor, {name: anchor}, ""])
    found.append([0, "How to cite", "how-to-cite", {"How to cite": "how-to-cite"}, "cite this book, citation, BibTeX"])
    bibliography = env.get_domain("cite")
    for page in {place.docname for place in bibliography.bibliographies}:
        for key, entry in bibliography.bibdata.data.entries.items():
            text = " ".join([*map(str, entry.persons.get("author", ())), *entry.fields.values()])
            found.append(
                [listed.index(page), name_of(entry), key, {name_of(entry): key}, re.sub(r"[{}]|\\\w+", "", text)]
            )
    return {"pages": [[page, full_title(env, page)] for page in listed], "places": found}


def write_places(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The index as a script: a page from disk may load it, but may fetch nothing.

    It is there before the pages: that of the search says which version it loads.
    """
    if app.builder.format == "html":
        text = json.dumps(places(env), ensure_ascii=False, separators=(",", ":"))
        path = Path(app.outdir) / "_static" / "places.js"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"Search.book={text};\n", encoding="utf-8")
    return []


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", remember_places, priority=900)  # when statements have their anchors
    app.connect("env-get-updated", write_places, priority=950)  # when chapters and figures have their numbers
