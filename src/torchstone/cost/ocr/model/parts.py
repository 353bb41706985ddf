"""What is taken from transformers, and its configurations made from our dimensions.

transformers is loaded at first use: counting other models must not need it. It is typed loosely
here; its own types are not checked.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import torch

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.ocr.model.shapes import (
    ClipShape,
    OcrShape,
    QueryShape,
    SamShape,
    TextShape,
)


class Parts(NamedTuple):
    """Classes and functions of transformers."""

    Cache: Any
    ClipConfig: Any
    ClipModel: Any
    SamConfig: Any
    SamEncoder: Any
    TextConfig: Any
    TextModel: Any
    SecondConfig: Any
    SecondModel: Any
    causal_mask: Any


@functools.cache
def parts() -> Parts:
    """The parts, or an error that says what to install."""
    try:
        root = importlib.import_module("transformers")
        models = "transformers.models.deepseek_ocr2"
        code = importlib.import_module(f"{models}.modeling_deepseek_ocr2")
        configs = importlib.import_module(f"{models}.configuration_deepseek_ocr2")
        masks = importlib.import_module("transformers.masking_utils")
        return Parts(
            root.DynamicCache,
            root.CLIPVisionConfig,
            root.CLIPVisionModel,
            configs.DeepseekOcr2SamVisionConfig,
            code.DeepseekOcr2SamVisionEncoder,
            configs.DeepseekOcr2TextConfig,
            code.DeepseekOcr2TextModel,
            configs.DeepseekOcr2Config,
            code.DeepseekOcr2ForConditionalGeneration,
            masks.create_causal_mask,
        )
    except (ImportError, AttributeError, RuntimeError) as error:
        raise UsageError(
            "cost: DeepSeek-OCR",
            f"{type(error).__name__}: {error}",
            Text(
                "transformers 5 with its DeepSeek-OCR-2 parts",
                "含有 DeepSeek-OCR-2 部件的 transformers 5",
            ),
            Text(
                "run `pip install 'torchstone[hf]'`; a torchvision of another build than torch "
                "breaks the import too: remove it",
                "请运行 `pip install 'torchstone[hf]'`；与 torch 构建不一致的 torchvision "
                "也会使导入失败，请将其卸载",
            ),
        ) from error


def new_cache() -> Any:
    """An empty key-value cache."""
    return parts().Cache()


def filled_cache(
    shape: TextShape, length: int, device: torch.device, dtype: torch.dtype, batch: int = 1
) -> Any:
    """A key-value cache that already holds `length` tokens (zeros)."""
    cache = new_cache()
    size = (batch, shape.key_value_heads, length, shape.head_size)
    for layer in range(shape.layers if length else 0):
        keys = torch.zeros(size, device=device, dtype=dtype)
        cache.update(keys, torch.zeros_like(keys), layer)
    return cache


def sam_config(shape: SamShape, attention: str) -> Any:
    return parts().SamConfig(
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        mlp_dim=shape.mlp_size,
        image_size=shape.image_size,
        patch_size=shape.patch_size,
        window_size=shape.window_size,
        global_attn_indexes=list(shape.global_layers),
        output_channels=shape.neck_channels,
        downsample_channels=list(shape.downsample_channels),
        attn_implementation=attention,
    )


def clip_config(shape: ClipShape, attention: str) -> Any:
    return parts().ClipConfig(
        hidden_size=shape.hidden_size,
        intermediate_size=shape.mlp_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        image_size=shape.image_size,
        patch_size=shape.patch_size,
        attn_implementation=attention,
    )


def text_config(shape: TextShape, attention: str) -> Any:
    return parts().TextConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.mlp_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=shape.positions,
        rms_norm_eps=shape.norm_epsilon,
        moe_intermediate_size=shape.expert_size,
        n_routed_experts=shape.routed_experts,
        n_shared_experts=shape.shared_experts,
        num_experts_per_tok=shape.active_experts,
        n_group=1,
        topk_group=1,
        topk_method="greedy",
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        mlp_layer_types=["dense"] * shape.dense_layers + ["sparse"] * shape.expert_layers,
        bos_token_id=0,
        eos_token_id=1,
        attn_implementation=attention,
    )


def second_config(shape: OcrShape, attention: str) -> Any:
    """The configuration of DeepSeek-OCR-2 as transformers has it."""
    encoder = shape.encoder
    assert isinstance(encoder, QueryShape)
    return parts().SecondConfig(
        vision_config={
            "sam_config": sam_config(shape.sam, attention).to_dict(),
            "encoder_config": {
                "hidden_size": encoder.hidden_size,
                "intermediate_size": encoder.mlp_size,
                "num_hidden_layers": encoder.layers,
                "num_attention_heads": encoder.heads,
                "num_key_value_heads": encoder.key_value_heads,
                "vocab_size": encoder.vocabulary,
                "rope_parameters": {"rope_type": "default", "rope_theta": encoder.rope_theta},
            },
        },
        text_config=text_config(shape.text, attention).to_dict(),
        image_token_id=shape.image_token,
        attn_implementation=attention,
    )
