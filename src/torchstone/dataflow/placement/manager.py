"""OptimizerManager: a traced graph is folded, cut into parts, and becomes a migration plan."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.files import write_atomically
from torchstone.core.text import Text
from torchstone.dataflow.device.profile import DeviceProfile
from torchstone.dataflow.graph.dag import ExecutionDAG
from torchstone.dataflow.graph.export import graph_data
from torchstone.dataflow.placement.coarsening import GraphCoarsening
from torchstone.dataflow.placement.iterative import IterativeOptimizer
from torchstone.dataflow.placement.partitioner import KWayPartitioner, Partition, load_balance
from torchstone.dataflow.placement.planning import (
    PlanRequest,
    best_plan,
    plan_of_partitions,
    supported_functions,
)
from torchstone.dataflow.placement.problem import Setting

logger = logging.getLogger("optimizer")


class OptimizerManager:
    """`k` parts; `coarsen_max_depth` and `max_iterations` as in the classes that do the work."""

    def __init__(
        self,
        k: int = 2,
        coarsen_max_depth: int = 5,
        max_iterations: int = 100,
        *,
        lambda_weight: float = 0.5,
        alpha: float = 0.5,
        beta: float = 0.1,
        gamma: float = 0.5,
        no_improvement_threshold: int = 10,
    ) -> None:
        self.coarsening = GraphCoarsening(coarsen_max_depth)
        self.partitioner = KWayPartitioner(k, lambda_weight)
        self.iterative = IterativeOptimizer(
            max_iterations, alpha, beta, gamma, no_improvement_threshold
        )

    def optimize(
        self, dag: ExecutionDAG, export_dir: str | os.PathLike[str] | None = None
    ) -> dict[str, Any]:
        """`statistics` (coarsening, partitioning, iteration), `coarsened_dag`,
        `initial_partitions`, `optimized_partitions`; each stage is written to `export_dir`."""
        if not isinstance(dag, ExecutionDAG):
            raise UsageError(
                "OptimizerManager.optimize", type(dag).__name__,
                Text("an ExecutionDAG", "ExecutionDAG"),
                Text("pass tracer.dag_builder.dag", "请传入 tracer.dag_builder.dag"),
            )  # fmt: skip
        logger.info("开始图粗化聚类...")
        folded = self.coarsening.coarsen(dag)
        if not self.coarsening.anchors:
            logger.info("未发现重复锚点，跳过聚类")
        logger.info("粗化完成: %d -> %d 节点", len(dag.nodes), len(folded.nodes))
        logger.debug("锚点: %s", {name: len(ids) for name, ids in self.coarsening.anchors.items()})
        logger.info("开始K-way划分 (k=%d)...", self.partitioner.k)
        initial = self.partitioner.partition(folded)
        optimized = self.iterative.optimize(initial, folded)
        logger.debug("迭代优化: %s", self.iterative.stats)
        for part in optimized:
            logger.debug(
                "分区 %d: 中心 %d, %d 节点, 负载 %.6f s",
                part.id,
                part.center,
                len(part.nodes),
                part.total_compute,
            )
        result: dict[str, Any] = {
            "statistics": {
                "coarsening": asdict(self.coarsening.statistics),
                "partitioning": {
                    "partitions": len(optimized),
                    "sizes": [len(part.nodes) for part in optimized],
                    "loads": [part.total_compute for part in optimized],
                    "load_balance": load_balance(optimized),
                    "initial_load_balance": load_balance(initial),
                },
                "iteration": dict(self.iterative.stats),
            },
            "coarsened_dag": folded,
            "initial_partitions": initial,
            "optimized_partitions": optimized,
        }
        if export_dir is not None:
            _write_stages(Path(export_dir), result)
        return result

    def get_migration_plan(
        self,
        partitions: Iterable[Partition],
        dag: ExecutionDAG,
        gpu_count: int = 1,
        **options: Any,
    ) -> dict[str, Any]:
        """The plan as a mapping for `json.dump` and `PipelineMigrator.from_plan`: the first part on
        the first device, the second on the second, and so on in turns. Transfers between them are
        in its estimate, and the optimum stands beside it. Options as for `get_best_plan`."""
        request = _request(gpu_count, **options)
        return plan_of_partitions(list(partitions), dag, request).to_data()

    def get_best_plan(
        self, dag: ExecutionDAG, gpu_count: int = 1, **options: Any
    ) -> dict[str, Any]:
        """The plan that no placement beats for the goal, parts or not.

        `device`, `goal` (latency, throughput), `batch`, `workers`, `consumer` (cpu, device),
        `allow_rounding`, `other_seconds` (of the pipeline outside of operators: it stays), `program`,
        `program_hash`. Without a `profile` the device is measured where
        torch has it, else assumed; without `supported` the functions of the catalogue can move."""
        return best_plan(dag, _request(gpu_count, **options)).to_data()


def _request(
    gpu_count: int,
    *,
    device: str = "cuda",
    profile: DeviceProfile | None = None,
    supported: Mapping[str, Iterable[str]] | None = None,
    goal: str = "latency",
    batch: int = 1,
    workers: int = 0,
    consumer: str = "cpu",
    allow_rounding: bool = False,
    other_seconds: float = 0.0,
    program: str = "",
    program_hash: str = "",
) -> PlanRequest:
    if (
        gpu_count < 0 or batch < 1 or workers < 0 or not 0 <= other_seconds < float("inf")
        or goal not in ("latency", "throughput") or consumer not in ("cpu", "device")
    ):  # fmt: skip
        raise UsageError(
            "get_migration_plan",
            f"gpu_count={gpu_count}, batch={batch}, workers={workers}, goal={goal!r}, consumer={consumer!r}",
            Text("gpu_count ≥ 0, batch ≥ 1, workers ≥ 0, goal latency or throughput, consumer cpu or device",
                 "gpu_count ≥ 0，batch ≥ 1，workers ≥ 0，goal 为 latency 或 throughput，consumer 为 cpu 或 device"),
            Text("correct the argument", "请更正参数"),
        )  # fmt: skip
    return PlanRequest(
        device=device,
        device_count=gpu_count,
        profile=profile,
        supported=supported_functions() if supported is None else supported,
        goal=goal,
        setting=Setting(batch, workers, consumer == "device", allow_rounding, other_seconds),
        program=program,
        program_hash=program_hash,
    )


def _write_stages(folder: Path, result: Mapping[str, Any]) -> None:
    write = {
        "coarsened_dag.json": graph_data(result["coarsened_dag"]),
        "initial_partitions.json": [asdict(part) for part in result["initial_partitions"]],
        "optimized_partitions.json": [asdict(part) for part in result["optimized_partitions"]],
        "statistics.json": result["statistics"],
    }
    for name, data in write.items():
        write_atomically(folder / name, json.dumps(data, ensure_ascii=False, indent=1))
