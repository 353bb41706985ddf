"""Workers that are spawned while a program is traced are traced from their beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchstone.dataflow.spawning import Passenger, SpawnHook
from torchstone.dataflow.tracing.callees import Callees
from torchstone.dataflow.tracing.function_filter import FunctionFilter
from torchstone.dataflow.tracing.imports import ImportHook
from torchstone.dataflow.tracing.instrument import Instrumentation, is_user_file, user_functions
from torchstone.dataflow.tracing.processes import WorkerTraces
from torchstone.dataflow.tracing.recorder import Recorder
from torchstone.dataflow.tracing.values import Values

_FIELD = "_torchstone_trace"
_running: list[object] = []
"""What traces this process, kept for as long as it lives."""


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """What a worker needs to trace itself."""

    max_depth: int
    max_events: int
    filter_config: Mapping[str, Sequence[str]] | None
    folder: str = ""


def hook_for(settings: TraceSettings) -> SpawnHook:
    return SpawnHook(_FIELD, Passenger(trace_this_process, settings))


def trace_this_process(settings: TraceSettings) -> None:
    """In a spawned worker, before it begins its work."""
    filtered = FunctionFilter(settings.filter_config)
    recorder = Recorder(
        Values(), Callees(is_user_file, filtered.should_trace), settings.max_depth, settings.max_events
    )  # fmt: skip
    traces = WorkerTraces(recorder, Path(settings.folder))
    traces.start_in_worker()
    instrumentation = Instrumentation(recorder)
    try:
        instrumentation.instrument(list(user_functions(is_user_file)))
        ImportHook(instrumentation).install()
        hook_for(settings).install()
        _running.append((traces, instrumentation))
    except Exception as error:  # the worker is the user's: it goes on without a trace
        instrumentation.restore()
        traces.note_failure(error)
