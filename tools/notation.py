"""The letters that the mathematics of a text uses."""

import re

GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|varphi|psi|omega|"
    "Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega|ell"
)
WORDS = r"\\(?:text|mathrm|operatorname|mathit|mathbb|tag|begin|end)\*?\{[^{}]*\}"
LETTER = re.compile(rf"\\({GREEK})(?![a-zA-Z])|\\[a-zA-Z]+|([a-zA-Z])")


def formulas(markdown: str) -> list[str]:
    """What stands between dollar signs, outside code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)
    return [a or b for a, b in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, flags=re.DOTALL)]


def letters(formula: str) -> set[str]:
    """Greek and Latin letters of a formula, without words, operators and commands: a, theta, B."""
    found = LETTER.findall(re.sub(WORDS, " ", formula))
    return {greek or latin for greek, latin in found if greek or latin}
