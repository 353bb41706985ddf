"""Memory that one device of a pipeline stage needs under a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from torchstone.core.text import Text
from torchstone.cost.on_devices.plan import FULL, MEASURED, NONE, OPTIMIZERS, SELECTIVE, Plan, share
from torchstone.cost.records.units import Unit

LABELS = {
    "parameters": Text("parameters", "参数"),
    "gradients": Text("gradients", "梯度"),
    "optimizer": Text("optimizer state", "优化器状态"),
    "gathered": Text("gathered unit", "聚合的单元"),
    "activations": Text("activations", "激活"),
    "recomputed": Text("recomputed block", "重算的块"),
    "temporaries": Text("optimizer temporaries (transient)", "优化器的临时张量（瞬时）"),
    "buffers": Text("buffers", "缓冲区"),
    "cache": Text("KV cache", "KV 缓存"),
}
"""What the parts of a need are called."""


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes by what they are for."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    gathered: int = 0
    """The largest unit whole, while it is in use: its parameters under ZeRO 3, its gradients
    before they are scattered under ZeRO 2 and 3. Prefetching would hold another one."""
    activations: int = 0
    """Held for the backward, of every micro-batch in flight."""
    recomputed: int = 0
    """What checkpointing makes again at a time."""
    temporaries: int = 0
    """What the optimizer makes and drops again while it steps."""
    buffers: int = 0
    cache: int = 0

    @property
    def total(self) -> int:
        """An upper bound: activations are gone when the optimizer steps, so the larger counts."""
        working = self.gathered + self.activations + self.recomputed
        return self.states + self.cache + max(working, self.temporaries)

    @property
    def states(self) -> int:
        """What stays from step to step."""
        return self.parameters + self.gradients + self.optimizer + self.buffers


@dataclass(frozen=True, slots=True)
class Load:
    """What a run puts on the devices besides the model."""

    scale: Fraction = Fraction(1)
    """Samples of a micro-batch over the samples that were measured."""
    train: bool = True
    cache_bytes: int = 0
    cache_heads: int = 1
    """Key and value heads that the cache holds. Tensor parallelism gives each rank whole heads; a
    latent (MLA) has one, which every rank keeps."""
    idle_activations: int = 0
    """Without training: the most that intermediate tensors take at once."""
    temporary_rate: Fraction = Fraction(0)
    """Bytes that an optimizer step makes for a moment, for each byte of its state."""
    optimizer_rate: Fraction | None = None
    """Bytes of optimizer state for each trainable parameter, when a step was measured."""


def need_of(stage: Sequence[Unit], index: int, plan: Plan, load: Load) -> Need:
    """What a device of one stage needs. The largest rank is meant where shares are uneven."""
    weights = [parameters_on(unit, plan) for unit in stage]
    own_heads = share(load.cache_heads, plan.tensor)
    cache = share(load.cache_bytes * own_heads, load.cache_heads * plan.pipeline)
    buffers = sum(unit.buffers for unit in stage)
    if not load.train:
        return Need(
            parameters=_held(plan, 3, weights),
            gathered=_gathered(plan, 3, weights),
            activations=share(ceil(load.idle_activations * load.scale), plan.tensor),
            buffers=buffers,
            cache=cache,
        )
    gradients = [gradients_on(unit, plan) for unit in stage]
    rate = OPTIMIZERS[plan.optimizer].bytes_per_parameter
    if plan.optimizer == MEASURED and load.optimizer_rate is not None:
        rate = load.optimizer_rate
    states = [_states(unit, plan, rate) for unit in stage]
    kept, again = _activations(stage, plan, load.scale)
    flying = min(plan.pipeline - index, plan.micro_batches)
    return Need(
        parameters=_held(plan, 3, weights),
        gradients=_held(plan, 2, gradients),
        optimizer=_held(plan, 1, states),
        temporaries=ceil(_held(plan, 1, states) * load.temporary_rate),
        gathered=_gathered(plan, 3, weights) + _gathered(plan, 2, gradients),
        activations=flying * kept,
        recomputed=again,
        buffers=buffers,
        cache=cache,
    )


def parameters_on(unit: Unit, plan: Plan) -> tuple[int, int]:
    """Bytes on one rank before ZeRO: of what all data ranks share, and of the experts."""
    tied = unit.shared_bytes if plan.pipeline > 1 else 0
    dense = unit.whole_bytes + share(unit.split_bytes + tied, plan.tensor)
    return dense, share(unit.expert_bytes, plan.tensor * plan.expert)


def gradients_on(unit: Unit, plan: Plan) -> tuple[int, int]:
    if plan.gradient_itemsize is not None:
        dense, expert = _trainable(unit, plan)
        return dense * plan.gradient_itemsize, expert * plan.gradient_itemsize
    dense = unit.whole_gradients + share(unit.split_gradients, plan.tensor)
    return dense, share(unit.expert_gradients, plan.tensor * plan.expert)


def _trainable(unit: Unit, plan: Plan) -> tuple[int, int]:
    dense = unit.whole_trainable + share(unit.split_trainable, plan.tensor)
    return dense, share(unit.expert_trainable, plan.tensor * plan.expert)


def _states(unit: Unit, plan: Plan, rate: Fraction) -> tuple[int, int]:
    dense, expert = _trainable(unit, plan)
    return ceil(dense * rate), ceil(expert * rate)


def _held(plan: Plan, stage: int, parts: Sequence[tuple[int, int]]) -> int:
    """Bytes that stay on one rank: a share from this ZeRO stage on."""
    dense, expert = sum(part[0] for part in parts), sum(part[1] for part in parts)
    if plan.zero < stage:
        return dense + expert
    return share(dense, plan.data) + share(expert, plan.expert_data)


def _gathered(plan: Plan, stage: int, parts: Sequence[tuple[int, int]]) -> int:
    """The largest unit whole; nothing where it is not sharded in the first place."""
    if plan.zero < stage:
        return 0
    return max(
        ((plan.data > 1) * dense + (plan.expert_data > 1) * expert for dense, expert in parts),
        default=0,
    )


def _activations(stage: Sequence[Unit], plan: Plan, scale: Fraction) -> tuple[int, int]:
    """Bytes that one micro-batch keeps, and the most that is made again at a time."""
    ranks = plan.tensor if plan.sequence_parallel else 1
    kept = again = 0
    for unit in stage:
        split, residual = ceil(unit.split_activations * scale), ceil(unit.whole_activations * scale)
        own = share(split, plan.tensor) + share(residual, ranks)
        if plan.checkpoint == NONE or not unit.block:
            kept += own
        elif plan.checkpoint == SELECTIVE:
            attention = share(ceil(unit.attention_activations * scale), plan.tensor)
            kept += own - attention
            again = max(again, attention)
        else:
            assert plan.checkpoint == FULL
            entry = min(share(ceil(unit.boundary * scale), ranks), own)
            kept += entry
            again = max(again, own - entry)
    return kept, again
