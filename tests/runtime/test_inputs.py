"""Inputs as the user writes them and as the model tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from torchstone.core.errors import InputError, UsageError
from torchstone.runtime.inputs import default_inputs, parse_inputs


def shapes(made: Any) -> Any:
    if isinstance(made, dict):
        return {name: tuple(value.shape) for name, value in made.items()}
    return [tuple(value.shape) for value in made]


def test_a_shape_is_a_meta_tensor() -> None:
    (made,) = parse_inputs(["8,3,224,224:bf16"])
    assert made.shape == (8, 3, 224, 224)
    assert made.dtype is torch.bfloat16
    assert made.is_meta


def test_sizes_may_have_units_and_spaces() -> None:
    assert shapes(parse_inputs(["1, 128k : int64".replace(" :", ":").replace(": ", ":")])) == [
        (1, 131072)
    ]
    assert shapes(parse_inputs(["8", "4,2"])) == [(8,), (4, 2)]


def test_named_inputs_are_keywords() -> None:
    made = parse_inputs(["ids=2,128:int64", "mask=2,128:bool", "use_cache=false", "past=none"])
    assert isinstance(made, dict)
    assert made["ids"].dtype is torch.int64
    assert made["mask"].dtype is torch.bool
    assert made["use_cache"] is False
    assert made["past"] is None


class Two(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask


def test_unnamed_beside_named_take_the_names_of_forward() -> None:
    made = parse_inputs(["2,3", "mask=2,3"], Two())
    assert shapes(made) == {"x": (2, 3), "mask": (2, 3)}
    with pytest.raises(UsageError, match="name all of them"):
        parse_inputs(["2,3", "mask=2,3"])
    with pytest.raises(UsageError, match="name all of them"):
        parse_inputs(["2,3", "x=2,3"], Two())


@pytest.mark.parametrize(
    ("specs", "says"),
    [
        ([], "a shape such as"),
        ([""], "a shape such as"),
        (["8,-3,4"], "whole number"),
        (["8,0"], "whole number"),
        (["8,3:bf17"], "known name"),
        (["8,,3"], "whole number"),
        (["8x3x224"], "a shape such as"),
        (["x=hello"], "a shape such as"),
        (["x=8,3", "x=8,3"], "every name once"),
        (["999999999999,999999999999,99"], "2\\^63 bytes"),
        (["4g,4g:fp64"], "2\\^63 bytes"),
        (["9" * 40], "whole number"),
        (["1.5,2"], "whole number"),
    ],
)
def test_wrong_inputs(specs: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_inputs(specs)


def test_a_function_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "given.py"
    file.write_text(
        "import torch\n"
        "def named(): return {'x': torch.zeros(2)}\n"
        "def listed(): return [torch.zeros(2), 3]\n"
        "def one(): return torch.zeros(2)\n"
        "def wrong(): return 'text'\n"
        "def broken(): raise ValueError('no data here')\n"
        "ready = (torch.zeros(5),)\n"
    )
    assert shapes(parse_inputs([f"{file}:named"])) == {"x": (2,)}
    assert isinstance(parse_inputs([f"{file}:listed"]), tuple)
    assert isinstance(parse_inputs([f"{file}:one"]), torch.Tensor)
    assert shapes(parse_inputs([f"{file}:ready"])) == [(5,)]
    with pytest.raises(InputError, match="got a str, expected a tensor"):
        parse_inputs([f"{file}:wrong"])
    with pytest.raises(InputError, match=r"given.py:6\): got ValueError: no data here"):
        parse_inputs([f"{file}:broken"])
    with pytest.raises(InputError, match="did you mean 'named'"):
        parse_inputs([f"{file}:nammed"])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nn.Conv2d(3, 8, 3), [(2, 3, 224, 224)]),
        (nn.Sequential(nn.Flatten(), nn.Linear(784, 10)), [(2, 784)]),
        (nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 4)), [(2, 32)]),
        (nn.Conv1d(4, 8, 3), [(2, 4, 32)]),
        (nn.Conv3d(3, 8, 3), [(2, 3, 16, 112, 112)]),
        (nn.LSTM(6, 8), [(32, 2, 6)]),
        (nn.GRU(6, 8, batch_first=True), [(2, 32, 6)]),
        (nn.TransformerEncoderLayer(16, 2, batch_first=True), [(2, 32, 16)]),
        (nn.Transformer(16, 2, 1, 1, 32), [(32, 2, 16), (32, 2, 16)]),
    ],
)
def test_the_first_layer_tells(model: nn.Module, expected: list[Any]) -> None:
    made = default_inputs(model.to("meta"), batch=2, seq=32)
    assert shapes(made) == expected
    assert isinstance(made, tuple)
    model(*made)


def test_inputs_are_in_the_format_of_the_weights() -> None:
    (made,) = default_inputs(nn.Linear(4, 2, device="meta", dtype=torch.bfloat16))
    assert made.dtype is torch.bfloat16


def test_timm_says_what_its_models_take() -> None:
    (made,) = default_inputs(nn.Identity(), {"input_size": (3, 256, 256)}, batch=4)
    assert made.shape == (4, 3, 256, 256)


@pytest.mark.parametrize("model", [Two(), nn.ReLU(), nn.Identity(), nn.ModuleList([Two()])])
def test_a_model_that_does_not_tell(model: nn.Module) -> None:
    with pytest.raises(UsageError, match="--input"):
        default_inputs(model)


def test_more_arguments_than_the_first_layer_tells() -> None:
    class Pair(Two):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

    with pytest.raises(UsageError, match="takes x, mask"):
        default_inputs(Pair())
