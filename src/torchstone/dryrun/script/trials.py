"""Tries fixes: a copy of the program goes on with each, and tells how far it came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchstone.dryrun.record import Record, TriedFix
from torchstone.dryrun.script.forks import Forks
from torchstone.dryrun.session import Session
from torchstone.dryrun.shapes.fixes import Candidate, candidates
from torchstone.observe.where import PROGRAM

MOST = 5
"""Fixes tried for one refused call: the list is sorted by likelihood."""


class Trials:
    """Stands behind refused calls."""

    def __init__(self, session: Session, forks: Forks) -> None:
        self._session = session
        self._forks = forks
        self._applied: dict[object, Candidate] = {}
        self._tried: set[object] = set()

    def repair(self, error: BaseException, func: Any, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """In a copy that tries a fix: the result of the fixed call. Else nothing."""
        spot = PROGRAM.here(3)
        if spot in self._applied:
            return True, self._applied[spot].call(func, args, kwargs)
        if not self._session.settings.try_fixes or self._forks.in_trial or spot in self._tried:
            return False, None
        self._tried.add(spot)
        fixes: list[TriedFix] = []
        module = self._session.modules[-1] if self._session.modules else None
        for candidate in candidates(func, args, kwargs, module):
            if len(fixes) >= MOST:
                break
            if not _accepted(candidate, func, args, kwargs):
                continue
            record = self._forks.trial()
            if record is None:
                self._applied[spot] = candidate
                return True, candidate.call(func, args, kwargs)
            fixes.append(replace(_judged(candidate, record), source=candidate.source))
        fixes.sort(key=lambda item: not item.works)
        known = self._session.errors.get(id(error))
        if known is not None:
            self._session.errors[id(error)] = replace(known, fixes=tuple(fixes))
        return False, None


def _accepted(candidate: Candidate, func: Any, args: Any, kwargs: Any) -> bool:
    """Would torch take the call itself?"""
    if candidate.changes_layer:
        return True
    try:
        candidate.call(func, args, kwargs)
    except Exception:  # the call is refused: this change is no fix
        return False
    return True


def _judged(candidate: Candidate, record: Record) -> TriedFix:
    place = record.ending_place
    if record.ending in ("end", "budget", "exit"):
        steps = record.progress.optimizer_steps
        if record.ending == "end" or steps or record.progress.backwards:
            return TriedFix(candidate.en, candidate.zh, True,
                            "tried: the program then runs on to " + ("its end" if record.ending == "end" else "the next optimizer step"),
                            "已尝试：程序随后运行到" + ("结束" if record.ending == "end" else "下一个优化步"))  # fmt: skip
    if record.ending == "time":
        return TriedFix(candidate.en, candidate.zh, True, "tried: the program then runs until the time limit",
                        "已尝试：程序随后运行到时限")  # fmt: skip
    said = (
        record.error.op if record.error else record.stop.exception if record.stop else record.ending
    )
    return TriedFix(candidate.en, candidate.zh, False, f"tried: the program then stops at {place} ({said})",
                    f"已尝试：程序随后停在 {place}（{said}）")  # fmt: skip
