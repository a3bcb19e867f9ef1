"""Ten votes for the class as slides, as a page, and in the GIFT form that Moodle reads."""

import re

from _ext.questions import questions, to_html


def slides() -> str:
    """All votes in Markdown: a slide with the question, and one with the answer."""
    return "\n---\n\n".join(part for question in questions() for part in (question.slide(), question.answer()))


def page() -> str:
    """All votes as HTML: a click on an option says what tempts to it."""
    parts = ["<h1>Ten votes on rotary position embedding</h1>\n<p>Vote first. A click on an answer opens it.</p>"]
    for question in questions():
        parts.append(f'<section id="{question.id}">\n<h2>Vote {question.number}</h2>\n{question.html()}\n</section>')
    return "\n".join(parts)


def gift() -> str:
    """All votes in Moodle's GIFT form, as HTML with formulas that its MathJax filter reads."""

    def escaped(text: str) -> str:
        r"""Backslashes first: Moodle takes \n, as in \ne, for a new line."""
        return re.sub(r"[\\~=#{}:]", lambda match: "\\" + match[0], to_html(text, inline=True))

    parts = ["// Ten votes on rotary position embedding. In Moodle: question bank, import, GIFT format."]
    for question in questions():
        lines = [f"::RoPE {question.number} {question.id}::[html]{escaped(question.text)}{{"]
        for option in question.options:
            why = f"{option.why} ({question.where})" if option.right else option.why
            lines.append(f"{'=' if option.right else '~'}{escaped(option.text)}#{escaped(why)}")
        parts.append("\n".join([*lines, "}"]))
    return "\n\n".join(parts) + "\n"
