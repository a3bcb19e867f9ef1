"""Published configurations: of each only the keys that matter to the rotation, spelled as in the file of the model.

They were typed in. "confirmed" says where copies of the values were found. The table of models shows some of them, and
tools/record_transformers.py records what transformers makes of each.
"""

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
PHI4_LONG = [
    1, 1.118320672, 1.250641126, 1.398617824, 1.564103225, 1.74916897, 1.956131817, 2.187582649, 2.446418898,
    2.735880826, 3.059592084, 3.421605075, 3.826451687, 4.279200023, 4.785517845, 5.351743533, 5.984965424, 6.693110555,
    7.485043894, 8.370679318, 9.36110372, 10.4687158, 11.70738129, 13.09260651, 14.64173252, 16.37415215, 18.31155283,
    20.47818807, 22.90118105, 25.61086418, 28.64115884, 32.03, 32.1, 32.13, 32.23, 32.6, 32.61, 32.64, 32.66, 32.7,
    32.71, 32.93, 32.97, 33.28, 33.49, 33.5, 44.16, 47.77,
]  # fmt: skip
CONFIGS = [
    {
        "model": "meta-llama/Llama-2-7b-hf, config.json",
        "confirmed": "copies of the whole file in several repositories; it has no rope_theta",
        "config": {
            "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 4096,
            "rope_scaling": None,
        },
    },
    {
        "model": "meta-llama/Meta-Llama-3-8B, config.json",
        "confirmed": "litgpt 0.5.13 (sizes, base); a copy of a fine-tuned model's file",
        "config": {
            "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 8192,
            "rope_scaling": None, "rope_theta": 500000.0,
        },
    },
    {
        "model": "meta-llama/Llama-3.1-8B, config.json",
        "confirmed": "litgpt 0.5.13 (sizes, base, factors); spelling: copies of the file of the 70B model",
        "config": {
            "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 131072,
            "rope_scaling": {
                "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192, "rope_type": "llama3",
            },
            "rope_theta": 500000.0,
        },
    },
    {
        "model": "meta-llama/Llama-3.2-1B, config.json",
        "confirmed": "litgpt 0.5.13; a copy of all its values that names the file",
        "config": {
            "model_type": "llama", "head_dim": 64, "hidden_size": 2048, "num_attention_heads": 32,
            "max_position_embeddings": 131072,
            "rope_scaling": {
                "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192, "rope_type": "llama3",
            },
            "rope_theta": 500000.0,
        },
    },
    {
        "model": "meta-llama/Llama-4-Scout-17B-16E-Instruct, config.json, text_config",
        "confirmed": "copies of its rope_scaling in several repositories, one of which names the file",
        "config": {
            "model_type": "llama4_text", "head_dim": 128, "hidden_size": 5120, "num_attention_heads": 40,
            "max_position_embeddings": 10485760,
            "rope_scaling": {
                "factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192, "rope_type": "llama3",
            },
            "rope_theta": 500000.0,
        },
    },
    {
        "model": "mistralai/Mistral-7B-v0.1, config.json",
        "confirmed": "the configuration as transformers 4.37 printed it, in two repositories",
        "config": {
            "model_type": "mistral", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 32768,
            "rope_theta": 10000.0, "sliding_window": 4096,
        },
    },
    {
        "model": "Qwen/Qwen2-7B-Instruct, config.json",
        "confirmed": "a copy of the whole file",
        "config": {
            "model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "max_position_embeddings": 32768,
            "rope_theta": 1000000.0, "sliding_window": 131072, "use_sliding_window": False,
        },
    },
    {
        "model": "Qwen/Qwen2.5-7B-Instruct, config.json with the rope_scaling of its model card",
        "confirmed": "litgpt 0.5.13 (sizes, base); the documentation of verl quotes the rope_scaling",
        "config": {
            "model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "max_position_embeddings": 32768,
            "rope_theta": 1000000.0,
            "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"},
        },
    },
    {
        "model": "Qwen/Qwen2-VL-7B-Instruct, config.json",
        "confirmed": "copies of the file in several repositories",
        "config": {
            "model_type": "qwen2_vl", "hidden_size": 3584, "num_attention_heads": 28, "max_position_embeddings": 32768,
            "rope_theta": 1000000.0, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
        },
    },
    {
        "model": "Qwen/Qwen3-8B, config.json",
        "confirmed": "two copies of the whole file that name it",
        "config": {
            "model_type": "qwen3", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128,
            "max_position_embeddings": 40960, "rope_scaling": None, "rope_theta": 1000000,
        },
    },
    {
        "model": "Qwen/Qwen3-VL-8B-Instruct, config.json, text_config",
        "confirmed": "a copy of the whole file; another of its sizes; the same block in those of 2B and 4B",
        "config": {
            "model_type": "qwen3_vl_text", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128,
            "max_position_embeddings": 262144, "rope_theta": 5000000,
            "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
        },
    },
    {
        "model": "codellama/CodeLlama-7b-hf, config.json",
        "confirmed": "copies of the whole file in three repositories; the base in a copy of Meta's params.json",
        "config": {
            "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 16384,
            "rope_scaling": None, "rope_theta": 1000000,
        },
    },
    {
        "model": "HuggingFaceTB/SmolLM3-3B, config.json",
        "confirmed": "two copies of its values that name the revision or the file",
        "config": {
            "model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 36,
            "max_position_embeddings": 65536, "rope_scaling": None, "rope_theta": 5000000.0,
            "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0] * 9,
        },
    },
    {
        "model": "microsoft/Phi-3-mini-128k-instruct, config.json of the first upload",
        "confirmed": "a builder for torchtune (sizes, all factors, su); spelling: copies of Phi-3-vision's",
        "lengths": [4096, 4097],
        "config": {
            "model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "max_position_embeddings": 131072,
            "original_max_position_embeddings": 4096, "rope_theta": 10000.0,
            "rope_scaling": PHI3,
        },
    },
    {
        "model": "microsoft/Phi-4-mini-instruct, config.json",
        "confirmed": "copies of the file in several repositories",
        "lengths": [131072],
        "config": {
            "model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 24, "max_position_embeddings": 131072,
            "original_max_position_embeddings": 4096, "partial_rotary_factor": 0.75, "rope_theta": 10000.0,
            "rope_scaling": {"long_factor": PHI4_LONG, "short_factor": [1.0] * 48, "type": "longrope"},
        },
    },
    {
        "model": "microsoft/phi-2, config.json",
        "confirmed": "copies of the whole file in several repositories; litgpt 0.5.13",
        "config": {
            "model_type": "phi", "hidden_size": 2560, "num_attention_heads": 32, "max_position_embeddings": 2048,
            "partial_rotary_factor": 0.4, "rope_scaling": None, "rope_theta": 10000.0,
        },
    },
    {
        "model": "google/gemma-7b, config.json",
        "confirmed": "litgpt 0.5.13; the defaults of transformers' class",
        "config": {
            "model_type": "gemma", "head_dim": 256, "hidden_size": 3072, "num_attention_heads": 16,
            "max_position_embeddings": 8192, "rope_scaling": None, "rope_theta": 10000.0,
        },
    },
    {
        "model": "google/gemma-3-1b-it, config.json",
        "confirmed": "copies of the whole file in several repositories; litgpt 0.5.13",
        "layer_types": ["full_attention", "sliding_attention"],
        "config": {
            "model_type": "gemma3_text", "head_dim": 256, "hidden_size": 1152, "num_attention_heads": 4,
            "max_position_embeddings": 32768, "rope_local_base_freq": 10000, "rope_scaling": None,
            "rope_theta": 1000000, "sliding_window_pattern": 6,
        },
    },
    {
        "model": "unsloth/gemma-3-12b-it, config.json, text_config",
        "confirmed": "a copy of the whole file; litgpt 0.5.13 (sizes, bases, factor)",
        "layer_types": ["full_attention", "sliding_attention"],
        "config": {
            "model_type": "gemma3_text", "head_dim": 256, "hidden_size": 3840, "num_attention_heads": 16,
            "max_position_embeddings": 131072, "rope_local_base_freq": 10000,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 1000000, "sliding_window_pattern": 6,
        },
    },
    {
        "model": "google/gemma-3-27b-it, config.json, text_config",
        "confirmed": "a copy of the whole file in a test of TensorRT-LLM",
        "incomplete": "what is the default of its class is left out: both bases, too",
        "layer_types": ["full_attention", "sliding_attention"],
        "config": {
            "model_type": "gemma3_text", "head_dim": 128, "hidden_size": 5376, "num_attention_heads": 32,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window_pattern": 6,
        },
    },
    {
        "model": "google/gemma-4-E2B, config.json, text_config",
        "confirmed": "copies of the text_config in several repositories; the defaults of transformers' class",
        "layer_types": ["full_attention", "sliding_attention"],
        "config": {
            "model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "hidden_size": 1536,
            "num_attention_heads": 8, "num_hidden_layers": 35, "max_position_embeddings": 131072,
            "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7,
            "rope_parameters": {
                "full_attention": {
                    "partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional",
                },
                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
            },
        },
    },
    {
        "model": "answerdotai/ModernBERT-base, config.json",
        "confirmed": "a copy of its values; the defaults and old names in transformers' class",
        "layer_types": ["full_attention", "sliding_attention"],
        "config": {
            "model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12, "max_position_embeddings": 8192,
            "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3,
        },
    },
    {
        "model": "EleutherAI/gpt-neox-20b, config.json",
        "confirmed": "a copy of the whole file",
        "config": {
            "model_type": "gpt_neox", "hidden_size": 6144, "num_attention_heads": 64, "max_position_embeddings": 2048,
            "rotary_emb_base": 10000, "rotary_pct": 0.25,
        },
    },
    {
        "model": "EleutherAI/pythia-6.9b-deduped, config.json",
        "confirmed": "the configuration as transformers 4.45 printed it; litgpt 0.5.13",
        "config": {
            "model_type": "gpt_neox", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 2048,
            "rotary_emb_base": 10000, "rotary_pct": 0.25,
        },
    },
    {
        "model": "EleutherAI/gpt-j-6b, config.json",
        "confirmed": "copies of the whole file in two repositories",
        "config": {
            "model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_positions": 2048, "rotary": True, "rotary_dim": 64,
        },
    },
    {
        "model": "THUDM/glm-4-9b-chat-hf, config.json",
        "confirmed": "copies of its values in three repositories; it has no partial_rotary_factor",
        "config": {
            "model_type": "glm", "head_dim": 128, "hidden_size": 4096, "num_attention_heads": 32,
            "max_position_embeddings": 131072, "rope_theta": 10000.0,
        },
    },
    {
        "model": "THUDM/glm-4-9b-chat, config.json, in the keys of transformers",
        "confirmed": "copies of the whole file, with rope_ratio 500; its code multiplies the base 10000 by it",
        "config": {
            "model_type": "glm", "head_dim": 128, "hidden_size": 4096, "num_attention_heads": 32,
            "max_position_embeddings": 131072, "rope_theta": 5000000.0,
        },
    },
    {
        "model": "deepseek-ai/DeepSeek-V2-Lite, config.json",
        "confirmed": "copies of its values in several repositories",
        "config": {
            "model_type": "deepseek_v2", "hidden_size": 2048, "num_attention_heads": 16,
            "max_position_embeddings": 163840, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "rope_scaling": {
                "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
                "original_max_position_embeddings": 4096, "type": "yarn",
            },
            "rope_theta": 10000,
        },
    },
    {
        "model": "deepseek-ai/DeepSeek-V3, config.json",
        "confirmed": "a copy of the whole file",
        "config": {
            "model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
            "max_position_embeddings": 163840, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "rope_scaling": {
                "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                "original_max_position_embeddings": 4096, "type": "yarn",
            },
            "rope_theta": 10000,
        },
    },
    {
        "model": "moonshotai/Kimi-K2-Instruct, config.json",
        "confirmed": "copies of its values in several repositories",
        "class": "deepseek_v3",
        "config": {
            "model_type": "kimi_k2", "hidden_size": 7168, "num_attention_heads": 64, "max_position_embeddings": 131072,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "rope_scaling": {
                "beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                "original_max_position_embeddings": 4096, "type": "yarn",
            },
            "rope_theta": 50000.0,
        },
    },
    {
        "model": "openai/gpt-oss-20b, config.json",
        "confirmed": "copies of its values in several repositories; the defaults of transformers' class",
        "config": {
            "model_type": "gpt_oss", "head_dim": 64, "hidden_size": 2880, "num_attention_heads": 64,
            "max_position_embeddings": 131072,
            "rope_scaling": {
                "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
                "rope_type": "yarn", "truncate": False,
            },
            "rope_theta": 150000,
        },
    },
    {
        "model": "internlm/internlm2-chat-1_8b, config.json",
        "confirmed": "a copy of the whole file",
        "class": "llama",
        "lengths": [32768, 100000],
        "config": {
            "model_type": "internlm2", "hidden_size": 2048, "num_attention_heads": 16,
            "max_position_embeddings": 32768, "rope_scaling": {"type": "dynamic", "factor": 2.0}, "rope_theta": 1000000,
        },
    },
    {
        "model": "deepseek-ai/deepseek-coder-1.3b-instruct, config.json",
        "confirmed": "the configuration as transformers 4.48 printed it",
        "config": {
            "model_type": "llama", "hidden_size": 2048, "num_attention_heads": 16, "max_position_embeddings": 16384,
            "rope_scaling": {"factor": 4.0, "type": "linear"}, "rope_theta": 100000,
        },
    },
    {
        "model": "zai-org/GLM-4.5, config.json",
        "confirmed": "two copies of its values; arXiv 2508.06471 says base and length",
        "config": {
            "model_type": "glm4_moe", "head_dim": 128, "hidden_size": 5120, "num_attention_heads": 96,
            "max_position_embeddings": 131072, "partial_rotary_factor": 0.5, "rope_scaling": None,
            "rope_theta": 1000000,
        },
    },
    {
        "model": "Qwen/Qwen3-Next-80B-A3B-Instruct, config.json",
        "confirmed": "two copies of its values, one with the revision",
        "config": {
            "model_type": "qwen3_next", "head_dim": 256, "hidden_size": 2048, "num_attention_heads": 16,
            "max_position_embeddings": 262144, "partial_rotary_factor": 0.25, "rope_scaling": None,
            "rope_theta": 10000000,
        },
    },
    {
        "model": "MiniMaxAI/MiniMax-M2, config.json",
        "confirmed": "a copy of the whole file, two of its values",
        "config": {
            "model_type": "minimax_m2", "head_dim": 128, "hidden_size": 3072, "num_attention_heads": 48,
            "max_position_embeddings": 196608, "rope_theta": 5000000, "rotary_dim": 64,
        },
    },
    {
        "model": "allenai/Olmo-3-1025-7B, config.json",
        "confirmed": "a copy of the whole file",
        "layer_types": ["full_attention", "sliding_attention"],
        "config": {
            "model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 65536,
            "rope_scaling": {
                "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
                "original_max_position_embeddings": 8192, "rope_type": "yarn",
            },
            "rope_theta": 500000, "sliding_window": 4096,
        },
    },
    {
        "model": "mistralai/Ministral-3-8B-Instruct-2512, config.json, text_config",
        "confirmed": "two copies of rope_parameters; sizes are the defaults of transformers' class",
        "config": {
            "model_type": "ministral3", "head_dim": 128, "hidden_size": 4096, "num_attention_heads": 32,
            "max_position_embeddings": 262144,
            "rope_parameters": {
                "beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
                "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384, "rope_theta": 1000000.0,
                "rope_type": "yarn", "type": "yarn",
            },
        },
    },
]  # fmt: skip
