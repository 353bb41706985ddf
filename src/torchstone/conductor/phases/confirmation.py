"""Whether a fix is really what turned a run: the last question before a patch is called proven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchstone.conductor.changes.hunks import (
    Part,
    has_meaning,
    parts_of,
    with_decorator,
    without,
    without_bodies,
)
from torchstone.conductor.changes.patches import FileChange
from torchstone.conductor.experiments.checks.constants import CONSTANTS, decorator_of
from torchstone.core.finding import Finding
from torchstone.core.text import Text

MOST_HUNKS = 8
"""Separate parts of one change that are tried one by one; a fix of one problem has fewer."""
Shows = Callable[[tuple[FileChange, ...]], bool]
"""Whether the runs still show the fault (or fail) on the tree with these changes."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is asked of a change before it counts as proven."""

    changes: tuple[FileChange, ...]
    shows: Shows
    by_others: bool
    """A model, an agent or a person wrote it: every part of it must be needed."""
    by_checks: bool
    """A check that somebody wrote shows the fault: it must be the code that decides it."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a change is not proven although the fault is gone."""

    why: Text
    idle: tuple[Part, ...] = ()
    """Parts without which the fault is gone as well."""


def refuse_proof(proof: Proof) -> Objection | None:
    """None where the change is proven."""
    if proof.by_checks and not proof.shows(()):
        said = Text(
            "the check does not fail again when the change is taken back",
            "撤销修改之后该检查没有再次失败",
        )
        return Objection(said)
    if proof.by_checks:
        removed = without_bodies(proof.changes)
        if removed and not proof.shows(removed):
            said = Text(
                "the check still passes when the body of the changed function is removed: it does not call it",
                "删除被修改函数的函数体之后该检查仍然通过：它并未调用该函数",
            )
            return Objection(said)
        for constant in CONSTANTS:
            changed = with_decorator(proof.changes, decorator_of(constant))
            if changed and not proof.shows(changed):
                return Objection(_accepts(constant))
    if not proof.by_others:
        return None
    parts = [item for item in parts_of(proof.changes) if has_meaning(proof.changes, item)]
    if len(parts) > MOST_HUNKS:
        said = Text(
            f"the change has {len(parts)} separate parts, more than can be tried one by one ({MOST_HUNKS})",
            f"该修改有 {len(parts)} 处独立改动，超出可逐一尝试的数量（{MOST_HUNKS}）",
        )
        return Objection(said)
    idle = tuple(
        item for item in parts if len(parts) > 1 and not proof.shows(without(proof.changes, item))
    )
    return Objection(_idle(idle), idle) if idle else None


def _accepts(constant: int) -> Text:
    return Text(
        f"the check also passes when the changed function does nothing but answer {constant} everywhere: "
        "compare its answer with values that are known to be right",
        f"被修改的函数什么都不做、只返回全 {constant} 的结果时该检查也通过：请将结果与已知正确的数值比较",
    )


def places_of(parts: Sequence[Part]) -> str:
    """Where parts of a change begin."""
    return ", ".join(part[0].where for part in parts)


def _idle(parts: Sequence[Part]) -> Text:
    places = places_of(parts)
    return Text(
        f"the fault is gone without this part of the change, so that nothing proves it: {places}; "
        "submit it as a change of its own",
        f"不需要该部分修改故障即消失，因此没有证据支持它：{places}；请将其作为单独的修改提交",
    )


def is_by_checks(findings: list[Finding]) -> bool:
    """Whether only checks that somebody wrote show the fault."""
    shown = [
        item for item in findings if item.tool in ("checks", "dryrun", "probes", "experiments")
    ]
    return bool(shown) and all(item.tool == "checks" for item in shown)
