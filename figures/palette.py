"""The colours of the book. A quantity has the same one in words, formulas, figures, pieces and slides."""

from typing import NamedTuple


class Hue(NamedTuple):
    """A line is a broad thing and needs a contrast of 3:1; text needs 4.5:1. On a dark page both have the third."""

    line: str
    text: str
    on_dark: str


HUES = {  # of Okabe and Ito
    "blue": Hue("#0072B2", "#005f99", "#5db8f0"),
    "vermillion": Hue("#D55E00", "#b34700", "#ff8f4d"),
    "green": Hue("#009E73", "#00734f", "#34c99a"),
    "purple": Hue("#CC79A7", "#a0447a", "#e39cc4"),
    "grey": Hue("#595959", "#595959", "#b0b0b0"),  # text that steps back
}
MEANINGS = {"q": "blue", "k": "vermillion", "s": "green", "p": "purple"}  # query, key, score, what is added to a word

# What style sheets call them: by meaning, and by name for figures, which are drawn in the colours of a light page.
LIGHT = "".join(f"--rb-{letter}:{HUES[name].text};" for letter, name in MEANINGS.items())
DARK = "".join(f"--rb-{letter}:{HUES[name].on_dark};" for letter, name in MEANINGS.items())
FIGURES_ON_DARK = "".join(f"--rb-{name}:{hue.on_dark};" for name, hue in HUES.items())
SHEET = f'html{{{LIGHT}}}html[data-theme="dark"]{{{DARK}{FIGURES_ON_DARK}}}\n'
