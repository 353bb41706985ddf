"""Calls that torch refuses and exceptions of the program, with all that explains them."""

from __future__ import annotations

import linecache
import re
from dataclasses import replace

from torchstone.core.finding import Confidence, Finding, Severity
from torchstone.core.pictures import Evidence, Table
from torchstone.core.text import Message, Text, Words
from torchstone.dryrun import rules
from torchstone.dryrun.record import Assumption, Operand, OperatorError, Record, TriedFix
from torchstone.dryrun.reporting.findings import make_finding, snippet_at
from torchstone.dryrun.rules import Rule
from torchstone.dryrun.shapes.source_edits import fix_of
from torchstone.dryrun.shapes.words import explain, shape_text
from torchstone.observe.compat.messages import is_about_devices


def refused_call(error: OperatorError, record: Record) -> Finding:
    """A call that torch refuses."""
    rule = rule_for(error)
    if rule is rules.IN_PLACE:
        return overwritten(error)
    shapes = ", ".join(_operand_text(item, rule) for item in error.operands[:_SHOWN])
    what = (
        Text("{op} refuses {shapes}", "{op} 拒绝 {shapes}")
        if shapes
        else Text("{op} fails", "{op} 失败")
    )
    found = make_finding(
        rule,
        what,
        {"op": error.op, "shapes": shapes},
        explain(error),
        remedy_of(error.fixes, rule),
        error.place,
        evidence_of(error),
        module=error.module,
        op=error.op,
        confidence=Confidence.CERTAIN if not record.assumptions else Confidence.LIKELY,
    )
    return replace(found, fix=fix_of(error))


def assumed_size(record: Record) -> Assumption | None:
    """The assumption that an operand of a refused call has its size from, if it has one."""
    if record.error is None:
        return None
    steps = {
        (step.place, step.op.rpartition(".")[2])
        for operand in record.error.operands
        for step in operand.history
    }
    return next(
        (item for item in record.assumptions if (item.place, str(item.question)) in steps), None
    )


_SHOWN = 4
"""Operands in a headline; the table below it has all."""


def _operand_text(item: Operand, rule: Rule) -> str:
    """A tensor with its shape, and with its device where that is what differs."""
    device = f" on {item.device}" if rule is rules.DEVICES else ""
    return f"{item.name} {shape_text(item.shape)}{device}"


def rule_for(error: OperatorError) -> Rule:
    if "modified by an inplace operation" in error.message:
        return rules.IN_PLACE
    if is_about_devices(error.message):
        return rules.DEVICES
    if error.batch.startswith("remainder"):
        return rules.REMAINDER
    return rules.REFUSED


def remedy_of(fixes: tuple[TriedFix, ...], rule: Rule) -> Message:
    """The fix that worked; for a remainder batch also the way to leave it out."""
    working = [item for item in fixes if item.works]
    drop = rule is rules.REMAINDER
    en = "; or leave the last batch out: DataLoader(..., drop_last=True)" if drop else ""
    zh = "；或丢弃最后一批：DataLoader(..., drop_last=True)" if drop else ""
    if not working:
        if not drop:
            return Message("none")
        return Message("drop-last", Text(en.removeprefix("; or "), zh.removeprefix("；或")))
    best = working[0]
    return Message(
        "tried-fix",
        Text("{fix} ({outcome})" + en, "{fix_zh}（{outcome_zh}）" + zh),
        {
            "fix": best.what_en,
            "fix_zh": best.what_zh,
            "outcome": best.outcome_en,
            "outcome_zh": best.outcome_zh,
        },
    )


def overwritten(error: OperatorError) -> Finding:
    """A tensor that the backward needs was written in place: the finding stands at the write."""
    where = error.written[0] if error.written else error.place
    evidence = [item for place in (where, error.place) if (item := snippet_at(place))]
    table = Table(
        Text("autograd's complaint", "autograd 的说明"),
        (Text("what", "内容"), Text("where", "位置")),
        (
            (Text("written in place", "就地写入"), ", ".join(map(str, error.written)) or "–"),
            (Text("backward", "反向传播"), str(error.place)),
        ),
        error.message.split(". Hint")[0],
    )
    return make_finding(
        rules.IN_PLACE,
        Text(
            "this in-place write destroys a value that the backward at {place} needs",
            "此处的就地写入破坏了 {place} 处反向传播所需的值",
        ),
        {"place": str(error.place)},
        rules.IN_PLACE.why,
        Message(
            "out-of-place",
            Text("write it out of place: `b = b + 1` instead of `b += 1`",
                 "改为非就地写法：用 `b = b + 1` 代替 `b += 1`"),
        ),
        where,
        (*evidence, table),
        module=error.module,
        op=error.op,
    )  # fmt: skip


def evidence_of(error: OperatorError) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    if snippet := snippet_at(error.place):
        found.append(snippet)
    if error.inside.line and (inner := snippet_at(error.inside)):
        found.append(inner)
    found.append(inputs_table(error))
    found += history_tables(error)
    if error.fixes:
        found.append(fixes_table(error.fixes))
    return tuple(found)


def inputs_table(error: OperatorError) -> Table:
    rows: list[tuple[Words, ...]] = []
    for item in error.operands:
        made = item.history[0] if item.history and not item.is_parameter else None
        origin = Text("parameter", "参数") if item.is_parameter else Text("", "")
        if made:
            origin = Text(f"{made.op} at {made.place}", f"{made.op}（{made.place}）")
        rows.append((item.name, shape_text(item.shape), item.dtype, item.device, origin))
    rows += ((name, value, "", "", "") for name, value in error.arguments)
    module, zh = "", ""
    if error.module_text:
        module = f" in {error.module or 'model'} = {error.module_text}"
        zh = f"（{error.module or '模型'} = {error.module_text}）"
    return Table(
        Text(f"what {error.op} was given{module}", f"{error.op} 的输入{zh}"),
        (
            Text("argument", "参数"),
            Text("shape or value", "形状或值"),
            Text("dtype", "数值格式"),
            Text("device", "设备"),
            Text("made by", "来源"),
        ),
        tuple(rows),
        _own_message(error),
    )


def _own_message(error: OperatorError) -> Text | str:
    """What torch says; nothing of a call that it accepts."""
    if not error.message:
        return ""
    first = error.message.splitlines()[0]
    return Text(f"torch's own message: {first}", f"torch 的原始信息：{first}")


def history_tables(error: OperatorError) -> list[Evidence]:
    """Line by line back to the input, for the operands that have a history."""
    tables: list[Evidence] = []
    for item in error.operands[:3]:
        if len(item.history) < 2 or item.is_parameter:
            continue
        rows = tuple(
            (str(step.place), step.op, shape_text(step.shape), step.dtype) for step in item.history
        )
        tables.append(
            Table(
                Text(
                    f"how {item.name} was made, the latest first", f"{item.name} 的由来，最近的在前"
                ),
                (
                    Text("line", "行"),
                    Text("call", "调用"),
                    Text("shape", "形状"),
                    Text("dtype", "数值格式"),
                ),
                rows,
            )
        )
    return tables


def fixes_table(fixes: tuple[TriedFix, ...]) -> Table:
    return Table(
        Text("fixes that were tried by running the program with them", "已通过实际运行尝试的修复"),
        (Text("change", "改动"), Text("what happened", "结果")),
        tuple(
            (Text(item.what_en, item.what_zh), Text(item.outcome_en, item.outcome_zh))
            for item in fixes
        ),
    )


def raised(record: Record) -> Finding:
    """An exception of the program itself."""
    stop = record.stop
    assert stop is not None
    guessed = bool(record.assumptions)
    why = rules.RAISED.why
    if guessed:
        why = Text(
            "the program stops here; values that were assumed may have led to it (see the assumptions)",
            "程序会在此停止；可能由假设的值引起（见假设列表）",
        )
    places = (stop.place, stop.inside)
    evidence: list[Evidence] = [item for place in places if (item := snippet_at(place))]
    rows = tuple((str(place), place.scope) for place in stop.stack)
    evidence.append(
        Table(Text("the way there", "调用路径"), (Text("line", "行"), Text("in", "所在")), rows)
    )
    found = make_finding(
        rules.RAISED,
        Text("{kind}: {message}", "{kind}：{message}"),
        {"kind": stop.exception, "message": stop.message.splitlines()[0] if stop.message else ""},
        why,
        Message("none"),
        stop.place,
        tuple(evidence),
        module=stop.module,
        confidence=Confidence.POSSIBLE if guessed else Confidence.CERTAIN,
    )
    decided = guessed and _DECIDES.match(linecache.getline(stop.place.path, stop.place.line))
    return replace(found, severity=Severity.MEDIUM) if decided else found


_DECIDES = re.compile(r"\s*(raise|assert)\b|.*:\s*raise\b")
"""A line that raises by itself: whether it is reached may depend on values that were assumed."""
