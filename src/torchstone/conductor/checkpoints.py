"""Checkpoints of a scenario: what must hold, which checks decide it, and how it was decided."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from torchstone.conductor.words import counted
from torchstone.core.evidence import State
from torchstone.core.finding import Finding, Severity
from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One point that the workflow wants looked at."""

    title: Text
    rules: tuple[str, ...]
    """Ids of the rules and probes that decide it; `TS1*` stands for all that begin so."""
    tools: tuple[str, ...]
    """Tools that must have run, one of them at least, for silence to mean anything; where some of
    them run the program, one of those."""


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """A checkpoint after a review."""

    scenario: str
    title: Text
    state: State
    """good: passed; bad: failed; warning: not decided."""
    how: Text


_STATIC = ("lint",)
"""Tools that read and run nothing: their silence alone passes no point that runs could fail."""
_ASKING = {"probes": "PR", "experiments": "EX"}
"""Tools that say of each rule whether it was asked, with the beginning of their rules."""


def decide(
    scenario: str,
    checkpoint: Checkpoint,
    findings: Iterable[Finding],
    ran: Collection[str],
    held: Collection[str],
) -> CheckpointResult:
    """Failed by the first finding of its rules; passed only where its tools really ran, and asked a rule of it:
    `held` are the rules that were asked of something which could have broken them."""
    against = [item for item in findings if decides(checkpoint, item.rule)]
    serious = [item for item in against if item.severity is not Severity.LOW]
    if serious:
        first = min(serious, key=lambda item: item.severity.rank)
        return CheckpointResult(scenario, checkpoint.title, "bad", Text(
            f"failed: {counted(len(serious), 'finding')}, first {first.rule} at {first.path}:{first.line}: {first.what.say('en')}",
            f"未通过：{len(serious)} 个问题，首个为 {first.path}:{first.line} 的 {first.rule}：{first.what.say('zh')}",
        ))  # fmt: skip
    used = [name for name in checkpoint.tools if name in ran]
    if not used:
        names = ", ".join(checkpoint.tools)
        return CheckpointResult(scenario, checkpoint.title, "warning", Text(
            f"not decided: {names} did not run", f"未判定：{names} 未运行",
        ))  # fmt: skip
    decided = [name for name in sorted(held) if decides(checkpoint, name)]
    used = [name for name in used if _has_asked(name, decided)]
    running = [name for name in checkpoint.tools if name not in _STATIC]
    if running and not set(used) - set(_STATIC):
        names = ", ".join(running)
        return CheckpointResult(scenario, checkpoint.title, "warning", Text(
            f"not decided: {names} saw nothing in the program that could have broken it",
            f"未判定：{names} 在程序运行中没有观察到可能违反该项的内容",
        ))  # fmt: skip
    others = [name for name in checkpoint.rules if not name.startswith(tuple(_ASKING.values()))]
    rules = ", ".join((*decided, *others))
    return CheckpointResult(scenario, checkpoint.title, "good", Text(
        f"passed: {', '.join(used)} ran, and none of {rules} was found",
        f"通过：{'、'.join(used)} 已运行，未发现 {rules}",
    ))  # fmt: skip


def _has_asked(tool: str, decided: Iterable[str]) -> bool:
    return tool not in _ASKING or any(name.startswith(_ASKING[tool]) for name in decided)


def decides(checkpoint: Checkpoint, rule: str) -> bool:
    return any(
        rule.startswith(name[:-1]) if name.endswith("*") else rule == name
        for name in checkpoint.rules
    )
