"""How long the counted work takes on a device at best, and what holds it up.

Time of an entry = max(compute, memory) + launch, where
  compute = (flops + extra_flops) / matrix peak of its number format + vector_flops / float32 peak,
  memory  = bytes read and written / memory bandwidth,
  launch  = calls x a fixed cost of starting a kernel.
Entries run one after the other. An efficiency of 1.0 takes the maker's rates as they are, so that
real kernels are slower; fitted efficiencies go in as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from torchstone.core.text import Text
from torchstone.cost.arguments import cost_of, fraction, positive
from torchstone.cost.records.ledger import NOTHING, Key, Tally, ancestors
from torchstone.runtime.devices import Device, Peak
from torchstone.runtime.devices import device as device_of

LAUNCH_SECONDS = 4e-6
"""What starting one kernel is taken to cost unless told otherwise; it was not measured here."""
COMPUTE, MEMORY, LAUNCH = "compute", "memory", "launch"


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The share of the maker's rates that is taken to be reached; 1.0 is the bound."""

    compute: float = 1.0
    memory: float = 1.0
    launch_seconds: float = LAUNCH_SECONDS


@dataclass(frozen=True, slots=True)
class Duration:
    """Time of an entry or of many that run one after the other."""

    seconds: float = 0.0
    compute_seconds: float = 0.0
    memory_seconds: float = 0.0
    launch_seconds: float = 0.0
    peak_seconds: float = 0.0
    """What `flops` alone would take at the full dense peak."""
    work: Tally = NOTHING

    def __add__(self, other: Duration) -> Duration:
        return Duration(
            self.seconds + other.seconds,
            self.compute_seconds + other.compute_seconds,
            self.memory_seconds + other.memory_seconds,
            self.launch_seconds + other.launch_seconds,
            self.peak_seconds + other.peak_seconds,
            self.work + other.work,
        )

    @property
    def bound(self) -> str:
        """What takes most of the time: compute, memory or launch; "" when nothing was done."""
        if not self.seconds:
            return ""
        if self.launch_seconds > max(self.compute_seconds, self.memory_seconds):
            return LAUNCH
        return COMPUTE if self.compute_seconds >= self.memory_seconds else MEMORY

    @property
    def arithmetic(self) -> int:
        """FLOP that are done, in the matrix units and outside them."""
        return self.work.flops + self.work.extra_flops + self.work.vector_flops

    @property
    def flops_per_second(self) -> float:
        return self.arithmetic / self.seconds if self.seconds else 0.0

    @property
    def achieved(self) -> float:
        """The share of the dense peak that `flops` reach in this time."""
        return self.peak_seconds / self.seconds if self.seconds else 0.0

    @property
    def intensity(self) -> float:
        """FLOP (matrix and vector) per byte moved; infinite when nothing is moved."""
        if not self.work.bytes:
            return float("inf") if self.arithmetic else 0.0
        return self.arithmetic / self.work.bytes


@dataclass(frozen=True)
class Roofline:
    """The time of a cost on one device, entry by entry."""

    device: Device
    efficiency: Efficiency
    entries: Mapping[Key, Duration]
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """Number formats that the device has no unit for, and the one that stands in."""

    def total(self, phase: str | None = None) -> Duration:
        return added(d for key, d in self.entries.items() if phase in (None, key.phase))

    def by_phase(self) -> dict[str, Duration]:
        return self._grouped(lambda key: (key.phase,))

    def by_operator(self, phase: str | None = None) -> dict[str, Duration]:
        return self._grouped(lambda key: (key.operator,), phase)

    def by_module(self, phase: str | None = None) -> dict[str, Duration]:
        """Cumulative: a module with all that is inside it."""
        return self._grouped(lambda key: ancestors(key.module), phase)

    def by_bound(self) -> dict[str, float]:
        """Seconds of the entries that each bound holds up."""
        seconds = dict.fromkeys((COMPUTE, MEMORY, LAUNCH), 0.0)
        for duration in self.entries.values():
            if duration.bound:
                seconds[duration.bound] += duration.seconds
        return seconds

    @property
    def assumed(self) -> Text:
        """What the figures take for granted."""
        part = self.efficiency
        en = (
            f"{part.compute:.0%} of the dense peak, {part.memory:.0%} of the memory bandwidth, "
            f"{part.launch_seconds * 1e6:g} us for each kernel, one after the other"
        )
        zh = (
            f"稠密峰值的 {part.compute:.0%}、内存带宽的 {part.memory:.0%}、"
            f"每个算子启动 {part.launch_seconds * 1e6:g} us，依次执行"
        )
        for wanted, used in self.stand_ins.items():
            en, zh = f"{en}; {wanted} at the rate of {used}", f"{zh}；{wanted} 按 {used} 的速率"
        return Text(en, zh)

    def _grouped(
        self, names: Callable[[Key], Iterable[str]], phase: str | None = None
    ) -> dict[str, Duration]:
        result: dict[str, Duration] = {}
        for key, duration in self.entries.items():
            if phase in (None, key.phase):
                for name in names(key):
                    result[name] = result.get(name, Duration()) + duration
        return result


def added(durations: Iterable[Duration]) -> Duration:
    """One after the other."""
    result = Duration()
    for duration in durations:
        result = result + duration
    return result


def roofline(
    source: object,
    device: str | Device,
    *,
    efficiency: Efficiency | None = None,
    tf32: bool = False,
    devices: Mapping[str, Device] | None = None,
) -> Roofline:
    """The time of every entry of a cost (or of a report with a `cost`) on a device.

    `tf32` says that float32 products may use the TF32 unit. `devices` are the user's own.
    """
    cost = cost_of(source)
    chosen = device if isinstance(device, Device) else device_of(device, devices)
    rates = efficiency or Efficiency()
    fraction("efficiency.compute", rates.compute)
    fraction("efficiency.memory", rates.memory)
    if rates.launch_seconds:
        positive("efficiency.launch_seconds", rates.launch_seconds)
    used = {key.dtype for key, tally in cost.entries.items() if tally.flops}
    peaks = {dtype: _peak(chosen, dtype, tf32) for dtype in sorted(used)}
    vector = Peak(chosen.vector_flops_per_second, "float32")
    return Roofline(
        device=chosen,
        efficiency=rates,
        entries={
            key: _duration(tally, chosen, peaks.get(key.dtype, vector), rates)
            for key, tally in cost.entries.items()
        },
        stand_ins={
            dtype: peak.format for dtype, peak in peaks.items() if not dtype.startswith(peak.format)
        },
    )


def _peak(device: Device, dtype: str, tf32: bool) -> Peak:
    name = "tf32" if tf32 and dtype == "float32" else dtype
    known = name.startswith(("float", "bfloat", "tf32", "complex")) or name == "int8"
    # whole numbers and truth values are multiplied outside the matrix units
    return device.peak(name) if known else Peak(device.vector_flops_per_second, "float32")


def _duration(tally: Tally, device: Device, peak: Peak, rates: Efficiency) -> Duration:
    matrix = (tally.flops + tally.extra_flops) / peak.flops_per_second
    vector = tally.vector_flops / device.vector_flops_per_second
    compute = (matrix + vector) / rates.compute
    memory = tally.bytes / device.memory_bytes_per_second / rates.memory
    # a call that neither computes nor moves anything (a view) starts no kernel
    launch = tally.calls * rates.launch_seconds if compute or memory else 0.0
    return Duration(
        seconds=max(compute, memory) + launch,
        compute_seconds=compute,
        memory_seconds=memory,
        launch_seconds=launch,
        peak_seconds=tally.flops / peak.flops_per_second,
        work=tally,
    )
