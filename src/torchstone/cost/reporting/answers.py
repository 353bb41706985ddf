"""What is asked about a counted model: time and memory on a device, decoding, utilisation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.measure import Measure
from torchstone.core.pictures import Cell, Evidence, Table
from torchstone.core.report import RuleInfo
from torchstone.core.text import Message, Text
from torchstone.cost.arguments import main_format, positive, whole
from torchstone.cost.decoders.closed_forms import Decoder, cache_growth
from torchstone.cost.decoders.serving import Served, served_table
from torchstone.cost.on_devices.fitting import Fit
from torchstone.cost.on_devices.roofline_picture import roofline_plot, roofline_table
from torchstone.cost.on_devices.roofline_time import roofline
from torchstone.cost.on_devices.utilization import mfu
from torchstone.cost.options import CostOptions
from torchstone.cost.reporting.report import CostReport
from torchstone.runtime.devices import Device

Progress = Callable[[int, int, str], None]
TOO_LARGE = RuleInfo(
    "COST01",
    "does-not-fit",
    "cost",
    Severity.HIGH,
    Text("the model does not fit into the memory of the device", "模型放不进设备内存"),
)


def times_on(report: CostReport, devices: tuple[Device, ...]) -> list[Measure]:
    """Roofline time on each device, with what holds it up."""
    found: list[Measure] = []
    for item in devices:
        roof = roofline(report.cost, item)
        whole = roof.total()
        evidence: list[Evidence] = [roofline_table(roof)]
        with suppress(UsageError):  # a device without that format has no roof for it
            evidence.append(roofline_plot(roof, main_format(report.cost)))
        found.append(
            Measure(
                f"seconds_{item.name}", whole.seconds, "s", roof.assumed,
                Text(f"time on {item.title}, roofline estimate without kernel fusion",
                     f"{item.title} 上的时间（roofline 估算，不考虑算子融合）"),
                evidence=tuple(evidence), tool="cost",
            )
        )  # fmt: skip
    return found


def decoded(served: list[Served], config: Any, devices: tuple[Device, ...]) -> Measure:
    """One decoded token after each context that was asked for."""
    times = {
        item.name: [roofline(one.decode, item).total().seconds for one in served]
        for item in devices
    }
    evidence: list[Evidence] = [served_table(served, times)]
    with suppress(UsageError):  # the closed form knows decoders only
        decoder = Decoder.from_config(config)
        lengths = sorted({*(2**power for power in range(8, 18)), *(one.context for one in served)})
        evidence.append(cache_growth(decoder, lengths, served[0].batch))
        evidence.append(_forms(decoder, served))
    first = served[0]
    return Measure(
        "decode_flops", float(first.decode.total().flops), "FLOP",
        Text(f"counted with {first.context} cached tokens", f"以 {first.context} 个缓存 token 统计"),
        Text("one decode step", "一步解码"), evidence=tuple(evidence), tool="cost",
    )  # fmt: skip


def _forms(decoder: Decoder, served: list[Served]) -> Table:
    """Closed forms beside the count: as the code does it, and as it could be done."""
    rows: list[tuple[Cell, ...]] = []
    for item in served:
        figures = [decoder.decode(item.batch, item.context, form).flops for form in _FORMS]
        rows.append((item.context, item.decode.total().flops, *figures))
    return Table(
        Text("Decode by closed form", "解码的公式计算"),
        (
            Text("context", "上下文"), Text("counted", "统计"), Text("as the code does it", "按代码"),
            Text("absorbed", "吸收"), Text("expanded", "展开"),
        ),
        tuple(rows),
        Text("the forms differ for latent attention only", "仅对潜注意力有区别"),
        ("", "FLOP", "FLOP", "FLOP", "FLOP"),
    )  # fmt: skip


_FORMS = ("code", "absorbed", "expanded")


def room_on(verdict: Fit) -> Measure:
    return Measure(
        f"memory_{verdict.device.name}", float(verdict.total_bytes), "B", verdict.text,
        Text(f"memory of one {verdict.device.title}", f"单个 {verdict.device.title} 的内存"),
        evidence=tuple(
            item for item in (verdict.memory_table(), verdict.traffic_table()) if item.rows
        ),
        tool="cost",
    )  # fmt: skip


def too_large(verdict: Fit, options: CostOptions) -> Finding:
    target = options.target
    ways = (
        "--plan, --checkpoint, a smaller --batch" if options.train else "--plan, a smaller --batch"
    )
    ways_zh = ways.replace("a smaller --batch", "更小的 --batch").replace(", ", "、")
    exact = verdict.measured_bytes is not None
    return Finding(
        rule=TOO_LARGE.id,
        name=TOO_LARGE.name,
        severity=Severity.HIGH,
        confidence=Confidence.CERTAIN if exact else Confidence.LIKELY,
        what=Message("does-not-fit", verdict.text),
        why=Message(
            "does-not-fit-why",
            Text("the first step would run out of memory", "第一步就会内存不足"),
        ),
        remedy=Message(
            "does-not-fit-remedy",
            Text(f"spread it or keep less: {ways}", f"拆分模型或少存一些：{ways_zh}"),
        ),
        location=Location(scope=target),
        evidence=(verdict.memory_table(),),
        fingerprint=fingerprint(TOO_LARGE.id, target, verdict.device.name),
        tool="cost",
    )


def _by_formula(report: CostReport) -> int | None:
    """FLOPs by the convention that was asked for, where that is a formula and no count."""
    name = f"flops_{report.convention}"
    if report.convention not in ("palm", "megatron"):
        return None
    return next((int(item.value) for item in report.measures if item.name == name), None)


def check_utilisation_asked(options: CostOptions, devices: tuple[Device, ...]) -> None:
    """A measured step time needs a device to compare with."""
    if options.step_seconds and not devices:
        raise UsageError(
            "cost: --step-seconds", str(options.step_seconds),
            Text("a device to compare with", "用于比较的设备"),
            Text("add --device h100", "请加上 --device h100"),
        )  # fmt: skip
    if options.step_seconds:
        positive("cost: --step-seconds", options.step_seconds)
        whole("cost: --count", options.count)


def utilised(
    report: CostReport, options: CostOptions, devices: tuple[Device, ...]
) -> list[Measure]:
    """MFU and HFU of a measured step."""
    if not options.step_seconds:
        return []
    found: list[Measure] = []
    for item in devices:
        used = mfu(
            report, options.step_seconds, item, options.count, model_flops=_by_formula(report)
        )
        found.append(
            Measure(
                f"mfu_{item.name}", used.mfu, "share", used.text,
                Text(f"MFU on {options.count} x {item.title}", f"{options.count} x {item.title} 上的 MFU"),
                evidence=used.evidence(), tool="cost",
            )
        )  # fmt: skip
    return found
