"""Record what engines say behind the doctor's prompts, healthy and with real mistakes: python -m tools.record_engines

Run it from the root of the project, in the environment that `make bench` makes; it adds what is missing to
lab/published_models/engines.npz, a run at a time (half a minute each on two cores). The engine is llama.cpp's server,
from the package xllamacpp: with weights and caches in so many bits, with its own options set wrongly, with the weights
in another order, and with the name of another architecture, which reads the pairs half-split.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import xllamacpp
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, dequantize, quantize
from tqdm import tqdm

import lab
from lab.doctor import servers
from lab.doctor.engines import HEALTHY, KEPT, MISTAKEN, STORED, WHOLE, Engines
from lab.doctor.mistakes import said
from lab.doctor.servers import Refused, Server, ask
from lab.doctor.shifts import over_the_border
from lab.doctor.table import Table
from lab.published_model import PublishedModel, weights_file
from rope_lib import interleaved_to_half_split

HEAD_DIM, WIDTH, KEYS = 64, 576, 192  # of SmolLM2
ASKED = {64: range(8), 384: range(4), 1024: (0, 3)}  # both kinds of text, plain and twice
Change = Callable[[str, torch.Tensor], torch.Tensor]


def rewritten(
    target: Path, *, architecture: str = "llama", weights: str = "F32", change: Change | None = None
) -> Path:  # fmt: skip
    """The published file for another architecture, changed, or with the matrices of its layers in another format.

    The matrix of the words stays in eight bits, as it is, unless all is float.
    """
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
        matrix, kind = dequantize(tensor.data, tensor.tensor_type), GGMLQuantizationType.F32
        if change:
            matrix = change(tensor.name, torch.tensor(matrix)).numpy()
        if tensor.tensor_type != kind:
            asked = GGMLQuantizationType[weights]
            kind = tensor.tensor_type if weights.startswith("Q") and tensor.name == "token_embd.weight" else asked
        writer.add_tensor(tensor.name, quantize(matrix, kind), raw_dtype=kind)
        if architecture == "qwen2" and tensor.name.endswith(("attn_q.weight", "attn_k.weight", "attn_v.weight")):
            bias = np.zeros(WIDTH if "attn_q" in tensor.name else KEYS, dtype=np.float32)
            writer.add_tensor(tensor.name.replace("weight", "bias"), bias)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def reordered(name: str, weights: torch.Tensor) -> torch.Tensor:
    """Rows of W_q and W_k as in the half-split layout."""
    moved = name.endswith(("attn_q.weight", "attn_k.weight"))
    return interleaved_to_half_split(weights, head_dim=HEAD_DIM, dim=0) if moved else weights


FILES = {"called qwen2": {"architecture": "qwen2"}, "rows not reordered": {"change": reordered}}


def server(path: Path, **settings) -> xllamacpp.Server:
    """llama.cpp's server with these settings of its own."""
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(path), 4096, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # more wait for each other on a busy machine
    for name, value in settings.items():
        if name.startswith("cache_type"):
            value = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{value}")
        if name == "flash_attn_type":
            value = getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{value}")
        if name == "rope_scaling_type":
            value = getattr(xllamacpp.llama_rope_scaling_type, f"LLAMA_ROPE_SCALING_TYPE_{value}")
        setattr(params, name, value)
    return xllamacpp.Server(params)


def asked(name: str, table: Table) -> list[int]:
    """The places of the prompts that an engine is asked: all, or a sixth of all tokens."""
    lengths = [len(prompt) for prompt in table.prompts]
    some = [lengths.index(length) + i for length, chosen in ASKED.items() for i in chosen]
    return [*range(len(lengths))] if name in WHOLE else some


def answers(path: Path, table: Table, chosen: list[int], *, before: tuple[int, ...] = (), **settings) -> list:
    """What the server says behind these prompts; None where it is not asked, or refuses. `before`: tokens in front."""
    running, found = server(path, **settings), [None] * len(table.prompts)
    for p in tqdm(chosen, unit=" prompts", leave=False):
        try:
            places = ask(Server(running.listening_address), [*before, *table.prompts[p]])
            found[p] = [{int(number): x for number, x in place.likely} for place in places]
        except Refused as error:
            print(len(table.prompts[p]), error)
    return found


def in_bfloat16(table: Table) -> list:
    """What the book's own code says when it computes in bfloat16, as many engines do."""
    model, found = PublishedModel(), []
    model.in_bfloat16()
    for p, prompt in enumerate(tqdm(table.prompts, unit=" prompts", leave=False)):
        [rows] = said(model, torch.tensor([prompt]), torch.tensor(table.tokens[p, 0, :1]).long(), [{}])[0]
        tops = [row.topk(KEPT) for row in rows]
        found.append([dict(zip(top.indices.tolist(), top.values.tolist(), strict=True)) for top in tops])
    return found


def shifted(path: Path, keep: int) -> list[tuple[int, float]]:
    """What the server writes over the border of a context of 512, and keeps so many first tokens."""
    running = server(path, n_ctx=512, ctx_shift=True, n_keep=keep)
    return over_the_border(Server(running.listening_address), 512, keep=keep)[1]


def main() -> None:
    """Add what is missing."""
    servers.TIMEOUT = 3600  # seconds
    table = Table.stored()
    target = Path(lab.__file__).parent / STORED
    engines = Engines.stored() if target.exists() else Engines({}, {})
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, settings) in tqdm((HEALTHY | MISTAKEN).items(), unit=" engines"):
            if name in engines.runs:
                continue
            if file == "bfloat16":
                engines.runs[name] = in_bfloat16(table)
                target.write_bytes(engines.as_bytes())
                continue
            path = weights_file()
            if file:
                path = Path(folder, f"{file}.gguf")
                options = FILES.get(file) or {"weights": file}
                path = path if path.exists() else rewritten(path, **options)
            engines.runs[name] = answers(path, table, asked(name, table), **settings)
            target.write_bytes(engines.as_bytes())
    for keep in {0, 1} - {*engines.shifts}:
        engines.shifts[keep] = shifted(weights_file(), keep)
    target.write_bytes(engines.as_bytes())


if __name__ == "__main__":
    main()
