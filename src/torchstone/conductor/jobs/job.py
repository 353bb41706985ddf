"""A job: one tool on one part of a project, as the plan lists it and a worker does it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from torchstone.conductor.experiments.checks.check import Check
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.core.text import Text

Layer = Literal["basic", "specialised", "integrated"]
LAYERS: tuple[Layer, ...] = ("basic", "specialised", "integrated")
Goal = Literal["correctness", "performance", "maintainability"]
GOALS: tuple[Goal, ...] = ("correctness", "performance", "maintainability")
Depth = Literal["quick", "standard", "deep"]
DEPTHS: tuple[Depth, ...] = ("quick", "standard", "deep")


@dataclass(frozen=True, slots=True)
class Scope:
    """What the user asked for."""

    goals: tuple[Goal, ...]
    depth: Depth = "standard"
    component: str = ""
    """A path below the project: findings elsewhere are counted, not listed."""
    scenarios: tuple[str, ...] = ()
    seconds: float = 240.0
    """For one job."""

    def reaches(self, depth: Depth) -> bool:
        """Whether this review is at least so deep."""
        return DEPTHS.index(self.depth) >= DEPTHS.index(depth)


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a tool."""

    id: str
    tool: str
    layer: Layer
    arguments: tuple[str, ...]
    seconds: float
    why: Text
    expected: Text
    runs_project: bool
    """It executes code of the project: only behind walls."""
    try_fixes: bool = True
    """Whether it shall look for fixes by running them; not when it is run to check one."""
    only_without_steps: bool = False
    """It is run only where no program of the project came to an optimizer step before it."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A tool that is not run, and why."""

    tool: str
    why: Text
    close: str = ""
    """What would make it run."""
    close_zh: str = ""
    """The same in Chinese where it is said in words; a command is the same in every language."""


Offer = tuple[Job, ...] | Skipped


@dataclass(frozen=True, slots=True)
class Request:
    """What a tool is asked when the plan is made."""

    facts: ProjectFacts
    scope: Scope
    checks: tuple[Check, ...] = ()
    """Claims about the project that somebody handed in."""


_LONGEST = 60
"""Characters of a path in the id of a job, which becomes a file name."""


def short_name(path: str) -> str:
    """A script's path as part of a job's id."""
    name = path.replace("/", ".").removesuffix(".py")
    if len(name) <= _LONGEST:
        return name
    return f"{name[-_LONGEST:]}-{hashlib.sha256(path.encode('utf-8', 'replace')).hexdigest()[:8]}"
