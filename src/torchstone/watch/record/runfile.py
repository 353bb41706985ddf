"""The file of a run: frames that are only appended, each with its length and checksum.

A frame is `kind, length, crc32, payload`. A tail that was cut off is dropped when reading, and a
writer that comes back cuts it away before it goes on.

    H  JSON: format, version, times, what is watched
    C  JSON: names of the columns of the S frames that follow
    S  rows of one step number and one fp32 value for each column
    L  one value for every signal and layer at one step, as log2 in fp16, deflated
    J  what the judge was given, in order: the journal, deflated
    X  exponent counts of every layer at one step, deflated
    E  JSON: an alert, a note, an optimizer with its layers, or the summary
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.text import Text
from torchstone.watch.learn.journal import Entry
from torchstone.watch.record.journal_frames import unpack_entries

NAME = "run.tsw"
FORMAT = 1
_HEAD = struct.Struct("<cxxxII")
_MOST_BYTES = 1 << 28
_MOST_PAYLOAD = 1 << 26
_MOST_VALUES = 1 << 20
_MOST_TOTAL = 1 << 27
_MOST_COLUMNS = 512
_LAYERS = struct.Struct("<IHHI")
_COUNTS = struct.Struct("<IHHId")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of the file."""

    kind: str
    payload: bytes

    def pack(self) -> bytes:
        head = _HEAD.pack(self.kind.encode(), len(self.payload), zlib.crc32(self.payload))
        return head + self.payload

    def json(self) -> dict[str, Any]:
        found = json.loads(self.payload)
        if not isinstance(found, dict):
            raise ValueError("not an object")
        return found


NO_JOURNAL = Frame("J", b"")
"""Stands for a part of the journal that was dropped."""


def json_frame(kind: str, value: dict[str, Any]) -> Frame:
    """A frame of JSON; numbers that are not finite travel as strings."""
    return Frame(kind, json.dumps(_finite(value), ensure_ascii=False).encode("utf-8", "replace"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def layers_frame(step: int, actor: int, values: NDArray[np.float64]) -> Frame:
    """Values of every signal and layer, kept as logarithms: fp16 would not hold them."""
    with np.errstate(all="ignore"):
        logs = np.log2(np.maximum(values, 0) + 2.0**-40).astype("<f2")
    head = _LAYERS.pack(step, actor, *values.shape)
    return Frame("L", head + zlib.compress(logs.tobytes(), 1))


def counts_frame(step: int, actor: int, counts: NDArray[np.int64], scale: float) -> Frame:
    """Exponent counts of every layer: only the exponents that occur."""
    used = np.flatnonzero(counts.any(axis=0))
    low, high = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
    head = _COUNTS.pack(step, actor, low, high, scale)
    return Frame("X", head + zlib.compress(counts[:, low:high].astype("<u4").tobytes(), 1))


def rows_frame(rows: list[tuple[float, ...]]) -> Frame:
    """Rows of scalars, step first."""
    return Frame("S", np.array(rows, "<f8").astype("<f4").tobytes() if rows else b"")


def frames_in(data: bytes) -> Iterator[tuple[int, Frame]]:
    """Whole frames and the offset after each; stops at the first that is cut or damaged."""
    place = 0
    while place + _HEAD.size <= len(data):
        kind, length, check = _HEAD.unpack_from(data, place)
        end = place + _HEAD.size + length
        payload = data[place + _HEAD.size : end]
        if length > _MOST_PAYLOAD or end > len(data) or zlib.crc32(payload) != check:
            return
        place = end
        yield place, Frame(kind.decode("latin-1"), payload)


@dataclass(slots=True)
class Run:
    """What a run recorded, as arrays."""

    path: Path
    header: dict[str, Any]
    columns: tuple[str, ...]
    scalars: NDArray[np.float64]
    """One row for every recorded step; the step number is the first column."""
    actors: list[dict[str, Any]]
    layers: list[tuple[int, int, NDArray[np.float64]]]
    """Step, actor, and values of every signal (of `actors[i]["signals"]`) and layer."""
    counts: list[tuple[int, int, float, NDArray[np.int64]]]
    """Step, actor, scale, and 256 exponent counts of every layer."""
    events: list[dict[str, Any]]
    torn_bytes: int
    series: list[dict[str, Any]] = field(default_factory=list)
    """The baselines of the run: number, phase, layers, warm-up."""
    journal: list[bytes] = field(default_factory=list)
    """What they were given, frame by frame, packed."""
    journal_dropped: bool = False
    """Its older part was dropped to stay below the limit of the file."""

    def entries(self) -> Iterator[Entry]:
        """What the judge was given, in order."""
        for payload in self.journal:
            try:
                found = list(unpack_entries(payload))
            except (ValueError, IndexError, struct.error, zlib.error) as error:
                raise _unreadable(self.path, f"{type(error).__name__}: {error}") from None
            yield from found

    @property
    def alerts(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("event") == "alert"]

    @property
    def episodes(self) -> list[list[dict[str, Any]]]:
        """Alerts by their cause: the first of each list opened the episode."""
        window = self.header.get("alert_window")
        window = window if isinstance(window, int) else 50
        found: list[list[dict[str, Any]]] = []
        last = 0
        for alert in self.alerts:
            opens = alert.get("opens")
            if not isinstance(opens, bool):  # a run of an older version
                opens = alert["step"] - last > window
            last = alert["step"]
            if opens or not found:
                found.append([])
            found[-1].append(alert)
        return found

    @property
    def notes(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("event") == "note"]

    @property
    def summary(self) -> dict[str, Any]:
        return next((e for e in reversed(self.events) if e.get("event") == "summary"), {})

    def column(self, name: str) -> NDArray[np.float64]:
        """The values of one column; NaN where it was not recorded."""
        if name not in self.columns:
            return np.full(len(self.scalars), np.nan)
        return self.scalars[:, self.columns.index(name)]


def load_run(place: Path | str) -> Run:
    """A run from its folder or its file."""
    path = Path(place).expanduser()
    file = path / NAME if path.is_dir() else path
    try:
        data = read_regular(file, _MOST_BYTES)
    except OSError as error:
        raise _unreadable(path, error.strerror or type(error).__name__) from None
    try:
        return _assemble(file, data)
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        MemoryError,
        OverflowError,
        struct.error,
        zlib.error,
    ) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from None


def _assemble(file: Path, data: bytes) -> Run:
    run = Run(file, {}, (), np.zeros((0, 1)), [], [], [], [], 0)
    columns: list[str] = ["step"]
    now: list[str] = ["step"]
    parts: list[tuple[list[str], NDArray[np.float64]]] = []
    end = held = 0
    for place, frame in frames_in(data):
        end = place
        if not run.header and frame.kind != "H":
            raise ValueError("no header: not the file of a watched run")
        if frame.kind == "H":
            run.header = frame.json()
            if run.header.get("format") != FORMAT:
                raise ValueError(
                    f"format {run.header.get('format')!r}, this version reads {FORMAT}"
                )
        elif frame.kind == "C":
            now = ["step", *map(str, frame.json()["columns"])]
            if len(now) > _MOST_COLUMNS or len(set(now)) != len(now):
                raise ValueError("columns that no run has")
            columns += [name for name in now if name not in columns]
        elif frame.kind == "S":
            rows = np.frombuffer(frame.payload, "<f4").astype(np.float64)
            parts.append((now, rows.reshape(-1, len(now))))
        elif frame.kind == "E":
            event = _checked(frame.json())
            kinds = {"actor": run.actors, "series": run.series}
            kinds.get(str(event.get("event")), run.events).append(event)
        elif frame.kind == "J":
            run.journal_dropped |= not frame.payload
            run.journal += [frame.payload] if frame.payload else []
        elif frame.kind == "L":
            run.layers.append(_layers_of(frame.payload))
            held += run.layers[-1][2].nbytes
        elif frame.kind == "X":
            run.counts.append(_counts_of(frame.payload))
            held += run.counts[-1][3].nbytes
        if held > _MOST_TOTAL * 4 or len(columns) > _MOST_COLUMNS:
            raise ValueError("more than a run can hold")
    if not run.header:
        raise ValueError("empty, or not the file of a watched run")
    run.columns = tuple(columns)
    run.scalars = _join(columns, parts)
    run.torn_bytes = len(data) - end
    return run


def _checked(event: dict[str, Any]) -> dict[str, Any]:
    """An event with the parts that readers rest on."""
    kind = event.get("event")
    if kind in ("alert", "note") and not isinstance(event.get("step"), int):
        raise ValueError("an event without a step")
    if kind == "alert" and not isinstance(event.get("signal"), str):
        raise ValueError("an alert without a signal")
    if kind == "series":
        wanted = {"number": int, "phase": str, "layers": list, "warmup": int, "columns": int}
        if not all(isinstance(event.get(name), of) for name, of in wanted.items()):
            raise ValueError("a series without its parts")
    if kind == "actor":
        layers, signals = event.get("layers"), event.get("signals")
        if not isinstance(layers, list) or not isinstance(signals, list):
            raise ValueError("an optimizer without layers")
    return event


def _join(
    columns: list[str], parts: list[tuple[list[str], NDArray[np.float64]]]
) -> NDArray[np.float64]:
    count = sum(len(rows) for _, rows in parts)
    if count * len(columns) * 8 > _MOST_TOTAL * 4:
        raise ValueError("more than a run can hold")
    whole = np.full((count, len(columns)), np.nan)
    start = 0
    for names, rows in parts:
        for i, name in enumerate(names):
            whole[start : start + len(rows), columns.index(name)] = rows[:, i]
        start += len(rows)
    return whole


def _layers_of(payload: bytes) -> tuple[int, int, NDArray[np.float64]]:
    step, actor, signals, layers = _LAYERS.unpack_from(payload)
    if signals * layers > _MOST_VALUES:
        raise ValueError("more layers than a run can have")
    raw = _inflate(payload[_LAYERS.size :], 2 * signals * layers)
    logs = np.frombuffer(raw, "<f2").astype(np.float64).reshape(signals, layers)
    values = np.exp2(logs)
    return step, actor, np.where(values < 2.0**-39, 0.0, values)  # the floor was a zero


def _counts_of(payload: bytes) -> tuple[int, int, float, NDArray[np.int64]]:
    step, actor, low, high, scale = _COUNTS.unpack_from(payload)
    if not 0 <= low <= high <= 256:
        raise ValueError("exponents out of range")
    raw = _inflate(payload[_COUNTS.size :], 4 * _MOST_VALUES)
    part = np.frombuffer(raw, "<u4").astype(np.int64)
    width = high - low
    if len(part) * 256 > _MOST_VALUES * max(width, 1):
        raise ValueError("more layers than a run can have")
    counts = np.zeros((len(part) // width if width else 0, 256), np.int64)
    counts[:, low:high] = part.reshape(-1, width) if width else 0
    return step, actor, scale, counts


def _inflate(data: bytes, most: int) -> bytes:
    """Never more than was announced: a small frame could hold a huge one."""
    worker = zlib.decompressobj()
    raw = worker.decompress(data, most)
    if worker.unconsumed_tail:
        raise ValueError("a frame is larger than it says")
    return raw


def _unreadable(path: Path, given: str) -> InputError:
    return InputError(
        str(path), given,
        Text(f"a folder with {NAME}, written by watch_training", f"含 {NAME} 的文件夹，由 watch_training 写出"),
        Text("pass the folder that the run printed when it began", "请传入运行开始时打印的文件夹"),
    )  # fmt: skip
