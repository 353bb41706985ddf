"""Published models by the names that people use."""

from __future__ import annotations

import pytest

from torchstone.core.errors import UsageError
from torchstone.runtime.model_hubs.hub import build_from_hub
from torchstone.runtime.model_hubs.published import published_model, published_names


@pytest.mark.parametrize("name", ["smollm2-135m", "qwen3-0.6b", "gemma-2-2b", "qwen3-30b-a3b"])
def test_the_published_number_of_parameters(name: str) -> None:
    row = published_model(name)
    assert row is not None
    built = build_from_hub(name)
    assert sum(item.numel() for item in built.model.parameters()) == row.parameters
    assert row.title in built.notes[-1].say("en")


@pytest.mark.parametrize(("name", "title"), [
    ("meta-llama/Meta-Llama-3-8B-Instruct", "Llama 3 8B"), ("Llama-3.1-8B", "Llama 3.1 8B"),
    ("llama3-8b", "Llama 3 8B"), ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5 7B"),
    ("mistralai/Mistral-7B-Instruct-v0.1", "Mistral 7B v0.1"), ("google/gemma-2-9b-it", "Gemma 2 9B"),
])  # fmt: skip
def test_spellings_of_one_model(name: str, title: str) -> None:
    row = published_model(name)
    assert row is not None
    assert row.title == title


def test_names_are_in_the_table_once() -> None:
    assert len(published_names()) == len(set(published_names())) > 40
    assert published_model("llama") is None


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="unknown name 'llama-9-8b'; did you mean 'llama-3-8b'"):
        build_from_hub("llama-9-8b")
