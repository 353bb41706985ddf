"""A Ray Data pipeline: a CPU stage that records what the plan moves, a device stage that computes it.

The function of the user is one row to one result. The CPU stage runs it as it is; what the plan
moves travels as the array before it and is computed in batches by actors that hold the device.
"""

from __future__ import annotations

import importlib
import math
import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.dataflow.migration.deferred.parcels import record, unpack
from torchstone.dataflow.plan import MigrationPlan


@dataclass(frozen=True, slots=True)
class RayOptions:
    """How the pipeline is laid out; 0 means: from the rates in the plan."""

    batch_size: int = 32
    cpu_workers: int = 0
    device_workers: int = 0
    device: str | None = None
    """Another device than the plan names."""


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """Workers of each stage."""

    cpu: int
    device: int


def pool_sizes(plan: MigrationPlan, options: RayOptions, cpus: int) -> PoolSizes:
    """As many CPU workers as keep the device busy, by the seconds that the plan has for both."""
    named = {device for device in plan.context_device_map.values() if device != "cpu"}
    device = options.device_workers or max(1, len(named))
    staying = sum(item.cpu_seconds for item in plan.operators if item.device == "cpu")
    moving = sum(
        item.cpu_seconds if item.device_seconds is None else item.device_seconds
        for item in plan.operators
        if item.device != "cpu"
    )
    wanted = math.ceil(device * staying / moving) if staying and moving else cpus - device
    return PoolSizes(options.cpu_workers or max(1, min(wanted, cpus - device)), device)


def ray_dataset(
    migrator_of: Callable[..., Any],
    plan: MigrationPlan,
    function: Callable[[Any], Any],
    items: Any,
    options: RayOptions,
) -> Any:
    """A Ray dataset with a column `result`; each actor makes a migrator of the plan."""
    ray_data = _ray_data()
    sizes = pool_sizes(plan, options, _cpus())
    dataset = items if hasattr(items, "map_batches") else _from_items(ray_data, items)
    data = plan.to_data()
    recorded = dataset.map_batches(
        RecordStage,
        fn_constructor_args=(migrator_of, data, function, options.device),
        batch_size=options.batch_size,
        compute=ray_data.ActorPoolStrategy(size=sizes.cpu),
        num_cpus=1,
    )
    return recorded.map_batches(
        ComputeStage,
        fn_constructor_args=(migrator_of, data, options.device),
        batch_size=options.batch_size,
        compute=ray_data.ActorPoolStrategy(size=sizes.device),
        # another share of a CPU than the first stage, so that Ray does not fuse the two
        num_cpus=0.5,
        num_gpus=1 if _wants_gpu(plan, options) else 0,
    )


class RecordStage:
    """An actor of the CPU stage."""

    def __init__(
        self,
        migrator_of: Callable[..., Any],
        plan: dict[str, Any],
        function: Callable[[Any], Any],
        device: str | None,
    ) -> None:
        self._function = function
        self._migrator = migrator_of(plan, device=device, roots=(function,), records_only=True)
        self._migrator.apply()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        results = [record(self._function, pickle.loads(item)) for item in batch["item"]]
        return {"result": [pickle.dumps(result) for result in results]}


class ComputeStage:
    """An actor of the device stage. What it reads was written by the stage before it."""

    def __init__(
        self, migrator_of: Callable[..., Any], plan: dict[str, Any], device: str | None
    ) -> None:
        self._migrator = migrator_of(plan, device=device)
        self._migrator.apply()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        results = unpack(self._migrator.session, [pickle.loads(item) for item in batch["result"]])
        return {"result": [pickle.dumps(result) for result in results]}


def results_of(dataset: Any) -> list[Any]:
    """The results of a pipeline in order, as Python objects."""
    return [pickle.loads(row["result"]) for row in dataset.take_all()]


def _from_items(ray_data: Any, items: Sequence[Any]) -> Any:
    return ray_data.from_items([{"item": pickle.dumps(item)} for item in items])


def _wants_gpu(plan: MigrationPlan, options: RayOptions) -> bool:
    names = [options.device] if options.device else list(plan.context_device_map.values())
    return any(name.startswith("cuda") for name in names) and torch.cuda.is_available()


def _cpus() -> int:
    ray = importlib.import_module("ray")
    if ray.is_initialized():
        return int(ray.cluster_resources().get("CPU", 1))
    return os.cpu_count() or 1


def _ray_data() -> Any:
    try:
        return importlib.import_module("ray.data")
    except ImportError as error:
        raise InputError(
            "flow export --ray",
            f"no module named {(error.name or 'ray').partition('.')[0]!r}",
            Text("Ray Data 2.x and what it needs", "Ray Data 2.x 及其依赖"),
            Text(
                'install it with `pip install "torchstone[ray]"`',
                '请运行 `pip install "torchstone[ray]"` 安装',
            ),
        ) from None
