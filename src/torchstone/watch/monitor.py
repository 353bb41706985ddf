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
from torchstone.watch import hooks
from torchstone.watch.actor import Actor
from torchstone.watch.alerts import Alert, TrainingAlertError
from torchstone.watch.beat import Call
from torchstone.watch.budget import Budget
from torchstone.watch.clock import Clock
from torchstone.watch.court import Court, UsersError
from torchstone.watch.discover import Found, loss_in
from torchstone.watch.ends import Ends
from torchstone.watch.episodes import Episode
from torchstone.watch.eye import Eye
from torchstone.watch.idle import Idle
from torchstone.watch.lines import LOGGER, say, show_lines
from torchstone.watch.parts import Parts
from torchstone.watch.ranks import join_ranks
from torchstone.watch.recorder import Recorder, open_recorder
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
        self.actors: dict[int, Actor] = {}
        self._clock = clock or Clock()
        self._court = Court(self.settings, self.actors, self._clock)
        self._court.idle = Idle(self._court, _guard_of(self))
        self._parts = Parts(self._court, _guard_of(self))
        self._parts.give(model, optimizer, scaler, scheduler)
        self._budget = Budget(self.settings.budget)
        self._ends = Ends(self._court, _guard_of(self))
        self._eye = Eye(self._court, self._budget, self._ends.batches)
        self._started = self._judged_seconds = 0.0
        self._prepared = False
        self._active = False
        self._broken = False

    @property
    def alerts(self) -> list[Alert]:
        """All alerts up to the last step that has ended, those listed under another one included."""
        self._guard(self._court.sit)
        return self._court.alerts

    @property
    def episodes(self) -> list[Episode]:
        """The alerts by their cause: each episode has the alert that opened it, and what followed."""
        self._guard(self._court.sit)
        return self._court.episodes.all

    @property
    def call(self) -> Call:
        """The call that is under way."""
        return self._court.call

    @property
    def recorder(self) -> Recorder | None:
        """Writes the run folder; None where nothing is recorded."""
        return self._court.recorder

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
        self._court.function = function
        show_lines()
        self._guard(lambda: self._prepare(function, args, kwargs))

    def _prepare(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._court.closed = False
        self._parts.find(function, args, kwargs, self)
        ranks = join_ranks(self._parts.models, self.settings.ranks_every, self.settings.lang)
        self._court.ranks = ranks
        writes = ranks is None or ranks.rank == 0
        self._court.recorder = open_recorder(
            self.settings, self._parts.by_kind(), writes, self._clock
        )
        atexit.register(_close_at_exit, weakref.ref(self))

    def _begin_anew(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._court.begin_anew()
        self._parts.forget()
        hooks.unlisten(cast(hooks.Listener, self))
        self._parts.find(function, args, kwargs, self)
        self._court.note(
            Text("the model was replaced: relearning the baseline", "更换了模型：重新学习基线")
        )

    def begin(self, batch: Any = None) -> None:
        """Mark the start of a training step, with its batch where it is known."""
        if self._broken:
            return
        self._active = True
        call = Call(self.call.step + 1, memory=self._court.memory)
        call.random_state = torch.get_rng_state()
        self._court.begin(call)
        if batch is not None:
            self._ends.see(call, batch)
        self._started = self._clock.now()

    def end(self, result: Any = None, batch: Any = None) -> None:
        """Mark the end of a training step; its result holds the loss."""
        if not self._active:
            return
        self._active = False
        self._budget.all_seconds += self._clock.now() - self._started
        self.steps += 1
        self._guard(lambda: self._finish(result, batch))

    def abandon(self) -> None:
        """Drop the current step: it raised an exception."""
        self._active = False
        for actor in self.actors.values():
            actor.reading = actor.before = None
            actor.skip = False
        for sentinel in self._parts.sentinels.values():
            sentinel.left_out()

    def close(self) -> None:
        """Remove all hooks, write what is left, and log a summary line."""
        hooks.unlisten(cast(hooks.Listener, self))
        was_open, self._prepared = self._prepared, False
        self._active = False
        self._parts.release()
        self._guard(self._court.sit)
        self._court.close()
        if was_open and self.steps and not self._broken:
            self._guard(lambda: self._court.say_ended(self.steps, self._budget.text))
        if self.recorder:
            self._guard(self._close_recorder)

    def _close_recorder(self) -> None:
        assert self.recorder is not None
        self.recorder.close(self.summary())

    def _finish(self, result: Any, batch: Any) -> None:
        call = self.call
        if batch is not None:
            self._ends.see(call, batch)
        self._read_loss(loss_in(result))
        for actor in self.actors.values():
            if actor.reading is not None and actor.scaled and call.skipped:
                self._leave_out(actor)
            actor.reading = actor.before = None
            actor.skip = False
        self._ends.fill(call)
        if self._ends.batches.changed(call):
            self._court.event(self._ends.batches.size_text(call))
        call.alone = len(self.actors) == 1 and not self._ends.batches.attacked
        if call.step % _UNOWNED_EVERY == _UNOWNED_AT:
            call.unowned = self._parts.unowned()
        for sentinel in self._parts.sentinels.values():
            sentinel.report(call)
        if self._court.ranks is not None:
            self._court.ranks.exchange(call, self.actors.values(), len(self._court.alerts))
        self._court.end_zoom(call)
        self._court.hear(("call", call))
        self._budget.own_seconds += self._court.seconds - self._judged_seconds
        self._judged_seconds = self._court.seconds
        if self._budget.look(call.step):
            self._court.note_thinned(self._budget.text)

    def _leave_out(self, actor: Actor) -> None:
        """The loss scaler left the step out."""
        if (sentinel := self._parts.sentinels.get(id(actor))) is not None:
            sentinel.left_out()
        self._ends.outputs.left_out()

    def _read_loss(self, found: Tensor | float | None) -> None:
        if isinstance(found, Tensor):
            if found.device.type == "cpu":
                self.call.loss = float(found.item())
            else:
                self.call.loss = self._ends.batches.later(found)
        else:
            self.call.loss = found

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
            self._ends.called(args, kwargs)

    def model_answered(self, output: Any) -> None:
        """The model has given something; of several models none is looked at."""
        if self._active and len(self._parts.found.models) == 1:
            self._ends.answered(output)

    def model_loaded(self) -> None:
        """Weights or an optimizer's state were loaded; the next read says what that changed."""
        self._guard(self._court.sit)  # what waits was before it
        for actor in self.actors.values():
            actor.loaded = True
            actor.memory.pop("age", None)

    def _before_step(self, optimizer: torch.optim.Optimizer) -> None:
        actor = self._parts.actor(optimizer, self._active)
        if actor is None:
            return
        if actor.reading is None:
            self._eye.read(actor, 1.0)
        if (sentinel := self._parts.sentinels.get(id(actor))) is not None:
            sentinel.before_step(self.call)
        if actor.skip:
            actor.before = None  # what this step does to the weights is ours, and says nothing
            for parameter in actor.parameters:  # without gradients nothing moves, state included
                parameter.grad = None

    def _before_clip(self, parameters: Any, norms: tuple[float, Tensor]) -> None:
        one = next(iter([parameters] if isinstance(parameters, Tensor) else parameters), None)
        for actor in self.actors.values():
            if one is None or id(one) not in actor.ids:
                continue
            if actor.reading is None and actor.is_current():
                self._eye.read(actor, 1.0)
            actor.clipping = norms

    def _before_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        actor = self._parts.actor(optimizer, self._active)
        if actor is None or actor.reading is not None:
            return
        scale = scaler.get_scale() if not actor.reader.defers else 1.0
        self.call.scale, self.call.scaled = scale, True
        self._eye.read(actor, scale, scaled=True)
        self.call.skipped += 1  # taken back when the optimizer does step

    def _after_step(self, optimizer: torch.optim.Optimizer) -> None:
        actor = self.actors.get(id(optimizer))
        if actor is None or actor.reading is None:
            return
        self.call.beats += 1
        if actor.scaled:
            self.call.skipped = max(self.call.skipped - 1, 0)
        actor.after = None
        try:
            if actor.due and actor.before is not None and actor.reading.samples is not None:
                self._eye.read_update(actor)
        finally:  # an alert may be raised out of it
            self._stepped(actor)

    def _stepped(self, actor: Actor) -> None:
        if (sentinel := self._parts.sentinel(actor)) is not None:
            if sentinel.has_new_passes():
                # sums of more batches point elsewhere: learn anew where steps lead
                self._court.sit()
                actor.banks["update"].bank.forget()
                self._court.learn_again("loss_slope")  # losses are divided by their number, or not
            sentinel.stepped()
        self._ends.outputs.stepped(actor.norm, actor.scale)
        actor.beats += 1
        actor.skip = False
        actor.clipping = None
        actor.reading = actor.before = None
        for other in self.actors.values():
            if other is not actor and not other.ids.isdisjoint(actor.ids):
                other.after = None  # it changed them too, and rightly

    # -- how it stands

    def baseline(self) -> dict[str, dict[str, float]]:
        """Median and spread of the signals of the whole run."""
        self._guard(self._court.sit)
        return self._court.baseline()

    def summary(self) -> dict[str, Any]:
        """Steps, alert episodes, skipped steps, and the cost of monitoring."""
        self._guard(self._court.sit)
        episodes = self._court.episodes.count
        return {
            "steps": self.steps,
            "episodes": episodes,
            "episodes_per_10k": episodes / max(self.steps, 1) * 1e4,
            "false_alarms_per_10k": self.settings.false_alarms_per_10k,
            "own_seconds": self._budget.own_seconds,
            "all_seconds": self._budget.all_seconds,
            "read_every": self._budget.every,
            "skipped": self._court.skipped,
        }

    def _guard(self, act: Callable[[], object]) -> None:
        """Training is never harmed: a failure of the watch is said, and ends the watching."""
        if self._broken:
            return
        timed = self.steps % _TIMED_EVERY == 0
        start = self._clock.at_work() - self._court.seconds if timed else 0.0
        try:
            act()
        except TrainingAlertError:
            raise
        except UsersError as theirs:
            raise theirs.error from None
        except Exception as error:
            self._broken = True
            hooks.unlisten(cast(hooks.Listener, self))
            say(
                f"[Monitor] {Text('monitoring stopped, training continues', '监控已停止，训练继续').get(self.settings.lang)}: "
                f"{type(error).__name__}: {error}",
                logging.ERROR,
            )
            LOGGER.debug("the watch failed", exc_info=True)
        finally:
            if timed:
                spent = self._clock.at_work() - self._court.seconds - start
                self._budget.own_seconds += _TIMED_EVERY * spent


def _guard_of(watch: Watch) -> Callable[[Callable[[], object]], None]:
    """The guard for parts that outlive the watch: a forgotten one goes at once, not at some later
    collection in the middle of a forward pass."""
    mine = weakref.WeakMethod(watch._guard)

    def guard(act: Callable[[], object]) -> None:
        if (alive := mine()) is not None:
            alive(act)

    return guard


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
