"""What the agents of the loop are asked, and the forms in which they may answer.

Prompts are files of the folder `prompts`, one for each agent; they hold no times, paths or
addresses, so that the same work asks the same words. What comes from outside is fenced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from torchstone.trace.actions import ActionType
from torchstone.trace.messages import Message

_FOLDER = Path(__file__).parent / "prompts"
_BLANK = re.compile(r"\{\{(\w+)\}\}")
_TICKS = re.compile(r"`{3,}")
_LONGEST_LOG = 6000


@dataclass(frozen=True, slots=True)
class Written:
    """What a designer or a coder writes."""

    code: str
    description: str


class Next(StrEnum):
    """What a reviewer may want next."""

    GO_ON = "go_on"
    FIX = "fix"


class Who(StrEnum):
    """Who may have to fix a kernel."""

    DESIGNER = "designer"
    CODER = "coder"


@dataclass(frozen=True, slots=True)
class Check:
    """What a reviewer says of a design or a kernel before it is used."""

    result: Next
    reason: str
    suggestions: str


@dataclass(frozen=True, slots=True)
class Blame:
    """Who has to fix a kernel that was rejected."""

    result: Who
    reason: str
    suggestions: str


WRITERS = {
    ActionType.DO_DESIGNER: "designer",
    ActionType.FIX_DESIGNER: "fix_designer",
    ActionType.DO_CODER: "coder",
    ActionType.FIX_CODER: "fix_coder",
}
"""The prompt of each step in which a model writes."""

REVIEWERS = {
    ActionType.DO_DESIGNER: "check_designer",
    ActionType.FIX_DESIGNER: "check_designer",
    ActionType.DO_CODER: "check_coder",
    ActionType.FIX_CODER: "check_coder",
    ActionType.VERIFY: "analyze_error",
}
"""The prompt of the look at each step."""


@cache
def _template(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text("utf-8").rstrip("\n")


def form_of(implementation: str) -> str:
    """What a kernel of an implementation looks like, with an example."""
    return _template(f"implementations/{implementation}")


def fenced(text: str) -> str:
    """A text between fences that it cannot close: one backtick more than it has in a row."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.strip(chr(10))}\n{fence}"


def shortened(log: str) -> str:
    """A log that leaves room for the rest: its beginning, and how much is left out."""
    if len(log) <= _LONGEST_LOG:
        return log
    return f"{log[:_LONGEST_LOG]}\n… {len(log) - _LONGEST_LOG} characters more"


def messages(
    agent: str, plain: Mapping[str, str], outside: Mapping[str, str]
) -> tuple[Message, ...]:
    """The conversation that asks an agent: `plain` words of ours, `outside` texts fenced."""
    values = {**plain, **{name: fenced(text) for name, text in outside.items()}}
    # one pass: a text that holds {{name}} is not filled in again
    filled = _BLANK.sub(lambda match: values[match[1]], _template(agent))
    return (Message("system", _template("system")), Message("user", filled))
