"""What lectures need of a page that is a single file: the font of its formulas, and the book's address."""

import base64
import re
from pathlib import Path

import yaml

from _ext.fetched import STATIC
from _ext.head import published

CONFIG = Path(__file__).parent.parent / "_config.yml"


def math_style() -> str:
    """The style of formulas, with their font inside."""
    css = (STATIC / "Temml-STIX2.css").read_text(encoding="utf-8")
    theta = '@font-face { font-family: STIX2; src: url("./theta.woff2"); unicode-range: U+1D703; }'

    def inside(match: re.Match) -> str:
        data = base64.b64encode((STATIC / match[1]).read_bytes()).decode()
        return f"url(data:font/woff2;base64,{data})"

    return re.sub(r"""url\(["']\./([\w-]+\.woff2)["']\)""", inside, css + theta)


def address() -> str:
    """Where the book is published, as _config.yml says it; "" while that is unset."""
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    return published(config["repository"]["url"], config.get("html", {}).get("baseurl", ""))
