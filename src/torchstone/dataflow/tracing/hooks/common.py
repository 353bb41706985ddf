"""What all hooks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Hook = Callable[..., Any]
TOUCHED = -(1 << 62)
"""The quiet count of a function that met data: it never reaches the limit."""
NO_KEYWORDS: dict[str, Any] = {}
