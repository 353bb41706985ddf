"""How far each program of the project came: what was not run is never called clean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchstone.conductor.experiments import BUILT
from torchstone.conductor.phases.execute import STEPS, ToolResult
from torchstone.conductor.phases.plan import Plan
from torchstone.core.text import Text

_RUNNING = ("dryrun", "probes", "experiments")
"""Tools that run the project's programs."""


@dataclass(frozen=True, slots=True)
class Started:
    """One program that a person would start."""

    path: str
    steps: int = 0
    """Optimizer steps of the run that came furthest."""
    found: int = 0
    """What the runs of it have shown."""
    stopped: Text = Text("", "")
    """Why it came no further; empty where it came to a step."""

    @property
    def judged(self) -> bool:
        return self.steps > 0 or self.found > 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """All programs, and whether anything that should have been run was judged."""

    started: tuple[Started, ...]
    wanted: bool
    """The user asked for runs: neither `--depth quick` nor `--tools` leaves them out."""
    built: tuple[Text, ...] = ()
    """Models that were trained on made inputs, because no program came to a step."""

    @property
    def judged(self) -> bool:
        return not self.wanted or any(item.judged for item in self.started)

    @property
    def why(self) -> Text:
        """Why nothing was judged, in one clause."""
        if not self.started:
            return Text("no program that trains was found", "未找到进行训练的程序")
        first = self.started[0]
        return Text(f"{first.path}: {first.stopped.en}", f"{first.path}：{first.stopped.zh}")


def cover(plan: Plan, results: Sequence[ToolResult], tools: Sequence[str]) -> Coverage:
    """`tools`: those that the user limited the review to; empty for all."""
    wanted = (
        plan.scope.reaches("standard")
        and "correctness" in plan.scope.goals
        and (not tools or bool(set(tools) & set(_RUNNING)))
    )
    running = [item for item in results if item.tool in _RUNNING]
    paths = [item.path for item in plan.facts.entry_points if item.trains or item.launched]
    jobs = {job.id: job for job in plan.jobs}
    started = []
    for path in paths:
        own = [item for item in running if item.job in jobs and path in jobs[item.job].arguments]
        if own or not running:
            started.append(_started(path, own))
    built = [
        item.label for row in results for item in row.report.measures if item.name.startswith(BUILT)
    ]
    return Coverage(tuple(started), wanted, tuple(built))


def _started(path: str, results: Iterable[ToolResult]) -> Started:
    rows = list(results)
    steps = max(
        (int(item.value) for row in rows for item in row.report.measures if item.name in STEPS),
        default=0,
    )
    found = sum(len(row.report.findings) for row in rows)
    gaps = [gap for row in rows for gap in row.report.gaps]
    first = next((gap for gap in gaps if gap.failed), gaps[0] if gaps else None)
    if steps:
        stopped = Text("", "")
    elif first is not None:
        stopped = Text(first.reason.say("en"), first.reason.say("zh"))
    else:
        stopped = Text("it made no optimizer step", "没有进行任何优化步")
    return Started(path, steps, found, stopped)
