"""Values inside of lists, tuples and dicts. Their subclasses are left alone: they may mean more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


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


def hashable(value: Any) -> Any:
    """What tells equal values: the bytes of arrays, and types, since 1 == 1.0."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    if isinstance(value, dict):
        return tuple((key, hashable(item)) for key, item in value.items())
    return (type(value).__name__, value)
