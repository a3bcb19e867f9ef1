"""python -m lectures.slides: all lectures, into _build/html/lectures."""

from lectures.slides.build import OUT, PAGES, ROOT, demo, lectures, linked_from
from tools.chromium import chromium

if __name__ == "__main__":
    with chromium() as running:
        lectures(running, OUT)
    demo(OUT)
    linked_from(PAGES / "chapters" / "teach_it.html")
    print(f"In {OUT.relative_to(ROOT)}: {', '.join(sorted(path.name for path in OUT.iterdir()))}")
