"""Samples that are windows of one long row: which stretch of memory each of their parts shows."""

from __future__ import annotations

import bisect
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

_MOST_SAMPLES = 2000
_CPU_SECONDS = 2.0
"""For one data set, as for what its samples are made from."""
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
    until = time.process_time() + _CPU_SECONDS
    found: list[tuple[Window, ...]] = []
    try:
        with torch.random.fork_rng():
            one, again = data[0], data[0]  # both held: memory that is free would be used again
            parts = {item.part for item in set(_windows(one, "")) & set(_windows(again, ""))}
            for place in range(min(len(data), _MOST_SAMPLES)) if parts else ():
                if time.process_time() > until:
                    break
                windows = _windows(data[place], "")
                found.append(tuple(item for item in windows if item.part in parts))
    except Exception:  # whatever the data set of the project raises: it decides nothing
        return []
    return found


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
