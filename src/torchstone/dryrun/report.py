"""Records of runs become a Report: first what breaks, then what was assumed and how far it came."""

from __future__ import annotations

from pathlib import Path

from torchstone.core.evidence import Command, Snippet
from torchstone.core.finding import Confidence, Finding, Location, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.record import OperatorError, Place, Record, TriedFix
from torchstone.dryrun.rules import Rule
from torchstone.dryrun.script.launch import Outcome
from torchstone.dryrun.shapes.words import explain, shape_text

TOOL = "dryrun"
_AROUND = 2
"""Lines of source shown before and after the one that matters."""


def report_on_script(subject: str, outcome: Outcome) -> Report:
    """The report of a script's dry run."""
    findings: list[Finding] = []
    gaps: list[Gap] = []
    for record in outcome.records:
        findings += findings_of(record)
        gaps += gaps_of(record, outcome)
    if not outcome.records:
        gaps.append(nothing_left(subject, outcome))
    return Report(
        TOOL,
        findings=tuple(_once(findings)),
        measures=measures_of(outcome.records),
        gaps=tuple(gaps),
        rules={rule.id: rule.info() for rule in rules.SINGLE_PROCESS},
        subject=subject,
    )


def _once(findings: list[Finding]) -> list[Finding]:
    """Two paths may break at one line: it is one finding."""
    return list({(item.rule, item.fingerprint, item.line): item for item in findings}.values())


def findings_of(record: Record) -> list[Finding]:
    if record.error is not None:
        return [refused_call(record.error, record)]
    if record.stop is not None and record.stop.cause == "program":
        return [raised(record)]
    return []


def refused_call(error: OperatorError, record: Record) -> Finding:
    """A call that torch refuses."""
    rule = rule_for(error)
    shapes = ", ".join(f"{item.name} {shape_text(item.shape)}" for item in error.operands[:4])
    what = (
        Text("{op} refuses {shapes}", "{op} 拒绝 {shapes}")
        if shapes
        else Text("{op} fails", "{op} 失败")
    )
    return make_finding(
        rule,
        what,
        {"op": error.op, "shapes": shapes},
        explain(error),
        remedy_of(error.fixes),
        error.place,
        evidence_of(error),
        module=error.module,
        op=error.op,
        confidence=Confidence.CERTAIN if not record.assumptions else Confidence.LIKELY,
    )


def rule_for(error: OperatorError) -> Rule:
    if "modified by an inplace operation" in error.message:
        return rules.IN_PLACE
    if "same device" in error.message:
        return rules.DEVICES
    if error.batch.startswith("remainder"):
        return rules.REMAINDER
    return rules.REFUSED


def remedy_of(fixes: tuple[TriedFix, ...]) -> Message:
    working = [item for item in fixes if item.works]
    if not working:
        return Message("none")
    best = working[0]
    return Message(
        "tried-fix",
        Text("{fix} ({outcome})", "{fix_zh}（{outcome_zh}）"),
        {
            "fix": best.what_en,
            "fix_zh": best.what_zh,
            "outcome": best.outcome_en,
            "outcome_zh": best.outcome_zh,
        },
    )


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
    rows: list[tuple[str, ...]] = []
    for item in error.operands:
        made = item.history[0] if item.history else None
        origin = f"{made.op} at {made.place}" if made else "parameter" if item.is_parameter else ""
        rows.append((item.name, shape_text(item.shape), item.dtype, item.device, origin))
    rows += ((name, value, "", "", "") for name, value in error.arguments)
    module = f" in {error.module or 'model'} = {error.module_text}" if error.module_text else ""
    return Table(
        Text(f"what {error.op} was given{module}", f"{error.op} 的输入{module}"),
        (
            Text("argument", "参数"),
            Text("shape or value", "形状或值"),
            Text("dtype", "数值格式"),
            Text("device", "设备"),
            Text("made by", "来源"),
        ),
        tuple(rows),
        Text(
            f"torch's own message: {error.message.splitlines()[0] if error.message else ''}",
            f"torch 的原始信息：{error.message.splitlines()[0] if error.message else ''}",
        ),
    )


def history_tables(error: OperatorError) -> list[Evidence]:
    """Line by line back to the input, for the operands that have a history."""
    tables: list[Evidence] = []
    for item in error.operands[:3]:
        if len(item.history) < 2:
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
            "程序会在此停止；可能由假定的值引起（见假定列表）",
        )
    evidence: list[Evidence] = []
    for place in (stop.place, stop.inside):
        if place.line and (snippet := snippet_at(place)):
            evidence.append(snippet)
    rows = tuple((str(place), place.scope) for place in stop.stack)
    evidence.append(
        Table(Text("the way there", "调用路径"), (Text("line", "行"), Text("in", "所在")), rows)
    )
    return make_finding(
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


def make_finding(
    rule: Rule,
    what: Text,
    args: dict[str, str],
    why: Text,
    remedy: Message,
    place: Place,
    evidence: tuple[Evidence, ...],
    module: str = "",
    op: str = "",
    confidence: Confidence = Confidence.CERTAIN,
) -> Finding:
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=confidence,
        what=Message(rule.name, what, args),
        why=Message(f"{rule.name}-why", why),
        remedy=remedy,
        location=Location(place.path, place.line, 1, scope=place.scope, module=module, op=op),
        evidence=evidence,
        fingerprint=fingerprint(rule.id, place.scope, source_line(place)),
        tool=TOOL,
    )


def source_line(place: Place) -> str:
    try:
        return Path(place.path).read_text("utf-8", "replace").splitlines()[place.line - 1]
    except (OSError, IndexError):
        return ""


def snippet_at(place: Place, caption: Text | str = "") -> Snippet | None:
    """The line with its neighbours, when the file can be read."""
    try:
        lines = Path(place.path).read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    if not 0 < place.line <= len(lines):
        return None
    first = max(1, place.line - _AROUND)
    shown = lines[first - 1 : place.line + _AROUND]
    line = lines[place.line - 1]
    start = len(line) - len(line.lstrip())
    return Snippet(
        place.path, first, "\n".join(shown), place.line, start + 1, len(line) + 1, caption
    )


def gaps_of(record: Record, outcome: Outcome) -> list[Gap]:
    stop = record.stop
    if stop is None or stop.cause == "program":
        return []
    return [
        Gap(
            stop.place.path or outcome.output[:0] or "script",
            Message(
                "stopped",
                Text("{kind}: {message}", "{kind}：{message}"),
                {
                    "kind": stop.exception,
                    "message": stop.message.splitlines()[0] if stop.message else "",
                },
            ),
            "see the line",
            Location(stop.place.path, stop.place.line),
            failed=True,
            tool=TOOL,
        )
    ]


def nothing_left(subject: str, outcome: Outcome) -> Gap:
    tail = outcome.output.strip().splitlines()[-1:] or [""]
    return Gap(
        subject,
        Message(
            "died",
            Text(
                "the process ended with code {code} before it could report; it printed last: {tail}",
                "进程以代码 {code} 结束，未能给出报告；最后输出：{tail}",
            ),
            {"code": str(outcome.exit_code), "tail": tail[0][:200]},
        ),
        "run the script itself to see more",
        failed=True,
        tool=TOOL,
    )


def measures_of(records: tuple[Record, ...]) -> tuple[Measure, ...]:
    if not records:
        return ()
    main = next((item for item in records if item.path == 0), records[-1])
    return (_progress(main), *assumption_measures(records))


_ENDINGS = {
    "end": Text("ran to its end", "运行到结束"),
    "budget": Text("stopped after {detail}, as asked", "按要求在 {detail} 后停止"),
    "time": Text("stopped after {detail}", "在 {detail} 后停止"),
    "exit": Text("called sys.exit({detail})", "调用了 sys.exit({detail})"),
    "error": Text("stopped by an error", "因错误停止"),
    "blocked": Text("could not go on", "无法继续"),
}


def _progress(record: Record) -> Measure:
    """How far the program came: what was looked at."""
    done = record.progress
    how = _ENDINGS.get(record.ending, _ENDINGS["end"])
    place = f" ({record.ending_place})" if record.ending_place.line else ""
    rows = (
        (Text("training forwards", "训练前向"), done.training_forwards),
        (Text("evaluation forwards", "评估前向"), done.evaluation_forwards),
        (Text("backward passes", "反向传播"), done.backwards),
        (Text("full batches", "完整批次"), done.full_batches),
        (Text("remainder batches", "余数批次"), done.remainder_batches),
        (Text("saves", "保存"), done.saves),
        (Text("loads", "加载"), done.loads),
        (Text("operators", "算子"), done.operators),
    )
    return Measure(
        "optimizer_steps",
        done.optimizer_steps,
        "",
        Text(
            "the program " + how.en.replace("{detail}", record.ending_detail) + place,
            "程序" + how.zh.replace("{detail}", record.ending_detail) + place,
        ),
        Text("optimizer steps", "优化器步数"),
        evidence=(
            Table(
                Text("what was run", "运行内容"),
                (Text("part", "部分"), Text("count", "次数")),
                rows,
            ),
        ),
        tool=TOOL,
    )


def assumption_measures(records: tuple[Record, ...]) -> list[Measure]:
    """Questions that only real values could answer, with the answers that were given."""
    rows: dict[tuple[str, str, str], int] = {}
    for record in records:
        for item in record.assumptions:
            key = (str(item.place), item.question, item.answer)
            rows[key] = max(rows.get(key, 0), item.count)
    if not rows:
        return []
    return [
        Measure(
            "assumptions",
            len(rows),
            "",
            Text(
                "questions about values, which a dry run does not have, and their answers",
                "关于取值的提问（空跑没有真实数值）及给出的回答",
            ),
            Text("assumptions", "假定"),
            evidence=(
                Table(
                    Text("assumed values", "假定的值"),
                    (Text("line", "行"), Text("question", "提问"), Text("answer", "回答"),
                     Text("times", "次数")),
                    tuple((*key, count) for key, count in rows.items()),
                ),
            ),
            tool=TOOL,
        )
    ]  # fmt: skip


__all__ = ["Command", "report_on_script"]
