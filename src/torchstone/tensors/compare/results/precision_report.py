"""A comparison as a Report: where it breaks, why, what to keep; then errors along the depth."""

from __future__ import annotations

import linecache
import math
from collections.abc import Iterable
from dataclasses import replace

from torchstone.core.evidence import Command, Snippet
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.measure import Measure
from torchstone.core.pictures import Branch, Cell, Evidence, Plot, Series, Table, Tree
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.skills import TOPIC_OF_RULE
from torchstone.tensors.analysis.report import environment
from torchstone.tensors.compare.results.outcome import (
    FirstBad,
    OperatorError,
    Plan,
    PrecisionReport,
)
from torchstone.tensors.compare.results.precision_answer import MODEL, percent, precision_answer

TOOL = "precision"
_WORST = 30
_BANDS = ((0.001, "< 0.1 %"), (0.01, "0.1–1 %"), (0.1, "1–10 %"), (1.0, "10–100 %"))
_LEAST = 1e-9  # below what a shadow in fp32 can tell


def precision_report(found: PrecisionReport, subject: str, unit: float) -> PrecisionReport:
    """The comparison with its Report filled in."""
    findings = (_finding(found, found.first_bad),) if found.first_bad else ()
    topic = TOPIC_OF_RULE[findings[0].rule] if findings else ""
    pictures: tuple[Evidence, ...] = (
        *(_snippet(found.first_bad) if found.first_bad else ()),
        *((_growth_table(found),) if found.unexplained else ()),
        *_depth_plot(found),
    )
    answer = precision_answer(found, findings[0] if findings else None, pictures, topic)
    report = Report(
        TOOL,
        findings,
        tuple(_measures(found, subject, unit)),
        environment=environment(),
        subject=subject,
        answer=answer,
    )
    return replace(found, report=report)


_WHAT = {
    "nonfinite": Text(
        "`{operator}` is the first to give NaN or infinity where {high} stays finite ({phase})",
        "`{operator}` 最先产生 NaN 或无穷，而 {high} 保持有限（{phase}）",
    ),
    "amplified": Text(
        "`{operator}` is the first bad operator ({phase}): an error of {entering} goes in, {leaving} comes out",
        "`{operator}` 是最先出错的算子（{phase}）：输入误差 {entering}，输出误差 {leaving}",
    ),
    "flushed": Text(
        "`{operator}` makes the loss zero in {low}: it is too small for the format ({phase})",
        "`{operator}` 使损失在 {low} 下变为零：数值小于该格式的范围（{phase}）",
    ),
    "absorbed": Text(
        "an update of a running statistic is rounded away: {leaving} of it is lost",
        "运行统计量的更新被舍去：损失 {leaving}",
    ),
}
_WHY = {
    "nonfinite": Text(
        "a value leaves the range of {low}, or a divisor is flushed to zero",
        "数值超出 {low} 的范围，或除数下溢为零",
    ),
    "amplified": Text(
        "subtracting nearly equal numbers, or adding many small ones to a large one, keeps the rounding "
        "errors and loses the value",
        "相近数相减，或把许多小数加到大数上，保留的是舍入误差，失去的是数值",
    ),
    "flushed": Text(
        "no gradient comes back from a loss that is exactly zero",
        "恒为零的损失不会产生任何梯度",
    ),
    "absorbed": Text(
        "the update is smaller than half a unit in the last place of the statistic",
        "更新小于该统计量最低有效位的一半",
    ),
}
_PHASE = {"forward": Text("forward", "前向"), "backward": Text("backward", "反向")}


def _finding(found: PrecisionReport, bad: FirstBad) -> Finding:
    args = {
        "operator": bad.operator, "low": found.low, "high": found.high,
        "entering": percent(bad.entering), "leaving": percent(bad.leaving),
    }  # fmt: skip
    remedy = Text(f"keep `{bad.layer}` in fp32", f"将 `{bad.layer}` 保持在 fp32")
    if not bad.layer:
        remedy = Text("compute this line in fp32", "以 fp32 计算这一行")
    if found.plan and found.plan.keep and (found.plan.reached or bad.layer):
        names = ", ".join(f"`{name}`" for name in found.plan.keep)
        after = percent(found.plan.error_after)
        missed = "" if found.plan.reached else f", above the bound of {percent(found.plan.bound)}"
        missed_zh = "" if found.plan.reached else f"，未达到目标 {percent(found.plan.bound)}"
        remedy = Text(
            f"keep {names} in fp32: the output error was then measured as {after}{missed}",
            f"将 {names} 保持在 fp32：此后实测输出误差为 {after}{missed_zh}",
        )
    rule = f"precision-{bad.kind}"
    place = bad.place
    return Finding(
        rule=rule, name=bad.kind, severity=Severity.HIGH, confidence=Confidence.CERTAIN,
        what=Message(f"{rule}.what", _with_phase(_WHAT[bad.kind], bad), args),
        why=Message(f"{rule}.why", _WHY[bad.kind], args),
        remedy=Message(f"{rule}.remedy", remedy),
        location=Location(path=place.path, line=place.line, column=_column(place.path, place.line), module=place.module, op=bad.operator,
                          scope=place.scope),
        evidence=(*_snippet(bad), _bad_table(found, bad), Command(f"torchstone explain {TOPIC_OF_RULE[rule]}")),
        fingerprint=fingerprint(rule, f"{place.module}.{place.scope}",
                                linecache.getline(place.path, place.line)),
        tool=TOOL,
    )  # fmt: skip


def _with_phase(template: Text, bad: FirstBad) -> Text:
    phase = _PHASE[bad.place.phase]
    return Text(template.en.replace("{phase}", phase.en), template.zh.replace("{phase}", phase.zh))


def _column(path: str, line: int) -> int:
    text = linecache.getline(path, line) if line else ""
    return len(text) - len(text.lstrip()) + 1 if text.strip() else 0


def _snippet(bad: FirstBad) -> tuple[Snippet, ...]:
    place = bad.place
    text = linecache.getline(place.path, place.line).rstrip("\n") if place.line else ""
    if not text.strip():
        return ()
    start = len(text) - len(text.lstrip()) + 1
    return (Snippet(place.path, place.line, text, place.line, start, len(text) + 1),)


def _bad_table(found: PrecisionReport, bad: FirstBad) -> Table:
    rows = [item for item in found.operators if item.place == bad.place]
    return _operator_table(rows, Text("Operators of this line", "该行的算子"))


def _growth_table(found: PrecisionReport) -> Table:
    """Where the error grew, line by line."""
    columns = (
        Text("line", "行"),
        Text("module", "模块"),
        Text("error in %", "输入误差 %"),
        Text("error out %", "输出误差 %"),
        Text("source", "源码"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            f"{item.place.path.rsplit('/', 1)[-1]}:{item.place.line}",
            item.place.module or MODEL,
            _cell(item.entering),
            _cell(item.leaving),
            linecache.getline(item.place.path, item.place.line).strip(),
        )
        for item in found.growth
    ]
    return Table(Text("Where the error grows", "误差逐行的增长"), columns, tuple(rows))


def _operator_table(rows: Iterable[OperatorError], name: Text) -> Table:
    columns = (
        Text("module", "模块"), Text("operator", "算子"), Text("phase", "阶段"),
        Text("inherited %", "继承误差 %"), Text("local, units of rounding", "本地误差（舍入单位）"),
        Text("amplification ×", "放大 ×"), Text("total %", "总误差 %"), Text("calls", "次数"),
        Text("flips", "翻转"), Text("line", "行"),
    )  # fmt: skip
    cells: list[tuple[Cell, ...]] = [
        (
            item.place.module or MODEL, item.operator, _PHASE[item.place.phase],
            round(100 * item.inherited, 4), round(item.local_units, 3), round(item.amplification, 3),
            round(100 * item.total, 4), item.calls, item.flips,
            f"{item.place.path.rsplit('/', 1)[-1]}:{item.place.line}" if item.place.line else "–",
        )
        for item in rows
    ]  # fmt: skip
    return Table(name, columns, tuple(cells))


def _measures(found: PrecisionReport, subject: str, unit: float) -> list[Measure]:
    worst = sorted(found.operators, key=lambda item: -item.total)[:_WORST]
    rows = [
        _measure("output_error", 100 * _shown(found.output_error), "%",
                 Text(f"{_infinite(found.output_error).en}outputs in {found.low} against {found.high}; one unit of rounding is {100 * unit:.3g} %",
                      f"{_infinite(found.output_error).zh}{found.low} 与 {found.high} 的输出之差；一个舍入单位为 {100 * unit:.3g} %"),
                 Text("output error", "输出误差"), *_module_tree(found, subject)),
    ]  # fmt: skip
    if found.gradient_errors:
        rows.append(_measure(
            "gradient_error", 100 * _shown(found.gradient_error), "%",
            Text(f"{_infinite(found.gradient_error).en}all gradients together, relative to their norm",
                 f"{_infinite(found.gradient_error).zh}所有梯度合计，相对其范数"),
            Text("gradient error", "梯度误差"), _gradient_table(found)))  # fmt: skip
    if found.plan:
        rows.append(_plan_measure(found.plan))
    rows.append(_measure(
        "operators", len(found.operators), "",
        Text("operators at different places, forward and backward", "不同位置的算子，含前向与反向"),
        Text("operators", "算子"),
        _operator_table(worst, Text("Operators with the largest error", "误差最大的算子"))))  # fmt: skip
    if found.flips:
        rows.append(_measure(
            "flips", found.flips, "",
            Text("masks, indices and branches that came out otherwise; not blamed",
                 "掩码、下标与分支结果不同的个数；不视为错误"), Text("flips", "翻转")))  # fmt: skip
    rows += [_measure("note", 0, "", note, Text("note", "说明")) for note in found.notes]
    return rows


def _shown(value: float) -> float:
    """JSON has no infinity: a broken output counts as all of it, and the text beside it says so."""
    return value if math.isfinite(value) else 1.0


def _cell(error: float) -> float | str:
    return round(100 * error, 5) if math.isfinite(error) else "∞"


def _infinite(error: float) -> Text:
    if math.isfinite(error):
        return Text("", "")
    return Text("infinite, values are NaN or infinity; ", "无穷，出现 NaN 或无穷；")


def _measure(
    name: str, value: float, unit: str, how: Text, label: Text, *evidence: Evidence
) -> Measure:
    return Measure(name, float(value), unit, how, label, evidence=evidence, tool=TOOL)


def _plan_measure(plan: Plan) -> Measure:
    names = ", ".join(plan.keep) or "nothing"
    zh_names = "、".join(plan.keep) or "无"
    reached = Text(
        "reached" if plan.reached else "not reached", "已达到" if plan.reached else "未达到"
    )
    table = Table(
        Text("Plan", "方案"), (Text("keep in fp32", "保持 fp32"), Text("output error %", "输出误差 %")),
        ((Text("nothing", "无"), _cell(plan.error_before)), (Text(names, zh_names), _cell(plan.error_after))),
        Text(f"{plan.runs} runs", f"共运行 {plan.runs} 次"),
    )  # fmt: skip
    return _measure(
        "plan", len(plan.keep), "",
        Text(f"modules to keep in fp32: {names}; bound {percent(plan.bound)} {reached.en}",
             f"需保持 fp32 的模块：{zh_names}；目标 {percent(plan.bound)} {reached.zh}"),
        Text("mixed-precision plan", "混合精度方案"), table,
    )  # fmt: skip


def _depth_plot(found: PrecisionReport) -> tuple[Evidence, ...]:
    plots: list[Evidence] = []
    for phase, name in _PHASE.items():
        rows = [item for item in found.operators if item.place.phase == phase and item.total > 0]
        if len(rows) < 2:
            continue
        x = tuple(float(item.order) for item in rows)
        series = tuple(
            _curve(label, x, values, how)
            for label, values, how in (
                (Text("inherited", "继承"), [item.inherited for item in rows],
                 Text("what the errors of the inputs became", "输入误差传播的结果")),
                (Text("made here", "本地"), [item.total - min(item.inherited, item.total) for item in rows],
                 Text("what the operator added", "算子自身引入的误差")),
            )
        )  # fmt: skip
        title = Text(
            f"Error along the {name.en} pass, operator by operator",
            f"{name.zh}过程中各算子依次的误差",
        )
        plots.append(Plot(title, series, y_name="%", log_y=True))
    return tuple(plots)


def _curve(label: Text, x: tuple[float, ...], values: list[float], how: Text) -> Series:
    """Without the places where there is no error: a logarithmic axis has no zero."""
    kept = [(at, 100 * value) for at, value in zip(x, values, strict=True) if value > _LEAST]
    return Series(label, tuple(at for at, _ in kept), tuple(v for _, v in kept), "%", how)


def _module_tree(found: PrecisionReport, subject: str) -> tuple[Evidence, ...]:
    """Modules by the rounding error made inside them, coloured by the worst error that leaves them."""
    made: dict[str, float] = {}
    worst: dict[str, float] = {}
    for item in found.operators:
        name = item.place.module
        made[name] = made.get(name, 0.0) + item.local_units
        worst[name] = max(worst.get(name, 0.0), item.total)
    if sum(made.values()) <= 0:
        return ()
    root = _branch(subject, "", made, worst)
    how = Text(
        "width: sum over operators, u is one unit of rounding; colour: the largest error of an operator inside",
        "宽度：对算子求和，u 为一个舍入单位；颜色：其中算子的最大误差",
    )
    title = Text("Rounding error made inside each module", "各模块内部产生的舍入误差")
    return (Tree(title, root, "u", how),)


def _branch(label: str, path: str, made: dict[str, float], worst: dict[str, float]) -> Branch:
    prefix = f"{path}." if path else ""
    inside = {name for name in made if name.startswith(prefix) and name != path}
    children = sorted({name[len(prefix) :].split(".")[0] for name in inside if name[len(prefix) :]})
    branches = tuple(_branch(child, prefix + child, made, worst) for child in children)
    value = made.get(path, 0.0) + sum(branch.value for branch in branches)
    largest = max((worst[name] for name in (*inside, path) if name in worst), default=0.0)
    return Branch(label, value, branches, _band(largest))


def _band(error: float) -> str:
    return next((name for limit, name in _BANDS if error < limit), "≥ 100 %")


def _gradient_table(found: PrecisionReport) -> Table:
    rows = sorted(found.gradient_errors.items(), key=lambda item: -item[1])[:_WORST]
    return Table(
        Text("Gradients, the worst first", "梯度，误差最大者在前"),
        (Text("parameter", "参数"), Text("error % of all gradients", "占全部梯度的误差 %")),
        tuple((name, _cell(error)) for name, error in rows),
    )
