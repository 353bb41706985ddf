"""Pictures of a cost: tables that fold repeated layers, flame graphs, memory over time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable

from torchstone.core.pictures import Branch, Cell, Plot, Series, Table, Tree
from torchstone.core.text import Text
from torchstone.cost.records.ledger import Cost
from torchstone.cost.reporting.report import CostReport, Figures

COUNTED = Text(
    "counted on meta tensors, operator by operator", "在 meta 张量上逐算子统计"
)  # fmt: skip
LIVES = Text("from tensor lifetimes in the same pass", "来自同一次运行中的张量生命周期")
NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.|$)")
_SMALLEST = 0.002
_NAMES = (
    Text("parameters", "参数"),
    Text("FLOPs", "FLOPs"),
    Text("vector FLOPs", "向量 FLOPs"),
    Text("bytes moved", "访存字节"),
    Text("activations", "激活"),
    Text("peak memory", "峰值内存"),
)
_KEYS = ("params", "flops", "vector_flops", "bytes", "activations", "peak_memory_bytes")
_UNITS = ("", "FLOP", "FLOP", "B", "B", "B")


def stage_table(report: CostReport) -> Table:
    unit = flop_unit(report)
    return Table(
        Text("By stage", "按阶段"),
        (Text("stage", "阶段"), *_NAMES),
        tuple((_said(name), *_cells(item)) for name, item in report.stages.items()),
        COUNTED,
        ("", "", unit, *_UNITS[2:]),
    ).without(*_empty(report))


def module_table(report: CostReport) -> Table:
    """Modules with all that is inside them; layers with equal figures share a row."""
    rows: list[tuple[Cell, ...]] = []
    for name, count, kind, item in folded(report):
        rows.append((name, kind, count, *_cells(item)))
    return Table(
        Text("By module, each with what is inside it", "按模块（含其内部）"),
        (Text("module", "模块"), Text("class", "类"), Text("times", "次数"), *_NAMES),
        tuple(rows),
        Text("equal layers share a row: the figures are of one", "相同的层合并为一行：数值为单层"),
        ("", "", "", "", flop_unit(report), *_UNITS[2:]),
    ).without(*_empty(report))


def operator_table(report: CostReport, rows: int = 40) -> Table:
    whole = report.total["bytes"] or 1
    uncounted = report.cost.uncounted
    return Table(
        Text("By operator", "按算子"),
        (
            Text("operator", "算子"),
            Text("calls", "调用"),
            Text("FLOPs", "FLOPs"),
            Text("vector FLOPs", "向量 FLOPs"),
            Text("bytes moved", "访存字节"),
            Text("% of bytes", "字节占比 %"),
        ),
        tuple(
            (
                name,
                item["calls"],
                None if name in uncounted else item["flops"],
                None if name in uncounted else item["vector_flops"],
                item["bytes"],
                round(100 * item["bytes"] / whole, 2),
            )
            for name, item in list(report.operators.items())[:rows]
        ),
        COUNTED,
        ("", "", flop_unit(report), "FLOP", "B", ""),
    )


def _empty(report: CostReport) -> tuple[Text, ...]:
    """Columns that say nothing: without a backward no module keeps activations."""
    return () if report.cost.train else (_NAMES[4],)


_STAGES = {"other": Text("other", "其他"), "optimizer": Text("optimizer", "优化器")}


def _said(stage: str) -> Cell:
    return _STAGES.get(stage, stage)


def flop_unit(report: CostReport) -> str:
    return "MAC" if report.convention in ("mac", "fvcore") else "FLOP"


def _cells(item: Figures) -> tuple[Cell, ...]:
    return tuple(item[key] for key in _KEYS)


def folded(report: CostReport) -> Iterable[tuple[str, int, str, Figures]]:
    """Module rows; a run of siblings with equal figures becomes `layers.0–31` and a count."""
    kinds = {path: item.kind for path, item in report.cost.modules.items()}
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for path, item in report.modules.items():
        shape = (NUMBER.sub("*", path), tuple(item[key] for key in _KEYS[:5]))
        groups.setdefault(shape, []).append(path)
    for (pattern, _), paths in groups.items():
        first = paths[0]
        name = first or "(model)"
        if len(paths) > 1:
            name = pattern.replace("*", f"{_numbers(paths)}", 1)
        yield name, len(paths), kinds[first], report.modules[first]


def _numbers(paths: list[str]) -> str:
    found = [int(match.group()) for path in paths if (match := NUMBER.search(path))]
    low, high = min(found), max(found)
    return f"[{low}–{high}]" if high > low else str(low)


def flame(report: CostReport, key: str, unit: str, name: Text) -> Tree | None:
    """Modules as a flame graph by one figure; None when nothing has it."""
    figures = report.modules
    if not figures or not figures[""][key]:
        return None
    children: dict[str, list[str]] = {}
    for path in figures:
        if path:
            children.setdefault(path.rpartition(".")[0], []).append(path)
    least = figures[""][key] * _SMALLEST

    def branch(path: str) -> Branch:
        inner = [item for item in children.get(path, ()) if figures[item][key] >= least]
        kind = report.cost.modules[path].kind
        label = path.rpartition(".")[2] or kind
        parts = [branch(item) for item in inner]
        if not path and (rest := _optimizer_share(report, key)) >= least:
            parts.append(Branch("optimizer step", float(rest), group="optimizer"))
        whole = float(figures[path][key])
        return Branch(label, whole, tuple(parts), kind)

    return Tree(name, branch(""), unit, LIVES if key == "activations" else COUNTED)


def _optimizer_share(report: CostReport, key: str) -> int:
    """What the optimizer step adds to a figure of the model: it belongs to no module."""
    tally = report.cost.total("optimizer")
    return {"flops": tally.flops, "bytes": tally.bytes}.get(key, 0)


def memory_plot(cost: Cost) -> Plot | None:
    """Bytes alive over the run, phase after phase."""
    points = cost.memory.timeline
    if len(points) < 2:
        return None
    x = tuple(float(point[0]) for point in points)
    changes = [
        (float(after[0]), _kind(after[1]))
        for before, after in itertools.pairwise(points)
        if _kind(before[1]) != _kind(after[1])
    ]
    marks, names = tuple(at for at, _ in changes), tuple(_PHASES[kind] for _, kind in changes)

    def series(name: Text, pick: Callable[[tuple[int, str, int, int]], int]) -> Series:
        return Series(
            name, x, tuple(float(pick(p)) for p in points), "B", LIVES, "op", marks, names
        )

    return Plot(
        Text("Memory over the run", "运行过程中的内存"),
        (
            series(Text("all that is alive", "全部存活"), lambda p: p[2]),
            series(Text("activations and temporaries", "激活与临时张量"), lambda p: p[3]),
        ),
        "operator",
        "B",
    )


_PHASES = {
    "forward": Text("forward begins", "前向开始"),
    "backward": Text("backward begins", "反向开始"),
    "optimizer": Text("optimizer step begins", "优化器步骤开始"),
}


def _kind(phase: str) -> str:
    return "backward" if phase == "recompute" else phase
