"""Counts the kernels of every entry of the catalogue, and keeps the figures beside the entries.

python benchmarks/flow/count_kernels.py
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from torchstone.dataflow.device.kernel_count import KernelCount
from torchstone.dataflow.migration import catalogue, wrapper
from torchstone.dataflow.migration.contexts import Placement
from torchstone.dataflow.migration.object_paths import resolve_object_path
from torchstone.dataflow.migration.processors import Transfer
from torchstone.dataflow.migration.proof import kernels
from torchstone.dataflow.migration.proof.kernels import KernelCounter
from torchstone.dataflow.migration.specification import OpSpec, Refusal
from torchstone.dataflow.plan import MigrationPlan

DRAWS = 160
MOST = 10
"""Calls of each case that are counted."""


def count_entry(spec: OpSpec, draws: int = DRAWS, most: int = MOST) -> dict[str, KernelCount]:
    holder, name = resolve_object_path(spec.name)
    migration = wrapper.Migration(Placement(MigrationPlan({})), {})
    replaced = wrapper.UniversalWrapper(getattr(holder, name), spec.name, spec, migration)
    rng = np.random.default_rng(zlib.crc32(spec.name.encode()))
    counted: dict[str, list[KernelCounter]] = defaultdict(list)
    sizes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for _ in range(draws):
        call = spec.sample(rng)
        bound = spec.bind(call.args, call.kwargs)
        case = spec.judge(bound)
        if isinstance(case, Refusal) or len(counted[case.name]) >= most:
            continue
        result = replaced.compute(bound, Transfer(torch.device("cpu")))  # makes its tables
        with KernelCounter() as counter:
            replaced.compute(bound, Transfer(torch.device("cpu")))
        counter.uploads -= _images_in(spec, bound)
        counted[case.name].append(counter)
        sizes[case.name].append((_size((call.args, call.kwargs, result)), _size(result)))
    return {name: _summary(found, sizes[name]) for name, found in counted.items()}


def _images_in(spec: OpSpec, bound: dict[str, object]) -> int:
    """The data themselves: what they cost is in the transfers of a plan."""
    arrays = [bound.get(name) for name in spec.data]
    return sum(len(item) if isinstance(item, list | tuple) else 1 for item in arrays if item is not None)  # fmt: skip


def _size(value: object) -> int:
    if isinstance(value, np.ndarray | np.generic):
        return max(value.nbytes, 1)
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, dict):
        return _size(list(value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    if hasattr(value, "tobytes"):
        return len(value.tobytes())
    return 0


def _summary(found: list[KernelCounter], sizes: list[tuple[int, int]]) -> KernelCount:
    launches = [item.launches for item in found]
    # of small images tables are most of the traffic: the largest tell
    order = sorted(range(len(found)), key=lambda place: -sizes[place][0])[: max(1, len(found) // 3)]
    traffic = [found[place].traffic / max(sizes[place][0], 1) for place in order]
    made = [found[place].elements / max(sizes[place][1], 1) for place in order]
    return KernelCount(
        min(launches),
        int(statistics.median(launches)),
        max(launches),
        max(max(item.uploads for item in found), 0),
        round(statistics.median(traffic), 1),
        round(statistics.median(made), 1),
        max(min(item.launches, item.ends + 1) for item in found),
    )


def main() -> None:
    found = {}
    for name, spec in sorted(catalogue().items()):
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            continue
        cases = sorted(count_entry(spec).items())
        found[name] = {
            case: [c.low, c.usual, c.high, c.uploads, c.traffic, c.operations, c.fused]
            for case, c in cases
        }
    lines = [f"{json.dumps(name)}: {json.dumps(cases)}" for name, cases in found.items()]
    path = Path(kernels.__file__).with_name("kernel_counts.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(found)} functions")


if __name__ == "__main__":
    main()
