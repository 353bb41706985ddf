"""`flow run`: the program as it is, then with the plan; what both left behind is compared."""

from __future__ import annotations

import importlib
import json
import random
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from torchstone.core.answer import Answer, Tile
from torchstone.core.errors import TorchstoneError, UsageError
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.quantity import human
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text
from torchstone.dataflow.comparison import Outcome, differences, outcome_of
from torchstone.dataflow.options import RunOptions
from torchstone.dataflow.plan import MigrationPlan, load_plan
from torchstone.dataflow.report import TOOL
from torchstone.dataflow.run import check_program
from torchstone.dataflow.script import check_subject, output_to_stderr, run_subject

_SEED = 20_240_229
"""Both runs start with this seed of random, numpy and torch: what they draw is the same."""
DIFFERENT = RuleInfo(
    "FL101", "results-differ", "flow", Severity.HIGH,
    Text("the plan changes the program's results", "计划改变了程序的结果"),
    Text("both runs started from the same seeds; the one without the plan repeats itself exactly",
         "两次运行使用相同的随机种子；不带计划的运行可完全重复"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the program."""

    outcome: Outcome
    seconds: float
    failure: str = ""


def run_command(options: RunOptions) -> Report:
    """The report of both runs."""
    check_subject("run", options.script, options.call)
    plan = load_plan(options.plan)
    check_program(plan, options.script, options.call)
    migrator = _migrator(plan)
    before = _run(options, nullcontext())
    after = _run(options, migrator)
    stats: Mapping[str, Any] = migrator.get_stats()
    different = differences(before.outcome, after.outcome)
    unstable: list[str] = []
    if different and not after.failure:
        again = _run(options, nullcontext())
        unstable = [item.name for item in differences(before.outcome, again.outcome)]
    return _report(options, plan, before, after, stats, different, set(unstable))


def _migrator(plan: MigrationPlan) -> Any:
    try:
        module = importlib.import_module("torchstone.dataflow.migration")
    except ModuleNotFoundError as error:
        raise UsageError(
            "flow run", f"no {error.name}", Text("the catalogue of operators", "算子目录"),
            'pip install "torchstone[flow]"',
        ) from None  # fmt: skip
    return module.PipelineMigrator.from_plan(plan)


def _run(options: RunOptions, around: AbstractContextManager[Any]) -> Ran:
    _seed_everything()
    failure = ""
    left: dict[str, Any] = {}
    start = perf_counter()
    with output_to_stderr(), around:
        start = perf_counter()
        try:
            left = run_subject(options.script, options.call, options.arguments)
        except SystemExit as error:
            failure = "" if error.code in (None, 0) else f"SystemExit({error.code})"
        except TorchstoneError:
            raise
        except Exception as error:  # the user's own: shown as Python shows it
            failure = type(error).__name__
            traceback.print_exception(error, file=sys.stderr)
        seconds = perf_counter() - start
    return Ran(outcome_of(left), seconds, failure)


def _seed_everything() -> None:
    random.seed(_SEED)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(_SEED)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(_SEED)


def _report(
    options: RunOptions,
    plan: MigrationPlan,
    before: Ran,
    after: Ran,
    stats: Mapping[str, Any],
    different: list[Any],
    unstable: set[str],
) -> Report:
    subject = options.script or options.call
    real = [item for item in different if item.name not in unstable]
    compared = len(before.outcome.digests)
    findings = tuple(_finding(subject, item) for item in real)
    gaps = _gaps(subject, before, after, unstable, compared)
    speed = before.seconds / after.seconds if after.seconds else 1.0
    table = Table(
        Text("What the migrator did", "迁移器统计"), (Text("figure", "项目"), Text("value", "值")),
        tuple((key, _shown(value)) for key, value in stats.items()),
    )  # fmt: skip
    measures = (
        Measure("original_seconds", before.seconds, "s", Text("one run", "单次运行"), Text("as it is", "原样运行"), tool=TOOL),
        Measure("migrated_seconds", after.seconds, "s", Text("one run", "单次运行"), Text("with the plan", "按计划运行"), evidence=(table,), tool=TOOL),
    )  # fmt: skip
    return Report(
        TOOL, findings=findings, measures=measures, gaps=tuple(gaps), subject=subject,
        rules={DIFFERENT.id: DIFFERENT},
        answer=_answer(subject, plan, before, after, stats, real, compared, speed),
    )  # fmt: skip


def _answer(
    subject: str, plan: MigrationPlan, before: Ran, after: Ran, stats: Mapping[str, Any],
    real: list[Any], compared: int, speed: float,
) -> Answer:  # fmt: skip
    moved = int(stats.get("calls_migrated", 0)) + int(stats.get("calls_deferred", 0))
    fell_back = int(stats.get("calls_fallback", 0))
    failed = before.failure or after.failure
    equal = not real and bool(compared) and not failed
    proof = (
        Text(f"{compared} results equal bit by bit", f"{compared} 个结果逐位相等") if equal
        else Text(f"{len(real)} results differ", f"{len(real)} 个结果不同") if real
        else Text("results were not proven equal", "未能证明结果相等")
    )  # fmt: skip
    return Answer(
        Text(f"{subject} with the plan: {proof.en}, {speed:.2f}× the speed", f"{subject} 按计划运行：{proof.zh}，速度为原来的 {speed:.2f} 倍"),
        "bad" if real else "good" if equal and speed >= 1 else "warning",
        tiles=(
            Tile(Text("proof", "证明"), proof, Text("same seeds, all arrays the program left", "相同种子，程序留下的全部数组"), "good" if equal else "bad" if real else "warning"),
            Tile(Text("as it is", "原样运行"), human(before.seconds, "s"), Text("one run", "单次运行")),
            Tile(Text("with the plan", "按计划"), human(after.seconds, "s"), Text("one run", "单次运行")),
            Tile(Text("calls moved", "迁移的调用"), f"{moved:,}", Text(f"{fell_back:,} fell back", f"{fell_back:,} 次回退")),
            Tile(Text("bytes moved", "传输字节"), human(float(stats.get("bytes_moved", 0)), "B"), Text("both directions", "双向合计")),
        ),
        lines=_speed_words(speed, moved, plan),
    )  # fmt: skip


def _speed_words(speed: float, moved: int, plan: MigrationPlan) -> tuple[Text, ...]:
    if not plan.context_device_map:
        return (
            Text(
                "the plan moves nothing: moving does not pay here",
                "计划未迁移任何算子：在此迁移不划算",
            ),
        )
    if not moved:
        return (
            Text(
                "no call of the run was one that the plan moves", "本次运行中没有计划所迁移的调用"
            ),
        )
    if speed < 1:
        return (
            Text(
                "moving did not pay in this run: leave the pipeline as it is",
                "本次运行中迁移并不划算：请保持原样",
            ),
        )
    return ()


def _gaps(
    subject: str, before: Ran, after: Ran, unstable: set[str], compared: int
) -> Iterator[Gap]:
    for ran, name in ((before, "as it is"), (after, "with the plan")):
        if ran.failure:
            yield Gap(
                subject, Message("program-raised", Text("the run {name} raised {error}", "运行（{name}）抛出 {error}"), {"name": name, "error": ran.failure}),
                "fix the program, then run it again", failed=True, tool=TOOL,
            )  # fmt: skip
    if unstable:
        names = ", ".join(sorted(unstable)[:5])
        yield Gap(
            subject, Message("not-repeatable", Text("{names} differ between two runs without the plan: they cannot be compared", "{names} 在两次不带计划的运行之间就不同：无法比对"), {"names": names}),
            "make them depend on seeds only", tool=TOOL,
        )  # fmt: skip
    if not compared and not before.failure:
        yield Gap(
            subject, Message("nothing-left", Text("the program left no arrays or numbers to compare", "程序没有留下可供比对的数组或数值")),
            "keep the results in variables of the script, or return them from the function of --call", tool=TOOL,
        )  # fmt: skip


def _finding(subject: str, item: Any) -> Finding:
    return Finding(
        DIFFERENT.id, DIFFERENT.name, DIFFERENT.severity, Confidence.CERTAIN,
        Message("results-differ", Text("{name} differs: {how}", "{name} 不同：{how}"), {"name": item.name, "how": item.how}),
        Message("why", DIFFERENT.why), Message("remedy", Text("take the operators before it out of the plan", "从计划中去掉其上游的算子")),
        Location(path=subject), (Table(Text("the two results", "两次结果"), (Text("run", "运行"), Text("value", "值")), (("as it is", item.before), ("with the plan", item.after))),),
        fingerprint(DIFFERENT.id, subject, item.name), tool=TOOL,
    )  # fmt: skip


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
