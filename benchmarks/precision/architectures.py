"""Twenty architectures of transformers in sizes that run in a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import transformers
from torch import nn

Batch = dict[str, torch.Tensor]

_TEXT: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
_TWO_STACKS: dict[str, Any] = {
    "vocab_size": 96,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
}
_IMAGES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}


def _ids() -> torch.Tensor:
    return torch.randint(3, 90, (2, 12))


def _text() -> Batch:
    return {"input_ids": _ids()}


def _two_texts() -> Batch:
    return {"input_ids": _ids(), "decoder_input_ids": _ids()}


def _images(side: int = 32) -> Batch:
    return {"pixel_values": torch.randn(2, 3, side, side)}


@dataclass(frozen=True)
class Architecture:
    """A class of transformers, its small configuration and what it is given."""

    name: str
    class_name: str
    config: dict[str, Any]
    make_batch: Callable[[], Batch]
    aside: bool = False
    """Scored once, after everything else was decided."""

    @property
    def module(self) -> ModuleType:
        """The module of transformers that defines it."""
        return sys.modules[getattr(transformers, self.class_name).__module__]

    def build(self, module: ModuleType, seed: int) -> tuple[nn.Module, Batch]:
        """A model of the class as that module defines it, and a batch."""
        torch.manual_seed(seed)
        kind = getattr(module, self.class_name)
        model: nn.Module = kind(kind.config_class(**self.config)).train()
        return model, self.make_batch()


ARCHITECTURES = (
    Architecture("llama", "LlamaForCausalLM", _TEXT, _text),
    Architecture(
        "gpt2",
        "GPT2LMHeadModel",
        {"vocab_size": 96, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        _text,
    ),
    Architecture("qwen3", "Qwen3ForCausalLM", {**_TEXT, "head_dim": 8}, _text),
    Architecture("gemma2", "Gemma2ForCausalLM", {**_TEXT, "head_dim": 8}, _text, aside=True),
    Architecture("bert", "BertForMaskedLM", _TEXT, _text),
    Architecture(
        "deberta_v2",
        "DebertaV2ForMaskedLM",
        {**_TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        _text,
    ),
    Architecture(
        "modernbert", "ModernBertForMaskedLM", {**_TEXT, "pad_token_id": 0}, _text, aside=True
    ),
    Architecture(
        "t5",
        "T5ForConditionalGeneration",
        {
            "vocab_size": 96,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
        _two_texts,
    ),
    Architecture("bart", "BartForConditionalGeneration", _TWO_STACKS, _two_texts, aside=True),
    Architecture(
        "whisper",
        "WhisperForConditionalGeneration",
        {
            **_TWO_STACKS,
            "max_source_positions": 20,
            "max_target_positions": 20,
            "num_mel_bins": 8,
            "pad_token_id": 0,
            "decoder_start_token_id": 1,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        lambda: {"input_features": torch.randn(2, 8, 40), "decoder_input_ids": _ids()},
    ),
    Architecture(
        "wav2vec2",
        "Wav2Vec2ForCTC",
        {
            **_TEXT,
            "vocab_size": 32,
            "conv_dim": (16, 16),
            "conv_stride": (4, 4),
            "conv_kernel": (8, 8),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 2,
            "mask_time_length": 2,
        },
        lambda: {"input_values": torch.randn(2, 400)},
        aside=True,
    ),
    Architecture("vit", "ViTForImageClassification", _IMAGES, _images),
    Architecture(
        "swin",
        "SwinForImageClassification",
        {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 16,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
        _images,
        aside=True,
    ),
    Architecture(
        "convnext",
        "ConvNextForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "image_size": 64},
        lambda: _images(64),
    ),
    Architecture(
        "clip",
        "CLIPModel",
        {
            "text_config": {**_TEXT, "projection_dim": 32},
            "vision_config": _IMAGES,
            "projection_dim": 32,
        },
        lambda: {**_text(), **_images()},
    ),
    Architecture(
        "mamba",
        "MambaForCausalLM",
        {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        _text,
    ),
    Architecture(
        "mamba2",
        "Mamba2ForCausalLM",
        {
            "vocab_size": 96,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "head_dim": 8,
            "num_heads": 8,
            "n_groups": 1,
            "chunk_size": 8,
        },
        _text,
        aside=True,
    ),
    Architecture("mixtral", "MixtralForCausalLM", {**_TEXT, "num_local_experts": 4}, _text),
    Architecture(
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        {
            **_TEXT,
            "head_dim": 8,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
        },
        _text,
    ),
    Architecture(
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        {
            **_TEXT,
            "num_key_value_heads": 4,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
        },
        _text,
        aside=True,
    ),
)
