"""Compile sympy and mpmath for the page. Its own Python runs this (pack_python.mjs), as byte code is of one version.

So the page has sympy in a second, where reading its text takes eight. Tests stay behind.
"""

import importlib.util
import marshal
import zipfile
from pathlib import Path

PACKAGES = Path("/packages")  # the folder of the environment's packages
NOT_NEEDED = {"tests", "benchmarks", "autolev", "_antlr"}  # folders of them
HEAD = importlib.util.MAGIC_NUMBER + bytes([1, 0, 0, 0]) + bytes(8)  # an import compares it with no source

with zipfile.ZipFile("/python.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for path in sorted(path for name in ("sympy", "mpmath") for path in PACKAGES.glob(f"{name}*/**/*")):
        place = path.relative_to(PACKAGES)
        if path.suffix == ".py" and not NOT_NEEDED & set(place.parts):
            code = compile(path.read_bytes(), str(place), "exec")
            archive.writestr(zipfile.ZipInfo(f"{place}c"), HEAD + marshal.dumps(code), zipfile.ZIP_DEFLATED)
        elif path.name.startswith("LICENSE"):
            archive.writestr(zipfile.ZipInfo(str(place)), path.read_bytes(), zipfile.ZIP_DEFLATED)
