"""The first screen of a review: the verdict, and the five problems to fix first."""

from __future__ import annotations

from torchstone.conductor.changes.applying import accept_command
from torchstone.conductor.phases.problems import EffectWords, EvidenceWords
from torchstone.conductor.phases.verdicts import StateWords, Verdict
from torchstone.conductor.reporting.outcome import PATCH_STATES, Outcome, who_is_hit
from torchstone.conductor.tools.tests import test_run_of
from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.pictures import Check, Evidence, Strip, Table, Task, Tasks
from torchstone.core.quantity import human
from torchstone.core.text import Text, words

_TEST_WORDS = {
    "none": Text("none", "无"),
    "not run": Text("not run", "未运行"),
    "late": Text("too slow", "超时"),
    "broken": Text("broken", "无法运行"),
}
_GOALS_ZH = {"correctness": "正确性", "performance": "性能", "maintainability": "可维护性"}
_PLANNER = Text("planner", "内置规划器")
FIRST = 5
"""Problems on the first screen: more are not read."""


def first_screen(made: Outcome) -> Answer:
    """What is wrong, what to fix first, and what to do next."""
    problems, done = made.found.problems, made.verification
    worst = [item for item in problems if item.severity.value == "HIGH"]
    proven = len(done.proven)
    return Answer(
        headline=_judged(made, _headline(len(problems), len(worst), proven, len(done.with_others)))
        if problems or not made.interrupted
        else _INTERRUPTED,
        state="bad" if worst else "good" if _is_clean(made) else "warning",
        about=_about(made),
        warnings=_warnings(made),
        tiles=_tiles(made, len(worst), proven),
        pictures=(*_tasks(made), *_programs(made), *_checkpoints(made), *_not_looked_at(made)),
        next=_next(made),
    )


_INTERRUPTED = Text("Interrupted before the problems were worked out", "在得出问题之前被中断")


def _is_clean(made: Outcome) -> bool:
    """A tick says that the programs ran and nothing was found: not that nothing was run."""
    return not (made.found.problems or made.interrupted) and made.coverage.judged and _was_run(made)


def _was_run(made: Outcome) -> bool:
    return any(item.judged for item in made.coverage.started)


def _judged(made: Outcome, headline: Text) -> Text:
    """The headline, with what was not run before anything else."""
    if made.coverage.judged:
        if made.found.problems or _was_run(made):
            return headline
        return Text(
            f"Nothing found {_instead(made).en}; no program was run",
            f"{_instead(made).zh}未发现问题；未运行任何程序",
        )
    why = made.coverage.why
    if not made.found.problems:
        return Text(
            f"Not judged: no training step was reached ({why.en})",
            f"未判定：没有到达任何训练步（{why.zh}）",
        )
    return Text(
        f"Not judged: no training step was reached; {_instead(made).en}: {headline.en}",
        f"未判定：没有到达任何训练步；{_instead(made).zh}：{headline.zh}",
    )


def _instead(made: Outcome) -> Text:
    """What was done in the place of running the programs."""
    if count := len(made.coverage.built):
        models = "1 model" if count == 1 else f"{count} models"
        return Text(f"by reading and on {models}", f"通过阅读代码和 {count} 个模型")
    return Text("by reading", "通过阅读代码")


def _programs(made: Outcome) -> tuple[Evidence, ...]:
    """Every start that was found, and how far it came."""
    rows: list[tuple[str | Text, Text]] = [
        (item.path, Text(f"{item.steps} optimizer steps", f"{item.steps} 个优化步") if item.steps else item.stopped)
        for item in made.coverage.started
    ]  # fmt: skip
    trained = Text("a model, trained for a few steps on made inputs", "模型：以生成的输入训练数步")
    rows += [(item, trained) for item in made.coverage.built]
    if not rows:
        return ()
    columns = (Text("program", "程序"), Text("how far it came", "进展"))
    return (Table(Text("Programs", "程序"), columns, tuple(rows)),)


def _headline(total: int, worst: int, proven: int, with_others: int) -> Text:
    if not total:
        return Text("Nothing found that we would stop a merge for", "未发现应阻止合并的问题")
    more = f", {proven} with a proven patch" if proven else ""
    more_zh = f"，其中 {proven} 个有已验证的补丁" if proven else ""
    if with_others:
        more += f", {with_others} that {'goes' if with_others == 1 else 'go'} with them"
        more_zh += f"，另有 {with_others} 个随之消失"
    problems = "1 problem" if total == 1 else f"{total} problems"
    return Text(f"{problems} to fix, {worst} of them HIGH{more}",
                f"{total} 个问题待修复，其中 {worst} 个为 HIGH{more_zh}")  # fmt: skip


def _about(made: Outcome) -> tuple[Fact, ...]:
    facts, scope = made.plan.facts, made.plan.scope
    found = [feature.name for feature in (*facts.parallel, *facts.precision, *facts.components)]
    return (
        Fact(
            Text("project", "项目"),
            Text(
                f"{facts.name}: {facts.files} files, {facts.lines:,} lines",
                f"{facts.name}：{facts.files} 个文件，{facts.lines:,} 行",
            ),
        ),
        *([Fact(Text("uses", "使用"), ", ".join(found))] if found else []),
        Fact(Text("goals", "目标"), Text(
            ", ".join(scope.goals), "、".join(_GOALS_ZH.get(goal, goal) for goal in scope.goals)
        )),
        Fact(Text("depth", "深度"), scope.depth),
        *([Fact(Text("scenarios", "场景"), ", ".join(scope.scenarios))] if scope.scenarios else []),
        Fact(Text("led by", "主导"), _PLANNER if made.driver == _PLANNER.en else made.driver),
    )  # fmt: skip


def _warnings(made: Outcome) -> tuple[Text, ...]:
    warnings: list[Text] = []
    if made.interrupted:
        warnings.append(Text(
            f"The review was interrupted; go on with: torchstone review --resume {made.folder}",
            f"评审被中断；继续请运行：torchstone review --resume {made.folder}",
        ))  # fmt: skip
    if made.applied:
        files = ", ".join(made.applied)
        warnings.append(Text(
            f"The proven patches are in the tree: {files}. To take them back: {made.undo}",
            f"已验证的补丁已写入工作区：{files}。撤销请运行：{made.undo}",
        ))  # fmt: skip
    if made.waiting:
        command = accept_command(made.folder, made.waiting)
        by = ", ".join(sorted({way.by for way in made.waiting}))
        warnings.append(Text(
            f"Proven but not written by our tools ({by}): read the patches, then: {command}",
            f"已验证但并非由本工具编写（{by}）：请阅读补丁，然后运行：{command}",
        ))  # fmt: skip
    tests = test_run_of(made.execution.reports)
    if tests.state == "ran" and tests.failed:
        warnings.append(Text(
            f"{len(tests.failed)} of the project's tests failed before any change",
            f"修改之前项目已有 {len(tests.failed)} 个测试失败",
        ))  # fmt: skip
    if tests.state in ("late", "broken"):
        warnings.append(Text("The project's tests could not be run to their end",
                             "项目测试未能运行至结束"))  # fmt: skip
    return tuple(warnings)


def _tiles(made: Outcome, worst: int, proven: int) -> tuple[Tile, ...]:
    found = made.found
    tests = test_run_of(made.execution.reports)
    cpu = sum(item.cpu_seconds for item in made.execution.results) + made.verification.cpu_seconds
    total = len(tests.passed) + len(tests.failed)
    state = "not run" if tests.state == "none" and made.plan.facts.tests.files else tests.state
    said = f"{len(tests.passed)} / {total}" if tests.state == "ran" else _TEST_WORDS[state]
    counted = ", ".join(f"{name} {count}" for name, count in found.counted.items())
    return (
        Tile(Text("problems", "问题"), str(len(found.problems)),
             _severity_words(worst, found.older), "bad" if worst else "plain"),
        Tile(Text("proven patches", "已验证补丁"), str(proven),
             Text(f"of {len(made.design.steps)} worked on", f"共处理 {len(made.design.steps)} 个"),
             "good" if proven else "plain"),
        Tile(Text("tests", "测试"), said,
             Text("passed before any change", "修改前通过") if tests.state == "ran" else "",
             "bad" if tests.failed else "plain"),
        Tile(Text("set aside", "已排除"), str(len(found.set_aside)),
             Text(counted and f"not shown: {counted}", counted and f"未列出：{counted}")),
        Tile(Text("work", "用时"), human(made.execution.seconds + made.verification.seconds, "s"),
             Text(f"{cpu:.0f} s of CPU in tools", f"工具 CPU {cpu:.0f} 秒")),
    )  # fmt: skip


def _severity_words(worst: int, older: int) -> Text:
    more = (f"; {older} older not listed", f"；另有 {older} 个更早的未列出") if older else ("", "")
    return Text(f"{worst} HIGH{more[0]}", f"{worst} 个 HIGH{more[1]}")


def _tasks(made: Outcome) -> tuple[Evidence, ...]:
    """The five problems to fix first; what only a model suggests is never among them, nor what goes
    with the patch of another."""
    entries = {entry.problem: entry for entry in made.guide.entries}
    with_others = {item.problem for item in made.verification.with_others}
    shown = [
        item for item in made.found.problems
        if item.evidence != "suggested" and item.id not in with_others
    ][:FIRST]  # fmt: skip
    tasks = []
    for problem in shown:
        verdict = made.verification.of(problem.id)
        entry = entries.get(problem.id)
        gain = problem.finding.gain
        hit = who_is_hit(problem)
        facts: list[Text | str] = [
            problem.severity.value,
            EffectWords[problem.effect],
            *([hit] if hit.en else []),
            EvidenceWords[problem.evidence],
        ]
        if problem.places:
            facts.append(
                Text(f"{len(problem.places) + 1} places", f"共 {len(problem.places) + 1} 处")
            )
        if gain:
            size = human(gain.value, gain.unit)
            facts.append(
                Text(f"{words(gain.name, 'en')}: {size}", f"{words(gain.name, 'zh')}：{size}")
            )
        good = (
            verdict is not None and verdict.state in ("proven", "applies") and entry and entry.patch
            and not _is_in_the_tree(made, verdict)
        )  # fmt: skip
        tasks.append(Task(
            Text(problem.finding.what.say("en"), problem.finding.what.say("zh")), problem.where, tuple(facts),
            PATCH_STATES[verdict.state] if verdict else "plain",
            StateWords[verdict.state] if verdict else StateWords["sketch"],
            f"git apply {made.folder}/patches/{entry.patch}" if good and entry else "",
        ))  # fmt: skip
    return (Tasks(Text("Fix first", "优先修复"), tuple(tasks)),) if tasks else ()


def _is_in_the_tree(made: Outcome, verdict: Verdict) -> bool:
    """Was its patch applied by this review?"""
    left_out = verdict.solution in made.verification.left_out
    waits = any(way.id == verdict.solution for way in made.waiting)
    return bool(made.applied) and verdict.state == "proven" and not left_out and not waits


def _checkpoints(made: Outcome) -> tuple[Evidence, ...]:
    names = dict.fromkeys(item.scenario for item in made.checkpoints)
    return tuple(
        Strip(
            Text(f"Checkpoints: {name}", f"检查点：{name}"),
            tuple(Check(item.title, item.state, item.how) for item in made.checkpoints if item.scenario == name),
        )
        for name in names
    )  # fmt: skip


def _not_looked_at(made: Outcome) -> tuple[Evidence, ...]:
    rows = [
        (item.tool, item.why, Text(item.close, item.close_zh or item.close))
        for item in made.skipped
    ]
    rows += [
        (gap.subject, Text(gap.reason.say("en"), gap.reason.say("zh")), Text(gap.close, gap.say_close("zh")))
        for result in made.execution.results for gap in result.report.gaps
    ][:20]  # fmt: skip
    if not rows:
        return ()
    columns = (Text("what", "内容"), Text("why", "原因"), Text("run", "运行"))
    return (Table(Text("Not looked at", "未查看"), columns, tuple(rows)),)


def _next(made: Outcome) -> tuple[str, ...]:
    if not made.folder:
        return ()
    if made.interrupted:  # the files that the other steps read may not be there yet
        return (f"torchstone review --resume {made.folder}",)
    steps = [f"less {made.folder}/guide.md"]
    if made.applied:
        steps += [made.undo]
    # what no run has proven is read before it is applied
    for command, name, joint in (
        ("git apply", "proven", made.verification.together),
        ("less", "all", made.verification.everything),
    ):
        if not made.applied and not made.waiting and joint is not None and joint.outcome == "fixed":
            steps.append(f"{command} {made.folder}/patches/{name}.patch")
            break
    return (
        *steps,
        f"torchstone review verify {made.folder}",
        "torchstone review mark ID accept|reject|false-positive",
    )
