"""What is known of a model's modules after a run: parameters, activations, peaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from torchstone.cost.records.books import Books
from torchstone.cost.records.ledger import OPTIMIZER, ModuleFacts, ancestors
from torchstone.runtime.modules import Part


def tensors_of(parts: list[Part]) -> Iterator[torch.Tensor]:
    """Every parameter and buffer of a model, as they are now."""
    for _, module in parts:
        for home in (module._parameters, module._buffers):
            yield from (item for item in home.values() if item is not None)


def facts_of(
    parts: list[Part], books: Books, held: Mapping[str, int], stands: Mapping[str, str]
) -> dict[str, ModuleFacts]:
    """The facts by module path; `held` are activations kept, `stands` which layer was copied."""
    peaks: dict[str, int] = {}
    for scope in books.scopes.values():
        if scope.phase == OPTIMIZER:
            continue  # no module runs then
        for path in ancestors(scope.module):
            if scope.peak <= peaks.get(path, 0):
                break  # those above have at least as much
            peaks[path] = scope.peak
    seen: set[int] = set()
    return {
        part.path: _fact(
            part, seen, held.get(part.path, 0), peaks.get(part.path, 0), stands.get(part.path, "")
        )
        for part in parts
    }


def _fact(part: Part, seen: set[int], held: int, peak: int, stands: str) -> ModuleFacts:
    count = size = trainable = shared = 0
    stored: Mapping[str, int] = getattr(part.module, "values_stored", {})
    for name, item in part.module._parameters.items():
        if item is None:
            continue
        number = stored.get(name, item.numel())  # a packed one holds several in each element
        if id(item) in seen:
            shared += number
            continue
        seen.add(id(item))
        count += number
        size += item.numel() * item.element_size()
        trainable += number if item.requires_grad else 0
    buffers = sum(
        item.numel() * item.element_size()
        for item in part.module._buffers.values()
        if item is not None
    )
    return ModuleFacts(
        path=part.path,
        kind=type(part.module).__name__,
        parameters=count,
        parameter_bytes=size,
        trainable=trainable,
        buffer_bytes=buffers,
        shared=shared,
        activation_bytes=held,
        peak_bytes=peak,
        replayed=stands,
    )
