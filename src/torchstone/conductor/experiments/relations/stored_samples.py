"""Reading a sample leaves the stored data as they are."""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import NOWHERE, Place
from torchstone.core.text import Text

CHANGED = ProbeRule(
    "EX121",
    "reading-changes-the-data",
    Severity.HIGH,
    "wrong result",
    Text("reading a sample changes the data set", "读取样本会改变数据集"),
    Text(
        "what is written in place is what the data set holds: every later epoch reads the changed values",
        "就地写入的正是数据集所保存的内容：此后的每一轮读到的都是被改变的值",
    ),
    Text(
        "copy before writing: `x = x.clone()` or `x = x.copy()`",
        "写入之前先复制：`x = x.clone()` 或 `x = x.copy()`",
    ),
)
RULES = (CHANGED,)
_INDICES = 6
_SEEDS = 4
"""Augmentations write at random: each sample is read with several seeds."""
_MOST_BYTES = 32 << 20
"""Of all arrays together: larger data are not copied for this."""
_MOST_ARRAYS = 2048
_DEPTH = 4


def examine(subject: Subject) -> Examined:
    shown: list[Shown] = []
    decided = False
    datasets = {id(item.data): item.data for item in subject.run.loaders.values()}
    for data in datasets.values():
        if isinstance(data, IterableDataset) or not hasattr(data, "__getitem__"):
            continue
        arrays = list(_arrays_of(data))
        if not arrays or sum(item.nbytes for item in arrays) > _MOST_BYTES:
            continue
        try:
            with _KeptState():
                found = _examine_one(data, arrays, subject.run.root)
        except Exception:  # a data set that cannot be read again by itself decides nothing
            continue
        decided = True
        if found is not None:
            shown.append(found)
    return Examined(tuple(shown), decided=True) if decided else NOTHING_TO_LOOK_AT


def _examine_one(data: Any, arrays: list[np.ndarray[Any, Any]], root: Path) -> Shown | None:
    original = [item.copy() for item in arrays]
    try:
        count = len(data)
        indices = sorted({place * count // _INDICES for place in range(_INDICES)} & {*range(count)})
        for seed in range(_SEEDS):  # what is filled when it is first read is filled now
            _read(data, indices, seed)
        touched: set[int] = set()
        for seed in range(_SEEDS):  # one after the other: a second flip would hide the first
            before = [item.copy() for item in arrays]
            _read(data, indices, seed)
            pairs = enumerate(zip(arrays, before, strict=True))
            touched |= {place for place, (item, old) in pairs if not _equal(item, old)}
        changed = [arrays[place] for place in sorted(touched)]
        if not changed:
            return None
        place = _line_that_writes(data, indices, changed, root) or _reading_method(data, root)
    finally:
        for item, old in zip(arrays, original, strict=True):
            np.copyto(item, old)
    return Shown(
        CHANGED,
        place,
        Text(
            "reading the same {read} samples again changes {count} of the arrays that `{name}` holds",
            "再次读取同样的 {read} 个样本，会改变 `{name}` 所保存的 {count} 个数组",
        ),
        {"read": str(len(indices)), "count": str(len(changed)), "name": type(data).__name__},
        (number("arrays that were changed", "被改变的数组", len(changed), "", IN_THE_RUN),),
    )


def _read(data: Any, indices: list[int], seed: int) -> None:
    for index in indices:
        _seed(seed)
        data[index]


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class _KeptState:
    """Generators give afterwards what they would have given."""

    def __enter__(self) -> None:
        self._states = random.getstate(), np.random.get_state(), torch.get_rng_state()

    def __exit__(self, *_: object) -> None:
        random.setstate(self._states[0])
        np.random.set_state(self._states[1])
        torch.set_rng_state(self._states[2])


def _arrays_of(data: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Values that a data set holds: arrays and tensors of samples, not counters of a single number."""
    pending, seen = [(data, 0)], {id(data)}
    given = 0
    while pending and given < _MOST_ARRAYS:
        value, depth = pending.pop()
        array = _as_array(value)
        if array is not None:
            if array.size > 1 and array.flags.writeable and array.dtype != object:
                given += 1
                yield array
            continue
        if depth >= _DEPTH:
            continue
        parts: list[Any] = []
        if isinstance(value, dict):
            parts = list(value.values())
        elif isinstance(value, (list, tuple)):
            parts = list(value)
        elif hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)):
            parts = list(vars(value).values())
        for part in parts:
            if id(part) not in seen:
                seen.add(id(part))
                pending.append((part, depth + 1))


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """The memory of a value, which it shares."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        plain = value.device.type == "cpu" and not value.requires_grad
        return value.numpy() if plain and value.dtype != torch.bfloat16 else None
    return None


def _equal(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return one.tobytes() == other.tobytes()


def _line_that_writes(
    data: Any, indices: list[int], changed: list[np.ndarray[Any, Any]], root: Path
) -> Place:
    """The first line of the project after which an array is no longer what it was."""
    last, found = NOWHERE, NOWHERE
    sums = [_sum(item) for item in changed]

    def follow(frame: FrameType, *_: Any) -> Any:
        nonlocal last, found
        if not frame.f_code.co_filename.startswith(str(root)):
            return None
        if not found and [_sum(item) for item in changed] != sums:
            found = last
        path = Path(frame.f_code.co_filename)
        last = Place(str(path.relative_to(root)), frame.f_lineno, frame.f_code.co_qualname)
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        for seed in range(_SEEDS):
            _read(data, indices, seed)
    finally:
        sys.settrace(before)
    return found


def _sum(array: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(array.tobytes())


def _reading_method(data: Any, root: Path) -> Place:
    code = getattr(getattr(type(data), "__getitem__", None), "__code__", None)
    path = Path(code.co_filename) if code else None
    if code is None or path is None or not path.is_relative_to(root):
        return NOWHERE
    return Place(str(path.relative_to(root)), code.co_firstlineno, code.co_qualname)
