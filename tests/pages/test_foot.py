"""The foot: licences, version, and how to cite."""

import re

import pytest
import yaml

from tests.conftest import ROOT


@pytest.mark.parametrize("name", ["chapters/index", "chapters/05_rotation_matrix", "search"])
def test_foot_has_licences_version_and_how_to_cite(name, html):
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    page = (html / f"{name}.html").read_text(encoding="utf-8")
    foot = re.search(r'<div class="extra_footer">.*?</details>', page, flags=re.DOTALL)[0]
    words = " ".join(re.sub(r"<[^>]*>", " ", foot).split())
    author, title, version = cited["authors"][0]["name"], cited["title"], cited["version"]
    year = cited["date-released"].year
    assert f"Version {version}. Text and figures: CC BY 4.0 . Code: MIT." in words
    assert f"{author[0].upper()}{author[1:]} ({year}). {title}. Version {version}." in words
    assert f"author = {{{{{author}}}}}, title = {{{title}}}, year = {{{year}}}, version = {{{version}}}, }}" in words
    assert '<a href="https://creativecommons.org/licenses/by/4.0/">' in foot
