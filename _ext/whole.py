"""A build that was broken off must not pass for whole: the next one begins anew.

Sphinx takes the pages that a broken build wrote for done, and leaves out what that build had not come to: the search
index, say. So _build/running is a file with a line in it while a build runs, and an empty one after it has ended well.
"""

import shutil
from pathlib import Path

from sphinx.application import Sphinx

try:
    from fcntl import LOCK_EX, flock
except ImportError:  # on Windows, where two builds at once are not guarded
    LOCK_EX, flock = 0, lambda *_: None


def begin(app: Sphinx) -> None:
    """Wait for a build that is running; remove what one that was broken off has left."""
    mark = Path(app.outdir).with_name("running")
    mark.parent.mkdir(parents=True, exist_ok=True)
    running = mark.open("a+", encoding="ascii")  # the lock ends with the process, or with this build
    flock(running, LOCK_EX)
    running.seek(0)
    if running.read():
        for folder in (app.outdir, app.doctreedir):
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).mkdir(parents=True)
    else:
        running.write("A build is running, or was broken off.\n")
        running.flush()

    def end(app: Sphinx, exception: Exception | None) -> None:
        if exception is None:
            mark.write_bytes(b"")
        running.close()

    app.connect("build-finished", end, priority=1000)  # when all others are done
