"""Kernels that an entry launches for one call, and the bytes and operations of them.

Counted by a dispatch mode on the entry's own code. The figures are kept as data
(`kernel_counts.json`, made by `benchmarks/flow/count_kernels.py`) so that a plan need not run the
entries; a test counts them again.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

import torch

from torchstone.dataflow.device.kernel_count import KernelCount
from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.operators import OperatorMode

_FUSED = frozenset(
    "index embedding gather take cat stack constant_pad_nd clone copy_ _to_copy arange full zeros ones scalar_tensor "
    "fill_ zero_ full_like zeros_like ones_like flip roll reflection_pad2d replication_pad2d linspace".split()
)
"""Beside elementwise operators: a compiler reads or writes what they do inside the next kernel."""
_MADE_WITHOUT_KERNEL = ("empty", "new_empty", "detach", "lift_fresh", "_unsafe_view", "alias")


class KernelCounter(OperatorMode):
    """Counts what is no view: each is one launch on a device."""

    def __init__(self) -> None:
        super().__init__()
        self.launches = 0
        self.traffic = 0
        self.elements = 0
        self.uploads = 0
        self.ends = 0
        """Kernels that end what a compiler can make one kernel of."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        name = func._schema.name.rpartition("::")[2]
        if not func.is_view and name not in _MADE_WITHOUT_KERNEL:
            self.launches += 1
            self.ends += torch.Tag.pointwise not in func.tags and name not in _FUSED
            made = _tensors(result)
            self.traffic += sum(map(_bytes, [*_tensors((args, kwargs)), *made]))
            self.elements += sum(item.numel() for item in made)
        return result

    def __enter__(self) -> KernelCounter:
        self._undo = contextlib.ExitStack()
        for name in ("from_numpy", "tensor"):
            self._undo.enter_context(self._counting(name))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._undo.close()

    @contextlib.contextmanager
    def _counting(self, name: str) -> Iterator[None]:
        """Tensors of host data are uploads; neither of these functions is dispatched."""
        original: Callable[..., Any] = getattr(torch, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.uploads += 1
            return original(*args, **kwargs)

        setattr(torch, name, counted)
        try:
            yield
        finally:
            setattr(torch, name, original)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [item for item in tree_leaves(value) if isinstance(item, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


@functools.cache
def kernel_counts() -> Mapping[str, Mapping[str, KernelCount]]:
    """By function and case; the case "" has the whole range of a function."""
    text = resources.files(__package__).joinpath("kernel_counts.json").read_text("utf-8")
    found = {
        name: {case: KernelCount(*item) for case, item in cases.items()}
        for name, cases in json.loads(text).items()
    }
    return {name: {**cases, "": _range(list(cases.values()))} for name, cases in found.items()}


def _range(counts: list[KernelCount]) -> KernelCount:
    ordered = sorted(counts, key=lambda item: item.usual)
    middle = ordered[len(ordered) // 2]
    return KernelCount(
        min(item.low for item in counts),
        middle.usual,
        max(item.high for item in counts),
        max(item.uploads for item in counts),
        max(item.traffic for item in counts),
        max(item.operations for item in counts),
        max(item.fused for item in counts),
    )
