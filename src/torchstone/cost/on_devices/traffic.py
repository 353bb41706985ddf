"""Bytes that one device sends in a step under a plan, and how long that takes.

Ring algorithms: of a payload of M bytes a device sends (n-1)/n M for an all-gather, a
reduce-scatter or an all-to-all, and twice that for an all-reduce. Times take the full bandwidth of
one direction and no overlap with computing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.on_devices.need import Load, gradients_on, parameters_on
from torchstone.cost.on_devices.plan import FULL, Plan, share
from torchstone.cost.records.units import Unit
from torchstone.runtime.devices import Device

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all-reduce", "all-gather", "reduce-scatter"
ALL_TO_ALL, SEND = "all-to-all", "send"


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of message over a step."""

    kind: str
    what: Text
    group: int
    """Devices that take part."""
    times: int
    """Rounds of the same payload in a step."""
    payload_bytes: int
    """Of one round."""
    within_node: bool
    bytes_per_second: float | None
    """None where the table of devices names no bandwidth."""

    @property
    def sent_bytes(self) -> int:
        return self.times * sent(self.kind, self.payload_bytes, self.group)

    @property
    def seconds(self) -> float | None:
        if self.bytes_per_second is None:
            return None
        return self.sent_bytes / self.bytes_per_second


def sent(kind: str, payload_bytes: int, group: int) -> int:
    """Bytes that each device of a ring sends in one round."""
    if kind == SEND:
        return payload_bytes
    rounds = 2 if kind == ALL_REDUCE else 1
    return -(-rounds * (group - 1) * payload_bytes // group)


def traffic_of(
    stage: Sequence[Unit],
    index: int,
    plan: Plan,
    load: Load,
    device: Device,
    experts_per_token: int | None = None,
) -> tuple[Traffic, ...]:
    """All messages of a device of one stage."""
    found = [
        *(_gradient_traffic(stage, plan, device) if load.train else ()),
        *_parameter_traffic(stage, plan, load, device),
        *_tensor_traffic(stage, plan, load, device),
        *_expert_traffic(stage, plan, load, device, experts_per_token),
        *_pipeline_traffic(stage, index, plan, load, device),
    ]
    return tuple(item for item in found if item.payload_bytes and item.times)


def _message(
    kind: str, what: Text, group: int, times: int, payload: int, span: int, device: Device
) -> Traffic:
    """`span` is how many neighbouring devices the group reaches over: tensor ranks are next to
    each other, then come data ranks, then pipeline stages."""
    within = span <= device.node_devices
    rate = device.link_bytes_per_second if within else device.network_bytes_per_second
    return Traffic(kind, what, group, times, payload, within, rate)


def _gradient_traffic(stage: Sequence[Unit], plan: Plan, device: Device) -> list[Traffic]:
    parts = [gradients_on(unit, plan) for unit in stage]
    # sharded gradients are scattered after every pass, whole ones are added up first
    times = plan.micro_batches if plan.zero >= 2 else 1
    kind = REDUCE_SCATTER if plan.zero else ALL_REDUCE
    span = plan.tensor * plan.data
    groups = (
        (plan.data, sum(part[0] for part in parts), Text("gradients", "梯度")),
        (plan.expert_data, sum(part[1] for part in parts), Text("expert gradients", "专家梯度")),
    )
    return [
        _message(kind, what, group, times, payload, span, device)
        for group, payload, what in groups
        if group > 1
    ]


def _parameter_traffic(
    stage: Sequence[Unit], plan: Plan, load: Load, device: Device
) -> list[Traffic]:
    parts = [parameters_on(unit, plan) for unit in stage]
    if plan.zero >= 3:
        times = plan.micro_batches * (2 if load.train else 1)  # forward, and again for the backward
    else:
        times = 1 if plan.zero and load.train else 0  # the updated shares are handed round
    span = plan.tensor * plan.data
    groups = (
        (plan.data, sum(part[0] for part in parts), Text("parameters", "参数")),
        (plan.expert_data, sum(part[1] for part in parts), Text("expert parameters", "专家参数")),
    )
    return [
        _message(ALL_GATHER, what, group, times, payload, span, device)
        for group, payload, what in groups
        if group > 1
    ]


def _passes(plan: Plan, load: Load) -> int:
    """How often a step goes through a block: forward, backward, and again when checkpointed."""
    if not load.train:
        return plan.micro_batches
    return plan.micro_batches * (3 if plan.checkpoint == FULL else 2)


def _tensor_traffic(stage: Sequence[Unit], plan: Plan, load: Load, device: Device) -> list[Traffic]:
    blocks = [unit for unit in stage if unit.block]
    if plan.tensor == 1 or not blocks:
        return []
    hidden = ceil(max(unit.boundary for unit in blocks) * load.scale)
    times = 2 * len(blocks) * _passes(plan, load)  # after attention and after the feed-forward
    what = Text("outputs of attention and feed-forward", "注意力与前馈的输出")
    kinds = (ALL_GATHER, REDUCE_SCATTER) if plan.sequence_parallel else (ALL_REDUCE,)
    return [_message(kind, what, plan.tensor, times, hidden, plan.tensor, device) for kind in kinds]


def _expert_traffic(
    stage: Sequence[Unit], plan: Plan, load: Load, device: Device, experts_per_token: int | None
) -> list[Traffic]:
    blocks = [unit for unit in stage if unit.block and unit.expert_bytes]
    if plan.expert == 1 or not blocks:
        return []
    if experts_per_token is None:
        raise UsageError(
            "experts_per_token",
            "nothing",
            Text("how many experts a token goes to", "每个令牌进入的专家数"),
            Text("pass experts_per_token=8", "请传入 experts_per_token=8"),
        )
    ranks = plan.tensor if plan.sequence_parallel else 1
    hidden = share(ceil(max(unit.boundary for unit in blocks) * load.scale), ranks)
    times = 2 * len(blocks) * _passes(plan, load)  # to the experts and back
    what = Text("tokens to experts and back", "令牌往返专家")
    payload = hidden * experts_per_token
    span = plan.tensor * plan.expert
    return [_message(ALL_TO_ALL, what, plan.expert, times, payload, span, device)]


def _pipeline_traffic(
    stage: Sequence[Unit], index: int, plan: Plan, load: Load, device: Device
) -> list[Traffic]:
    blocks = [unit for unit in stage if unit.block]
    if plan.pipeline == 1 or not blocks:
        return []
    ranks = plan.tensor if plan.sequence_parallel else 1
    hidden = share(ceil(max(unit.boundary for unit in blocks) * load.scale), ranks)
    # activations go on from all but the last stage, gradients back from all but the first
    sends = (index < plan.pipeline - 1) + (load.train and index > 0)
    times = plan.micro_batches * sends
    what = Text("activations to the next stage, gradients back", "激活传给下一级，梯度传回")
    return [_message(SEND, what, 2, times, hidden, plan.world, device)]
