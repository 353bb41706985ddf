"""Phase 5: what a developer does, in the words of the workflow's template, with patches."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.conductor.changes.patches import FileChange, PatchError, changes_of, diff_of
from torchstone.conductor.phases.design import Design, Solution
from torchstone.conductor.phases.problems import EffectWords, Interpretation, Problem
from torchstone.conductor.phases.verdicts import StateWords, Verdict, Verification
from torchstone.conductor.words import counted
from torchstone.core.text import Text

_HEADINGS = {
    "guide": Text("Implementation guide", "实施指南"),
    "tried": Text("Tried", "试验结果"),
    "overview": Text("Problem overview", "问题概述"),
    "solution": Text("Solution", "解决方案"),
    "changes": Text("Code changes", "代码修改"),
    "file": Text("File", "文件"),
    "place": Text("Location", "位置"),
    "before": Text("Before", "修改前"),
    "after": Text("After", "修改后"),
    "explained": Text("What the change does", "修改说明"),
    "steps": Text("Steps", "实施步骤"),
    "cautions": Text("Cautions", "注意事项"),
    "verify": Text("How to verify", "验证方法"),
}

Say = Callable[[str], str]
NOT_VERIFIED = Verification(())


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of one file, before and after."""

    path: str
    first: int
    last: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Entry:
    """The guide to one problem."""

    problem: str
    title: Text
    overview: Text
    solution: Text
    hunks: tuple[Hunk, ...]
    explained: Text
    steps: tuple[Text, ...]
    cautions: tuple[Text, ...]
    verify: Text
    patch: str = ""
    """File name below patches/."""
    diff: str = ""
    way: str = ""
    """Id of the solution that it describes."""


@dataclass(frozen=True, slots=True)
class Guide:
    """All entries in the order of the work."""

    entries: tuple[Entry, ...]
    checklist: tuple[Text, ...]


def make_guide(found: Interpretation, plan: Design, root: Path, run: str) -> Guide:
    """An entry for every problem that has a chosen solution."""
    problems = {item.id: item for item in found.problems}
    entries = [
        _entry(number, problems[step.problem], solution, step.after, root, run)
        for number, step in enumerate(plan.steps, 1)
        if (solution := plan.chosen(step.problem)) is not None
    ]
    checklist = tuple(
        Text(f"{item.title.en}: {item.verify.en}", f"{item.title.zh}：{item.verify.zh}")
        for item in entries
    )
    return Guide(tuple(entries), checklist)


def without_split_off(guide: Guide, done: Verification, root: Path) -> Guide:
    """The guide with what is proven of a change, where a part of it was split off."""
    kept = {item.problem: item.kept for item in done.verdicts if item.kept}
    entries = []
    for entry in guide.entries:
        if entry.problem in kept:
            changes = changes_of(root, kept[entry.problem])
            hunks = tuple(hunk for change in changes for hunk in hunks_of(change))
            entry = replace(entry, hunks=hunks, diff=diff_of(changes))
        entries.append(entry)
    return replace(guide, entries=tuple(entries))


def _entry(
    number: int, problem: Problem, way: Solution, after: tuple[str, ...], root: Path, run: str
) -> Entry:
    finding = problem.finding
    changes: tuple[FileChange, ...] = ()
    if way.edits:
        try:
            changes = changes_of(root, way.edits)
        except PatchError:
            changes = ()
    name = f"{number:02d}-{problem.id}.patch" if changes else ""
    hunks = tuple(hunk for change in changes for hunk in hunks_of(change))
    effect = EffectWords[problem.effect]
    more = len(problem.places)
    where = Text(f"{problem.where}" + (f" and {counted(more, 'more place')}" if more else ""),
                 f"{problem.where}" + (f" 及另外 {more} 处" if more else ""))  # fmt: skip
    return Entry(
        problem.id,
        Text(finding.what.say("en"), finding.what.say("zh")),
        Text(f"{where.en}: {finding.what.say('en')}. Effect: {effect.en}. {_sentence(finding.why.say('en'))}",
             f"{where.zh}：{finding.what.say('zh')}。影响：{effect.zh}。{finding.why.say('zh')}"),
        way.title, hunks, _explained(way, problem), _steps(name, after, problem), _cautions(way),
        _how_to_verify(problem, run), name, diff_of(changes), way.id,
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) or not text else ".")


def hunks_of(change: FileChange) -> tuple[Hunk, ...]:
    """The changed lines of a file with nothing around them."""
    old, new = change.before.splitlines(), change.after.splitlines()
    hunks = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            # an insertion is shown with the line before it
            start = a - 1 if a == b and a > 0 else a
            lead = old[start:a]
            hunks.append(Hunk(change.path, start + 1, max(b, start + 1),
                              "\n".join(old[start:b]), "\n".join([*lead, *new[c:d]])))  # fmt: skip
    return tuple(hunks)


def _explained(way: Solution, problem: Problem) -> Text:
    pros = "; ".join(item.en for item in way.pros)
    pros_zh = "；".join(item.zh for item in way.pros)
    remedy = problem.finding.remedy
    return Text(f"{_sentence(remedy.say('en') or way.title.en)} {_sentence(pros)}".strip(),
                f"{remedy.say('zh') or way.title.zh}。{pros_zh}".strip())  # fmt: skip


def _steps(patch: str, after: tuple[str, ...], problem: Problem) -> tuple[Text, ...]:
    steps: list[Text] = []
    if after:
        names = ", ".join(after)
        steps.append(
            Text(
                f"do {names} first: it changes the same lines", f"先完成 {names}：它们修改相同的行"
            )
        )
    if patch:
        steps.append(Text(f"git apply patches/{patch}", f"git apply patches/{patch}"))
        steps.append(Text("read the diff in its surroundings", "结合上下文审阅差异"))
    else:
        steps.append(
            Text(f"open {problem.where} and make the change", f"打开 {problem.where} 并修改")
        )
    steps.append(
        Text("run the check below, then the project's tests", "运行下述检查，再运行项目测试")
    )
    return tuple(steps)


def _cautions(way: Solution) -> tuple[Text, ...]:
    cautions = list(way.cons)
    if way.risk != "low":
        cautions.append(Text("train a few hundred steps and compare the loss with the run before",
                             "训练数百步，并与修改前的损失曲线对比"))  # fmt: skip
    cautions.append(Text("checkpoints written before the change stay as they are",
                         "修改前写出的检查点保持原样"))  # fmt: skip
    return tuple(cautions)


def _how_to_verify(problem: Problem, run: str) -> Text:
    """The experiment that showed it, again: before the change with the patch, afterwards as it is."""
    command = f"torchstone review --prove {shlex.quote(run)} {problem.id}"
    return Text(
        f"`{command}`: before the change it shows the fault without the patch and its absence with it; "
        "after the change it says that the fault is gone",
        f"`{command}`：修改之前，它展示没有补丁时的故障以及应用补丁后的消失；修改之后，它说明故障已消失",
    )


def is_dropped(entry: Entry, done: Verification) -> bool:
    """Whether the patch of an entry was tried and does not hold: nobody is asked to apply it."""
    verdict = done.of(entry.problem)
    return verdict is not None and verdict.solution == entry.way and verdict.state == "dropped"


def guide_markdown(guide: Guide, lang: str, done: Verification = NOT_VERIFIED) -> str:
    """The guide as a document, in the order of the template; `done`: what became of each change."""

    def say(key: str) -> str:
        return _HEADINGS[key].get(lang)

    zh = lang == "zh"
    out: list[str] = [f"# {say('guide')}", ""]
    out += ["## 前提条件与分阶段实施" if zh else "## Before you start, and in which order", ""]
    out += [
        f"- {'工作区干净，可用 git 回退' if zh else 'a clean work tree, so that git can take a change back'}",
        f"- {'逐个应用补丁，每个之后运行其检查' if zh else 'apply the patches one by one and run the check of each'}",
        f"- {'每个补丁基于评审时的代码；一次应用多个请用 proven.patch 或 all.patch' if zh else 'each patch fits the tree as it was reviewed; for several at once take proven.patch or all.patch'}",
        f"- {'先在单卡、短步数上验证，再扩大规模' if zh else 'try one device and few steps first, then the whole job'}",
        "",
    ]  # fmt: skip
    for entry in guide.entries:
        out += _entry_markdown(entry, done.of(entry.problem), say, lang)
    out += ["## 验证检查清单" if zh else "## Checklist", ""]
    with_others = {item.problem for item in done.with_others}
    out += [
        f"- [ ] {item.get(lang)}"
        for entry, item in zip(guide.entries, guide.checklist, strict=True)
        if entry.problem not in with_others
    ]
    out += ["", "## 参考资料" if zh else "## References", ""]
    out += [f"- `torchstone explain {name}`" for name in ("unsafe_ops", "numerical_issues", "reduction_patterns", "common_fixes")]  # fmt: skip
    return "\n".join(out) + "\n"


def _entry_markdown(entry: Entry, verdict: Verdict | None, say: Say, lang: str) -> list[str]:
    colon = "：" if lang == "zh" else ": "
    out = [f"## {say('guide')}{colon}{entry.title.get(lang)}", ""]
    if verdict is not None:
        shown = verdict.check.get(lang) or verdict.why.get(lang)
        told = StateWords[verdict.state].get(lang) + (f"{colon}{shown}" if shown else "")
        out += [f"**{say('tried')}**: {told}", ""]
    out += [f"### {say('overview')}", entry.overview.get(lang), ""]
    if verdict is not None and verdict.state == "with others":
        return out  # nothing is left to do here
    if verdict is not None and verdict.solution == entry.way and verdict.state == "dropped":
        out += _without_patch(entry, verdict, say, lang)
    else:
        out += _with_patch(entry, say, lang)
    out += [f"### {say('cautions')}", *(f"- {item.get(lang)}" for item in entry.cautions), ""]
    out += [f"### {say('verify')}", entry.verify.get(lang), ""]
    return out


def _with_patch(entry: Entry, say: Say, lang: str) -> list[str]:
    out = [f"### {say('solution')}", entry.solution.get(lang), "", f"### {say('changes')}"]
    for hunk in entry.hunks:
        out += [
            f"**{say('file')}**: {hunk.path}",
            f"**{say('place')}**: {hunk.first}-{hunk.last}",
            "",
        ]
        for key, text in (("before", hunk.before), ("after", hunk.after)):
            fence = _fence(text)
            out += [f"**{say(key)}**:", f"{fence}python", text, fence, ""]
    if not entry.hunks:
        out += [_NO_EDIT.get(lang), ""]
    out += [f"### {say('explained')}", entry.explained.get(lang), ""]
    steps = (f"{n}. {item.get(lang)}" for n, item in enumerate(entry.steps, 1))
    return [*out, f"### {say('steps')}", *steps, ""]


def _without_patch(entry: Entry, verdict: Verdict, say: Say, lang: str) -> list[str]:
    """A change that was tried and dropped is described, never offered."""
    why = verdict.why.get(lang)
    return [
        f"### {say('solution')}",
        _DROPPED.get(lang).format(solution=entry.solution.get(lang), why=why),
        "",
        f"### {say('steps')}",
        f"1. {_BY_HAND.get(lang)}",
        "",
    ]


_NO_EDIT = Text(
    "No tool has an edit; change it by hand as described above.",
    "没有工具给出修改；请按上文手动修改。",
)
_DROPPED = Text(
    "This change was tried in a copy of the project and dropped ({why}): {solution}",
    "该修改已在项目副本中试过并被放弃（{why}）：{solution}",
)
_BY_HAND = Text(
    "write another change by hand, then run the check below and the project's tests",
    "请手动编写其他修改，然后运行下述检查与项目测试",
)


def _fence(text: str) -> str:
    """A fence longer than any in the text: source may hold one."""
    longest = max((len(run) for run in _runs(text)), default=0)
    return "`" * max(3, longest + 1)


def _runs(text: str) -> list[str]:
    return re.findall(r"`+", text)
