"""Records of runs become a Report: first what breaks, then what was assumed and how far it came."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.finding import Confidence, Finding
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.answer import script_answer
from torchstone.dryrun.findings import TOOL, make_finding, snippet_at
from torchstone.dryrun.memory_report import fit_findings, memory_measures
from torchstone.dryrun.record import Constraint, Hazard, OperatorError, Record, TriedFix
from torchstone.dryrun.rules import Rule
from torchstone.dryrun.script.launch import Outcome
from torchstone.dryrun.shapes.source_edits import fix_of
from torchstone.dryrun.shapes.words import explain, shape_text
from torchstone.dryrun.stops import gaps_of, nothing_left, refuse_unusable
from torchstone.runtime.devices import Device


def report_on_script(subject: str, outcome: Outcome, device: Device | None = None) -> Report:
    """The report of a script's dry run."""
    refuse_unusable(subject, outcome)
    findings: list[Finding] = []
    gaps: list[Gap] = []
    for record in outcome.records:
        findings += findings_of(record)
        findings += fit_findings(record, device)
        gaps += gaps_of(record)
    if not outcome.records:
        gaps.append(nothing_left(subject, outcome))
    made = Report(
        TOOL,
        findings=tuple(_once(findings)),
        measures=(*measures_of(outcome.records), *memory_measures(outcome.records, device)),
        gaps=tuple(gaps),
        rules={rule.id: rule.info() for rule in rules.SINGLE_PROCESS},
        subject=subject,
    )
    return replace(made, answer=script_answer(made))


def _once(findings: list[Finding]) -> list[Finding]:
    """Two paths may break at one line: it is one finding."""
    return list({(item.rule, item.fingerprint, item.line): item for item in findings}.values())


def findings_of(record: Record) -> list[Finding]:
    found = [hazard_finding(item) for item in record.hazards if item.rule in _HAZARDS]
    found += [constraint_finding(item) for item in record.constraints or ()]
    if record.error is not None:
        found.append(refused_call(record.error, record))
    elif record.stop is not None and record.stop.cause == "program":
        found.append(raised(record))
    return found


_HAZARDS = {rules.BROADCAST.id: rules.BROADCAST, rules.FLOAT64.id: rules.FLOAT64}


def hazard_finding(hazard: Hazard) -> Finding:
    """Something that runs and is probably not what was meant."""
    rule = _HAZARDS[hazard.rule]
    shapes = ", ".join(
        f"{item.name} {shape_text(item.shape)} {item.dtype}" for item in hazard.operands[:3]
    )
    error = OperatorError(
        hazard.op, "", hazard.place, module=hazard.module, operands=hazard.operands
    )
    fixes = {
        rules.BROADCAST.id: Text(
            "give both the same number of axes: squeeze(-1) or unsqueeze(-1) on one of them",
            "让两者维数相同：对其中之一使用 squeeze(-1) 或 unsqueeze(-1)",
        ),
        rules.FLOAT64.id: Text(
            "make the float64 tensor float32 where it comes in: .float()",
            "在来源处把 float64 张量转为 float32：.float()",
        ),
    }
    return make_finding(
        rule,
        Text("{op}: {detail} ({shapes})", "{op}：{detail}（{shapes}）"),
        {"op": hazard.op, "detail": hazard.detail, "shapes": shapes},
        rule.why,
        Message(f"{rule.name}-fix", fixes[rule.id]),
        hazard.place,
        evidence_of(error),
        module=hazard.module,
        op=hazard.op,
        confidence=Confidence.LIKELY,
    )


def constraint_finding(item: Constraint) -> Finding:
    """A size for which the model does not hold."""
    evidence: list[Evidence] = [snippet] if (snippet := snippet_at(item.place)) else []
    table = Table(
        Text("the guard of torch's shape environment", "torch 形状环境的约束"),
        (Text("expression", "表达式"), Text("line", "行")),
        ((item.expression, str(item.place)),),
    )
    return make_finding(
        rules.CONSTRAINT,
        Text("{en}", "{zh}"),
        {"en": item.en, "zh": item.zh},
        rules.CONSTRAINT.why,
        Message("none"),
        item.place,
        (*evidence, table),
    )


def refused_call(error: OperatorError, record: Record) -> Finding:
    """A call that torch refuses."""
    rule = rule_for(error)
    if rule is rules.IN_PLACE:
        return overwritten(error)
    shapes = ", ".join(f"{item.name} {shape_text(item.shape)}" for item in error.operands[:4])
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


def rule_for(error: OperatorError) -> Rule:
    if "modified by an inplace operation" in error.message:
        return rules.IN_PLACE
    if "same device" in error.message:
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
    rows: list[tuple[str, ...]] = []
    for item in error.operands:
        made = item.history[0] if item.history and not item.is_parameter else None
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
            "程序会在此停止；可能由假定的值引起（见假定列表）",
        )
    places = (stop.place, stop.inside)
    evidence: list[Evidence] = [item for place in places if (item := snippet_at(place))]
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


def measures_of(records: tuple[Record, ...]) -> tuple[Measure, ...]:
    if not records:
        return ()
    main = next((item for item in records if item.path == 0), records[-1])
    if main.constraints is not None:
        return (_symbolic(main.constraints, "proven" in main.notes),)
    return (_progress(main), *assumption_measures(records))


def _symbolic(constraints: tuple[Constraint, ...], proven: bool) -> Measure:
    how = Text(
        "runs at every size from 2 to 17, which does not prove the others",
        "在 2 到 17 的每个大小下都能运行，其余未证明",
    )
    if proven:
        how = Text(
            "proven for every size from 2 on, in torch's shape environment",
            "已在 torch 的形状环境中证明：从 2 起的任意大小都成立",
        )
    if constraints:
        how = Text("what must hold for other sizes to work", "其他大小须满足的条件")
    return Measure("constraints", len(constraints), "", how,
                   Text("size constraints", "大小约束"), tool=TOOL)  # fmt: skip


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
