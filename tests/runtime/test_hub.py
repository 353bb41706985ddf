"""Models of transformers from their configuration alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from torchstone.core.errors import InputError, TorchstoneError, UsageError
from torchstone.runtime.model_hubs.hub import HubModel, build_from_hub
from torchstone.runtime.model_hubs.hub_config import parse_changes
from torchstone.runtime.targets import build_target

SMALL = (
    "num_hidden_layers=2&hidden_size=32&intermediate_size=64&num_attention_heads=4&vocab_size=100"
)
SMALL_VALUES: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "dtype": "bfloat16",
}


def weights(built: HubModel) -> int:
    return sum(item.numel() for item in built.model.parameters())


@pytest.mark.parametrize(
    ("spec", "kind", "count"),
    [
        ("deepseek_v3", "DeepseekV3ForCausalLM", 671_026_404_352),
        ("BertModel", "BertModel", 109_482_240),
        ("gpt2", "GPT2LMHeadModel", 124_439_808),
        ("deepseek_ocr2", "DeepseekOcr2ForConditionalGeneration", 3_389_119_360),
        ("deepseek_v2", "DeepseekV2ForCausalLM", 235_741_434_880),
        ("gemma3", "Gemma3ForConditionalGeneration", 4_300_079_472),
        ("esm", "EsmForMaskedLM", 651_043_254),
    ],
)
def test_published_numbers_of_parameters(spec: str, kind: str, count: int) -> None:
    built = build_from_hub(spec)
    assert type(built.model).__name__ == kind
    assert weights(built) == count
    assert all(item.is_meta for item in built.model.parameters())


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("llama", "LlamaForCausalLM"),
        ("bert", "BertForMaskedLM"),
        ("vit", "ViTForImageClassification"),
        ("whisper", "WhisperForConditionalGeneration"),
        ("t5", "T5ForConditionalGeneration"),
        ("clip", "CLIPModel"),
        ("xlm_roberta", "XLMRobertaForMaskedLM"),
        ("xlm-roberta", "XLMRobertaForMaskedLM"),
        ("wav2vec2-bert", "Wav2Vec2BertForSequenceClassification"),
    ],
)
def test_a_type_is_built_as_what_it_is_most_used_for(spec: str, kind: str) -> None:
    built = build_from_hub(spec)
    assert type(built.model).__name__ == kind
    assert built.notes[0].id == "chosen-class"
    assert kind in built.notes[0].say("en")
    assert kind in built.notes[0].say("zh")


def test_a_preset_is_told() -> None:
    notes = build_from_hub("deepseek_ocr2").notes
    assert [note.id for note in notes] == ["chosen-class", "published-configuration"]
    assert "DeepSeek-OCR-2" in notes[1].say("zh")


def test_changes() -> None:
    built = build_from_hub(f"llama?{SMALL}&dtype=bf16&tie_word_embeddings=true")
    assert built.config.num_hidden_layers == 2
    assert {item.dtype for item in built.model.parameters()} == {torch.bfloat16}
    attention, mlp = 4 * 32 * 32, 3 * 32 * 64
    assert weights(built) == 100 * 32 + 2 * (attention + mlp + 2 * 32) + 32


def test_changes_of_a_part() -> None:
    built = build_from_hub(
        "gemma3?text_config.num_hidden_layers=2&vision_config.num_hidden_layers=1"
    )
    assert built.config.text_config.num_hidden_layers == 2
    assert len(built.config.text_config.layer_types) == 2
    assert built.config.vision_config.num_hidden_layers == 1


def test_a_part_that_is_changed_keeps_what_the_model_sets_in_it() -> None:
    config = build_from_hub("llava?vision_config.num_hidden_layers=1").config
    assert (config.vision_config.num_hidden_layers, config.vision_config.image_size) == (1, 336)


def test_values_of_changes() -> None:
    changes = parse_changes("a=1&b=2.5&c=True&d=none&e=text&f=[1,2]&g.h.i=3&j=", "x")
    assert changes == {
        "a": 1, "b": 2.5, "c": True, "d": None, "e": "text", "f": [1, 2], "g": {"h": {"i": 3}},
        "j": "",
    }  # fmt: skip


def test_a_file_and_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(SMALL_VALUES))
    for spec in (f"hf:{file}", f"hf:{tmp_path}"):
        target = build_target(spec)
        assert type(target.model).__name__ == "LlamaForCausalLM"
        assert target.config.vocab_size == 100
        assert target.notes == ()
        assert next(target.model.parameters()).dtype is torch.bfloat16


def test_changes_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    values = {**SMALL_VALUES, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
              "layer_types": ["full_attention", "sliding_attention"]}  # fmt: skip
    file.write_text(json.dumps(values))
    built = build_from_hub(f"{file}?num_hidden_layers=1&vocab_size=50")
    assert built.config.layer_types == ["full_attention"]
    assert built.config.vocab_size == 50


def test_a_file_without_a_known_class_is_built_by_its_type(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**SMALL_VALUES, "architectures": ["SomethingElse"]}))
    assert build_from_hub(str(file)).notes[0].id == "chosen-class"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "expected JSON"),
        ("[]", "got a list, expected a table"),
        ("[" * 100_000, "expected JSON"),
        ("{}", "file.py:function"),
        ('{"model_type": "my_own", "auto_map": {}}', "file.py:function"),
        ('{"model_type": "llama", "hidden_size": "wide"}', "a configuration that builds"),
        ('{"model_type": "llama", "hidden_size": 7}', "a configuration that builds"),
        ("\xff", "expected JSON"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=says):
        build_from_hub(str(file))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("llma", "did you mean 'llama'"),
        ("LamaForCausalLM", "did you mean 'LlamaForCausalLM'"),
        ("somebody/own-model", "nothing is downloaded"),
        ("nowhere.json", "nothing is downloaded"),
        ("PreTrainedModel", "unknown name"),
        ("AutoModel", "unknown name"),
        ("pipeline", "known name"),
        ("__builtins__", "known name"),
        ("", "no name"),
        ("?a=1", "no name"),
        ("llama?num_hiden_layers=2", "did you mean 'num_hidden_layers'"),
        ("llama?num_hidden_layers=-2", "not negative"),
        ("llama?hidden_size=wide", "a configuration that builds"),
        ("llama?hidden_size", "key=value"),
        ("llama?=3", "key=value"),
        ("llama?a.b=1&a=2&a.c=3", "as a value or as a table"),
        ("llama?hidden_size.x=1", "it has no parts"),
        ("llama?dtype=bf17", "known name"),
        ("gemma3?text_config.num_hiden_layers=2", "did you mean 'num_hidden_layers'"),
        ("dbrx", "published file"),
        ("informer", "prediction_length"),
        ("sam_prompt_encoder", "name the class"),
    ],
)
def test_mistakes(spec: str, says: str) -> None:
    with pytest.raises(TorchstoneError, match=says) as caught:
        build_from_hub(spec)
    assert "\n" not in str(caught.value)
    assert caught.value.say("zh")


def test_what_the_default_lacks_can_be_set() -> None:
    assert weights(build_from_hub("informer?prediction_length=24")) > 0


def test_a_missing_transformers_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchstone.runtime.model_hubs import hub_config

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    hub_config.transformers.cache_clear()
    monkeypatch.setattr(hub_config.importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"torchstone\[hf\]"):
        build_from_hub("llama")
    hub_config.transformers.cache_clear()


def test_usage_errors_are_usage_errors() -> None:
    with pytest.raises(UsageError):
        build_from_hub("llma")
