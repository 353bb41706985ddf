"""Lists of names in arguments: one name alone will do, anything else is told as a mistake."""

from __future__ import annotations

from collections.abc import Sequence

from torchstone.core.errors import UsageError
from torchstone.core.text import Text


def names_given(where: str, value: object) -> tuple[str, ...] | None:
    """`"bf16"` means `["bf16"]`; None stays None."""
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence | set | frozenset) and all(isinstance(n, str) for n in value):
        return tuple(value)
    raise UsageError(
        where, f"{value!r:.80}", Text("a list of names", "名称列表"),
        Text("pass names as strings, or leave it out for all", "请传入字符串列表，省略则为全部"),
    )  # fmt: skip
