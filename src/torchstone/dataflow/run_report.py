"""The report on a program that ran as it is and with a plan: proven equal or not, and its speed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torchstone.core.answer import Answer, Tile
from torchstone.core.evidence import State
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.quantity import human
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text, fill
from torchstone.dataflow.answer import WORTH
from torchstone.dataflow.comparison import Difference, Outcome
from torchstone.dataflow.migration.ledger import Fallback
from torchstone.dataflow.plan import MigrationPlan
from torchstone.dataflow.report import TOOL

DIFFERENT = RuleInfo(
    "FL101", "results-differ", "flow", Severity.HIGH,
    Text("the plan changes the program's results", "计划改变了程序的结果"),
    Text("all runs started from the same seeds; the one without the plan repeats itself exactly",
         "各次运行使用相同的随机种子；不带计划的运行可完全重复"),
)  # fmt: skip
NO_MATCH = RuleInfo(
    "FL102", "plan-matched-no-call", "flow", Severity.HIGH,
    Text("no call of the program is one that the plan names", "程序中没有任何调用与计划匹配"),
    Text("a call is matched by the functions that lead to it, then by the longest end of that path, then by the "
         "function's name; none of the plan's functions was called",
         "调用先按完整调用路径匹配，再按最长公共后缀匹配，最后按函数名匹配；计划中的函数都没有被调用"),
)  # fmt: skip
PART_MATCHED = RuleInfo(
    "FL103", "plan-matched-in-part", "flow", Severity.MEDIUM,
    Text("some entries of the plan match no call of the program", "计划中的部分条目没有匹配到任何调用"),
    Text("what these entries were to gain is not gained in this run", "这些条目预期的收益在本次运行中没有实现"),
)  # fmt: skip
FELL_BACK = RuleInfo(
    "FL104", "planned-calls-stayed", "flow", Severity.MEDIUM,
    Text("every call that the plan moves ran on the CPU after all", "计划迁移的所有调用最终都在 CPU 上执行"),
    Text("what the plan was to gain is not gained; each call was computed by the original function",
         "计划预期的收益没有实现；每次调用都由原函数执行"),
)  # fmt: skip
RULES = {rule.id: rule for rule in (DIFFERENT, NO_MATCH, PART_MATCHED, FELL_BACK)}
_ONE_RUN = Text("one run", "单次运行")
_LISTED = ("fallbacks", "functions", "contexts")
"""Of the migrator's figures: shown in tables of their own."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the program."""

    outcome: Outcome
    seconds: float
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Culprit:
    """An entry of the plan that changes results."""

    key: str
    lines: tuple[str, ...]
    """`file:line` of its calls."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The program as it is and with the plan."""

    subject: str
    original: Ran
    migrated: Ran
    stats: Mapping[str, Any]
    different: tuple[Difference, ...]
    unstable: frozenset[str]
    """Results that differ between two runs without the plan."""
    notes: tuple[Text, ...] = ()
    """Devices of the plan that this machine does not have."""
    verdicts: tuple[Text, ...] = ()
    allows_rounding: bool = False
    culprits: tuple[Culprit, ...] = ()
    are_told_apart: bool = True
    """False where the runs did not suffice: some culprits may change nothing."""
    fallbacks: tuple[Fallback, ...] = ()

    @property
    def compared(self) -> int:
        return len(set(self.original.outcome) - self.unstable)

    @property
    def rounded(self) -> list[Difference]:
        """Within what another order of additions explains, where that is allowed."""
        near = [
            item for item in self.different if item.is_rounding and item.name not in self.unstable
        ]
        return near if self.allows_rounding else []

    @property
    def wrong(self) -> list[Difference]:
        return [
            item
            for item in self.different
            if not (item.is_rounding and self.allows_rounding) and item.name not in self.unstable
        ]

    @property
    def entries(self) -> Mapping[str, Mapping[str, int]]:
        """Entries of the plan, with the calls that each was matched with."""
        contexts: Mapping[str, Mapping[str, int]] = self.stats.get("contexts", {})
        return {key: calls for key, calls in contexts.items() if key}

    @property
    def missing(self) -> list[str]:
        """Entries that no call was matched with."""
        return [key for key, calls in self.entries.items() if not calls]

    @property
    def moved(self) -> int:
        return int(self.stats.get("calls_migrated", 0)) + int(self.stats.get("calls_deferred", 0))

    @property
    def fell_back(self) -> int:
        return int(self.stats.get("calls_fallback", 0))

    @property
    def migrated_seconds(self) -> float:
        """Without the proofs, which are made once on a machine and kept."""
        return max(self.migrated.seconds - float(self.stats.get("proof_seconds", 0.0)), 1e-9)

    @property
    def failure(self) -> str:
        return self.original.failure or self.migrated.failure

    @property
    def is_proven(self) -> bool:
        return bool(self.compared) and not self.wrong and not self.failure

    @property
    def speed(self) -> float:
        return self.original.seconds / self.migrated_seconds


def report_on_runs(plan: MigrationPlan, runs: Runs) -> Report:
    figures = Table(
        Text("What the migrator did", "迁移器统计"), (Text("figure", "项目"), Text("value", "值")),
        tuple((key, _shown(value)) for key, value in runs.stats.items() if key not in _LISTED),
    )  # fmt: skip
    evidence = (figures, *_fallbacks(runs), *_rounded(runs))
    measures = (
        Measure("original_seconds", runs.original.seconds, "s", _ONE_RUN, Text("as it is", "原样运行"), tool=TOOL),
        Measure("migrated_seconds", runs.migrated_seconds, "s", _ONE_RUN, Text("with the plan", "按计划运行"), evidence=evidence, tool=TOOL),
    )  # fmt: skip
    return Report(
        TOOL, findings=(*_unmatched(runs), *_fell_back(runs), *(_finding(runs, item) for item in runs.wrong)), measures=measures,
        gaps=tuple(_gaps(runs)), subject=runs.subject, rules=RULES,
        answer=_answer(plan, runs),
    )  # fmt: skip


def _fallbacks(runs: Runs) -> Iterator[Table]:
    rows = tuple(
        (item.function, item.reason, item.line, item.calls, item.seconds, item.edit)
        for item in runs.fallbacks
    )
    columns = (
        Text("function", "函数"), Text("why it stayed", "未迁移的原因"), Text("where", "位置"),
        Text("calls", "次数"), Text("cost of the attempt", "尝试的开销"), Text("edit", "修改建议"),
    )  # fmt: skip
    if rows:
        yield Table(
            Text("Calls that stayed with the original", "由原函数执行的调用"), columns, rows, "",
            ("", "", "", "", "s", ""),
        )  # fmt: skip


def _rounded(runs: Runs) -> Iterator[Table]:
    rows = tuple((item.name, item.how, item.after) for item in runs.rounded)
    if rows:
        columns = (Text("result", "结果"), Text("differs", "差异"), Text("kind", "类型"))
        yield Table(Text("Results within rounding", "仅有舍入差异的结果"), columns, rows)


def proof_of(runs: Runs) -> Text:
    """In a few words, whether the results are the same."""
    if runs.wrong:
        count = len(runs.wrong)
        return Text(
            f"{count} of {runs.compared} results differ",
            f"{runs.compared} 个结果中有 {count} 个不同",
        )
    if not runs.is_proven:
        return Text("results were not proven equal", "未能证明结果相等")
    same = runs.compared - len(runs.rounded)
    if not runs.rounded:
        return Text(f"{same} results equal bit by bit", f"{same} 个结果逐位相等")
    near = len(runs.rounded)
    return Text(
        f"{same} results equal bit by bit, {near} within rounding",
        f"{same} 个结果逐位相等，{near} 个仅有舍入差异",
    )


def _answer(plan: MigrationPlan, runs: Runs) -> Answer:
    proof, speed = proof_of(runs), _speed(plan, runs)
    state: State = "good" if runs.is_proven else "bad" if runs.wrong else "warning"
    proving = human(float(runs.stats.get("proof_seconds", 0.0)), "s")
    return Answer(
        Text(f"{runs.subject} with the plan: {proof.en}, {speed.en}",
             f"{runs.subject} 按计划运行：{proof.zh}，{speed.zh}"),
        _state(plan, runs),
        tiles=(
            Tile(Text("proof", "证明"), proof, Text("same seeds, all arrays the program left", "相同种子，程序留下的全部数组"), state),
            Tile(Text("as it is", "原样运行"), human(runs.original.seconds, "s"), _ONE_RUN),
            Tile(Text("with the plan", "按计划"), human(runs.migrated_seconds, "s"), Text(f"without {proving} for proofs, made once", f"不含一次性证明的 {proving}")),
            Tile(Text("calls moved", "迁移的调用"), f"{runs.moved:,}", Text(f"{runs.fell_back:,} fell back", f"{runs.fell_back:,} 次回退")),
            Tile(Text("bytes moved", "传输字节"), human(float(runs.stats.get("bytes_moved", 0)), "B"), Text("both directions", "双向合计")),
        ),
        lines=(*_difference_words(runs), *_unmatched_words(runs), *_speed_words(plan, runs), *(() if runs.notes else runs.verdicts)),
    )  # fmt: skip


def _speed(plan: MigrationPlan, runs: Runs) -> Text:
    if not plan.context_device_map:
        return Text("nothing moves", "没有迁移任何算子")
    if runs.notes or runs.failure:
        return Text("the speed is not known", "速度未知")
    return Text(f"{runs.speed:.2f}× the speed", f"速度为原来的 {runs.speed:.2f} 倍")


def _state(plan: MigrationPlan, runs: Runs) -> State:
    """Good: equal, and faster by more than two runs of a program differ; or equal where the speed of
    the device cannot be measured."""
    if runs.wrong:
        return "bad"
    if not runs.is_proven:
        return "warning"
    if not plan.context_device_map:
        return "plain"
    if not runs.moved or runs.missing or (runs.speed < 1 and not runs.notes):
        return "warning"
    return "good" if runs.notes or runs.speed >= WORTH else "plain"


def _speed_words(plan: MigrationPlan, runs: Runs) -> tuple[Text, ...]:
    if not plan.context_device_map:
        return (
            Text("the plan moves nothing: moving does not pay here", "计划未迁移任何算子：在此迁移不划算"),
        )  # fmt: skip
    if not runs.moved:
        if runs.fell_back:
            return (_reason_of_fallbacks(runs),)
        return ()
    if runs.notes:  # other kernels on another device: their time is not that of the plan
        return (
            *(Text(f"{note.en}; their time says nothing about the device",
                   f"{note.zh}；其用时不能说明该设备的速度") for note in runs.notes),
            *([_reason_of_fallbacks(runs)] if runs.fell_back else []),
        )  # fmt: skip
    if runs.speed < 1:
        return (
            Text("moving did not pay in this run: leave the pipeline as it is", "本次运行中迁移并不划算：请保持原样"),
        )  # fmt: skip
    return ()


def _gaps(runs: Runs) -> Iterator[Gap]:
    for ran, name in ((runs.original, "as it is"), (runs.migrated, "with the plan")):
        if ran.failure:
            yield Gap(
                runs.subject, Message("program-raised", Text("the run {name} raised {error}", "运行（{name}）抛出 {error}"), {"name": name, "error": ran.failure}),
                "fix the program, then run it again", failed=True, tool=TOOL,
            )  # fmt: skip
    if runs.unstable:
        names = ", ".join(sorted(runs.unstable)[:5])
        yield Gap(
            runs.subject, Message("not-repeatable", Text("{count} results ({names}, …) differ between two runs without the plan: they cannot be compared", "{count} 个结果（{names} 等）在两次不带计划的运行之间就不同：无法比对"), {"names": names, "count": str(len(runs.unstable))}),
            "make them depend on seeds only", tool=TOOL,
        )  # fmt: skip
    if not runs.compared and not runs.unstable and not runs.original.failure:
        yield Gap(
            runs.subject, Message("nothing-left", Text("the program left no arrays or numbers to compare", "程序没有留下可供比对的数组或数值")),
            "keep the results in variables of the script, or return them from the function of --call", tool=TOOL,
        )  # fmt: skip


_NOT_MATCHED = Text(
    "{missing} of {all} entries of the plan match no call",
    "计划的 {all} 个条目中有 {missing} 个没有匹配到调用",
)
_NAMED = 3
"""Entries that are named on the first screen."""


def _unmatched_words(runs: Runs) -> Iterator[Text]:
    """The entries without a call, beside the calls of the same functions."""
    if not runs.missing or runs.failure:
        return
    figures = {"missing": str(len(runs.missing)), "all": str(len(runs.entries))}
    said = Text(fill(_NOT_MATCHED.en, figures), fill(_NOT_MATCHED.zh, figures))
    contexts = runs.stats.get("contexts", {})
    parts = []
    for key in runs.missing[:_NAMED]:
        near = ", ".join(_nearest(key, contexts))
        parts.append(
            Text(f"{key} (the run has {near})", f"{key}（实际调用为 {near}）")
            if near
            else Text(f"{key} (not called)", f"{key}（未被调用）")
        )
    yield Text(
        f"{said.en}: {', '.join(part.en for part in parts)}",
        f"{said.zh}：{'、'.join(part.zh for part in parts)}",
    )


def _unmatched(runs: Runs) -> Iterator[Finding]:
    """Entries of the plan that no call was matched with, beside the calls that there were."""
    entries, missing = runs.entries, runs.missing
    if not missing or runs.failure:
        return
    rule = NO_MATCH if len(missing) == len(entries) else PART_MATCHED
    contexts = runs.stats.get("contexts", {})
    rows = tuple((key, ", ".join(_nearest(key, contexts)) or "–") for key in missing[:_ROWS])
    remedy = Text(
        "trace and plan the program as it is run: torchstone flow trace, torchstone flow plan",
        "请按实际运行方式重新追踪并规划：torchstone flow trace、torchstone flow plan",
    )
    columns = (
        Text("entry of the plan", "计划条目"),
        Text("calls of that function", "该函数的实际调用"),
    )
    yield Finding(
        rule.id, rule.name, rule.severity, Confidence.CERTAIN,
        Message(rule.name, _NOT_MATCHED, {"missing": str(len(missing)), "all": str(len(entries))}),
        Message("why", rule.why), Message("remedy", remedy), Location(path=runs.subject),
        (Table(Text("The plan beside the run", "计划与实际运行对照"), columns, rows),),
        fingerprint(rule.id, runs.subject, " ".join(missing[:_ROWS])), tool=TOOL,
    )  # fmt: skip


def _fell_back(runs: Runs) -> Iterator[Finding]:
    """Planned calls were made, and none of them moved."""
    if runs.moved or not runs.fell_back or runs.failure:
        return
    most = _most_fallbacks(runs)
    yield Finding(
        FELL_BACK.id, FELL_BACK.name, FELL_BACK.severity, Confidence.CERTAIN,
        Message(FELL_BACK.name, _reason_of_fallbacks(runs)), Message("why", FELL_BACK.why),
        Message("remedy", most.edit if most.edit.en else _PLAN_AGAIN), _place(most.line, runs), tuple(_fallbacks(runs)),
        fingerprint(FELL_BACK.id, runs.subject, most.function), tool=TOOL,
    )  # fmt: skip


_PLAN_AGAIN = Text("take these calls out of the plan", "请从计划中去掉这些调用")


def _reason_of_fallbacks(runs: Runs) -> Text:
    """How many calls fell back, and why most of them did."""
    most = _most_fallbacks(runs)
    return Text(
        f"{runs.fell_back:,} planned calls ran on the CPU; {most.function} at {most.line}: {most.reason.en}",
        f"{runs.fell_back:,} 次计划迁移的调用在 CPU 上执行；{most.line} 处的 {most.function}：{most.reason.zh}",
    )


def _most_fallbacks(runs: Runs) -> Fallback:
    return max(runs.fallbacks, key=lambda item: item.calls)


def _place(line: str, runs: Runs) -> Location:
    """Of a text `file:line`."""
    path, _, number = line.rpartition(":")
    return Location(path=path or runs.subject, line=int(number) if number.isdecimal() else 0)


_ROWS = 20


def _nearest(key: str, contexts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Calls of the same function, wherever they were matched."""
    function = key.rpartition("/")[2].partition("@")[0]
    seen = [context for calls in contexts.values() for context in calls]
    return [context for context in seen if context.rpartition("/")[2].endswith(function)][:3]


_DIFFERS = Text("{name} differs: {how}", "{name} 不同：{how}")
_BECAUSE = Text(
    "{name} differs: {how}; the cause is {cause}", "{name} 不同：{how}；原因在于 {cause}"
)
_AMONG = Text(
    "{name} differs: {how}; the cause is among {count} entries, perhaps {cause}",
    "{name} 不同：{how}；原因在于 {count} 个条目中的某些，可能包括 {cause}",
)


def _difference_words(runs: Runs) -> Iterator[Text]:
    """The first result that differs, and the entry with its line that makes it."""
    for item in runs.wrong[:1]:
        said, arguments = _said_of(runs, item)
        yield Text(fill(said.en, arguments), fill(said.zh, arguments))


def _said_of(runs: Runs, item: Difference) -> tuple[Text, dict[str, str]]:
    said, cause = _DIFFERS, ""
    if runs.culprits:
        first = runs.culprits[0]
        cause = f"{first.key}, {first.lines[0]}" if first.lines else first.key
        said = _BECAUSE if runs.are_told_apart else _AMONG
    # how far apart is a text in two languages: part of the sentence, not an argument
    whole = Text(said.en.replace("{how}", item.how.en), said.zh.replace("{how}", item.how.zh))
    return whole, {"name": item.name, "cause": cause, "count": str(len(runs.culprits))}


def _finding(runs: Runs, item: Difference) -> Finding:
    rows = (("as it is", item.before), ("with the plan", item.after))
    columns = (Text("run", "运行"), Text("value", "值"))
    evidence = [Table(Text("the two results", "两次结果"), columns, rows)]
    said, arguments = _said_of(runs, item)
    where = Location(path=runs.subject)
    if runs.culprits:
        first = runs.culprits[0]
        where = _place(first.lines[0] if first.lines else "", runs)
        listed = tuple((one.key, ", ".join(one.lines[:3])) for one in runs.culprits)
        heads = (Text("entry of the plan", "计划条目"), Text("lines", "位置"))
        evidence.append(
            Table(
                Text(
                    "Entries that change the results, found by running with fewer of them",
                    "改变结果的计划条目（逐步减少条目重跑得出）",
                ),
                heads,
                listed,
            )
        )
    remedy = Text(
        "take the named entry out of the plan, or run it without --allow-rounding",
        "请从计划中去掉所指出的条目，或去掉 --allow-rounding",
    )
    return Finding(
        DIFFERENT.id, DIFFERENT.name, DIFFERENT.severity, Confidence.CERTAIN,
        Message("results-differ", said, arguments),
        Message("why", DIFFERENT.why), Message("remedy", remedy), where, tuple(evidence),
        fingerprint(DIFFERENT.id, runs.subject, item.name), tool=TOOL,
    )  # fmt: skip


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
