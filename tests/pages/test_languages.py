"""Chinese words say that they are Chinese."""

from tests.conftest import HTML
from tests.pages.conftest import Visit


def test_chinese_words_are_marked(browser):
    with Visit(browser, f"{HTML.as_uri()}/chapters/glossary.html") as visit:
        bare = visit.page.locator("dl.glossary dt").evaluate_all(
            r"""all => all.flatMap(term => [...term.childNodes])
                .filter(node => node.nodeType === Node.TEXT_NODE && /[\u4e00-\u9fff]/.test(node.data))
                .map(node => node.data)"""
        )
        assert bare == []
        assert visit.page.locator("dl.glossary dt [lang=zh]").count() >= 60
