"""The outputs of the phases as documents that a person reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchstone.conductor.jobs.job import Skipped
from torchstone.conductor.phases.design import Design
from torchstone.conductor.phases.execute import Execution
from torchstone.conductor.phases.plan import DEPTHS, Plan
from torchstone.conductor.phases.problems import (
    CONFIDENCE,
    COST,
    EFFECT_WEIGHT,
    EffectWords,
    EvidenceWords,
    Interpretation,
)
from torchstone.conductor.phases.verdicts import OutcomeWords, StateWords, Verification
from torchstone.conductor.project.facts import Feature, ProjectFacts
from torchstone.conductor.scenarios import all_scenarios
from torchstone.conductor.tools import all_tools
from torchstone.conductor.words import counted
from torchstone.core.quantity import human
from torchstone.core.text import words


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows), ""]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())


def _way(item: Skipped, zh: bool) -> str:
    """What would make a skipped tool run."""
    if item.close_zh:  # in words
        return f" ({item.close_zh if zh else item.close})"
    return f" (`{item.close}`)" if item.close else ""


def plan_markdown(plan: Plan, lang: str) -> str:
    zh = lang == "zh"
    facts = plan.facts
    out = [f"# {'分析计划' if zh else 'Plan'}: {_cell(facts.name)}", ""]
    out += [f"## {'代码库' if zh else 'The project'}", "", *_facts(facts, lang), ""]
    out += [f"## {'决策框架' if zh else 'Decisions'}", ""]
    for branch in plan.tree:
        answer = ("是" if branch.answer else "否") if zh else ("yes" if branch.answer else "no")
        tools = (
            f" → {', '.join(_both(name) for name in branch.tools)}"
            if branch.answer and branch.tools
            else ""
        )
        out.append(f"- {branch.question.get(lang)}: {answer}{tools}")
    out += ["", f"## {'工具执行清单' if zh else 'Runs, in their order'}", ""]
    head = (
        ("层", "工具", "运行", "原因", "预期")
        if zh
        else ("layer", "tool", "run", "why", "expected")
    )
    out += _table(head, ((job.layer, _both(job.tool), job.id, job.why.get(lang), job.expected.get(lang))
                         for job in plan.jobs))  # fmt: skip
    out += [f"## {'未执行' if zh else 'Not run'}", ""]
    out += [f"- {_both(item.tool)}: {item.why.get(lang)}{_way(item, zh)}"
            for item in plan.skipped] or ["-"]  # fmt: skip
    out += ["", f"## {'深度' if zh else 'What each depth runs'}", ""]
    out += [f"- `{name}`: {words.get(lang)}" for name, words in DEPTHS.items()]
    for name in plan.scope.scenarios:
        out += ["", *_scenario(name, lang)]
    return "\n".join(out) + "\n"


def _scenario(name: str, lang: str) -> list[str]:
    module = all_scenarios()[name]
    out = [
        f"## {module.TITLE.get(lang)}",
        "",
        " → ".join(step.get(lang) for step in module.STEPS),
        "",
    ]
    return out + [f"{n}. {item.title.get(lang)}" for n, item in enumerate(module.CHECKPOINTS, 1)]


def _both(tool: str) -> str:
    """Our name of a tool with the workflow's beside it."""
    known = {module.SEED_NAME: ours for ours, module in all_tools().items()}
    module = all_tools().get(tool)
    if module is not None:
        return f"{tool} ({module.SEED_NAME})" if module.SEED_NAME.lower() != tool else tool
    return f"{tool} ({known[tool]})" if tool in known else tool


def _facts(facts: ProjectFacts, lang: str) -> list[str]:
    zh = lang == "zh"
    rows = [
        ("规模" if zh else "size", f"{facts.files} 个文件，{facts.lines:,} 行 Python" if zh else f"{facts.files} files, {facts.lines:,} lines of Python"),
        ("torch", facts.torch or ("未声明" if zh else "not declared")),
        ("框架" if zh else "frameworks", ", ".join(facts.frameworks) or "-"),
        ("入口" if zh else "entry points", ", ".join(
            " ".join((item.path, *item.arguments)) for item in facts.entry_points[:8]) or "-"),
        ("模型" if zh else "models", ", ".join(f"{item.scope} ({item})" for item in facts.models[:8]) or "-"),
        ("训练循环" if zh else "training loops", ", ".join(f"{item.path}:{item.line}" for item in facts.training_loops) or "-"),
        ("并行" if zh else "parallel", _features(facts.parallel)),
        ("精度" if zh else "precision", _features(facts.precision)),
        ("组件" if zh else "components", _features(facts.components)),
        ("数据" if zh else "data", ", ".join(f"{item.path}:{item.line}" for item in facts.data[:8]) or "-"),
        ("测试" if zh else "tests", f"{len(facts.tests.files)} 个文件中 {facts.tests.count} 个" if zh else f"{facts.tests.count} in {len(facts.tests.files)} files"),
        ("git", f"{facts.git.commit[:12]}, {facts.git.dirty} {'个文件有改动' if zh else 'changed files'}" if facts.git else ("无" if zh else "none")),
    ]  # fmt: skip
    return [f"- {name}: {_cell(value)}" for name, value in rows]


def _features(features: tuple[Feature, ...]) -> str:
    return ", ".join(
        f"{item.name} ({item.places[0].path}:{item.places[0].line})" for item in features
    ) or "-"  # fmt: skip


def execution_markdown(execution: Execution, lang: str) -> str:
    zh = lang == "zh"
    head = (
        ("运行", "版本", "状态", "秒", "CPU 秒", "结果数")
        if zh
        else ("run", "version", "state", "seconds", "CPU seconds", "findings")
    )
    out = [f"# {'执行记录' if zh else 'Execution'}", ""]
    out += _table(head, (
        (item.job, item.version, item.state, f"{item.seconds:.1f}", f"{item.cpu_seconds:.1f}", str(len(item.report.findings)))
        for item in execution.results
    ))  # fmt: skip
    out += [f"## {'未能查看' if zh else 'Not looked at'}", ""]
    out += [
        f"- {gap.subject}: {gap.reason.say(lang)}"
        for item in execution.results
        for gap in item.report.gaps
    ] or ["-"]
    return "\n".join(out) + "\n"


def problems_markdown(found: Interpretation, lang: str) -> str:
    zh = lang == "zh"
    out = [f"# {'问题报告' if zh else 'Problems'}", ""]
    out.append(
        "优先级 P = S · R · C · E / (1 + K)" if zh else "Priority P = S · R · C · E / (1 + K):"
    )
    out += [
        "",
        f"- S {'影响权重' if zh else 'effect'}: "
        + ", ".join(f"{EffectWords[k].get(lang)} {v:g}" for k, v in EFFECT_WEIGHT.items()),
    ]
    out += [
        f"- C {'证据' if zh else 'evidence'}: "
        + ", ".join(f"{EvidenceWords[k].get(lang)} {v:g}" for k, v in CONFIDENCE.items())
    ]
    out += [
        f"- K {'修复成本' if zh else 'cost of the fix'}: "
        + ", ".join(f"{k} {v:g}" for k, v in COST.items()),
        "",
    ]
    for number, item in enumerate(found.problems, 1):
        p = item.priority
        out += [
            f"## {number}. {_cell(item.finding.what.say(lang))}", "",
            f"- {'编号' if zh else 'id'} `{item.id}`, {item.finding.rule}, {item.severity.value}, {EffectWords[item.effect].get(lang)}, {EvidenceWords[item.evidence].get(lang)}",
            f"- {'位置' if zh else 'where'}: " + ", ".join(dict.fromkeys(f"{f.path}:{f.line}" for f in (item.finding, *item.places))),
            f"- P = {p.severity:g} · {p.reach:.2f} · {p.confidence:g} · {p.exposure:g} / (1 + {p.cost:g}) = {p.value:.2f}",
        ]  # fmt: skip
        out += [f"- {_cell(step.get(lang))}" for step in item.cause] + [""]
    if found.causes:
        out += [f"## {'根本原因' if zh else 'Root causes'}", ""]
        out += [f"- {item.why.get(lang)}: {', '.join(item.problems)}" for item in found.causes] + [
            ""
        ]
    if found.older:
        out.append(f"{'更早的问题' if zh else 'older problems'}: {found.older}")
    if found.counted:
        out.append(
            ("未列出：" if zh else "not shown: ")
            + ", ".join(f"{name} {count}" for name, count in found.counted.items())
        )
    out += ["", f"## {'已排除' if zh else 'Set aside'} ({len(found.set_aside)})", ""]
    out += [
        f"- {item.finding.rule} {item.finding.path}:{item.finding.line}: {item.why.get(lang)}"
        for item in found.set_aside
    ] or ["-"]
    return "\n".join(out) + "\n"


def design_markdown(plan: Design, found: Interpretation, lang: str) -> str:
    zh = lang == "zh"
    out = [f"# {'解决方案' if zh else 'Solutions'}", ""]
    titles = {item.id: item.finding.what.say(lang) for item in found.problems}
    for number, step in enumerate(plan.steps, 1):
        out += [f"## {number}. {_cell(titles[step.problem])} (`{step.problem}`)", ""]
        if step.after:
            out.append(f"- {'先完成' if zh else 'after'}: {', '.join(step.after)}")
        for way in plan.of(step.problem):
            mark = ("**选定** " if zh else "**chosen** ") if way.id == step.solution else ""
            out.append(f"- {mark}`{way.id}` {way.kind}: {_cell(way.title.get(lang))}")
            out += [f"  - + {_cell(item.get(lang))}" for item in way.pros]
            out += [f"  - − {_cell(item.get(lang))}" for item in way.cons]
            lines = (
                f"{f'{way.lines} 行' if zh else counted(way.lines, 'line')}"
                if way.lines
                else ("需手动编写" if zh else "to be written")
            )
            out.append(
                f"  - {'复杂度' if zh else 'complexity'}: {lines}; {'风险' if zh else 'risk'}: {way.risk}"
            )
            if way.gain:
                size = human(way.gain.value, way.gain.unit)
                how = words(way.gain.how, lang)
                label = "收益" if zh else "gain"
                out.append(f"  - {label}: {words(way.gain.name, lang)} {size} ({how})")
        out.append("")
    out += [f"## {'风险与缓解' if zh else 'Risks, and how to contain them'}", ""]
    out += [f"- {item.get(lang)}" for item in plan.risks] or ["-"]
    out += [
        f"- {'已拒绝的提议' if zh else 'refused proposal'} ({item.problem}, {item.by}): {_cell(item.why)}"
        for item in plan.refused
    ]
    return "\n".join(out) + "\n"


def verification_markdown(done: Verification, found: Interpretation, lang: str) -> str:
    zh = lang == "zh"
    titles = {item.id: item.finding.what.say(lang) for item in found.problems}
    out = [f"# {'验证报告' if zh else 'Verification'}", ""]
    before, after = done.tests_before, done.tests_after
    words = {"none": "无测试" if zh else "no tests", "late": "超时" if zh else "not finished in time",
             "broken": "无法运行" if zh else "could not be run"}  # fmt: skip
    tests = f"{len(before.passed)} → {len(after.passed)} passed, {len(before.failed)} → {len(after.failed)} failed"
    out += [f"{'项目测试' if zh else 'Tests of the project'}: {words.get(before.state, tests)}", ""]
    head = (
        ("问题", "结论", "补丁", "检查或原因")
        if zh
        else ("problem", "verdict", "patch", "check, or why not")
    )
    out += _table(head, (
        (f"{item.problem} {titles.get(item.problem, '')}", OutcomeWords[item.outcome].get(lang),
         StateWords[item.state].get(lang), item.check.get(lang) or item.why.get(lang))
        for item in (*done.verdicts, *((done.together,) if done.together else ()))
    ))  # fmt: skip
    out += [f"## {'迭代计划' if zh else 'Next round'}", ""]
    open_ones = [item for item in done.verdicts if item.outcome != "fixed"]
    out += [f"- {item.problem}: {item.why.get(lang)}" for item in open_ones] or ["-"]
    out += [
        f"- {'下一轮应用' if zh else 'apply in the next round'}: {name}" for name in done.left_out
    ]
    out += [
        f"- {'修复之后显现' if zh else 'came to light after the fixes'}: "
        f"{item.rule} {item.path}:{item.line} {item.what.say(lang)}"
        for item in done.unmasked
    ]
    out += ["", f"## {'经验教训' if zh else 'Lessons'}", ""]
    out += [f"- {item.get(lang)}" for item in done.lessons] or ["-"]
    return "\n".join(out) + "\n"
