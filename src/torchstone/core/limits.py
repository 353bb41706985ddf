"""Limits that a user sets: a count from one on, seconds that a clock can wait."""

from __future__ import annotations

from torchstone.core.errors import UsageError
from torchstone.core.text import Text

MOST_SECONDS = 7 * 86_400.0
"""A week; what is far longer no socket takes."""


def check_count(where: str, value: int, default: int) -> None:
    """Refuse a limit that lets nothing happen at all."""
    if value < 1:
        todo = Text(f"the default is {default}", f"默认为 {default}")
        raise UsageError(where, str(value), Text("1 or more", "1 或更多"), todo)


def check_seconds(where: str, value: float, default: float) -> None:
    """Refuse seconds that are none: 0 and below, no number, without end."""
    if not 0 < value <= MOST_SECONDS:
        expected = Text(f"seconds above 0, at most {MOST_SECONDS:,.0f}",
                        f"大于 0 且不超过 {MOST_SECONDS:,.0f} 的秒数")  # fmt: skip
        todo = Text(f"the default is {default:g}", f"默认为 {default:g}")
        raise UsageError(where, f"{value:g}", expected, todo)
