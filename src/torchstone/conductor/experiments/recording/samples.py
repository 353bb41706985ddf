"""Which samples a loader gave: a digest of each, taken before they are put into a batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

_LARGE = 4
"""Elements from which a tensor tells samples apart; labels and positions are smaller."""
_LONG_TEXT = 16
_MOST_DEPTH = 4
_MOST_SAMPLES = 2048
"""Of a batch: a token table with more rows is not a batch of samples."""


@dataclass(frozen=True, slots=True)
class Collated:
    """A batch with the digests of the samples that it was made of."""

    batch: Any
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CollateWithDigests:
    """Does what the loader's own function does, and adds the digests. It may run in a worker."""

    collate: Callable[[Any], Any]
    single: bool
    """The loader makes no batches: it hands each item on as it is."""

    def __call__(self, given: Any) -> Collated:
        samples = () if self.single or len(given) > _MOST_SAMPLES else digests_of(given)
        return Collated(self.collate(given), samples)


def digests_of(samples: Iterable[Any]) -> tuple[str, ...]:
    """A digest of each sample; the empty one for a sample that holds nothing to tell it by."""
    return tuple(_digest(item) for item in samples)


def _digest(sample: Any) -> str:
    parts = list(_parts(sample))
    large = [data for data, size in parts if size >= _LARGE]
    if not (chosen := large or [data for data, _ in parts]):
        return ""
    digest = hashlib.sha256()
    for data in chosen:
        digest.update(data)
    return digest.hexdigest()[:16]


def _parts(value: Any, depth: int = 0) -> Iterable[tuple[bytes, int]]:
    """What a sample is made of, as bytes, with the number of elements."""
    if isinstance(value, torch.Tensor):
        yield _bytes_of(value.detach().cpu()), value.numel()
    elif isinstance(value, str | bytes):
        data = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        yield data, _LARGE if len(data) >= _LONG_TEXT else 1
    elif isinstance(value, bool | int | float):
        yield repr(value).encode(), 1
    elif getattr(type(value), "is_open", False):
        return  # a made value whose form is not decided yet: asking for it would decide
    elif hasattr(value, "__array__"):  # numpy's, and pictures
        try:
            array = torch.as_tensor(value.__array__())
        except (TypeError, ValueError, RuntimeError):
            return  # an array of objects: nothing that can be compared
        yield _bytes_of(array), array.numel()
    elif depth < _MOST_DEPTH:
        inside: Iterable[Any] = ()
        if isinstance(value, dict):
            inside = value.values()
        elif isinstance(value, list | tuple):
            inside = value
        elif hasattr(value, "__dict__"):
            inside = vars(value).values()
        for item in inside:
            yield from _parts(item, depth + 1)


def _bytes_of(tensor: torch.Tensor) -> bytes:
    """The values; those of a table or a picture in the order of their size, so that one that was turned or
    mirrored is still known."""
    if tensor.dtype == torch.bfloat16 or tensor.layout != torch.strided:
        tensor = (tensor.to_dense() if tensor.layout != torch.strided else tensor).float()
    flat = tensor.contiguous().flatten()
    if tensor.dim() > 1 and not tensor.is_complex():
        flat = flat.sort().values
    return bytes(flat.numpy().tobytes())
