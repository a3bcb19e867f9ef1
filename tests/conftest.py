"""Shared by all tests: where things are, exact randomness, the built pages."""

from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent
HTML = ROOT / "_build" / "html"


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20211)


@pytest.fixture(scope="session")
def html() -> Path:
    assert (HTML / "index.html").exists(), "the pages are not built: run `make book` first (`make test` does)"
    return HTML
