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
    assert '<a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>' in foot
    assert "Code: MIT" in foot
    assert f"Version {cited['version']}" in foot
    assert f"year    = {{{str(cited['date-released'])[:4]}}}" in foot
