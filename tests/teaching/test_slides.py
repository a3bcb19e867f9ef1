"""The slides agree with the book: links, figures, numbers, minutes. The demo runs. Drawn, nothing is cut or small."""

import contextlib
import io
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

import figures.files as drawn
from lectures import handout, pages
from lectures.homework.build import without_solution
from lectures.slides import build as slides
from tests.conftest import HTML, ROOT
from tests.pages.conftest import squeezed, text_of

FOLDER = ROOT / "lectures" / "slides"
BLOCKS = sorted(path.stem for path in FOLDER.glob("*.md"))
NUMBER = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
PIECES = {
    name
    for path in (ROOT / "chapters").glob("*.ipynb")
    for name in re.findall(r'id=\\"piece-([\w-]+)', path.read_text(encoding="utf-8"))
}
DEMO = nbformat.read(ROOT / "lectures" / "demo.ipynb", as_version=4)


def values(text):
    """All numbers of a text."""
    return {abs(float(number.replace(",", ""))) for number in re.findall(NUMBER, text)}


def cell_text(chapter, name):
    """What a cell says, prints and shows."""
    notebook = nbformat.read(ROOT / "chapters" / f"{chapter}.ipynb", as_version=4)
    [cell] = [cell for cell in notebook.cells if cell.id == name]
    outputs = [str(output.get("text", output.get("data", {}).get("text/plain"))) for output in cell.get("outputs", [])]
    return "\n".join([cell.source, *outputs])


def headings(path):
    """The anchors of a page's headings, as the build makes them."""
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
    else:
        text = "\n".join(c.source for c in nbformat.read(path, 4).cells if c.cell_type == "markdown")
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"-+", "-", re.sub(r"[^a-z0-9]+", "-", title.lower())).strip("-") for title in titles}


def test_minutes_add_up():
    for name, plan in slides.PLANS.items():
        minutes = Counter()
        for slide, part, begins in slides.lecture(name):
            assert begins == minutes[part]
            minutes[part] += slide.minutes
        assert list(minutes.values()) == [plan["minutes"]] * len(plan["parts"]), (name, minutes)


def test_each_block_is_in_a_list_once_and_no_slide_is_in_two_files():
    for plan in slides.PLANS.values():
        named = [block for part in plan["parts"] for block in part]
        assert len(named) == len(set(named))
    assert set(named) == set(BLOCKS), "the longer lecture has every block"
    titles = Counter(slide.title for block in BLOCKS for slide in slides.block(block))
    assert [title for title, count in titles.items() if count > 1] == []


def test_the_longer_lecture_has_each_slide_of_the_shorter_one_in_its_order():
    short, long = ([slide for slide, *_ in slides.lecture(name)] for name in slides.PLANS)
    assert [slide for slide in long if slide in short] == short
    assert len(long) > len(short)


def test_the_plan_of_the_book_is_that_of_the_slides():
    text = (ROOT / "chapters" / "teach_it.md").read_text(encoding="utf-8")
    planned = [int(minutes) for minutes in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    [blocks] = slides.PLANS["rope-50"]["parts"]
    assert planned == [sum(slide.minutes for slide in slides.block(name)) for name in blocks]
    short, long = (len(list(slides.lecture(name))) for name in slides.PLANS)
    assert (long - short, "seventeen more" in text) == (17, True)
    assert short <= 20
    assert long <= 36


def test_it_begins_with_a_vote_and_ends_with_five_sentences():
    first, second, *_, last = (slide for slide, *_ in slides.lecture("rope-50"))
    assert (first.minutes, second.look) == (0, "vote")
    assert last.title == "Five sentences to take home"
    assert len(re.findall(r"^\d\. ", last.body, re.MULTILINE)) == 5


@pytest.mark.parametrize("name", BLOCKS)
def test_what_is_said_fits_its_minutes(name):
    """At most 110 words a minute, and at least a sentence; votes, pieces and answers to questions take the rest."""
    for slide in slides.block(name):
        said, _, _ = slide.notes.partition("\n\nIf asked:")
        assert 8 < len(said.split()) <= max(110 * slide.minutes, 80), slide.title
        assert not re.search(r"^\s*(\d+\.|[-*#>])\s", slide.notes, re.MULTILINE), "a list by accident: " + slide.title


ASKED = (
    "10,000?",
    "learn the speeds?",
    "look near?",
    "FlashAttention",
    "models do today?",
    "reach is useless?",
    "NTK-aware?",
)


def test_what_is_asked_every_time_has_an_answer_with_a_link():
    answers = [slide.notes.partition("\n\nIf asked: ")[2] for slide, *_ in slides.lecture("rope-50")]
    assert {question for question in ASKED if question not in " ".join(answers)} == set()
    for answer in filter(None, answers):
        assert answer.count("](") >= answer.count("?") > 0, answer


LETTERS = {  # what has to be said of a letter before or where a slide first has it
    "m": "place m", "n": "place n", "i": "pair i|pair \\$i", "x": "word x", "Δ": "delta", "θ": "theta i", "φ": "phi of",
    "P": "vector to each word", "E": "vector to each word", "T": "transposed", "W": "W q", "p": "place with place",
    "q": "query", "k": "key", "f": "f is whatever", "g": "g is what", "h": "some h", "e": "multiplication by e",
    "R": r"\$R_m\$: all pairs turned", "U": "basis \\$U", "b": "base ten thousand", "d": "d = 128", "r": "r\\$? steps",
    "s": r"\$s = 8\$|factor \$s\$",
}  # fmt: skip
GREEK = {r"\theta": "θ", r"\Delta": "Δ", r"\varphi": "φ"}


@pytest.mark.parametrize("name", slides.PLANS)
def test_each_letter_was_met_before_in_the_same_lecture(name):
    """Nobody shall vote on a sign."""
    said, met = "", set()
    for slide, *_ in slides.lecture(name):
        said += f" {slide.body} {slide.notes.partition('If asked:')[0]}".replace("\n", " ")
        formulas = " ".join(sum(re.findall(r"\$\$(.*?)\$\$|\$(.*?)\$", slide.body, re.DOTALL), ()))
        formulas = re.sub(r"\\(?:mathrm|begin|end)\{.*?\}", " ", formulas)
        formulas = re.sub("|".join(map(re.escape, GREEK)), lambda found: GREEK[found[0]], formulas)
        for letter in sorted({*re.findall(r"[^\W\d_]", re.sub(r"\\[A-Za-z]+", " ", formulas))} - met):
            assert re.search(LETTERS[letter], said), f"{slide.title}: what is {letter}?"
            met.add(letter)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_colour_means_a_query_a_key_or_a_score(name):
    """And nothing else, as good or bad."""
    coloured = re.findall(r'class="([qks])">(.*?)<', (FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    for letter, text in coloured:
        assert re.search({"q": "q =|quer", "k": "k =|key", "s": r"^25\.587$"}[letter], text), text


@pytest.mark.parametrize("name", BLOCKS)
def test_links_figures_and_pieces_exist(name):
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^) ]+)", text):
        kind, _, piece = target.partition(":")
        if kind == "piece":
            assert piece in PIECES, target
            continue
        path, _, anchor = target.partition("#")
        assert (FOLDER / path).is_file(), target
        if anchor and "bibliography" not in path:
            assert anchor in headings(FOLDER / path), target
        elif anchor:
            assert f"{{{anchor}," in (ROOT / "chapters" / "references.bib").read_text(encoding="utf-8")
    figures = re.findall(r"!\[(.*?)\]\(\S+/(\w+)\.svg \"([\d.]+) x ([\d.]+)\"\)", text)
    assert len(figures) == text.count("![")
    for alt, figure, *_ in figures:
        assert len(alt) > 20
        assert figure in drawn.functions("draw_")


@pytest.mark.parametrize("name", BLOCKS)
def test_numbers_are_those_that_the_chapters_print(name):
    """A number with a decimal point, or above 99, names the cell that has it; votes are tested where they come from."""
    written = (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n---\n")
    for slide, source in zip(slides.block(name), written, strict=True):
        known = set()
        for chapter, cell, listed in slide.numbers:
            there = values(cell_text(chapter, cell))
            assert values(" ".join(listed)) <= there, (slide.title, values(" ".join(listed)) - there)
            known |= values(" ".join(listed))
        asked = re.findall("<!-- vote: (.*?) -->", source)
        shown = slide.body.replace(slides.vote(asked[0]), "") if asked else slide.body
        shown = re.sub(r"```.*?```|\$+.*?\$+|!?\[.*?\]\(.*?\)|<!--.*?-->|<.*?>", " ", shown, flags=re.DOTALL)
        shown = re.sub(r"Theorem [\d.]+|Llama [\d.]+|100 %|exercises.*|q = \(.*", " ", shown.replace("&minus;", "-"))
        to_show = {number for number in values(shown) if number > 99 or number % 1}
        assert to_show <= known, (slide.title, to_show - known)


def test_votes_are_those_of_the_file():
    for block in BLOCKS:
        written = (FOLDER / f"{block}.md").read_text(encoding="utf-8").split("\n---\n")
        for slide, source in zip(slides.block(block), written, strict=True):
            assert (slide.look == "vote") == ("<!-- vote:" in source)
            if slide.look == "vote":
                assert len(re.findall(r"^1\. ", slide.body, re.MULTILINE)) == 4


def test_answers_follow_their_votes():
    letters = {question.id: question.letter for question in slides.questions()}
    for name in slides.PLANS:
        said = [slide for slide, *_ in slides.lecture(name)]
        for slide, after in pairwise(said):
            if slide.look == "vote":
                [right] = [q.id for q in slides.questions() if q.text in slide.body]
                if "later" in slide.body:  # the vote's own slide shows it
                    assert re.search(rf"The\sanswer\sis {letters[right]}\.", slide.notes), slide.title
                else:
                    assert re.match(rf"(The answer is )?{letters[right]}\.? ", after.notes), slide.title


def test_the_board_writes_what_the_book_proves():
    text = (ROOT / "lectures" / "board.md").read_text(encoding="utf-8")
    assert all((ROOT / "lectures" / target).is_file() for target in re.findall(r"\]\(([^)#]+)", text))
    shown = {slide.title: begins for slide, _, begins in slides.lecture("rope-50")}
    minutes = re.findall(r'"([^"]+)"\W*minute (\d+) of 50', text)
    assert len(minutes) == text.count(" of 50")
    assert all(shown[title] == int(minute) for title, minute in minutes)
    titles = {slide.title for slide, *_ in slides.lecture("rope-2x45")}
    assert set(re.findall(r'with "([^"]+)"', text)) <= titles


# -- The demo ----------------------------------------------------------------------------------------------------------


def code_cells(change):
    return [change(cell.source, code=True) for cell in DEMO.cells if cell.cell_type == "code"]


def test_demo_has_eight_short_cells():
    for change in (slides.with_solution, without_solution):
        cells = code_cells(change)
        assert len(cells) == 8
        assert all(len(cell.strip().splitlines()) <= 6 for cell in cells)
    assert "sympy" not in str(cells)
    assert all(cell.get("outputs", []) == [] for cell in DEMO.cells)
    assert "NotImplementedError" in str(code_cells(without_solution))


def test_the_notes_name_the_cells_of_the_demo_as_they_are():
    headings = {}
    for cell in DEMO.cells:
        headings |= dict(re.findall(r"^\*\*(\d)\. ([^*]+)\.\*\*", cell.source))
    notes = " ".join((ROOT / "lectures" / "slides" / "code_more.md").read_text(encoding="utf-8").split())
    for number, heading in headings.items():
        assert f"ell {number}, {heading}," in notes, f"the notes call cell {number} something else than {heading!r}"
    assert len(headings) == len(set(re.findall(r"[Cc]ell (\d)", notes))) == 8


@pytest.mark.slow
def test_demo_runs_and_says_what_the_chapters_say():
    names, printed = {}, []
    for cell in code_cells(slides.with_solution):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(cell, names)
        printed.append(out.getvalue())
    same = [line.split(": ")[1] for line in printed[2].splitlines()]
    assert same[0] == same[1] == same[2] != same[3]
    assert re.findall(r"distance +(\d+)", printed[3])[0] == "710"
    assert re.findall(r"True|False", printed[5]) == ["True", "True", "True", "False"]
    right, wrong = re.findall(r"loss ([\d.]+)", printed[6])
    assert f"interleaved {right}, half-split {wrong}" in cell_text("10_does_it_work", "layout10-cell")
    stored = cell_text("10_does_it_work", "longer10-cell")
    for line, method in zip(printed[7].splitlines(), ("as it is", "by parts ", "cropped"), strict=True):
        losses = re.findall(r"\d\.\d\d", line)
        found = re.findall(r"\d\.\d\d", next(row for row in stored.splitlines() if row.startswith(method)))
        assert all(abs(float(a) - float(b)) < 0.011 for a, b in zip(losses, found, strict=True))


def test_a_loss_of_a_model_that_knows_nothing():
    assert 4.85 in values(cell_text("10_does_it_work", "ships"))
    assert "4.85" in str(DEMO.cells)


# -- Drawn -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(browser, html, tmp_path_factory):
    out = tmp_path_factory.mktemp("lectures")
    slides.lectures(browser, out)
    return out


@pytest.mark.parametrize("name", slides.PLANS)
def test_slides_need_nothing_and_nothing_is_cut_or_small(name, folder, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((folder / f"{name}.html").as_uri())
    count = page.locator("section").count()
    assert count == len(list(slides.lecture(name)))
    wrong = page.evaluate(
        """() => [...document.querySelectorAll('section')].flatMap(slide => {
            const frame = slide.getBoundingClientRect(), body = slide.querySelector('.body'), found = [];
            if (body.scrollHeight > body.clientHeight) found.push('too long');
            for (const node of body.querySelectorAll('*')) {
                const box = node.getBoundingClientRect();
                if (!box.width) continue;
                if (box.right > frame.right - 20 || box.left < frame.left + 20) found.push('too wide: ' + node.tagName);
                const own = [...node.childNodes].some(one => one.nodeType === 3 && one.textContent.trim());
                if (own && parseFloat(getComputedStyle(node).fontSize) < 24) found.push('small: ' + node.textContent);
                if (node.tagName === 'IMG') {
                    const scale = Math.min(box.width / node.naturalWidth, box.height / node.naturalHeight);
                    if (12 * scale < 24) found.push('small letters in the figure');  // 9 points are 12 px
                }
            }
            return found.map(what => `slide ${slide.id}: ${what}`);
        })"""
    )
    assert wrong == []
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash === '#3'")
    assert page.locator("section.now").get_attribute("id") == "3"
    page.keyboard.press("p")
    piece = page.frame_locator("#stage iframe")
    piece.locator("#piece-order").wait_for()
    piece.locator("body").press("Escape")
    page.locator("#stage").wait_for(state="detached")
    outside = [url for url in asked if not url.startswith(("file:", "data:", "about:"))]
    assert (outside, complaints) == ([], [])
    page.close()


@pytest.mark.parametrize("name", slides.PLANS)
def test_links_of_the_slides_lead_to_pages(name, folder):
    text = (folder / f"{name}.html").read_text(encoding="utf-8")
    links = set(re.findall(r'href="\.\./(chapters/[^"#]+)(?:#([^"]+))?"', text))
    assert len(links) > 10
    for path, anchor in links:
        page = (HTML / path).read_text(encoding="utf-8")
        assert not anchor or f'id="{anchor}"' in page, (path, anchor)


def test_page_for_teachers_then_links_to_the_lectures(folder, html, tmp_path):
    page = tmp_path / "teach_it.html"
    page.write_text((html / "chapters" / "teach_it.html").read_text(encoding="utf-8"), encoding="utf-8")
    slides.linked_from(page)
    links = re.findall(r'href="\.\./lectures/([^"]+)"', page.read_text(encoding="utf-8"))
    assert links == [f"{name}{end}" for name in slides.PLANS for end in (".html", ".pdf", "-notes.pdf")]
    assert all((folder / link).exists() for link in links)


@pytest.mark.parametrize("name", slides.PLANS)
def test_pdf_has_a_page_for_each_slide(name, folder: Path):
    pages = len(re.findall(rb"/Type\s*/Page\b", (folder / f"{name}.pdf").read_bytes()))
    assert pages == len(list(slides.lecture(name)))
    assert len((folder / f"{name}-notes.pdf").read_bytes()) > 100_000
    slide_text, notes = (text_of((folder / f"{name}{suffix}").read_bytes()) for suffix in (".pdf", "-notes.pdf"))
    votes = [slide.body for slide, *_ in slides.lecture(name) if slide.look == "vote"]
    answers = re.findall('<span class="later">(.*?)</span>$', "\n".join(votes), re.MULTILINE)
    for answer in (squeezed(re.sub("<.*?>", "", answer)) for answer in answers if "$" not in answer):
        assert answer in notes  # not on the slide, which is printed before the vote
        assert answer not in slide_text


# -- Where the book is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ['url: ""', "url: https://github.com/Somebody/a-book"])
def test_slides_and_handout_say_where_the_book_is_once_it_is_said(line, tmp_path, monkeypatch):
    config = tmp_path / "_config.yml"
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config.write_text(text.replace('url: ""', line), encoding="utf-8")
    monkeypatch.setattr(pages, "CONFIG", config)
    footers = re.findall(r"<footer>.*?</footer>", slides.sections("rope-50"))
    sheet = handout.handout()
    if line.endswith('""'):
        assert not re.search("https?://", "".join(footers))
        assert all('href="../chapters/' in footer for footer in footers if "<a" in footer)
        assert "It is at" not in sheet
    else:
        where = "https://somebody.github.io/a-book/"
        assert all(f'<a href="{where}">somebody.github.io/a-book/</a>' in footer for footer in footers)
        assert f'href="{where}chapters/' in footers[3]
        assert f'It is at <a href="{where}">{where}</a>.' in sheet


@pytest.mark.slow
def test_a_line_for_the_course_and_slides_left_out(tmp_path):
    title = "The outputs move with the words"
    line = "Algebra & more, 3 May"
    whole, made = slides.sections("rope-50"), slides.sections("rope-50", line, (title,))
    assert title in whole
    assert title not in made
    assert made.count("<section") == whole.count("<section") - 1
    assert made.count("Algebra &amp; more, 3 May") == 1
    assert "Algebra" in made.partition("</section>")[0]
    with pytest.raises(SystemExit, match=r"no slide is called No such slide; there are: .*The outputs move"):
        slides.lectures(None, tmp_path, without=("No such slide",))
