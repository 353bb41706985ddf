"""Spans of time on one axis, and how a stretch of training divides into data, device and host."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[float, float]
"""Begin and end, in microseconds."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same time as spans that do not touch, in order."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > begin:
            found.append((begin, end))
    return found


def without(spans: Sequence[Span], holes: Sequence[Span]) -> list[Span]:
    """Merged spans with merged holes cut out of them."""
    found: list[Span] = []
    for begin, end in spans:
        at = begin
        for left, right in holes[max(bisect_right(holes, (begin, begin)) - 1, 0) :]:
            if left >= end:
                break
            if right <= at:
                continue
            if left > at:
                found.append((at, left))
            at = max(at, right)
        if at < end:
            found.append((at, end))
    return found


def length(spans: Iterable[Span]) -> float:
    return sum(end - begin for begin, end in spans)


def holds(spans: Sequence[Span], moment: float) -> bool:
    """Of merged spans: does one hold this moment?"""
    place = bisect_right(spans, (moment, float("inf"))) - 1
    return place >= 0 and spans[place][0] <= moment < spans[place][1]


@dataclass(frozen=True, slots=True)
class Division:
    """Spans of the three parts; together they are the whole stretch, and none counts twice."""

    data: list[Span]
    device: list[Span]
    host: list[Span]

    def part_of(self, moment: float) -> str:
        """`data`, `device` or `host`; empty outside of the stretch."""
        for name in ("data", "device", "host"):
            if holds(getattr(self, name), moment):
                return name
        return ""


def divide(
    stretch: Span, data: Iterable[Span], device: Iterable[Span], accelerator: bool
) -> Division:
    """On an accelerator, a loader that is waited for while kernels run costs nothing: the device goes
    first. On the CPU, operators inside the loader are part of loading: the data goes first."""
    whole = [stretch]
    outside = without([(float("-inf"), float("inf"))], whole)
    loading, busy = (without(merged(spans), outside) for spans in (data, device))
    if accelerator:
        loading = without(loading, busy)
    else:
        busy = without(busy, loading)
    return Division(loading, busy, without(whole, merged((*loading, *busy))))
