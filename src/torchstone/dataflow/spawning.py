"""What must be so in a spawned worker as well rides there on its process object.

A process that is spawned begins with an empty interpreter; its process object is pickled and sent.
A passenger on that object does its work where it is unpickled, before anything else of the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any


class Passenger:
    """Rides on a process object; where it is unpickled, the work begins."""

    def __init__(self, begin: Callable[[Any], None], settings: Any) -> None:
        self._begin = begin
        self._settings = settings

    def __reduce__(self) -> Any:
        return self._begin, (self._settings,)


class SpawnHook:
    """Puts a passenger on every process that is started."""

    def __init__(self, field: str, passenger: Passenger) -> None:
        self._field = field
        self._passenger = passenger
        self._original: Any = None

    def install(self) -> None:
        original = BaseProcess.start
        self._original = original
        field, passenger = self._field, self._passenger

        def start(self: BaseProcess) -> None:
            fields = dict(vars(self))
            vars(self).clear()  # the passenger is unpickled first, then the target and its data
            vars(self).update({field: passenger, **fields})
            try:
                original(self)
            finally:
                vars(self).pop(field, None)

        BaseProcess.start = start  # type: ignore[method-assign]

    def remove(self) -> None:
        if self._original is not None:
            BaseProcess.start = self._original  # type: ignore[method-assign]
            self._original = None
