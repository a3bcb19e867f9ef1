"""The bibliography: each entry has the name that the text calls it by, and links reach it."""

import re
from collections.abc import Iterator

from docutils import nodes
from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting import BaseSortingStyle
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.writers.html5 import HTML5Translator

YEAR = re.compile(r"(\d{4})\D*$")


def name_of(entry: Entry) -> str:
    """Su et al. 2021: by its authors and the year in the key that the text links to.

    The field `key` is the name of what has no authors, and tells apart what has the same ones in the same year.
    """
    people = [
        " ".join(map(str, person.rich_prelast_names + person.rich_last_names)).partition(",")[0]
        for person in entry.persons.get("author", [])
    ]
    name = " and ".join(people) or entry.fields["key"]
    if len(people) > 2:
        name = f"{people[0]} et al."
    year = YEAR.search(entry.key)
    apart = f" ({entry.fields['key']})" if people and "key" in entry.fields else ""
    return f"{name}{f' {year[1]}' if year else ''}{apart}"


class Names(BaseLabelStyle):
    """The labels of the entries: their names."""

    def format_labels(self, sorted_entries: list[Entry]) -> Iterator[str]:
        """One for each."""
        return map(name_of, sorted_entries)


class ByName(BaseSortingStyle):
    """The source documents first, then by name."""

    def sorting_key(self, entry: Entry) -> tuple[bool, str, str]:
        """What two entries are compared by."""
        name = name_of(entry)
        return not name.startswith("Document "), name.casefold(), entry.key


class Named(Style):
    """The style `named` of a bibliography."""

    default_label_style = Names
    default_sorting_style = ByName


def bibliography_anchors(app: Sphinx, env: BuildEnvironment) -> None:
    """Tell MyST which entries the bibliography has, so that links reach them and a link to no entry is a warning."""
    bibliography = env.get_domain("cite")
    for place in bibliography.bibliographies:
        slugs = env.metadata[place.docname].setdefault("myst_slugs", {})
        slugs.update({key: (0, key, key) for key in bibliography.bibdata.data.entries})


def visit_citation(writer: HTML5Translator, node: nodes.citation) -> None:
    """An entry of the bibliography is an item of its list; what docutils calls it is obsolete."""
    begin = len(writer.body)
    HTML5Translator.visit_citation(writer, node)
    writer.body[begin:] = [part.replace('role="doc-biblioentry"', 'role="listitem"') for part in writer.body[begin:]]


def setup(app: Sphinx) -> None:
    register_plugin("pybtex.style.formatting", "named", Named)
    app.add_node(nodes.citation, override=True, html=(visit_citation, HTML5Translator.depart_citation))
    app.connect("env-updated", bibliography_anchors)
