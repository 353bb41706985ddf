"""The steps of a batch, or of one call, as one function that `torch.compile` makes of them.

Entries are integer and float arithmetic in many operators. Compiled together they are a few kernels:
resize, colours and scaling of a batch need one. A compiler may round another way, so that a compiled
function is used only when it gave the same bits as the steps one by one on a batch of the program.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torchstone.dataflow.device.profile import can_compile

logger = logging.getLogger("migration")

OnBatch = Callable[[Tensor], Tensor]
BATCHES = 4
"""Batches of a kind that are computed step by step before it is compiled: compiling takes seconds, and
kinds of random sizes come once."""
KINDS = 8
"""Kinds that are compiled for one migrator."""


@dataclass(slots=True)
class Fuser:
    """Compiled functions by the kind of their batch. `is_wanted`: None compiles where Triton is."""

    is_wanted: bool | None = None
    compile: Callable[[Any], OnBatch] = lambda graph: torch.compile(graph, dynamic=False)
    outcomes: dict[str, str] = field(default_factory=dict)
    """What became of each chain of steps that was tried: `fused`, or why not."""
    _seen: Counter[Hashable] = field(default_factory=Counter)
    _made: dict[Hashable, OnBatch] = field(default_factory=dict)

    def run(self, compute: OnBatch, batch: Tensor, steps: Hashable, name: str) -> Tensor:
        """What `compute` makes of the batch; equal `steps` compute the same."""
        if not self.compiles(batch.device):
            return compute(batch)
        kind = (steps, tuple(batch.shape), batch.dtype, batch.device)
        if kind in self._made:
            return self._made[kind](batch)
        result = compute(batch)
        self._seen[kind] += 1
        if self._seen[kind] == BATCHES and len(self._made) < KINDS:
            self._made[kind] = self._fused(compute, batch, result, name)
        return result

    def compiles(self, device: torch.device) -> bool:
        return can_compile(device.type) if self.is_wanted is None else self.is_wanted

    def _fused(self, compute: OnBatch, batch: Tensor, expected: Tensor, name: str) -> OnBatch:
        """The compiled function, or `compute` where there is none that gives the same bits."""
        from torch.fx.experimental.proxy_tensor import make_fx  # here: it loads sympy for a second

        try:
            # as operators on tensors: tables and what else Python decides are constants of the kind
            made = self.compile(make_fx(compute)(batch))
            got = made(batch)
        except Exception as error:  # no compiler, an operator that it does not know
            outcome = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        else:
            same = got.dtype == expected.dtype and torch.equal(got, expected)
            outcome = "fused" if same else "the compiled function gives other bits"
        self.outcomes[name] = outcome
        logger.info("%s: %s", name, outcome)
        return made if outcome == "fused" else compute
