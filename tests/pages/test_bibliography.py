"""The bibliography: entries called as the text calls them, papers as links."""

import re

from tests.conftest import ROOT


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
