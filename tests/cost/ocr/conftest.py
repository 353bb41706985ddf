"""Models that are built once for all tests of this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.model.session import DeepSeekOCRSession

SMALL_PAGE: dict[str, Any] = {"image_h": 200, "image_w": 300, "base_size": 256, "image_size": 128}


@pytest.fixture(scope="session")
def published() -> DeepseekOCRStaticAnalyzer:
    """The published DeepSeek-OCR on the meta device."""
    return DeepseekOCRStaticAnalyzer()


@pytest.fixture(scope="session")
def second() -> DeepseekOCRStaticAnalyzer:
    """The published DeepSeek-OCR-2 on the meta device."""
    return DeepseekOCRStaticAnalyzer(DeepSeekOCRSession.from_config("deepseek-ocr-2"))


@pytest.fixture(scope="session")
def small() -> DeepSeekOCRSession:
    """A small model that really runs."""
    return DeepSeekOCRSession.from_config("small", "cpu", dtype=torch.float32)


@pytest.fixture(scope="session")
def letter() -> AnalysisConfig:
    """A page in portrait format: six crops, two across."""
    return AnalysisConfig(image_w=1700, image_h=2200)


@pytest.fixture(scope="session")
def letter_report(published: DeepseekOCRStaticAnalyzer, letter: AnalysisConfig) -> dict[str, Any]:
    return published.generate_report(letter)


SMALL_CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekOCRForCausalLM"],
    "torch_dtype": "float32",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 512,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 48,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "image_token_id": 500,
    "crop_size": 128,
    "vision_config": {
        "image_size": 256,
        "width": {
            "clip-l-14-224": {
                "heads": 2,
                "image_size": 224,
                "layers": 2,
                "patch_size": 14,
                "width": 64,
            },
            "sam_vit_b": {
                "downsample_channels": [48, 64],
                "global_attn_indexes": [1],
                "heads": 2,
                "layers": 2,
                "out_chans": 32,
                "width": 64,
            },
        },
    },
    "projector_config": {"input_dim": 128, "n_embed": 64},
}


def write_folder(folder: Path, config: dict[str, Any] | None = None) -> Path:
    """A model folder with a configuration and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(SMALL_CONFIG if config is None else config)
    (folder / "config.json").write_text(text, "utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "model")
