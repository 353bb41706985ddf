"""Which call this is: the user's functions that led to it, and what the plan says of it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from torchstone.dataflow.plan import ContextIndex, MigrationPlan, context_key
from torchstone.observe.where import PROGRAM

logger = logging.getLogger("migration")

_FRAMES = 64
"""Frames that are looked at: a pipeline is rarely called from deeper."""
_NO_FUNCTIONS = ("<module>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a call comes from."""

    path: tuple[str, ...]
    file: str
    line: int
    from_user: bool
    """The calling line itself is the user's, not a library's."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "?"


class ContextTracker:
    """The replaced functions that are running, innermost last; every thread has its own."""

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def _stack(self) -> list[str]:
        stack: list[str] | None = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        return stack

    def enter(self, function: str) -> None:
        self._stack.append(function)

    def exit(self) -> None:
        if self._stack:
            self._stack.pop()

    @property
    def depth(self) -> int:
        return len(self._stack)

    def reset(self) -> None:
        self._local = threading.local()

    def call_site(self, above: int = 1) -> CallSite:
        """The site of the call, `above` frames above the caller of this."""
        frame = sys._getframe(above + 1)
        caller, line = frame.f_code.co_filename, frame.f_lineno
        from_user = PROGRAM.is_own(caller)
        file, at = (caller, line) if from_user else ("", 0)
        names: list[str] = []
        walked = frame
        for _ in range(_FRAMES):
            code = walked.f_code
            if PROGRAM.is_own(code.co_filename):
                if not file:
                    file, at = code.co_filename, walked.f_lineno
                if not code.co_name.startswith("<") or code.co_name not in _NO_FUNCTIONS:
                    names.append(code.co_qualname)
            if walked.f_back is None:
                break
            walked = walked.f_back
        return CallSite(tuple(reversed(names)), file or caller, at or line, from_user)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a plan says of a call."""

    device: str
    keep: bool
    """The result stays on the device."""
    key: str
    """The entry of the plan; empty where none fits."""
    context: str
    """The call as an entry for it would be written."""


class Placement:
    """What a plan says of calls; every question is answered once."""

    def __init__(self, plan: MigrationPlan) -> None:
        self._index = ContextIndex(plan.context_device_map)
        self._kept = {item.context: item.line for item in plan.operators if item.keep_on_device}
        self._default = plan.default_device
        self._known: dict[tuple[tuple[str, ...], str, int], Decision] = {}

    def find(self, site: CallSite, function: str) -> Decision:
        key = (site.path, function, site.line)
        if key not in self._known:
            self._known[key] = self._decide(site, function)
        return self._known[key]

    def _decide(self, site: CallSite, function: str) -> Decision:
        match = self._index.find(site.path, function, site.line)
        context = context_key(site.path, function)
        logger.debug("%s at %s: %s", context, site, match or "no entry of the plan")
        if match is None:
            return Decision(self._default, False, "", context)
        kept_at = self._kept.get(match.key.partition("@")[0])
        # a call that only resembles the traced one may hand its result to something else
        keep = match.is_whole and kept_at is not None and kept_at in (0, site.line)
        return Decision(match.device, keep, match.key, context)


def functions_in(devices: Mapping[str, str], stay: str) -> list[str]:
    """The functions that a plan moves, each once."""
    moved = (context for context, device in devices.items() if device != stay)
    names = (context.rpartition("/")[2].partition("@")[0].partition("#")[0] for context in moved)
    return list(dict.fromkeys(names))
