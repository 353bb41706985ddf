"""The eye of a watch: reads the gradients before a step, the weights around it, and what changed.

What it sees goes to the court as beats; what makes the past a poor guide is told as an event.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.core.text import Text
from torchstone.runtime.number_formats import FP16, NumberFormat, format_of
from torchstone.watch.actor import Actor, narrowest
from torchstone.watch.batches import Batches
from torchstone.watch.beat import Beat
from torchstone.watch.budget import Budget
from torchstone.watch.court import Court
from torchstone.watch.host_reader import HostReader
from torchstone.watch.parts import HISTOGRAM_EVERY
from torchstone.watch.reading import Reading, all_finite

_SAMPLE_EVERY = 10
_UNDONE_EVERY = 4
_ULPS = 8  # two interpolations, there and back, with a margin


class Eye:
    """Reads the actors of one watch."""

    def __init__(self, court: Court, budget: Budget, batches: Batches) -> None:
        self._court = court
        self._budget = budget
        self._batches = batches

    def read(self, actor: Actor, scale: float, scaled: bool = False) -> None:
        """Read the gradients, and bring what has arrived before the court."""
        actor.due = self._budget.is_due(actor.beats) or self._must_be_read(actor)
        if not actor.due:
            actor.norm = math.nan
            actor.reading = Reading.empty(actor.beats)
            self._court.hear(("unread", actor))
            return
        number_format = self._format(actor, scaled)
        query = actor.query(number_format, scale, actor.beats % HISTOGRAM_EVERY == 0)
        actor.scale, actor.scaled = scale, scaled
        actor.before = None
        if isinstance(actor.reader, HostReader):
            actor.before = actor.reader.sample_again(actor.parameters, actor.after, actor.beats)
        if actor.reader.moved and not actor.is_current():  # its gradients are not what they were
            actor.before, actor.reading = None, Reading.empty(actor.beats)
            return
        if actor.reader.relaid:  # channels last, say: the values are the same, in other places
            actor.reader.relaid = False
            actor.after, actor.anchor = None, (actor.beats, None)
        reloaded = self._note_loaded(actor)
        actor.outside = _changed(actor.before, actor.after, actor.precision)
        self._note_undone(actor)
        for reading in actor.reader.read(actor.beats, self._strided(actor), query):
            actor.reading = reading
            self._note_thawed(actor, reading)
            actor.beat = beat = self._beat(actor, reading, number_format, scale)
            actor.norm = beat.norm
            beat.settings, beat.age, beat.reloaded = actor.settings, actor.age, reloaded
            self._court.hear(("gradient", beat))
            if reading.samples is not None and reading.beat % _SAMPLE_EVERY == 0:
                self._court.hear(("sample", beat))
            if reading.histograms is not None and self._court.recorder:
                self._court.recorder.histograms(
                    self._court.call.step, actor, reading.histograms, scale
                )
        if actor.reading is None:
            actor.reading = Reading.empty(actor.beats)
        # what is read on a device arrives when the step is over, so it is asked now
        if actor.reader.defers and self._may_skip and not all_finite(actor.gradients()):
            self._court.skip(actor, self._court.call.step)

    @property
    def _may_skip(self) -> bool:
        return self._court.settings.on_alert == "skip"

    def _must_be_read(self, actor: Actor) -> bool:
        """A step that is not finite is never let through unread where an alert may stop it."""
        return self._court.settings.on_alert in ("skip", "raise") and not all_finite(
            actor.gradients()
        )

    def _note_undone(self, actor: Actor) -> None:
        """A parameter whose last step was taken back, and that is where it was some steps ago."""
        actor.undone = None
        since, then = actor.anchor
        if actor.beats == since + _UNDONE_EVERY and actor.outside is not None:
            moved = _differs(actor.before, then) if actor.outside.any() else None
            if moved is not None:
                actor.undone = ~moved & actor.outside
        if actor.beats >= since + _UNDONE_EVERY and actor.ever_present.any():
            actor.anchor = (actor.beats, actor.before)

    def _note_loaded(self, actor: Actor) -> bool:
        """What was loaded may be what was there: an average that was swapped in and back."""
        if not actor.loaded:
            return False
        actor.loaded = False
        changed = _differs(actor.before, actor.after)
        if changed is not None and not changed.any():
            return False
        actor.forget_momentum()
        self._court.call.reloaded = True
        self._court.event(
            Text("weights were loaded: relearning the baseline", "加载了权重：重新学习基线")
        )
        return True

    def _note_thawed(self, actor: Actor, reading: Reading) -> None:
        """Parameters that get their first gradient in mid-run change what is normal for all."""
        if actor.all_seen:
            return
        new = reading.present & ~actor.ever_present
        if new.any():
            self._court.sit()  # what waits was before it
            actor.ever_present |= new
            actor.all_seen = bool(actor.ever_present.all())
            actor.anchor = (actor.beats, None)
            if actor.beats:
                self._court.event(Text(
                    f"{int(new.sum())} parameter(s) received their first gradient: relearning the baseline",
                    f"{int(new.sum())} 个参数首次得到梯度：重新学习基线",
                ), restart=True)  # fmt: skip

    def _strided(self, actor: Actor) -> list[Tensor | None]:
        gradients = actor.gradients()
        if not actor.reader.recognises(gradients):
            for name in actor.note_sparse(gradients):
                self._court.note(Text(
                    f"not watched: gradient of '{name}' (sparse)", f"未监控：'{name}' 的梯度（稀疏）"
                ))  # fmt: skip
        return actor.without_sparse(gradients)

    def read_update(self, actor: Actor) -> None:
        assert actor.reading is not None
        assert actor.before is not None
        assert actor.beat is not None
        assert isinstance(actor.reader, HostReader)
        actor.after = actor.reader.sample(actor.parameters)
        beat = actor.beat.taken(actor.group_rates)
        ranks = self._court.ranks is not None
        beat.steps = actor.reader.step(actor.before, actor.after, actor.reading.samples, ranks)  # type: ignore[arg-type]
        beat.undone = actor.undone
        beat.drive = actor.driven_by(actor.reading.samples, actor.before)  # type: ignore[arg-type]
        if ranks:
            actor.digest = int(np.bitwise_xor.reduce(beat.steps["digest"]))
        self._court.hear(("update", beat))

    def _beat(
        self, actor: Actor, reading: Reading, number_format: NumberFormat, scale: float
    ) -> Beat:
        rates = actor.group_rates
        known = [rate for rate in rates if rate == rate]  # NaN where one is on a device
        return Beat(
            reading.beat, self._court.call.step, actor, reading, max(known, default=0.0), scale, number_format,
            self._court.call.step > self._court.settings.warmup_steps, actor.scaled, None, actor.outside,
            actor.memory, self._batches.stretch, group_rates=rates,
        )  # fmt: skip

    def _format(self, actor: Actor, scaled: bool) -> NumberFormat:
        key = (scaled, self._batches.autocast)
        if key not in actor.formats:
            actor.formats[key] = self._narrowest(actor, *key)
        return actor.formats[key]

    def _narrowest(self, actor: Actor, scaled: bool, seen: torch.dtype | None) -> NumberFormat:
        if self._court.settings.narrow is not None:
            return format_of(self._court.settings.narrow)
        if scaled:
            return FP16
        return narrowest((*actor.dtypes, seen) if seen is not None else tuple(actor.dtypes))


def _differs(now: Any, then: Any) -> Any:
    """Parameters of which a sampled value is another than it was."""
    if now is None or then is None:
        return None
    if now is then:  # the rule
        return _nothing(len(now))
    return (now.view(np.uint32) != then.view(np.uint32)).any(axis=1)


def _changed(now: Any, then: Any, precision: NDArray[np.float64]) -> Any:
    """Parameters of which a sampled value is another than it was, by more than rounding.

    An optimizer that swaps weights for evaluation and computes them back is off by rounding.
    """
    found = _differs(now, then)
    if found is None or not found.any():
        return found
    rows = np.flatnonzero(found)
    allowed = _ULPS * precision[rows] * np.abs(then[rows]).max(axis=1)
    with np.errstate(all="ignore"):
        within = np.abs(now[rows] - then[rows]) <= allowed[:, None]
    found[rows] = ~within.all(axis=1)
    return found


@functools.cache
def _nothing(count: int) -> Any:
    found = np.zeros(count, np.bool_)
    found.flags.writeable = False  # all share it
    return found
