"""Phase 1: which tools look at what, in which order, and why."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from torchstone.conductor.choices import Choice, Lead, Option
from torchstone.conductor.experiments.checks.check import Check
from torchstone.conductor.jobs.job import GOALS, Depth, Job, Request, Scope, Skipped
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.conductor.scenarios import all_scenarios
from torchstone.conductor.tools import all_tools, checks, tests
from torchstone.core.text import Text

DEPTHS: dict[Depth, Text] = {
    "quick": Text("static rules and ruff; nothing of the project is run",
                  "静态规则与 ruff；不运行项目代码"),
    "standard": Text(
        "also mypy, the project's tests, dry runs of its scripts on one rank and on as many as they are written for, "
        "and the probes of its scenarios",
        "另含 mypy、项目自带测试、脚本在单 rank 及其目标 rank 数上的试运行，以及场景探针"),
    "deep": Text("also dry runs on four ranks, cost of the models, checkpoints, and the data pipeline",
                 "另含四个 rank 的试运行、模型成本、检查点与数据流水线"),
}  # fmt: skip
_TREE = {
    "correctness": (Text("correctness: shapes, dtypes and ranks by running",
                         "正确性：通过运行检查形状、数据类型与 rank"),
                    ("PyTea", "JaxType")),
    "performance": (Text("performance: rules and cost", "性能：规则与成本"), ("PyAssist",)),
    "maintainability": (Text("maintainability: types and code quality", "可维护性：类型与代码质量"),
                        ("MyPy",)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Branch:
    """One question of the decision tree, its answer, and the tools that follow from it."""

    question: Text
    answer: bool
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be run."""

    facts: ProjectFacts
    scope: Scope
    tree: tuple[Branch, ...]
    jobs: tuple[Job, ...]
    skipped: tuple[Skipped, ...]
    reason: str = ""


def make_plan(
    facts: ProjectFacts,
    scope: Scope,
    wanted: tuple[str, ...],
    lead: Lead,
    given: tuple[Check, ...] = (),
) -> Plan:
    """Every tool is asked what it would do; the driver chooses among the offers."""
    scenarios = scope.scenarios or tuple(
        name for name, module in all_scenarios().items() if module.applies(facts)
    )
    scope = Scope(scope.goals, scope.depth, scope.component, scenarios, scope.seconds)
    offered: list[tuple[Job, bool]] = []
    skipped: list[Skipped] = []
    for name, module in all_tools().items():
        limit = _limit(name, module, scope, wanted)
        offer = module.offer(Request(facts, scope, given))
        if isinstance(offer, Skipped):
            skipped.append(offer)
        elif limit is not None:
            skipped.append(Skipped(name, limit))
        elif not module.version():
            missing = Text("it is not installed", "未安装")
            skipped.append(Skipped(name, missing, f"pip install {name}"))
        else:
            good = bool(wanted) or bool(set(module.GOALS) & set(scope.goals))
            if not good:
                goals = ", ".join(module.GOALS)
                skipped.append(
                    Skipped(name, Text(f"belongs to the goal {goals}", f"属于目标 {goals}"))
                )
            offered += [(job, good) for job in offer]
    decision = lead.choose(_choice(offered))
    chosen = tuple(job for job, _ in offered if job.id in decision.chosen)
    taken = {job.tool for job in chosen}
    return Plan(facts, scope, _tree(scope, wanted), chosen,
                tuple(item for item in skipped if item.tool not in taken), decision.reason)  # fmt: skip


def _limit(name: str, module: ModuleType, scope: Scope, wanted: tuple[str, ...]) -> Text | None:
    """What the user's own limits keep out; whoever leads chooses within them."""
    if name == checks.NAME:  # they run because somebody gave them
        return None
    if wanted and name != tests.NAME:  # tests judge every change, whichever tool found the problem
        return None if name in wanted else Text("not among --tools", "不在 --tools 之中")
    if not scope.reaches(module.DEPTH):
        return Text(f"runs from --depth {module.DEPTH} on", f"自 --depth {module.DEPTH} 起运行")
    return None


def _choice(offered: list[tuple[Job, bool]]) -> Choice:
    return Choice(
        "plan.jobs", "plan",
        Text("which of these runs shall be made?", "应执行哪些运行？"),
        tuple(Option(job.id, job.why, good) for job, good in offered),
        least=1 if offered else 0,
    )  # fmt: skip


def _tree(scope: Scope, wanted: tuple[str, ...]) -> tuple[Branch, ...]:
    branches = [
        Branch(words, not wanted and goal in scope.goals, tools)
        for goal, (words, tools) in _TREE.items()
    ]
    component = Text(f"a component: {scope.component or 'none named'}",
                     f"特定组件：{scope.component or '未指定'}")  # fmt: skip
    branches.append(Branch(component, bool(scope.component), scope.scenarios))
    words = DEPTHS[scope.depth]
    depth = Text(f"depth {scope.depth}: {words.en}", f"深度 {scope.depth}：{words.zh}")
    return (*branches, Branch(depth, True, ()))


def goals_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """The goals that were named; none named means the general set."""
    return names or GOALS
