"""What earlier builds have left is removed: an interrupted one, or one of pages that are gone. Two at once take turns.

Sphinx takes the pages that an interrupted build wrote for finished, and leaves out what that build had not come to: the
search index, say. So _build/running exists while a build runs, and is removed when it has ended well.
"""

import shutil
from pathlib import Path

from filelock import FileLock
from sphinx.application import Sphinx


def begin(app: Sphinx) -> None:
    """Wait for a build that is running; remove what an interrupted one has left."""
    mark = Path(app.outdir).with_name("running")
    mark.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(mark.with_suffix(".lock"))
    lock.acquire()  # it ends with the process, or with this build
    if mark.exists():
        for folder in (app.outdir, app.doctreedir):
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).mkdir(parents=True)
    mark.write_text("A build is running, or was interrupted.\n", encoding="ascii")

    def end(app: Sphinx, exception: Exception | None) -> None:
        if exception is None:
            remove_pages_that_are_gone(app)
            mark.unlink()
        lock.release()

    app.connect("build-finished", end, priority=1000)  # when all others are done


def remove_pages_that_are_gone(app: Sphinx) -> None:
    """Of a page that was taken out or renamed: itself, its notebook for download, its page for the wall."""
    out, pages = Path(app.outdir), [Path(page) for page in app.env.found_docs]
    for folder in sorted({page.parent for page in pages}):
        names = {page.name for page in pages if page.parent == folder} | {"search", "genindex"}
        for place, pattern in ((folder, "*.html"), (Path("_sources", folder), "*.*")):
            gone = [path for path in (out / place).glob(pattern) if path.name.split(".")[0] not in names]
            for path in gone:
                path.unlink()
    for path in (out / "wall").glob("*.html"):
        if path.stem not in {page.name for page in pages}:
            path.unlink()
