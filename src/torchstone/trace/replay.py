"""A recorded run again: the recorded answers, no model; what the tools say now is compared.

What a run does is known to the room that did it, and handed in as `Again`. Here are the answers
and the comparison.
"""

from __future__ import annotations

import difflib
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.core.errors import InputError, TorchstoneError
from torchstone.core.evidence import Diff
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.pictures import Evidence, TraceStep
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text
from torchstone.trace.actions import START
from torchstone.trace.compare import compare
from torchstone.trace.exchange import Exchange, read_exchanges, request_key
from torchstone.trace.messages import Client, Request, Response, transcript
from torchstone.trace.names import safe_name
from torchstone.trace.record import Record
from torchstone.trace.redact import redactor
from torchstone.trace.run import Run, load

Again = Callable[[str, Client, Path], Report]
"""Does what some settings say, with this client, and records it under this folder."""
_MOST_DIFF = 200
RULE = RuleInfo(
    "replay-drift",
    "replay-drift",
    "trace",
    Severity.HIGH,
    Text("a replay does not give what was recorded", "重放结果与记录不一致"),
    Text(
        "the same answers of the model led to another prompt or another verdict: the code, its "
        "surroundings or the record have changed",
        "同样的模型回答得到了不同的提示或结论：代码、环境或记录已发生变化",
    ),
    Text(
        "look at the first difference; versions of both runs stand in their journals",
        "请查看第一处差异；两次运行的版本写在各自的日志中",
    ),
)


class ReplayMissError(TorchstoneError):
    """A question that the record has no answer for; a replay never asks a live model."""

    def __init__(self, prompt: str) -> None:
        super().__init__(
            "replay",
            "a prompt that was not recorded",
            Text("a prompt of the recorded run", "已记录运行中的提示"),
            Text(
                "compare it with the recorded one, or fork with --from-step and --model",
                "请与记录的提示比较，或用 --from-step 和 --model 分叉",
            ),
        )
        self.prompt = prompt


@dataclass(frozen=True, slots=True)
class Told:
    """An exchange with the step that it belongs to."""

    step: int
    exchange: Exchange


def exchanges_of(run: Run) -> tuple[Told, ...]:
    """All exchanges of a run, in the order in which they were made."""
    return tuple(
        Told(record.step, exchange)
        for record in run.records
        for exchange in read_exchanges(run.text(record, "exchanges") or "[]")
    )


class ReplayClient:
    """Answers from a record. Equal questions get their answers in the recorded order; with `live`
    everything after the last recorded answer goes to that client."""

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        live: Client | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._answers: dict[str, deque[Exchange]] = defaultdict(deque)
        for item in exchanges:
            self._answers[item.key].append(item)
        self._live = live
        self._redact = redactor(environment)

    @property
    def left(self) -> int:
        """Answers that nobody has asked for."""
        return sum(map(len, self._answers.values()))

    def complete(self, request: Request) -> Response:
        waiting = self._answers[request_key(request, self._redact)]
        if waiting:
            return waiting.popleft().answer()
        if self._live is not None and not self.left:
            return self._live.complete(request)
        raise ReplayMissError(self._redact(transcript(request.messages)))


def settings_of(run: Run) -> dict[str, object]:
    """What the run was told to do; an InputError where a replay is not possible."""
    starts = [item for item in run.records if item.action == START]
    if len(starts) > 1:
        known = ", ".join(run.tasks)
        raise InputError(
            f"{run.folder}: --task", Text(f"{len(starts)} tasks", f"{len(starts)} 个任务"), Text("one task", "一个任务"),
            Text(f"choose one of: {known}", f"请选择其一：{known}"),
        )  # fmt: skip
    try:
        found = json.loads(run.text(starts[0], "settings") or "") if starts else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(
            str(run.folder),
            Text("no settings that can be read", "没有可读取的设置"),
            Text("a run that recorded how it was started", "记录了启动设置的运行"),
            Text(
                "runs of `torchstone kernel generate` can be replayed",
                "`torchstone kernel generate` 的运行可以重放",
            ),
        )
    return found


def replay(run: Run, again: Again, log_dir: Path) -> Report:
    """The run from its record with no model at all; every difference is told."""
    settings = json.dumps(settings_of(run), ensure_ascii=False)
    missed = ""
    try:
        again(settings, ReplayClient(item.exchange for item in exchanges_of(run)), log_dir)
    except ReplayMissError as error:
        missed = error.prompt
    new = load(log_dir / safe_name(run.records[0].op))
    report = compare(run, new)
    assert report.answer is not None
    if not report.measures[0].value and not missed:
        count = len(run.records)
        same = Text(f"The replay gives what was recorded: {count} records are the same",
                    f"重放与记录一致：{count} 条记录相同")  # fmt: skip
        return replace(report, answer=replace(report.answer, headline=same))
    finding = _finding(run, new, report.measures[0].evidence, missed)
    said = finding.what.say("en")
    drift = Text(said[:1].upper() + said[1:], finding.what.say("zh"))
    answer = replace(report.answer, headline=drift, state="bad", lines=(*report.answer.lines, RULE.remedy))  # fmt: skip
    return replace(report, findings=(finding,), rules={RULE.id: RULE}, answer=answer)


def last_step_to_fork(run: Run) -> int:
    """The last step that a live model may begin with: the step after the last one, where the
    run ended before it was accepted."""
    steps = [item.step for item in run.records if item.role != "exit"]
    ended = [item for item in run.records if item.role == "exit"]
    early = bool(ended) and ended[-1].verdict in ("model", "budget", "steps")
    return max(steps, default=0) + early


def fork(run: Run, again: Again, from_step: int, live: Client, log_dir: Path) -> Report:
    """The run from its record up to a step, and with a live model from there on."""
    settings = json.dumps(settings_of(run), ensure_ascii=False)
    told = [item.exchange for item in exchanges_of(run) if item.step < from_step]
    return again(settings, ReplayClient(told, live), log_dir)


def _finding(run: Run, new: Run, evidence: tuple[Evidence, ...], missed: str) -> Finding:
    record = _first_difference(run, new)
    shown: list[Evidence] = [
        TraceStep(str(run.folder), record.step, record.action, record.verdict),
        *(item for item in evidence if isinstance(item, Diff)),
    ]
    if missed:
        shown.append(Diff(_prompts(run.text(record, "prompt") or "", missed)))
    args = {"step": f"{record.step:02d}", "action": record.action}
    return Finding(
        rule=RULE.id,
        name=RULE.name,
        severity=Severity.HIGH,
        confidence=Confidence.CERTAIN,
        what=Message(
            "replay-drift",
            Text(
                "the replay parts from the record at step {step} ({action})",
                "重放在第 {step} 步（{action}）偏离记录",
            ),
            args,
        ),
        why=Message("replay-drift-why", RULE.why),
        remedy=Message("replay-drift-remedy", RULE.remedy),
        location=Location(step=record.step, op=record.op),
        evidence=tuple(shown),
        fingerprint=fingerprint(RULE.id, record.action, str(record.step)),
        tool="trace",
    )


def _first_difference(run: Run, new: Run) -> Record:
    """The first record that the new run does not have as it was; the last one if all are there."""
    for ours, theirs in zip(run.records, new.records, strict=False):
        if _shape(ours) != _shape(theirs):
            return ours
    return run.records[min(len(new.records), len(run.records) - 1)]


def _shape(record: Record) -> tuple[object, ...]:
    hashes = {
        name: record.texts[name].sha256
        for name in ("prompt", "answer", "result", "error_log")
        if name in record.texts
    }
    return (record.action, record.verdict, hashes)


def _prompts(recorded: str, asked: str) -> str:
    lines = difflib.unified_diff(
        recorded.splitlines(), asked.splitlines(), "recorded/prompt", "replayed/prompt",
        lineterm="", n=3,
    )  # fmt: skip
    return "\n".join([*lines][:_MOST_DIFF]) + "\n"
