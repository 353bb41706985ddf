"""Dataclasses as they were before Python 3.11, which refuses every default that has no hash."""

from __future__ import annotations

import dataclasses
from typing import Any


def accept_changeable_defaults() -> None:
    """All objects share such a default, as they did; lists, dictionaries and sets were always refused."""
    module: Any = dataclasses
    real = module._get_field

    def get_field(cls: Any, name: str, *rest: Any, **kwargs: Any) -> Any:
        default = getattr(cls, name, None)
        is_plain = isinstance(default, (list, dict, set, dataclasses.Field))
        if default is not None and not is_plain and type(default).__hash__ is None:
            setattr(cls, name, dataclasses.field(default_factory=lambda: default))
        return real(cls, name, *rest, **kwargs)

    module._get_field = get_field
