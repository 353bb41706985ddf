"""A traced graph, or a plan for it, becomes a Report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dataflow.answer import plan_answer
from torchstone.dataflow.function_totals import FunctionTotal, function_totals
from torchstone.dataflow.graph.dag import ExecutionDAG
from torchstone.dataflow.plan import MigrationPlan
from torchstone.dataflow.trace_answer import (
    TracedTime,
    TraceSubject,
    place_of,
    trace_answer,
    use_name,
)
from torchstone.dataflow.tracing.notes import Note
from torchstone.dataflow.tracing.time_use import TimeUse
from torchstone.dataflow.tracing.tracer import EnhancedTracer
from torchstone.dataflow.view.pictures import graph_picture

TOOL = "flow"
_ROWS = 40
WALL = Text(
    "own times of all calls and of the statements between them; they add up to the whole",
    "所有调用及其间语句的自身用时；各项之和等于总时间",
)
CLOCK = Text(
    "measured with the clock of the process, hooks left out", "由进程时钟实测，不含追踪钩子"
)


def report_on_trace(
    tracer: EnhancedTracer, folded: ExecutionDAG, subject: str, failure: str = "", saved: str = ""
) -> Report:
    """What a program did with its data, and where its time went."""
    dag = tracer.dag_builder.dag
    totals = function_totals(dag)
    gaps = [_gap(subject, note) for note in tracer.notes]
    if failure:
        gaps.append(
            Gap(
                subject,
                Message("program-raised", Text("the program raised {error}; the graph ends there", "程序抛出 {error}；图到此为止"), {"error": failure}),
                "fix the program, then trace it again",
                failed=True,
                tool=TOOL,
            )
        )  # fmt: skip
    traced = TracedTime(
        tracer.wall_seconds, tuple(tracer.time_uses), tuple(tracer.worker_time_uses)
    )
    return Report(
        TOOL,
        measures=(*_time_measures(traced), *_measures(dag, folded, totals)),
        gaps=tuple(gaps),
        subject=subject,
        answer=trace_answer(
            traced,
            totals,
            graph_picture(dag, folded),
            sum(1 for _ in folded.operators()),
            TraceSubject(subject, failure, saved),
        ),
    )


def _time_measures(traced: TracedTime) -> tuple[Measure, ...]:
    evidence = [
        _uses_table(Text("All time of the traced block", "追踪代码块的全部时间"), traced.uses)
    ]
    if traced.worker_uses:
        evidence.append(
            _uses_table(Text("Time of the worker processes", "工作进程的时间"), traced.worker_uses)
        )
    return (
        Measure("wall_seconds", traced.wall_seconds, "s", WALL, Text("time of the traced block", "追踪代码块用时"), evidence=tuple(evidence), tool=TOOL),
    )  # fmt: skip


def _uses_table(title: Text, uses: Sequence[TimeUse]) -> Table:
    whole = sum(item.seconds for item in uses) or 1.0
    rows = tuple(
        (use_name(item), place_of(item), item.calls or "", item.seconds, f"{item.seconds / whole:.1%}")
        for item in uses[:_ROWS]
    )  # fmt: skip
    columns = (
        Text("what", "内容"), Text("where", "位置"), Text("calls", "次数"), Text("own time", "自身用时"), Text("share", "占比"),
    )  # fmt: skip
    return Table(title, columns, rows, WALL, ("", "", "", "s", ""))


def _measures(
    dag: ExecutionDAG, folded: ExecutionDAG, totals: Sequence[FunctionTotal]
) -> tuple[Measure, ...]:
    seconds = sum(item.seconds for item in totals)
    return (
        Measure("operator_seconds", seconds, "s", CLOCK, Text("time in operators", "算子用时"),
                evidence=(_slowest(totals),), tool=TOOL),
        Measure("operators", sum(1 for _ in dag.operators()), "", Text("calls and expressions on data", "对数据的调用与运算"),
                Text("operators", "算子"), tool=TOOL),
        Measure("operator_classes", sum(1 for _ in folded.operators()), "", Text("after folding equal structure", "折叠相同结构之后"),
                Text("classes of operators", "算子类别"), tool=TOOL),
        Measure("bytes_made", sum(item.bytes_out for item in totals), "B", Text("sum over all results", "所有结果之和"),
                Text("data made", "产生的数据"), tool=TOOL),
    )  # fmt: skip


def _slowest(totals: Sequence[FunctionTotal]) -> Table:
    whole = sum(item.seconds for item in totals) or 1.0
    rows = tuple(
        (item.name, item.place, item.calls, item.seconds, f"{item.seconds / whole:.1%}", item.bytes_in, item.bytes_out)
        for item in totals[:_ROWS]
    )  # fmt: skip
    columns = (
        Text("operator", "算子"), Text("where", "位置"), Text("calls", "次数"), Text("time", "时间"),
        Text("share", "占比"), Text("read", "读取"), Text("made", "产生"),
    )  # fmt: skip
    return Table(
        Text("Operators by time", "算子用时排行"),
        columns,
        rows,
        CLOCK,
        ("", "", "", "s", "", "B", "B"),
    )


def _gap(subject: str, note: Note) -> Gap:
    return Gap(subject, Message("not-traced", Text(note.en, note.zh)), note.remedy, tool=TOOL)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan, and what stands beside it."""

    plan: MigrationPlan
    by_parts: MigrationPlan | None
    """The same with each part of the graph on a device of its own."""
    subject: str
    saved: str = ""
    is_partial: bool = False


def report_on_plan(made: PlanReport, dag: ExecutionDAG, folded: ExecutionDAG) -> Report:
    """What a plan moves, what it gains, and why the rest stays."""
    plan, subject = made.plan, made.subject
    devices = {int(node): device for node, device in plan.node_device_map.items()}
    table = operators_table(plan)
    by_name = {item.name: item for item in plan.estimates}
    how = Text("time of the traced run by this placement", "该放置方案下所追踪运行的时间")
    measures = [
        Measure(f"{name}_seconds", estimate.seconds, "s", how, label, tool=TOOL,
                evidence=(table,) if name == "plan" else ())
        for name, label in (
            ("plan", Text("with the plan", "按计划")), ("all_cpu", Text("all on the CPU", "全部在 CPU")),
            ("all_device", Text("everything that can move", "能迁移的全部迁移")),
        )
        if (estimate := by_name.get(name)) is not None
    ]  # fmt: skip
    if plan.bound_seconds is not None:
        measures.append(
            Measure("bound_seconds", plan.bound_seconds, "s", Text("no placement is faster", "任何方案都不会更快"),
                    Text("lower bound", "下界"), tool=TOOL)
        )  # fmt: skip
    if made.by_parts is not None:
        parts = made.by_parts.estimates[0]
        label = Text("with each part on the device", "各分区放在设备上")
        measures.append(Measure("parts_seconds", parts.seconds, "s", how, label, tool=TOOL))
    gaps = (_partial(subject),) if made.is_partial else ()
    return Report(
        TOOL, measures=tuple(measures), gaps=gaps, subject=subject, answer=plan_answer(plan, subject, made.saved, graph_picture(dag, folded, devices)),
    )  # fmt: skip


def _partial(subject: str) -> Gap:
    said = Text(
        "the traced program was ended before its trace was whole: the plan is for what was recorded until then",
        "被追踪的程序在追踪完成前结束：计划只针对此前记录的部分",
    )
    return Gap(subject, Message("partial-trace", said), "torchstone flow trace SCRIPT", tool=TOOL)


def operators_table(plan: MigrationPlan) -> Table:
    """Every operator with its device and the reason."""
    ordered = sorted(plan.operators, key=lambda op: -op.cpu_seconds)
    rows = tuple(
        (op.context, op.device, op.calls, op.cpu_seconds, op.device_seconds, op.reason)
        for op in ordered[:_ROWS]
    )
    columns = (
        Text("operator", "算子"), Text("device", "设备"), Text("calls", "次数"), Text("on the CPU", "CPU 用时"),
        Text("on the device", "设备用时"), Text("why", "原因"),
    )  # fmt: skip
    return Table(
        Text("Operators and where they go", "算子及其去向"),
        columns,
        rows,
        "",
        ("", "", "", "s", "s", ""),
    )
