"""Which model does what: published configurations, and what the library makes of them.

The configurations are those of `lab.configs`. The tests compare the frequencies with those that transformers computes
from the same files.
"""

import math
from dataclasses import dataclass

from lab.configs import CONFIGS
from lab.table import Table
from rope_lib.config import rotation_from_config


@dataclass(frozen=True)
class Model:
    """One row.

    Args:
        name: of the model.
        layout: of the pairs in the code that belongs to the published weights of `source`.
        trained: tokens of the longest training text, or None: the configuration does not say it.
        source: which file; up to the first comma, a name of `CONFIGS`.
        layer_type: which layers, where they differ.
    """

    name: str
    layout: str
    trained: int | None
    source: str
    layer_type: str | None = None

    @property
    def config(self) -> dict:
        """The keys of its config.json that matter to the rotation."""
        name = self.source.split(",")[0]
        known = {published["model"].split(",")[0]: published["config"] for published in CONFIGS}
        if name not in known:
            raise KeyError(
                f"{self.name} is of {name}, which lab/configs.py does not have; there are {', '.join(known)}"
            )
        return known[name]


HALF, NEIGHBOURS = "half-split", "interleaved"
MODELS = (
    Model("GPT-J 6B", NEIGHBOURS, 2048, "EleutherAI/gpt-j-6b"),
    Model("GPT-NeoX 20B", HALF, 2048, "EleutherAI/gpt-neox-20b"),
    Model("ModernBERT base, global layers", HALF, 8192, "answerdotai/ModernBERT-base", "full_attention"),
    Model("ModernBERT base, local layers", HALF, 8192, "answerdotai/ModernBERT-base", "sliding_attention"),
    Model("Llama 2 7B", HALF, 4096, "meta-llama/Llama-2-7b-hf"),
    Model("Mistral 7B v0.1", HALF, 8192, "mistralai/Mistral-7B-v0.1"),
    Model("Code Llama 7B", HALF, 16384, "codellama/CodeLlama-7b-hf"),
    Model("Llama 3 8B", HALF, 8192, "meta-llama/Meta-Llama-3-8B"),
    Model("Llama 3.1 8B", HALF, 131072, "meta-llama/Llama-3.1-8B"),
    Model("Llama 4 Scout", NEIGHBOURS, 262144, "meta-llama/Llama-4-Scout-17B-16E-Instruct, its text_config"),
    Model("SmolLM3 3B", HALF, 65536, "HuggingFaceTB/SmolLM3-3B"),
    Model("Qwen2.5 7B", HALF, 32768, "Qwen/Qwen2.5-7B-Instruct, with the rope_scaling of its model card"),
    Model("Qwen3 8B", HALF, 32768, "Qwen/Qwen3-8B"),
    Model("Qwen2-VL 7B", HALF, 16384, "Qwen/Qwen2-VL-7B-Instruct"),
    Model("Qwen3-VL 8B", HALF, 262144, "Qwen/Qwen3-VL-8B-Instruct, its text_config"),
    Model("InternLM2 1.8B", HALF, 32768, "internlm/internlm2-chat-1_8b"),
    Model("Phi-3 mini 128k", HALF, None, "microsoft/Phi-3-mini-128k-instruct, first upload"),
    Model("Gemma 7B", HALF, 8192, "google/gemma-7b"),
    Model("Gemma 3 12B, global layers", HALF, 131072, "unsloth/gemma-3-12b-it", "full_attention"),
    Model("Gemma 3 12B, local layers", HALF, 131072, "unsloth/gemma-3-12b-it", "sliding_attention"),
    Model("Gemma 4 E2B, global layers", HALF, None, "google/gemma-4-E2B, its text_config", "full_attention"),
    Model("Gemma 4 E2B, local layers", HALF, None, "google/gemma-4-E2B, its text_config", "sliding_attention"),
    Model("GLM-4 9B", NEIGHBOURS, None, "THUDM/glm-4-9b-chat, its rope_ratio 500 times 10000"),
    Model("GLM-4.5", HALF, 131072, "zai-org/GLM-4.5"),
    Model("DeepSeek-V3", NEIGHBOURS, 131072, "deepseek-ai/DeepSeek-V3"),
    Model("Kimi K2", NEIGHBOURS, 32768, "moonshotai/Kimi-K2-Instruct"),
    Model("gpt-oss 20B", HALF, None, "openai/gpt-oss-20b"),
    Model("Qwen3-Next 80B", HALF, None, "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    Model("MiniMax-M2", HALF, None, "MiniMaxAI/MiniMax-M2"),
    Model("OLMo 3 7B, global layers", HALF, 65536, "allenai/Olmo-3-1025-7B", "full_attention"),
    Model("OLMo 3 7B, local layers", HALF, 65536, "allenai/Olmo-3-1025-7B", "sliding_attention"),
    Model("Ministral 3 8B", HALF, None, "mistralai/Ministral-3-8B-Instruct-2512, its text_config"),
)


def row(model: Model) -> dict:
    """What the table shows of a model, as the library reads its configuration."""
    found = rotation_from_config(model.config, layer_type=model.layer_type)
    stretched = 0 if found.rope_type == "dynamic" else int(found.factor * (found.trained or 0))
    longest = max(found.longest or 0, stretched)
    inv_freq, attention_factor = found.frequencies(longest if found.rope_type == "longrope" else None)
    turning = inv_freq[inv_freq > 0]
    scaling = "none" if found.rope_type == "default" else found.rope_type
    return {
        "base": found.base,
        "rotated": f"{2 * len(turning)} of {found.head_dim}",
        "longest": longest,
        "scaling": f"{scaling} (M-RoPE)" if "mrope_section" in found.set_aside else scaling,
        "slowest": 2 * math.pi / turning[-1].item(),
        "attention_factor": attention_factor,
    }


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
    "ModernBERT base, global layers": "arXiv 2412.13663, on context length",
    "ModernBERT base, local layers": "the same",
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
    "GLM-4.5": "arXiv 2508.06471, on mid-training",
    "Kimi K2": "arXiv 2507.20534, on pre-training",
    "OLMo 3 7B, global layers": "arXiv 2512.13961, section 3.6.4",
    "OLMo 3 7B, local layers": "the same",
}


def files() -> Table:
    """Where configurations and lengths are from."""
    rows = [(model.name, model.source, TRAINED_BY.get(model.name, "not said")) for model in MODELS]
    return Table(("Model", "config.json of", "Length in training"), rows)
