"""What all hooks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchstone.dataflow.tracing.sites import FunctionSites
from torchstone.dataflow.tracing.values import SCALAR, is_constant

Hook = Callable[..., Any]
Shed = Callable[[FunctionSites], None]
"""Gives a function its own code back."""
Calm = Callable[[int, int], None]
"""Takes the hook off a site, by its number, after so many calls."""
TOUCHED = -(1 << 62)
"""The quiet count of a function that met data: it never reaches the limit."""
DATA = "_"
"""Stands for data among the arguments that are noted."""
OTHER = "..."
"""Stands for what is neither data nor a number or text."""
ROUNDS = 512
"""Calls of a site after which it is known whether hooks cost more than the calls."""
SHORT_NS = 10_000
"""Of calls shorter than this a hook would take more than a third of the time: they are left alone
after `ROUNDS`, and the thread sampler accounts for them."""
NO_KEYWORDS: dict[str, Any] = {}


def keyword_text(name: str, value: Any, kind: int) -> str:
    """An argument by keyword as it is noted."""
    if is_constant(value):
        return f"{name}={value!r}"
    return f"{name}={DATA if kind and kind != SCALAR else OTHER}"
