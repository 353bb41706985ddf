"""The analysis of a tensor as a Report: tables, a heat map, the exponents, and findings."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from torchstone._version import __version__
from torchstone.core.evidence import Command, Number
from torchstone.core.finding import Confidence, Finding, Location, fingerprint
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Heatmap, Plot, Series, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.skills import TOPIC_OF_RULE
from torchstone.tensors.analysis.answer import tensor_answer
from torchstone.tensors.analysis.errors.axes import DimStats
from torchstone.tensors.analysis.errors.figures import Figures, Worst
from torchstone.tensors.analysis.result import TensorReport
from torchstone.tensors.analysis.risk import RISK_NAMES, Risk
from torchstone.tensors.formats import GRANULARITIES

TOOL = "tensor"
_SHOWN_INDICES = 16
REMEDY_NAMES = {
    "loss scale": Text("loss scale", "损失缩放"),
    "other format": Text("other format", "换用其他格式"),
    "reduce in fp32": Text("reduce in fp32", "以 FP32 做 reduce"),
    "scale per axis": Text("scale per axis", "按轴缩放"),
    "granularity": Text("granularity", "更细的粒度"),
}
_OPERATION_NAMES = {
    "sum": Text("sum", "求和"),
    "running sum": Text("running sum", "逐项累加"),
    "mean": Text("mean", "均值"),
    "norm": Text("norm", "范数"),
    "matmul": Text("matmul", "矩阵乘"),
}


def tensor_report(found: TensorReport, risks: list[Risk]) -> TensorReport:
    """The analysis with its Report filled in."""
    topics = tuple(dict.fromkeys(TOPIC_OF_RULE[risk.rule] for risk in risks))
    report = Report(
        TOOL,
        tuple(_finding(found, risk) for risk in risks),
        tuple(_measures(found)),
        environment=environment(),
        subject=found.name,
        answer=tensor_answer(found, risks, _exponents(found), topics),
    )
    return replace(found, report=report)


def environment() -> dict[str, str]:
    return {
        "torchstone": __version__, "python": platform.python_version(),
        "torch": str(torch.__version__), "threads": str(torch.get_num_threads()),
    }  # fmt: skip


def _finding(found: TensorReport, risk: Risk) -> Finding:
    evidence: tuple[Evidence, ...] = (
        Number(Text("dim_ratio", "维度比 dim_ratio"), found.dim_ratio, "×",
               Text("largest over smallest extreme of the same side", "同侧极值的最大与最小之比")),
        *(item for item in (_index_table(found), _remedy_table(found)) if item),
    )  # fmt: skip
    return risk_finding(found.name, risk, evidence)


def risk_finding(tensor: str, risk: Risk, evidence: tuple[Evidence, ...] = ()) -> Finding:
    """The same words wherever a tensor was looked at."""
    return Finding(
        rule=risk.rule,
        name=risk.rule.removeprefix("tensor-"),
        severity=risk.severity,
        confidence=Confidence.CERTAIN,
        what=Message(f"{risk.rule}.what", risk.what),
        why=Message(f"{risk.rule}.why", risk.why),
        remedy=Message(f"{risk.rule}.remedy", risk.remedy),
        location=Location(tensor=tensor),
        evidence=(*evidence, Command(f"torchstone explain {TOPIC_OF_RULE[risk.rule]}")),
        fingerprint=fingerprint(risk.rule, tensor, ""),
        tool=TOOL,
    )


def _measures(found: TensorReport) -> list[Measure]:
    contents = found.contents
    rows: list[Measure] = [
        _measure(
            "risk_level", {"LOW": 0, "MEDIUM": 1, "HIGH": 2}[found.risk_level], "",
            Text(f"{found.risk_level}: {found.suggestions.en}",
                 f"{RISK_NAMES[found.risk_level].zh}：{found.suggestions.zh}"),
            Text("risk_level (0 LOW, 1 MEDIUM, 2 HIGH)", "风险等级（0 低，1 中，2 高）"),
            format_table(found.formats, Text("What each format does", "各格式的影响")),
        ),
        _measure(
            "values", contents.total, "",
            Text(f"shape {found.shape}, {found.dtype}; {contents.zeros:,} zero, {contents.nans:,} NaN, "
                 f"{contents.infinities:,} infinite",
                 f"形状 {found.shape}，{found.dtype}；零 {contents.zeros:,}，NaN {contents.nans:,}，"
                 f"无穷 {contents.infinities:,}"),
            Text("values", "数值个数"),
        ),
        _measure(
            "octaves", contents.octaves_above_median, "",
            Text(f"log2 of the largest ({contents.largest:.4g}) over the median magnitude "
                 f"({contents.median:.4g})",
                 f"最大绝对值（{contents.largest:.4g}）与中位数（{contents.median:.4g}）之比的 log2"),
            Text("largest over median, in octaves", "最大值与中位数之比（log2）"),
        ),
    ]  # fmt: skip
    if found.axis is not None:
        rows.append(_axis_measure(found))
    if found.remedies:
        rows.append(
            _measure(
                "remedies", len(found.remedies), "",
                Text("what helps, from the cheapest on, each measured", "可行的办法，由易到难，均为实测"),
                Text("remedies", "办法"), *(t for t in (_remedy_table(found),) if t),
            )
        )  # fmt: skip
    if found.what_if:
        rows.append(_what_if_measure(found))
    rows += [_measure("note", 0, "", note, Text("note", "说明")) for note in found.notes]
    if contents.holds_16_bits and found.dtype == "float32":
        rows.append(
            _measure(
                "note",
                0,
                "",
                Text("every value is a bf16 number already", "所有数值都已是 bf16 可表示的数"),
                Text("note", "说明"),
            )
        )
    return rows


def _measure(
    name: str, value: float, unit: str, how: Text, label: Text, *evidence: Evidence
) -> Measure:
    return Measure(name, float(value), unit, how, label, evidence=evidence, tool=TOOL)


def _percent(value: float) -> float:
    return round(100 * value, 4)


def format_table(figures: tuple[Figures, ...], name: Text) -> Table:
    """What SQNR and cosine hide stands first."""
    columns = (
        Text("format", "格式"), Text("scale per", "缩放粒度"), Text("scale", "缩放方式"),
        Text("flushed %", "下溢 %"), Text("subnormal %", "非规格化 %"), Text("overflow %", "上溢 %"),
        Text("median error %", "中位相对误差 %"), Text("largest error %", "最大相对误差 %"),
        Text("worst row dB", "最差行 dB"), Text("worst column dB", "最差列 dB"),
        Text("worst tile dB", "最差块 dB"), "SQNR dB", Text("cosine", "余弦"),
        Text("how", "获得方式"),
    )  # fmt: skip
    rows = tuple(
        (
            item.format, item.granularity, item.scale, _percent(item.flushed),
            _percent(item.subnormal), _percent(item.overflow), _percent(item.median_error),
            _percent(item.largest_error), _decibels(item.worst_row), _decibels(item.worst_column),
            _decibels(item.worst_tile), round(item.sqnr_db, 2), round(item.cosine, 6), item.how,
        )
        for item in figures
    )  # fmt: skip
    return Table(name, columns, rows)


def _decibels(worst: Worst | None) -> float | None:
    return None if worst is None else round(worst.sqnr_db, 1)


def _exponents(found: TensorReport) -> tuple[Evidence, ...]:
    counts = found.contents.exponents
    if not counts:
        return ()
    span = range(min(counts), max(counts) + 1)
    series = Series(
        Text("values", "数值个数"), tuple(float(e) for e in span),
        tuple(float(counts.get(e, 0)) for e in span), "",
        Text("counted by exponent", "按指数统计"), x_name="log2 |x|",
    )  # fmt: skip
    name = Text("Values in each octave", "各二进制指数区间内的数值个数")
    return (Plot(name, (series,), x_name="log2 |x|", bars=True),)


def _index_table(found: TensorReport) -> Table | None:
    if found.axis is None or not found.dim_stats:
        return None
    order = _largest_first(found.dim_stats)
    half = _SHOWN_INDICES // 2
    shown = order if len(order) <= _SHOWN_INDICES else [*order[:half], *order[-half:]]
    rows = tuple(
        (i, *(round(found.dim_stats[i][key], 6) for key in ("min", "max", "mean"))) for i in shown
    )
    some = "" if len(shown) == len(order) else ": the largest and the smallest"
    some_zh = "" if len(shown) == len(order) else "：最大与最小的若干个"
    return Table(
        Text(f"Indices of axis {found.axis}{some}", f"第 {found.axis} 轴的各下标{some_zh}"),
        (Text("index", "下标"), Text("min", "最小值"), Text("max", "最大值"), Text("mean", "均值")), rows,
    )  # fmt: skip


def _largest_first(stats: Mapping[int, Mapping[str, float]]) -> list[int]:
    if isinstance(stats, DimStats):
        return [int(i) for i in np.argsort(-np.nan_to_num(stats.absmax), kind="stable")]
    return list(stats)


def _axis_measure(found: TensorReport) -> Measure:
    return _measure(
        "dim_ratio", found.dim_ratio, "×",
        Text(f"axis {found.axis}: largest over smallest extreme of the same side; magnitudes alone: "
             f"{found.absmax_ratio:,.4g} ×",
             f"第 {found.axis} 轴：同侧极值的最大与最小之比；仅按绝对值为 {found.absmax_ratio:,.4g} ×"),
        Text("dim_ratio", "维度比 dim_ratio"),
        *(item for item in (_index_table(found), _reduction_table(found)) if item),
    )  # fmt: skip


def _reduction_table(found: TensorReport) -> Table | None:
    if not found.reductions:
        return None
    operations = list(dict.fromkeys(item.operation for item in found.reductions))
    formats = list(dict.fromkeys(item.format for item in found.reductions))
    errors = {(item.format, item.operation): item.error for item in found.reductions}
    rows = tuple(
        (name, *(_error_cell(errors.get((name, operation))) for operation in operations))
        for name in formats
    )
    return Table(
        Text(f"Relative error of reductions over axis {found.axis}, %",
             f"在第 {found.axis} 轴上做 reduce 的相对误差（%）"),
        (Text("format", "格式"), *(_OPERATION_NAMES.get(name, name) for name in operations)), rows,
        Text("against fp64, on a sample", "与 fp64 比较，抽样"),
    )  # fmt: skip


def _error_cell(error: float | None) -> float | str | None:
    if error is None:
        return None
    return "∞" if error == float("inf") else round(100 * error, 5)


def _remedy_table(found: TensorReport) -> Table | None:
    if not found.remedies:
        return None
    rows = tuple(
        (
            REMEDY_NAMES.get(item.name, item.name),
            item.action,
            _percent(item.before),
            _percent(item.lost),
            item.how,
        )
        for item in found.remedies
    )
    columns = (
        Text("remedy", "办法"), Text("what to do", "做法"), Text("lost before %", "此前损失 %"),
        Text("lost after %", "此后损失 %"), Text("how measured", "测量方式"),
    )  # fmt: skip
    return Table(Text("Remedies", "办法"), columns, rows)


def _what_if_measure(found: TensorReport) -> Measure:
    return _measure(
        "what_if", len(found.what_if), "",
        Text("format × granularity × scale, " + found.what_if[0].how.en,
             "格式 × 粒度 × 缩放方式，" + found.what_if[0].how.zh),
        Text("combinations tried", "尝试的组合"),
        _heatmap(found, Text("Median relative error", "中位相对误差"), "%",
                 lambda item: _percent(item.median_error)),
        _heatmap(found, Text("Flushed to zero", "下溢为零"), "%", lambda item: _percent(item.flushed)),
        format_table(found.what_if, Text("What if", "假设分析")),
    )  # fmt: skip


def _heatmap(found: TensorReport, name: Text, unit: str, value: object) -> Heatmap:
    assert callable(value)
    kinds = tuple(k for k in GRANULARITIES if any(f.granularity == k for f in found.what_if))
    rows = list(dict.fromkeys((item.format, item.scale) for item in found.what_if))
    cells = {(f.format, f.scale, f.granularity): float(value(f)) for f in found.what_if}
    return Heatmap(
        name, tuple(f"{kind} {scale}" for kind, scale in rows), kinds,
        tuple(tuple(cells.get((*row, kind)) for kind in kinds) for row in rows), unit,
        Text(f"columns: {', '.join(kinds)}", f"列：{'、'.join(kinds)}"),
    )  # fmt: skip
