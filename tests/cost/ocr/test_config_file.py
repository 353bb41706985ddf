"""A config.json from anywhere gives a model that can be analysed, or an error of four facts."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Iterator
from contextlib import nullcontext as nothing
from pathlib import Path
from typing import Any

import pytest

from tests.cost.ocr.conftest import SMALL_CONFIG, SMALL_PAGE
from torchstone.core.errors import InputError, TorchstoneError
from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.model.config_file import shape_from_config
from torchstone.cost.ocr.model.session import DeepSeekOCRSession

SECOND_CONFIG: dict[str, Any] = {
    **{key: value for key, value in SMALL_CONFIG.items() if key != "vision_config"},
    "architectures": ["DeepseekOCR2ForCausalLM"],
    "projector_config": {"input_dim": 896, "n_embed": 64},
    "vision_config": {
        "image_size": 256,
        "width": {
            "qwen2-0-5b": {"dim": 896},
            "sam_vit_b": {
                "width": 64,
                "layers": 2,
                "heads": 2,
                "downsample_channels": [48, 1024],
                "global_attn_indexes": [1],
                "out_chans": 32,
            },
        },
    },
}
LARGE_PAGE = {"image_h": 800, "image_w": 1200, "base_size": 1024, "image_size": 768}
"""The views that DeepSeek-OCR-2 has queries for."""
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 63, 64, 65, 10**9, 10**40, 1.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "8", "x" * 100, [], [0], [1], [-1], [None], [1, 2], [1, 2, 3],
    [1.5, 2], ["a"], [[]], list(range(2000)), {}, {"a": 1}, {"width": 3},
]  # fmt: skip


def places(config: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value stands in a configuration."""
    items = config.items() if isinstance(config, dict) else enumerate(config)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def changed(config: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(config)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


def refused(config: dict[str, Any]) -> InputError | None:
    """The error that a configuration is refused with; anything else that is raised passes."""
    try:
        shape_from_config(config, "config.json")
    except InputError as error:
        return error
    return None


@pytest.mark.parametrize("config", [SMALL_CONFIG, SECOND_CONFIG], ids=["first", "second"])
def test_every_odd_value_at_every_place(config: dict[str, Any]) -> None:
    """Read alone; what passes is then built and analysed in the test below."""
    good = 0
    for path in places(config):
        for value in ODD:
            error = refused(changed(config, path, value))
            if error is None:
                good += 1
                continue
            assert all((error.where, error.given, error.expected.zh, error.todo.zh))
            assert len(error.say("en")) < 600
    assert good > 100, "some of them are harmless"


@pytest.mark.parametrize("config", [SMALL_CONFIG, SECOND_CONFIG], ids=["first", "second"])
def test_what_is_read_can_be_built_and_analysed(config: dict[str, Any], tmp_path: Path) -> None:
    """A sample of the odd values that pass the reader, through the whole static analysis."""
    rest = random.Random(3)
    tried = [(path, value) for path in places(config) for value in ODD]
    passed: list[dict[str, Any]] = []
    for path, value in rest.sample(tried, len(tried)):
        made = changed(config, path, value)
        if refused(made) is None and shape_from_config(made, "") != shape_from_config(config, ""):
            passed.append(made)
    assert len(passed) > 20
    page = AnalysisConfig(**(SMALL_PAGE if config is SMALL_CONFIG else LARGE_PAGE))
    for made in [config, *passed[: 12 if config is SMALL_CONFIG else 4]]:
        (tmp_path / "config.json").write_text(json.dumps(made), "utf-8")
        with contextlib.suppress(TorchstoneError) if made is not config else nothing():
            session = DeepSeekOCRSession.from_local(tmp_path, "meta")
            report = DeepseekOCRStaticAnalyzer(session).generate_report(page)
            assert report["total"]["flops"] > 0


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("vocab_size",), float("nan"), "vocab_size nan, expected a whole number"),
        (("vocab_size",), float("inf"), "vocab_size inf, expected a whole number"),
        (("hidden_size",), -64, "hidden_size -64, expected within"),
        (("hidden_size",), 10**40, "more than 30 digits"),
        (("hidden_size",), "64", "hidden_size '64', expected a whole number"),
        (("num_attention_heads",), 5, "num_attention_heads 5, expected a divisor of 64"),
        (("num_attention_heads",), 64, "heads of an even size"),
        (("num_key_value_heads",), 3, "num_key_value_heads 3, expected a divisor of 4"),
        (("num_hidden_layers",), 10**6, "num_hidden_layers 1000000, expected within 1 … 1000"),
        (("first_k_dense_replace",), 4, "first_k_dense_replace 4, expected within 0 … 3"),
        (("num_experts_per_tok",), 9, "num_experts_per_tok 9, expected within 1 … 8"),
        (("vision_config", "width", "sam_vit_b", "downsample_channels"), [], "two numbers"),
        (("vision_config", "width", "sam_vit_b", "heads"), 3, "heads 3, expected a divisor of 64"),
        (("vision_config", "width", "sam_vit_b", "global_attn_indexes"), [5], "within 0 … 1"),
        (("vision_config", "image_size"), 100, "image_size 100, expected a multiple of 64"),
        (("vision_config",), [1], r"vision_config \[1\], expected a table"),
        (("rope_theta",), 0, "rope_theta 0"),
    ],
)
@pytest.mark.parametrize("config", [SMALL_CONFIG, SECOND_CONFIG], ids=["first", "second"])
def test_what_is_wrong_is_said(
    config: dict[str, Any], path: tuple[str, ...], value: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        shape_from_config(changed(config, path, value), "config.json")


def test_the_encoders_must_fit_each_other() -> None:
    path = ("vision_config", "width", "sam_vit_b", "downsample_channels")
    with pytest.raises(InputError, match="the width of the second encoder"):
        shape_from_config(changed(SMALL_CONFIG, path, [48, 60]), "config.json")
    with pytest.raises(InputError, match="dim 64, expected 896"):
        shape_from_config(
            changed(SECOND_CONFIG, ("vision_config", "width", "qwen2-0-5b", "dim"), 64), "x"
        )
