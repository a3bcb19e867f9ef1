"""The head of a page: what it says of itself, what it loads and when, and where its links and buttons lead."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import pytest

from _ext import head
from tests.conftest import HTML, ROOT
from tests.pages.conftest import CHAPTER, PAGES, Visit


class Links(HTMLParser):
    """All ids, links and pictures of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.images = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.add(attrs["id"])
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("img", "script", "link"):
            self.images.append(attrs.get("src") or attrs.get("href") or "")


def test_every_internal_link_leads_somewhere(html):
    built = [path for path in html.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in built}
    checked = 0
    for path, page in pages.items():
        for link in page.links + page.images:
            if re.match(r"(https?|mailto|data|javascript):", link):
                continue
            target, anchor = urldefrag(link)
            file = (path.parent / unquote(target.split("?")[0])).resolve() if target else path
            assert file.exists(), f"{path.name}: {link}"
            if anchor and file in pages:
                assert anchor in pages[file].ids | {"top"}, f"{path.name}: {link}"
            checked += 1
    assert checked > 100


def test_nothing_is_loaded_from_outside(html):
    for path in html.rglob("*.html"):
        assert "cdn." not in path.read_text(encoding="utf-8"), path.name
        outside = [link for link in Links(path.read_text(encoding="utf-8")).images if re.match(r"(https?:)?//", link)]
        assert outside == [], path.name


def test_each_page_has_a_description(html):
    for path in (html / "chapters").glob("*.html"):
        assert path.read_text(encoding="utf-8").count('name="description"') == 1, path.name


@pytest.mark.parametrize("address", ["", "https://github.com/someone/some-book"])
def test_launch_buttons_need_an_address(address):
    class Config:
        pass

    Config.html_theme_options = {"repository_url": address, "launch_buttons": {"colab_url": "https://colab"}}
    head.no_buttons_without_address(None, Config)
    assert ("launch_buttons" in Config.html_theme_options) is bool(address)


def test_a_shared_link_shows_title_sentence_and_with_an_address_a_picture(html):
    for page in (html / "chapters").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        tags = dict(re.findall(r'<meta property="(.*?)" content="(.*?)"', text))
        assert tags["og:title"], page.name
        assert len(tags["og:description"]) > 20, page.name
        assert "og:url" not in tags, page.name  # while the repository has no address
        assert "og:image" not in tags, page.name
    assert (html / "_static" / "shared.png").stat().st_size < 100_000

    class App:
        class config:
            html_baseurl = ""
            html_title = "Rotate"
            html_theme_options = {"repository_url": "https://github.com/Someone/some-book"}  # noqa: RUF012

    context = {"metatags": '<meta name="description" content="Say &quot;so&quot;" />', "title": "<span>1. </span>Why?"}
    head.describe(App, "chapters/a", "", context, object())
    tags = dict(re.findall(r'<meta property="(.*?)" content="(.*?)"', context["metatags"]))
    assert tags["og:title"] == "1. Why?"
    assert tags["og:description"] == "Say &quot;so&quot;"
    assert tags["og:url"] == "https://someone.github.io/some-book/chapters/a.html"
    assert tags["og:image"] == "https://someone.github.io/some-book/_static/shared.png"


def test_the_root_says_what_the_first_page_says_and_leads_there(html, tmp_path):
    root, first = ((html / name).read_text(encoding="utf-8") for name in ("index.html", "chapters/index.html"))
    tags = [
        re.findall(r"<title>.*?</title>|<meta property=.*?>|<meta[^>]*description[^>]*>", page)
        for page in (root, first)
    ]
    assert tags[0] == tags[1]
    assert "RoPE" in tags[0][0]
    assert root.count('url=chapters/index.html"') == root.count('<a href="chapters/index.html">') == 1
    assert "canonical" not in root  # while the repository has no address
    (tmp_path / "a.html").write_text("<title>A</title>", encoding="utf-8")

    class App:
        outdir = tmp_path

        class builder:
            name = "html"

        class config:
            root_doc, language, html_title, html_baseurl, html_theme_options = "a", "en", "A", "https://a.org/b", {}

    head.name_the_root(App, None)
    assert '<link rel="canonical" href="https://a.org/b/a.html" />' in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("base", "repository", "expected"),
    [
        ("", "", ""),
        ("", None, ""),
        ("https://book.example/x", "https://github.com/a/b", "https://book.example/x/"),
        ("", "https://github.com/A/b.git", "https://a.github.io/b/"),
        ("", "https://elsewhere.example/a/b", ""),
    ],
)
def test_address(base, repository, expected):
    class Config:
        html_baseurl = base
        html_theme_options = {"repository_url": repository}  # noqa: RUF012

    assert head.address(Config) == expected


def test_no_template_lies_among_the_pages(html):
    assert [path for path in html.rglob("*.html") if "{{ pathto" in path.read_text(encoding="utf-8")] == []


def test_every_icon_of_the_pages_is_drawn(html):
    drawn = set(re.findall(r"\.(fa-[\w-]+) \{ --rb-icon", (ROOT / "_ext" / "static" / "head.css").read_text()))
    for path in (html / "chapters").glob("*.html"):
        page = path.read_text(encoding="utf-8")
        used = {name for names in re.findall(r'class="([^"]*\bfas?\b[^"]*|[^"]*fa-solid[^"]*)"', page)
                for name in re.findall(r"fa-[\w-]+", names)} - {"fa-solid", "fa-lg"}  # fmt: skip
        assert used <= drawn, path.name
        assert "fontawesome.js" not in page, path.name


@pytest.mark.parametrize("name", [*PAGES, "search.html"])
def test_one_style_sheet_and_no_script_stand_before_the_text(name, html):
    page = (html / name).read_text(encoding="utf-8")
    sheets = re.findall(
        r'<link (?=[^>]*rel="stylesheet")(?![^>]*media=)[^>]*href="[./]*_static/([\w.-]+)\?v=\w+"', page
    )
    assert sheets == ["book.css", *(["first.css"] if "index" in name else [])]
    assert not re.search(r"fontawesome\.js|MathJax\.js|tex-svg", page)
    if name != "search.html":
        scripts = re.findall(r"<script[^>]* src=[^>]*>", page)
        assert len(scripts) >= 3
        assert all("defer" in script for script in scripts)
        assert not re.search(r"searchindex|searchtools|DOCUMENTATION_OPTIONS\.", page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_paint_has_the_colours_of_the_theme(scheme, browser):
    """Before any script of the theme, and with none."""
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.route("**/*.js*", lambda route: route.abort())
    page.goto(f"{HTML.as_uri()}/chapters/index.html")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    page.add_init_script("localStorage.setItem('mode', 'dark')")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    context.close()


@pytest.mark.parametrize("width", [1280, 360])
def test_sidebar_button_and_search_box(width, browser):
    with Visit(browser, f"{HTML.as_uri()}/chapters/02_sinusoidal_encoding.html", width=width) as visit:
        sidebar = visit.page.locator("#pst-primary-sidebar, .bd-sidebar-primary").first
        before = sidebar.bounding_box()
        visit.page.locator("button.primary-toggle:visible, label.primary-toggle:visible").first.click()
        visit.page.wait_for_timeout(600)
        assert sidebar.bounding_box() != before or not sidebar.is_visible()
    with Visit(browser, f"{HTML.as_uri()}/chapters/02_sinusoidal_encoding.html") as visit:
        boxes = visit.page.locator("input[type=search]:visible, button.search-button-field:visible")
        assert boxes.count() == 1


def test_buttons_offer_the_notebook_and_no_launch_without_an_address(browser, html):
    with Visit(browser, f"{HTML.as_uri()}/chapters/02_sinusoidal_encoding.html") as visit:
        links = visit.page.locator("a").evaluate_all("all => all.map(one => one.href)")
        notebooks = [link for link in links if link.endswith(".ipynb")]
        assert notebooks
        assert all((html / link.removeprefix(HTML.as_uri() + "/")).exists() for link in notebooks)
        assert not any("colab" in link or "mybinder" in link for link in links)


def test_the_contents_light_the_section_that_one_reads(browser):
    with Visit(browser, f"{HTML.as_uri()}/{CHAPTER}") as visit:
        sections = visit.page.locator("article > section > section").evaluate_all("all => all.map(one => one.id)")
        sections = sections[:-1]  # the last one does not reach the top
        assert len(sections) >= 6
        for section in sections:
            visit.page.evaluate("id => document.getElementById(id).scrollIntoView({behavior: 'instant'})", section)
            visit.page.mouse.wheel(0, 40)
            visit.page.wait_for_timeout(250)
            lit = visit.page.locator(".toc-entry a.nav-link.active").evaluate_all("all => all.map(one => one.hash)")
            assert f"#{section}" in lit


def test_focus_is_seen_on_each_button_of_the_page(browser):
    with Visit(browser, f"{HTML.as_uri()}/{CHAPTER}") as visit:
        focused = {}
        for _ in range(60):
            visit.page.keyboard.press("Tab")
            name, seen = visit.page.evaluate(
                """() => {
                    const node = document.activeElement, style = getComputedStyle(node);
                    const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
                    return [node.outerHTML.slice(0, 120), seen || node.matches('.skip-link, #pst-skip-link *')];
                }"""
            )
            focused[name] = seen
        assert len(focused) > 20
        assert [name for name, seen in focused.items() if not seen] == []


@pytest.mark.parametrize("stem", ["02_sinusoidal_encoding", "09_beyond_training_length"])
def test_a_link_to_a_section_leads_there(stem, browser, html):
    """From another page and on the page itself, though what is far from the screen waits with its layout."""
    page = html / "chapters" / f"{stem}.html"
    anchors = re.findall(r'<section id="([\w-]+)"', page.read_text(encoding="utf-8"))[1:]
    where = """anchor => [document.getElementById(anchor).getBoundingClientRect().top,
                          document.documentElement.scrollHeight - scrollY - innerHeight]"""
    for anchor in anchors[::4]:
        with Visit(browser, f"{page.as_uri()}#{anchor}") as visit:
            for goal in (anchor, anchors[0], anchors[-2]):
                visit.page.evaluate("anchor => { location.hash = anchor }", goal)
                visit.page.wait_for_timeout(100)
                top, below = visit.page.evaluate(where, goal)
                assert 0 <= top < 120 or below < 2, (anchor, goal, top)
