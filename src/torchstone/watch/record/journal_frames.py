"""The entries of a journal as the payload of a frame, and back."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from torchstone.watch.learn.journal import Alarmed, Change, Changed, Entry, Judged

_HEAD = struct.Struct("<BHId")
"""Kind, series or rank of severity, step or number of values, stretch."""
_JUDGED, _CHANGED, _ALARMED = 0, 1, 2
_COUNT = struct.Struct("<I")
_CHANGES: tuple[Change, ...] = ("forget", "restart", "warmup", "columns")
_MOST_BYTES = 1 << 26


def pack_entry(entry: Entry) -> bytes:
    """One entry."""
    if isinstance(entry, Judged):
        head = _HEAD.pack(_JUDGED, entry.series, entry.step, entry.stretch)
        return head + _COUNT.pack(len(entry.values)) + entry.values.astype("<f8").tobytes()
    if isinstance(entry, Changed):
        head = _HEAD.pack(_CHANGED, entry.series, _CHANGES.index(entry.change), 0.0)
        numbers = np.array(entry.numbers, "<u4")
        return head + _COUNT.pack(len(numbers)) + numbers.tobytes()
    name = entry.signal.encode()
    head = _HEAD.pack(_ALARMED, entry.severity, entry.step, 0.0)
    return head + _COUNT.pack(len(name)) + name


def pack_entries(entries: list[bytes]) -> bytes:
    """The payload of a frame."""
    return zlib.compress(b"".join(entries), 1)


def unpack_entries(payload: bytes) -> Iterator[Entry]:
    """The entries of a payload; a ValueError where it is none."""
    worker = zlib.decompressobj()
    data = worker.decompress(payload, _MOST_BYTES)
    if worker.unconsumed_tail:
        raise ValueError("a journal larger than a run can have")
    place = 0
    while place < len(data):
        kind, number, step, stretch = _HEAD.unpack_from(data, place)
        (count,) = _COUNT.unpack_from(data, place + _HEAD.size)
        place += _HEAD.size + _COUNT.size
        width = (8, 4, 1)[kind]
        raw = data[place : place + width * count]
        if len(raw) != width * count:
            raise ValueError("a journal that was cut")
        place += len(raw)
        if kind == _JUDGED:
            values = np.frombuffer(raw, "<f8").astype(np.float64)
            yield Judged(number, step, stretch, values)
        elif kind == _CHANGED:
            numbers = tuple(np.frombuffer(raw, "<u4").tolist())
            yield Changed(number, _CHANGES[step], numbers)
        else:
            yield Alarmed(step, raw.decode("utf-8", "replace"), number)
