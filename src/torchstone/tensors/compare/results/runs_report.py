"""What a comparison of two runs found, and its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchstone.core.evidence import Command
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Plot, Series, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.tensors.analysis.report import environment

TOOL = "runs"


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """One module in both runs."""

    name: str
    order: int
    entering: float
    leaving: float
    shapes: str = ""
    """Set where the outputs cannot be compared."""


@dataclass(frozen=True)
class RunsReport:
    """Where two runs part."""

    layers: tuple[LayerDifference, ...]
    first_divergence: LayerDifference | None
    output_error: float
    weights: dict[str, float]
    """Relative difference of parameters and buffers that differ."""
    gradients: dict[str, float]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    report: Report
    lang: str = "en"

    def to(self, format: str, lang: str = "", **options: Any) -> str:
        return self.report.to(format, lang or self.lang, **options)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.report.findings

    def to_json(self, indent: int | None = 2) -> str:
        return self.report.to_json(indent)

    def __str__(self) -> str:
        return self.to("text")

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def runs_report(found: RunsReport, tolerance: float, subject: str) -> Report:
    findings = (_finding(found, found.first_divergence),) if found.first_divergence else ()
    x = tuple(float(row.order) for row in found.layers)
    lines = tuple(
        Series(
            name,
            x,
            tuple(_shown(v) for v in values),
            "",
            Text("relative", "相对值"),
            x_name="layer",
        )
        for name, values in (
            (Text("goes in", "输入"), [row.entering for row in found.layers]),
            (Text("comes out", "输出"), [row.leaving for row in found.layers]),
        )
    )
    plot = Plot(Text("Difference along the depth", "沿深度的差异"), lines, "layer", "", log_y=True)
    evidence: tuple[Evidence, ...] = (_layer_table(found), *((plot,) if len(x) > 1 else ()))
    measures = [
        Measure("output_error", _shown(found.output_error), "",
                Text(f"relative difference of the outputs; tolerance {tolerance:g}",
                     f"输出的相对差异；容差 {tolerance:g}"),
                Text("output difference", "输出差异"), evidence=evidence, tool=TOOL),
        Measure("layers", len(found.layers), "", Text("compared", "已比较"), Text("layers", "层"), tool=TOOL),
        Measure("weights", len(found.weights), "", Text("parameters and buffers that differ", "不同的参数与缓冲区"),
                Text("different weights", "不同的权重"), evidence=(_weight_table(found),), tool=TOOL),
    ]  # fmt: skip
    for names, where in ((found.only_in_a, "a"), (found.only_in_b, "b")):
        if names:
            said = ", ".join(names[:10])
            measures.append(Measure(
                f"only_in_{where}", len(names), "", Text(f"modules of one model alone: {said}",
                f"仅一个模型有的模块：{said}"), Text(f"only in {where}", f"仅在 {where} 中"), tool=TOOL))  # fmt: skip
    return Report(TOOL, findings, tuple(measures), environment=environment(), subject=subject)


def _shown(value: float) -> float:
    return min(value, 1e9) if value == value else 1e9


def _finding(found: RunsReport, row: LayerDifference) -> Finding:
    differ = [name for name in found.weights if name.startswith(row.name + ".")]
    why = (
        Text(f"its weights differ: {', '.join(differ[:5])}", f"其权重不同：{'、'.join(differ[:5])}")
        if differ
        else Text("its weights are equal: the computation differs", "其权重相同：计算过程不同")
    )
    what = Text(
        f"the runs part at `{row.name}`: inputs differ by {row.entering:.3g}, outputs by {row.leaving:.3g}"
        + (f" (shapes {row.shapes})" if row.shapes else ""),
        f"两次运行在 `{row.name}` 处开始不同：输入相差 {row.entering:.3g}，输出相差 {row.leaving:.3g}"
        + (f"（形状 {row.shapes}）" if row.shapes else ""),
    )
    return Finding(
        rule="runs-diverge", name="diverge", severity=Severity.HIGH, confidence=Confidence.CERTAIN,
        what=Message("runs-diverge.what", what), why=Message("runs-diverge.why", why),
        remedy=Message("runs-diverge.remedy", Text(
            f"compare `{row.name}` of the two models", f"请比较两个模型的 `{row.name}`")),
        location=Location(module=row.name),
        evidence=(_layer_table(found), Command("torchstone explain numerical_issues")),
        fingerprint=fingerprint("runs-diverge", row.name, ""), tool=TOOL,
    )  # fmt: skip


def _layer_table(found: RunsReport) -> Table:
    rows = tuple((row.name, _shown(row.entering), _shown(row.leaving)) for row in found.layers)
    columns = (
        Text("layer", "层"),
        Text("inputs differ", "输入差异"),
        Text("outputs differ", "输出差异"),
    )
    return Table(Text("Layers in order", "各层（按执行顺序）"), columns, rows)


def _weight_table(found: RunsReport) -> Table:
    rows = sorted(found.weights.items(), key=lambda item: -item[1])
    columns = (Text("name", "名称"), Text("relative difference", "相对差异"))
    return Table(
        Text("Weights that differ", "不同的权重"), columns, tuple((n, _shown(v)) for n, v in rows)
    )
