"""The foot of a page, its links to papers, and its form on paper."""

import html
import re
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import NodeMatcher

ROOT = Path(__file__).parent.parent
PAPER = re.compile(r"\barXiv:(\d{4}\.\d{4,5})|\bdoi:(10\.\d+/[^\s,;]*[^\s,;.])", re.IGNORECASE)
FOOT = """<p>Version {version}. Text and figures:
<a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>. Code: MIT.</p>
<details class="rb-cite"><summary>How to cite</summary><p>{plain}</p><pre>{bibtex}</pre></details>"""
BIBTEX = """@book{{rotate_dont_add,
  author  = {{{{{author}}}}},
  title   = {{{title}}},
  year    = {{{year}}},
  version = {{{version}}},
}}"""


def citation() -> dict[str, str]:
    """What CITATION.cff says, with the year alone."""
    data = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return {
        "author": ", ".join(author["name"] for author in data["authors"]),
        "title": data["title"],
        "version": str(data["version"]),
        "year": str(data["date-released"])[:4],
    }


def add_foot(app: Sphinx, config) -> None:
    """Licence, version and how to cite, at the foot of every page."""
    if config.html_theme != "sphinx_book_theme":  # another has no place for it
        return
    cited = citation()
    author = cited["author"][0].upper() + cited["author"][1:]
    plain = f"{author} ({cited['year']}). {cited['title']}. Version {cited['version']}."
    config.html_theme_options["extra_footer"] = FOOT.format(
        version=cited["version"], plain=html.escape(plain), bibtex=html.escape(BIBTEX.format(**cited))
    )


class LinkPapers(SphinxPostTransform):
    """In the bibliography, arXiv:2104.09864 and a doi become links to the paper."""

    default_priority = 300

    def run(self, **kwargs) -> None:
        for entry in self.document.findall(NodeMatcher(nodes.citation)):
            for text in list(entry.findall(nodes.Text)):
                if not isinstance(text.parent, nodes.reference | nodes.label) and (parts := linked(text.astext())):
                    text.parent.replace(text, parts)


def linked(text: str) -> list[nodes.Node]:
    """The text in parts, its papers as links; nothing if it names none."""
    parts, done = [], 0
    for match in PAPER.finditer(text):
        address = f"https://arxiv.org/abs/{match[1]}" if match[1] else f"https://doi.org/{match[2]}"
        parts += [nodes.Text(text[done : match.start()]), nodes.reference("", match[0], refuri=address)]
        done = match.end()
    return [*parts, nodes.Text(text[done:])] if parts else []


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.add_css_file("print.css", media="print")
    app.add_js_file("print.js", loading_method="defer")
    app.add_post_transform(LinkPapers)
    app.connect("config-inited", add_foot)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
