"""A run as a report: its steps, what they cost, what was said, what is missing."""

from __future__ import annotations

from torchstone._version import __version__
from torchstone.core.evidence import Snippet
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Plot, Series, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.trace.record import Record
from torchstone.trace.run import Run

RECORDED = Text("as recorded", "来自记录")
_MOST_LINES = 60
_SHOWN = ("settings", "prompt", "reasoning", "result", "error_log", "profile")


def report_of(run: Run, step: int | None = None) -> Report:
    """All steps in a table, and the texts of one step or of all."""
    records = [item for item in run.records if step is None or item.step == step]
    counted = [item.call.input_tokens or 0 for item in records]
    answered = [item.call.output_tokens or 0 for item in records]
    seconds = [item.call.seconds or 0.0 for item in records]
    measures = [
        _measure("steps", float(len({(r.task, r.step) for r in records if r.step})), "", "steps",
                 "步数", (_table(records),)),
        _measure("input_tokens", float(sum(counted)), "token", "tokens asked", "输入 token"),
        _measure("output_tokens", float(sum(answered)), "token", "tokens answered", "输出 token",
                 _curve(records)),
        _measure("seconds", sum(seconds), "s", "time of the model", "模型用时"),
        *(_texts(run, item) for item in records),
    ]  # fmt: skip
    return Report(
        tool="trace",
        subject=str(run.folder),
        measures=tuple(measures),
        gaps=tuple(_gaps(run)),
        environment={"torchstone": __version__},
    )


def _measure(
    name: str, value: float, unit: str, en: str, zh: str, evidence: tuple[Evidence, ...] = ()
) -> Measure:
    return Measure(name, value, unit, RECORDED, Text(en, zh), evidence=evidence, tool="trace")


def _table(records: list[Record]) -> Table:
    columns = (
        Text("task", "任务"), Text("step", "步骤"), Text("action", "操作"), Text("model", "模型"),
        Text("tokens in", "输入"), Text("tokens out", "输出"), Text("time", "时间"),
        Text("verdict", "结论"), Text("read", "可解析"),
    )  # fmt: skip
    return Table(
        Text("Steps", "步骤"),
        columns,
        tuple(
            (
                item.task, item.step, item.action, item.call.model or None, item.call.input_tokens,
                item.call.output_tokens, item.call.seconds, item.verdict or None,
                Text("yes", "是") if item.parsed else Text("NO", "否"),
            )
            for item in records
        ),
        RECORDED,
        ("", "", "", "", "", "", "s", "", ""),
    )  # fmt: skip


def _curve(records: list[Record]) -> tuple[Evidence, ...]:
    called = [item for item in records if item.call.output_tokens is not None]
    if len(called) < 2:
        return ()
    x = tuple(float(item.step) for item in called)
    return (
        Plot(
            Text("Tokens by step", "各步 token"),
            tuple(
                Series(name, x, tuple(float(value or 0) for value in values), "token", RECORDED)
                for name, values in (
                    (Text("asked", "输入"), [item.call.input_tokens for item in called]),
                    (Text("answered", "输出"), [item.call.output_tokens for item in called]),
                )
            ),
            "step",
            "token",
        ),
    )


def _texts(run: Run, record: Record) -> Measure:
    label = f"S{record.step:02d} {record.action}"
    evidence: list[Evidence] = []
    for name in _SHOWN:
        text = run.text(record, name)
        if text:
            lines = text.splitlines()
            more = f"\n… {len(lines) - _MOST_LINES} more lines" if len(lines) > _MOST_LINES else ""
            shown = "\n".join(lines[:_MOST_LINES]) + more
            evidence.append(Snippet(record.texts[name].file, 1, shown, caption=name))
    return Measure(
        f"step_{record.task}_{record.step}_{record.action}",
        float(sum(kept.size_bytes for kept in record.texts.values())),
        "B",
        RECORDED,
        Text(label, label),
        evidence=tuple(evidence),
        tool="trace",
    )


def _gaps(run: Run) -> list[Gap]:
    gaps: list[Gap] = []
    if run.damaged:
        gaps.append(_gap("trace.jsonl", "damaged", {"lines": ", ".join(map(str, run.damaged))}))
    if run.torn:
        gaps.append(_gap("trace.jsonl", "torn", {"bytes": str(run.torn)}))
    gaps += [_gap(name, "missing", {}) for name in run.missing()]
    return gaps


_REASONS = {
    "damaged": Text("lines {lines} fail their checksum", "第 {lines} 行校验失败"),
    "torn": Text("a crash left {bytes} bytes at the end", "崩溃在末尾留下了 {bytes} 字节"),
    "missing": Text("the file is gone or was changed", "文件缺失或已被修改"),
}


def _gap(subject: str, kind: str, args: dict[str, str]) -> Gap:
    close = "restore the file from a backup"
    return Gap(subject, Message(f"trace-{kind}", _REASONS[kind], args), close, tool="trace")
