"""The foot of a page, and its form on paper."""

import html
from pathlib import Path

import yaml
from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
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
    title = cited["title"].replace(": ", ":\n" + 13 * " ")  # on two lines: 76 columns fit
    config.html_theme_options["extra_footer"] = FOOT.format(
        version=cited["version"],
        plain=html.escape(plain),
        bibtex=html.escape(BIBTEX.format(**cited | {"title": title})),
    )


def setup(app: Sphinx) -> None:
    """Connect the parts."""
    app.connect("config-inited", add_foot)
