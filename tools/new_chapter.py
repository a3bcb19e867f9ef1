"""Begin a chapter: python -m tools.new_chapter 13_my_subject "My subject". With --remove it is taken out again.

It copies the template, with the number of the chapter, and names it in _toc.yml and in the table of chapters/index.md.
`make chapters NAME=13` then runs it, and `make check` says what is missing.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from tools import attack

ROOT = Path(__file__).parent.parent
TEMPLATE = Path(__file__).with_name("chapter_template.ipynb")
LAST_IN_TOC = re.compile(r"(?:      - file: chapters/\d\d_\w+\n)+")
LAST_IN_INDEX = re.compile(r"(?:^\| \[\d+ .*\]\(\d\d_\w+\.ipynb\) .*\n)+", re.MULTILINE)


def begun(number: str, title: str) -> str:
    """The template as a chapter: its statements and exercises have this chapter's number."""
    text = TEMPLATE.read_text(encoding="utf-8").replace("The title, as in _toc.yml", title)
    return text.replace("NUMBER", str(int(number)))


def lines(stem: str, title: str) -> dict[Path, tuple[re.Pattern, str]]:
    """What is written behind the last chapter, in the table of contents and on the first page."""
    number = int(stem[:2])
    row = (
        f"| [{number} {title}]({stem}.ipynb) |  | Write here what comes out, with a link "
        f"[to its place]({stem}.ipynb#write-here-the-section). | 5 min | 10 s |\n"
    )
    return {
        ROOT / "_toc.yml": (LAST_IN_TOC, f"      - file: chapters/{stem}\n"),
        ROOT / "chapters" / "index.md": (LAST_IN_INDEX, row),
    }


def begin(stem: str, title: str) -> None:
    chapter = ROOT / "chapters" / f"{stem}.ipynb"
    if chapter.exists():
        sys.exit(f"Error: {chapter} is there already")
    chapter.write_text(begun(stem[:2], title), encoding="utf-8")
    for path, (place, line) in lines(stem, title).items():
        text = path.read_text(encoding="utf-8")
        path.write_text(place.sub(lambda known, line=line: known[0] + line, text, count=1), encoding="utf-8")
    print(f"{chapter.relative_to(ROOT)} is begun. Write it, and its row in chapters/index.md.")


def remove(stem: str) -> None:
    """Take out what `begin` wrote, and what the attack stored of it."""
    (ROOT / "chapters" / f"{stem}.ipynb").unlink(missing_ok=True)
    for path in lines(stem, ""):
        text = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in text if f"({stem}.ipynb)" not in line and f"chapters/{stem}\n" not in line]
        path.write_text("".join(kept), encoding="utf-8")
    attack.write(json.loads(attack.STORED.read_text(encoding="utf-8")))
    pages = ROOT / "_build" / "html"
    for page in (f"chapters/{stem}.html", f"wall/{stem}.html", f"_sources/chapters/{stem}.ipynb"):
        (pages / page).unlink(missing_ok=True)
    print("Removed. `make lists` counts anew; its number goes out of the rows of chapters/notation.md by hand.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stem", help="the name of its file, less the ending: 13_my_subject")
    parser.add_argument("title", nargs="?", help="as its heading and the table of contents say it")
    parser.add_argument("--remove", action="store_true", help="take it out again")
    given = parser.parse_args()
    if not re.fullmatch(r"\d\d_\w+", given.stem):
        parser.error(f"the name is {given.stem!r}; it is two digits, _, and words, such as 13_my_subject")
    if given.remove:
        remove(given.stem)
    elif given.title:
        begin(given.stem, given.title)
    else:
        parser.error("a title is needed")
