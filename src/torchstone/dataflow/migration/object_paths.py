"""Functions by their dotted paths."""

from __future__ import annotations

import importlib
from typing import Any


def resolve_object_path(path: str) -> tuple[Any, str]:
    """The object that holds a function, and the function's name in it."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            holder: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as error:
            if cut == 1 or not path.startswith(str(error.name)):
                raise
            continue
        for part in parts[cut:-1]:
            holder = getattr(holder, part)
        getattr(holder, parts[-1])
        return holder, parts[-1]
    raise AttributeError(f"no function {path!r}")
