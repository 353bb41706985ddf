"""A run as a report: its steps, what they cost, what was said, what is missing."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Sequence
from dataclasses import replace

from torchstone._version import __version__
from torchstone.core.answer import Answer, Tile
from torchstone.core.errors import InputError
from torchstone.core.evidence import State
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import (
    Check,
    Document,
    Evidence,
    Plot,
    Series,
    Span,
    Strip,
    Table,
    Timeline,
)
from torchstone.core.quantity import human
from torchstone.core.report import Report
from torchstone.core.text import Message, Text, shortened
from torchstone.trace.record import Record
from torchstone.trace.run import Run

RECORDED = Text("from the record", "来自记录")
MOST_SHOWN = 1000
"""Records that are shown one by one, the last ones: nobody reads more, and all of them are counted."""
_MOST_DRAWN = 40
"""Steps on the first screen: what a terminal has room for; the table has all that are shown."""
_MOST_SAID = 72
"""Characters of what a verification found: one line of a terminal beside the name of the step."""
_SHOWN = ("settings", "prompt", "reasoning", "result", "error_log", "profile")


def report_of(run: Run, step: int | None = None) -> Report:
    """All steps in a table, and the texts of one step or of all."""
    records = [item for item in run.records if step is None or item.step == step]
    if step is not None and not records:
        raise no_step(f"{run.folder}: --step", step, max((i.step for i in run.records), default=0))
    counted = total([item.call.input_tokens for item in records])
    answered = total([item.call.output_tokens for item in records])
    seconds = total([item.call.seconds for item in records if item.role != "verifier"])
    recorded = (
        ("input_tokens", counted, "token", "tokens asked", "输入 token"),
        ("output_tokens", answered, "token", "tokens answered", "输出 token"),
        ("seconds", seconds, "s", "time of the model", "模型用时"),
    )
    before: dict[str, str] = {}
    shown = records[-MOST_SHOWN:]
    measures = [
        _measure("steps", float(_steps(records)), "", "steps", "步数", (_table(shown),)),
        *(
            _measure(name, float(value), unit, en, zh,
                     _curve(shown) if name == "output_tokens" else ())
            for name, value, unit, en, zh in recorded
            if value is not None
        ),
        *(_texts(run, item, before) for item in shown),
    ]  # fmt: skip
    return Report(
        tool="trace",
        subject=str(run.folder),
        measures=tuple(measures),
        gaps=tuple(_gaps(run, shown, len(records) - len(shown))),
        environment={"torchstone": __version__},
        answer=_answer(run, records, shown, step),
    )


def no_step(where: str, given: int, last: int) -> InputError:
    """A step that a run does not have."""
    return InputError(
        where,
        str(given),
        Text(f"a step from 1 to {last}", f"1 到 {last} 之间的步骤"),
        Text("`torchstone trace show RUN` lists the steps", "`torchstone trace show RUN` 列出所有步骤"),
    )  # fmt: skip


def total(values: Sequence[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _steps(records: Sequence[Record]) -> int:
    """Steps of work: the end of a run is none."""
    return len({(item.task, item.step) for item in records if item.step and item.role != "exit"})


_ENDED = {
    "accepted": Text("accepted", "已接受"),
    "steps": Text("not accepted, no step was left", "未接受，步数已用完"),
    "budget": Text("stopped, the budget was spent", "已停止，预算已用完"),
    "model": Text("stopped, the model did not answer", "已停止，模型没有回答"),
    "unverified": Text("written, but not verified", "已写出，但未验证"),
    "verifier": Text("no verdict, the verifier itself failed", "没有结论，验证器自身失败"),
    "problem": Text("stopped, the problem cannot be used", "已停止，问题不可用"),
    "": Text("no end recorded", "没有结束记录"),
}
"""By the verdict of the last record: how a run ended, in words."""


def _answer(run: Run, records: list[Record], shown: list[Record], step: int | None) -> Answer:
    """How the run ended, and a time line of its steps, or of the one that was asked for."""
    exits = [item for item in run.records if item.role == "exit"]
    accepted = any(item.verdict.startswith("True") for item in run.records if item.role == "verifier")  # fmt: skip
    how = "accepted" if accepted else exits[-1].verdict if exits else ""
    words = _ENDED.get(how, Text(how, how))
    tokens = total([value for item in records
                    for value in (item.call.input_tokens, item.call.output_tokens)])  # fmt: skip
    seconds = total([item.call.seconds for item in records if item.role != "verifier"])
    counted = "–" if tokens is None else f"{tokens:,}"
    name, steps = run.folder.name, _steps(run.records)
    told = Text("", "") if tokens is None else Text(f", {counted} tokens", f"，{counted} token")
    if step is None:
        after = "1 step" if steps == 1 else f"{steps} steps"
        headline = Text(f"{name}: {words.en} after {after}{told.en}",
                        f"{name}：{words.zh}，共 {steps} 步{told.zh}")  # fmt: skip
    else:
        headline = Text(f"{name}, step {step} of {steps}{told.en}; the run: {words.en}",
                        f"{name}，第 {step} 步（共 {steps} 步）{told.zh}；整个运行：{words.zh}")  # fmt: skip
    verified = sum(item.role == "verifier" for item in records)
    return Answer(
        headline=headline,
        state="good" if accepted else "warning" if how or not exits else "plain",
        tiles=(
            Tile(Text("steps", "步数"), str(_steps(records))),
            Tile(Text("verifications", "验证次数"), str(verified)),
            Tile(Text("tokens", "token"), counted),
            Tile(Text("time of the model", "模型用时"),
                 "–" if seconds is None else human(seconds, "s")),
        ),
        pictures=(_drawn(run, shown),),
        next=_next(run),
    )  # fmt: skip


def _next(run: Run) -> tuple[str, ...]:
    """The command that does the last task again, where it can be done again."""
    from torchstone.trace.replay import settings_of

    for task in reversed(run.tasks):
        mine = replace(run, records=tuple(item for item in run.records if item.task == task))
        with contextlib.suppress(InputError):
            if settings_of(mine).get("tool") == "kernel":
                chosen = f" --task {task}" if len(run.tasks) > 1 else ""
                return (f"torchstone trace replay {run.folder}{chosen}",)
    return ()


def _worked(records: list[Record]) -> list[Record]:
    return [item for item in records if item.role not in ("start", "exit")]


def _drawn(run: Run, records: list[Record]) -> Timeline | Strip:
    worked = _worked(records)
    title = Text("Steps", "步骤")
    if len(worked) > _MOST_DRAWN:
        title = Text(f"The last {_MOST_DRAWN} steps", f"最后 {_MOST_DRAWN} 步")
        worked = worked[-_MOST_DRAWN:]
    timed = any(item.call.seconds for item in worked)
    notes = [_note(item, _first_fault(run, item)) for item in worked]
    return _timeline(title, worked, notes) if timed else _strip(title, worked, notes)


def _first_fault(run: Run, item: Record) -> str:
    """What a verification found first, in its own words."""
    if item.role != "verifier" or _state(item) == "good":
        return ""
    said = (run.text(item, "error_log") or "").strip().partition("\n")[0]
    return shortened(said, _MOST_SAID)


def _timeline(title: Text, records: list[Record], notes: list[Text]) -> Timeline:
    """Every step of the run; one whose time was not recorded has no length."""
    spans: list[Span] = []
    at = 0.0
    for item, note in zip(records, notes, strict=True):
        length = item.call.seconds or 0.0
        spans.append(Span(_name(item), at, length, _state(item), note, item.role, _title(item)))
        at += length
    return Timeline(title, tuple(spans), "s")


def _strip(title: Text, records: list[Record], notes: list[Text]) -> Strip:
    """The steps in their order, where no time is known."""
    checks = (
        Check(_name(item), _state(item), note) for item, note in zip(records, notes, strict=True)
    )
    return Strip(title, tuple(checks))


def _name(item: Record) -> str:
    return f"S{item.step:02d} {item.action}"


def _state(item: Record) -> State:
    if item.role == "verifier":
        return "good" if item.verdict.startswith("True") else "bad"
    return "plain" if item.parsed else "warning"


def _note(item: Record, fault: str) -> Text:
    tokens = (item.call.input_tokens, item.call.output_tokens)
    parts = [fault or item.verdict] if fault or item.verdict else []
    zh = list(parts)
    if any(value is not None for value in tokens):
        asked, answered = ("–" if value is None else f"{value:,}" for value in tokens)
        parts.append(f"{asked} tokens in, {answered} out")
        zh.append(f"输入 {asked}，输出 {answered} token")
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
        if name == "result" and record.role == "agent":
            kind = record.action.rpartition("_")[2]  # a design is compared with a design
            if before.get(kind):
                evidence.append(Document(f"{_title(record)}: diff", _diff(before[kind], text), "diff",
                                         Text("against the attempt before", "与上一次尝试对比")))  # fmt: skip
            before[kind] = text
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


def _gaps(run: Run, shown: Sequence[Record], left_out: int) -> list[Gap]:
    gaps: list[Gap] = []
    if left_out:
        reason = Message("trace-counted", _REASONS["counted"], {"count": f"{left_out:,}"})
        gaps.append(Gap("trace.jsonl", reason, "torchstone trace show RUN --step N", tool="trace"))
    if run.damaged:
        gaps.append(_gap("trace.jsonl", "damaged", {"lines": ", ".join(map(str, run.damaged))}))
    if run.torn:
        gaps.append(_gap("trace.jsonl", "torn", {"bytes": str(run.torn)}))
    gaps += [_gap(name, "missing", {}) for name in run.missing(shown)]
    return gaps


_REASONS = {
    "damaged": Text("damaged, by their checksum: line {lines}", "校验失败的行：{lines}"),
    "torn": Text("a crash left {bytes} bytes at the end", "崩溃在末尾留下了 {bytes} 字节"),
    "counted": Text(
        "{count} earlier records are counted and not shown, and their files were not looked at",
        "更早的 {count} 条记录只计数，未显示，其文件也未检查",
    ),
    "missing": Text("the file is gone or was changed", "文件缺失或已被修改"),
}


def _gap(subject: str, kind: str, args: dict[str, str]) -> Gap:
    close = "restore the file from a backup"
    reason = Message(f"trace-{kind}", _REASONS[kind], args)
    return Gap(subject, reason, close, tool="trace", close_zh="请从备份恢复该文件")
