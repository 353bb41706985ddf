"""A kernel from a language model: written, verified, recorded; and the report of how it went."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchstone._version import __version__
from torchstone.core.answer import Answer, Fact
from torchstone.core.codec import from_data
from torchstone.core.errors import InputError
from torchstone.core.evidence import Snippet
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text, Words, shortened
from torchstone.kernels.generation.loop import Loop, Outcome, Progress, Settings, Verify
from torchstone.trace.journal import NAME, read_journal
from torchstone.trace.messages import Client
from torchstone.trace.names import safe_name
from torchstone.trace.record import Record
from torchstone.trace.trace import Trace

_RECORDED = Text("recorded by this run", "来自本次运行的记录")
_ENDINGS = {
    "accepted": Text("accepted by the verifier", "已通过验证"),
    "steps": Text("rejected: no step left", "未通过：步数已用完"),
    "budget": Text("stopped: {detail}", "已停止：{detail}"),
    "model": Text("the model did not answer: {detail}", "模型没有回答：{detail}"),
    "unverified": Text("written, but not verified", "已写出，但未验证"),
    "verifier": Text("the verifier itself failed", "验证器自身失败"),
}


def generate(
    settings: Settings,
    client: Client,
    log_dir: Path | str,
    verify: Verify,
    task: str = "",
    progress: Progress | None = None,
) -> tuple[Outcome, Report]:
    """Run the loop with a client and record it under `log_dir`; how it ended, and a report.

    Without a name the task gets the next number that its folder does not have.
    """
    folder = Path(log_dir).expanduser() / safe_name(settings.problem_name)
    trace = Trace(settings.problem_name, task or _next_task(folder), log_dir)
    outcome = Loop(settings, client, trace, verify, progress).run()
    return outcome, _report(settings, outcome, trace)


def again(verify: Verify, model: str = "") -> Callable[[str, Client, Path], Report]:
    """What a replay or a fork calls: the same generation with recorded answers, or from some
    step on with those of another model."""

    def run(settings: str, client: Client, log_dir: Path) -> Report:
        changed = {"model": model} if model else {}
        return generate(read_settings(settings, **changed), client, log_dir, verify)[1]

    return run


def read_settings(text: str, **changed: Any) -> Settings:
    """The settings of a recorded generation, some of them changed."""
    try:
        found = from_data(Settings, json.loads(text), "settings")
    except (ValueError, RecursionError):
        raise InputError(
            "settings",
            "no JSON",
            Text("the settings of a recorded generation", "已记录的生成设置"),
            Text("replay a run of `kernel generate`", "请重放 `kernel generate` 的运行"),
        ) from None
    return dataclasses.replace(found, **changed)


def _next_task(folder: Path) -> str:
    try:
        known = {item.task for item in read_journal(folder / NAME).records}
    except FileNotFoundError:
        known = set()
    number = 1
    while str(number) in known:
        number += 1
    return str(number)


def _report(settings: Settings, outcome: Outcome, trace: Trace) -> Report:
    records = trace.trace_list
    own = Report(
        tool="kernel",
        subject=settings.problem_name,
        measures=tuple(_measures(outcome, trace)),
        gaps=tuple(_gaps(settings, outcome)),
        environment={"torchstone": __version__, "model": _model(records) or settings.model},
    )
    whole = own + outcome.verdict.report() if outcome.verdict is not None else own
    return dataclasses.replace(whole, answer=_answer(outcome, trace, whole.answer))


def _answer(outcome: Outcome, trace: Trace, verdict: Answer | None) -> Answer:
    """How the generation ended, then what the verifier said of its last kernel."""
    said = _say(outcome)
    about = [Fact(Text("steps", "步数"), str(outcome.steps))]
    if outcome.kernel is not None:
        about.append(Fact(Text("kernel", "内核"), str(outcome.kernel)))
    show = f"torchstone trace show {trace.folder} --task {trace.task_id}"
    if verdict is None:
        return Answer(said, "warning", tuple(about), next=(show,))
    headline = Text(f"{said.en}. {verdict.headline.en}", f"{said.zh}。{verdict.headline.zh}")
    return dataclasses.replace(
        verdict, headline=headline, about=(*verdict.about, *about), next=(*verdict.next, show)
    )


def _model(records: list[Record]) -> str:
    return next((item.call.model for item in records if item.call.model), "")


def _measures(outcome: Outcome, trace: Trace) -> list[Measure]:
    calls = [item.call for item in trace.trace_list]
    asked = sum(item.input_tokens or 0 for item in calls)
    answered = sum(item.output_tokens or 0 for item in calls)
    seconds = sum(item.seconds or 0.0 for item in calls)
    evidence: list[Evidence] = [_table(trace.trace_list)]
    notes = [_note(Text("generation", "生成"), _say(outcome))]
    if outcome.kernel is not None and outcome.verdict is not None:
        source = outcome.verdict.candidate.source
        evidence.append(Snippet(str(outcome.kernel), 1, source, caption=_say(outcome)))
        notes.append(_note(Text("kernel", "内核"), str(outcome.kernel)))
    show = f"torchstone trace show {trace.folder} --task {trace.task_id}"
    return [
        *notes,
        _note(Text("record", "记录"), show),
        _measure("steps", float(outcome.steps), "", Text("steps", "步数"), tuple(evidence)),
        _measure("input_tokens", float(asked), "token", Text("tokens asked", "输入 token")),
        _measure("output_tokens", float(answered), "token", Text("tokens answered", "输出 token")),
        _measure("model_seconds", seconds, "s", Text("time of the model", "模型用时")),
    ]


def _note(label: Text, words: Words) -> Measure:
    return Measure("note", 0.0, "", words, label, tool="kernel")


def _say(outcome: Outcome) -> Text:
    text = _ENDINGS[outcome.ending]
    detail = shortened(" ".join(outcome.detail.split()), 200)
    return Text(text.en.replace("{detail}", detail), text.zh.replace("{detail}", detail))


def _measure(
    name: str, value: float, unit: str, label: Text, evidence: tuple[Evidence, ...] = ()
) -> Measure:
    return Measure(name, value, unit, _RECORDED, label, evidence=evidence, tool="kernel")


def _table(records: list[Record]) -> Table:
    columns = (
        Text("step", "步骤"), Text("action", "操作"), Text("tokens in", "输入"),
        Text("tokens out", "输出"), Text("time", "时间"), Text("verdict", "结论"),
    )  # fmt: skip
    rows = tuple(
        (
            item.step, item.action, item.call.input_tokens, item.call.output_tokens,
            item.call.seconds, item.verdict or None,
        )
        for item in records
        if item.step
    )  # fmt: skip
    return Table(Text("Steps", "步骤"), columns, rows, _RECORDED, ("", "", "", "", "s", ""))


def _gaps(settings: Settings, outcome: Outcome) -> list[Gap]:
    """What kept the work from its end and is no fault of the kernel."""
    if outcome.ending not in ("budget", "model"):
        return []
    model, key = settings.model, outcome.key_variable
    if outcome.ending == "budget":
        close = Text("allow more with --max-tokens or --max-seconds",
                     "请用 --max-tokens 或 --max-seconds 放宽限制")  # fmt: skip
    elif key:
        close = Text(f"set {key} to a key of this server, then run it again",
                     f"请把 {key} 设为该服务的密钥，然后重新运行")  # fmt: skip
    else:
        close = Text(f"check that {model} is served at --base-url, then run it again",
                     f"请确认 --base-url 提供模型 {model}，然后重新运行")  # fmt: skip
    reason = Message(f"kernel-{outcome.ending}", _say(outcome))
    failed = outcome.ending == "model"  # a spent budget is the user's own limit
    return [Gap(settings.problem_name, reason, close.en, failed=failed, tool="kernel",
                close_zh=close.zh)]  # fmt: skip
