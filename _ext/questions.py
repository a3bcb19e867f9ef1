"""The votes for the class, from one file. The pages for the wall show them; lectures/questions.py has other forms."""

import html
from dataclasses import dataclass
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

FILE = Path(__file__).parent.parent / "lectures" / "questions.yaml"


@dataclass
class Option:
    """One answer, what tempts to it (or why it is right), and the expression that decides."""

    text: str
    why: str
    holds: str
    right: bool = False


@dataclass
class Question:
    """One vote: four options, and the cell of the book that settles it."""

    number: int
    id: str
    chapter: str
    place: str
    cell: str
    text: str
    setup: str
    options: list[Option]

    @property
    def letter(self) -> str:
        """The right one of A to D."""
        return "ABCD"[[option.right for option in self.options].index(True)]

    @property
    def where(self) -> str:
        """Chapter, section and cell, in words."""
        chapter = f"Chapter {int(self.chapter[:2])}" if self.chapter[0].isdigit() else self.chapter[:-6].capitalize()
        place = self.place if self.place.startswith(("Exercise", '"')) else f'"{self.place}"'
        return f"{chapter}, {place}, cell `{self.cell}`"

    def lettered(self) -> list[tuple[str, Option]]:
        """The options with their letters."""
        return list(zip("ABCD", self.options, strict=True))

    def html(self) -> str:
        """The question, and its options: a click on one says what tempts to it."""
        parts = [f"<p>{to_html(self.text, inline=True)}</p>"]
        for letter, option in self.lettered():
            verdict = '<b class="right">Right.</b>' if option.right else '<b class="wrong">No.</b>'
            where = f' <span class="where">{to_html(self.where, inline=True)}</span>' if option.right else ""
            parts.append(
                f"<details><summary><b>{letter}</b> {to_html(option.text, inline=True)}</summary>"
                f"<p>{verdict} {to_html(option.why, inline=True)}{where}</p></details>"
            )
        return "\n".join(parts)

    def slide(self) -> str:
        """The question in Markdown."""
        lines = "\n\n".join(f"**{letter}.** {option.text}" for letter, option in self.lettered())
        return f"## Vote {self.number}\n\n{self.text}\n\n{lines}\n"

    def answer(self) -> str:
        """The answer in Markdown: why it is right, what tempts to the others, what settles it."""
        lines = "\n".join(f"* **{letter}{' is right.' if o.right else '.'}** {o.why}" for letter, o in self.lettered())
        return f"## Vote {self.number}: {self.letter}\n\n{lines}\n\n{self.where}\n"


def questions() -> list[Question]:
    """All of them, in the order of the file."""
    loaded = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return [
        Question(number=number, **{**fields, "options": [Option(**option) for option in fields["options"]]})
        for number, fields in enumerate(loaded, start=1)
    ]


def to_html(text: str, *, inline: bool = False) -> str:
    r"""Markdown with tables and formulas as HTML; Moodle and formulas.with_formulas read \(..\) and \[..\]."""

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin, allow_space=False)
    for name, form in (("math_inline", r"\({}\)"), ("math_block", "<p>\\[{}\\]</p>\n")):

        def formula(self, tokens: list, i: int, options: dict, env: dict, form: str = form) -> str:
            return form.format(html.escape(tokens[i].content.strip(), quote=False))

        markdown.add_render_rule(name, formula)
    return markdown.renderInline(text) if inline else markdown.render(text)
