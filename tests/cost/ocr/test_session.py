"""Sessions come from a folder or from dimensions alone; bad folders are named."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cost.ocr.conftest import SMALL_CONFIG, write_folder
from torchstone.core.errors import InputError, UsageError
from torchstone.cost.ocr.model.config_file import shape_from_config
from torchstone.cost.ocr.model.parts import parts
from torchstone.cost.ocr.model.session import DeepSeekOCRSession
from torchstone.cost.ocr.model.shapes import DEEPSEEK_OCR, DEEPSEEK_OCR_2, SMALL
from torchstone.cost.ocr.page.images import open_page

PUBLISHED_CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekOCRForCausalLM"],
    "hidden_size": 1280,
    "intermediate_size": 6848,
    "num_hidden_layers": 12,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "vocab_size": 129280,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 896,
    "n_routed_experts": 64,
    "num_experts_per_tok": 6,
    "n_shared_experts": 2,
    "kv_lora_rank": None,
    "max_position_embeddings": 8192,
    "rope_theta": 10000.0,
    "projector_config": {"input_dim": 2048, "n_embed": 1280, "projector_type": "linear"},
    "torch_dtype": "bfloat16",
    "vision_config": {
        "image_size": 1024,
        "mlp_ratio": 3.7362,
        "width": {
            "clip-l-14-224": {
                "heads": 16, "image_size": 224, "layers": 24, "patch_size": 14, "width": 1024,
            },
            "sam_vit_b": {
                "downsample_channels": [512, 1024], "global_attn_indexes": [2, 5, 8, 11],
                "heads": 12, "layers": 12, "width": 768,
            },
        },
    },
}  # fmt: skip


def test_published_configurations_are_understood() -> None:
    assert shape_from_config(PUBLISHED_CONFIG, "config.json") == DEEPSEEK_OCR
    second = json.loads(json.dumps(PUBLISHED_CONFIG))
    second["architectures"] = ["DeepseekOCR2ForCausalLM"]
    second["vision_config"]["width"].pop("clip-l-14-224")
    second["vision_config"]["width"]["qwen2-0-5b"] = {"dim": 896}
    second["projector_config"]["input_dim"] = 896
    assert shape_from_config(second, "config.json") == DEEPSEEK_OCR_2


def test_a_folder_without_weights_stands_on_meta(folder: Path) -> None:
    session = DeepSeekOCRSession.from_local(folder, device="cpu", use_flash_attn=True)
    assert session.m_device.type == "meta"
    assert all(item.is_meta for item in session.m_model.parameters())
    assert session.m_tokenizer is None
    assert [item.id for item in session.m_notes] == ["no-weights"]
    shape = session.m_shape
    assert (shape.text, shape.encoder, shape.sam) == (SMALL.text, SMALL.encoder, SMALL.sam)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_missing_device_is_a_note(folder: Path) -> None:
    session = DeepSeekOCRSession.from_local(folder, device="cuda:0", use_flash_attn=True)
    assert session.m_device.type == "meta"
    assert "cuda:0" in session.m_notes[0].say("en")
    assert "cuda:0" in session.m_notes[0].say("zh")


def test_random_weights_only_when_asked(folder: Path) -> None:
    session = DeepSeekOCRSession.from_local(folder, "cpu", random_weights=True)
    assert session.m_device.type == "cpu"
    assert session.m_dtype is torch.float32
    with torch.no_grad():
        assert session.m_model(torch.tensor([[0, 3, 4]])).logits.shape == (1, 3, 512)


def test_the_tokenizer_is_data_only(folder: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    table = {"[UNK]": 0, "a": 1, "b": 2}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(table, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model.save(str(folder / "tokenizer.json"))
    session = DeepSeekOCRSession.from_local(folder, "meta")
    assert session.m_tokenizer.encode("a b a", add_special_tokens=False) == [1, 2, 1]


def test_code_in_the_folder_is_never_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**SMALL_CONFIG, "auto_map": {"AutoModel": "modeling_evil.Evil"}}
    write_folder(folder, config)
    (folder / "modeling_evil.py").write_text("raise SystemExit('ran')\n", "utf-8")
    monkeypatch.chdir(folder)
    assert DeepSeekOCRSession.from_local(folder, "meta").m_device.type == "meta"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"No such file"),
        ("", r"Expecting value"),
        ("{", r"Expecting"),
        ("[1]", r"got list"),
        ("{}", r"architectures \[\]"),
        ('{"architectures": ["LlamaForCausalLM"]}', "LlamaForCausalLM"),
        ("[" * 100_000, r"config\.json"),
        ('{"architectures": ["DeepseekOCRForCausalLM"], "hidden_size": "big"}', "whole number"),
        ('{"architectures": ["DeepseekOCRForCausalLM"], "vocab_size": 0}', "within 1"),
        ('{"architectures": ["DeepseekOCRForCausalLM"], "vocab_size": 1e30}', "within 1"),
        ('{"architectures": ["DeepseekOCRForCausalLM"], "num_attention_heads": 7}', "heads"),
        ('{"architectures": ["DeepseekOCRForCausalLM"], "vision_config": 3}', "a table"),
        ('{"architectures": ["DeepseekOCRForCausalLM"], "torch_dtype": "int4"}', "int4"),
        ('{"architectures": ["DeepseekOCRForCausalLM"], "projector_config": {"input_dim": 9}}',
         "input_dim 9"),
    ],
)  # fmt: skip
def test_bad_folders_are_named(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content, "utf-8")
    with pytest.raises(InputError, match=said) as caught:
        DeepSeekOCRSession.from_local(tmp_path, "meta")
    assert "config.json" in caught.value.where
    assert all(
        part for part in (caught.value.given, caught.value.expected.zh, caught.value.todo.zh)
    )


def test_a_pipe_does_not_hold_it_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(InputError, match="not a regular file"):
        DeepSeekOCRSession.from_local(tmp_path, "meta")


def test_wrong_names_and_devices(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"'llama', expected one of deepseek-ocr"):
        DeepSeekOCRSession.from_config("llama")
    with pytest.raises(UsageError, match="device 'gpu one'"):
        DeepSeekOCRSession.from_local(folder, "gpu one")


def test_without_transformers_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts.cache_clear()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UsageError, match=r"pip install 'torchstone\[hf\]'"):
        DeepSeekOCRSession.from_config("small")


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UsageError, match=r"torchstone\[image\]"):
        open_page("page.png")


def test_a_broken_tokenizer_is_named(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        DeepSeekOCRSession.from_local(folder, "meta")
