"""Published configurations of models whose default in transformers does not build or not run.

The values are those of the config.json that the makers publish.
"""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "deepseek_ocr2": (
        "DeepSeek-OCR-2",
        {
            "image_token_id": 128815,
            "vision_config": {
                "sam_config": {
                    "hidden_size": 768,
                    "num_hidden_layers": 12,
                    "num_attention_heads": 12,
                    "mlp_dim": 3072,
                    "image_size": 1024,
                    "patch_size": 16,
                    "window_size": 14,
                    "global_attn_indexes": [2, 5, 8, 11],
                    "output_channels": 256,
                    "downsample_channels": [512, 896],
                },
                "encoder_config": {
                    "hidden_size": 896,
                    "intermediate_size": 4864,
                    "num_hidden_layers": 24,
                    "num_attention_heads": 14,
                    "num_key_value_heads": 2,
                    "vocab_size": 151936,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
                },
            },
            "text_config": {
                "vocab_size": 129280,
                "hidden_size": 1280,
                "intermediate_size": 6848,
                "num_hidden_layers": 12,
                "num_attention_heads": 10,
                "num_key_value_heads": 10,
                "max_position_embeddings": 8192,
                "rms_norm_eps": 1e-6,
                "moe_intermediate_size": 896,
                "n_routed_experts": 64,
                "n_shared_experts": 2,
                "num_experts_per_tok": 6,
                "n_group": 1,
                "topk_group": 1,
                "topk_method": "greedy",
                "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
                "mlp_layer_types": ["dense"] + ["sparse"] * 11,
                "bos_token_id": 0,
                "eos_token_id": 1,
            },
        },
    ),
    "deepseek_v2": (
        "DeepSeek-V2",
        {
            "vocab_size": 102400,
            "hidden_size": 5120,
            "intermediate_size": 12288,
            "moe_intermediate_size": 1536,
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_key_value_heads": 128,
            "n_shared_experts": 2,
            "n_routed_experts": 160,
            "num_experts_per_tok": 6,
            "n_group": 8,
            "topk_group": 3,
            "topk_method": "group_limited_greedy",
            "routed_scaling_factor": 16.0,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "max_position_embeddings": 163840,
        },
    ),
    "gemma3": (
        "Gemma 3 4B",
        {
            "mm_tokens_per_image": 256,
            "text_config": {
                "hidden_size": 2560,
                "intermediate_size": 10240,
                "num_hidden_layers": 34,
                "num_attention_heads": 8,
                "num_key_value_heads": 4,
                "head_dim": 256,
                "sliding_window": 1024,
                "vocab_size": 262208,
            },
            "vision_config": {
                "hidden_size": 1152,
                "intermediate_size": 4304,
                "num_hidden_layers": 27,
                "num_attention_heads": 16,
                "image_size": 896,
                "patch_size": 14,
                "vision_use_head": False,
            },
        },
    ),
    "esm": (
        "ESM-2 650M",
        {
            "vocab_size": 33,
            "mask_token_id": 32,
            "pad_token_id": 1,
            "hidden_size": 1280,
            "num_hidden_layers": 33,
            "num_attention_heads": 20,
            "intermediate_size": 5120,
            "max_position_embeddings": 1026,
            "position_embedding_type": "rotary",
            "emb_layer_norm_before": False,
            "token_dropout": True,
        },
    ),
}
"""By model type: what was published, and its configuration."""
