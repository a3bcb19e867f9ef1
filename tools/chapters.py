"""Re-run chapters, store them in one form: python -m tools.chapters [05 ...]

Running twice leaves git clean. Nothing is written if a cell fails. A cell that measures time (tag nbval-ignore-output)
keeps its output; clear it to store a new one.
"""

import os
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "chapters"
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
KEPT = ("break", "corrects", "covers", "mystnb", "tags")
DROPPED = ("jupyter", "execution", "collapsed", "editable", "slideshow")
SCRIPT = re.compile(r"<script>.*?</script>", re.DOTALL)
HIDDEN = {  # what the pages fold, JupyterLab folds too
    "hide-input": {"source_hidden": True},
    "hide-cell": {"source_hidden": True, "outputs_hidden": True},
}


def canonical(metadata: dict) -> dict:
    """What pages and tests ask for, and what JupyterLab is to fold."""
    if lost := set(metadata) - {*KEPT, *DROPPED}:
        sys.exit(
            f"Error: the metadata of a cell has {', '.join(sorted(lost))}; known are {', '.join(KEPT)} (below mystnb a "
            "figure has its name, caption and alt text). Nothing was written."
        )
    kept = {key: metadata[key] for key in KEPT if key in metadata}
    for tag in kept.get("tags", []):
        if tag in HIDDEN:
            kept["jupyter"] = HIDDEN[tag]
    return kept


def run(path: Path) -> None:
    """Execute one notebook in a fresh kernel and write it back."""
    notebook = nbformat.read(path, as_version=4)
    measured = {
        cell.id: cell.outputs for cell in notebook.cells if "nbval-ignore-output" in cell.metadata.get("tags", [])
    }
    NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # else the pieces depend on the timing
        resources={"metadata": {"path": str(FOLDER)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    ).execute()
    notebook.metadata = {"kernelspec": KERNELSPEC}
    for cell in notebook.cells:
        if measured.get(cell.id):
            cell.outputs = measured[cell.id]
        cell.metadata = canonical(cell.metadata)
        for output in cell.get("outputs", []):
            if "rope-piece" in (page := output.get("data", {}).get("text/html", "")):
                # its script comes with the page, or when the cell is run
                output["data"]["text/html"] = SCRIPT.sub("", page)
        for numbered in (cell, *cell.get("outputs", [])):
            if "execution_count" in numbered:  # a new cell would change those of all below it
                numbered["execution_count"] = 1
    nbformat.write(notebook, path)


def main() -> None:
    """Those that are named by their beginnings, or all."""
    paths = sorted(FOLDER.glob("*.ipynb"))
    asked = tuple(Path(name).stem for name in sys.argv[1:]) or ("",)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the threads of a busy machine wait for one another, for minutes
    for stem in asked:
        if not any(path.stem.startswith(stem) for path in paths):
            sys.exit(f"Error: no chapter begins with {stem}; there are {', '.join(path.stem for path in paths)}")
    for path in (path for path in paths if path.stem.startswith(asked)):
        start = time.perf_counter()
        print(f"{path.name} ... ", end="", flush=True)
        run(path)
        print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
