"""Many sizes of one model beside each other: a table and curves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.measure import Measure
from torchstone.core.pictures import Cell, Plot, Series, Table
from torchstone.core.text import Text
from torchstone.cost.on_devices.roofline_time import roofline
from torchstone.cost.reporting.report import CostReport
from torchstone.runtime.devices import Device

Point = tuple[int, int | None, CostReport]
"""A batch size, a sequence length, and what was counted for them."""


def swept(sweep: list[Point], devices: tuple[Device, ...]) -> Measure:
    """A sweep as a table and as curves."""
    rows: list[tuple[Cell, ...]] = []
    times = [[roofline(r.cost, item).total().seconds for item in devices] for _, _, r in sweep]
    for (batch, length, report), seconds in zip(sweep, times, strict=True):
        total = report.total
        rows.append(
            (batch, length, total["flops"], total["bytes"], total["activations"],
             total["peak_memory_bytes"], *seconds)
        )  # fmt: skip
    how = Text("each counted by itself", "逐一统计")
    table = Table(
        Text("Sweep", "扫描"),
        (
            Text("batch", "批大小"), Text("sequence", "序列"), Text("FLOPs", "FLOPs"),
            Text("bytes moved", "访存字节"), Text("activations", "激活"),
            Text("peak memory", "峰值内存"),
            *(Text(f"time on {item.name}", f"{item.name} 时间") for item in devices),
        ),
        tuple(rows), how, ("", "", "FLOP", "B", "B", "B", *("s" for _ in devices)),
    )  # fmt: skip
    return Measure(
        "sweep", float(len(sweep)), "", how, Text("points of the sweep", "扫描点数"),
        evidence=(table, *_curves(sweep, how)), tool="cost",
    )  # fmt: skip


def _curves(sweep: list[Point], how: Text) -> Iterator[Plot]:
    """One curve for each value of the other dimension."""
    over_length = len({length for _, length, _ in sweep}) > 1
    name = "sequence" if over_length else "batch"
    groups: dict[Any, list[tuple[float, CostReport]]] = {}
    for batch, length, report in sweep:
        key = f"batch {batch}" if over_length else f"sequence {length}" if length else ""
        groups.setdefault(key, []).append((float((length or 0) if over_length else batch), report))
    for figure, unit, title in (
        ("flops", "FLOP", Text(f"FLOPs over {name}", "FLOPs 曲线")),
        ("peak_memory_bytes", "B", Text(f"Peak memory over {name}", "峰值内存曲线")),
    ):
        yield Plot(
            title,
            tuple(
                Series(
                    key or figure,
                    tuple(x for x, _ in points),
                    tuple(float(report.total[figure]) for _, report in points),
                    unit,
                    how,
                    name,
                )
                for key, points in groups.items()
            ),
            name,
            unit,
            log_x=True,
            log_y=True,
        )
