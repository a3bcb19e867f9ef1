"""Which model does what: published configurations, and what the library makes of them.

`MODELS` was typed in from the files of the models: of each only the keys that matter to the rotation, as they are
spelled there. The tests compare the speeds with those that transformers computes from the same files.
"""

import math
from dataclasses import dataclass

from lab.table import Table
from rope_lib.config import frequencies_from_config


@dataclass(frozen=True)
class Model:
    """One row.

    Args:
        name: of the model.
        layout: of the pairs in the code that belongs to the published weights of `source`.
        trained: tokens of the longest training text, or None: the configuration does not say it.
        source: which file.
        config: keys of its config.json.
        layer_type: which layers, where they differ.
    """

    name: str
    layout: str
    trained: int | None
    source: str
    config: dict
    layer_type: str | None = None


def yarn(factor: float, original: int, **more: float) -> dict:
    """A rope_scaling of type yarn with the usual beta_fast and beta_slow."""
    betas = {"beta_fast": 32, "beta_slow": 1}
    return {"type": "yarn", "factor": factor, "original_max_position_embeddings": original} | betas | more


LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3_text", "head_dim": 256, "max_position_embeddings": 131072, "rope_theta": 1000000,
    "rope_local_base_freq": 10000, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
}  # fmt: skip
# Phi-3 mini
PHI3_LONG = [
    1.0299999713897705, 1.0499999523162842, 1.0499999523162842, 1.0799999237060547, 1.2299998998641968,
    1.2299998998641968, 1.2999999523162842, 1.4499999284744263, 1.5999999046325684, 1.6499998569488525,
    1.8999998569488525, 2.859999895095825, 3.68999981880188, 5.419999599456787, 5.489999771118164, 5.489999771118164,
    9.09000015258789, 11.579999923706055, 15.65999984741211, 15.769999504089355, 15.789999961853027, 18.360000610351562,
    21.989999771118164, 23.079999923706055, 30.009998321533203, 32.35000228881836, 32.590003967285156,
    35.56000518798828, 39.95000457763672, 53.840003967285156, 56.20000457763672, 57.95000457763672, 59.29000473022461,
    59.77000427246094, 59.920005798339844, 61.190006256103516, 61.96000671386719, 62.50000762939453, 63.3700065612793,
    63.48000717163086, 63.48000717163086, 63.66000747680664, 63.850006103515625, 64.08000946044922, 64.760009765625,
    64.80001068115234, 64.81001281738281, 64.81001281738281,
]  # fmt: skip
PHI3_SHORT = [
    1.05, 1.05, 1.05, 1.1, 1.1, 1.1500000000000001, 1.2000000000000002, 1.2500000000000002, 1.3000000000000003,
    1.3500000000000003, 1.5000000000000004, *[2.000000000000001] * 21, 2.0500000000000007, 2.0500000000000007,
    2.0500000000000007, 2.1000000000000005, 2.1000000000000005, 2.1000000000000005, 2.1500000000000004,
    2.1500000000000004, 2.3499999999999996, 2.549999999999999, 2.5999999999999988, 2.5999999999999988,
    2.7499999999999982, 2.849999999999998, 2.849999999999998, 2.9499999999999975,
]  # fmt: skip
PHI3 = {"type": "su", "long_factor": PHI3_LONG, "short_factor": PHI3_SHORT}
GEMMA4 = {
    "model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "max_position_embeddings": 131072,
    "rope_parameters": {
        "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
    },
}  # fmt: skip
DEEPSEEK = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "max_position_embeddings": 163840, "rope_theta": 10000}


def sizes(hidden_size: int, heads: int, longest: int, **more: object) -> dict:
    """The keys that most configurations have."""
    usual = {"hidden_size": hidden_size, "num_attention_heads": heads, "max_position_embeddings": longest}
    return usual | more


HALF, NEIGHBOURS = "half-split", "interleaved"
MODELS = (
    Model(
        "GPT-J 6B", NEIGHBOURS, 2048, "EleutherAI/gpt-j-6b",
        {"n_embd": 4096, "n_head": 16, "n_positions": 2048, "rotary": True, "rotary_dim": 64},
    ),
    Model("GPT-NeoX 20B", HALF, 2048, "EleutherAI/gpt-neox-20b", sizes(6144, 64, 2048, rotary_pct=0.25)),
    Model("Llama 2 7B", HALF, 4096, "meta-llama/Llama-2-7b-hf", sizes(4096, 32, 4096)),
    Model("Mistral 7B v0.1", HALF, 8192, "mistralai/Mistral-7B-v0.1", sizes(4096, 32, 32768, rope_theta=10000.0)),
    Model("Code Llama 7B", HALF, 16384, "codellama/CodeLlama-7b-hf", sizes(4096, 32, 16384, rope_theta=1000000)),
    Model("Llama 3 8B", HALF, 8192, "meta-llama/Meta-Llama-3-8B", sizes(4096, 32, 8192, rope_theta=500000.0)),
    Model(
        "Llama 3.1 8B", HALF, 131072, "meta-llama/Llama-3.1-8B",
        sizes(4096, 32, 131072, rope_theta=500000.0, rope_scaling=LLAMA3),
    ),
    Model(
        "Llama 4 Scout", NEIGHBOURS, 262144, "meta-llama/Llama-4-Scout-17B-16E-Instruct, its text_config",
        sizes(
            5120, 40, 10485760, head_dim=128, rope_theta=500000.0,
            rope_scaling=LLAMA3 | {"factor": 16.0, "high_freq_factor": 1.0},
        ),
    ),
    Model(
        "SmolLM3 3B", HALF, 65536, "HuggingFaceTB/SmolLM3-3B",
        sizes(2048, 16, 65536, rope_theta=5000000.0, no_rope_layers=[1, 1, 1, 0] * 9),
    ),
    Model(
        "Qwen2.5 7B", HALF, 32768, "Qwen/Qwen2.5-7B-Instruct, with the rope_scaling of its model card",
        sizes(3584, 28, 32768, rope_theta=1000000.0, rope_scaling=yarn(4.0, 32768)),
    ),
    Model("Qwen3 8B", HALF, 32768, "Qwen/Qwen3-8B", sizes(4096, 32, 40960, head_dim=128, rope_theta=1000000)),
    Model(
        "Qwen2-VL 7B", HALF, 16384, "Qwen/Qwen2-VL-7B-Instruct",
        sizes(3584, 28, 32768, rope_theta=1e6, rope_scaling={"type": "mrope", "mrope_section": [16, 24, 24]}),
    ),
    Model(
        "Qwen3-VL 8B", HALF, 262144, "Qwen/Qwen3-VL-8B-Instruct, its text_config",
        sizes(
            4096, 32, 262144, head_dim=128, rope_theta=5000000,
            rope_scaling={"rope_type": "default", "mrope_section": [24, 20, 20], "mrope_interleaved": True},
        ),
    ),
    Model(
        "InternLM2 1.8B", HALF, 32768, "internlm/internlm2-chat-1_8b",
        sizes(2048, 16, 32768, rope_theta=1000000, rope_scaling={"type": "dynamic", "factor": 2.0}),
    ),
    Model(
        "Phi-3 mini 128k", HALF, None, "microsoft/Phi-3-mini-128k-instruct, first upload",
        sizes(3072, 32, 131072, original_max_position_embeddings=4096, rope_theta=10000.0, rope_scaling=PHI3),
    ),
    Model("Gemma 7B", HALF, 8192, "google/gemma-7b", sizes(3072, 16, 8192, head_dim=256, rope_theta=10000.0)),
    Model("Gemma 3 12B, global layers", HALF, 131072, "google/gemma-3-12b-it", GEMMA3, "full_attention"),
    Model("Gemma 3 12B, local layers", HALF, 131072, "google/gemma-3-12b-it", GEMMA3, "sliding_attention"),
    Model("Gemma 4 E2B, global layers", HALF, None, "google/gemma-4-E2B, its text_config", GEMMA4, "full_attention"),
    Model("Gemma 4 E2B, local layers", HALF, None, "google/gemma-4-E2B, its text_config", GEMMA4, "sliding_attention"),
    Model(
        "GLM-4 9B", NEIGHBOURS, None, "THUDM/glm-4-9b-chat, its rope_ratio 500 times 10000",
        sizes(4096, 32, 131072, model_type="glm", head_dim=128, rope_theta=5000000.0),
    ),
    Model(
        "DeepSeek-V3", NEIGHBOURS, 131072, "deepseek-ai/DeepSeek-V3",
        DEEPSEEK | {"rope_scaling": yarn(40, 4096, mscale=1.0, mscale_all_dim=1.0)},
    ),
    Model(
        "gpt-oss 20B", HALF, None, "openai/gpt-oss-20b",
        {
            "head_dim": 64, "max_position_embeddings": 131072, "rope_theta": 150000,
            "rope_scaling": yarn(32.0, 4096, truncate=False),
        },
    ),
)  # fmt: skip


def row(model: Model) -> dict:
    """What the table shows of a model; speeds and factor are computed by the library from its configuration."""
    config, local = model.config, model.layer_type == "sliding_attention"
    inv_freq, attention_factor = frequencies_from_config(config, layer_type=model.layer_type)
    turning = inv_freq[inv_freq > 0]
    rope = config.get("rope_parameters", {}).get(model.layer_type) or config.get("rope_scaling") or {}
    if local and "rope_scaling" in config:  # Gemma 3 scales its global layers only
        rope = {}
    base = rope.get("rope_theta") or config.get("rope_local_base_freq" if local else "rope_theta", 10000)
    kind = rope.get("rope_type", rope.get("type", "default"))
    return {
        "base": base,
        "rotated": f"{2 * len(turning)} of {head_dim(config, model.layer_type)}",
        "longest": config.get("max_position_embeddings") or config["n_positions"],
        "scaling": SHOWN.get("mrope" if "mrope_section" in rope else kind, kind),
        "slowest": 2 * math.pi / turning[-1].item(),
        "attention_factor": attention_factor,
    }


SHOWN = {"default": "none", "mrope": "none (M-RoPE)", "su": "longrope"}


def head_dim(config: dict, layer_type: str | None = None) -> int:
    """All dimensions of a query's head, rotated or not."""
    if "qk_nope_head_dim" in config:
        return config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
    if layer_type == "full_attention" and "global_head_dim" in config:
        return config["global_head_dim"]
    width, heads = ("n_embd", "n_head") if "n_embd" in config else ("hidden_size", "num_attention_heads")
    return config.get("head_dim") or config[width] // config[heads]


def table() -> Table:
    """All models."""
    heads = ("Model", "Pairs", "Base", "Rotated", "Trained on", "Longest", "Scaling", "Slowest pair")
    rows = []
    for model in MODELS:
        found = row(model)
        trained = f"{model.trained:,}" if model.trained else "?"
        longest, slowest = f"{found['longest']:,}", f"{found['slowest']:,.0f}"
        start = (model.name, model.layout, f"{found['base']:,.0f}", found["rotated"])
        rows.append((*start, trained, longest, found["scaling"], slowest))
    return Table(heads, rows)


SHORT = ("GPT-J 6B", "Llama 2 7B", "Llama 3.1 8B", "Qwen2.5 7B", "Gemma 3 12B, global layers", "DeepSeek-V3")


def short_table() -> Table:
    """Half a dozen models, without lengths."""
    whole = table()
    columns = (0, 1, 2, 3, 6)
    rows = [tuple(cells[column] for column in columns) for cells in whole.rows if cells[0] in SHORT]
    return Table(tuple(whole.heads[column] for column in columns), rows)


TRAINED_BY = {  # where the length in training is said; it is not in configurations
    "GPT-J 6B": "n_positions",
    "GPT-NeoX 20B": "max_position_embeddings",
    "Llama 2 7B": "arXiv 2307.09288, table 1",
    "Mistral 7B v0.1": "arXiv 2310.06825, table 1",
    "Code Llama 7B": "arXiv 2308.12950, section 2.4",
    "Llama 3 8B": "arXiv 2407.21783, section 3.4.1",
    "Llama 3.1 8B": "arXiv 2407.21783, section 3.4.2",
    "Llama 4 Scout": "ai.meta.com/blog/llama-4-multimodal-intelligence",
    "SmolLM3 3B": "its model card",
    "Qwen2.5 7B": "arXiv 2412.15115, section 3.3",
    "Qwen3 8B": "arXiv 2505.09388, section 3.2",
    "Qwen2-VL 7B": "arXiv 2409.12191, section 3.3.2",
    "Qwen3-VL 8B": "arXiv 2511.21631, table 1",
    "InternLM2 1.8B": "arXiv 2403.17297, abstract",
    "Gemma 7B": "arXiv 2403.08295, table 1",
    "Gemma 3 12B, global layers": "arXiv 2503.19786, on long context",
    "Gemma 3 12B, local layers": "the same",
    "DeepSeek-V3": "arXiv 2412.19437, section 4.3",
}


def files() -> Table:
    """Where configurations and lengths are from."""
    rows = [(model.name, model.source, TRAINED_BY.get(model.name, "not said")) for model in MODELS]
    return Table(("Model", "config.json of", "Length in training"), rows)
