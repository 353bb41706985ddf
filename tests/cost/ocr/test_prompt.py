"""Image tokens are counted and masked as the vendor does it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchstone.core.errors import UsageError
from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.model.shapes import DEEPSEEK_OCR, DEEPSEEK_OCR_2
from torchstone.cost.ocr.page.images import plan
from torchstone.cost.ocr.page.prompt import image_tokens, tokens

# the modes that the vendor publishes, and the tokens that a page then has
MODES: list[tuple[dict[str, Any], int]] = [
    ({"base_size": 512, "image_size": 512, "crop_mode": False}, 8 * 9 + 1),
    ({"base_size": 640, "image_size": 640, "crop_mode": False}, 10 * 11 + 1),
    ({"base_size": 1024, "image_size": 1024, "crop_mode": False}, 273),
    ({"base_size": 1280, "image_size": 1280, "crop_mode": False}, 20 * 21 + 1),
    ({"base_size": 1024, "image_size": 640}, 903),
]


@pytest.mark.parametrize(("sizes", "count"), MODES)
def test_tokens_of_the_published_modes(sizes: dict[str, Any], count: int) -> None:
    config = AnalysisConfig(**sizes)
    assert image_tokens(plan(1700, 2200, config, DEEPSEEK_OCR), config, DEEPSEEK_OCR) == count


def test_lines_of_the_second_generation_have_no_end() -> None:
    config = AnalysisConfig(image_size=768)
    cut = plan(1700, 2200, config, DEEPSEEK_OCR_2)
    assert cut.grid == (2, 3)
    assert image_tokens(cut, config, DEEPSEEK_OCR_2) == 256 + 1 + 6 * 144


def test_the_default_prompt_needs_no_tokenizer() -> None:
    config = AnalysisConfig(image_w=600, image_h=600)
    ids, mask, exact = tokens(plan(600, 600, config, DEEPSEEK_OCR), config, DEEPSEEK_OCR, None)
    assert exact
    assert ids[0] == 0
    assert ids[1:274] == [128815] * 273
    assert ids[274:] == [201, 128820, 21842, 270, 4940, 304, 2121, 7919, 16]
    assert mask == [False] + [True] * 273 + [False] * 9


class Letters:
    """A tokenizer with one token for each letter."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens
        return [ord(letter) for letter in text]


def test_a_tokenizer_is_asked() -> None:
    config = AnalysisConfig(image_w=600, image_h=600, prompt="ab <image>\nc. ")
    ids, mask, exact = tokens(plan(600, 600, config, DEEPSEEK_OCR), config, DEEPSEEK_OCR, Letters())
    assert exact
    assert ids[:4] == [0, 97, 98, 32]
    assert ids[-3:] == [10, 99, 46]
    assert sum(mask) == 273
    assert mask.index(True) == 4


def test_another_prompt_without_a_tokenizer_is_an_estimate(
    published: DeepseekOCRStaticAnalyzer,
) -> None:
    config = AnalysisConfig(image_w=600, image_h=600, prompt="<image>12345678")
    ids, _ = published.prepare_inputs(config)
    assert ids.shape == (1, 1 + 273 + 2)
    assert any("four characters" in item for item in published.generate_report(config)["notes"])


def test_inputs_of_the_model(published: DeepseekOCRStaticAnalyzer, letter: AnalysisConfig) -> None:
    ids, kwargs = published.prepare_inputs(letter)
    assert ids.shape == (1, 913)
    assert ids.dtype is torch.long
    assert sorted(kwargs) == ["images", "images_seq_mask", "images_spatial_crop"]
    assert kwargs["images_seq_mask"].shape == (1, 913)
    assert kwargs["images_seq_mask"].dtype is torch.bool
    assert kwargs["images_spatial_crop"].tolist() == [[2, 3]]
    crops, whole = kwargs["images"][0]
    assert crops.shape == (6, 3, 640, 640)
    assert whole.shape == (1, 3, 1024, 1024)


@pytest.mark.parametrize(
    "wrong",
    [
        {"image_h": 0},
        {"image_w": 1.5},
        {"base_size": 8},
        {"image_size": True},
        {"seq_len": 0},
        {"crop_mode": "yes"},
        {"prompt": "no page"},
        {"prompt": "<image><image>"},
        {"use_synthetic_inputs": False},
        {"base_size": 1 << 40},
    ],
)
def test_wrong_values_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="AnalysisConfig") as caught:
        AnalysisConfig(**wrong)
    assert "AnalysisConfig" in caught.value.say("zh")


def test_what_the_model_fixes_cannot_be_changed(
    published: DeepseekOCRStaticAnalyzer, second: DeepseekOCRStaticAnalyzer
) -> None:
    with pytest.raises(UsageError, match=r"patch_size: got 14, expected 16.*patch_size=16"):
        published.prepare_inputs(AnalysisConfig(patch_size=14))
    with pytest.raises(UsageError, match=r"downsample_ratio: got 2, expected 4"):
        published.prepare_inputs(AnalysisConfig(downsample_ratio=2))
    with pytest.raises(UsageError, match=r"image_size: got 640, expected 768 / 1024"):
        second.prepare_inputs(AnalysisConfig())
