"""A comparison never dies, and says where an error comes from that no single line explains."""

from __future__ import annotations

import torch
from torch import nn

from torchstone import compare_precision
from torchstone.tensors.compare.plan import outermost


class Chaotic(nn.Module):
    """Every round makes the error a little larger: no line makes it alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + 3 * torch.sin(3 * layer(x))
        return x


class TinyLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        loss = torch.sigmoid(self.layer(x)).mean()
        return loss * 1e-9


class Picky(nn.Module):
    """Refuses to be run in any type but the one of its first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.second = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if any(item.dtype != self.first.weight.dtype for item in self.parameters()):
            raise TypeError("mixed types")
        for layer in self.second:
            x = torch.sin(30 * layer(x))
        return x


class Fixed(nn.Module):
    """Makes its own fp32 numbers: it does not run when it is cast."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x.float(), self.layer.weight)


def batch() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(4, 16)


def test_an_error_of_many_rounds_is_shown_line_by_line() -> None:
    given = batch()
    report = compare_precision(Chaotic(), given, simulate=True, lang="en")
    assert report.first_bad is None
    assert report.unexplained
    leaving = [item.leaving for item in report.growth]
    assert len(leaving) >= 3
    assert leaving == sorted(leaving)
    text = str(report)
    assert "no single line is to blame: the error grows over" in text
    assert "x = x + 3 * torch.sin(3 * layer(x))" in text
    assert "Where the error grows" in report.to("html")
    assert "不是由某一行造成" in report.to("text", "zh")


def test_a_loss_that_became_zero_is_named_at_its_line() -> None:
    given = batch()
    report = compare_precision(TinyLoss(), given, low=torch.float16, simulate=True, lang="en")
    bad = report.first_bad
    assert bad is not None
    assert bad.kind == "flushed"
    assert bad.operator == "mul"
    assert "makes the loss zero in float16" in str(report)


def test_a_plan_that_cannot_be_run_is_infinitely_bad() -> None:
    given = batch()
    report = compare_precision(Picky(), given, simulate=True)
    assert report.plan is not None
    assert report.plan.keep == ()
    assert not report.plan.reached
    assert report.plan.runs > 1


def test_parts_of_a_kept_module_are_not_kept_again() -> None:
    assert outermost(frozenset({"a", "a.b", "a.b.c", "ab"})) == {"a", "ab"}


def test_a_model_that_cannot_be_cast_runs_under_autocast() -> None:
    given = batch()
    report = compare_precision(Fixed(), given, low=torch.float16, simulate=False, plan=False)
    assert any("it ran under autocast" in note.en for note in report.notes)
