"""A data pipeline: traced, folded, placed on devices, moved there, and proven equal.

The names below are loaded when they are first used: the options of the command need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchstone.dataflow.graph.builder import DAGBuilder
    from torchstone.dataflow.graph.dag import DAGNode, ExecutionDAG
    from torchstone.dataflow.placement.coarsening import GraphCoarsening
    from torchstone.dataflow.placement.iterative import IterativeOptimizer
    from torchstone.dataflow.placement.manager import OptimizerManager
    from torchstone.dataflow.placement.partitioner import KWayPartitioner
    from torchstone.dataflow.plan import MigrationPlan
    from torchstone.dataflow.tracing.function_filter import FunctionFilter
    from torchstone.dataflow.tracing.monitors import MemoryProfiler, PerformanceMonitor
    from torchstone.dataflow.tracing.tracer import EnhancedTracer
    from torchstone.dataflow.view.graphviz import GraphvizDataflowVisualizer

_HOMES = {
    "EnhancedTracer": "tracing.tracer",
    "FunctionFilter": "tracing.function_filter",
    "MemoryProfiler": "tracing.monitors",
    "PerformanceMonitor": "tracing.monitors",
    "DAGBuilder": "graph.builder",
    "DAGNode": "graph.dag",
    "ExecutionDAG": "graph.dag",
    "GraphCoarsening": "placement.coarsening",
    "KWayPartitioner": "placement.partitioner",
    "IterativeOptimizer": "placement.iterative",
    "OptimizerManager": "placement.manager",
    "MigrationPlan": "plan",
    "GraphvizDataflowVisualizer": "view.graphviz",
    "PipelineMigrator": "migration",
    "PatchInjector": "migration",
    "UniversalWrapper": "migration",
    "OpSpec": "migration",
    "list_supported_functions": "migration",
}

__all__ = [
    "DAGBuilder",
    "DAGNode",
    "EnhancedTracer",
    "ExecutionDAG",
    "FunctionFilter",
    "GraphCoarsening",
    "GraphvizDataflowVisualizer",
    "IterativeOptimizer",
    "KWayPartitioner",
    "MemoryProfiler",
    "MigrationPlan",
    "OpSpec",
    "OptimizerManager",
    "PatchInjector",
    "PerformanceMonitor",
    "PipelineMigrator",
    "UniversalWrapper",
    "list_supported_functions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
