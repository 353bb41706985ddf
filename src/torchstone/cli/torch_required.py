"""Rooms that run models need torch; a user without it is told so in one line."""

from __future__ import annotations

import importlib.util

from torchstone.core.errors import UsageError
from torchstone.core.text import Text


def needs_torch(command: str) -> None:
    """Raise the error that says how to get torch, when it is not there."""
    if importlib.util.find_spec("torch") is None:
        raise UsageError(
            command,
            "no torch",
            Text(
                "torch 2.4 or newer beside torchstone",
                "与 torchstone 同处安装的 torch 2.4 或更新版本",
            ),
            'pip install "torchstone[torch]"',
        )
