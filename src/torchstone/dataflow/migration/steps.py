"""One recorded operation: how the original does it, and how a batch of items does it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.catalogue import catalogue
from torchstone.dataflow.migration.moves.numpy import _elementwise as elementwise
from torchstone.dataflow.migration.nested import hashable
from torchstone.dataflow.migration.specification import Call, OpSpec

Key = tuple[Any, ...]


@dataclass(slots=True)
class Fate:
    """What became of one recorded call: several handles may hold it, it is counted once."""

    line: str
    """`file:line` of the call."""
    is_settled: bool = False

    def settle(self) -> bool:
        """True for the first who asks."""
        first, self.is_settled = not self.is_settled, True
        return first


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call as the program wrote it, with ITEM in place of the image."""

    call: Call
    fate: Fate


@dataclass(frozen=True, slots=True)
class Step:
    """An operation without its data. `key` tells equal steps: they are computed together."""

    kind: str
    """`call`, `ufunc`, `astype`, `copy`, `contiguous`, `transpose`, `getitem`."""
    name: str
    arguments: Any
    """Of a call: by the names of the parameters, defaults filled in."""
    key: Key
    recorded: RecordedCall | None = None
    """Of a call."""

    def shape_and_dtype(
        self, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> tuple[tuple[int, ...], np.dtype[Any]]:
        return _outcome(_Keyed(self), shape, dtype)

    def of_batch(self, batch: Tensor) -> Tensor:
        """For items stacked along the first axis."""
        return _BATCHED[self.kind](self, batch)

    def of_item(
        self, item: np.ndarray, originals: Callable[[str], Callable[..., Any]]
    ) -> np.ndarray:
        """As the program itself would have done it."""
        if self.recorded is not None:  # as it was written: other versions have other defaults
            call = self.recorded.call
            args = [item if value is ITEM else value for value in call.args]
            kwargs = {k: item if value is ITEM else value for k, value in call.kwargs.items()}
            return np.asarray(originals(self.name)(*args, **kwargs))
        if self.kind == "ufunc":
            operands = [item if operand is ITEM else operand for operand in self.arguments]
            return np.asarray(getattr(np, self.name)(*operands))
        if self.kind == "astype":
            return item.astype(self.arguments)
        if self.kind == "copy":
            return item.copy(self.arguments)
        if self.kind == "contiguous":
            return np.ascontiguousarray(item)
        return item.transpose(self.arguments) if self.kind == "transpose" else item[self.arguments]


class _Item:
    """The place of the item among operands or arguments; one object, also after pickling."""

    def __reduce__(self) -> str:
        return "ITEM"


ITEM = _Item()


class _Keyed:
    """A step that hashes by its key."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __hash__(self) -> int:
        return hash((self.step.kind, self.step.name, self.step.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and (
            (self.step.kind, self.step.name, self.step.key)
            == (other.step.kind, other.step.name, other.step.key)
        )


@functools.lru_cache(maxsize=1024)
def _outcome(
    keyed: _Keyed, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Found with a batch of no items, or on the meta device: nothing is computed. The first is
    tried first, because the meta device loads torch's own decompositions for seconds."""
    kind = elementwise.torch_dtype(dtype)
    try:
        result = keyed.step.of_batch(torch.empty((0, *shape), dtype=kind))
    except (RuntimeError, ValueError, IndexError):  # some operators want at least one item
        result = keyed.step.of_batch(torch.empty((1, *shape), dtype=kind, device="meta"))
    return tuple(result.shape[1:]), elementwise.numpy_dtype(result.dtype)


def can_record(spec: OpSpec) -> bool:
    return spec.batched and len(spec.data) == 1 and spec.output == "image"


def step(kind: str, name: str, arguments: Any, recorded: RecordedCall | None = None) -> Step:
    made = Step(kind, name, arguments, hashable(arguments), recorded)
    hash(made.key)  # what cannot be compared cannot be recorded
    return made


# -- batches


def _call(recorded: Step, batch: Tensor) -> Tensor:
    spec = catalogue()[recorded.name]
    images = batch[..., None] if batch.ndim == 3 else batch
    arguments = dict(recorded.arguments)
    arguments.pop("dst", None)
    backend = _backend(spec, arguments, batch.device)
    result = backend(**{spec.data[0]: images.permute(0, 3, 1, 2)}).permute(0, 2, 3, 1)
    return result[..., 0] if result.shape[-1] == 1 else result


def _backend(
    spec: OpSpec, arguments: dict[str, Any], device: torch.device
) -> Callable[..., Tensor]:
    assert spec.backend is not None
    maps, renames = spec.value_maps, spec.renames
    arguments = {
        renames.get(name, name): maps.get(name, {}).get(value, value) if name in maps else value
        for name, value in arguments.items()
    }
    arguments = {**spec.inject, **arguments}
    if spec.strategy == "FactoryOp":
        made: Callable[..., Tensor] = spec.backend(**arguments, device=device)
        return made

    def computed(**data: Tensor) -> Tensor:
        whole = {**arguments, **data}
        assert spec.backend is not None
        result: Tensor = spec.backend(**(spec.structure(whole) if spec.structure else whole))
        return result

    return computed


def _ufunc(recorded: Step, batch: Tensor) -> Tensor:
    operands = []
    for operand in recorded.arguments:
        if operand is ITEM:
            operands.append(batch)
        elif isinstance(operand, np.ndarray):
            operands.append(torch.from_numpy(np.ascontiguousarray(operand)).to(batch.device))
        else:
            operands.append(operand)
    return elementwise.apply_ufunc(recorded.name, *operands)


def _astype(recorded: Step, batch: Tensor) -> Tensor:
    return batch.to(elementwise.torch_dtype(np.dtype(recorded.arguments)))


def _transpose(recorded: Step, batch: Tensor) -> Tensor:
    return batch.permute(0, *(axis + 1 for axis in recorded.arguments))


def _getitem(recorded: Step, batch: Tensor) -> Tensor:
    return batch[(slice(None), *recorded.arguments)]


def _as_it_is(_: Step, batch: Tensor) -> Tensor:
    """A batch is laid out anew where it is made."""
    return batch


_BATCHED: dict[str, Callable[[Step, Tensor], Tensor]] = {
    "call": _call,
    "ufunc": _ufunc,
    "astype": _astype,
    "copy": _as_it_is,
    "contiguous": _as_it_is,
    "transpose": _transpose,
    "getitem": _getitem,
}
