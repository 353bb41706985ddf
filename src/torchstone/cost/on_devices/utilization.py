"""How much of what the devices could do in the time was the model's own arithmetic.

MFU counts forward and backward once: neither what checkpointing computes again nor what a kernel
computes on top. HFU counts those too, because the hardware did them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torchstone.core.evidence import Number
from torchstone.core.text import Text
from torchstone.cost.arguments import cost_of, main_format, positive, whole
from torchstone.cost.records.ledger import BACKWARD, FORWARD, RECOMPUTE
from torchstone.runtime.devices import Device, Peak, format_of
from torchstone.runtime.devices import device as device_of


@dataclass(frozen=True, slots=True)
class Utilization:
    """Both shares with what was divided by what."""

    mfu: float
    hfu: float
    model_flops: int
    """Forward and backward, of all passes of a step: what MFU divides."""
    hardware_flops: int
    """The same with what was computed again: what HFU divides."""
    available_flops: float
    """Seconds x devices x dense peak: what both are divided by."""
    step_seconds: float
    device: Device
    count: int
    dtype: str
    """The number format whose peak is meant."""
    peak: Peak
    partial: bool = False
    """The count stopped early, so that both shares are too low."""

    @property
    def text(self) -> Text:
        """The division in words."""
        rate = self.peak.flops_per_second / 1e12
        under = f"{self.step_seconds:g} s x {self.count} x {rate:g} TFLOP/s ({self.peak.format}, {self.device.title})"
        en = (
            f"MFU {self.mfu:.1%} = {self.model_flops:.4g} FLOP (forward + backward) / ({under}); "
            f"HFU {self.hfu:.1%} = {self.hardware_flops:.4g} FLOP (recomputed work included) / the same"
        )
        zh = (
            f"MFU {self.mfu:.1%} = {self.model_flops:.4g} FLOP（前向 + 反向）/（{under}）；"
            f"HFU {self.hfu:.1%} = {self.hardware_flops:.4g} FLOP（含重算）/ 同一分母"
        )
        for remark in self.remarks:
            en, zh = f"{en}; {remark.en}", f"{zh}；{remark.zh}"
        return Text(en, zh)

    @property
    def remarks(self) -> tuple[Text, ...]:
        """What a reader must know before quoting the shares."""
        found = []
        if self.partial:
            found.append(Text("the count is partial: too low", "计数不完整：偏低"))
        if self.hfu > 1:
            found.append(
                Text(
                    "above 100 %: the time, the device or the count of devices cannot be right",
                    "超过 100%：时间、设备或设备数量必有一项不对",
                )
            )
        if self.peak.format != self.dtype:
            found.append(
                Text(
                    f"{self.device.name} has no {self.dtype} unit: peak of {self.peak.format}",
                    f"{self.device.name} 没有 {self.dtype} 单元：按 {self.peak.format} 的峰值",
                )
            )
        return tuple(found)

    def evidence(self) -> tuple[Number, ...]:
        """Numerators, denominator and both shares as facts with their units."""
        dense = Text("dense peak x seconds x devices", "稠密峰值 x 秒 x 设备数")
        counted = Text("counted", "计数所得")
        return (
            Number(Text("model FLOPs", "模型 FLOPs"), self.model_flops, "FLOP", counted),
            Number(Text("hardware FLOPs", "硬件 FLOPs"), self.hardware_flops, "FLOP", counted),
            Number(Text("available FLOPs", "可用 FLOPs"), self.available_flops, "FLOP", dense),
            Number("MFU", self.mfu, "share", Text("model / available", "模型 / 可用")),
            Number("HFU", self.hfu, "share", Text("hardware / available", "硬件 / 可用")),
        )


def mfu(
    source: object,
    step_seconds: float,
    device: str | Device,
    count: int = 1,
    *,
    passes: int = 1,
    dtype: str | None = None,
    devices: Mapping[str, Device] | None = None,
    model_flops: int | None = None,
) -> Utilization:
    """MFU and HFU of a step that took `step_seconds` on `count` devices.

    `source` is a cost, or a report with a `cost`; a step does it `passes` times over all devices
    (micro-batches x replicas). `dtype` names the peak; it is the main number format of the cost
    unless given (`tf32` where float32 products may use it). `devices` are the user's own.
    `model_flops` is the numerator by another convention (`by_convention(...).value`).
    """
    cost = cost_of(source)
    seconds = positive("step_seconds", step_seconds)
    whole("count", count)
    whole("passes", passes)
    chosen = device if isinstance(device, Device) else device_of(device, devices)
    wanted = dtype or main_format(cost)
    peak = chosen.peak(wanted)
    parts = {phase: cost.total(phase) for phase in (FORWARD, BACKWARD, RECOMPUTE)}
    counted = parts[FORWARD].flops + parts[BACKWARD].flops
    model = (counted if model_flops is None else model_flops) * passes
    again = parts[RECOMPUTE].flops + sum(part.extra_flops for part in parts.values())
    hardware = model + again * passes
    available = seconds * count * peak.flops_per_second
    return Utilization(
        mfu=model / available,
        hfu=hardware / available,
        model_flops=model,
        hardware_flops=hardware,
        available_flops=available,
        step_seconds=seconds,
        device=chosen,
        count=count,
        dtype=format_of(wanted),
        peak=peak,
        partial=cost.failure is not None,
    )
