"""Samples that are windows of one long row: which stretch of memory each of their parts shows."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

_MOST_SAMPLES = 2000
_LEAST = 4
"""Elements of a part: single numbers are labels, and many samples share them."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a sample, and the bytes that it shows."""

    part: str
    first: int
    last: int


def windows_of(data: Any) -> list[tuple[Window, ...]]:
    """For each sample of a data set, its parts that show what the data set holds; empty where it cannot be read by
    number, or makes new tensors."""
    try:
        count = min(len(data), _MOST_SAMPLES)
        with torch.random.fork_rng():
            samples = [
                data[place] for place in range(count)
            ]  # held: memory that is free is used again
            again = data[0] if count else None
    except Exception:  # whatever the data set of the project raises: it decides nothing
        return []
    if not samples:
        return []
    held = set(_windows(samples[0], "")) & set(_windows(again, ""))
    parts = {item.part for item in held}
    return [
        tuple(item for item in _windows(sample, "") if item.part in parts) for sample in samples
    ]


def _windows(value: Any, part: str) -> Iterator[Window]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _windows(item, f"{part}.{key}")
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _windows(item, f"{part}.{place}")
    elif hasattr(value, "__array__") and not isinstance(value, torch.Tensor):
        try:
            yield from _windows(torch.as_tensor(value.__array__()), part)
        except (TypeError, ValueError, RuntimeError):
            return  # an array of objects, or one that cannot be written
    elif isinstance(value, torch.Tensor) and value.layout is torch.strided:
        if value.numel() >= _LEAST and value.is_contiguous():
            size = value.element_size()
            yield Window(part, value.data_ptr(), value.data_ptr() + value.numel() * size)


def count_covered(theirs: list[tuple[Window, ...]], own: list[tuple[Window, ...]]) -> int:
    """Samples of which every part lies in what the same parts of the others show together."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for sample in own:
        for item in sample:
            spans.setdefault(item.part, []).append((item.first, item.last))
    joined = {part: _join(found) for part, found in spans.items()}
    return sum(
        bool(sample) and all(_lies_in(item, joined.get(item.part, [])) for item in sample)
        for sample in theirs
    )


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches that meet or overlap, as one, in order."""
    made: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if made and first <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], last)
        else:
            made.append((first, last))
    return made


def _lies_in(item: Window, joined: list[tuple[int, int]]) -> bool:
    place = bisect.bisect_right(joined, (item.first, sys.maxsize)) - 1
    return place >= 0 and joined[place][0] <= item.first and item.last <= joined[place][1]
