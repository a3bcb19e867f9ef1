"""The system's Chromium: it prints slides, handout and book, and the tests look at the pages in it."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Without a window it is the same engine and takes less time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    "--no-sandbox",
    "--font-render-hinting=none",  # else each letter is as wide as a whole number of pixels where there is no window
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@contextmanager
def chromium() -> Iterator:
    """A running browser; where there is none, the program ends with a sentence that says what to install."""
    from playwright.sync_api import sync_playwright  # not above: what needs no browser needs no playwright

    if CHROMIUM is None:
        sys.exit("Error: there is no Chromium here, which draws it (on Debian install the package chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        try:
            yield browser
        finally:
            browser.close()
