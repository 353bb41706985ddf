"""A run as a report: its steps, what they cost, what was said, what is missing."""

from __future__ import annotations

import difflib

from torchstone._version import __version__
from torchstone.core.answer import Answer, State, Tile
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Document, Evidence, Plot, Series, Span, Table, Timeline
from torchstone.core.quantity import human
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.trace.record import Record
from torchstone.trace.run import Run

RECORDED = Text("from the record", "来自记录")
_SHOWN = ("settings", "prompt", "reasoning", "result", "error_log", "profile")


def report_of(run: Run, step: int | None = None) -> Report:
    """All steps in a table, and the texts of one step or of all."""
    records = [item for item in run.records if step is None or item.step == step]
    counted = [item.call.input_tokens or 0 for item in records]
    answered = [item.call.output_tokens or 0 for item in records]
    seconds = [item.call.seconds or 0.0 for item in records]
    before: dict[str, str] = {}
    measures = [
        _measure("steps", float(len({(r.task, r.step) for r in records if r.step})), "", "steps",
                 "步数", (_table(records),)),
        _measure("input_tokens", float(sum(counted)), "token", "tokens asked", "输入 token"),
        _measure("output_tokens", float(sum(answered)), "token", "tokens answered", "输出 token",
                 _curve(records)),
        _measure("seconds", sum(seconds), "s", "time of the model", "模型用时"),
        *(_texts(run, item, before) for item in records),
    ]  # fmt: skip
    return Report(
        tool="trace",
        subject=str(run.folder),
        measures=tuple(measures),
        gaps=tuple(_gaps(run)),
        environment={"torchstone": __version__},
        answer=_answer(run, records),
    )


def _answer(run: Run, records: list[Record]) -> Answer:
    """How the run ended, and a time line of its steps."""
    exits = [item for item in records if item.role == "exit"]
    verdicts = [item for item in records if item.role == "verifier"]
    accepted = any(item.verdict.startswith("True") for item in verdicts)
    steps = len({(item.task, item.step) for item in records if item.step})
    tokens = sum((item.call.input_tokens or 0) + (item.call.output_tokens or 0) for item in records)
    seconds = sum(item.call.seconds or 0.0 for item in records)
    how = exits[-1].verdict if exits else ""
    words = Text("accepted", "已接受") if accepted else Text(how or "no end recorded", how or "没有结束记录")  # fmt: skip
    return Answer(
        headline=Text(
            f"{run.folder.name}: {words.en} after {steps} steps, {tokens:,} tokens",
            f"{run.folder.name}：{words.zh}，共 {steps} 步，{tokens:,} token",
        ),
        state="good" if accepted else "warning" if how or not exits else "plain",
        tiles=(
            Tile(Text("steps", "步数"), str(steps)),
            Tile(Text("verifications", "验证次数"), str(len(verdicts))),
            Tile(Text("tokens", "token"), f"{tokens:,}"),
            Tile(Text("time of the model", "模型用时"), human(seconds, "s")),
        ),
        pictures=(_timeline(records),),
        next=(f"torchstone trace replay {run.folder}",),
    )


def _timeline(records: list[Record]) -> Timeline:
    """Every step of the run; a step whose time was not recorded takes the least that is seen."""
    known = [item.call.seconds for item in records if item.call.seconds]
    least = min(known, default=1.0) / 4
    spans: list[Span] = []
    at = 0.0
    for item in records:
        if item.role in ("start", "exit"):
            continue
        length = item.call.seconds or least
        spans.append(Span(f"S{item.step:02d} {item.action}", at, length, _state(item),
                          _note(item), item.role, _title(item)))  # fmt: skip
        at += length
    return Timeline(Text("Steps", "步骤"), tuple(spans), "s")


def _state(item: Record) -> State:
    if item.role == "verifier":
        return "good" if item.verdict.startswith("True") else "bad"
    return "plain" if item.parsed else "warning"


def _note(item: Record) -> Text:
    tokens = (item.call.input_tokens, item.call.output_tokens)
    parts = [item.verdict] if item.verdict else []
    zh = list(parts)
    if any(value is not None for value in tokens):
        parts.append(f"{tokens[0] or 0:,} tokens in, {tokens[1] or 0:,} out")
        zh.append(f"输入 {tokens[0] or 0:,}，输出 {tokens[1] or 0:,} token")
    if item.call.seconds:
        parts.append(human(item.call.seconds, "s"))
        zh.append(human(item.call.seconds, "s"))
    if not item.parsed:
        parts.append("answer could not be read")
        zh.append("回答无法解析")
    return Text(", ".join(parts), "，".join(zh))


def _title(item: Record) -> str:
    return f"{item.task} S{item.step:02d} {item.action}"


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


def _texts(run: Run, record: Record, before: dict[str, str]) -> Measure:
    """The texts of a step; code is shown as it is and against the attempt before it."""
    label = f"S{record.step:02d} {record.action}"
    evidence: list[Evidence] = []
    for name in _SHOWN:
        text = run.text(record, name)
        if not text:
            continue
        title = _title(record) if not evidence else f"{_title(record)}: {name}"
        language = "python" if name == "result" else ""
        evidence.append(
            Document(title, text, language, f"{name}, {record.texts[name].file}", _state(record))
        )
        if name == "result":
            if before.get("result"):
                evidence.append(Document(f"{_title(record)}: diff", _diff(before["result"], text), "diff",
                                         Text("against the attempt before", "与上一次尝试对比")))  # fmt: skip
            before["result"] = text
    return Measure(
        f"step_{record.task}_{record.step}_{record.action}",
        float(sum(kept.size_bytes for kept in record.texts.values())),
        "B",
        RECORDED,
        Text(label, label),
        evidence=tuple(evidence),
        tool="trace",
    )


def _diff(old: str, new: str) -> str:
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", lineterm="")
    return "\n".join(rows)


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
