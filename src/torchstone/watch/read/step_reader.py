"""Reads the gradients before an optimizer step, and samples of the weights before and after it.

What was read is submitted to the judge as updates; what invalidates the baseline as an event.
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
from torchstone.watch.judge.judge import Judge
from torchstone.watch.listen.inputs import Batches
from torchstone.watch.listen.parts import HISTOGRAM_EVERY
from torchstone.watch.measure.update import Update
from torchstone.watch.measure.watched_optimizer import WatchedOptimizer, narrowest
from torchstone.watch.read.budget import Budget
from torchstone.watch.read.host_reader import HostReader
from torchstone.watch.read.reading import Reading, all_finite

_SAMPLE_EVERY = 10
_UNDONE_EVERY = 4
_ULPS = 8  # two interpolations, there and back, with a margin


class StepReader:
    """Reads the optimizers of one watch."""

    def __init__(self, judge: Judge, budget: Budget, batches: Batches) -> None:
        self._judge = judge
        self._budget = budget
        self._batches = batches

    def read(
        self, watched: WatchedOptimizer, scale: float, scaled: bool = False, is_bad: bool = False
    ) -> None:
        """Read the gradients, and submit what has arrived to the judge. A step that is known to be
        bad is always read: afterwards its weights are no longer those that it was taken with."""
        due = is_bad or self._budget.is_due(watched.updates)
        watched.due = due or self._must_be_read(watched)
        if not watched.due:
            watched.norm = math.nan
            watched.reading = Reading.empty(watched.updates)
            self._judge.submit(("unread", watched))
            return
        number_format = self._format(watched, scaled)
        query = watched.query(number_format, scale, watched.updates % HISTOGRAM_EVERY == 0)
        watched.scale, watched.scaled = scale, scaled
        watched.before = None
        if isinstance(watched.reader, HostReader):
            watched.before = watched.reader.sample_again(
                watched.parameters, watched.after, watched.updates
            )
        if (
            watched.reader.moved and not watched.is_current()
        ):  # its gradients are not what they were
            watched.before, watched.reading = None, Reading.empty(watched.updates)
            return
        if watched.reader.relaid:  # channels last, say: the values are the same, in other places
            watched.reader.relaid = False
            watched.after, watched.anchor = None, (watched.updates, None)
        reloaded = self._note_loaded(watched)
        watched.outside = _changed(watched.before, watched.after, watched.precision)
        self._note_undone(watched)
        for reading in watched.reader.read(watched.updates, self._strided(watched), query):
            watched.reading = reading
            self._note_thawed(watched, reading)
            watched.update = update = self._update_of(watched, reading, number_format, scale)
            watched.norm = update.norm
            update.settings, update.age, update.reloaded = watched.settings, watched.age, reloaded
            self._judge.submit(("gradient", update))
            if reading.samples is not None and reading.update % _SAMPLE_EVERY == 0:
                self._judge.submit(("sample", update))
            if reading.histograms is not None and self._judge.recorder:
                self._judge.recorder.histograms(
                    self._judge.call.step, watched, reading.histograms, scale
                )
        if watched.reading is None:
            watched.reading = Reading.empty(watched.updates)
        # what is read on a device arrives when the step is over, so it is asked now
        if watched.reader.defers and self._may_skip and not all_finite(watched.gradients()):
            self._judge.skip(watched, self._judge.call.step)

    @property
    def _may_skip(self) -> bool:
        return self._judge.settings.on_alert == "skip"

    def _must_be_read(self, watched: WatchedOptimizer) -> bool:
        """A step that is not finite is never let through unread where an alert may stop it."""
        return self._judge.settings.on_alert in ("skip", "raise") and not all_finite(
            watched.gradients()
        )

    def _note_undone(self, watched: WatchedOptimizer) -> None:
        """A parameter whose last step was taken back, and that is where it was some steps ago."""
        watched.undone = None
        since, then = watched.anchor
        if watched.updates == since + _UNDONE_EVERY and watched.outside is not None:
            moved = _differs(watched.before, then) if watched.outside.any() else None
            if moved is not None:
                watched.undone = ~moved & watched.outside
        if watched.updates >= since + _UNDONE_EVERY and watched.ever_present.any():
            watched.anchor = (watched.updates, watched.before)

    def _note_loaded(self, watched: WatchedOptimizer) -> bool:
        """What was loaded may be what was there: an average that was swapped in and back."""
        if not watched.loaded:
            return False
        watched.loaded = False
        changed = _differs(watched.before, watched.after)
        if changed is not None and not changed.any():
            return False
        watched.forget_momentum()
        self._judge.call.reloaded = True
        self._judge.event(
            Text("weights were loaded: relearning the baseline", "加载了权重：重新学习基线")
        )
        return True

    def _note_thawed(self, watched: WatchedOptimizer, reading: Reading) -> None:
        """Parameters that get their first gradient in mid-run change what is normal for all."""
        if watched.all_seen:
            return
        new = reading.present & ~watched.ever_present
        if new.any():
            self._judge.judge_waiting()  # what waits was before it
            watched.ever_present |= new
            watched.all_seen = bool(watched.ever_present.all())
            watched.anchor = (watched.updates, None)
            if watched.updates:
                self._judge.event(Text(
                    f"{int(new.sum())} parameter(s) received their first gradient: relearning the baseline",
                    f"{int(new.sum())} 个参数首次得到梯度：重新学习基线",
                ), restart=True)  # fmt: skip

    def _strided(self, watched: WatchedOptimizer) -> list[Tensor | None]:
        gradients = watched.gradients()
        if not watched.reader.recognises(gradients):
            for name in watched.note_sparse(gradients):
                self._judge.note(Text(
                    f"not watched: gradient of '{name}' (sparse)", f"未监控：'{name}' 的梯度（稀疏）"
                ))  # fmt: skip
        return watched.without_sparse(gradients)

    def read_update(self, watched: WatchedOptimizer) -> None:
        """Sample the weights after the step, and submit what it did to them."""
        assert watched.reading is not None
        assert watched.reading.samples is not None
        assert watched.before is not None
        assert watched.update is not None
        assert isinstance(watched.reader, HostReader)
        watched.after = watched.reader.sample(watched.parameters)
        update = watched.update.after_step(watched.group_rates)
        ranks = self._judge.ranks is not None
        update.steps = watched.reader.step(
            watched.before, watched.after, watched.reading.samples, ranks
        )
        update.undone = watched.undone
        update.drive = watched.driven_by(watched.reading.samples, watched.before)
        if ranks:
            watched.digest = int(np.bitwise_xor.reduce(update.steps["digest"]))
        self._judge.submit(("update", update))

    def _update_of(
        self, watched: WatchedOptimizer, reading: Reading, number_format: NumberFormat, scale: float
    ) -> Update:
        rates = watched.group_rates
        known = [rate for rate in rates if rate == rate]  # NaN where one is on a device
        return Update(
            reading.update, self._judge.call.step, watched, reading, max(known, default=0.0), scale, number_format,
            self._judge.call.step > self._judge.settings.warmup_steps, watched.scaled, None, watched.outside,
            watched.memory, self._batches.stretch, group_rates=rates,
        )  # fmt: skip

    def _format(self, watched: WatchedOptimizer, scaled: bool) -> NumberFormat:
        key = (scaled, self._batches.autocast)
        if key not in watched.formats:
            watched.formats[key] = self._narrowest(watched, *key)
        return watched.formats[key]

    def _narrowest(
        self, watched: WatchedOptimizer, scaled: bool, seen: torch.dtype | None
    ) -> NumberFormat:
        if self._judge.settings.narrow is not None:
            return format_of(self._judge.settings.narrow)
        if scaled:
            return FP16
        return narrowest((*watched.dtypes, seen) if seen is not None else tuple(watched.dtypes))


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
