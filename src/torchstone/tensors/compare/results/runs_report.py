"""Two runs as a Report: where they part, then layers, weights and gradients in tables."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torchstone.core.evidence import Command
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Plot, Series, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.skills import TOPIC_OF_RULE
from torchstone.tensors.analysis.report import environment
from torchstone.tensors.compare.results.precision_answer import MODEL, percent
from torchstone.tensors.compare.results.runs_answer import runs_answer
from torchstone.tensors.compare.results.runs_outcome import LayerDifference, RunsReport

TOOL = "runs"
_RULE = "runs-diverge"
_LEAST = 1e-9  # a logarithmic axis has no zero


def runs_report(found: RunsReport) -> Report:
    """The report with its first screen."""
    finding = _finding(found, found.first_divergence) if found.first_divergence else None
    answer = runs_answer(found, finding, _depth_plot(found), TOPIC_OF_RULE[_RULE])
    return Report(
        TOOL, (finding,) if finding else (), tuple(_measures(found)), environment=environment(),
        subject=f"{found.model_a} / {found.model_b}", answer=answer,
    )  # fmt: skip


def _cell(value: float) -> float | str:
    """In per cent."""
    return 100 * value if math.isfinite(value) else "∞"


def _depth_plot(found: RunsReport) -> tuple[Evidence, ...]:
    if len(found.layers) < 2:
        return ()
    series = []
    for name, values in (
        (Text("goes in", "输入"), [row.entering for row in found.layers]),
        (Text("comes out", "输出"), [row.leaving for row in found.layers]),
    ):
        kept = [
            (float(row.order), 100 * value)
            for row, value in zip(found.layers, values, strict=True)
            if value > _LEAST and math.isfinite(value)
        ]
        if kept:
            x, y = zip(*kept, strict=True)
            how = Text("relative to the first model", "相对第一个模型")
            series.append(Series(name, x, y, "%", how))
    if not any(len(item.x) > 1 for item in series):
        return ()
    title = Text("Difference along the depth, layer by layer", "沿深度逐层的差异")
    return (Plot(title, tuple(series), y_name="%", log_y=True),)


def _measures(found: RunsReport) -> list[Measure]:
    infinite = Text("", "")
    if not math.isfinite(found.output_error):
        infinite = Text("infinite or of other shapes; ", "无穷，或形状不同；")
    measures = [
        Measure("output_error", 100 * found.output_error if math.isfinite(found.output_error) else 100.0, "%",
                Text(f"{infinite.en}difference of the outputs over their norm; tolerance {percent(found.tolerance)}",
                     f"{infinite.zh}输出之差与其范数之比；容差 {percent(found.tolerance)}"),
                Text("output difference", "输出差异"), tool=TOOL),
        Measure("layers", len(found.layers), "", Text("compared", "已比较"), Text("layers", "层"),
                evidence=(_layer_table(found),), tool=TOOL),
        Measure("weights", len(found.weights), "", Text("parameters and buffers that differ", "不同的参数与缓冲区"),
                Text("different weights", "不同的权重"), evidence=(_weight_table(found),), tool=TOOL),
        Measure("gradients", len(found.gradients), "", Text("compared", "已比较"), Text("gradients", "梯度"),
                evidence=(_gradient_table(found),), tool=TOOL),
    ]  # fmt: skip
    for names, where in ((found.only_in_a, "a"), (found.only_in_b, "b")):
        if names:
            said = ", ".join(names[:10])
            measures.append(Measure(
                f"only_in_{where}", len(names), "", Text(f"modules of one model alone: {said}",
                f"仅一个模型有的模块：{said}"), Text(f"only in {where}", f"仅在 {where} 中"), tool=TOOL))  # fmt: skip
    return measures


def _finding(found: RunsReport, row: LayerDifference) -> Finding:
    prefix = f"{row.name}." if row.name else ""
    differ = [name for name in found.weights if name.startswith(prefix)]
    name = row.name or "(model)"
    why = (
        Text(f"its weights differ: {', '.join(differ[:5])}", f"其权重不同：{'、'.join(differ[:5])}")
        if differ
        else Text("its weights are equal: the computation differs", "其权重相同：计算过程不同")
    )
    entering, leaving = percent(row.entering), percent(row.leaving)
    what = Text(
        f"the runs part at `{name}`: inputs differ by {entering}, outputs by {leaving}"
        + (f" (shapes {row.shapes})" if row.shapes else ""),
        f"两次运行在 `{name}` 处开始不同：输入相差 {entering}，输出相差 {leaving}"
        + (f"（形状 {row.shapes}）" if row.shapes else ""),
    )
    remedy = Text(f"compare `{name}` of the two models", f"请比较两个模型的 `{name}`")
    return Finding(
        rule=_RULE, name="diverge", severity=Severity.HIGH, confidence=Confidence.CERTAIN,
        what=Message(f"{_RULE}.what", what), why=Message(f"{_RULE}.why", why),
        remedy=Message(f"{_RULE}.remedy", remedy), location=Location(module=name),
        evidence=(_layer_table(found), Command(f"torchstone explain {TOPIC_OF_RULE[_RULE]}")),
        fingerprint=fingerprint(_RULE, row.name, ""), tool=TOOL,
    )  # fmt: skip


def _layer_table(found: RunsReport) -> Table:
    rows = tuple(
        (row.name or MODEL, _cell(row.entering), _cell(row.leaving), row.shapes or "–")
        for row in found.layers
    )
    columns = (
        Text("layer", "层"),
        Text("inputs differ %", "输入差异 %"),
        Text("outputs differ %", "输出差异 %"),
        Text("shapes that differ", "不同的形状"),
    )
    empty = Text(
        "empty: no layer of the same name ran in both models; rename modules so that they match",
        "为空：没有同名的层在两个模型中都运行过；请使模块名称一致",
    )
    return Table(
        Text("Layers in order", "各层（按执行顺序）"), columns, rows, "" if rows else empty
    )


def _weight_table(found: RunsReport) -> Table:
    empty = Text("empty: all weights of the same name are equal", "为空：同名的权重全部相同")
    return _by_size(Text("Weights that differ", "不同的权重"), found.weights, empty)


def _gradient_table(found: RunsReport) -> Table:
    empty = Text(
        "empty: no backward pass was run, because no output requires a gradient",
        "为空：没有输出需要梯度，因此未运行反向过程",
    )
    return _by_size(
        Text("Gradients, the worst first", "梯度，差异最大者在前"), found.gradients, empty
    )


def _by_size(title: Text, values: Mapping[str, float], empty: Text) -> Table:
    rows = sorted(values.items(), key=lambda item: -item[1])
    columns = (Text("name", "名称"), Text("difference %", "差异 %"))
    cells = tuple((name, _cell(value)) for name, value in rows)
    return Table(title, columns, cells, "" if cells else empty)
