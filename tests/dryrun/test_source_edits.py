"""A fix that was tried by running, written into the user's source."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.core.fix import apply_edits
from torchstone.core.place import Place
from torchstone.dryrun.record import OperatorError, SourceChange, TriedFix
from torchstone.dryrun.shapes.source_edits import fix_of

NET = """import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Linear(in_features=8, out_features=width)
        self.last = nn.Linear(width + 1, 4)  # 注释
        self.stack = nn.Sequential(nn.Linear(3, 4))

    def forward(self, x, y):
        名 = self.last(self.first(x))
        z = x @ y
        w = torch.matmul(x + 1, y)
        a, b = F.mse_loss(x, y), F.mse_loss(y, x)
        return F.cross_entropy(名, y.float())
"""


def fixed(tmp_path: Path, line: int, op: str, change: SourceChange, module: str = "") -> str | None:
    path = tmp_path / "net.py"
    path.write_text(NET, "utf-8")
    tried = (
        TriedFix("no", "no", False, source=change),
        TriedFix("do it", "do it", True, source=change),
    )
    fix = fix_of(OperatorError(op, "", Place(str(path), line), module=module, fixes=tried))
    return apply_edits(NET, fix.edits) if fix else None


@pytest.mark.parametrize(
    ("line", "op", "module", "change", "wanted"),
    [
        (
            14,
            "F.linear",
            "net.last",
            SourceChange(0, ".flatten(1)"),
            "self.last(self.first(x).flatten(1))",
        ),
        (
            14,
            "F.linear",
            "net.last",
            SourceChange(layer="in_features", size=16),
            "nn.Linear(16, 4)",
        ),
        (14, "F.linear", "first", SourceChange(layer="in_features", size=9), "in_features=9,"),
        (15, "matmul", "", SourceChange(1, ".transpose(-2, -1)"), "x @ y.transpose(-2, -1)"),
        (16, "torch.matmul", "", SourceChange(0, ".t()"), "torch.matmul((x + 1).t(), y)"),
        (
            18,
            "F.cross_entropy",
            "",
            SourceChange(1, ".long()"),
            "F.cross_entropy(名, y.float().long())",
        ),
    ],
)
def test_the_change_stands_where_it_was_meant(
    tmp_path: Path, line: int, op: str, module: str, change: SourceChange, wanted: str
) -> None:
    text = fixed(tmp_path, line, op, change, module)
    assert text is not None
    assert wanted in text
    assert len(text.splitlines()) == len(NET.splitlines())


@pytest.mark.parametrize(
    ("line", "op", "module", "change"),
    [
        (17, "F.mse_loss", "", SourceChange(0, ".t()")),  # two such calls on the line
        (14, "F.linear", "stack.0", SourceChange(layer="in_features", size=3)),  # built in a list
        (14, "F.conv2d", "", SourceChange(0, ".t()")),  # no such call
        (15, "matmul", "", SourceChange()),  # no change of the source is known
        (99, "matmul", "", SourceChange(0, ".t()")),
    ],
)
def test_nothing_is_guessed(
    tmp_path: Path, line: int, op: str, module: str, change: SourceChange
) -> None:
    assert fixed(tmp_path, line, op, change, module) is None


def test_a_file_that_is_gone_gives_no_fix(tmp_path: Path) -> None:
    tried = (TriedFix("do it", "do it", True, source=SourceChange(0, ".t()")),)
    assert (
        fix_of(OperatorError("matmul", "", Place(str(tmp_path / "no.py"), 1), fixes=tried)) is None
    )
