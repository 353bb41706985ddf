"""What the calls of each function took in all."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from torchstone.dataflow.graph.dag import ExecutionDAG


@dataclass(frozen=True, slots=True)
class FunctionTotal:
    """All calls of one function from one place."""

    name: str
    place: str
    calls: int
    seconds: float
    bytes_in: int
    bytes_out: int


def function_totals(dag: ExecutionDAG) -> list[FunctionTotal]:
    """Operators by name and place, the slowest first."""
    found: dict[tuple[str, str, int], list[float]] = defaultdict(lambda: [0.0] * 4)
    for node in dag.operators():
        total = found[node.name, node.file, node.line]
        total[0] += node.count
        total[1] += node.seconds
        total[2] += node.performance.get("bytes_in", 0.0)
        total[3] += node.performance.get("bytes_out", 0.0)
    made = [
        FunctionTotal(
            name,
            f"{file.rpartition('/')[2]}:{line}" if file else "",
            int(t[0]),
            t[1],
            int(t[2]),
            int(t[3]),
        )
        for (name, file, line), t in found.items()
    ]
    return sorted(made, key=lambda item: -item.seconds)
