"""A file of named arrays whose names and shapes nobody knows: each name that is asked for is there."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from typing import Any

_ITEMS = 32
"""Samples in each array: two batches of the usual size for small images."""
_SIDE = 32


class MadeGroup:
    """Behaves like a group and like an array of small images at once."""

    def __init__(self) -> None:
        self.attrs: dict[str, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return MadeGroup()
        return self._values()[key]

    def _values(self) -> Any:
        numpy = importlib.import_module("numpy")
        size = _ITEMS * _SIDE * _SIDE
        values = numpy.frombuffer(random.Random(0).randbytes(size), numpy.uint8)
        return values.reshape(_ITEMS, _SIDE, _SIDE).astype(numpy.float32)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._values()

    def __len__(self) -> int:
        return _ITEMS

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return True

    def __enter__(self) -> MadeGroup:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def keys(self) -> list[str]:
        return [str(place) for place in range(_ITEMS)]

    def get(self, key: str, default: Any = None) -> MadeGroup:
        return MadeGroup()

    def close(self) -> None:
        pass

    @property
    def shape(self) -> tuple[int, ...]:
        return (_ITEMS, _SIDE, _SIDE)

    @property
    def value(self) -> Any:
        return self._values()
