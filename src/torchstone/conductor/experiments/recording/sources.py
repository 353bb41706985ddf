"""What the samples of a data set are made from: tables and pictures that functions of the project return on the way.

A sample that is augmented is never equal to another one, but what it was made from is.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from torchstone.conductor.experiments.recording.samples import digests_of

_MOST_SAMPLES = 512
_CPU_SECONDS = 2.0
"""For one data set: samples that take longer are looked at as far as this goes."""
_LARGE = 64
"""Elements of a table or a picture; sequences are left out: two splits may share them on purpose."""
_SHARED = 2
"""A value behind more samples than this belongs to the data set and not to a sample."""


def sources_of(data: Any, root: Path) -> list[frozenset[str]]:
    """For each sample, digests of what it is made from; empty where samples cannot be asked for."""
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        return []
    until = time.process_time() + _CPU_SECONDS
    found: list[frozenset[str]] = []
    for place in range(min(len(data), _MOST_SAMPLES)):
        if time.process_time() > until:
            break
        values: list[Any] = []
        sys.setprofile(_listener(values, f"{root}/"))
        try:
            data[place]
        except Exception:  # whatever the data set raises: what was made so far is enough
            break
        finally:
            sys.setprofile(None)
        found.append(frozenset(digests_of(values)))
    return found


def used_once(sources: Sequence[frozenset[str]]) -> set[str]:
    """What stands behind single samples and not behind many."""
    counts = Counter(item for row in sources for item in row)
    return {item for item, count in counts.items() if item and count <= _SHARED}


def _listener(values: list[Any], inside: str) -> Any:
    def returned(frame: FrameType, event: str, value: Any) -> None:
        if event != "return" or not frame.f_code.co_filename.startswith(inside):
            return
        items = value if isinstance(value, tuple) else (value,)
        values.extend(item for item in items if _is_table(item))

    return returned


def _is_table(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dim() > 1 and value.numel() >= _LARGE
    shape = getattr(value, "shape", ()) if hasattr(value, "__array__") else ()
    size = 1
    for side in shape:
        size *= side
    return len(shape) > 1 and size >= _LARGE
