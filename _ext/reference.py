"""The reference, by sphinx.ext.autodoc with torch mocked; here is how the docstrings' Markdown is read."""

import inspect
import re

from sphinx.application import Sphinx


def read_markdown(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """A bar is a bar, as in |q|, and no substitution; words in backticks are code, or links (`default_role`)."""
    lines[:] = [line if line.lstrip().startswith(">>>") else re.sub(r"\|", r"\\|", line) for line in lines]


def own_signature(app: Sphinx, what: str, name: str, obj: object, *rest: object) -> tuple[str, str] | None:
    """A class of ours upon one of torch's, which is mocked, says itself what it takes."""
    if what == "class" and inspect.isfunction(vars(obj).get("__init__")):
        _, *others = inspect.signature(obj.__init__).parameters.values()
        bare = [one.replace(annotation=inspect.Parameter.empty) for one in others]
        return str(inspect.Signature(bare)), ""
    return None


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("autodoc-process-docstring", read_markdown)
    app.connect("autodoc-process-signature", own_signature)
