"""A cost cut into the units that parallel training moves around: blocks, and what is outside them.

A block is the first numbered module on a path (`model.layers.5`). Experts are modules under a part
named `experts`, or whose class is named so; norms and routers are kept whole by tensor parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.records.ledger import FORWARD, Cost, ModuleFacts, inside


@dataclass(frozen=True, slots=True)
class Unit:
    """Bytes and parameters of one block, or of one module outside the blocks."""

    path: str
    block: bool = False
    split_bytes: int = 0
    """Parameters that tensor parallelism splits."""
    whole_bytes: int = 0
    """Parameters that every tensor rank holds."""
    expert_bytes: int = 0
    split_trainable: int = 0
    whole_trainable: int = 0
    expert_trainable: int = 0
    split_gradients: int = 0
    """Bytes of gradients in the number format of the parameters."""
    whole_gradients: int = 0
    expert_gradients: int = 0
    buffers: int = 0
    shared_bytes: int = 0
    """Tied weights that an earlier unit owns: held twice once a pipeline parts the two."""
    split_activations: int = 0
    whole_activations: int = 0
    """Of norms and residuals: only sequence parallelism splits them."""
    attention_activations: int = 0
    """The part of `split_activations` that attention modules keep themselves."""
    boundary: int = 0
    """Bytes of what the block hands to the next one."""

    @property
    def parameters(self) -> int:
        return self.split_bytes + self.whole_bytes + self.expert_bytes

    @property
    def activations(self) -> int:
        return self.split_activations + self.whole_activations

    def __add__(self, other: Unit) -> Unit:
        sums = {
            item.name: getattr(self, item.name) + getattr(other, item.name)
            for item in fields(self)
            if item.name not in ("path", "block", "boundary")
        }
        return Unit(self.path, self.block, boundary=self.boundary or other.boundary, **sums)


def units_of(cost: Cost, boundary_bytes: int | None = None) -> tuple[Unit, ...]:
    """The units in the order of the model; `boundary_bytes` overrides what blocks hand on."""
    itemsize = _itemsize(cost)
    found: dict[str, Unit] = {}
    for path, facts in cost.modules.items():
        block = block_of(path)
        name = block or path
        unit = _unit(facts, name, bool(block), itemsize)
        found[name] = found[name] + unit if name in found else unit
    boundaries = _boundaries(cost, {name for name, unit in found.items() if unit.block})
    return tuple(
        replace(unit, boundary=_boundary(unit, boundaries, boundary_bytes))
        for unit in found.values()
    )


def _boundary(unit: Unit, boundaries: dict[str, int], given: int | None) -> int:
    if not unit.block:
        return 0
    return boundaries.get(unit.path, 0) if given is None else given


def block_of(path: str) -> str:
    """The path of the block that a module is in, "" when it is in none."""
    parts = path.split(".")
    for index, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: index + 1])
    return ""


def is_expert(path: str, kind: str) -> bool:
    """Do expert-parallel ranks hold different ones of these? Shared experts are not meant."""
    return kind.endswith("Experts") or any(
        part in ("experts", "local_experts") for part in path.split(".")
    )


def stages_of(units: Sequence[Unit], pipeline: int) -> tuple[tuple[Unit, ...], ...]:
    """Units of each pipeline stage: blocks evenly in order, the rest beside its neighbours."""
    blocks = [unit.path for unit in units if unit.block]
    if pipeline > max(len(blocks), 1):
        raise UsageError(
            "plan pipeline",
            str(pipeline),
            Text(f"at most the {len(blocks)} blocks", f"不超过 {len(blocks)} 个块"),
            Text("change the degrees of the plan", "请调整方案的并行度"),
        )
    stage_of: dict[str, int] = {}
    for index, path in enumerate(blocks):
        stage_of[path] = index * pipeline // len(blocks)
    stages: list[list[Unit]] = [[] for _ in range(pipeline)]
    last = 0
    for unit in units:
        if unit.block:
            last = stage_of[unit.path]
            stages[last].append(unit)
        elif any(inside(path, unit.path) for path in blocks):
            stages[-1].append(unit)  # what holds the blocks: the loss and the like come last
        else:
            stages[last].append(unit)
    return tuple(tuple(stage) for stage in stages)


def _unit(facts: ModuleFacts, name: str, block: bool, itemsize: float) -> Unit:
    path, kind = facts.path, facts.kind
    place = "split"
    if is_expert(path, kind):
        place = "expert"
    elif "Norm" in kind or "Router" in kind or path.endswith((".gate", ".router")):
        place = "whole"
    gradients = 0
    if facts.parameters:
        gradients = facts.parameter_bytes * facts.trainable // facts.parameters
    residual = "Norm" in kind or not block or path == name
    kept = facts.activation_bytes
    return Unit(
        path=name,
        block=block,
        **{
            f"{place}_bytes": facts.parameter_bytes,
            f"{place}_trainable": facts.trainable,
            f"{place}_gradients": gradients,
        },
        buffers=facts.buffer_bytes,
        shared_bytes=round(facts.shared * itemsize),
        split_activations=0 if residual else kept,
        whole_activations=kept if residual else 0,
        attention_activations=kept if not residual and "Attention" in kind else 0,
    )


def _itemsize(cost: Cost) -> float:
    count = sum(item.parameters for item in cost.modules.values())
    size = sum(item.parameter_bytes for item in cost.modules.values())
    return size / count if count else 0.0


def _boundaries(cost: Cost, blocks: set[str]) -> dict[str, int]:
    """What a block hands on: the largest its own code writes in one call (a residual sum), or
    what the last of its operators writes when it has none of its own."""
    own: dict[str, int] = {}
    last: dict[str, int] = {}
    for key, tally in cost.entries.items():
        if key.phase != FORWARD or not tally.bytes_written:
            continue
        each = tally.bytes_written // max(tally.calls, 1)
        if key.module in blocks:
            own[key.module] = max(own.get(key.module, 0), each)
        last[block_of(key.module)] = each
    return {**last, **own}
