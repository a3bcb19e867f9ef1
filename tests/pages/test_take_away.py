"""The book to take along: as one PDF, and as a zip that opens from disk."""

import io
import zipfile
from types import SimpleNamespace

import pytest
from pypdf import PdfReader

from tests.conftest import HTML
from tests.pages.conftest import Visit, squeezed, text_of
from tools import take_away


@pytest.mark.slow
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
    reader = PdfReader(io.BytesIO(pdf))
    first, last = places["01_why_position"] - 1, places["bibliography"] - 1
    named = ["1.Whyposition?" in squeezed(page.extract_text()) for page in reader.pages]
    assert all(named[first:last]), "its title stands at the head of each page of a chapter"
    assert not any(named[last:])
    links = [note.get_object() for page in reader.pages for note in page.get("/Annots", [])]
    inside = {str(link["/Dest"]).removeprefix("/") for link in links if "/Dest" in link}
    assert len(inside) > 10
    assert inside <= set(places)
    outside = {link["/A"]["/URI"] for link in links if "/URI" in link.get("/A", {})}
    assert "https://arxiv.org/abs/1706.03762" in outside
    assert not [address for address in outside if address.startswith("file:")]
    assert reader.outline


@pytest.mark.slow
def test_a_students_pdf_has_exercises_and_hints_and_no_solutions(html, monkeypatch, browser):
    monkeypatch.setattr(take_away, "parts", lambda: [("Some", ["04_rope_from_complex_numbers"])])
    all_of_it, fewer = (text_of(take_away.print_book(browser, solutions=answer)) for answer in (True, False))
    solution, hint = "Solution", "Hint"
    assert all_of_it.count("Exercise4.") - fewer.count("Exercise4.") < 5
    assert fewer.count(solution) < all_of_it.count(solution) - 4
    assert fewer.count(hint) == all_of_it.count(hint) > 0


def test_a_machine_without_chinese_letters_is_told(monkeypatch):
    asked = {"/usr/bin/fc-list": b"", "/bin/fc-list": b"Noto Sans CJK SC"}
    monkeypatch.setattr(
        take_away.subprocess, "run", lambda command, **settings: SimpleNamespace(stdout=asked[command[0]])
    )
    for place, has in (("/usr/bin/fc-list", False), ("/bin/fc-list", True), (None, None)):
        monkeypatch.setattr(take_away.shutil, "which", lambda name, place=place: place)
        assert take_away.has_chinese_letters() is has


def test_parts_of_the_pdf_are_the_table_of_contents():
    names = [name for _, part in take_away.parts() for name in part]
    assert names[0] == "rope_in_five_minutes"
    assert all((HTML / "chapters" / f"{name}.html").exists() for name in names)


def test_unpacked_zip_opens_from_disk(html, tmp_path, monkeypatch, browser):
    monkeypatch.setattr(take_away, "OUT", tmp_path)
    with zipfile.ZipFile(take_away.write_zip()) as archive:
        archive.extractall(tmp_path)
        assert not [name for name in archive.namelist() if "/live/" in name], "a page from disk may not load Python"
    root = (tmp_path / take_away.NAME).as_uri()
    with Visit(browser, f"{root}/chapters/02_sinusoidal_encoding.html") as visit:
        page = visit.page
        page.goto(f"{root}/index.html", wait_until="commit")  # leads on at once
        page.wait_for_url("**/chapters/index.html")
        page.locator("a[href='01_why_position.html']").first.click()
        page.wait_for_url("**/01_why_position.html")
        page.locator("math").first.wait_for(state="attached")
        assert page.locator("svg.rb-figure").count() > 0
        page.goto(f"{root}/search.html?q=Theorem 5.2")
        page.locator("#search-results li a").first.click()
        page.wait_for_url("**/05_rotation_matrix.html#theorem-5-2")
        assert [url for url in visit.requests if not url.startswith((root, "data:", "blob:"))] == []
        assert visit.complaints == []
