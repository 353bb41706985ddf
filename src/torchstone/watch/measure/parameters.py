"""The parameters of one optimizer, in the order of their layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.core.text import Text
from torchstone.runtime.number_formats import NumberFormat, format_of
from torchstone.watch.read.fused import Pinned, load_fused
from torchstone.watch.read.reading import WIDTH, size_of


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A parameter that is not read, and why."""

    name: str
    reason: Text


class WatchedParameters:
    """The parameters of one optimizer that can be read. Nothing of it changes: where the optimizer
    gets others, there is a new one."""

    def __init__(self, optimizer: torch.optim.Optimizer, names: dict[int, str]) -> None:
        self.key = id(optimizer)
        """The optimizer, for those who keep something of each."""
        everything = _named(optimizer, names)
        self.unwatched = [Unwatched(n, why) for n, p in everything if (why := _unreadable(p))]
        kept = _by_owner([(n, p) for n, p in everything if not _unreadable(p)])
        self.names = tuple(n for n, _ in kept)
        self.parameters: tuple[Tensor, ...] = tuple(p for _, p in kept)
        groups = {id(p): i for i, g in enumerate(optimizer.param_groups) for p in g["params"]}
        self.group_of = np.array([groups[id(p)] for p in self.parameters], np.int64)
        self.ids = frozenset(id(p) for p in self.parameters)
        self.on_host = all(_device(p) == "cpu" for p in self.parameters)
        self.starts, self.layers = _layers(self.names)
        found = load_fused()
        self._fused = None if isinstance(found, str) else found
        self._bounds = Pinned(np.append(self.starts, len(self.parameters)).astype(np.int64))
        self.sizes = np.array([size_of(p) for p in self.parameters], np.int64)
        self.sampled = np.minimum(self.sizes, WIDTH).astype(np.float64)
        self.weight = self.sizes / np.maximum(self.sampled, 1)
        self.layer_sizes = self.by_layer(self.sizes.astype(np.float64))
        self.layer_sampled = np.maximum(self.by_layer(self.sampled), 1)
        self.precision = np.array([torch.finfo(p.dtype).eps for p in self.parameters])
        """Distance between 1 and the next larger number, in the format of each parameter."""
        self.dtypes = frozenset(p.dtype for p in self.parameters)

    def by_layer(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Sums over the parameters of every layer."""
        if len(values) == 0:
            return values
        return np.asarray(np.add.reduceat(values, self.starts))

    def sum_rows(self, each: Sequence[NDArray[np.void]]) -> NDArray[np.float64]:
        """Sums over the parameters of every layer and step, in the order of `Fused.sum_rows`."""
        if self._fused is not None:
            return self._fused.sum_rows(self._bounds, each)
        return np.array([self._sum_rows(rows) for rows in each])

    def _sum_rows(self, rows: NDArray[np.void]) -> NDArray[np.float64]:
        table = [rows["sum_of_squares"], rows["zero"], *rows["below"].T]
        return self._by_layer([*table, rows["nan"] + rows["infinite"]])

    def sum_steps(self, each: Sequence[NDArray[np.void]]) -> NDArray[np.float64]:
        """Sums over the parameters of every layer and step, in the order of `Fused.sum_steps`."""
        if self._fused is not None:
            return self._fused.sum_steps(self._bounds, each)
        return np.array([self._sum_steps(steps) for steps in each])

    def _sum_steps(self, steps: NDArray[np.void]) -> NDArray[np.float64]:
        still = (steps["changed"] == 0) & (steps["pushed"] > 0) & (steps["not_finite"] == 0)
        names = ("update_squares", "weight_squares", "pushed", "absorbed", "not_finite")
        products = ("gradient_squares", "along", "again", "straight")
        return self._by_layer(
            [*(steps[name] for name in names), still, *(steps[name] for name in products)]
        )

    def _by_layer(self, table: list[NDArray[Any]]) -> NDArray[np.float64]:
        whole = np.array(table, np.float64)
        if not whole.shape[1]:
            return whole
        return np.asarray(np.add.reduceat(whole, self.starts, axis=1))


def narrowest(dtypes: Sequence[torch.dtype]) -> NumberFormat:
    """The format with the fewest exponent bits, then the fewest mantissa bits."""
    return min(map(format_of, dtypes), key=lambda f: (f.exponent_bits, f.mantissa_bits))


def _named(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> list[tuple[str, Tensor]]:
    found: list[tuple[str, Tensor]] = []
    seen: set[int] = set()
    for g, group in enumerate(optimizer.param_groups):
        for i, parameter in enumerate(group["params"]):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found.append((names.get(id(parameter), f"group{g}.{i}"), parameter))
    return found


def _by_owner(named: list[tuple[str, Tensor]]) -> list[tuple[str, Tensor]]:
    """Parameters of one layer side by side; layers in the order of their first parameter."""
    order: dict[str, int] = {}
    for name, _ in named:
        order.setdefault(owner(name), len(order))
    return sorted(named, key=lambda item: order[owner(item[0])])


def owner(name: str) -> str:
    """The module that holds a parameter."""
    return name.rpartition(".")[0] or name


def _layers(names: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    owners = [owner(name) for name in names]
    starts = [i for i, item in enumerate(owners) if i == 0 or item != owners[i - 1]]
    return np.array(starts, np.int64), tuple(owners[i] for i in starts)


def _device(parameter: Tensor) -> str:
    return parameter.device.type


def _unreadable(parameter: Tensor) -> Text | None:
    if parameter.is_meta:
        return Text("it is a meta tensor, without values", "它是 meta 张量，没有数值")
    if parameter.is_quantized:
        return Text("it is quantised, and has no gradient", "它是量化张量，没有梯度")
    if not (parameter.is_floating_point() or parameter.is_complex()):
        return Text(
            f"it is {parameter.dtype}, and has no gradient", f"它是 {parameter.dtype}，没有梯度"
        )
    if parameter.layout != torch.strided:
        return Text("it is sparse", "它是稀疏张量")
    return None
