"""Teaching: votes are decided by the book, the handout says what the book says, and the guide points at what exists."""

import io
import re

import nbformat
import pytest
import torch
from matplotlib import image

from _ext.questions import Option, Question
from figures.files import functions, png
from lab.mistakes import HEADS, MISTAKES, seen_by
from lectures import handout, questions
from lectures.slides import build as slides
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from tests.conftest import ROOT
from tests.pages.conftest import Visit

VOTES = questions.questions()
SHEET = (ROOT / "lectures" / "handout.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "lectures" / "README.md").read_text(encoding="utf-8")
each_vote = pytest.mark.parametrize("vote", VOTES, ids=lambda vote: vote.id)


def notebook(name):
    return nbformat.read(ROOT / "chapters" / name, as_version=4).cells


# -- Votes -------------------------------------------------------------------------------------------------------------


def test_ten_votes_whose_right_letters_vary():
    assert len(VOTES) == len({vote.id for vote in VOTES}) == 10
    letters = [vote.letter for vote in VOTES]
    assert all(2 <= letters.count(letter) <= 3 for letter in "ABCD")


@each_vote
def test_a_vote_has_four_options_with_reasons_and_one_is_right(vote):
    assert len({option.text for option in vote.options}) == 4
    assert [option.right for option in vote.options].count(True) == 1
    for text in (vote.text, *(text for option in vote.options for text in (option.text, option.why))):
        assert "\n" not in text
        assert text.count("$") % 2 == 0
        assert "\u2014" not in text


@each_vote
def test_a_vote_is_decided_by_a_cell_in_the_named_place(vote):
    cells = notebook(vote.chapter)
    [at] = [i for i, cell in enumerate(cells) if cell.id == vote.cell]
    assert cells[at].cell_type == "code"
    assert "assert" in cells[at].source
    text = "\n".join(cell.source for cell in cells[:at] if cell.cell_type == "markdown")
    headings = re.findall(r"^#{2,3} (.*)$|^> \*\*(Exercise \d+\.\d+)", text, flags=re.MULTILINE)
    assert vote.place == "".join(headings[-1])


@each_vote
def test_only_the_right_option_holds(vote):
    names = {}
    exec(vote.setup, names)
    assert [eval(option.holds, names) for option in vote.options] == [option.right for option in vote.options]


def read_as_moodle(text):
    """Name, text, and (right, answer, feedback) of each question, in the steps of Moodle's import."""
    text = "\n".join(line for line in text.splitlines() if not line.strip().startswith("//"))
    for block in re.split(r"\n\s*\n", text.strip()):
        hidden = block.replace("\\\\", "\0")
        for number, mark in enumerate(":#={}~n"):
            hidden = hidden.replace("\\" + mark, chr(0xE000 + number))
        hidden = hidden.replace("\0", "\\")

        def shown(part):
            for number, mark in enumerate(":#={}~\n"):
                part = part.replace(chr(0xE000 + number), mark)
            return part.strip()

        head, answers = hidden.split("{")
        answers, rest = answers.split("}")
        assert rest == ""
        _, name, asked = head.split("::")
        assert asked.startswith("[html]")
        options = re.findall(r"([=~])([^=~]*)", answers)
        assert answers.strip() == "".join(mark + text for mark, text in options).strip()
        found = [(mark == "=", *(shown(part) for part in text.split("#"))) for mark, text in options]
        yield shown(name), shown(asked.removeprefix("[html]")), found


def test_moodle_reads_every_vote_as_it_is():
    read = list(read_as_moodle(questions.gift()))
    assert [name for name, _, _ in read] == [f"RoPE {vote.number} {vote.id}" for vote in VOTES]
    for vote, (_, text, options) in zip(VOTES, read, strict=True):
        assert text == questions.to_html(vote.text, inline=True)
        for option, (right, answer, why) in zip(vote.options, options, strict=True):
            assert right == option.right
            assert answer == questions.to_html(option.text, inline=True)
            assert why.startswith(questions.to_html(option.why, inline=True))


def test_moodle_reads_signs_of_its_own_as_text(monkeypatch):
    text = r"$a \ne \{b\}$: a = b ~ c # d {e} \ `x: y` <b> & $1 < 2$"
    options = [Option(text, text, "True", right) for right in (True, False, False, False)]
    vote = Question(1, "signs", "01_x.ipynb", "Place", "cell", text, "", options)
    monkeypatch.setattr(questions, "questions", lambda: [vote])
    [(_, asked, found)] = read_as_moodle(questions.gift())
    expected = r"\(a \ne \{b\}\): a = b ~ c # d {e} \ <code>x: y</code> &lt;b&gt; &amp; \(1 &lt; 2\)"
    assert asked == expected
    assert [right for right, _, _ in found] == [True, False, False, False]
    assert {answer for _, answer, _ in found} == {expected}


def test_slides_have_a_question_and_an_answer_for_each_vote():
    parts = questions.slides().split("\n---\n")
    assert len(parts) == 20
    for vote, asked, answered in zip(VOTES, parts[::2], parts[1::2], strict=True):
        assert vote.text in asked
        assert all(option.text in asked and option.why not in asked for option in vote.options)
        assert answered.lstrip().startswith(f"## Vote {vote.number}: {vote.letter}\n")
        assert all(option.why in answered for option in vote.options)


def test_page_of_votes_is_one_file_and_opens_what_tempts(browser, tmp_path):
    file = tmp_path / "votes.html"
    file.write_text(handout.document("Votes", questions.page(), handout.VOTES), encoding="utf-8")
    written = [vote.text + "".join(option.text + option.why for option in vote.options) for vote in VOTES]
    formulas = "".join(written).count("$") // 2
    for width in (1280, 360):
        with Visit(browser, file.as_uri(), width=width) as visit:
            assert visit.requests == [file.as_uri()]
            assert visit.complaints == []
            assert visit.page.locator("math:not(wbr + math)").count() == formulas > 30
            assert visit.page.evaluate("document.documentElement.scrollWidth") == width
            options = visit.page.locator("details")
            assert options.count() == 40
            assert visit.page.locator("details p:visible").count() == 0
            for vote, letter in ((vote, letter) for vote in VOTES[:3] for letter in "ABCD"):
                option = visit.page.locator(f"#{vote.id} details").nth("ABCD".index(letter))
                option.locator("summary").press("Enter")
                says = option.locator("p").inner_text()
                assert says.startswith("Right." if letter == vote.letter else "No.")


# -- Handout -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1_000_000])
def test_seven_lines_are_the_library(start, generator):
    [code] = re.findall(r"```python\n(.*?)```", SHEET, flags=re.DOTALL)
    assert len(code.splitlines()) == 7
    for d, base in ((2, 10000.0), (64, 500000.0)):
        x = torch.randn(3, 5, d, generator=generator)
        names = {"torch": torch, "x": x, "d": d, "base": base, "positions": torch.arange(start, start + 5)}
        exec(code, names)
        tables = cos_sin(names["positions"], inverse_frequencies(d, base=base, device="cpu"))
        for name, interleaved in (("interleaved", True), ("half_split", False)):
            expected = apply_rotary_emb(x, *tables, interleaved=interleaved)
            torch.testing.assert_close(names[name], expected, rtol=0, atol=1e-6)


def plain(formula):
    """Without spaces and the full stop, as formulas are set in different lines."""
    return re.sub(r"\s|\\,|\\qquad", "", formula).rstrip(".,")


def test_six_formulas_stand_in_the_book_where_the_sheet_says():
    formulas = re.findall(r"^\*\*(\d)\. .*\(((?:Theorem )?\d\.\d)\)\n\n\$\$(.*?)\$\$", SHEET, flags=re.MULTILINE)
    assert [number for number, _, _ in formulas] == list("123456")
    for _, where, formula in formulas:
        [name] = [path.name for path in (ROOT / "chapters").glob(f"0{where.split()[-1][0]}_*.ipynb")]
        text = "\n".join(cell.source for cell in notebook(name) if cell.cell_type == "markdown")
        if where == "Theorem 5.1":  # said there in words, line by line
            assert "satisfy $R_m^T R_n = R_{n-m}$. Hence the score of $R_m q$ and $R_n k$ is $q^T R_{n-m}\\,k$" in text
            assert plain(formula) == plain("(R_m q)^T (R_n k) = q^T R_{n-m}k")
        elif where.startswith("Theorem"):
            [said] = re.findall(rf"^> \*\*{where} .*$", text, flags=re.MULTILINE)
            assert plain(formula) in plain(said)
        else:
            [said] = re.findall(rf"\$\$([^$]*?)\\tag\{{{where}\}}\$\$", text)
            assert plain(formula) in plain(said)


def test_six_checks_see_as_many_mistakes_as_the_sheet_says():
    seen = [seen_by(rotate) for name, rotate in MISTAKES.items() if name != "(none)"]
    counts = {check: sum(row[check] for row in seen) for check in HEADS}
    table = re.findall(r"^\| (\d) \| .* \| ([^|]*) \|$", SHEET, flags=re.MULTILINE)
    assert [number for number, _ in table] == list("123456")
    expected = [str(counts[check]) for check in ("length", "position 0", "distance", "by hand")]
    assert [said for _, said in table] == [
        *expected,
        f"{counts['loop']}; far: {counts['far']}",
        str(counts["gradient"]),
    ]
    passing = [row for row in seen if not (row["length"] or row["position 0"] or row["distance"])]
    assert (len(seen), len(passing)) == (12, 8)
    assert "twelve mistakes" in SHEET
    assert "Eight of the twelve pass the first three" in SHEET


def test_six_claims_have_the_verdicts_of_the_book():
    text = "\n\n".join(cell.source for cell in notebook("claims.ipynb") if cell.cell_type == "markdown")
    verdicts = dict(re.findall(r'^## "(.*?)"\n.*?\*\*Verdict: (.*?)\*\*$', text, flags=re.MULTILINE | re.DOTALL))
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", SHEET.split("## Six claims")[1], flags=re.MULTILINE)[1:]
    assert len(rows) == 6
    for claim, verdict in rows:
        assert verdict[0].lower() + verdict[1:] == verdicts[claim]


def test_handout_is_two_sides(browser):
    sides = [re.findall(r"^## (.*)$", side, flags=re.MULTILINE) for side in SHEET.split("\n---\n")]
    assert sides == [["Six formulas"], ["Seven lines of code", "Six checks", "Six claims"]]
    page = browser.new_page()
    page.set_content(handout.handout())
    assert page.locator("math").count() > 10
    assert page.evaluate("[...document.images].map(image => image.naturalWidth > 0)") == [True, True]
    printed = page.pdf(prefer_css_page_size=True, print_background=True)
    page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
    assert all(598 > float(wide) > 592 for wide in re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+)", printed))


def test_handout_says_how_to_print_where_no_browser_is(monkeypatch, tmp_path, capsys):
    def none(page):
        raise FileNotFoundError("there is no Chromium here")

    monkeypatch.setattr(handout, "pdf", none)
    monkeypatch.setattr(handout, "OUT", tmp_path)
    handout.main()
    assert "No handout.pdf: there is no Chromium here. Print handout.html instead." in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"handout.html", "votes.html", "votes.md", "votes.gift.txt"}


# -- Guide and pictures ------------------------------------------------------------------------------------------------


def test_links_of_the_guide_lead_somewhere():
    for target in re.findall(r"\]\((.*?)\)", GUIDE):
        path, _, anchor = target.partition("#")
        assert (ROOT / "lectures" / path).exists(), target
        if anchor:
            lines = "\n".join(cell.source for cell in notebook(path.split("/")[-1]) if cell.cell_type == "markdown")
            headings = re.findall(r"^#+ (.*)$", lines, flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in headings}, target


def test_twelve_misconceptions_each_with_a_cell():
    row = r"^\| .* \| \[[^\]]*\]\(\.\./chapters/([\w.]+)(?:#[\w-]*)?\), `([\w-]+)` \|$"
    rows = re.findall(row, GUIDE, flags=re.MULTILINE)
    assert len(rows) == len(set(rows)) == 12
    for name, wanted in rows:
        [cell] = [cell for cell in notebook(name) if cell.id == wanted]
        assert cell.cell_type == "code"


def test_guide_names_commands_and_files_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    commands = set(re.findall(r"`make (\w+)", GUIDE))
    assert {"student", "teacher", "handout"} <= commands
    assert all(f"\n{command}:" in makefile for command in commands)
    for module in re.findall(r"`python -m ([\w.]+)", GUIDE):
        assert any((ROOT / f"{module.replace('.', '/')}{end}").exists() for end in (".py", "/__main__.py"))
    for path in re.findall(r"`((?:lectures|chapters)/[\w./-]+)`", GUIDE):
        assert (ROOT / path).exists(), path
    names = {vote.id: vote.number for vote in VOTES}
    for number in re.findall(r"\b[Vv]otes? (\d+)", GUIDE):
        assert int(number) in names.values()


def test_guide_has_the_minutes_and_the_votes_of_the_slides():
    for row, name in (("Deep learning", "rope-50"), ("Language models", "rope-2x45")):
        [plan] = re.findall(rf"^\| \*\*{row}.*$", GUIDE, flags=re.MULTILINE)
        minutes = {}
        for part, blocks in enumerate(slides.PLANS[name]["parts"]):
            for title in blocks:  # what goes on with a chapter counts with it
                chapter = {"mask": "order", "derivation": "turning"}.get(title, title.removesuffix("_more"))
                length = sum(slide.minutes for slide in slides.block(title))
                minutes[part, chapter] = minutes.get((part, chapter), 0) + length
        assert [int(number) for number in re.findall(r"\((\d+)\)", plan)] == list(minutes.values())
        files = [slides.FOLDER / f"{title}.md" for blocks in slides.PLANS[name]["parts"] for title in blocks]
        shown = re.findall(r"<!-- vote: (\S+) -->", "".join(path.read_text(encoding="utf-8") for path in files))
        numbers = {vote.id: str(vote.number) for vote in VOTES}
        assert re.findall(r"\d+", plan.rsplit("|", 2)[1]) == [numbers[name] for name in shown]


def test_guide_is_two_pages():
    assert len(GUIDE.split()) < 1500
    assert len(re.findall(r"^\d\. .*\*Answer:", GUIDE, flags=re.MULTILINE)) == 5


def test_picture_to_paste_is_wide_and_white():
    drawn = png(functions("draw_")["where_it_sits"]())
    pixels = image.imread(io.BytesIO(drawn))
    assert pixels.shape[1] == 1920
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 1).all()
    assert pixels[..., :3].min() == 0
