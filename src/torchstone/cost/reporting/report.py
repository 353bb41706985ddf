"""The report of a cost: totals, stages, modules and operators, as mappings and as pictures."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchstone.core.report import Report
from torchstone.cost.records.ledger import (
    BACKWARD,
    FORWARD,
    NOTHING,
    OPTIMIZER,
    RECOMPUTE,
    Cost,
    Tally,
)
from torchstone.cost.stages import Stages

Figures = Mapping[str, int]


@dataclass(frozen=True, repr=False)
class CostReport(Report):
    """What a model costs. `total`, `stages`, `modules` and `operators` read as mappings."""

    cost: Cost = Cost({}, {})
    division: Stages | None = None
    convention: str = "flop"
    causal: bool = False
    config: Any = None

    @functools.cached_property
    def _counted(self) -> Cost:
        """The cost with the FLOPs of recomputation left out: they are no work of the model."""
        entries = {
            key: tally._replace(flops=0, causal_flops=0) if key.phase == RECOMPUTE else tally
            for key, tally in self.cost.entries.items()
        }
        return replace(self.cost, entries=entries)

    @functools.cached_property
    def total(self) -> Figures:
        """Of the whole model: `params`, `flops`, `bytes`, `activations`, `peak_memory_bytes`, …"""
        cost = self.cost
        memory = cost.memory
        whole = self._counted.total()
        return {
            "params": cost.parameters(),
            "trainable_params": sum(item.trainable for item in cost.modules.values()),
            **self._work(whole),
            "forward_flops": self._flops(cost.total(FORWARD)),
            "backward_flops": self._flops(cost.total(BACKWARD)),
            "recompute_flops": self._flops(cost.total(RECOMPUTE)),
            "activations": memory.activations,
            "peak_memory_bytes": memory.peak,
            "parameter_bytes": memory.parameters,
            "buffer_bytes": memory.buffers,
            "gradient_bytes": memory.gradients,
            "optimizer_bytes": memory.optimizer,
        }

    @functools.cached_property
    def stages(self) -> Mapping[str, Figures]:
        """By stage; every operator is in exactly one."""
        if self.division is None:
            return {}
        work = dict.fromkeys(self.division.names, NOTHING)
        for key, tally in self._counted.entries.items():
            name = OPTIMIZER if key.phase == OPTIMIZER else self.division.of(key.module)
            work[name] = work.get(name, NOTHING) + tally
        facts: dict[str, list[Any]] = {name: [] for name in work}
        peaks = {OPTIMIZER: self.cost.memory.peaks.get(OPTIMIZER, 0)}
        for path, item in self.cost.modules.items():
            facts[self.division.of(path)].append(item)
        return {
            name: {
                "params": sum(item.parameters for item in facts[name]),
                **self._work(tally),
                "activations": sum(item.activation_bytes for item in facts[name]),
                "peak_memory_bytes": max(
                    (item.peak_bytes for item in facts[name]), default=peaks.get(name, 0)
                ),
            }
            for name, tally in work.items()
            if tally.calls or any(item.parameters for item in facts[name])
        }

    @functools.cached_property
    def modules(self) -> Mapping[str, Figures]:
        """By module path, each with all that is inside it; "" is the model."""
        work = self._counted.by_module()
        sums: dict[str, list[int]] = {path: [0, 0] for path in self.cost.modules}
        for path, item in self.cost.modules.items():
            for above in _upwards(path):
                sums[above][0] += item.parameters
                sums[above][1] += item.activation_bytes
        return {
            path: {
                "params": sums[path][0],
                **self._work(work[path]),
                "activations": sums[path][1],
                "peak_memory_bytes": item.peak_bytes if path else self.cost.memory.peak,
            }
            for path, item in self.cost.modules.items()
        }

    @functools.cached_property
    def operators(self) -> Mapping[str, Figures]:
        """By operator, all phases together, the costliest first."""
        work = self._counted.by_operator()
        order = sorted(work, key=lambda name: (-work[name].flops, -work[name].bytes))
        return {name: self._work(work[name]) for name in order}

    def _flops(self, tally: Tally) -> int:
        flops = tally.flops - (tally.causal_flops if self.causal else 0)
        return flops // 2 if self.convention in ("mac", "fvcore") else flops

    def _work(self, tally: Tally) -> dict[str, int]:
        return {
            "flops": self._flops(tally),
            "vector_flops": tally.vector_flops,
            "bytes": tally.bytes,
            "bytes_read": tally.bytes_read,
            "bytes_written": tally.bytes_written,
            "calls": tally.calls,
        }


def _upwards(path: str) -> Iterable[str]:
    yield path
    while path:
        path = path.rpartition(".")[0]
        yield path
