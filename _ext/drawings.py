"""Figures: drawn in the colours of the theme, with a form for a phone, and counted by chapter."""

import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

FIGURES = Path(__file__).parent.parent / "figures" / "out"


def drawings_of(figure: nodes.figure) -> list[Path]:
    """The drawings of the figure `fig-name`: name.svg and, for a phone, name.narrow.svg; none for a picture."""
    name = next((i.removeprefix("fig-").replace("-", "_") for i in figure["ids"] if i.startswith("fig-")), None)
    paths = (FIGURES / f"{name}.svg", FIGURES / f"{name}.narrow.svg")
    return [path for path in paths if path.exists()] if any(figure.findall(nodes.image)) else []


class InlineFigures(SphinxPostTransform):
    """In HTML, replace the picture of figure `fig-name` by figures/out/name.svg, drawn in the colours of the theme.

    The form for a phone, name.narrow.svg, stands beside it; the style sheet shows one of the two.
    """

    default_priority = 10
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for figure in self.document.findall(nodes.figure):
            image = next(iter(figure.findall(nodes.image)), None)
            forms = [
                inline_svg(path.read_text(encoding="utf-8"), path.stem.replace(".", "-"), image.get("alt", ""))
                for path in drawings_of(figure)
            ]
            if forms:
                forms[1:] = [form.replace('class="rb-figure', 'class="rb-narrow rb-figure', 1) for form in forms[1:]]
                image.replace_self(nodes.raw("", f'<div class="rb-drawing">{"".join(forms)}</div>', format="html"))


def inline_svg(text: str, name: str, alt: str) -> str:
    """The <svg> element alone: ids made unique, its styles left to the page's, alt text as its label."""
    svg = text[text.index("<svg") :]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'(?<= d=")[MLz\d.\s-]+(?=")', lambda line: in_steps(line[0]), svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    return re.sub(r"<svg ", f'<svg class="rb-figure" role="img" aria-label="{html.escape(alt)}" ', svg, count=1)


def in_steps(line: str) -> str:
    """A line by its steps, in tenths of a point, a third as long: "M 8.62 -7.1 L 9.61 -6.6" is "m8.6-7.1l1 .5"."""
    made, last, at, begin = "", "", (0, 0), (0, 0)
    for kind, *place in re.findall(r"([MLz])(?:\s*(-?[\d.]+)\s+(-?[\d.]+))?", line):
        if kind == "z":
            made, at = made + "z", begin
        else:
            to = tuple(round(10 * float(number)) for number in place)
            x, y = (re.sub(r"^(-?)0\.", r"\1.", f"{(b - a) / 10:g}") for a, b in zip(at, to, strict=True))
            command = kind.lower() if kind != last else " " * (not x.startswith("-"))
            made, at = f"{made}{command}{x}{'' if y.startswith('-') else ' '}{y}", to
            begin = to if kind == "M" else begin
        last = kind
    return made


def number_figures_of_chapters(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Figures are counted by chapter, "Fig. 4.3"; those of a page without a number have none.

    Each build counts them anew, before it writes the first page.
    """
    for page in [page for page in env.toc_fignumbers if not env.titles[page].get("secnumber")]:
        del env.toc_fignumbers[page]
    return []


def depend_on_drawings(app: Sphinx, doctree: nodes.document) -> None:
    """A page is written again when one of its figures was drawn again."""
    for figure in doctree.findall(nodes.figure):
        for path in drawings_of(figure):
            app.env.note_dependency(str(path))


def setup(app: Sphinx) -> None:
    app.add_post_transform(InlineFigures)
    app.connect("doctree-read", depend_on_drawings)
    app.connect("env-get-updated", number_figures_of_chapters, priority=900)  # when Sphinx has counted
