"""How many true edges the tracer finds, and how many of its edges are false."""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from types import ModuleType

from torchstone.dataflow import EnhancedTracer, ExecutionDAG


@dataclass(frozen=True, slots=True)
class Score:
    """Of one program."""

    name: str
    true: frozenset[str]
    found: frozenset[str]

    @property
    def missed(self) -> list[str]:
        return sorted(self.true - self.found)

    @property
    def false(self) -> list[str]:
        return sorted(self.found - self.true)


def programs(module: ModuleType) -> list[Callable[[], object]]:
    """The functions of a module that have labels, in their order."""
    own = [item for item in vars(module).values() if inspect.isfunction(item)]
    return [
        item for item in own if item.__module__ == module.__name__ and ">" in (item.__doc__ or "")
    ]


def operator_edges(
    dag: ExecutionDAG, start: float = 0.0, end: float = float("inf")
) -> frozenset[str]:
    """Edges between operators by short name and number; of those that began between two times."""
    names: dict[int, str] = {}
    counts: Counter[str] = Counter()
    for node in sorted(dag.operators(), key=lambda one: one.start):
        if node.error or not start <= node.start < end:
            continue
        short = node.name.rpartition(".")[2]
        counts[short] += 1
        names[node.node_id] = short if counts[short] == 1 else f"{short}#{counts[short]}"
    makers: dict[int, list[int]] = defaultdict(list)
    for source, target, kind in dag.edges:
        if kind == "produces" and source in names:
            makers[target].append(source)
    return frozenset(
        f"{names[maker]}>{names[target]}"
        for source, target, kind in dag.edges
        if kind == "uses" and target in names
        for maker in makers[source]
    )


def score(program: Callable[[], object]) -> Score:
    """One program under a tracer of its own."""
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    try:
        program()
    finally:
        tracer.stop_tracing()
    true = frozenset((program.__doc__ or "").split())
    return Score(program.__name__, true, operator_edges(tracer.dag_builder.dag))


def score_together(wanted: list[Callable[[], object]]) -> list[Score]:
    """All programs under one tracer, one after the other: an edge from one to another is false."""
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    starts: list[float] = []
    try:
        for program in wanted:
            starts.append((perf_counter_ns() - tracer.started_ns) * 1e-9)
            program()
    finally:
        tracer.stop_tracing()
    found = []
    dag = tracer.dag_builder.dag
    for program, start, end in zip(wanted, starts, [*starts[1:], float("inf")], strict=True):
        true = frozenset((program.__doc__ or "").split())
        found.append(Score(program.__name__, true, operator_edges(dag, start, end)))
    return found


def total(scores: list[Score]) -> tuple[int, int, int]:
    """True edges, found ones, false ones."""
    return (
        sum(len(item.true) for item in scores),
        sum(len(item.true & item.found) for item in scores),
        sum(len(item.false) for item in scores),
    )
