"""What a class gets, in build/handout: a sheet of two sides, ten votes as page, slides and for Moodle.

    python -m lectures.handout

The sheet becomes a PDF where there is a Chromium and playwright; elsewhere print the page.
"""

import base64
import re
from pathlib import Path

from _ext.formulas import with_formulas
from lectures import questions
from lectures.pages import address, math_style
from tools.chromium import chromium

FOLDER = Path(__file__).parent
OUT = FOLDER.parent / "build" / "handout"
SHEET = """
@page { size: A4; margin: 13mm 15mm; }
html { color: #000; background: #fff; }
body { font: 9.5pt/1.38 "DejaVu Sans", Verdana, sans-serif; max-width: 180mm; margin: 0 auto; }
h1 { font-size: 17pt; margin: 0 0 2mm; }
h2 { font-size: 12.5pt; margin: 5mm 0 1.5mm; border-bottom: .3mm solid #0072b2; }
hr + h2 { margin-top: 0; }
p { margin: 1.3mm 0; }
img { display: block; width: 112mm; margin: 1mm auto 0; }
p:has(> img) + p { text-align: center; }
math { font-size: 1.08em; }
math.tml-display { width: auto; margin: 1mm 0 1.4mm; }
p:has(> math[display=block], > math[displaystyle]) { text-align: center; }
table { border-collapse: collapse; width: 100%; font-size: 9pt; }
th, td { text-align: left; vertical-align: top; padding: .9mm 2mm; border-bottom: .2mm solid #999; }
th:first-child, th:last-child { min-width: 5mm; }
pre { font: 8.4pt/1.5 "DejaVu Sans Mono", monospace; background: #f2f2f2; padding: 2mm 2.5mm; margin: 1.5mm 0; }
hr { break-after: page; visibility: hidden; margin: 0; }
"""
VOTES = """
:root { color-scheme: light dark; --right: #006b4e; --wrong: #a63c00; --faint: #59636e; }
@media (prefers-color-scheme: dark) { :root { --right: #35c79b; --wrong: #ff9a5c; --faint: #9aa4ae; } }
body { font: 1.25rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin: 3.5rem 0 .3rem; }
details { border: 1px solid var(--faint); border-radius: .4rem; margin: .6rem 0; }
summary { cursor: pointer; padding: .6rem .8rem; }
details p { margin: 0; padding: 0 .8rem .7rem; }
.right { color: var(--right); }
.wrong { color: var(--wrong); }
.where { color: var(--faint); font-size: .9rem; overflow-wrap: anywhere; }
"""


def document(title: str, body: str, style: str) -> str:
    """A page that is a single file."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{math_style()}{style}</style>\n</head>\n'
        f"<body>\n{with_formulas(body)}</body>\n</html>\n"
    )


def handout() -> str:
    """The sheet as a page, with its picture inside."""
    where = f" It is at <{address()}>." if address() else ""
    body = questions.to_html((FOLDER / "handout.md").read_text(encoding="utf-8").rstrip() + where)

    def inside(match: re.Match) -> str:
        data = base64.b64encode((FOLDER / match[1]).read_bytes()).decode()
        return f'src="data:image/svg+xml;base64,{data}"'

    return document("Rotary position embedding on two sides", re.sub(r'src="([^"]+\.svg)"', inside, body), SHEET)


def print_sheets(folder: Path) -> None:
    """Beside each Markdown file a page that is a single file, and a PDF where there is a Chromium."""
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
        page = document(title, questions.to_html(text), SHEET)
        path.with_suffix(".html").write_text(page, encoding="utf-8")
        try:
            path.with_suffix(".pdf").write_bytes(pdf(page))
        except (ImportError, FileNotFoundError, SystemExit) as error:
            print(f"No {path.stem}.pdf: {error}. Print {path.stem}.html instead.")


def pdf(page: str) -> bytes:
    """The page as Chromium prints it."""
    with chromium() as browser:
        tab = browser.new_page()
        tab.set_content(page)
        return tab.pdf(prefer_css_page_size=True, print_background=True)


def main() -> None:
    """Write all of them."""
    OUT.mkdir(parents=True, exist_ok=True)
    title = "Ten votes on rotary position embedding"
    texts = {
        "handout.html": handout(),
        "votes.html": document(title, questions.page(), VOTES),
        "votes.md": questions.slides(),
        "votes.gift.txt": questions.gift(),
    }
    for name, text in texts.items():
        (OUT / name).write_text(text, encoding="utf-8")
    try:
        (OUT / "handout.pdf").write_bytes(pdf(texts["handout.html"]))
    except (ImportError, FileNotFoundError, SystemExit) as error:
        print(f"No handout.pdf: {error}. Print handout.html instead.")
    print(f"In build/handout: {', '.join(sorted(path.name for path in OUT.iterdir()))}")


if __name__ == "__main__":
    main()
