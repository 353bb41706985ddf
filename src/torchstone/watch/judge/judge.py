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
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from torch import nn

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.clock import Clock
from torchstone.watch.judge.alerts import Alert, TrainingAlertError
from torchstone.watch.judge.episodes import Episode, Episodes, is_silent
from torchstone.watch.judge.pause_thread import PauseThread
from torchstone.watch.judge.rules import judge_call, judge_update, judge_values, measure
from torchstone.watch.learn.journal import Alarmed
from torchstone.watch.listen.ranks import Ranks
from torchstone.watch.measure.signal import Phase, Values, learned
from torchstone.watch.measure.update import TrainingCall, Update
from torchstone.watch.measure.watched_optimizer import Learner, WatchedOptimizer
from torchstone.watch.record.log import log_line
from torchstone.watch.record.messages import baseline_of, ended_text, progress_line
from torchstone.watch.record.recorder import Recorder, scalars
from torchstone.watch.settings import Settings, Writer

_TOGETHER = 32
_SKIPS_TOLD = (10, 100, 1000, 10_000)
"""Steps skipped in a row at which it is said again: one or two are an outlier, ten are a state."""
_PATIENCE_SECONDS = 0.25
_LAYERS_EVERY = 10
_RATE_MEMORY = 0.02  # of the learning rate that thresholds stretch with
_MOST_ALERTS = 1000

Pending = (
    tuple[Phase, Update]
    | tuple[Literal["call"], TrainingCall]
    | tuple[Literal["unread"], WatchedOptimizer]
)


class UsersError(Exception):
    """Carries an exception of the user's own `on_alert` function out of the watch."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Judge:
    """Judges one run: holds its baselines, its episodes, and where alerts go."""

    def __init__(
        self,
        settings: Settings,
        optimizers: dict[int, WatchedOptimizer],
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or Clock()
        self.optimizers = optimizers
        self.alerts: list[Alert] = []
        self.memory: dict[str, object] = {}
        """What signals keep from call to call."""
        self.recorder: Recorder | None = None
        self.ranks: Ranks | None = None
        self.function: Callable[..., Any] | None = None
        self.models: Callable[[], Iterable[nn.Module]] = tuple
        self.episodes = Episodes(settings.alert_window)
        of_calls = Learner("call", (), settings.warmup_steps, settings.tightness)
        self._losses, self._loss_spans = of_calls.baselines, of_calls.spans
        self._writers = list(settings.writers)
        self._pending: deque[Pending] = deque()
        self._calls: deque[TrainingCall] = deque([TrainingCall(0)], maxlen=2 * _TOGETHER)
        self._waiting = 0
        self._lock = threading.RLock()
        self._judged_at = self._submitted_at = self.seconds = 0.0
        """When it last judged, when a call was last submitted, and for how long it has judged in all."""
        self.pause_thread: PauseThread | None = None
        self.closed = False
        _judges.add(self)
        self._told_baseline = False
        self._signed = False
        """The loss has been negative."""
        self.find_origin: Callable[[], Text | None] | None = None
        """Where NaN of the step that is under way came from."""
        self._origin_told = 0
        """The episode whose origin was looked for."""
        self.skipped = 0
        """Optimizer steps that were left out because of an alert."""
        self._skipped = -1
        self._skipped_in_a_row = 0

    def record_to(self, recorder: Recorder | None) -> None:
        """What is judged from now on is recorded."""
        self.recorder = recorder
        if recorder is not None:
            recorder.add_series("call", self._losses)

    # -- what comes before it

    @property
    def call(self) -> TrainingCall:
        """The call that is under way."""
        return self._calls[-1]

    def begin(self, call: TrainingCall) -> None:
        """A new call is under way."""
        self._calls.append(call)

    def submit(self, pending: Pending) -> None:
        """Take a matter up: now when it cannot wait, else together with the next ones."""
        self._pending.append(pending)
        if pending[0] == "call":
            self._waiting += 1
            self._submitted_at = self.clock.now()
            if self.pause_thread is not None:
                self.pause_thread.wake()
        long = self._waiting and self._submitted_at > self._judged_at + _PATIENCE_SECONDS
        if self._at_once or long or self._waiting >= _TOGETHER or _cannot_wait(pending):
            self.judge_waiting()

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
        for kind, item in tuple(self._pending):  # another thread may add to them
            if isinstance(item, Update) and kind not in item.values:
                waiting.setdefault((id(item.watched), kind), []).append(item)  # type: ignore[arg-type]
        for (_, phase), updates in waiting.items():
            measure(updates, phase)

    def _judge_all(self) -> None:
        self._measure_all()
        while self._pending:
            kind, item = self._pending.popleft()
            if isinstance(item, TrainingCall):
                self._judge_call(item)
            elif isinstance(item, WatchedOptimizer):
                item.values.clear()
            elif isinstance(item, Update):
                if kind not in item.values:  # it came while the others were measured
                    measure([item], kind)  # type: ignore[arg-type]
                self._judge_update(item, kind)  # type: ignore[arg-type]

    def event(self, text: Text, restart: bool = False) -> None:
        """Something that makes the past a poor guide, or no guide at all."""
        self.judge_waiting()
        self._losses.forget()
        for watched in self.optimizers.values():
            watched.after = None
            for learner in watched.learners.values():
                learner.baselines.restart() if restart else learner.baselines.forget()
        self.note(text)

    def learn_again(self, name: str) -> None:
        """What a signal of the calls was says nothing any more."""
        columns = [start for signal, start, _ in self._loss_spans if signal.name == name]
        self._losses.learn_again(columns)

    def begin_anew(self) -> None:
        """Another model: nothing of the past counts."""
        self.judge_waiting()
        self.memory.clear()
        self._signed = False
        self._losses.restart()

    # -- judging

    def _judge_update(self, update: Update, phase: Phase) -> None:
        watched = update.watched
        if phase == "gradient":
            _follow_rate(watched, update.rate)
            watched.last_norm, watched.last_rate = update.norm, update.rate
            if update.warm:
                watched.end_warmup()
        stretch = watched.stretch + update.stretch
        if phase == "update":  # an update follows its gradients
            stretch += watched.gradient_burst
        for item in judge_update(update, phase, stretch):
            if isinstance(item, Values):
                watched.values[phase] = item
            elif self._alert(item) and phase == "gradient" and self._may_skip(item):
                self.skip(watched, update.step)

    def _may_skip(self, alert: Alert) -> bool:
        """A step is left out for what would harm the weights, not for what is worth a look."""
        return self.settings.on_alert == "skip" and alert.severity is Severity.HIGH

    def skip(self, watched: WatchedOptimizer, step: int) -> None:
        """The optimizer leaves this step out; of several in a row the first is named."""
        if watched.skip:
            return
        self._skipped_in_a_row = self._skipped_in_a_row + 1 if self._skipped == step - 1 else 1
        if self._skipped_in_a_row == 1:
            self.note(
                Text(f"skipping the optimizer at step {step}", f"跳过第 {step} 步的优化器更新")
            )
        elif self._skipped_in_a_row in _SKIPS_TOLD:
            self._warn_of_skips()
        watched.skip = True
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
        stretch = max((watched.stretch for watched in self.optimizers.values()), default=0.0)
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
        return next((call for call in self._calls if call.step == step), self.call)

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
        if self.find_origin is None or alert.episode == self._origin_told:
            return
        self._origin_told = alert.episode
        if alert.step == self.call.step and (text := self.find_origin()) is not None:
            log_line(f"[Monitor] {text.get(self.settings.lang)}", logging.WARNING)
            if self.recorder:
                self.recorder.note(alert.step, text, "origin")

    def close(self) -> None:
        """Let the writers and the hooks go; a watch that has failed must do so too."""
        self.closed = True
        self._write(lambda writer: writer.close())

    def say_ended(self, steps: int, thinned: Text) -> None:
        """The last line: how many steps, how many episodes, what was not read, where to look."""
        if self.ranks is not None and self.ranks.rank:
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
        if self.ranks is None:
            return line
        return line.replace(" | ", f" | rank {self.ranks.rank} | ", 1)

    def _print(self, call: TrainingCall) -> None:
        main = next(iter(self.optimizers.values()), None)
        if main is None or (self.ranks is not None and self.ranks.rank):
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
            for watched in self.optimizers.values():
                self.recorder.layers(call.step, watched)


_judges: weakref.WeakSet[Judge] = weakref.WeakSet()


def _unlock() -> None:
    """A child that was forked while another thread judged would wait for that thread for ever."""
    for judge in _judges:
        judge._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def _cannot_wait(pending: Pending) -> bool:
    kind, item = pending
    if isinstance(item, Update):
        return kind == "gradient" and (item.number == 0 or not item.finite)
    return isinstance(item, TrainingCall) and item.loss is not None and not math.isfinite(item.loss)


def _follow_rate(watched: WatchedOptimizer, rate: float) -> None:
    """Thresholds give way while the learning rate is away from its recent self."""
    if rate <= 0 or not math.isfinite(rate):
        return
    if watched.log_rate is None:
        watched.log_rate = math.log(rate)
    away = math.log(rate) - watched.log_rate
    watched.stretch = 0.5 * abs(away)
    watched.log_rate += _RATE_MEMORY * away
