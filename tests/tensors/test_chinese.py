"""Chinese reports are Chinese: no word of ours is left in English."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from torchstone import analyze_tensor, compare_precision, compare_runs
from torchstone.core.errors import TorchstoneError
from torchstone.tensors.files import open_tensors
from torchstone.tensors.files.answer import answer_for_file
from torchstone.tensors.options import TensorOptions

ENGLISH = re.compile(
    r"\b(octaves?|forward|backward|reduce in fp32|other format|scale per|granularity|running sum|"
    r"units? of rounding|values|operators?|layers?|HIGH|MEDIUM|LOW|mean|norm|nothing|\(model\)|lost|"
    r"flushed|the|of|with|that)\b"
)


class Cancels(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = x + 30
        return (high * high).sum(-1) - high.sum(-1) * 30


def tensor(_: Path) -> Any:
    torch.manual_seed(0)
    return analyze_tensor(torch.randn(64, 8) * torch.logspace(-9, 3, 8), "w")


def precision(_: Path) -> Any:
    torch.manual_seed(0)
    return compare_precision(Cancels(), torch.randn(8, 16), low=torch.float16, bound=0.0)


def runs(_: Path) -> Any:
    torch.manual_seed(0)
    return compare_runs(nn.Linear(8, 8), nn.Linear(8, 8), torch.ones(2, 8))


def checkpoint(path: Path) -> Any:
    save_file({"a": torch.full((4, 4), torch.nan), "b": torch.eye(4)}, path / "m.safetensors")
    return answer_for_file(TensorOptions(str(path / "m.safetensors")), "zh", lambda *_: None)


@pytest.mark.parametrize("make", [tensor, precision, runs, checkpoint])
def test_no_english_word_is_left(make: Any, tmp_path: Path) -> None:
    text = make(tmp_path).to("markdown", "zh").replace("\\", "").replace(str(tmp_path), "")
    text = re.sub(r"\[(HIGH|MEDIUM|LOW)\]", "", text)  # as every tool of the package marks findings
    lines = [
        line for line in text.splitlines() if not line.startswith((" ", "|  ")) and "`" not in line
    ]
    assert [line for line in lines if ENGLISH.search(line)] == []


def test_errors_are_chinese_too(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(TorchstoneError) as caught:
        open_tensors(tmp_path / "m.safetensors")
    assert not ENGLISH.search(caught.value.say("zh").replace(str(tmp_path), ""))
    nothing: Any = [1, 2]
    with pytest.raises(TorchstoneError) as caught:
        analyze_tensor(nothing, "w")
    assert (
        caught.value.say("zh")
        == "w：得到 list，应为 torch 张量或 numpy 数组；请传入 torch.as_tensor(…) 的结果"
    )
