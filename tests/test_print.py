"""The book beyond the screen: on paper, as one PDF, as a zip, found by the search, cited."""

import re
import sys
import unicodedata
import zipfile
import zlib

import pytest
import yaml
from browsing import Visit
from conftest import HTML, ROOT

sys.path.insert(0, str(ROOT / "_ext"))
import sections
import take_away

CHAPTER = f"{HTML.as_uri()}/chapters/04_rope_from_complex_numbers.html"


def squeezed(text: str) -> str:
    """Without spaces, and with the letters of a ligature apart."""
    return unicodedata.normalize("NFKC", "".join(text.split()))


def text_of(pdf: bytes) -> str:
    """The squeezed text of a PDF as Chromium writes it: each glyph by the table of its font."""
    objects = {int(number): body for number, body in re.findall(rb"(?s)\n(\d+) 0 obj\n(.*?)\nendobj", pdf)}

    def stream(number):
        return zlib.decompress(re.search(rb"(?s)\bstream\n(.*)\nendstream", objects[number])[1]).decode("latin1")

    fonts = {}
    for number, body in objects.items():
        for table in re.findall(rb"/ToUnicode (\d+) 0 R", body):
            glyphs = fonts.setdefault(str(number), {})
            for first, last, letter in re.findall(r"<(\w{4})> (?:<(\w{4})> )?<(\w+)>\n", stream(int(table))):
                start = bytes.fromhex(letter).decode("utf-16-be")
                for code in range(int(first, 16), int(last or first, 16) + 1):
                    glyphs[code] = start[:-1] + chr(ord(start[-1]) + code - int(first, 16))
    text, font = [], {}
    for number, body in objects.items():
        if b"FlateDecode" in body and b"/Subtype" not in body and " Tf\n" in (content := stream(number)):
            for name, shown in re.findall(r"/F(\d+) \S+ Tf|<(\w+)> Tj", content):
                font = fonts.get(name, {}) if name else font
                text += [font.get(int(shown[i : i + 4], 16), "") for i in range(0, len(shown), 4)]
    return squeezed("".join(text))


# -- On paper ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["04_rope_from_complex_numbers", "06_rope_in_code"])
def test_a_printed_page_has_its_solutions_and_no_controls(name, browser, html):
    with Visit(browser, f"{HTML.as_uri()}/chapters/{name}.html") as visit:
        page = visit.page
        solutions = page.locator("article details:not([class]) > p").evaluate_all(
            """all => all.flatMap(one => [...one.childNodes].filter(node => node.nodeType === Node.TEXT_NODE))
                .map(node => node.textContent)"""
        )
        hidden = page.locator("details.hide pre").all_text_contents()
        printed = text_of(page.pdf(print_background=True))
        wanted = [squeezed(text) for text in [*solutions, *hidden] if len(text) > 30]
        assert len(wanted) >= 6
        assert [text for text in wanted if text not in printed] == []
        assert f"Fig.{int(name[:2])}.1" in printed
        assert "Tryit" not in printed
        assert visit.complaints == []


def test_before_printing_all_opens_and_afterwards_is_as_it_was(browser, html):
    state = """() => ({
        open: [...document.querySelectorAll("details")].map(fold => fold.open),
        theme: document.documentElement.dataset.theme,
        values: [...document.querySelectorAll(".rope-piece input")].map(input => input.value),
        drawn: [...document.querySelectorAll(".rope-piece svg")].map(svg => svg.innerHTML),
    })"""
    with Visit(browser, CHAPTER, scheme="dark") as visit:
        page = visit.page
        first = page.evaluate(state)
        page.locator(".rope-piece input").first.press("ArrowRight")
        page.locator("details").nth(1).evaluate("fold => { fold.open = true }")
        before = page.evaluate(state)
        assert before["drawn"] != first["drawn"]
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        during = page.evaluate(state)
        assert all(during["open"])
        assert (during["values"], during["drawn"]) == (first["values"], first["drawn"])
        assert during["theme"] == "light"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(state) == before
        assert before["theme"] == "dark"


@pytest.mark.parametrize("name", ["01_why_position", "04_rope_from_complex_numbers", "06_rope_in_code"])
def test_nothing_printed_is_empty_bold_or_wider_than_the_paper(name, browser, html):
    with Visit(browser, f"{HTML.as_uri()}/chapters/{name}.html", width=690) as visit:
        page = visit.page
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        bad = page.evaluate(
            """() => {
                const boxes = [...document.querySelectorAll(
                    "article :is(div.cell_input, div.cell_output, blockquote, figure, details:not(.rb-source))")]
                    .filter(node => !node.closest(".rb-source"));
                const box = node => node.getBoundingClientRect();
                return {
                    empty: boxes.filter(node => box(node).height < 10 || getComputedStyle(node).opacity !== "1"
                        || !(node.innerText.trim() || node.querySelector("svg"))).length,
                    fading: boxes.flatMap(node => node.getAnimations({subtree: true})).length,
                    bold: [...document.querySelectorAll("mjx-container svg g")]
                        .filter(node => getComputedStyle(node).stroke !== "none").length,
                    controls: [...document.querySelectorAll("article :is(button, input, .rb-live)")]
                        .filter(node => box(node).height).length,
                    cut: boxes.filter(node => getComputedStyle(node).breakInside !== "avoid"
                        && !node.matches("details")).length,
                    boxes: boxes.length,
                };
            }"""
        )
        assert bad.pop("boxes") > 20
        assert set(bad.values()) == {0}, bad
        beside = page.evaluate(
            """() => [...document.querySelectorAll("article :is(pre, figure, table, .rope-piece, div.math)")]
                .filter(node => node.getBoundingClientRect().right > innerWidth)
                .map(node => node.outerHTML.slice(0, 120))"""
        )
        assert beside == []


# -- The whole book ----------------------------------------------------------------------------------------------------


def test_pdf_has_a_title_page_contents_with_page_numbers_and_links(html, tmp_path, monkeypatch, browser):
    """Two pages of the book in the place of all."""
    monkeypatch.setattr(take_away, "parts", lambda: [("Some", ["01_why_position", "bibliography"])])
    pdf = take_away.print_book(browser)
    places = take_away.places_in(pdf)
    assert places["01_why_position"] == 3  # behind title page and contents
    assert places["01_why_position--exercises"] < places["bibliography"]
    text = text_of(pdf)
    assert "Rotate,Don’tAdd" in text
    assert f"Exercises{places['01_why_position--exercises']}" in text
    links = set(re.findall(rb"/Dest /([^\s/>]+)", pdf))
    assert len(links) > 10
    assert {take_away.unescaped(link) for link in links} <= set(places)
    assert b"arxiv.org/abs/1706.03762" in pdf
    assert b"file://" not in pdf
    assert b"/Outlines" in pdf


def test_parts_of_the_pdf_are_the_table_of_contents():
    names = [name for _, part in take_away.parts() for name in part]
    assert names[0] == "rope_in_five_minutes"
    assert all((HTML / "chapters" / f"{name}.html").exists() for name in names)


# -- From disk ---------------------------------------------------------------------------------------------------------


def test_unpacked_zip_opens_from_disk(html, tmp_path, monkeypatch, browser):
    monkeypatch.setattr(take_away, "OUT", tmp_path)
    with zipfile.ZipFile(take_away.write_zip()) as archive:
        archive.extractall(tmp_path)
    root = (tmp_path / take_away.NAME).as_uri()
    with Visit(browser, f"{root}/chapters/02_sinusoidal_encoding.html") as visit:
        page = visit.page
        page.goto(f"{root}/index.html", wait_until="commit")  # leads on at once
        page.wait_for_url("**/chapters/index.html")
        page.locator("a[href='01_why_position.html']").first.click()
        page.wait_for_url("**/01_why_position.html")
        page.locator("mjx-container").first.wait_for(state="attached")
        assert page.locator("svg.rb-figure").count() > 0
        page.goto(f"{root}/search.html?q=Theorem 5.2")
        page.locator("#search-results li a").first.click()
        page.wait_for_url("**/05_rotation_matrix.html#theorem-5-2")
        assert [url for url in visit.requests if not url.startswith((root, "data:", "blob:"))] == []
        assert visit.complaints == []


# -- Search ------------------------------------------------------------------------------------------------------------


def results(browser, query: str) -> list[tuple[str, str]]:
    """Address and text of each result, in order."""
    with Visit(browser, f"{HTML.as_uri()}/search.html?q={query}") as visit:
        visit.page.locator(".search-summary:not(:empty)").wait_for(timeout=10_000)
        rows = visit.page.locator("#search-results li").evaluate_all(
            "all => all.map(one => [one.querySelector('a').getAttribute('href'), one.innerText])"
        )
        assert visit.complaints == []
        return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Theorem 5.2", "05_rotation_matrix.html#theorem-5-2"),
        ("exercise 4.1", "04_rope_from_complex_numbers.html#exercise-4-1"),
        ("旋转位置编码", "glossary.html#term"),
        ("外推", "glossary.html#term"),
        ("apply_rotary_emb", "reference.html#apply_rotary_emb"),
        ("glossary", "glossary.html"),
        ("aliasing", "glossary.html#term-aliasing"),
        ("the rotation matrix", "05_rotation_matrix.html"),
    ],
)
def test_search_leads_to_the_place(query, first, browser, html):
    assert results(browser, query)[0][0].startswith(f"chapters/{first}")


@pytest.mark.parametrize("query", ["glossary", "rotary position embedding", "RoPE", "positions"])
def test_search_lists_each_place_once(query, browser, html):
    addresses = [address for address, _ in results(browser, query)]
    assert len(addresses) == len(set(addresses)) > 1


def test_results_have_section_page_and_the_words_around_the_hit(browser, html):
    [(_, term), (_, text)] = results(browser, "aliasing")
    assert term.startswith("aliasing")
    assert text.startswith("How well is the speed determined? 4. RoPE from complex numbers")
    assert "calls this aliasing." in text


def test_search_knows_other_forms_of_a_word_and_says_when_there_is_nothing(browser, html):
    assert len(results(browser, "reflected")) >= len(results(browser, "reflections")) > 5
    assert results(browser, "zzzq") == []


def test_each_place_of_the_index_is_in_its_page(html):
    text = (html / "_static" / "places.js").read_text(encoding="utf-8")
    book = yaml.safe_load(text.removeprefix("Search.book=").removesuffix(";\n"))
    pages = [(html / f"{page}.html").read_text(encoding="utf-8") for page, _ in book["pages"]]
    missing = [
        (title, anchor)
        for number, title, _, names, _ in book["places"]
        for anchor in names.values()
        if anchor and f'id="{anchor}"' not in pages[number]
    ]
    assert missing == []
    assert len(book["places"]) > 400


@pytest.mark.parametrize(
    ("tex", "plain"),
    [
        (r"\theta_i = b^{-2i/d}", "θ_i = b^-2i/d"),
        (r"\langle q, k\rangle \le \Theta \tag{4.1}", "⟨ q, k⟩ ≤ Θ (4.1)"),
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", "a b c d"),
        (r"\mathrm{Re}\,\varphi", "Reφ"),
    ],
)
def test_mathematics_in_results_can_be_read(tex, plain):
    assert sections.plain_math(tex) == plain


# -- Foot and papers ---------------------------------------------------------------------------------------------------


def test_each_paper_is_a_link_and_no_source_document_is(html):
    source = (ROOT / "chapters" / "references.bib").read_text(encoding="utf-8")
    page = (html / "chapters" / "bibliography.html").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),(.*?)^\}", source, flags=re.MULTILINE | re.DOTALL)
    assert len(entries) > 30
    for key, entry in entries:
        shown = re.search(rf'id="{key}".*?</div>', page, flags=re.DOTALL)[0]
        links = re.findall(r'href="(https?:[^"]*)"', shown)
        papers = [f"https://arxiv.org/abs/{number}" for number in re.findall(r"arXiv:([\d.]+\d)", entry)]
        papers += [f"https://doi.org/{doi}" for doi in re.findall(r"doi\s*=\s*\{(.*?)\}", entry)]
        assert set(papers) <= set(links), key
        assert not links or not re.fullmatch(r"s[0-4]", key)


def test_an_entry_of_the_bibliography_is_called_as_the_text_calls_it(html):
    page = (html / "chapters" / "bibliography.html").read_text(encoding="utf-8")
    entries = re.findall(r'<div class="citation" id="(\w+)".*?<span class="label">(.*?)</span></span>', page, re.DOTALL)
    names = {key: re.sub("<.*?>", "", name).strip("[]") for key, name in entries}
    ordered = [name.casefold() for key, name in names.items() if not re.fullmatch(r"s[0-4]", key)]
    assert ordered == sorted(ordered)
    assert list(names)[:5] == ["s0", "s1", "s2", "s3", "s4"]
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "chapters").glob("*.ipynb"))
    cited = re.findall(r"\[([^]\[\n]*? \d{4})\b[^]\[\n]*\]\(bibliography\.md#(\w+)\)", text)
    assert len({key for _, key in cited}) > 35
    assert [(name, key) for name, key in cited if not name.endswith(re.sub(r" \(\w+\)$", "", names[key]))] == []


@pytest.mark.parametrize("name", ["chapters/index", "chapters/05_rotation_matrix", "search"])
def test_foot_has_licences_version_and_how_to_cite(name, html):
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    page = (html / f"{name}.html").read_text(encoding="utf-8")
    foot = re.search(r'<div class="extra_footer">.*?</details>', page, flags=re.DOTALL)[0]
    assert "https://creativecommons.org/licenses/by/4.0/" in foot
    assert "Code: MIT" in foot
    assert f"Version {cited['version']}" in foot
    assert f"year    = {{{str(cited['date-released'])[:4]}}}" in foot
