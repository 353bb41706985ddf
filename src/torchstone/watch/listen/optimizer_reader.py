"""Reads the gradients of one optimizer before its step, and samples of its weights before and after.

What was read is submitted to the judge as updates; what invalidates the baseline as an event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from operator import is_
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.core.text import Text
from torchstone.runtime.number_formats import FP16, NumberFormat, format_of
from torchstone.watch.judge.judge import Judge, Seen, Unread
from torchstone.watch.listen.inputs import Batches
from torchstone.watch.measure.momentum import Momentum
from torchstone.watch.measure.parameters import WatchedParameters, narrowest
from torchstone.watch.measure.update import KNOWN_AFTER, Update
from torchstone.watch.read.budget import Budget
from torchstone.watch.read.device_reader import DeviceReader
from torchstone.watch.read.host_reader import HostReader
from torchstone.watch.read.optimizer_facts import (
    Age,
    base_rate,
    group_rates,
    largest_rate,
    settings_of,
)
from torchstone.watch.read.reading import Query, Reading, all_finite
from torchstone.watch.read.weights import changed, differing

HISTOGRAM_EVERY = 50
_DEVICE_EVERY = 10
_SAMPLE_EVERY = 10
_UNDONE_EVERY = 4
_LOOK_EVERY = 2
_BIAS = 127
_numel: Callable[[Any], int] = Tensor.numel


class OptimizerReader:
    """Reads one optimizer of a watch."""

    def __init__(
        self, name: str, optimizer: torch.optim.Optimizer, watched: WatchedParameters,
        memory: dict[str, object], judge: Judge, budget: Budget, batches: Batches, updates: int = 0,
    ) -> None:  # fmt: skip
        self.name = name
        self.optimizer = optimizer
        self.watched = watched
        self.updates = updates
        """Steps so far."""
        self.reading: Reading | None = None
        """What was read before the step that is under way."""
        self.norm = math.nan
        """Of the gradients that were read last."""
        self.scale = 1.0
        self.scaled = False
        """A loss scaler guards this optimizer."""
        self.digest = 0
        """Of the sampled weights after the last step, where ranks compare them."""
        self._memory, self._judge = memory, judge
        self._budget, self._batches = budget, batches
        self._reader: HostReader | DeviceReader
        if watched.on_host:
            self._reader = HostReader(watched.parameters)
        else:
            self._reader = DeviceReader(watched.parameters, _DEVICE_EVERY)
        groups = optimizer.param_groups
        self._owned = [p for group in groups for p in group["params"]]
        self._lengths = [len(group["params"]) for group in groups]
        self._numels = list(map(_numel, watched.parameters))
        self._kinds = self._kinds_of_memory()
        self._due = True
        """This update is read."""
        self._clipping: tuple[float, Tensor] | None = None
        """The norm that gradients were cut down to after they had been read, and the one they had."""
        self._before: NDArray[np.float32] | None = None
        self._after: tuple[int, NDArray[np.float32]] | None = None
        """Samples of the weights as the last step left them, and how many events there had been."""
        self._anchor: tuple[int, NDArray[np.float32] | None] = (0, None)
        """An update a few steps ago, and samples of the weights at it."""
        self._outside: NDArray[np.bool_] | None = None
        self._undone: NDArray[np.bool_] | None = None
        self._loaded = False
        """Something was loaded since the last step: the next look says whether it changed anything."""
        self._ever_present = np.zeros(len(watched.parameters), np.bool_)
        self._all_seen = False
        """Every parameter has had a gradient."""
        self._update: Update | None = None
        self._momentum = Momentum(optimizer, watched)
        self._age = Age(optimizer, watched.parameters)
        self._formats: dict[tuple[bool, torch.dtype | None], NumberFormat] = {}
        self._query: tuple[object, Query] | None = None
        self._sparse: frozenset[int] = frozenset()

    # -- what is known of it

    @property
    def defers(self) -> bool:
        """What is read arrives later."""
        return self._reader.defers

    @property
    def without_c(self) -> str:
        """Why there is no C pass; empty where there is one."""
        return getattr(self._reader, "reason", "")

    @property
    def rate(self) -> float:
        """The largest learning rate of the groups; a tensor on a device is not read."""
        return largest_rate(group_rates(self.optimizer))

    def is_current(self) -> bool:
        """The optimizer still has the parameters it had: reading by address rests on it."""
        groups = self.optimizer.param_groups
        if [len(group["params"]) for group in groups] != self._lengths:
            return False
        # one in the place of another is rare, and one of another size lies in another place
        if self.updates % _LOOK_EVERY == 0 or self._reader.moved:
            owned = chain.from_iterable(group["params"] for group in groups)
            if not all(map(is_, owned, self._owned)):
                return False
            if list(map(_numel, self.watched.parameters)) != self._numels:
                return False
        return not self._reader.moved or self._kinds_of_memory() == self._kinds

    def _kinds_of_memory(self) -> list[tuple[torch.dtype, bool]]:
        """What can only have changed when the weights are in another place."""
        self._reader.accept_place()
        return [(p.dtype, p.is_cpu) for p in self.watched.parameters]

    # -- what happens to it

    def clip(self, norms: tuple[float, Tensor]) -> None:
        """The gradients were cut down after they had been read."""
        self._clipping = norms

    def load(self) -> None:
        """Weights or its state were loaded; the next read says what that changed."""
        self._loaded = True

    def doubt_weights(self) -> None:
        """Another optimizer changed the weights too, and rightly."""
        self._after = None

    def drop_gradients(self) -> None:
        """Nothing moves without gradients, state included; what this step does is ours."""
        self._before = None
        for parameter in self.watched.parameters:
            parameter.grad = None

    def forget_step(self) -> None:
        """The step is over, or does not come."""
        self.reading = self._before = None

    def end_step(self) -> None:
        """The optimizer has stepped, and what it did was read."""
        self.updates += 1
        self._clipping = None
        self.forget_step()

    # -- before a step

    def read(self, scale: float, scaled: bool = False, is_bad: bool = False) -> None:
        """Read the gradients, and submit what has arrived to the judge. A step that is known to be
        bad is always read: afterwards its weights are no longer those that it was taken with."""
        self._due = is_bad or self._budget.is_due(self.updates) or self._must_be_read()
        if not self._due:
            self.norm = math.nan
            self.reading = Reading.empty(self.updates)
            self._judge.submit(Unread(self.watched.key))
            return
        number_format = self._format(scaled)
        query = self._query_of(number_format, scale, self.updates % HISTOGRAM_EVERY == 0)
        self.scale, self.scaled = scale, scaled
        self._before = self._sample_before()
        if self._reader.moved and not self.is_current():  # its gradients are not what they were
            self._before, self.reading = None, Reading.empty(self.updates)
            return
        if self._reader.take_relaid():  # channels last, say: the same values in other places
            self._after, self._anchor = None, (self.updates, None)
        reloaded = self._note_loaded()
        self._outside = changed(self._before, self._last_weights, self.watched.precision)
        self._undone = self._find_undone()
        for reading in self._reader.read(self.updates, self._dense_gradients(), query):
            self.reading = reading
            self._note_thawed(reading)
            self._submit(reading, number_format, scale, reloaded)
        if self.reading is None:
            self.reading = Reading.empty(self.updates)
        # what is read on a device arrives when the step is over, so it is asked now
        if self.defers and self._on_alert == "skip" and not all_finite(self._gradients()):
            self._judge.skip(self.watched.key, self._judge.call.step)

    def _submit(
        self, reading: Reading, number_format: NumberFormat, scale: float, reloaded: bool
    ) -> None:
        step, rates = self._judge.call.step, group_rates(self.optimizer)
        update = Update(
            reading.update, step, self.watched, reading, largest_rate(rates), scale, number_format,
            step > self._judge.settings.warmup_steps, self.scaled, None, self._outside,
            self._memory, self._batches.stretch, rates, settings_of(self.optimizer),
            age=self._age.read(), reloaded=reloaded, base_rate=base_rate(self.optimizer),
            awaited=self._awaited() if reading.update == KNOWN_AFTER else (),
        )  # fmt: skip
        self._update, self.norm = update, update.norm
        self._judge.submit(Seen("gradient", update))
        if reading.samples is not None and reading.update % _SAMPLE_EVERY == 0:
            self._judge.submit(Seen("sample", update))
        if reading.histograms is not None:
            self._judge.record_histograms(self.watched, reading.histograms, scale)

    def _awaited(self) -> tuple[int, ...]:
        """Parameters that are to be trained and have had no gradient, though others have."""
        if not self._ever_present.any():
            return ()
        return tuple(
            place
            for place, parameter in enumerate(self.watched.parameters)
            if not self._ever_present[place] and parameter.requires_grad and place not in self._sparse
        )  # fmt: skip

    @property
    def _on_alert(self) -> object:
        return self._judge.settings.on_alert

    def _must_be_read(self) -> bool:
        """A step that is not finite is never let through unread where an alert may stop it."""
        return self._on_alert in ("skip", "raise") and not all_finite(self._gradients())

    def _gradients(self) -> list[Tensor | None]:
        """The gradients as they stand now."""
        return [p.grad for p in self.watched.parameters]

    def _dense_gradients(self) -> list[Tensor | None]:
        """The gradients that can be read; sparse ones are not, and that is said once."""
        gradients = self._gradients()
        if not self._reader.recognises(gradients):
            sparse = {
                i for i, g in enumerate(gradients) if g is not None and g.layout != torch.strided
            }
            new = sorted(sparse - self._sparse)
            self._sparse = frozenset(sparse | self._sparse)
            for name in (self.watched.names[place] for place in new):
                self._judge.note(Text(
                    f"not watched: gradient of '{name}' (sparse)", f"未监控：'{name}' 的梯度（稀疏）"
                ))  # fmt: skip
        if not self._sparse:
            return gradients
        return [None if i in self._sparse else g for i, g in enumerate(gradients)]

    @property
    def _last_weights(self) -> NDArray[np.float32] | None:
        """Samples as the last step left them; None where an event has come between."""
        if self._after is None or self._after[0] != self._judge.epoch:
            return None
        return self._after[1]

    def _sample_before(self) -> NDArray[np.float32] | None:
        if not isinstance(self._reader, HostReader):
            return None
        parameters = self.watched.parameters
        return self._reader.sample_again(parameters, self._last_weights, self.updates)

    def _find_undone(self) -> NDArray[np.bool_] | None:
        """Parameters whose last step was taken back, and that are where they were some steps ago;
        None where that was not looked at."""
        found: NDArray[np.bool_] | None = None
        since, then = self._anchor
        if self.updates == since + _UNDONE_EVERY and self._outside is not None:
            moved = differing(self._before, then) if self._outside.any() else None
            found = None if moved is None else ~moved & self._outside
        if self.updates >= since + _UNDONE_EVERY and self._ever_present.any():
            self._anchor = (self.updates, self._before)
        return found

    def _note_loaded(self) -> bool:
        """What was loaded may be what was there: an average that was swapped in and back."""
        if not self._loaded:
            return False
        self._loaded = False
        changes = differing(self._before, self._last_weights)
        if changes is not None and not changes.any():
            return False
        self._momentum.forget()
        self._judge.call.note_reloaded()
        self._judge.event(
            Text("weights were loaded: relearning the baseline", "加载了权重：重新学习基线")
        )
        return True

    def _note_thawed(self, reading: Reading) -> None:
        """Parameters that get their first gradient in mid-run change what is normal for all."""
        if self._all_seen:
            return
        new = reading.present & ~self._ever_present
        if not new.any():
            return
        self._judge.judge_waiting()  # what waits was before it
        self._ever_present = self._ever_present | new
        self._all_seen = bool(self._ever_present.all())
        self._anchor = (self.updates, None)
        if self.updates:
            self._judge.event(Text(
                f"{int(new.sum())} parameter(s) received their first gradient: relearning the baseline",
                f"{int(new.sum())} 个参数首次得到梯度：重新学习基线",
            ), restart=True)  # fmt: skip

    # -- after a step

    def read_after(self, compared: bool) -> None:
        """Sample the weights after the step, and submit what it did to them; with a digest where
        ranks are compared."""
        self._after = None
        if not self._due or self._before is None:
            return
        assert self.reading is not None
        if self.reading.samples is None:
            return
        assert self._update is not None
        assert isinstance(self._reader, HostReader)
        before, samples = self._before, self.reading.samples
        after = self._reader.sample(self.watched.parameters)
        self._after = (self._judge.epoch, after)
        rates = group_rates(self.optimizer)
        steps = self._reader.step(before, after, samples, compared)
        drive = self._momentum.push(samples, before, self._clipped() / self.scale, self.updates)
        if compared:
            self.digest = int(np.bitwise_xor.reduce(steps["digest"]))
        update = self._update.after_step(rates, steps, self._undone, drive)
        self._judge.submit(Seen("update", update))

    def _clipped(self) -> float:
        """What the gradients were multiplied with; a norm on a device is not waited for."""
        if self._clipping is None or not self._clipping[1].is_cpu:
            return 1.0
        most, norm = float(self._clipping[0]), float(self._clipping[1])
        return min(1.0, most / norm) if norm > 0 else 1.0

    # -- how it is read

    def _format(self, scaled: bool) -> NumberFormat:
        """The narrowest format that the gradients pass through."""
        key = (scaled, self._batches.autocast)
        if key not in self._formats:
            self._formats[key] = self._narrowest(*key)
        return self._formats[key]

    def _narrowest(self, scaled: bool, seen: torch.dtype | None) -> NumberFormat:
        if self._judge.settings.narrow is not None:
            return format_of(self._judge.settings.narrow)
        if scaled:
            return FP16
        dtypes: Sequence[torch.dtype] = tuple(self.watched.dtypes)
        return narrowest((*dtypes, seen) if seen is not None else dtypes)

    def _query_of(self, number_format: NumberFormat, scale: float, histogram: bool) -> Query:
        """Counts for this format: flushed, subnormal, and what other formats would lose."""
        key = (number_format, scale, histogram)
        if self._query is not None and self._query[0] == key:
            return self._query[1]
        shift = round(math.log2(scale)) if scale > 0 else 0
        flush, normal = number_format.flush_exponent, number_format.normal_exponent
        wanted = [-126, flush, normal, *(exponent + shift for exponent in (-25, -17, -14, -10, -6))]
        levels = np.clip(np.array(wanted) + _BIAS, 1, 255).astype(np.uint8)
        limits = np.full(len(self.watched.parameters), number_format.overflow_from)
        query = Query(levels, limits, histogram)
        if not histogram:
            self._query = (key, query)
        return query
