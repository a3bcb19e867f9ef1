"""The head of a page: its description, what a shared link shows, its scripts, and buttons that lead to this book."""

import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

NOT_NEEDED = {"doctools.js", "sphinx_highlight.js"}  # by a page that shows no search
DESCRIPTION = re.compile(r'<meta (?:content="([^"]*)" )?name="description"(?: content="([^"]*)")?')
PICTURE = "Two words with an added code: their score wanders. The same two words turned: their score stays."


def no_buttons_without_address(app: Sphinx, config: Config) -> None:
    """While the repository's address is unset, a launch button would lead to somebody else's repository."""
    if not config.html_theme_options.get("repository_url"):
        config.html_theme_options.pop("launch_buttons", None)


def address(config: Config) -> str:
    """Where the book is published, by the settings of Sphinx."""
    return published(config.html_theme_options.get("repository_url") or "", config.html_baseurl)


def published(repository: str, baseurl: str) -> str:
    """`html: baseurl` in _config.yml, else the pages of its GitHub repository, else ""."""
    if baseurl:
        return baseurl.rstrip("/") + "/"
    match = re.fullmatch(r"https://github\.com/([\w-]+)/([\w.-]+?)(?:\.git)?/?", repository)
    return f"https://{match[1].lower()}.github.io/{match[2]}/" if match else ""


def summary(doctree: nodes.document) -> str:
    """The text of a chapter's first quote, else the first paragraph."""
    quote = next((q for q in doctree.findall(nodes.block_quote) if "rb-summary" in q["classes"]), None)
    text = quote[0].astext() if quote else next((p.astext() for p in doctree.findall(nodes.paragraph)), "")
    return " ".join(text.removeprefix("In this chapter.").split())


def describe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """A description; title and sentence of a link that is shared; with an address also the picture."""
    if doctree is None:
        return
    tags = context.get("metatags", "")
    if found := DESCRIPTION.search(tags):
        text = html.unescape(found[1] or found[2])
    else:
        text = summary(doctree)
        tags += f'\n<meta name="description" content="{html.escape(text)}" />'
    title = re.sub(r"<.*?>", "", html.unescape(context["title"]))
    properties = {"type": "website", "site_name": app.config.html_title, "title": title, "description": text}
    if where := address(app.config):
        properties |= {"url": f"{where}{pagename}.html", "image": f"{where}_static/shared.png"}
        properties |= {"image:width": "1200", "image:height": "630", "image:alt": PICTURE}
        tags += '\n<meta name="twitter:card" content="summary_large_image" />'
    lines = (f'<meta property="og:{name}" content="{html.escape(value)}" />' for name, value in properties.items())
    context["metatags"] = "\n".join([tags, *lines])


def add_scripts(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Those that a page asks for, and what answers on the page of the search."""
    asked = app.env.metadata.get(pagename, {}).get("scripts", ())
    for name in ("places.js", "search.js") if pagename == "search" else asked:
        app.add_js_file(name, loading_method="defer")


def let_scripts_wait(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Scripts wait for the text. The theme's settings in the page are for what the book does not have."""
    if pagename != "search":
        names = [script for script in context["script_files"] if script.filename]
        context["script_files"] = [
            type(one)(one.filename, priority=one.priority, **one.attributes | {"defer": "defer"})
            for one in names
            if Path(one.filename).name not in NOT_NEEDED
        ]


def name_the_root(app: Sphinx, exception: Exception | None) -> None:
    """People pass on the folder's address: its page leads to the first one, and says what that one says."""
    first = Path(app.outdir, f"{app.config.root_doc}.html")
    if exception or app.builder.name != "html" or not first.exists():
        return
    page, leads = first.read_text(encoding="utf-8"), html.escape(f"{app.config.root_doc}.html")
    told = re.findall(r"<title>.*?</title>|<meta [^>]*(?:description|og:|twitter:)[^>]*>", page)
    where = f'<link rel="canonical" href="{address(app.config)}{leads}" />' if address(app.config) else ""
    lines = [
        '<!DOCTYPE html>', f'<html lang="{app.config.language}">', '<meta charset="utf-8" />', *told, where,
        f'<meta http-equiv="Refresh" content="0; url={leads}" />',
        f'<p><a href="{leads}">{html.escape(app.config.html_title)}</a></p>', "</html>",
    ]  # fmt: skip
    Path(app.outdir, "index.html").write_text("\n".join(filter(None, lines)) + "\n", encoding="utf-8")


def leave_no_templates(app: Sphinx, exception: Exception | None) -> None:
    """The themes copy two files for their own templates among the pages."""
    for file in Path(app.outdir, "_static").glob("*webpack-macros.html"):
        file.unlink()


def setup(app: Sphinx) -> None:
    app.connect("config-inited", no_buttons_without_address)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", add_scripts)
    app.connect("html-page-context", let_scripts_wait, priority=900)
    app.connect("build-finished", name_the_root)
    app.connect("build-finished", leave_no_templates)
