"""A traced run as a time line for Perfetto and chrome://tracing."""

from __future__ import annotations

from typing import Any

from torchstone.dataflow.graph.dag import ExecutionDAG


def chrome_trace(dag: ExecutionDAG) -> dict[str, Any]:
    """The Trace Event Format: one complete event for each call, one row for each thread."""
    threads: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    for node in dag.functions():
        row = threads.setdefault(node.thread, len(threads) + 1)
        events.append(
            {
                "name": node.name,
                "cat": node.role or node.node_type,
                "ph": "X",
                "ts": node.start * 1e6,
                "dur": node.performance.get("execution_time", 0.0) * 1e6,
                "pid": 1,
                "tid": row,
                "args": {
                    "where": f"{node.file}:{node.line}",
                    "arguments": node.arguments,
                    "bytes_in": node.performance.get("bytes_in", 0.0),
                    "bytes_out": node.performance.get("bytes_out", 0.0),
                },
            }
        )
    names = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": row, "args": {"name": name or "main"}}
        for name, row in threads.items()
    ]
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ms"}
