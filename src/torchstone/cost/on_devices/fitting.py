"""Will it fit: peak memory of the worst rank under a plan, what is sent, and what would help.

The parts are computed from the cost of one pass on one device. Assumed: layers are spread evenly,
norms and routers are not split by tensor parallelism, a pipeline runs one forward one backward,
and the allocator wastes no more than the reserve.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from torchstone.core.errors import UsageError
from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.cost.arguments import cost_of, whole
from torchstone.cost.on_devices.need import LABELS, Load, Need, need_of
from torchstone.cost.on_devices.plan import CHECKPOINTS, FULL, Plan
from torchstone.cost.on_devices.traffic import Traffic, traffic_of
from torchstone.cost.records.ledger import BACKWARD, OPTIMIZER, Cost
from torchstone.cost.records.units import Unit, stages_of, units_of
from torchstone.runtime.devices import Device
from torchstone.runtime.devices import device as device_of

RESERVE = 0.05
"""Share of the memory that the driver, the libraries and gaps between tensors are taken to use."""
_KNOBS = ("zero", "checkpoint", "tensor", "pipeline")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The smallest change under which it fits: the fewest settings, those that are easier to change
    first (ZeRO, checkpointing, tensor, pipeline), then the lowest stage, the least recomputation and
    the least traffic."""

    plan: Plan
    changed: tuple[str, ...]
    total_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class Fit:
    """The verdict for one plan on one kind of device."""

    device: Device
    plan: Plan
    need: Need
    """Of the fullest device."""
    stage: int
    """Pipeline stage of the fullest device, from 0."""
    usable_bytes: int
    traffic: tuple[Traffic, ...]
    """What a device of the busiest stage sends in a step."""
    suggestion: Suggestion | None = None
    measured_bytes: int | None = None
    """The peak of the run itself, where the plan is to run as it was measured."""

    @property
    def total_bytes(self) -> int:
        return self.need.total if self.measured_bytes is None else self.measured_bytes

    @property
    def headroom_bytes(self) -> int:
        """What is left; negative by as much as is missing."""
        return self.usable_bytes - self.total_bytes

    @property
    def fits(self) -> bool:
        return self.headroom_bytes >= 0

    @property
    def sent_bytes(self) -> int:
        return sum(item.sent_bytes for item in self.traffic)

    @property
    def communication_seconds(self) -> float | None:
        """Of a step, nothing overlapped; None where a bandwidth is not known."""
        total = 0.0
        for item in self.traffic:
            if item.seconds is None:
                return None
            total += item.seconds
        return total

    @property
    def text(self) -> Text:
        """The verdict in words."""
        need, left = self.total_bytes / 2**30, abs(self.headroom_bytes) / 2**30
        where = self.device.title
        if self.fits:
            en, zh = f"fits on {where}", f"可放入 {where}"
            rest = Text(f"{left:.2f} GiB left", f"剩余 {left:.2f} GiB")
        else:
            en, zh = f"does not fit on {where}", f"放不进 {where}"
            rest = Text(f"{left:.2f} GiB missing", f"还差 {left:.2f} GiB")
        en = f"{en}: {need:.2f} GiB needed, {rest.en}"
        zh = f"{zh}：需要 {need:.2f} GiB，{rest.zh}"
        if self.suggestion:
            plan = self.suggestion.plan
            change = ", ".join(f"{name}={getattr(plan, name)}" for name in self.suggestion.changed)
            en, zh = f"{en}; it would with {change}", f"{zh}；改为 {change} 则可以"
        return Text(en, zh)

    def memory_table(self) -> Table:
        """The parts of the fullest device."""
        sizes = {name: getattr(self.need, name) for name in LABELS}
        rows = [(LABELS[name], size) for name, size in sizes.items() if size]
        exact = self.measured_bytes is not None
        rows.append(
            (
                Text("most at once", "同时最多") if exact else Text("at most", "至多"),
                self.total_bytes,
            )
        )
        rows.append((Text("usable", "可用"), self.usable_bytes))
        return Table(
            name=Text("Peak memory per device (worst rank)", "单卡内存峰值（最大的 rank）"),
            columns=(Text("part", "部分"), Text("memory", "内存")),
            rows=tuple((part, size) for part, size in rows),
            units=("", "B"),
            how=self.text,
        )

    def traffic_table(self) -> Table:
        """What is sent in a step."""
        link, network = Text("link", "节点内"), Text("network", "节点间")
        return Table(
            name=Text("Sent by one device in a step", "一步中单个设备发送的数据"),
            columns=(
                Text("message", "通信"),
                Text("what", "内容"),
                Text("devices", "设备数"),
                Text("sent", "发送"),
                Text("over", "经由"),
                Text("time", "时间"),
            ),
            units=("", "", "", "B", "", "s"),
            rows=tuple(
                (
                    item.kind,
                    item.what,
                    item.group,
                    item.sent_bytes,
                    (link if item.within_node else network),
                    item.seconds,
                )
                for item in self.traffic
            ),
            how=Text("ring algorithms, full bandwidth, no overlap", "环形算法，满带宽，无重叠"),
        )


def fit(
    source: object,
    device: str | Device,
    plan: Plan | None = None,
    *,
    batch: int = 1,
    world: int | None = None,
    reserve: float = RESERVE,
    boundary_bytes: int | None = None,
    experts_per_token: int | None = None,
    cache_bytes: int = 0,
    cache_heads: int = 1,
    suggest: bool = True,
    devices: Mapping[str, Device] | None = None,
) -> Fit:
    """Will a cost (or a report with a `cost`) of `batch` samples fit under a plan?

    `world` is the count of devices that the plan must use up. `boundary_bytes` says what a block
    hands to the next one where the cost does not show it. `experts_per_token` is needed with
    expert parallelism. `cache_bytes` is the KV cache of one replica, `cache_heads` its key and value
    heads, which tensor parallelism divides; 1 for a latent. `devices` are the user's own.
    """
    cost = cost_of(source)
    chosen = device if isinstance(device, Device) else device_of(device, devices)
    asked = plan or Plan()
    asked.check(world)
    units = units_of(cost, boundary_bytes)
    _check_experts(units, asked)
    if needs_boundary(asked) and not knows_boundary(units):
        raise UsageError(
            "boundary_bytes",
            "nothing",
            Text("the bytes that a block hands to the next one", "一个块传给下一个块的字节数"),
            Text("pass boundary_bytes=...", "请传入 boundary_bytes=..."),
        )
    scale = Fraction(asked.micro_batch or whole("batch", batch), whole("batch", batch))
    load = Load(
        scale=scale,
        train=cost.train or bool(cost.total(BACKWARD).calls),
        cache_bytes=whole("cache_bytes", cache_bytes, least=0),
        cache_heads=whole("cache_heads", cache_heads),
        idle_activations=cost.memory.activations,
        optimizer_rate=_optimizer_rate(cost),
        temporary_rate=_temporary_rate(cost),
    )
    usable = int(chosen.memory_bytes * (1 - _reserve(reserve)))
    found = _fit(units, asked, load, chosen, usable, experts_per_token)
    if plan is None or asked == Plan():
        peak = cost.memory.later_peak
        found = replace(found, measured_bytes=peak + cache_bytes if peak else None)
    if found.fits or not suggest:
        return found
    return replace(found, suggestion=_suggestion(found, units, load, experts_per_token))


def _optimizer_rate(cost: Cost) -> Fraction | None:
    trainable = sum(item.trainable for item in cost.modules.values())
    if not cost.total(OPTIMIZER).calls or not trainable:
        return None
    return Fraction(cost.memory.optimizer, trainable)


def _temporary_rate(cost: Cost) -> Fraction:
    memory = cost.memory
    if not memory.optimizer or OPTIMIZER not in memory.peaks:
        return Fraction(0)
    standing = memory.parameters + memory.buffers + memory.gradients + memory.optimizer
    extra = memory.peaks[OPTIMIZER] - standing - memory.inputs
    return Fraction(max(extra, 0), memory.optimizer)


def _fit(
    units: tuple[Unit, ...],
    plan: Plan,
    load: Load,
    device: Device,
    usable: int,
    experts_per_token: int | None,
) -> Fit:
    stages = stages_of(units, plan.pipeline)
    needs = [need_of(stage, index, plan, load) for index, stage in enumerate(stages)]
    fullest = max(range(len(needs)), key=lambda index: needs[index].total)
    traffic = [
        traffic_of(stage, index, plan, load, device, experts_per_token)
        for index, stage in enumerate(stages)
    ]
    busiest = max(traffic, key=lambda items: sum(item.sent_bytes for item in items))
    return Fit(device, plan, needs[fullest], fullest, usable, busiest)


def _suggestion(
    fit: Fit, units: tuple[Unit, ...], load: Load, experts_per_token: int | None
) -> Suggestion | None:
    best: tuple[tuple[int, ...], Suggestion] | None = None
    known = knows_boundary(units)
    for plan in _neighbours(fit.plan, units, fit.device):
        if needs_boundary(plan) and not known:
            continue
        changed = tuple(name for name in _KNOBS if getattr(plan, name) != getattr(fit.plan, name))
        if not load.train and "checkpoint" in changed:
            continue
        if best is not None and len(changed) > best[0][0]:
            continue
        tried = _fit(units, plan, load, fit.device, fit.usable_bytes, experts_per_token)
        effort = sum(_KNOBS.index(name) for name in changed)
        again = CHECKPOINTS.index(plan.checkpoint)
        rank = (len(changed), effort, plan.zero, again, tried.sent_bytes)
        if tried.fits and (best is None or rank < best[0]):
            best = rank, Suggestion(plan, changed, tried.total_bytes, tried.sent_bytes)
    return best[1] if best else None


def _neighbours(plan: Plan, units: tuple[Unit, ...], device: Device) -> Iterator[Plan]:
    """Plans over as many devices that do the same global batch in a step."""
    world = plan.world
    blocks = sum(unit.block for unit in units)
    degrees = [n for n in range(1, world + 1) if world % n == 0]
    tensors = [n for n in degrees if n <= device.node_devices] or [1]
    pipelines = [n for n in degrees if n <= max(blocks, 1)]
    for tensor, pipeline in itertools.product(tensors, pipelines):
        if world % (tensor * pipeline):
            continue
        data = world // (tensor * pipeline)
        if data % plan.expert or plan.micro_batches * plan.data % data:
            continue
        for zero, checkpoint in itertools.product(range(4), CHECKPOINTS):
            yield replace(
                plan,
                tensor=tensor,
                pipeline=pipeline,
                data=data,
                zero=zero,
                checkpoint=checkpoint,
                micro_batches=plan.micro_batches * plan.data // data,
            )


def needs_boundary(plan: Plan) -> bool:
    """Does the plan send or keep what blocks hand to each other?"""
    return plan.checkpoint == FULL or max(plan.tensor, plan.pipeline, plan.expert) > 1


def knows_boundary(units: tuple[Unit, ...]) -> bool:
    """Is it known of every block? Without blocks nothing is handed on."""
    return all(unit.boundary for unit in units if unit.block)


def _check_experts(units: tuple[Unit, ...], plan: Plan) -> None:
    if plan.expert == 1:
        return
    sizes = [unit.expert_bytes for unit in units if unit.expert_bytes]
    if not sizes or any(size % plan.expert for size in sizes):
        raise UsageError(
            "plan expert",
            str(plan.expert),
            Text("a divisor of the number of experts", "专家数量的约数")
            if sizes
            else Text("1 for a model without experts", "没有专家的模型应为 1"),
            Text("change the degrees of the plan", "请调整方案的并行度"),
        )


def _reserve(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise UsageError(
            "reserve",
            repr(value),
            Text("a share from 0 to below 1", "0 到 1（不含）之间的份额"),
            Text("pass reserve=0.05 for 5 %", "5% 请传入 reserve=0.05"),
        )
    return float(value)
