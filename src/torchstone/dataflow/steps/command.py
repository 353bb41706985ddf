"""`torchstone flow steps`: the report on a few steps of a training script."""

from __future__ import annotations

from torchstone.core.errors import UsageError
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dataflow.options import StepsOptions
from torchstone.dataflow.steps.answer import TOOL, steps_answer, steps_measures
from torchstone.dataflow.steps.measuring import Outcome, measure_steps


def steps_command(options: StepsOptions) -> Report:
    """Run the script and report on its steps."""
    if options.steps < 1:
        raise UsageError(
            "flow steps: --steps", str(options.steps), Text("1 or more", "不小于 1"),
            Text("for example: --steps 20", "例如：--steps 20"),
        )  # fmt: skip
    return report_on_steps(options.script or options.call, measure_steps(options))


def report_on_steps(subject: str, outcome: Outcome) -> Report:
    """What was measured; a script that ended too early is a gap."""
    measured = outcome.measured
    gaps = []
    if outcome.failure:
        gaps.append(_gap(subject, Text(
            f"the program raised {outcome.failure} after {outcome.seen} optimizer steps",
            f"程序在 {outcome.seen} 个优化器步之后抛出 {outcome.failure}",
        )))  # fmt: skip
    elif measured is None:
        gaps.append(_gap(subject, Text(
            f"the program made {outcome.seen} optimizer steps; at least 3 are needed, as the first 2 are left out",
            f"程序只运行了 {outcome.seen} 个优化器步；至少需要 3 步，其中前 2 步不计",
        )))  # fmt: skip
    if measured is None:
        return Report(TOOL, gaps=tuple(gaps), subject=subject)
    return Report(
        TOOL,
        measures=steps_measures(measured),
        gaps=tuple(gaps),
        subject=subject,
        answer=steps_answer(subject, measured),
    )


def _gap(subject: str, text: Text) -> Gap:
    return Gap(
        subject,
        Message("flow.steps", text),
        "fix the program, or give it arguments with which it trains longer",
        close_zh="请修正程序，或传入使其训练更久的参数",
        failed=True,
        tool=TOOL,
    )
