"""What an experiment says: its relation holds, is broken, or could not be decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["holds", "broken", "not decided"]


@dataclass(frozen=True, slots=True)
class Result:
    """One experiment on one tree."""

    state: State
    said: str = ""
    """The numbers of the break, or why nothing could be decided; text of the project may be in it."""
    path: str = ""
    """The file of the project in which the break came up; empty where it is not known."""
    line: int = 0


def combine(results: Sequence[Result]) -> Result:
    """One result for several seeds: they must agree, or nothing is decided."""
    first = next((item for item in results if item.state == "not decided"), None)
    if first is not None or not results:
        return first or Result("not decided", "nothing was run")
    states = {item.state for item in results}
    if len(states) == 1:
        return results[0]
    counts = ", ".join(
        f"{sum(item.state == state for item in results)} {state}" for state in sorted(states)
    )
    return Result("not decided", f"the seeds disagree: {counts}")
