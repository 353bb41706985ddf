"""Counted on meta = worked out by hand, to the last digit; and replayed layers change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from benchmarks.cost_models import SUBJECTS, Subject, bert, deepseek_v3, gpt2, llama
from torch import Tensor, nn
from torch.nn import functional

from torchstone.cost.counting.engine import run
from torchstone.cost.records.ledger import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    RECOMPUTE,
    Cost,
    ModuleFacts,
)


@pytest.mark.parametrize("name", list(SUBJECTS))
def test_forward_and_backward_by_hand(name: str) -> None:
    subject = SUBJECTS[name]()
    model = subject.build()
    inference = run(model, subject.tensors())
    training = run(model, subject.tensors(), train=True)
    assert inference.failure is None
    assert training.failure is None
    assert inference.uncounted | training.uncounted == set()
    assert inference.parameters() == training.parameters() == subject.parameters
    assert inference.total().flops == subject.forward
    assert training.total(FORWARD).flops == subject.forward
    assert training.total(BACKWARD).flops == subject.backward
    assert training.total(RECOMPUTE).calls == 0


@pytest.mark.parametrize(
    ("name", "multiply_adds"),
    # as printed with the models: torchvision's tables (in 10^9) and the MobileNet paper (569 M)
    [("resnet50", 4.09e9), ("vit_b_16", 17.56e9), ("swin_t", 4.49e9), ("mobilenet_v1", 0.569e9)],
)
def test_the_hand_agrees_with_what_was_published(name: str, multiply_adds: float) -> None:
    assert SUBJECTS[name]().forward / 2 == pytest.approx(multiply_adds, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gpt2", 124_439_808),
        ("bert", 109_482_240),
        ("llama3_8b", 8_030_261_248),
        ("mixtral_8x7b", 46_702_792_704),
        ("qwen3_30b_a3b", 30_532_122_624),
        ("deepseek_v3", 671_026_404_352),
        ("clip_l_14", 303_179_776),
        ("resnet50", 25_557_032),
    ],
)
def test_the_sizes_are_the_published_ones(name: str, parameters: int) -> None:
    assert SUBJECTS[name]().parameters == parameters


def adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, foreach=True)


def replayed(cost: Cost) -> int:
    return sum(bool(item.replayed) for item in cost.modules.values())


def facts(cost: Cost) -> Mapping[str, ModuleFacts]:
    return {path: replace(item, replayed="") for path, item in cost.modules.items()}


def assert_same(cost: Cost, whole: Cost) -> None:
    """All figures of two runs but the timeline, in which copied layers have no points."""
    assert cost.failure is whole.failure is None
    assert cost.entries == whole.entries
    assert facts(cost) == facts(whole)
    assert replace(cost.memory, timeline=()) == replace(whole.memory, timeline=())
    assert cost.uncounted == whole.uncounted


def checkpointed(subject: Subject, reentrant: bool) -> nn.Module:
    model: Any = subject.build()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    return model  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("make", "copies"),
    [(llama, 29), (deepseek_v3, 55), (bert, 9), (gpt2, 9), (SUBJECTS["resnet50"], 2)],
)
def test_replayed_layers_change_no_figure(make: Callable[[], Subject], copies: int) -> None:
    subject = make()
    model, inputs = subject.build(), subject.tensors()
    inference = run(model, inputs)
    assert replayed(inference) == copies
    assert_same(inference, run(model, inputs, replay=False))
    training = run(model, inputs, train=True, optimizer=adamw)
    whole = run(model, inputs, train=True, optimizer=adamw, replay=False)
    assert replayed(training) == copies
    assert replayed(whole) == 0
    assert_same(training, whole)
    assert set(training.memory.peaks) == {FORWARD, BACKWARD, OPTIMIZER}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("make", [gpt2, bert, lambda: llama(layers=8)])
def test_replayed_checkpoints_change_no_figure(
    make: Callable[[], Subject], reentrant: bool
) -> None:
    subject = make()
    model, inputs = checkpointed(subject, reentrant), subject.tensors()
    cost = run(model, inputs, train=True)
    assert replayed(cost) > 0
    assert_same(cost, run(model, inputs, train=True, replay=False))
    assert cost.total(FORWARD).flops == subject.forward
    assert cost.total(BACKWARD).flops == subject.backward


def test_a_checkpoint_stops_when_it_has_what_it_needs() -> None:
    """The last matrix of a layer is not multiplied again: nothing asks for its result."""
    subject = llama(layers=8)
    layers = subject.forward - 2 * 2048 * 4096 * 128256
    last = 8 * 2 * 2048 * 14336 * 4096
    early = run(checkpointed(subject, reentrant=False), subject.tensors(), train=True)
    whole = run(checkpointed(subject, reentrant=True), subject.tensors(), train=True)
    assert early.total(RECOMPUTE).flops == layers - last
    assert whole.total(RECOMPUTE).flops == layers


WIDE = 16
ENDS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: x,
    "norm": lambda x: functional.layer_norm(x, (WIDE,)),
    "relu": functional.relu,
    "relu in place": functional.relu_,
    "view of a relu": lambda x: x.relu().reshape(-1, WIDE).reshape(x.shape),
    "transposed tanh": lambda x: x.transpose(0, 1).contiguous().tanh().transpose(0, 1),
    "dropout": lambda x: functional.dropout(x, 0.5),
    "square": lambda x: x * x,
}


class Block(nn.Module):
    """Two linear layers around an activation, and an end that may be held for the backward."""

    def __init__(self, end: str, residual: bool) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDE, 4 * WIDE), nn.Linear(4 * WIDE, WIDE)
        self.end, self.residual = end, residual

    def forward(self, x: Tensor) -> Tensor:
        made = self.down(functional.gelu(self.up(x)))
        return ENDS[self.end](x + made if self.residual else made)


class Blocks(nn.Module):
    """Seven blocks between two linear layers."""

    def __init__(self, end: str, residual: bool) -> None:
        super().__init__()
        self.first = nn.Linear(WIDE, WIDE)
        self.layers = nn.ModuleList(Block(end, residual) for _ in range(7))
        self.last = nn.Linear(WIDE, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.last(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("end", list(ENDS))
def test_what_a_layer_holds_is_the_same_when_it_is_copied(end: str, residual: bool) -> None:
    with torch.device("meta"):
        model, inputs = Blocks(end, residual), torch.empty(4, 8, WIDE)
    cost = run(model, inputs, train=True)
    assert replayed(cost) >= 3
    assert_same(cost, run(model, inputs, train=True, replay=False))
