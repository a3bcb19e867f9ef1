"""Shared by all tests: where things are, exact randomness, devices, the built pages."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

ROOT = Path(__file__).parent.parent
HTML = ROOT / "_build" / "html"
collect_ignore = ["record_transformers.py"]  # a program, for the environment of the benchmark
CI = os.environ.get("CI") == "true"
ACCELERATORS = {"cuda": torch.cuda, "mps": torch.backends.mps}

# A test on a busy machine may take its time; where a red build must be one that repeats, nothing is drawn by chance.
settings.register_profile("book", deadline=None, derandomize=CI)
settings.load_profile("book")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20211)


@pytest.fixture(params=["cpu", *ACCELERATORS])
def device(request) -> torch.device:
    if request.param in ACCELERATORS and not ACCELERATORS[request.param].is_available():
        pytest.skip(f"this machine has no {request.param}: what is special there is not tested")
    return torch.device(request.param)


@pytest.fixture(scope="session")
def html() -> Path:
    assert (HTML / "index.html").exists(), "the pages are not built: run `make book` first (`make test` does)"
    return HTML


@pytest.fixture(scope="module")
def browser():
    from browsing import CHROMIUM, FLAGS  # not above: the library can be tested where no browser is
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        assert not CI, "no Chromium found: install it, or the pages are not tested"
        pytest.skip("no Chromium found (Debian: apt-get install chromium): the pages are not tested")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS) as running:
        yield running
