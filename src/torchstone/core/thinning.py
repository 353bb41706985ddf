"""Long series made short without losing what happened: every extreme stays in what is drawn."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

AROUND = 50
"""Points on each side of a mark that stay as they are: what led to an alert and what followed."""


def thinned(values: Sequence[float | None], most: int, always: Collection[int] = ()) -> list[int]:
    """Indices to draw, in order: all of them where they fit, else the first, the last, the lowest
    and the highest of each bucket, what is not a number, and the neighbourhood of `always`."""
    count = len(values)
    if count <= most:
        return list(range(count))
    kept = {0, count - 1}
    buckets = max(most // 2, 1)
    for number in range(buckets):
        start, end = number * count // buckets, (number + 1) * count // buckets
        kept |= _of_bucket(values, start, end)
    for place in always:
        kept.update(range(max(0, place - AROUND), min(count, place + AROUND + 1)))
    return sorted(kept)


def _of_bucket(values: Sequence[float | None], start: int, end: int) -> set[int]:
    """Its extremes, and the first place of each kind that is not a number."""
    low = high = -1
    odd: dict[str, int] = {}
    for index in range(start, end):
        value = values[index]
        if value is None or not math.isfinite(value):
            odd.setdefault(str(value), index)
            continue
        if low < 0 or value < values[low]:  # type: ignore[operator]
            low = index
        if high < 0 or value > values[high]:  # type: ignore[operator]
            high = index
    return {index for index in (low, high, *odd.values()) if index >= 0}


def columns_of(values: Sequence[float | None], width: int) -> list[float | None]:
    """At most `width` values for a row of blocks. A column shows the middle of its bucket, or the
    value that stands out of it, or NaN where one of its values is no number; the lowest and the
    highest of all are always among them."""
    count = len(values)
    if count <= width:
        return list(values)
    buckets = [values[i * count // width : (i + 1) * count // width] for i in range(width)]
    finite = [[v for v in part if v is not None and math.isfinite(v)] for part in buckets]
    spreads = sorted(max(part) - min(part) for part in finite if part)
    usual = spreads[len(spreads) // 2] if spreads else 0.0
    shown: list[float | None] = []
    for part, good in zip(buckets, finite, strict=True):
        odd = any(value is not None and not math.isfinite(value) for value in part)
        shown.append(math.nan if odd else _outstanding(good, usual))
    whole = [value for part in finite for value in part]
    taken = {place for place, value in enumerate(shown) if value is not None and value != value}
    for extreme in dict.fromkeys((max(whole), min(whole))) if whole else ():
        wanted = next(place for place, part in enumerate(finite) if extreme in part)
        place = min((i for i in range(width) if i not in taken), key=lambda i: abs(i - wanted),
                    default=wanted)  # fmt: skip
        shown[place] = extreme
        taken.add(place)
    return shown


def _outstanding(part: list[float], usual: float) -> float | None:
    """The middle value, unless another lies further from it than values of a bucket usually do."""
    if not part:
        return None
    middle = sorted(part)[len(part) // 2]
    far = max(part, key=lambda value: abs(value - middle))
    return far if abs(far - middle) > 2 * usual else middle
