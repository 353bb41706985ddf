"""Keywords of another version that are left out of calls."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from typing import Any


def drop_keyword(module: str, function: str, keyword: str) -> None:
    """From now on calls of this function, or constructions of this class, go on without the keyword."""
    holder: Any = importlib.import_module(module)
    *path, name = function.split(".")
    for part in path:
        holder = getattr(holder, part)
    real = getattr(holder, name)
    if isinstance(real, type):
        kind: Any = real
        kind.__init__ = _without(kind.__init__, keyword)
    else:
        changed = _without(real, keyword)
        setattr(holder, name, changed)
        _replace_in_package(module.partition(".")[0], real, changed)


def _without(real: Any, keyword: str) -> Any:
    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        if keyword in kwargs:
            value = kwargs.pop(keyword)
            name = _only_missing(real, args, kwargs) or _alike(real, keyword, kwargs)
            kwargs |= {name: value} if name else {}  # it has another name by now
        return real(*args, **kwargs)

    return call


def _only_missing(real: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The one argument that the call still needs; empty where there is none, or more than one."""
    names = [
        item.name
        for place, item in enumerate(inspect.signature(real).parameters.values())
        if item.default is item.empty
        and item.kind is item.POSITIONAL_OR_KEYWORD
        and place >= len(args)
        and item.name not in kwargs
    ]
    return names[0] if len(names) == 1 else ""


_ALIKE = 0.75
"""`evaluation_strategy` and `eval_strategy` are, `batch_size` and `bad_size` are not."""


def _alike(real: Any, keyword: str, kwargs: dict[str, Any]) -> str:
    """The argument that the keyword was renamed to; empty where none is like it."""
    names = [name for name in inspect.signature(real).parameters if name not in kwargs]
    return next(iter(difflib.get_close_matches(keyword, names, 1, _ALIKE)), "")


def _replace_in_package(top: str, real: Any, changed: Any) -> None:
    """Where the package hands its functions on under other names."""
    package = importlib.import_module(top)
    for name, held in list(vars(package).items()):
        if held is real:
            setattr(package, name, changed)
