"""Values inside of lists, tuples and dicts. Their subclasses are left alone: they may mean more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The same with what `function` makes of everything that is not a list, tuple or dict."""
    if type(value) in (tuple, list):
        return type(value)(map_leaves(function, item) for item in value)
    if type(value) is dict:
        return {key: map_leaves(function, item) for key, item in value.items()}
    return function(value)


def leaves(value: Any) -> Iterator[Any]:
    if type(value) in (tuple, list, dict):
        for item in value.values() if type(value) is dict else value:
            yield from leaves(item)
    else:
        yield value
