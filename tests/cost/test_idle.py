"""Modules that hold parameters and never ran are told first; what is used without a call is not."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

from torchstone import measure_cost
from torchstone.cost.measure import PartialCostWarning
from torchstone.cost.records.idle import idle_parts


class TwoTowers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.text = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
        self.image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
        self.head = nn.Linear(8, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.text(ids))


def test_a_tower_that_never_ran_comes_first() -> None:
    with pytest.warns(PartialCostWarning, match=r"image \(260\)"):
        report = measure_cost(TwoTowers(), torch.zeros(2, 8))
    assert idle_parts(report.cost) == {"image": 260}
    assert report.answer is not None
    assert report.answer.state == "warning"
    text = report.to("text")
    assert text.splitlines()[0].startswith("! Partial: 61.6%")
    assert "image (260)" in text


class Projected(nn.Module):
    """The parameters of a child are used, and its forward is not."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.inner.weight, self.inner.bias)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (Projected(), (2, 8)),
        (
            nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3),
            (2, 5, 8),
        ),
        (nn.Sequential(*(nn.Linear(8, 8) for _ in range(6))), (2, 8)),
        (nn.LSTM(8, 8, 2, batch_first=True), (2, 5, 8)),
    ],
)
@pytest.mark.parametrize("train", [False, True])
def test_what_is_used_is_not_idle(model: nn.Module, shape: tuple[int, ...], train: bool) -> None:
    before = {name: id(item) for name, item in model.named_parameters()}
    kinds = {type(module._parameters) for module in model.modules()}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartialCostWarning)
        report = measure_cost(model, shape, train=train)
    assert idle_parts(report.cost) == {}
    assert {name: id(item) for name, item in model.named_parameters()} == before
    assert {type(module._parameters) for module in model.modules()} == kinds, (
        "the model is as it was"
    )


def test_shapes_stand_for_inputs() -> None:
    model = nn.Linear(16, 4)
    assert (
        measure_cost(model, (4, 16)).total["flops"]
        == measure_cost(model, torch.zeros(4, 16)).total["flops"]
    )
    pair = nn.Bilinear(3, 5, 2)
    assert measure_cost(pair, [(4, 3), (4, 5)]).total["flops"] > 0


def test_a_report_is_three_lines_in_a_shell() -> None:
    shown = repr(measure_cost(nn.Linear(16, 4), (4, 16)))
    assert len(shown.splitlines()) == 3
    assert "68 parameters" in shown


def test_without_torch_an_import_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import importlib.abc\n"
        "class Gone(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.partition('.')[0] == 'torch': raise ModuleNotFoundError('no torch', name='torch')\n"
        "del sys.modules['torch']; sys.meta_path.insert(0, Gone())\n"
        "import torchstone\n"
        "torchstone.measure_cost\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        'ImportError: torchstone.measure_cost needs torch, which is not installed: pip install "torchstone[torch]"'
        in done.stderr
    )
    assert "During handling" not in done.stderr


def test_a_missing_bias_hides_no_idle_part() -> None:
    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.text = nn.Linear(8, 8, bias=False)
            self.image = nn.Linear(8, 8, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.text(x)

    with pytest.warns(PartialCostWarning):
        report = measure_cost(Towers(), (2, 8))
    assert idle_parts(report.cost) == {"image": 64}


class _Decoder(nn.Module):
    """A layer with a part that only runs with something to look at."""

    def __init__(self) -> None:
        super().__init__()
        self.work, self.cross = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, seen: torch.Tensor | None = None) -> torch.Tensor:
        return self.work(x) if seen is None else self.cross(seen)


def test_idle_parts_of_layers_that_an_equal_one_stands_for_count_too() -> None:
    model = nn.Sequential(*(_Decoder() for _ in range(8)))
    with pytest.warns(PartialCostWarning, match=r"50\.0%"):
        measure_cost(model, (4, 8))
