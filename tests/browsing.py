"""Visiting a page in the system's Chromium."""

import shutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Visit:
    """One page, opened and typeset, with all that it asked for and complained about."""

    def __init__(self, browser, address, *, width=1280, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.goto(address, wait_until="load")
        self.page.evaluate("window.MathJax?.startup?.promise")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
