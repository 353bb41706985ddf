"""Default inputs of transformers models: each model takes what is made for it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from torchstone.core.errors import UsageError
from torchstone.runtime.inputs import default_inputs, notes_on_inputs
from torchstone.runtime.model_hubs.hub import build_from_hub
from torchstone.runtime.model_hubs.hub_inputs import describe_shapes

SOUND = (
    "encoder_layers=1&decoder_layers=1&d_model=32&encoder_attention_heads=4&"
    "decoder_attention_heads=4&encoder_ffn_dim=32&decoder_ffn_dim=32"
)
TEXT = "num_hidden_layers=1&hidden_size=32&intermediate_size=64&num_attention_heads=4"


def made(spec: str, **more: Any) -> tuple[torch.nn.Module, dict[str, Any]]:
    built = build_from_hub(spec)
    inputs = default_inputs(built.model, built.config, **more)
    assert isinstance(inputs, dict)
    return built.model, inputs


@pytest.mark.parametrize(
    ("spec", "more", "expected"),
    [
        (f"llama?{TEXT}", {"batch": 2, "seq": 8}, "input_ids (2, 8) int64"),
        (f"bert?{TEXT}", {}, "input_ids (1, 512) int64"),
        (f"llama?{TEXT}&max_position_embeddings=64", {}, "input_ids (1, 64) int64"),
        (f"llama?{TEXT}&max_position_embeddings=64", {"seq": 128}, "input_ids (1, 128) int64"),
        ("vit?num_hidden_layers=1", {"batch": 3}, "pixel_values (3, 3, 224, 224) float32"),
        (
            "vit?num_hidden_layers=1&image_size=64&dtype=bf16",
            {},
            "pixel_values (1, 3, 64, 64) bfloat16",
        ),
        ("resnet", {}, "pixel_values (1, 3, 224, 224) float32"),
        ("videomae?num_hidden_layers=1", {}, "pixel_values (1, 16, 3, 224, 224) float32"),
        (
            "whisper?encoder_layers=1&decoder_layers=1",
            {"seq": 4},
            "input_features (1, 80, 3000) float32, decoder_input_ids (1, 4) int64",
        ),
        ("wav2vec2?num_hidden_layers=1", {}, "input_values (1, 16000) float32"),
        (
            "t5?num_layers=1",
            {"seq": 16},
            "input_ids (1, 16) int64, decoder_input_ids (1, 16) int64",
        ),
        ("CLIPModel", {}, "input_ids (1, 77) int64, pixel_values (1, 3, 224, 224) float32"),
        ("sam", {}, "pixel_values (1, 3, 1024, 1024) float32"),
    ],
)
def test_shapes(spec: str, more: dict[str, Any], expected: str) -> None:
    _, inputs = made(spec, **more)
    assert describe_shapes(inputs) == expected


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        (f"llama?{TEXT}", (2, 8)),
        (f"bert?{TEXT}", (2, 8)),
        ("t5?num_layers=1", (2, 8)),
        ("vit?num_hidden_layers=1", (2,)),
        (f"LlamaForSequenceClassification?{TEXT}", (2,)),
    ],
)
def test_labels_for_training(spec: str, labels: tuple[int, ...]) -> None:
    _, inputs = made(spec, batch=2, seq=8, train=True)
    assert tuple(inputs["labels"].shape) == labels


@pytest.mark.parametrize(
    "spec",
    [
        f"llama?{TEXT}",
        f"bert?{TEXT}",
        "gpt2?n_layer=1&n_embd=32&n_head=4",
        "vit?num_hidden_layers=1&image_size=32&hidden_size=32&num_attention_heads=4",
        "resnet?depths=[1,1,1,1]&hidden_sizes=[8,8,8,8]&embedding_size=8",
        f"whisper?{SOUND}",
        "t5?num_layers=1&d_model=32&d_ff=32",
        "CLIPModel?text_config.num_hidden_layers=1&vision_config.num_hidden_layers=1",
    ],
)
def test_a_real_model_runs_with_inputs_of_these_shapes(spec: str) -> None:
    model, inputs = made(spec, seq=8)
    real = copy.deepcopy(model).to_empty(device="cpu").eval()
    with torch.no_grad():
        for item in (*real.parameters(), *real.buffers()):
            item.zero_()
        given = {
            name: torch.zeros(value.shape, dtype=value.dtype) for name, value in inputs.items()
        }
        assert real(**given) is not None


def test_a_picture_in_a_text_has_its_place() -> None:
    model, inputs = made(
        "llava?text_config.num_hidden_layers=1&vision_config.num_hidden_layers=1", batch=2, seq=64
    )
    ids = inputs["input_ids"]
    assert not ids.is_meta
    # 336 / 14 = 24 patches a side, and at least 32 tokens of text
    token = model.config.image_token_id
    assert ((ids == token).sum(dim=1) == 576).all()
    assert ids.shape == (2, 576 + 32)
    assert inputs["pixel_values"].shape == (2, 3, 336, 336)


def test_a_picture_in_patches_comes_with_its_grid() -> None:
    model, inputs = made(
        "qwen2_vl?text_config.num_hidden_layers=1&vision_config.depth=1", batch=2, seq=128
    )
    grid = inputs["image_grid_thw"]
    assert grid.tolist() == [[1, 16, 16]] * 2
    assert inputs["pixel_values"].shape == (2 * 256, 3 * 2 * 14 * 14)
    ids = inputs["input_ids"]
    assert ((ids == model.config.image_token_id).sum(dim=1) == 64).all()


def test_the_vision_part_alone_takes_patches_and_their_grid() -> None:
    _, inputs = made("qwen2_5_vl_vision?depth=1")
    assert describe_shapes(inputs) == "hidden_states (256, 1176) float32, grid_thw (1, 3) int64"


def test_a_spectrogram_has_the_layout_that_the_model_takes() -> None:
    _, first = made("speech_to_text", seq=50)
    assert first["input_features"].shape == (1, 50, 80)
    _, first = made("glmasr_encoder", seq=50)
    assert first["input_features"].shape == (1, 128, 50)


def test_pictures_that_are_left_out_are_told() -> None:
    small = "text_config.num_hidden_layers=1&vision_config.num_hidden_layers=1"
    for kind, ids in (("llava", 1), ("llava_next", 2)):
        built = build_from_hub(f"{kind}?{small}")
        inputs = default_inputs(built.model, built.config)
        notes = notes_on_inputs(built.model, built.config, inputs)
        assert len(notes) == ids
        assert "input_ids (1, 1024) int64" in notes[0].say("zh")


def test_what_cannot_be_made_is_asked_for() -> None:
    built = build_from_hub("decision_transformer")
    with pytest.raises(UsageError, match="--input"):
        default_inputs(built.model, built.config)
