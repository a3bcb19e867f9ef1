"""Shared by all tests: where things are, exact randomness, the built pages."""

import os
from pathlib import Path

import pytest
import torch
from browsing import CHROMIUM, FLAGS
from hypothesis import settings
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
HTML = ROOT / "_build" / "html"

settings.register_profile("book", deadline=None)  # a test on a busy machine may take its time
settings.load_profile("book")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20211)


@pytest.fixture(scope="session")
def html() -> Path:
    assert (HTML / "index.html").exists(), "the pages are not built: run `make book` first (`make test` does)"
    return HTML


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        assert os.environ.get("CI") != "true", "no Chromium found: install it, or the pages are not tested"
        pytest.skip("no Chromium found (Debian: apt-get install chromium): the pages are not tested")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS) as running:
        yield running
