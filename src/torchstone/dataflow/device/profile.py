"""What a device gains and what it costs to reach: from a file, measured, or assumed and said."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from torchstone.core.codec import from_data
from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.text import Text
from torchstone.dataflow.device.kernel_count import KernelCount
from torchstone.runtime.devices import device as known_device

_LARGEST = 16 * 2**20
_PCIE = 12e9  # B/s: what a pageable copy over PCIe 4.0 x16 reaches
_LATENCY = 10e-6  # seconds to start a copy, with its synchronisation
_LAUNCH = 8e-6  # seconds to start a kernel from Python
_QUICK = 0.5  # of that, where kernels are queued while others run
_SHARE = 0.3  # of the memory bandwidth that image operators reach
_BEST_SHARE = 0.8  # of it, that a copy reaches
_DEAR = (
    8  # operations in float64 or of whole numbers, in which most entries compute, in float32 ones
)
_MEASURED_BYTES = 8 * 2**20
_COMPILING = ("cuda", "xpu")
"""Devices whose compiler, Triton, is looked for."""


def can_compile(device: str) -> bool:
    """Whether torch.compile makes kernels for the device here."""
    return device.partition(":")[0] in _COMPILING and importlib.util.find_spec("triton") is not None


@dataclass(frozen=True, slots=True)
class Interval:
    """Seconds, from the least to the most that is expected."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Work:
    """All calls of one operator."""

    cpu_seconds: float
    calls: float
    """Launches that they need: calls of one batch share theirs."""
    bytes_touched: float
    bytes_made: float = 0.0


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """One device as the placement sees it."""

    name: str
    bytes_per_second: float = _PCIE
    """Between the host and the device, in either direction."""
    latency_seconds: float = _LATENCY
    launch_seconds: float = _LAUNCH
    memory_bytes_per_second: float = 0.0
    """Of the device's own memory; 0 where operators gain only what `speedups` says."""
    operations_per_second: float = 0.0
    """In float32, outside the matrix units; 0 where it is not known and memory is the limit."""
    memory_bytes: int = 0
    speedups: Mapping[str, float] = field(default_factory=dict)
    """Function → times faster than on the CPU, as measured."""
    speedup: float | None = None
    """For functions that have none of their own; None: by the bytes they touch."""
    compiles: bool = False
    """Calls of a kind that comes again are compiled there: fewer launches, fewer bytes between them."""
    how: Text = Text("assumed", "假设")

    def time_of(self, function: str, work: Work, kernels: KernelCount) -> Interval:
        """Launches and uploads, and a roofline: the bytes that its kernels touch or the operations that
        they make, whatever takes longer."""
        speedup = self.speedups.get(function, self.speedup)
        cpu_seconds, calls = work.cpu_seconds, work.calls
        uploads = calls * kernels.uploads * self.latency_seconds
        if speedup is not None:  # as measured, launches and all
            return Interval(cpu_seconds / speedup, cpu_seconds / speedup)
        fewest = min(kernels.low, kernels.fused)  # whether it is compiled or not
        launches, traffic = kernels.high, kernels.traffic
        if self.compiles:
            launches, traffic = min(launches, kernels.fused), min(traffic, float(kernels.fused))
        quick = calls * fewest * self.launch_seconds * _QUICK
        slow = calls * launches * self.launch_seconds + uploads
        if not self.memory_bytes_per_second:
            return Interval(quick + cpu_seconds, slow + cpu_seconds)
        rate = self.memory_bytes_per_second
        least = work.bytes_touched / (rate * _BEST_SHARE)
        most = work.bytes_touched * traffic / (rate * _SHARE)
        if self.operations_per_second:
            operations = work.bytes_made * kernels.operations
            least = max(least, operations / (self.operations_per_second * _BEST_SHARE))
            most = max(most, operations * _DEAR / (self.operations_per_second * _SHARE))
        return Interval(max(quick, least), slow + most)

    def transfer_seconds(self, nbytes: float, transfers: float) -> float:
        return transfers * self.latency_seconds + nbytes / self.bytes_per_second


def assumed_profile(name: str = "cuda:0", model: str = "a100-80g") -> DeviceProfile:
    """A device that is not here: the maker's figures, and shares of them that are stated."""
    if name == "cpu":
        return DeviceProfile(
            "cpu", float("inf"), 0.0, 0.0, how=Text(
                "torch on the same CPU: no gain is assumed; measure with --profile",
                "同一 CPU 上的 torch：不假设任何加速；请用 --profile 提供实测值",
            ),
        )  # fmt: skip
    made = known_device(model)
    how = Text(
        f"no {name} here; estimated for {made.title} ({_PCIE / 1e9:g} GB/s and "
        f"{_LATENCY * 1e6:g} µs to copy, {_LAUNCH * 1e6:g} µs to start a kernel, "
        f"{_SHARE:.0%} of its memory bandwidth)",
        f"本机没有 {name}：按 {made.title} 假设（拷贝 {_PCIE / 1e9:g} GB/s、{_LATENCY * 1e6:g} µs，"
        f"启动 kernel {_LAUNCH * 1e6:g} µs，达到显存带宽的 {_SHARE:.0%}）",
    )
    return DeviceProfile(
        name,
        memory_bytes_per_second=made.memory_bytes_per_second,
        operations_per_second=made.vector_flops_per_second,
        memory_bytes=made.memory_bytes,
        how=how,
    )


def profile_for(name: str, model: str = "a100-80g") -> DeviceProfile:
    """Measured where torch has the device, else assumed."""
    made = assumed_profile(name, model)
    return made if name == "cpu" else _measured(made) or made


def _measured(assumed: DeviceProfile) -> DeviceProfile | None:
    """Copies of two sizes to the device; None where torch does not have it."""
    import torch

    backend = getattr(torch, assumed.name.partition(":")[0], None)
    if backend is None or not getattr(backend, "is_available", lambda: False)():
        return None
    small, large = (torch.empty(size, dtype=torch.uint8) for size in (1, _MEASURED_BYTES))
    latency = _copy_seconds(small, assumed.name)
    rate = _MEASURED_BYTES / max(_copy_seconds(large, assumed.name) - latency, 1e-9)
    return replace(
        assumed, bytes_per_second=rate, latency_seconds=latency, compiles=can_compile(assumed.name),
        how=Text(f"copies to {assumed.name} measured: {rate / 1e9:.3g} GB/s, {latency * 1e6:.3g} µs",
                 f"实测到 {assumed.name} 的拷贝：{rate / 1e9:.3g} GB/s，{latency * 1e6:.3g} µs"),
    )  # fmt: skip


def _copy_seconds(tensor: object, name: str) -> float:
    """The best of five copies there and back: back, so that the copy has ended."""
    times = []
    for _ in range(5):
        start = perf_counter()
        tensor.to(name).to("cpu")  # type: ignore[attr-defined]
        times.append((perf_counter() - start) / 2)
    return min(times)


def load_profile(path: Path | str) -> DeviceProfile:
    """A profile in a JSON file with the fields of `DeviceProfile`."""
    todo = Text(
        'for example: {"name": "cuda:0", "speedups": {"cv2.resize": 8.5}}',
        '例如：{"name": "cuda:0", "speedups": {"cv2.resize": 8.5}}',
    )
    try:
        data = json.loads(read_regular(path, _LARGEST))
    except OSError as error:
        given = error.strerror or type(error).__name__
        raise InputError(str(path), given, Text("a device profile", "设备性能文件"), todo) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            str(path), f"no JSON ({error})", Text("a device profile", "设备性能文件"), todo
        ) from None
    made = from_data(DeviceProfile, data, str(path))
    numbers = [
        made.bytes_per_second,
        *made.speedups.values(),
        *([made.speedup] if made.speedup is not None else []),
    ]
    if any(value <= 0 for value in numbers) or min(made.latency_seconds, made.launch_seconds) < 0:
        expected = Text("rates and speed-ups above 0", "大于 0 的速率与加速比")
        raise InputError(str(path), "a rate of 0 or less", expected, todo)
    return (
        made
        if made.how.en != "assumed"
        else replace(made, how=Text(f"from {path}", f"来自 {path}"))
    )
