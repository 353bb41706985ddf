"""A tensor has the same risk in the table of its checkpoint and when it is looked at alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from torchstone.core.pictures import Table
from torchstone.core.report import Report
from torchstone.tensors import analyze_tensor
from torchstone.tensors.files.answer import answer_for_file
from torchstone.tensors.options import TensorOptions


def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    plain = torch.randn(64, 64)
    outlier, broken = plain.clone(), plain.clone()
    outlier[0, 0] = 3e5
    broken[3, 3] = torch.nan
    return {
        "plain": plain,
        "unbalanced": plain * torch.tensor([1000.0] * 32 + [0.5] * 32),
        "slightly_unbalanced": plain * torch.tensor([20.0] * 32 + [0.5] * 32),
        "outlier": outlier,
        "tiny": plain * 1e-8,
        "broken": broken,
        "norm.weight": torch.linspace(1e-9, 1e5, 64),
        "wide": plain * torch.logspace(-12, 4, 64),
    }


def answer(path: Path, name: str = "") -> Report:
    save_file(tensors(), path / "m.safetensors")
    options = TensorOptions(str(path / "m.safetensors"), name=name)
    return answer_for_file(options, "en", lambda *_: None)


def test_the_table_and_the_tensor_alone_agree(tmp_path: Path) -> None:
    report = answer(tmp_path)
    assert report.answer is not None
    table = report.answer.pictures[0]
    assert isinstance(table, Table)
    in_table = {row[1]: row[0].en for row in table.rows}
    alone = {name: analyze_tensor(item, name).risk_level for name, item in tensors().items()}
    assert in_table == alone
    assert set(alone.values()) == {"LOW", "MEDIUM", "HIGH"}


@pytest.mark.parametrize("name", ["unbalanced", "broken"])
def test_a_high_risk_is_told_in_the_same_words(tmp_path: Path, name: str) -> None:
    whole = [f for f in answer(tmp_path).findings if f.location.tensor == name]
    alone = answer(tmp_path, name).findings
    assert whole[0].rule == alone[0].rule
    assert whole[0].message("en") == alone[0].message("en")
    assert whole[0].severity == alone[0].severity
