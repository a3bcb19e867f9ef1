"""Record what two other programs make of the published model: writes tests/data/published_model.json.

Run it from the root of the project, in the environment that `make bench` makes:

    .venv-bench/bin/python -m tools.record_published

transformers' Llama gets the same float32 weights with their rows in the half-split order (Theorem 6.1); llama.cpp gets
them as a file of float32, since with weights of four bits it rounds activations, too.
"""

import json
import tempfile
import urllib.request
from pathlib import Path

import torch
import transformers
import xllamacpp

from lab.opened import texts
from lab.published_model import PublishedModel, weights_file
from rope_lib import interleaved_to_half_split
from tools.record_engines import as_float32

DATA = Path(__file__).parent.parent / "tests" / "data" / "published_model.json"
COUNT, TOP = 200, 5
NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def in_transformers(model: PublishedModel) -> transformers.LlamaForCausalLM:
    """The same model there."""
    config = transformers.LlamaConfig(
        hidden_size=576, intermediate_size=1536, num_hidden_layers=model.layers, num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads, head_dim=model.head_dim, vocab_size=49152, tie_word_embeddings=True,
        rms_norm_eps=model.epsilon, max_position_embeddings=model.trained_to,
        rope_parameters={"rope_type": "default", "rope_theta": model.base},
    )  # fmt: skip
    weights = {"model.embed_tokens.weight": model.words, "lm_head.weight": model.words,
               "model.norm.weight": model.last_norm}  # fmt: skip
    for layer, block in enumerate(model.blocks):
        for part, weight in block.items():
            moved = part in ("attn_q", "attn_k")
            weight = interleaved_to_half_split(weight, head_dim=model.head_dim, dim=0) if moved else weight
            weights[f"model.layers.{layer}.{NAMES[part]}.weight"] = weight
    peer = transformers.LlamaForCausalLM(config)
    peer.load_state_dict(weights)
    return peer.eval()


def of_llama_cpp(path: Path, tokens: list[int]) -> list[list]:
    """For each beginning of the text: the likeliest tokens that come next, and their log-probabilities."""
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel = str(path), 512, 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32  # it would round keys to float16
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(params)
    found = []
    for n in range(1, len(tokens) + 1):
        asked = {"prompt": tokens[:n], "n_predict": 1, "n_probs": TOP, "temperature": 0.0}
        request = urllib.request.Request(f"{server.listening_address}/completion", json.dumps(asked).encode())
        with urllib.request.urlopen(request) as answer:
            [likely] = json.load(answer)["completion_probabilities"]
        found.append([[top["id"], round(top["logprob"], 6)] for top in likely["top_logprobs"]])
    return found


def main() -> None:
    """Write the file."""
    model = PublishedModel(device="cpu")
    tokens = texts()["book"][:COUNT]
    with torch.no_grad():
        likely = in_transformers(model)(tokens[None]).logits[0].log_softmax(-1)
    values, ids = (part.tolist() for part in likely.topk(TOP))
    top = [[[i, round(x, 6)] for i, x in zip(*row, strict=True)] for row in zip(ids, values, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "float32.gguf")
        as_float32(path)
        whole = of_llama_cpp(path, tokens.tolist())
    rounded = of_llama_cpp(weights_file(), tokens.tolist())
    recorded = {
        "source": f"the {TOP} likeliest tokens and their log-probabilities behind each of the first {COUNT} tokens",
        "transformers": {"version": transformers.__version__, "top": top},
        "llama.cpp, float32": {"version": f"xllamacpp {xllamacpp.__version__}", "top": whole},
        "llama.cpp, four bits": {"version": f"xllamacpp {xllamacpp.__version__}", "top": rounded},
    }
    DATA.write_text(json.dumps(recorded) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
