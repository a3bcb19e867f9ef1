"""Draw figures: python -m figures, python -m figures draw_decay_bound, python -m figures --png"""

import sys

from figures.files import functions, write_pngs, write_svgs


def main(arguments: list[str]) -> None:
    """All figures or those named, as SVG for the pages; with --png all as pictures for slides."""
    names = [name.removeprefix("draw_") for name in arguments if name != "--png"]
    known = functions("draw_")
    if unknown := [name for name in names if name not in known]:
        close = ", ".join(f"draw_{name}" for name in known)
        sys.exit(f"Error: there is no draw_{unknown[0]}; there are {close}")
    write_pngs() if "--png" in arguments else write_svgs(names)


if __name__ == "__main__":
    main(sys.argv[1:])
