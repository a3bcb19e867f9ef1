"""Run experiments: python -m lab --list, python -m lab order encodings ..."""

import argparse
from pathlib import Path

from lab import after_rope, experiments, extension, opened

FOLDERS = {"smollm2": Path(__file__).parent / "published_models"}
EXPERIMENTS = (
    experiments.EXPERIMENTS | extension.EXPERIMENTS | after_rope.EXPERIMENTS | {"smollm2": (opened.opened, 300)}
)


def main() -> None:
    """Those that are named, one after the other; what is finished is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="*", choices=[[], *EXPERIMENTS], metavar="experiment")
    parser.add_argument("--list", action="store_true", help="name them, with the minutes that they take on two cores")
    options = parser.parse_args()
    if options.list or not options.experiments:
        for name, (runs, minutes) in EXPERIMENTS.items():
            print(f"{name:18} {minutes:>3} minutes  {runs.__doc__}")
    for name in options.experiments:
        experiments.run(name, EXPERIMENTS[name][0](), FOLDERS.get(name, experiments.RESULTS))


if __name__ == "__main__":
    main()
