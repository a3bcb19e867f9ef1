"""Line ends: no line of a page ends between a number and its %, nor between "Theorem", "Fig.", "pair" and their number.

Only what is shown has no-break spaces, not the chapters: anchors, the index of the search and what is compared are
made of the chapters.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

NAMES = (
    r"chapters?|theorems?|corollar(?:y|ies)|fig\.|figures?|sections?|exercises?|equations?|tables?|"
    r"pairs?|layers?|formulas?"
)
SAID = r'<p class="r[hp]-said".*?</p>'  # by a piece, whose script writes it anew
AS_IT_IS = rf"<(?P<tag>pre|code|script|style|svg|math)\b.*?</(?P=tag)>|{SAID}|<!--.*?-->|<[^>]*>"
BREAKS = re.compile(
    rf"(?P<kept>{AS_IT_IS})"
    rf"|(?<![\w-])(?P<name>{NAMES})\s(?=(?:<(?!math|code|/?p\b)[^>]*>)*\(?\d)"
    r"|(?<=[\d>]) (?=%)",
    re.DOTALL | re.IGNORECASE,
)


def unbroken(page: str) -> str:
    """HTML whose texts have no-break spaces there; code, formulas and drawings stay as they are."""
    return BREAKS.sub(lambda found: found["kept"] or f"{found['name'] or ''}\u00a0", page)


def keep_numbers(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The text of a page."""
    context["body"] = unbroken(context.get("body", ""))


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", keep_numbers)
