"""python -m lectures.slides [course] [title ...]: all lectures, into _build/html/lectures.

With a line for the first slide, such as "Linear algebra II, 3 May", and without the slides of these titles.
"""

import sys

from lectures.slides.build import OUT, PAGES, ROOT, demo, lectures, linked_from
from tools.chromium import chromium

if __name__ == "__main__":
    with chromium() as running:
        lectures(running, OUT, "".join(sys.argv[1:2]), sys.argv[2:])
    demo(OUT)
    linked_from(PAGES / "chapters" / "teach_it.html")
    print(f"In {OUT.relative_to(ROOT)}: {', '.join(sorted(path.name for path in OUT.iterdir()))}")
