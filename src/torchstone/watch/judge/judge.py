"""What was read is judged here, in order, reported and recorded.

A program whose steps take a few milliseconds would pay more for looking than for computing: what
it shows is judged for a few steps at a time, when the code that judges is warm. Longer steps, and
whatever is not finite, are judged at once, and so is everything when `on_alert` may interfere.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.alerts import Alert, TrainingAlertError
from torchstone.watch.clock import Clock
from torchstone.watch.judge.episodes import Episode, Episodes, is_silent
from torchstone.watch.judge.pause_thread import PauseThread
from torchstone.watch.judge.rules import check_update, judge_call, judge_values, measure
from torchstone.watch.learn.journal import Alarmed
from torchstone.watch.measure.call import CallUnderWay, TrainingCall
from torchstone.watch.measure.learner import JudgedOptimizer, Learner
from torchstone.watch.measure.parameters import WatchedParameters
from torchstone.watch.measure.signal import Phase, Values, learned
from torchstone.watch.measure.update import Update
from torchstone.watch.record.log import log_line
from torchstone.watch.record.messages import baseline_of, ended_text, progress_line
from torchstone.watch.record.recorder import Recorder, scalars
from torchstone.watch.settings import Settings, Writer

_TOGETHER = 32
_SKIPS_TOLD = (10, 100, 1000, 10_000)
"""Steps skipped in a row at which it is said again: one or two are an outlier, ten are a state."""
_PATIENCE_SECONDS = 0.25
_LAYERS_EVERY = 10
_MOST_ALERTS = 1000


@dataclass(frozen=True, slots=True)
class Seen:
    """What one phase of an optimizer step showed."""

    phase: Phase
    update: Update


@dataclass(frozen=True, slots=True)
class Unread:
    """An optimizer step of which nothing was read."""

    key: int


Pending = Seen | Unread | TrainingCall


class UsersError(Exception):
    """Carries an exception of the user's own `on_alert` function out of the watch."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Judge:
    """Judges one run: holds its baselines, its episodes, and where alerts go."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        guard: Callable[[Callable[[], object]], None],
        find_origin: Callable[[], Text | None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.optimizers: dict[int, JudgedOptimizer] = {}
        """By the key of their parameters."""
        self.alerts: list[Alert] = []
        self.memory: dict[str, object] = {}
        """What signals keep from call to call."""
        self.recorder: Recorder | None = None
        self._rank: int | None = None
        """Of this process among those that watch the same training; None for a single one."""
        self.function: Callable[..., Any] | None = None
        self.episodes = Episodes(settings.alert_window)
        of_calls = Learner("call", (), settings.warmup_steps, settings.tightness)
        self._losses, self._loss_spans = of_calls.baselines, of_calls.spans
        self._writers = list(settings.writers)
        self._pending: deque[Pending] = deque()
        self._measured: dict[tuple[int, Phase], NDArray[np.float64]] = {}
        """The values of the learned signals of updates that wait."""
        self.call = CallUnderWay(0)
        """The call that is under way."""
        self._calls: deque[TrainingCall] = deque(maxlen=2 * _TOGETHER)
        self.epoch = 0
        """Events so far that made the past a poor guide."""
        self._skipping: set[int] = set()
        """Optimizers whose step is to be left out."""
        self._waiting = 0
        self._lock = threading.RLock()
        self._judged_at = self._submitted_at = self.seconds = 0.0
        """When it last judged, when a call was last submitted, and for how long it has judged in all."""
        self._pause_thread = PauseThread(self, guard)
        self.closed = False
        _judges.add(self)
        self._told_baseline = False
        self._signed = False
        """The loss has been negative."""
        self._find_origin = find_origin
        """Where NaN of the step that is under way came from."""
        self._origin_told = 0
        """The episode whose origin was looked for."""
        self.skipped = 0
        """Optimizer steps that were left out because of an alert."""
        self._skipped = -1
        self._skipped_in_a_row = 0

    def watch(self, function: Callable[..., Any] | None) -> None:
        """The function that is one training step."""
        self.function = function
        self.closed = False

    def record_to(self, recorder: Recorder | None, rank: int | None) -> None:
        """What is judged from now on is recorded."""
        self.recorder, self._rank = recorder, rank
        if recorder is not None:
            recorder.add_series("call", self._losses)

    # -- what comes before it

    def begin(self, call: CallUnderWay) -> None:
        """A new call is under way."""
        self.call = call

    def add_optimizer(self, name: str, watched: WatchedParameters) -> JudgedOptimizer:
        """Judge an optimizer from now on; one of the same key gives way."""
        settings = self.settings
        judged = JudgedOptimizer(name, watched, settings.warmup_steps, settings.tightness)
        self.optimizers[watched.key] = judged
        if self.recorder:
            self.recorder.add_optimizer(judged)
        return judged

    def drop_optimizer(self, key: int) -> None:
        """Another one has taken its parameters; its last steps may wait."""
        self.judge_waiting()
        del self.optimizers[key]

    def note_loaded(self) -> None:
        """Weights or the state of an optimizer were loaded."""
        self.judge_waiting()  # what waits was before it
        for judged in self.optimizers.values():
            judged.memory.pop("age", None)

    def note_passes_changed(self, key: int) -> None:
        """Sums of more batches point elsewhere: learn anew where steps lead."""
        self.judge_waiting()
        self.optimizers[key].learners["update"].baselines.forget()
        self.learn_again("loss_slope")  # losses are divided by their number, or not

    def record_histograms(
        self, watched: WatchedParameters, counts: NDArray[np.int64], scale: float
    ) -> None:
        """Exponent counts of the gradients that were read."""
        if self.recorder:
            self.recorder.histograms(self.call.step, watched, counts, scale)

    def submit(self, pending: Pending) -> None:
        """Take a matter up: now when it cannot wait, else together with the next ones."""
        self._pending.append(pending)
        if isinstance(pending, TrainingCall):
            self._calls.append(pending)
            self._waiting += 1
            self._submitted_at = self.clock.now()
            self._pause_thread.wake()
        long = self._waiting and self._submitted_at > self._judged_at + _PATIENCE_SECONDS
        if self._at_once or long or self._waiting >= _TOGETHER or _cannot_wait(pending):
            self.judge_waiting()

    def unlock(self) -> None:
        """A child that was forked while another thread judged would wait for that thread for ever."""
        self._lock = threading.RLock()

    def judge_waiting(self) -> None:
        """Judge everything that waits, in the order in which it came."""
        if not self._pending:
            return
        with self._lock:  # another thread may ask how it stands
            start = self.clock.at_work()
            try:
                self._judge_all()
            finally:
                self.seconds += self.clock.at_work() - start
                self._waiting = 0
                self._judged_at = self.clock.now()

    @property
    def _at_once(self) -> bool:
        """An alert may interfere with the step, so nothing waits."""
        return self.settings.on_alert is not None

    def judge_in_pause(self) -> None:
        """No call has come for a while: leave nothing undone."""
        if self.clock.now() > self._submitted_at + _PATIENCE_SECONDS:
            if not self._at_once:  # what may interfere does so in the thread that trains
                self.judge_waiting()
            with self._lock:
                if self.recorder is not None:
                    self.recorder.flush()

    def _measure_all(self) -> None:
        """What many steps show is computed at once: that is most of what judging costs."""
        waiting: dict[tuple[int, Phase], list[Update]] = {}
        for item in tuple(self._pending):  # another thread may add to them
            if isinstance(item, Seen) and (id(item.update), item.phase) not in self._measured:
                key = item.update.watched.key
                waiting.setdefault((key, item.phase), []).append(item.update)
        for (key, phase), updates in waiting.items():
            self._measure(key, phase, updates)

    def _measure(self, key: int, phase: Phase, updates: list[Update]) -> None:
        learner = self.optimizers[key].learners[phase]
        if learner.signals:
            for update, row in zip(updates, measure(updates, learner), strict=True):
                self._measured[id(update), phase] = row

    def _judge_all(self) -> None:
        self._measure_all()
        while self._pending:
            item = self._pending.popleft()
            if isinstance(item, TrainingCall):
                self._judge_call(item)
            elif isinstance(item, Unread):
                self.optimizers[item.key].values.clear()
            else:
                if (id(item.update), item.phase) not in self._measured:
                    # it came while the others were measured
                    self._measure(item.update.watched.key, item.phase, [item.update])
                self._judge_update(item.update, item.phase)

    def event(self, text: Text, restart: bool = False) -> None:
        """Something that makes the past a poor guide, or no guide at all."""
        self.judge_waiting()
        self.epoch += 1
        self._losses.forget()
        for judged in self.optimizers.values():
            for learner in judged.learners.values():
                learner.baselines.restart() if restart else learner.baselines.forget()
        self.note(text)

    def learn_again(self, name: str) -> None:
        """What a signal of the calls was says nothing any more."""
        columns = [start for signal, start, _ in self._loss_spans if signal.name == name]
        self._losses.learn_again(columns)

    def begin_anew(self) -> None:
        """Another model: nothing of the past counts."""
        self.judge_waiting()
        self.optimizers.clear()
        self.memory.clear()
        self._signed = False
        self._losses.restart()

    # -- judging

    def _judge_update(self, update: Update, phase: Phase) -> None:
        judged = self.optimizers[update.watched.key]
        if phase == "gradient":
            judged.take_up(update)
        stretch = judged.stretch + update.stretch
        if phase == "update":  # an update follows its gradients
            stretch += judged.gradient_burst
        values = self._measured.pop((id(update), phase), None)
        for alert in check_update(update, phase, judged):
            self._alert_of(update, phase, alert)
        if values is None:
            return
        learner = judged.learners[phase]
        judged.values[phase] = Values(learner.spans, values, learner.of_run)
        for alert in judge_values(
            learner.baselines, learner.spans, values, learner.layers, update.step, stretch
        ):
            self._alert_of(update, phase, alert)

    def _alert_of(self, update: Update, phase: Phase, alert: Alert) -> None:
        if self._alert(alert) and phase == "gradient" and self._may_skip(alert):
            self.skip(update.watched.key, update.step)

    def _may_skip(self, alert: Alert) -> bool:
        """A step is left out for what would harm the weights, not for what is worth a look."""
        return self.settings.on_alert == "skip" and alert.severity is Severity.HIGH

    def is_skipping(self, key: int) -> bool:
        """The step of this optimizer is to be left out."""
        return key in self._skipping

    def end_skipping(self, key: int | None = None) -> None:
        """The step of one optimizer, or of all, has been dealt with."""
        if key is None:
            self._skipping.clear()
        self._skipping.discard(key or 0)

    def skip(self, key: int, step: int) -> None:
        """The optimizer leaves this step out; of several in a row the first is named."""
        if key in self._skipping:
            return
        self._skipped_in_a_row = self._skipped_in_a_row + 1 if self._skipped == step - 1 else 1
        if self._skipped_in_a_row == 1:
            self.note(
                Text(f"skipping the optimizer at step {step}", f"跳过第 {step} 步的优化器更新")
            )
        elif self._skipped_in_a_row in _SKIPS_TOLD:
            self._warn_of_skips()
        self._skipping.add(key)
        self.skipped += 1
        self._skipped = step

    def _warn_of_skips(self) -> None:
        count = self._skipped_in_a_row
        self.note(
            Text(
                f"{count} optimizer steps skipped in a row: the model no longer learns; "
                "stop, and look at the data and the learning rate",
                f"已连续跳过 {count} 次优化器更新：模型不再学习；请停止训练，检查数据和学习率",
            ),
            logging.WARNING,
        )

    def _judge_call(self, call: TrainingCall) -> None:
        self._judge_loss(call)
        for alert in judge_call(call):
            self._alert(alert)
        self._record(call)
        self._print(call)

    def _judge_loss(self, call: TrainingCall) -> None:
        spans = self._loss_spans
        values = np.array([signal.value(call) for signal, _, _ in spans if signal.value])
        if "loss_unit" in self.memory and not self._signed:
            self._signed = True  # from now on it is measured otherwise
            self._losses.restart()
        stretch = max((judged.stretch for judged in self.optimizers.values()), default=0.0)
        for alert in judge_values(
            self._losses, spans, values, (), call.step, stretch + call.stretch
        ):
            if alert.signal == "loss" and call.loss is not None:
                # losses of both signs are judged on another value than a person wants to see
                alert = replace(alert, value=call.loss)
            self._alert(alert)

    def _alert(self, alert: Alert) -> bool:
        """Tell it, unless it has been told in its episode; learned signals are silent in warm-up."""
        if self.recorder is not None and not alert.learned:
            self.recorder.enter(Alarmed(alert.step, alert.signal, alert.severity.rank))
        if is_silent(alert, self.settings.warmup_steps):
            return False
        episode = self.episodes.take(alert)
        if episode is not None:
            self.episodes.keep(_MOST_ALERTS)
            self._tell(episode)
        return True

    def _tell(self, episode: Episode) -> None:
        """The last alert of the episode goes to the log, the record, the writers and the user."""
        alert = episode.alerts[-1]
        self.alerts.append(alert)
        del self.alerts[:-_MOST_ALERTS]
        level = logging.ERROR if alert.severity is Severity.HIGH else logging.WARNING
        log_line(self._from_rank(alert.line(self.settings.lang)), level)
        if alert.opens:
            log_line(alert.next_line(self.settings.lang), level)
        if self.recorder:
            self.recorder.alert(alert, self._call_of(alert.step), self.function, self.optimizers)
        self._write(lambda writer: writer.alert(alert))
        if alert.signal in ("non_finite", "loss_not_finite"):
            self._tell_origin(alert)
        if episode.just_became_worse:
            self._act_on(alert)

    def _act_on(self, alert: Alert) -> None:
        """What the user asked for, once for each episode and again when it becomes more severe."""
        action = self.settings.on_alert
        if action == "raise" and alert.severity is Severity.HIGH:
            raise TrainingAlertError(alert, self.settings.lang)
        if callable(action):
            try:
                action(alert)
            except Exception as error:
                raise UsersError(error) from error

    def _call_of(self, step: int) -> TrainingCall:
        known = (call for call in self._calls if call.step == step)
        return next(known, None) or self.call.so_far()

    # -- telling and keeping

    def note(self, text: Text, level: int = logging.INFO) -> None:
        """Say something that is no alert."""
        log_line(f"[Monitor] {text.get(self.settings.lang)}", level)
        if self.recorder:
            self.recorder.note(self.call.step, text)

    def note_thinned(self, text: Text) -> None:
        """How many steps are read: kept for the report, and not said."""
        if self.recorder:
            self.recorder.note(self.call.step, text, "thinned")

    def _tell_origin(self, alert: Alert) -> None:
        """Say once for each episode where it came from, while the weights are those of the step."""
        if alert.episode == self._origin_told:
            return
        self._origin_told = alert.episode
        if alert.step == self.call.step and (text := self._find_origin()) is not None:
            log_line(f"[Monitor] {text.get(self.settings.lang)}", logging.WARNING)
            if self.recorder:
                self.recorder.note(alert.step, text, "origin")

    def close(self) -> None:
        """Let the writers and the hooks go; a watch that has failed must do so too."""
        self.closed = True
        self._write(lambda writer: writer.close())

    def say_ended(self, steps: int, thinned: Text) -> None:
        """The last line: how many steps, how many episodes, what was not read, where to look."""
        if self._rank:
            return
        folder = self.recorder.folder if self.recorder else None
        text = ended_text(steps, self.episodes.count, self.skipped, thinned, folder)
        log_line(f"[Monitor] {text.get(self.settings.lang)}")

    def baseline(self) -> dict[str, dict[str, float]]:
        """The usual value and spread of the signals of the whole run."""
        known = self.call.loss is not None and "loss_unit" not in self.memory
        column = [s.name for s in learned("call", "run")].index("loss")
        return baseline_of(self.optimizers.values(), self._losses, column if known else None)

    def _from_rank(self, line: str) -> str:
        return line if self._rank is None else line.replace(" | ", f" | rank {self._rank} | ", 1)

    def _print(self, call: TrainingCall) -> None:
        main = next(iter(self.optimizers.values()), None)
        if main is None or self._rank:
            return
        baselines = main.learners["gradient"].baselines
        learning = call.step < self.settings.warmup_steps
        if not self._told_baseline and baselines.seen >= baselines.warmup and not learning:
            self._told_baseline = True
            usual = self.baseline()
            none = "No baseline: no value so far was finite"
            log_line(f"[Monitor] {f'Baseline established: {usual}' if usual else none}")
        if call.step % self.settings.print_every == 0:
            broken = baselines.seen and math.isnan(main.last_norm)  # read, and not finite
            status = "ALERT" if broken or self.episodes.open_at(call.step) else "OK"
            log_line(progress_line(call.step, main, "LEARNING" if learning else status))

    def _write(self, act: Callable[[Writer], object]) -> None:
        """Other tools get their part; one that fails is left out from then on."""
        for writer in tuple(self._writers):
            try:
                act(writer)
            except Exception as error:
                self._writers.remove(writer)
                name = type(writer).__name__
                self.note(Text(
                    f"{name} is not written to any more: {type(error).__name__}: {error}",
                    f"不再写入 {name}：{type(error).__name__}: {error}",
                ), logging.WARNING)  # fmt: skip

    def _record(self, call: TrainingCall) -> None:
        if self._writers:
            values = scalars(call, self.optimizers.values())
            finite = {name: value for name, value in values.items() if math.isfinite(value)}
            self._write(lambda writer: writer.step(call.step, finite))
        if self.recorder is None:
            return
        self.recorder.step(call, self.optimizers.values())
        if call.step % _LAYERS_EVERY == 0:
            for judged in self.optimizers.values():
                self.recorder.layers(call.step, judged)


_judges: weakref.WeakSet[Judge] = weakref.WeakSet()


def _unlock() -> None:
    for judge in _judges:
        judge.unlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def _cannot_wait(pending: Pending) -> bool:
    if isinstance(pending, Seen):
        update = pending.update
        return pending.phase == "gradient" and (update.number == 0 or not update.finite)
    if isinstance(pending, TrainingCall):
        return pending.loss is not None and not math.isfinite(pending.loss)
    return False
