"""EnhancedTracer: from a running pipeline to the graph of what it did."""

from __future__ import annotations

import json
import os
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter_ns
from types import FrameType, TracebackType
from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.files import write_atomically
from torchstone.core.text import Text
from torchstone.dataflow.graph.builder import DAGBuilder
from torchstone.dataflow.graph.dag import OPERATOR
from torchstone.dataflow.graph.export import graph_data
from torchstone.dataflow.tracing.assemble import ThreadTrace, assemble
from torchstone.dataflow.tracing.body import Block, BodyDone, block_of
from torchstone.dataflow.tracing.callees import Callees
from torchstone.dataflow.tracing.decoding import DecodingHook
from torchstone.dataflow.tracing.function_filter import FunctionFilter
from torchstone.dataflow.tracing.imports import ImportHook
from torchstone.dataflow.tracing.instrument import Instrumentation, is_user_file, user_functions
from torchstone.dataflow.tracing.journal import Journal
from torchstone.dataflow.tracing.monitors import MemoryProfiler, PerformanceMonitor
from torchstone.dataflow.tracing.notes import Note, notes_on
from torchstone.dataflow.tracing.processes import WORKER, WorkerTraces, follow_links
from torchstone.dataflow.tracing.recorder import DEEPEST, Recorder
from torchstone.dataflow.tracing.sampling import ThreadSampler
from torchstone.dataflow.tracing.spawned import TraceSettings, hook_for
from torchstone.dataflow.tracing.time_use import ThreadTime, TimeUse, time_uses
from torchstone.dataflow.tracing.values import Values

_running: list[weakref.ref[EnhancedTracer]] = []
"""The tracer that is running in this process."""


class EnhancedTracer:
    """Records calls, operators and writes on data, and which data went where.

    `max_depth` is the number of calls inside each other that are recorded; what is deeper counts
    as part of the call around it. `track_memory` takes snapshots of the memory of the process.
    `filter_config` has the patterns of `FunctionFilter`. With a `journal`, events are written to
    this file as the program goes, below a first line that says what it is `about`.
    """

    def __init__(
        self,
        max_depth: int = 10,
        track_memory: bool = True,
        filter_config: Mapping[str, Sequence[str]] | None = None,
        max_events: int = 500_000,
        journal: Path | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        if max_depth < 1:
            raise UsageError(
                "EnhancedTracer", f"max_depth={max_depth}", Text("1 or more", "1 或更大"),
                Text("leave it out for 10", "省略即为 10"),
            )  # fmt: skip
        self.max_depth = max_depth
        self.track_memory = track_memory
        self.max_events = max_events
        self.filter_config = filter_config
        self.function_filter = FunctionFilter(filter_config)
        self.memory_profiler = MemoryProfiler() if track_memory else None
        self.performance_monitor = PerformanceMonitor()
        self.dag_builder = DAGBuilder()
        self.notes: list[Note] = []
        """What could not be traced, and why."""
        self.time_uses: list[TimeUse] = []
        """All time of the traced block, the largest part first."""
        self.worker_time_uses: list[TimeUse] = []
        """Time of worker processes, of all together."""
        self.wall_seconds = 0.0
        self.journal = journal
        self.about = dict(about or {})
        self.source_files: set[str] = set()
        self._run: _Run | None = None

    # ---- tracing -----------------------------------------------------------------------------

    def tracing_context(self) -> TracingContext:
        """Everything inside the `with` block is traced; an exception goes through unchanged."""
        return TracingContext(self)

    def start_tracing(self) -> None:
        if self._run is not None:
            raise UsageError(
                "EnhancedTracer.start_tracing", "a tracer that is running",
                Text("one that has stopped", "已停止的追踪器"),
                Text("call stop_tracing first", "请先调用 stop_tracing"),
            )  # fmt: skip
        other = _running[-1]() if _running else None
        if other is not None:
            raise UsageError(
                "EnhancedTracer.start_tracing", "another tracer that is running",
                Text("one tracer at a time in a process", "一个进程同时只能有一个追踪器"),
                Text("call its stop_tracing first", "请先调用它的 stop_tracing"),
            )  # fmt: skip
        if self.memory_profiler is not None:
            self.memory_profiler.start()
        self._run = _Run(self)
        _running[:] = [weakref.ref(self)]
        self._forgotten = weakref.finalize(self, self._run.end)

    def stop_tracing(self) -> None:
        """Functions get their own code back, and the graph is made. A second call does nothing."""
        run, self._run = self._run, None
        if run is None:
            return
        self._forgotten.detach()
        _running.clear()
        run.end()
        held = run.recorder.values.still_held()
        if self.memory_profiler is not None:
            self.memory_profiler.stop()
        before = self.dag_builder.node_counter
        traces = run.traces()
        assemble(traces, self.dag_builder, run.started, held)
        self._account(run, traces)
        for node_id in range(before, self.dag_builder.node_counter):
            node = self.dag_builder.dag.nodes[node_id]
            if node.role == OPERATOR:
                self.performance_monitor.record(node.name, node.seconds)
        self.notes += run.notes
        self.source_files |= {name for name, file in run.instrumentation.files.items() if file}

    def _account(self, run: _Run, traces: Sequence[ThreadTrace]) -> None:
        own = next((trace for trace in traces if trace.name == run.thread), None)
        events, facts = (own.events, own.facts) if own is not None else ((), {})
        wall = run.ended - run.started
        spent = run.recorder.unrecorded_of(run.ident)
        self.wall_seconds += wall * 1e-9
        self.time_uses = time_uses(ThreadTime(events, facts, spent, run.sampler.spots, wall))
        workers = [trace for trace in traces if trace.name.startswith(WORKER)]
        inside = [event for trace in workers for event in trace.events]
        self.worker_time_uses = time_uses(
            ThreadTime(inside, workers[0].facts if workers else {}, run.workers.unrecorded, {})
        )

    @property
    def started_ns(self) -> int:
        """When the run that is under way began: nodes count their start from here."""
        return self._run.started if self._run is not None else 0

    @property
    def instrumentation(self) -> Instrumentation:
        """Of the run that is under way."""
        if self._run is None:
            raise UsageError(
                "EnhancedTracer", "a tracer that has stopped", Text("a running one", "正在运行的追踪器"),
                Text("call start_tracing first", "请先调用 start_tracing"),
            )  # fmt: skip
        return self._run.instrumentation

    def note(self, text: Note) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # ---- results -----------------------------------------------------------------------------

    def export_dataflow_graph(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The graph as plain data, ready for `json.dump`; written to a file where one is named."""
        data = graph_data(self.dag_builder.dag, self.notes)
        if path is not None:
            write_atomically(Path(path), json.dumps(data, ensure_ascii=False, indent=1))
        return data

    def export_visualization(self, path: str | os.PathLike[str]) -> bool:
        """The graph as an SVG file; large graphs are folded first."""
        from torchstone.dataflow.view.graphviz import draw_dag

        return draw_dag(self.dag_builder.dag, os.fspath(path))


class TracingContext:
    """`with tracer.tracing_context():`."""

    def __init__(self, tracer: EnhancedTracer) -> None:
        self._tracer = tracer
        self._ran = False

    def __enter__(self) -> EnhancedTracer:
        self._tracer.start_tracing()
        try:
            self._enter_block(sys._getframe(1))
        except BaseException:
            self._tracer.stop_tracing()
            raise
        return self._tracer

    def _enter_block(self, frame: FrameType) -> None:
        if not is_user_file(frame.f_code.co_filename):
            return
        block = block_of(frame, self._tracer.instrumentation)
        if isinstance(block, Block):
            self._ran = True
            block.leave_at_first_line(block.run(self._tracer))
        else:
            place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
            self._tracer.note(
                Note(
                    f"the statements of the with block at {place} are seen only through the "
                    f"functions they call: {block.en}",
                    f"{place} 处 with 块中的语句只能通过其调用的函数观察：{block.zh}",
                    "put these statements into a function of a file, and call it inside the traced block",
                )
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._tracer.stop_tracing()
        if self._ran and isinstance(error, BodyDone):
            return True
        if error is not None:
            without_our_frames(error, as_one=self._ran)
        return False


class _Run:
    """One stretch of tracing."""

    def __init__(self, tracer: EnhancedTracer) -> None:
        self.max_depth = tracer.max_depth
        self.started = perf_counter_ns()
        values = Values()
        callees = Callees(is_user_file, tracer.function_filter.should_trace)
        self.recorder = Recorder(values, callees, tracer.max_depth, tracer.max_events)
        self.instrumentation = Instrumentation(self.recorder)
        self.imports = ImportHook(self.instrumentation)
        self.decoding = DecodingHook(self.recorder)
        self.workers = WorkerTraces(self.recorder)
        self.spawning = hook_for(
            TraceSettings(
                tracer.max_depth, tracer.max_events, tracer.filter_config, str(self.workers.folder)
            )
        )
        self.notes: list[Note] = []
        self.sampler = ThreadSampler(is_user_file)
        self.ident = threading.get_ident()
        self.thread = threading.current_thread().name
        self.journal: Journal | None = None
        self.ended = 0
        self.frames = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(self.frames + _frames_of_hooks(tracer.max_depth))
            self.instrumentation.instrument(list(user_functions(is_user_file)))
            self.imports.install()
            self.decoding.install()
            self.spawning.install()
            if tracer.journal is not None:
                self.journal = Journal(tracer.journal, self.recorder, tracer.about)
            self.sampler.start()
        except BaseException:
            self.end()
            raise
        self.started = perf_counter_ns()  # what was done until here is no part of the program

    def end(self) -> None:
        self.ended = perf_counter_ns()
        self.sampler.stop()
        self.recorder.stop()
        if self.journal is not None:
            self.journal.close()
        if sys.getrecursionlimit() == self.frames + _frames_of_hooks(self.max_depth):
            sys.setrecursionlimit(self.frames)
        self.spawning.remove()
        self.decoding.remove()
        self.imports.remove()
        self.instrumentation.restore()
        self.workers.end()
        self.notes += notes_on(self.recorder, self.instrumentation.skipped)

    def traces(self) -> list[ThreadTrace]:
        facts = self.recorder.values.all_facts()
        links = dict(self.recorder.values.links)
        workers = self.workers.read(facts, links)  # adds what their values are
        own = [
            ThreadTrace(thread.name, self.recorder.events_of(thread), facts)
            for thread in self.recorder.threads
        ]
        self.notes += self.workers.notes
        return [follow_links(trace, links) for trace in (*own, *workers)]


def _frames_of_hooks(max_depth: int) -> int:
    """A program may recurse as deep as without hooks: one frame more for every call that has one,
    and what the innermost hook itself calls."""
    return max_depth + DEEPEST + 40


def without_our_frames(error: BaseException, *, as_one: bool = False) -> BaseException:
    """The exception with a traceback of the user's frames only. `as_one`: the first frame and the
    statements of its block, which ran rewritten, are one."""
    here = (
        str(Path(__file__).parents[1]) + os.sep
    )  # all of this package: no part of it is the user's
    kept: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(here):
            kept.append(step)
        step = step.tb_next
    lines = [one.tb_lineno for one in kept]
    if as_one and len(kept) > 1:
        del kept[1], lines[0]
    following: TracebackType | None = None
    for one, line in zip(reversed(kept), reversed(lines), strict=True):
        following = TracebackType(following, one.tb_frame, one.tb_lasti, line)
    return error.with_traceback(following)
