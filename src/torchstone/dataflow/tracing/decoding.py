"""PIL decodes a file when its picture is first used: that time is the file's, not that of the call
which used it and which a plan may move."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from torchstone.dataflow.tracing.recorder import Recorder
from torchstone.dataflow.tracing.sites import Site


class DecodingHook:
    """Times `ImageFile.load` apart, inside whatever call it runs."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._original: Callable[..., Any] | None = None
        self._holder: Any = None

    def install(self) -> None:
        if importlib.util.find_spec("PIL") is None:
            return
        self._holder = importlib.import_module("PIL.ImageFile").ImageFile
        self._original = self._holder.load
        self._holder.load = self._timed(self._original)

    def remove(self) -> None:
        if self._original is not None:
            self._holder.load = self._original
            self._original = None

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder
        site = recorder.add_site(Site("call", "", "", 0, ""))
        callee = recorder.callees.of(original)

        @functools.wraps(original)
        def load(picture: Any) -> Any:
            state = recorder.states.get(get_ident())
            if state is None or not picture.tile:  # nothing is left to decode
                return original(picture)
            start = perf_counter_ns()
            try:
                return original(picture)
            finally:
                took = perf_counter_ns() - start
                state.inner += took
                recorder.note_unrecorded(state, site, callee.number, took)

        return load
