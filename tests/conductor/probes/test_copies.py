"""Copies of modules that are called again: only what the copy itself does counts."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import nn

from torchstone.conductor.probes.harvest.recording import ModuleCall, Recording
from torchstone.conductor.probes.replay.copies import case_of
from torchstone.core.place import Place


class Block(nn.Module):
    """Its function holds the layers of the object that it was made in."""

    def __init__(self, kept_in_function: bool) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        layers = self.layers
        if kept_in_function:
            self.run = lambda x: layers(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(x) if hasattr(self, "run") else self.layers(x)


def _case(module: nn.Module) -> tuple[object, dict[str, str]]:
    run = Recording(Path())
    call = ModuleCall(module, (torch.ones(2, 4),), {}, True, True, Place("a.py", 1), True, 0)
    return case_of(run, call), run.not_probed


def test_a_copy_that_runs_layers_of_the_original_is_not_judged() -> None:
    case, why = _case(Block(kept_in_function=True))
    assert case is None
    assert why == {"Block": "a copy of it still calls layers of the original"}


def test_nor_is_a_copy_of_such_a_copy() -> None:
    module = copy.deepcopy(Block(kept_in_function=True)).eval()
    case, _ = _case(module)
    assert case is None


def test_a_plain_module_is() -> None:
    module = Block(kept_in_function=False)
    case, why = _case(module)
    assert case is not None
    assert why == {}
    assert not torch.nn.modules.module._global_forward_pre_hooks
