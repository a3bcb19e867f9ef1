"""The built pages to take along: python -m tools.take_away pdf, one file to read and print, or zip, to open from disk.

The PDF is printed by the browser of the tests, so its equations, figures and colours are those of the pages.
"""

import html
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import yaml
from pypdf import PdfReader

from tools.chromium import chromium

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "_build" / "html"
OUT = ROOT / "build"
NAME = "rotate-dont-add"
TITLE = "Rotate, Don’t Add"

# In the browser: one page as it is printed, its names made those of one large page, without what only a screen can do.
TAKE = """([name, names, solutions]) => {
  dispatchEvent(new Event("beforeprint"));
  const article = document.querySelector("article.bd-article");
  const controls = ".headerlink, .copybtn, .rb-live, .rb-source, .rb-predict, .rb-cover";
  const unwanted = `${controls}, script, p:has(> a[href*='pieces/'])`;
  article.querySelectorAll(unwanted).forEach(node => node.remove());
  if (!solutions) for (const fold of article.querySelectorAll("details"))
    if (fold.querySelector("summary").textContent.startsWith("Solution")) fold.remove();
  article.querySelectorAll("[src]").forEach(node => node.setAttribute("src", node.src));
  for (const link of article.querySelectorAll("a[href]")) {
    const [page, anchor] = link.href.split("#");
    if (!page.startsWith("file:")) continue;
    const other = page.split("/").at(-1).replace(/\\.html$/, "");
    const ours = page.split("/").at(-2) === "chapters" && names.includes(other);  // a wall's page has a chapter's name
    if (ours) link.setAttribute("href", `#${other}${anchor ? `--${decodeURIComponent(anchor)}` : ""}`);
    else link.replaceWith(...link.childNodes);
  }
  for (const node of article.querySelectorAll("[id]")) if (!node.closest("svg")) node.id = `${name}--${node.id}`;
  const text = node => node ? node.textContent.trim() : "";
  return {
    title: text(article.querySelector("h1")),
    sections: [...article.querySelectorAll("h2")].map(node => [node.closest("section").id, text(node)]),
    content: article.innerHTML,
  };
}"""
STYLE = """
@page { size: A4; margin: 18mm 17mm 20mm; @bottom-center { content: counter(page); font: 9pt sans-serif; } }
@page :first { @bottom-center { content: none; } }
html, body { background: #fff; }
.bd-main .bd-content .bd-article h1:first-of-type { display: block; margin: 0 0 1rem; }
.bd-main .bd-content { margin: 0; display: block; }
.bd-main .bd-content .bd-article-container { max-width: none; padding: 0; }
.bd-main .bd-content .bd-article { padding: 0; }
.rb-page { break-before: page; }
#top { height: 225mm; display: flex; flex-direction: column; text-align: center; }
#top h1 { margin: 38mm 0 4mm; font-size: 40pt; font-weight: 800; letter-spacing: -0.02em; }
#top svg { width: 100%; margin: 18mm 0 auto; }
#top p { margin: 0.4rem 0; }
#contents { break-before: page; }
#contents h2 { margin: 1.2rem 0 0.3rem; font-size: 1.1rem; }
#contents ol { margin: 0; padding: 0; list-style: none; }
#contents ol ol { padding-left: 1.5rem; font-size: 0.88rem; }
#contents a { display: flex; gap: 0.5rem; color: inherit; text-decoration: none; }
#contents a::after { order: 1; }
#contents a i { flex: 1; border-bottom: 1px dotted #999; margin-bottom: 0.35em; }
#contents li { break-inside: avoid; line-height: 1.5; }
#contents > ol > li > a { font-weight: 600; }
"""


# -- PDF ---------------------------------------------------------------------------------------------------------------


def parts() -> list[tuple[str, list[str]]]:
    """The parts of the book and the names of their pages, in order; the first page becomes the title page."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [(part["caption"], [Path(entry["file"]).name for entry in part["chapters"]]) for part in toc["parts"]]


def whole_book(browser, listed: list[tuple[str, list[str]]], *, solutions: bool) -> str:
    """All pages as one page of HTML, with a title page and contents, with or without the solutions of exercises."""
    names = [name for _, part in listed for name in part]
    page = browser.new_page(color_scheme="light", reduced_motion="reduce")
    taken = {}
    for name in names:
        page.goto((PAGES / "chapters" / f"{name}.html").as_uri(), wait_until="load")
        taken[name] = page.evaluate(TAKE, [name, [*names, "index"], solutions])
    styles = page.evaluate(
        "[...document.querySelectorAll('link[rel=stylesheet]')].map(link => [link.href, link.media])"
    )
    page.close()
    links = "".join(f'<link rel="stylesheet" href="{href}" media="{media or "all"}">' for href, media in styles)
    inside = "".join(
        f'<article class="bd-article rb-page" id="{name}" style="page: {page_name(name)}">{one["content"]}</article>'
        for name, one in taken.items()
    )
    heads = "".join(
        f"@page {page_name(name)} {{ @top-right {{ content: {json.dumps(one['title'], ensure_ascii=False)}; "
        "font: 9pt sans-serif; color: #555; } }\n"
        for name, one in taken.items()
    )
    return (
        f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{TITLE}</title>{links}'
        f"<style>{STYLE}{heads}</style></head>"
        f'<body><div class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        f"{title_page()}{contents(listed, taken)}{inside}</div></div></div></body></html>"
    )


def page_name(name: str) -> str:
    """What CSS calls the pages of a chapter, at whose heads its title stands; a name may not begin with a digit."""
    return f"of-{name.replace('_', '-')}"


def has_chinese_letters() -> bool | None:
    """Whether this machine has a font with them; None where that cannot be asked."""
    asked = shutil.which("fc-list")
    return bool(subprocess.run([asked, ":lang=zh"], stdout=subprocess.PIPE, check=False).stdout) if asked else None


def title_page() -> str:
    """Title, the idea as a picture, version and licences."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    picture = (ROOT / "figures" / "out" / "first" / "hero.svg").read_text(encoding="utf-8")
    picture = re.sub(r"@media ?\(prefers-color-scheme: ?dark\) ?\{(?:[^{}]|\{[^{}]*\})*\}", "", picture)
    subtitle = cited["title"].partition(": ")[2]
    return (
        f'<section id="top"><h1>{TITLE}</h1><p>{html.escape(subtitle[:1].upper() + subtitle[1:])}</p>'
        f"{picture[picture.index('<svg') :]}<p>{html.escape(cited['authors'][0]['name'])}</p>"
        f"<p>Version {cited['version']}, {cited['date-released'].year}. "
        "Text and figures: CC BY 4.0. Code: MIT.</p></section>"
    )


def contents(listed: list[tuple[str, list[str]]], taken: dict[str, dict]) -> str:
    """Each page and its sections, as links, with places for the numbers of their pages."""

    def line(anchor: str, text: str) -> str:
        return f'<a href="#{anchor}"><span>{html.escape(text)}</span><i></i><b data-page="{anchor}"></b></a>'

    text = '<nav id="contents"><h1>Contents</h1>'
    for caption, names in listed:
        text += f"<h2>{html.escape(caption)}</h2><ol>"
        for name in names:
            below = "".join(f"<li>{line(*section)}</li>" for section in taken[name]["sections"])
            text += f"<li>{line(name, taken[name]['title'])}<ol>{below}</ol></li>"
        text += "</ol>"
    return text + "</nav>"


def places_in(pdf: bytes) -> dict[str, int]:
    """On which page each anchor of a PDF stands, counted from 1."""
    reader = PdfReader(io.BytesIO(pdf))
    found = reader.named_destinations
    return {name.removeprefix("/"): reader.get_destination_page_number(place) + 1 for name, place in found.items()}


def print_book(browser, *, solutions: bool = True) -> bytes:
    """The PDF, printed twice: the second time its contents name the pages of the first."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "book.html"
        file.write_text(whole_book(browser, parts(), solutions=solutions), encoding="utf-8")
        page = browser.new_page(color_scheme="light")
        page.set_default_timeout(300_000)
        page.goto(file.as_uri(), wait_until="load")
        page.emulate_media(media="print")
        page.evaluate("document.fonts.ready")  # else the first print breaks its lines by another font
        pdf = b""
        for _ in range(2):
            pdf = page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
            page.locator("[data-page]").evaluate_all(
                "(all, at) => all.forEach(one => { one.textContent = at[one.dataset.page] })", places_in(pdf)
            )
        page.close()
    return pdf


def write_pdf(solutions: str = "yes") -> Path:
    """The whole book, where there is a Chromium; with "no" without solutions, for a student."""
    path = OUT / (f"{NAME}.pdf" if solutions != "no" else f"{NAME}-without-solutions.pdf")
    if has_chinese_letters() is False:
        print("No font with Chinese letters was found, so they are boxes. On Debian: apt install fonts-noto-cjk")
    with chromium() as browser:
        path.write_bytes(print_book(browser, solutions=solutions != "no"))
    return path


# -- From disk ---------------------------------------------------------------------------------------------------------


def write_zip() -> Path:
    """The pages in a folder of their own; the same pages give the same bytes."""
    path = OUT / f"{NAME}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PAGES.rglob("*")):
            served = {"live", "engine"} & {*file.relative_to(PAGES).parts}  # what a page from disk may not load
            if file.is_file() and not file.name.startswith(".") and not served:
                place = zipfile.ZipInfo(f"{NAME}/{file.relative_to(PAGES).as_posix()}")
                place.external_attr = 0o644 << 16
                archive.writestr(place, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return path


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    made = {"pdf": write_pdf, "zip": write_zip}[sys.argv[1]](*sys.argv[2:])
    print(f"{made.relative_to(ROOT)} ({made.stat().st_size / 1e6:.1f} MB)")
