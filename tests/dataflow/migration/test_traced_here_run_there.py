"""Fifteen pipelines: traced in one function, planned by parts, migrated in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.dataflow.migration.fifteen_pipelines import PIPELINES
from torchstone.dataflow import EnhancedTracer, OptimizerManager, PipelineMigrator
from torchstone.dataflow.comparison import differences, outcome_of

FATES = ("migrated", "deferred", "fallback", "stayed", "unused")


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    """One trace of all: the keys begin with the pipeline's own function."""
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        for pipeline in PIPELINES:
            pipeline()
    manager = OptimizerManager(k=2)
    made = manager.optimize(tracer.dag_builder.dag)
    return manager.get_migration_plan(made["optimized_partitions"], made["coarsened_dag"], 1)


def outcome(pipeline: Callable[[], Any]) -> Any:
    np.random.seed(3)
    return outcome_of({"result": pipeline()})


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda one: one.__name__)
def test_calls_move_and_results_are_equal(
    plan: dict[str, Any], pipeline: Callable[[], Any]
) -> None:
    before = outcome(pipeline)
    with PipelineMigrator.from_plan(plan, verify_rate=1.0) as migrator:
        after = outcome(pipeline)
    stats = migrator.get_stats()
    assert stats["calls_migrated"] + stats["calls_deferred"] > 0
    own = [
        calls for key, calls in stats["contexts"].items() if key.startswith(f"{pipeline.__name__}/")
    ]
    assert own
    assert all(own)
    assert stats["calls_total"] == sum(stats[f"calls_{fate}"] for fate in FATES)
    assert not differences(before, after)
