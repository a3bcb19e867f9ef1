"""The glossary against the chapters that it names, and found by the search of the built book in both languages."""

import json
import re

import pytest

from tests.conftest import HTML, ROOT
from tests.pages.conftest import Visit

PAGE = (ROOT / "chapters" / "glossary.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[(\w[^\]:]*): ([^\]]+)\]\(([\w.]+)#[\w-]+\)")
HAN = re.compile(r"[\u4e00-\u9fff]")


def entries() -> list[tuple[str, list[str], str]]:
    """For each entry the English term, the Chinese ones without brackets, and the definition."""
    found = []
    for block in re.findall(r"^```\{glossary\}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        for lines in (entry.splitlines() for entry in block.strip().split("\n\n")):
            english, *chinese = (line for line in lines if not line.startswith(" "))
            found.append((english, [term.strip("()") for term in chinese], " ".join(lines[1 + len(chinese) :])))
    return found


def markdown(path) -> str:
    """The text of a page, of a notebook that of its Markdown cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def test_each_entry_has_chinese_terms_one_paragraph_and_a_link():
    assert len(entries()) >= 60
    for english, chinese, definition in entries():
        assert not HAN.search(english), english
        assert chinese, english
        assert all(HAN.search(term) for term in chinese), english
        assert LINK.search(definition), english
        assert LINK.sub("", definition).rstrip(" ,").endswith("."), english


def test_terms_are_sorted_and_unique():
    english = [entry[0] for entry in entries()]
    assert english == sorted(english, key=str.lower)
    terms = english + [term for _, chinese, _ in entries() for term in chinese]
    assert len(terms) == len(set(terms))


@pytest.mark.parametrize("english", [entry[0] for entry in entries()])
def test_each_term_is_a_word_of_the_chapters(english):
    texts = " ".join(markdown(path) for path in (ROOT / "chapters").glob("*.ipynb"))
    assert re.search(rf"\b{english}\b", " ".join(texts.split()), flags=re.IGNORECASE)


def test_each_link_names_a_heading_of_its_page():
    """That the page exists is seen by the build."""
    for english, _, definition in entries():
        for place, heading, name in LINK.findall(definition):
            headings = re.findall(r"^#+ (.+)$", markdown(ROOT / "chapters" / name), re.MULTILINE)
            assert heading in headings, f"{english}: {name} has no section {heading!r}"
            number = re.fullmatch(r"[Cc]hapter (\d+)", place)
            assert not number or name.startswith(f"{int(number[1]):02}_"), english


@pytest.mark.parametrize("term", ["旋转位置编码", "外推", "rotary position embedding"])
def test_a_search_leads_to_the_entry(term, browser, html):
    with Visit(browser, f"{HTML.as_uri()}/search.html?q={term}") as visit:
        hit = visit.page.locator("#search-results li a[href*='glossary.html#term']").first
        hit.wait_for(timeout=10_000)
        hit.click()
        visit.page.wait_for_url("**/glossary.html*#term*")
        assert visit.page.locator("dt:target").inner_text().startswith(term)
        assert visit.complaints == []


def test_the_search_knows_every_term(html):
    text = (html / "_static" / "places.js").read_text(encoding="utf-8")
    book = json.loads(text.removeprefix("Search.book=").removesuffix(";\n"))
    glossary = [number for number, (page, _) in enumerate(book["pages"]) if page == "chapters/glossary"]
    known = {name.replace("’", "'") for number, *_, names, _ in book["places"] if number in glossary for name in names}
    assert {term for english, chinese, _ in entries() for term in (english, *chinese)} <= known
