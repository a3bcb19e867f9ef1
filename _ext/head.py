"""The head of a page: what a shared link shows, and its icons."""

import html
import re

from docutils import nodes
from sphinx.application import Sphinx

DESCRIPTION = re.compile(r'<meta (?:content="([^"]*)" )?name="description"(?: content="([^"]*)")?')
PICTURE = "Two words with an added code: their score wanders. The same two words turned: their score stays."


def address(config) -> str:
    """Where the book is published: `html: baseurl` in _config.yml, else its GitHub repository's pages, else ""."""
    if config.html_baseurl:
        return config.html_baseurl.rstrip("/") + "/"
    repository = config.html_theme_options.get("repository_url") or ""
    match = re.fullmatch(r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?", repository)
    return f"https://{match[1].lower()}.github.io/{match[2]}/" if match else ""


def describe_link(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Title and sentence of a link that is shared; with an address also the picture, which has to have a whole one."""
    found = DESCRIPTION.search(context.get("metatags", ""))
    if doctree is None or not found:
        return
    tags = {
        "og:type": "website",
        "og:site_name": app.config.html_title,
        "og:title": re.sub(r"<.*?>", "", html.unescape(context["title"])),
        "og:description": html.unescape(found[1] or found[2]),
    }
    if where := address(app.config):
        tags |= {
            "og:url": f"{where}{pagename}.html",
            "og:image": f"{where}_static/shared.png",
            "og:image:width": "1200",
            "og:image:height": "630",
            "og:image:alt": PICTURE,
            "twitter:card": "summary_large_image",
        }
    lines = (f'<meta property="{name}" content="{html.escape(text)}" />' for name, text in tags.items())
    context["metatags"] += "\n" + "\n".join(lines)


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.add_css_file("icons.css")
    app.connect("html-page-context", describe_link, priority=900)  # when the description is there
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
