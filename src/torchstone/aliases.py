"""Import lines of the guides, made to work: `import torchstone.aliases` first.

    import torchstone.aliases
    from training_profiler import watch_training, analyze_tensor
    from llm_perf_opt.runners.dsocr_analyzer import AnalysisConfig, DeepseekOCRStaticAnalyzer
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

_HOMES = {"training_profiler": "torchstone", "llm_perf_opt": "torchstone.cost"}
"""Packages of ours behind a first name; `torchstone.dataflow` behind all others."""
_WATCHING = ("watch_training", "Watch", "analyze_tensor", "compare_precision")
_ANALYZER = ("AnalysisConfig", "StageAnalysisResult", "DeepseekOCRStaticAnalyzer")
_EXPORT = (
    "write_static_compute_json",
    "write_static_compute_markdown",
    "write_static_compute_fvcore_table",
)
_FORMULAS = ("compute_stage_mfu", "estimate_prefill_flops_total", "estimate_decode_flops_per_token")
_OPTIMIZER = ("OptimizerManager", "GraphCoarsening", "KWayPartitioner", "IterativeOptimizer")
_MIGRATION = (
    "PipelineMigrator",
    "PatchInjector",
    "UniversalWrapper",
    "OpSpec",
    "list_supported_functions",
)
_TRACING = (
    "EnhancedTracer",
    "DAGBuilder",
    "ExecutionDAG",
    "DAGNode",
    "FunctionFilter",
    "MemoryProfiler",
    "PerformanceMonitor",
)
MODULES: dict[str, tuple[str, ...]] = {
    "training_profiler": _WATCHING,
    "llm_perf_opt": (),
    "llm_perf_opt.runners": (),
    "llm_perf_opt.runners.dsocr_session": ("DeepSeekOCRSession",),
    "llm_perf_opt.runners.dsocr_analyzer": _ANALYZER,
    "llm_perf_opt.profiling": (),
    "llm_perf_opt.profiling.export": _EXPORT,
    "llm_perf_opt.profiling.mfu": _FORMULAS,
    "core": _TRACING,
    "core.enhanced_tracer": _TRACING,
    "core.dag_builder": ("DAGBuilder", "ExecutionDAG", "DAGNode"),
    "core.function_filter": ("FunctionFilter",),
    "core.memory_profiler": ("MemoryProfiler",),
    "core.performance_monitor": ("PerformanceMonitor",),
    "optimizer": _OPTIMIZER,
    "optimizer.optimizer_manager": ("OptimizerManager",),
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
        home = _HOMES.get(module.__name__.partition(".")[0], "torchstone.dataflow")
        full_name = module.__name__

        def get(name: str) -> object:
            if name not in names:
                raise AttributeError(f"module {full_name!r} has no attribute {name!r}")
            return getattr(importlib.import_module(home), name)

        module.__dict__["__getattr__"] = get
        module.__dict__["__all__"] = list(names)
        module.__doc__ = f"Another name for parts of {home}."


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
