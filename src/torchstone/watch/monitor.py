"""`Watch`: monitors a training loop, learns its normal ranges, and reports departures from them."""

from __future__ import annotations

import atexit
import logging
import weakref
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.watch.alerts import Alert, TrainingAlertError
from torchstone.watch.clock import Clock
from torchstone.watch.judge.episodes import Episode
from torchstone.watch.judge.judge import Judge, UsersError
from torchstone.watch.listen import hooks
from torchstone.watch.listen.discover import Found, loss_in
from torchstone.watch.listen.model_ends import ModelEnds
from torchstone.watch.listen.optimizer_reader import OptimizerReader
from torchstone.watch.listen.origin import (
    MOST_CALLS,
    ModelCall,
    StepCall,
    find_origin,
    note_call,
)
from torchstone.watch.listen.parts import TrainingParts
from torchstone.watch.listen.ranks import Ranks, join_ranks, row_of
from torchstone.watch.measure.call import Backward, CallUnderWay, RankRows, TrainingCall
from torchstone.watch.read.budget import Budget
from torchstone.watch.record.log import LOGGER, log_line, show_log_lines
from torchstone.watch.record.recorder import Recorder, open_recorder
from torchstone.watch.settings import Settings

_UNOWNED_AT = 10  # every optimizer has had its turn by then, also one that waits for five critics
_UNOWNED_EVERY = 40
_TIMED_EVERY = 7  # in no step with anything else that comes round


class Watch:
    """Monitors a training loop: `with Watch(model, optimizer) as w: ...; w.step(loss)`.

    An error inside the monitor is reported and stops the monitoring, never the training.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        optimizer: torch.optim.Optimizer | list[torch.optim.Optimizer] | None = None,
        *,
        scaler: Any = None,
        scheduler: Any = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        self.settings = settings or _settings(options)
        self.steps = 0
        """Calls that have ended."""
        self._clock = clock or Clock()
        guard = _guard_of(self)
        self._judge = Judge(self.settings, self._clock, guard, _origin_of(self))
        self._ranks: Ranks | None = None
        self._arguments: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        """What the decorated function was called with, while it runs."""
        self._calls: list[ModelCall] = []
        """Calls of the model in the step that is under way."""
        self._budget = Budget(self.settings.budget)
        self._model_ends = ModelEnds(self._judge, guard)
        self._parts = TrainingParts(self._judge, guard, self._budget, self._model_ends.batches)
        self._parts.give(model, optimizer, scaler, scheduler)
        self.optimizers = self._parts.optimizers
        self._started = self._judged_seconds = 0.0
        self._prepared = False
        self._active = False
        self._broken = False

    @property
    def alerts(self) -> list[Alert]:
        """All alerts up to the last step that has ended, those listed under another one included."""
        self._guard(self._judge.judge_waiting)
        return self._judge.alerts

    @property
    def episodes(self) -> list[Episode]:
        """The alerts by their cause: each episode has the alert that opened it, and what followed."""
        self._guard(self._judge.judge_waiting)
        return self._judge.episodes.all

    @property
    def call(self) -> CallUnderWay:
        """The call that is under way."""
        return self._judge.call

    @property
    def recorder(self) -> Recorder | None:
        """Writes the run folder; None where nothing is recorded."""
        return self._judge.recorder

    @property
    def found(self) -> Found:
        """The parts of the training step, by the names they were found under."""
        return self._parts.found

    # -- the loop

    def __enter__(self) -> Watch:
        self.prepare(None, (), {})
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def step(self, loss: Any = None, batch: Any = None) -> None:
        """Mark the end of one training step; `loss` may be a tensor, a number or a mapping."""
        self.end(loss, batch)
        self.begin()

    def prepare(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Find the model, optimizers, scaler and scheduler, once, and log what was found."""
        if self._prepared:
            if self._parts.is_new(args):
                self._guard(lambda: self._begin_anew(function, args, kwargs))
            return
        self._prepared = True
        self._judge.watch(function)
        show_log_lines()
        self._guard(lambda: self._prepare(function, args, kwargs))

    def _prepare(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._parts.find(function, args, kwargs, self)
        ranks = join_ranks(self._parts.models, self.settings.ranks_every, self.settings.lang)
        self._ranks = ranks
        writes = ranks is None or ranks.rank == 0
        self._judge.record_to(
            open_recorder(
                self.settings,
                {**self._parts.by_kind(), "settings": self._parts.settings()},
                writes,
                self._clock,
            ),
            None if ranks is None else ranks.rank,
        )
        atexit.register(_close_at_exit, weakref.ref(self))

    def _begin_anew(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._judge.begin_anew()
        self._parts.forget()
        hooks.unlisten(cast(hooks.Listener, self))
        self._parts.find(function, args, kwargs, self)
        self._judge.note(
            Text("the model was replaced: relearning the baseline", "更换了模型：重新学习基线")
        )

    def begin(self, batch: Any = None) -> None:
        """Mark the start of a training step, with its batch where it is known."""
        if self._broken:
            return
        self._active = True
        self._arguments = batch if self._judge.function is not None else None
        call = CallUnderWay(self.call.step + 1, self._judge.memory, torch.get_rng_state())
        self._judge.begin(call)
        if batch is not None:
            call.note_batch(self._model_ends.see(batch))
        self._started = self._clock.now()

    def end(self, result: Any = None, batch: Any = None) -> None:
        """Mark the end of a training step; its result holds the loss."""
        if not self._active:
            return
        self._active = False
        self._budget.add(0.0, self._clock.now() - self._started)
        self.steps += 1
        self._guard(lambda: self._finish(result, batch))

    def abandon(self) -> None:
        """Drop the current step: it raised an exception."""
        self._active = False
        self._judge.end_skipping()
        for reader in self.optimizers.values():
            reader.forget_step()
        for backward_hook in self._parts.backward_hooks.values():
            backward_hook.abandon()

    def close(self) -> None:
        """Remove all hooks, write what is left, and log a summary line."""
        hooks.unlisten(cast(hooks.Listener, self))
        was_open, self._prepared = self._prepared, False
        self._active = False
        self._parts.release()
        self._guard(self._judge.judge_waiting)
        self._judge.close()
        if was_open and self.steps and not self._broken:
            self._guard(lambda: self._judge.say_ended(self.steps, self._budget.text))
        if self.recorder:
            self._guard(self._close_recorder)

    def _close_recorder(self) -> None:
        assert self.recorder is not None
        self.recorder.close(self.summary())

    def _finish(self, result: Any, batch: Any) -> None:
        under_way = self.call
        if batch is not None:
            under_way.note_batch(self._model_ends.see(batch))
        under_way.note_loss(self._number_of(loss_in(result)))
        self._judge.end_skipping()
        for reader in self.optimizers.values():
            if reader.reading is not None and reader.scaled and under_way.skipped:
                self._leave_out(reader)
            reader.forget_step()
        call = self._finished(under_way)
        self._judge.submit(call)
        self._budget.add(self._judge.seconds - self._judged_seconds, 0.0)
        self._judged_seconds = self._judge.seconds
        self._calls.clear()
        self._arguments = None
        if self._budget.look(call.step):
            self._judge.note_thinned(self._budget.text)

    def _finished(self, under_way: CallUnderWay) -> TrainingCall:
        """What all who listen have seen of the call."""
        step, batches = under_way.step, self._model_ends.batches
        batch, given = batches.finish(under_way.batch)
        gave = self._model_ends.outputs.finish(under_way.loss)
        size = batches.follow_size(batch)
        if size.is_new:
            self._judge.event(batches.size_text(batch))
        unowned = self._parts.unowned() if step % _UNOWNED_EVERY == _UNOWNED_AT else ()
        backward = Backward()
        for backward_hook in self._parts.backward_hooks.values():
            backward = backward.and_then(backward_hook.report())
        rows = RankRows()
        if self._ranks is not None:
            row = row_of(
                step, under_way.loss, batch.digest, self.optimizers.values(), len(self._judge.alerts)
            )  # fmt: skip
            rows = self._ranks.exchange(row, step)
        alone = len(self.optimizers) == 1 and not batches.attacked
        return under_way.finish(batch, given, gave, backward, rows, size.stretch, alone, unowned)

    def _find_origin(self) -> Text | None:
        """The step's batch once more; training goes on whatever the model does with it."""
        was_active, self._active = self._active, False
        try:
            function, given = self._judge.function, self._arguments
            step = StepCall(function, *given) if function is not None and given else None
            return find_origin(self._calls, self.call.random_state, step)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            return Text(
                f"the batch could not be run again to find the cause ({why})",
                f"无法重新运行该批次以查找原因（{why}）",
            )
        finally:
            self._active = was_active

    def _leave_out(self, reader: OptimizerReader) -> None:
        """The loss scaler left the step out."""
        if (backward_hook := self._parts.backward_hooks.get(id(reader))) is not None:
            backward_hook.left_out()
        self._model_ends.outputs.left_out()

    def _number_of(self, loss: Tensor | float | None) -> float | None:
        if not isinstance(loss, Tensor):
            return loss
        if loss.device.type == "cpu":
            return float(loss.item())
        return self._model_ends.batches.later(loss)

    # -- what the hooks tell

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._guard(lambda: self._before_step(optimizer))

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._guard(lambda: self._after_step(optimizer))

    def before_clip(self, parameters: Any, norms: tuple[float, Tensor]) -> None:
        self._guard(lambda: self._before_clip(parameters, norms))

    def before_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        if self._active:
            self._guard(lambda: self._before_unscale(scaler, optimizer))

    def model_called(self, args: Any, kwargs: Any) -> None:
        """The model is given something."""
        if self._active:
            self._model_ends.called(args, kwargs)
            if (
                len(self._parts.models) == 1
                and len(self._calls) < MOST_CALLS
                and torch.is_grad_enabled()
            ):
                self._calls.append(note_call(self._parts.models[0], args, kwargs))

    def model_answered(self, output: Any) -> None:
        """The model has given something; of several models none is looked at."""
        if self._active and len(self._parts.found.models) == 1:
            self._model_ends.answered(output)

    def model_loaded(self) -> None:
        """Weights or an optimizer's state were loaded; the next read says what that changed."""
        self._guard(self._judge.note_loaded)
        for reader in self.optimizers.values():
            reader.load()

    def _before_step(self, optimizer: torch.optim.Optimizer) -> None:
        reader = self._parts.reader_of(optimizer, self._active)
        if reader is None:
            return
        if reader.reading is None:
            reader.read(1.0, is_bad=not self._model_ends.outputs.finite)
        if (backward_hook := self._parts.backward_hooks.get(id(reader))) is not None:
            backward_hook.before_step()
        if self._judge.is_skipping(reader.watched.key):
            reader.drop_gradients()

    def _before_clip(self, parameters: Any, norms: tuple[float, Tensor]) -> None:
        one = next(iter([parameters] if isinstance(parameters, Tensor) else parameters), None)
        for reader in self.optimizers.values():
            if one is None or id(one) not in reader.watched.ids:
                continue
            if reader.reading is None and reader.is_current():
                reader.read(1.0, is_bad=not self._model_ends.outputs.finite)
            reader.clip(norms)

    def _before_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        reader = self._parts.reader_of(optimizer, self._active)
        if reader is None or reader.reading is not None:
            return
        scale = scaler.get_scale() if not reader.defers else 1.0
        reader.read(scale, scaled=True, is_bad=not self._model_ends.outputs.finite)
        self.call.note_unscaled(scale)  # left out, until the optimizer does step

    def _after_step(self, optimizer: torch.optim.Optimizer) -> None:
        reader = self.optimizers.get(id(optimizer))
        if reader is None or reader.reading is None:
            return
        self.call.note_step(reader.scaled)
        try:
            reader.read_after(compared=self._ranks is not None)
        finally:  # an alert may be raised out of it
            self._stepped(reader)

    def _stepped(self, reader: OptimizerReader) -> None:
        key = reader.watched.key
        if (backward_hook := self._parts.backward_hook(reader)) is not None:
            if backward_hook.has_new_passes():
                self._judge.note_passes_changed(key)
            backward_hook.stepped()
        self._model_ends.outputs.stepped(reader.norm, reader.scale)
        self._judge.end_skipping(key)
        reader.end_step()
        for other in self.optimizers.values():
            if other is not reader and not other.watched.ids.isdisjoint(reader.watched.ids):
                other.doubt_weights()

    # -- how it stands

    def baseline(self) -> dict[str, dict[str, float]]:
        """Median and spread of the signals of the whole run."""
        self._guard(self._judge.judge_waiting)
        return self._judge.baseline()

    def summary(self) -> dict[str, Any]:
        """Steps, alert episodes, skipped steps, and the cost of monitoring."""
        self._guard(self._judge.judge_waiting)
        episodes = self._judge.episodes.count
        own_seconds, all_seconds = self._budget.whole_run
        return {
            "steps": self.steps,
            "episodes": episodes,
            "episodes_per_10k": episodes / max(self.steps, 1) * 1e4,
            "false_alarms_per_10k": self.settings.false_alarms_per_10k,
            "own_seconds": own_seconds,
            "all_seconds": all_seconds,
            "read_every": self._budget.every,
            "skipped": self._judge.skipped,
        }

    def _guard(self, act: Callable[[], object]) -> None:
        """Training is never harmed: a failure of the watch is said, and ends the watching."""
        if self._broken:
            return
        timed = self.steps % _TIMED_EVERY == 0
        start = self._clock.at_work() - self._judge.seconds if timed else 0.0
        try:
            act()
        except TrainingAlertError:
            raise
        except UsersError as theirs:
            raise theirs.error from None
        except Exception as error:
            self._broken = True
            hooks.unlisten(cast(hooks.Listener, self))
            log_line(
                f"[Monitor] {Text('monitoring stopped, training continues', '监控已停止，训练继续').get(self.settings.lang)}: "
                f"{type(error).__name__}: {error}",
                logging.ERROR,
            )
            LOGGER.debug("the watch failed", exc_info=True)
        finally:
            if timed:
                spent = self._clock.at_work() - self._judge.seconds - start
                self._budget.add(_TIMED_EVERY * spent, 0.0)


def _guard_of(watch: Watch) -> Callable[[Callable[[], object]], None]:
    """The guard for parts that outlive the watch: a forgotten one goes at once, not at some later
    collection in the middle of a forward pass."""
    mine = weakref.WeakMethod(watch._guard)

    def guard(act: Callable[[], object]) -> None:
        if (alive := mine()) is not None:
            alive(act)

    return guard


def _origin_of(watch: Watch) -> Callable[[], Text | None]:
    """The same for the search for an origin."""
    mine = weakref.WeakMethod(watch._find_origin)

    def find() -> Text | None:
        return alive() if (alive := mine()) is not None else None

    return find


def _close_at_exit(reference: weakref.ref[Watch]) -> None:
    """A decorated function has no end of its own: the run is closed with the process."""
    watch = reference()
    if watch is not None:
        watch.close()


def _settings(options: dict[str, Any]) -> Settings:
    known = Settings.__dataclass_fields__
    for name in options:
        if name not in known:
            raise UsageError(
                "watch_training", name, Text(f"one of {', '.join(known)}", f"{'、'.join(known)} 之一"),
                Text("check the spelling", "请检查拼写"),
            )  # fmt: skip
    return Settings(**options)
