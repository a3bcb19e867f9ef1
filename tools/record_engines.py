"""Record what an engine says behind the doctor's prompts, right and with real mistakes: python -m tools.record_engines

Run it from the root of the project, in the environment that `make bench` makes; it writes tests/data/engines.json. The
engine is llama.cpp's server, from the package xllamacpp: as it is, with its own options set wrongly, with the weights
in another order, and with the name of another architecture, which reads the pairs half-split.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import xllamacpp
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, dequantize
from tqdm import tqdm

from lab.doctor.servers import Refused, Server, ask
from lab.doctor.shifts import over_the_border
from lab.doctor.table import Table
from lab.published_model import PublishedModel, weights_file
from rope_lib import interleaved_to_half_split

DATA = Path(__file__).parent.parent / "tests" / "data" / "engines.json"
KEPT = 8  # of the likeliest tokens
HEAD_DIM, WIDTH, KEYS = PublishedModel.head_dim, 576, 192


def as_float32(
    target: Path, *, architecture: str = "llama", change: Callable[[str, torch.Tensor], torch.Tensor] | None = None
) -> None:
    """The published file with its weights in float32, for another architecture, or changed."""
    reader, writer = GGUFReader(weights_file()), GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind, *inner = field.types
        name = name.replace("llama.", f"{architecture}.")
        if kind is GGUFValueType.ARRAY:
            writer.add_key_value(name, field.contents(), kind, sub_type=inner[0])
        else:
            writer.add_key_value(name, field.contents(), kind)
    for tensor in reader.tensors:
        weights = torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        weights = change(tensor.name, weights) if change else weights
        writer.add_tensor(tensor.name, weights.numpy(), raw_dtype=GGMLQuantizationType.F32)
        if architecture == "qwen2" and tensor.name.endswith(("attn_q.weight", "attn_k.weight", "attn_v.weight")):
            bias = np.zeros(WIDTH if "attn_q" in tensor.name else KEYS, dtype=np.float32)
            writer.add_tensor(tensor.name.replace("weight", "bias"), bias)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def reordered(name: str, weights: torch.Tensor) -> torch.Tensor:
    """Rows of W_q and W_k as in the half-split layout."""
    moved = name.endswith(("attn_q.weight", "attn_k.weight"))
    return interleaved_to_half_split(weights, head_dim=HEAD_DIM, dim=0) if moved else weights


def answers(path: Path, table: Table, **settings) -> list:
    """What the server says with these settings of its own; null where it refuses."""
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(path), 4096, 1
    for name, value in settings.items():
        setattr(params, name, value)
    server, found = xllamacpp.Server(params), []
    for prompt in tqdm(table.prompts, unit=" prompts", leave=False):
        try:
            said = ask(Server(server.listening_address), prompt)
        except Refused as error:
            print(len(prompt), error)
            found.append(None)
            continue
        likely = [sorted(place.likely, key=lambda item: -item[1])[:KEPT] for place in said]
        found.append([{number: round(x, 3) for number, x in place} for place in likely])
    return found


def shifted(path: Path, keep: int) -> list[list]:
    """What the server writes over the border of a context of 512, and keeps so many first tokens."""
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(path), 512, 1
    params.ctx_shift, params.n_keep = True, keep
    server = xllamacpp.Server(params)
    _, written = over_the_border(Server(server.listening_address), 512, keep=keep)
    return [[token, round(x, 4)] for token, x in written]


def main() -> None:
    """Write the file."""
    table, own = Table.stored(), weights_file()
    yarn = {"rope_scaling_type": xllamacpp.llama_rope_scaling_type.LLAMA_ROPE_SCALING_TYPE_YARN}
    yarn |= {"rope_freq_scale": 0.25, "yarn_orig_ctx": 8192}
    with tempfile.TemporaryDirectory() as folder:
        other, moved = Path(folder, "qwen2.gguf"), Path(folder, "moved.gguf")
        as_float32(other, architecture="qwen2")
        as_float32(moved, change=reordered)
        runs = {
            "as it is": answers(own, table),
            "rope_freq_base 10,000": answers(own, table, rope_freq_base=10_000.0),
            "rope_freq_scale 0.5": answers(own, table, rope_freq_scale=0.5),
            "YaRN by 4": answers(own, table, **yarn),
            "called qwen2": answers(other, table),
            "rows not reordered": answers(moved, table),
            "a context of 1,024": answers(own, table, n_ctx=1024),
        }
    shifts = {str(keep): shifted(own, keep) for keep in (0, 1)}
    recorded = {"engine": f"llama.cpp, xllamacpp {xllamacpp.__version__}", "runs": runs, "shifts": shifts}
    DATA.write_text(json.dumps(recorded) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
