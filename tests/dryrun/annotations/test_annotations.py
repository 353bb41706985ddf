"""jaxtyping annotations: violated ones are found, missing ones are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.core.errors import UsageError
from torchstone.core.evidence import Diff
from torchstone.core.place import Place
from torchstone.core.report import Report
from torchstone.dryrun.annotations.axis_names import AxisNames, shapes_of
from torchstone.dryrun.record import ObservedArray, ObservedFunction

Run = Callable[..., Report]

ANNOTATED = """\
import torch
from torch import Tensor, nn
from jaxtyping import Float, Int

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 32)

    def forward(self, x: Float[Tensor, "batch 16"]) -> Float[Tensor, "batch {width}"]:
        return self.layer(x)

def loss(pair: tuple[Float[Tensor, "batch dim"], Int[Tensor, "batch"] | None]) -> Float[Tensor, ""]:
    return pair[0].sum()

out = Net().cuda()(torch.randn(8, 16).cuda())
loss((out, None))
loss((out, torch.zeros({labels}, dtype=torch.int64)))
"""


def test_annotations_that_hold_are_silent(run: Run) -> None:
    assert run(ANNOTATED.format(width=32, labels=8)).findings == ()


def test_a_violated_annotation_names_line_shape_and_axes(run: Run) -> None:
    first, second = run(ANNOTATED.format(width=31, labels=4)).findings
    assert (first.rule, first.line) == ("DR203", 11)
    assert "return of Net.forward is (8, 32) float32" in first.message()
    assert "Float[Tensor, 'batch 31'] with batch = 8" in first.message()
    assert (second.rule, second.line) == ("DR203", 18)
    assert "pair[1] of loss is (4,) int64" in second.message()
    assert "batch = 8, dim = 32" in second.message("zh")


CHECKED = """\
import torch
from torch import Tensor
from beartype import beartype
from jaxtyping import Float, jaxtyped

@jaxtyped(typechecker=beartype)
def twice(x: Float[Tensor, "batch 16"]) -> Float[Tensor, "batch 16"]:
    return x * 2

twice(torch.nn.Linear(4, 4)(torch.ones(2, 4)))
"""


def test_the_projects_own_type_checker_is_understood(run: Run) -> None:
    (finding,) = run(CHECKED).findings
    assert (finding.rule, finding.line) == ("DR203", 10)
    assert "'x'" in finding.message()


PLAIN = '''\
"""Ünïcode before the code."""
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 10)

    def forward(self, x, mask=None):
        h = self.hidden(x)
        return self.b(h), h

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x).relu()


@torch.no_grad()
def accuracy(out,
             y, scale=2):
    return (out.argmax(1) == y).float().mean()


net = Net()
data = TensorDataset(torch.randn(100, 16), torch.zeros(100).long())
for x, y in DataLoader(data, batch_size=32):
    out, h = net(x)
    accuracy(out, y)
    nn.functional.cross_entropy(out, y).backward()
'''


def test_annotations_are_shown_and_only_written_on_request(run: Run, folder: Path) -> None:
    shown = run(PLAIN, annotate=True)
    assert (folder / "train.py").read_text("utf-8") == PLAIN
    (diff,) = [one for item in shown.measures for one in item.evidence if isinstance(one, Diff)]
    assert '+    def hidden(self, x: Float[torch.Tensor, "batch dim"]) -> ' in diff.text
    run(PLAIN, annotate=True, write=True)
    text = (folder / "train.py").read_text("utf-8")
    assert "from jaxtyping import Float, Int\n" in text
    assert 'x: Float[torch.Tensor, "batch dim"], mask=None)' in text
    assert '-> tuple[Float[torch.Tensor, "batch dim3"], Float[torch.Tensor, "batch dim2"]]:' in text
    assert 'y: Int[torch.Tensor, "batch"], scale=2) -> Float[torch.Tensor, ""]:' in text
    again = run(text, annotate=True)
    assert again.findings == ()  # what was written holds
    assert again.measures[0].value == 0  # and nothing is left to write


def test_writing_needs_the_annotations(run: Run) -> None:
    with pytest.raises(UsageError, match="--annotate"):
        run(PLAIN, write=True)


def test_axes_share_a_name_when_they_are_equal_in_all_calls() -> None:
    def call(batch: int) -> tuple[ObservedArray, ...]:
        return (
            ObservedArray("x", (batch, 8, 16), "float32"),
            ObservedArray("mask", (8, 8), "bool"),
            ObservedArray("scale", (1, 16), "float32"),
        )

    seen = ObservedFunction(Place("a.py", 1), (call(16), call(7)))
    names, shapes = AxisNames([seen]), shapes_of(seen)
    assert names.text(shapes["x"]) == "batch time dim"  # 16 is a batch size and a width
    assert names.text(shapes["mask"]) == "time time"
    assert names.text(shapes["scale"]) == "1 dim"
    assert names.text([(2,), (2, 3)]) == "..."


TWO_HEADS = """\
import torch
import first, second

first.head(torch.zeros(2, 3))
second.head(torch.zeros(2, 4))
"""
HEAD = """\
from torch import Tensor
from jaxtyping import Float


def head(x: Float[Tensor, "b {size}"]):
    return x + 1
"""


def test_equal_functions_of_two_files_have_their_own_annotations(run: Run, tmp_path: Path) -> None:
    """Their code objects are equal: annotations are no part of them, nor is the file."""
    for name, size in (("first", 3), ("second", 4)):
        (tmp_path / f"{name}.py").write_text(HEAD.format(size=size))
    assert run(TWO_HEADS).findings == ()
    (tmp_path / "second.py").write_text(HEAD.format(size=5))
    (found,) = run(TWO_HEADS).findings
    assert (found.rule, found.line) == ("DR203", 5)
    assert "Float[Tensor, 'b 5']" in found.message()
