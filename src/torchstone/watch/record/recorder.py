"""The recorder writes a run to its folder: statistics only, appended, and never more than its limit."""

from __future__ import annotations

import contextlib
import datetime
import logging
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone._version import __version__
from torchstone.core.errors import TorchstoneError
from torchstone.core.files import keep_out_of_git, write_atomically
from torchstone.core.text import Text
from torchstone.watch.alerts import Alert
from torchstone.watch.clock import Clock
from torchstone.watch.learn.baselines import Baselines
from torchstone.watch.learn.journal import Entry
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.learner import JudgedOptimizer
from torchstone.watch.measure.parameters import WatchedParameters
from torchstone.watch.measure.signal import Phase, layer_signals
from torchstone.watch.record.evidence import add_to_bundle, write_bundle
from torchstone.watch.record.journal_frames import pack_entries, pack_entry
from torchstone.watch.record.log import log_line
from torchstone.watch.record.runfile import (
    FORMAT,
    NAME,
    NO_JOURNAL,
    Frame,
    counts_frame,
    frames_in,
    json_frame,
    layers_frame,
    rows_frame,
)
from torchstone.watch.settings import Settings

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind
    fcntl = None  # type: ignore[assignment]

LIMIT_BYTES = 40 << 20
_FLUSH_SECONDS = 0.5
_KEPT = 200
_MOST_ALERTS = 2000
_MOST_BUNDLES = 20
_JOURNAL_BYTES = 1 << 20
"""Entries that wait to be written: a frame of a megabyte packs well and is soon read."""


class Recorder:
    """Appends what a run shows to one file; a disk that fails ends the recording, not the run."""

    def __init__(
        self, folder: Path, settings: Settings, what: dict[str, Any], limit: int,
        clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self._now = (clock or Clock()).now
        self.folder = folder
        self._settings = settings
        self._process = os.getpid()
        self._limit = limit
        self._lock = threading.RLock()
        self._file = open(folder / NAME, "ab", buffering=0)  # noqa: SIM115
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = self._mend()
        self._actors: list[WatchedParameters] = []
        self._columns: tuple[str, ...] = ()
        self._rows: list[tuple[float, ...]] = []
        self._recent: deque[tuple[tuple[str, ...], tuple[float, ...]]] = deque(maxlen=_KEPT)
        """The last steps with their columns, for the evidence of an alert."""
        self._series = 0
        self._entries: list[bytes] = []
        self._entry_bytes = 0
        self._alerts = 0
        self._bundles = 0
        self._bundle = ""
        """The evidence of the episode that is open; empty where none was written."""
        self._flushed = self._last_step = self._now()
        self._put(json_frame("H", {
            "format": FORMAT, "torchstone": __version__, "python": sys.version.split()[0],
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "pid": os.getpid(), "warmup_steps": settings.warmup_steps,
            "alert_window": settings.alert_window,
            "false_alarms_per_10k": settings.false_alarms_per_10k, **what,
        }))  # fmt: skip

    def _mend(self) -> int:
        """A run that was killed may have left half a frame: cut it away before going on."""
        path = self.folder / NAME
        data = path.read_bytes()
        end = max((place for place, _ in frames_in(data)), default=0)
        if end < len(data):
            os.truncate(path, end)
        return end

    # -- what is recorded

    def step(self, call: TrainingCall, optimizers: Iterable[JudgedOptimizer]) -> None:
        """One row of scalars."""
        row = scalars(call, optimizers)
        if tuple(row) != self._columns:
            self._flush_rows()
            self._columns = tuple(row)
            self._put(json_frame("C", {"columns": list(self._columns)}))
        numbers = (float(call.step), *row.values())
        self._recent.append((self._columns, numbers))
        self._rows.append(numbers)
        now = self._now()
        if now - self._flushed + (now - self._last_step) > _FLUSH_SECONDS or len(self._rows) >= 512:
            self._flush_rows()
        self._last_step = now

    @property
    def recent(self) -> list[dict[str, float]]:
        """The last steps by column."""
        return [dict(zip(("step", *names), row, strict=True)) for names, row in self._recent]

    def layers(self, step: int, judged: JudgedOptimizer) -> None:
        """The layer signals of an optimizer at this step; NaN where one was not judged yet."""
        rows = np.full((len(layer_signals()), len(judged.watched.layers)), np.nan)
        names = [signal.name for signal in layer_signals()]
        for item in judged.values.values():
            for signal, start, end in item.spans:
                if signal.of == "layer":
                    rows[names.index(signal.name)] = item.values[start:end]
        self._put(layers_frame(step, self._actors.index(judged.watched), rows))

    def histograms(
        self, step: int, watched: WatchedParameters, counts: NDArray[np.int64], scale: float
    ) -> None:
        """Exponent counts of every layer."""
        by_layer = np.add.reduceat(counts, watched.starts, axis=0)
        self._put(counts_frame(step, self._actors.index(watched), by_layer, scale))

    def add_optimizer(self, judged: JudgedOptimizer) -> None:
        """An optimizer and the layers it moves."""
        watched = judged.watched
        self._actors.append(watched)
        self._put(json_frame("E", {
            "event": "actor", "actor": len(self._actors) - 1, "name": judged.name,
            "layers": list(watched.layers),
            "signals": [signal.name for signal in layer_signals()],
            "sizes": watched.by_layer(watched.sizes.astype(float)).tolist(),
        }))  # fmt: skip
        for phase, learner in judged.learners.items():
            self.add_series(phase, learner.baselines, watched.layers)

    def add_series(self, phase: Phase, baselines: Baselines, layers: tuple[str, ...] = ()) -> None:
        """Baselines whose every value is written down, so that the run can be judged again."""
        baselines.write_to(self, self._series)
        self._put(json_frame("E", {
            "event": "series", "number": self._series, "phase": phase, "layers": list(layers),
            "warmup": baselines.warmup, "columns": baselines.count,
        }))  # fmt: skip
        self._series += 1

    def enter(self, entry: Entry) -> None:
        """One entry of the journal; written with the rows of the steps."""
        packed = pack_entry(entry)
        self._entries.append(packed)
        self._entry_bytes += len(packed)
        if self._entry_bytes > _JOURNAL_BYTES:
            self._flush_rows()

    def note(self, step: int, text: Text, kind: str = "") -> None:
        """Something that is no alert; `kind` is for those that a report looks for."""
        event = {"event": "note", "step": step, "en": text.en, "zh": text.zh, "kind": kind}
        self._put(json_frame("E", event))

    def alert(
        self, alert: Alert, call: TrainingCall, function: Callable[..., Any] | None,
        optimizers: Mapping[int, JudgedOptimizer],
    ) -> None:  # fmt: skip
        """An alert; one that opens an episode with its evidence, the others in that."""
        self._alerts += 1
        if self._alerts > _MOST_ALERTS:
            return
        event: dict[str, Any] = {
            "event": "alert", "step": alert.step, "signal": alert.signal, "layer": alert.layer,
            "value": alert.value, "severity": str(alert.severity), "centre": alert.centre,
            "width": alert.width, "sigmas": alert.sigmas, "channel": alert.channel,
            "others": alert.others, "episode": alert.episode, "opens": alert.opens,
            "en": alert.body("en"), "zh": alert.body("zh"),
        }  # fmt: skip
        if not alert.opens:
            with self._careful():
                add_to_bundle(self.folder, self._bundle, alert)
        elif self._bundles < _MOST_BUNDLES:
            self._bundles += 1
            with self._careful():
                event["evidence"] = self._bundle = write_bundle(
                    self.folder,
                    alert,
                    call,
                    function,
                    optimizers.values(),
                    [
                        *self.recent,
                        {"step": float(call.step), **scalars(call, optimizers.values())},
                    ],
                )
        else:
            self._bundle = ""
        self._flush_rows()
        self._put(json_frame("E", event))

    def close(self, summary: dict[str, Any]) -> None:
        """Write what is left, and let go of the file."""
        if self._file.closed:
            return
        self._flush_rows()
        self._put(json_frame("E", {"event": "summary", **summary}))
        self._file.close()

    def flush(self) -> None:
        """Write the rows that are kept back."""
        if self._rows or self._entries:
            self._flush_rows()

    # -- how it is written

    def _flush_rows(self) -> None:
        if self._entries:
            entries, self._entries, self._entry_bytes = self._entries, [], 0
            self._put(Frame("J", pack_entries(entries)))
        if self._rows:
            self._put(rows_frame(self._rows))
            self._rows = []
        self._flushed = self._now()

    def _put(self, frame: Frame) -> None:
        if self._file.closed or os.getpid() != self._process:
            return  # a forked child must not write into its parent's run
        data = frame.pack()
        with self._lock, self._careful():
            if self._file.write(data) != len(data):
                raise OSError("the disk is full")
            self._size += len(data)
            if self._size > self._limit:
                self._thin()

    @contextlib.contextmanager
    def _careful(self) -> Any:
        try:
            yield
        except (OSError, TorchstoneError) as error:
            self._file.close()
            text = Text("recording stopped, monitoring continues", "记录已停止，监控继续")
            log_line(f"[Monitor] {text.get(self._settings.lang)}: {error}", logging.WARNING)

    def _thin(self) -> None:
        """Keep every second layer frame, then every second step, of the older half."""
        frames = [frame for _, frame in frames_in((self.folder / NAME).read_bytes())]
        while sum(len(f.payload) for f in frames) > self._limit // 2:
            thinned = thin(frames)
            if len(thinned) == len(frames):
                break
            frames = thinned
        data = b"".join(frame.pack() for frame in frames)
        write_atomically(self.folder / NAME, data)
        self._file.close()
        self._file = open(self.folder / NAME, "ab", buffering=0)  # noqa: SIM115
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = len(data)


def _ends(call: TrainingCall) -> dict[str, float]:
    """What was seen at both ends of the model, by column."""
    given, gave = call.input, call.output
    return {
        "input_scale": given.scale, "input_sign": given.sign, "token_variety": given.variety,
        "output_scale": gave.scale, "output_zeros": gave.zeros, "output_sign": gave.sign,
        "backward_gain": gave.gain, "loss_slope": gave.slope,
    }  # fmt: skip


def scalars(call: TrainingCall, optimizers: Iterable[JudgedOptimizer]) -> dict[str, float]:
    """The numbers of one step, by column."""
    row = {"loss": math.nan if call.loss is None else call.loss, "scale": call.scale, "batch": float(call.batch.size),
           "skipped": float(call.skipped)}  # fmt: skip
    known = call.memory.setdefault("ends", set())
    assert isinstance(known, set)
    for name, value in _ends(call).items():
        if math.isfinite(value):
            known.add(name)
        if name in known:  # a column that came once stays
            row[name] = value
    for i, judged in enumerate(optimizers):
        tail = "" if i == 0 else f"[{judged.name}]"
        row[f"grad_norm{tail}"] = math.nan
        row[f"lr{tail}"] = judged.last_rate
        for item in judged.values.values():
            for name, start in item.of_run:
                row[name + tail] = float(item.values[start])
        if "gradient" in judged.values and math.isnan(row[f"grad_norm{tail}"]):
            row[f"grad_norm{tail}"] = (
                math.inf
            )  # read, and not finite; NaN says that nothing was read
    return row


def thin(frames: list[Frame]) -> list[Frame]:
    """Less of the journal first, then of the large frames or of the rows, whichever take more."""
    journal = [i for i, f in enumerate(frames) if f.kind == "J" and f.payload]
    if journal:
        dropped = set(journal[: (len(journal) + 1) // 2])
        kept = [f for i, f in enumerate(frames) if i not in dropped]
        # an empty frame says that the journal is not whole; every file begins with its header
        return kept if any(f == NO_JOURNAL for f in kept) else [*kept[:1], NO_JOURNAL, *kept[1:]]
    large = [i for i, f in enumerate(frames) if f.kind in "LX"]
    rows = [i for i, f in enumerate(frames) if f.kind == "S"]
    # what takes most room is halved, its newest quarter excepted
    if sum(len(frames[i].payload) for i in large) > sum(len(frames[i].payload) for i in rows):
        dropped = set(large[: -(len(large) // 4) or None : 2])
    else:
        dropped = set(rows[: len(rows) // 2 : 2])
    return [f for i, f in enumerate(frames) if i not in dropped]


def open_recorder(
    settings: Settings,
    what: dict[str, Any],
    writes: bool,
    clock: Clock | None = None,
    limit: int = LIMIT_BYTES,
) -> Recorder | None:
    """A recorder in the folder of the settings; None, and said why, when there can be none."""
    if settings.folder in (False, None) or not writes:
        return None
    try:
        folder = _folder(settings)
        recorder = _open(folder, settings, what, limit, clock)
    except OSError as error:
        text = Text("this run is not recorded", "本次运行不做记录")
        log_line(f"[Monitor] {text.get(settings.lang)}: {error}", logging.WARNING)
        return None
    text = Text("recording to", "记录到")
    log_line(f"[Monitor] {text.get(settings.lang)} {recorder.folder}")
    return recorder


def _open(
    folder: Path, settings: Settings, what: dict[str, Any], limit: int, clock: Clock | None
) -> Recorder:
    for number in range(1, 100):
        place = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        place.mkdir(parents=True, exist_ok=True)
        if (place / NAME).exists() and (place / NAME).stat().st_size:
            continue  # the run of another day is left as it is
        try:
            return Recorder(place, settings, what, limit, clock)
        except BlockingIOError:  # another process writes there
            continue
    raise OSError(f"{folder} and 98 more are in use")


def _folder(settings: Settings) -> Path:
    if isinstance(settings.folder, (str, Path)):
        return Path(settings.folder).expanduser()
    home = Path(".torchstone")
    home.mkdir(exist_ok=True)
    keep_out_of_git(home)
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return home / "watch" / f"{now}-{os.getpid()}"


__all__ = ["LIMIT_BYTES", "Recorder", "open_recorder", "scalars", "thin"]
