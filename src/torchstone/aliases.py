"""The import lines of the CodeDAG guide, made to work: `import torchstone.aliases` first.

    import torchstone.aliases
    from core.enhanced_tracer import EnhancedTracer
    from optimizer import OptimizerManager
    from migration import PipelineMigrator

A package of these names that the program has itself wins: these are looked for last.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

HOME = "torchstone.dataflow"
_OPTIMIZER = ("OptimizerManager", "GraphCoarsening", "KWayPartitioner", "IterativeOptimizer")
_MIGRATION = ("PipelineMigrator", "PatchInjector", "UniversalWrapper", "OpSpec", "list_supported_functions")  # fmt: skip
_TRACING = ("EnhancedTracer", "DAGBuilder", "ExecutionDAG", "DAGNode", "FunctionFilter", "MemoryProfiler", "PerformanceMonitor")  # fmt: skip
MODULES: dict[str, tuple[str, ...]] = {
    "core": _TRACING,
    "core.enhanced_tracer": _TRACING,
    "optimizer": _OPTIMIZER,
    "optimizer.graph_coarsening": ("GraphCoarsening",),
    "optimizer.kway_partitioner": ("KWayPartitioner",),
    "optimizer.iterative_optimizer": ("IterativeOptimizer",),
    "migration": _MIGRATION,
    "migration.core": ("UniversalWrapper", "PatchInjector"),
    "migration.api": ("PipelineMigrator", "list_supported_functions"),
    "visualization": ("GraphvizDataflowVisualizer",),
    "visualization.graphviz_visualizer": ("GraphvizDataflowVisualizer",),
}


class _Alias(Loader):
    """A module whose names are those of Torchstone, fetched when they are first asked for."""

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002 - the protocol of loaders
        return None

    def exec_module(self, module: ModuleType) -> None:
        names = MODULES[module.__name__]
        full_name = module.__name__

        def get(name: str) -> object:
            if name not in names:
                raise AttributeError(f"module {full_name!r} has no attribute {name!r}")
            return getattr(importlib.import_module(HOME), name)

        module.__dict__["__getattr__"] = get
        module.__dict__["__all__"] = list(names)
        module.__doc__ = f"Another name for parts of {HOME}."


class _Finder(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol of finders
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname not in MODULES:
            return None
        is_package = any(name.startswith(fullname + ".") for name in MODULES)
        return ModuleSpec(fullname, _Alias(), is_package=is_package)


def install() -> None:
    """Done by importing this module; a second time does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


install()
