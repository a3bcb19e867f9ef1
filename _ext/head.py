"""The head of a page: what a shared link shows, and nothing that the page does not need."""

import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

DESCRIPTION = re.compile(r'<meta (?:content="([^"]*)" )?name="description"(?: content="([^"]*)")?')
ICONS = re.compile(r'[^\n]*<script defer src="[^"]*_static/scripts/fontawesome\.js[^\n]*\n')
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


def drop_mathjax(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """A page without equations has no use for the largest file. Sphinx counts those of the pages below it, too."""
    if doctree is not None and not app.env.get_domain("math").data["has_equations"].get(pagename):
        context["script_files"] = [file for file in context["script_files"] if "mathjax" not in described(file)]


def described(file) -> str:
    """What a script is, in words: its name, or its text."""
    text = f"{getattr(file, 'filename', file)} {getattr(file, 'attributes', {}).get('body', '')}".lower()
    return text.replace("tex-svg.js", "mathjax")


def drop_icon_script(app: Sphinx, exception: Exception | None) -> None:
    """The theme loads half a megabyte of icons, of which the pages use ten: icons.css has those."""
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text(encoding="utf-8")
            if ICONS.search(text):
                path.write_text(ICONS.sub("", text), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    """Connect the parts."""
    app.add_css_file("icons.css")
    app.connect("html-page-context", describe_link, priority=900)  # when the description is there
    app.connect("html-page-context", drop_mathjax, priority=900)
    app.connect("build-finished", drop_icon_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
