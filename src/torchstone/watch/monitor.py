"""A watch: listens to a training loop, learns what is normal for it, and says what is not."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from torchstone.core.errors import UsageError
from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.runtime.number_formats import FP16, NumberFormat, format_of
from torchstone.watch import hooks
from torchstone.watch.actor import Actor, narrowest
from torchstone.watch.alerts import Alert, Episodes, TrainingAlertError
from torchstone.watch.bank import Bank
from torchstone.watch.batches import Batches
from torchstone.watch.beat import Beat, Call
from torchstone.watch.budget import Budget
from torchstone.watch.discover import Found, discover, loss_in
from torchstone.watch.judge import Values, judge_bank, judge_beat, judge_call
from torchstone.watch.lines import LOGGER, say, show_lines
from torchstone.watch.ranks import Ranks, join_ranks
from torchstone.watch.reading import Reading
from torchstone.watch.recorder import Recorder, open_recorder, scalars
from torchstone.watch.sentinel import Sentinel
from torchstone.watch.settings import Settings, Writer
from torchstone.watch.signal import Phase, learned
from torchstone.watch.telling import baseline_of, found_notes, progress_line, unwatched_notes
from torchstone.watch.zoom import Zoom

_HISTOGRAM_EVERY = 50
_SAMPLE_EVERY = 10
_LAYERS_EVERY = 10
_UNOWNED_AT = 10  # every optimizer has had its turn by then, also one that waits for five critics
_UNOWNED_EVERY = 40
_RATE_MEMORY = 0.01  # of the learning rate that thresholds stretch with


class Watch:
    """Watches a training loop: as a context, `with Watch(model, optimizer) as w: w.step(loss)`.

    Whatever goes wrong inside a watch is said and ends the watching, never the training.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        optimizer: torch.optim.Optimizer | list[torch.optim.Optimizer] | None = None,
        *,
        scaler: Any = None,
        scheduler: Any = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        self.settings = settings or _settings(options)
        self.alerts: list[Alert] = []
        self.call = Call(0)
        self.steps = 0
        """Calls that have ended."""
        self.actors: dict[int, Actor] = {}
        self.recorder: Recorder | None = None
        self.function: Callable[..., Any] | None = None
        self._random_state: Any = None
        self._budget = Budget(self.settings.budget)
        self._found = Found()
        self._give(model, optimizer, scaler, scheduler)
        self._episodes = Episodes(self.settings.alert_window)
        self._memory: dict[str, object] = {}
        self._losses = Bank(
            [s.limits.scaled(self.settings.tightness) for s in learned("call", "run") if s.limits],
            self.settings.warmup_steps,
        )
        self._names: dict[int, str] = {}
        self._undo: list[Callable[[], None]] = []
        self._sentinels: dict[int, Sentinel] = {}
        self._batches = Batches()
        self._started = 0.0
        self._prepared = False
        self._active = False
        self._broken = False
        self._stretch = 0.0
        self._told_baseline = False
        self._writers = list(self.settings.writers)
        self._ranks: Ranks | None = None
        self._zoom: Zoom | None = None
        self._zoomed_from = 0

    # -- the loop

    def __enter__(self) -> Watch:
        self.prepare(None, (), {})
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def step(self, loss: Any = None, batch: Any = None) -> None:
        """The loop has come round once; the loss may be a tensor, a number or a mapping."""
        if batch is not None:
            self._guard(lambda: self._batches.see(self.call, batch))
        self.end(loss)
        self.begin()

    def prepare(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Look for the parts of the training step, once, and say what was found."""
        if self._prepared:
            if self._is_new(args):
                self._guard(lambda: self._begin_anew(function, args, kwargs))
            return
        self._prepared = True
        self.function = function
        show_lines()
        self._guard(lambda: self._prepare(function, args, kwargs))

    def _prepare(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._find(function, args, kwargs)
        models = [model for _, model in self._found.models]
        self._ranks = join_ranks(models, self.settings.ranks_every, self.settings.lang)
        writes = self._ranks is None or self._ranks.rank == 0
        what = {
            kind: [f"{name} ({type(item).__name__})" for name, item in getattr(self._found, kind)]
            for kind in ("models", "optimizers", "scalers", "schedulers")
        }
        self.recorder = open_recorder(self.settings, what, writes)
        atexit.register(_close_at_exit, weakref.ref(self))

    def _find(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        found = discover(function, args, kwargs)
        for kind in ("models", "optimizers", "scalers", "schedulers"):
            if not getattr(self._found, kind):
                setattr(self._found, kind, getattr(found, kind))
        many = len(self._found.models) > 1
        for place, (_, model) in enumerate(self._found.models):
            head = f"model{place + 1}." if many else ""
            for name, parameter in model.named_parameters():
                self._names.setdefault(id(parameter), head + _plain_name(name))
        for _, model in self._found.models:
            compiled = isinstance(model, torch._dynamo.OptimizedModule) or (
                model._compiled_call_impl is not None
            )
            try:
                self._undo.append(hooks.follow_model(model, self, calls=not compiled))
            except RuntimeError as error:  # a scripted module takes no hooks
                self._note(Text(
                    f"the inputs of {type(model).__name__} are not seen: {error}",
                    f"看不到 {type(model).__name__} 的输入：{error}",
                ))  # fmt: skip
        hooks.listen(cast(hooks.Listener, self))
        weakref.finalize(self, _undo_all, self._undo)
        for text, level in found_notes(self._found):
            self._note(text, level)

    def _is_new(self, args: tuple[Any, ...]) -> bool:
        """The step was handed a model that is not the one it was handed before."""
        known = [id(model) for _, model in self._found.models]
        return not self._given and any(
            isinstance(a, nn.Module) and id(a) not in known and any(True for _ in a.parameters())
            for a in args
        )

    def _begin_anew(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        _undo_all(self._undo)
        for sentinel in self._sentinels.values():
            sentinel.remove()
        self._sentinels.clear()
        self.actors.clear()
        self._names.clear()
        self._memory.clear()
        self._losses.restart()
        self._found = Found()
        hooks.unlisten(cast(hooks.Listener, self))
        self._find(function, args, kwargs)
        self._note(Text("another model: learning again", "更换了模型：重新学习"))

    def begin(self) -> None:
        """A new call starts."""
        if self._broken:
            return
        self._active = True
        self.call = Call(self.call.step + 1, memory=self._memory)
        self._random_state = torch.get_rng_state()
        self._started = time.perf_counter()

    def end(self, result: Any = None, batch: Any = None) -> None:
        """The call is over; its result holds the loss."""
        if not self._active:
            return
        self._active = False
        self._budget.all_seconds += time.perf_counter() - self._started
        self.steps += 1
        if batch is not None:
            self._guard(lambda: self._batches.see(self.call, batch))
        self._guard(lambda: self._finish(result))

    def abandon(self) -> None:
        """The call raised: forget it, and keep listening to the next."""
        self._active = False
        for actor in self.actors.values():
            actor.reading = actor.before = None

    def close(self) -> None:
        """Take everything back, and write what is left."""
        hooks.unlisten(cast(hooks.Listener, self))
        self._active = self._prepared = False
        _undo_all(self._undo)
        for sentinel in self._sentinels.values():
            sentinel.remove()
        if self._zoom is not None:
            self._zoom.remove()
        self._write(lambda writer: writer.close())
        if self.recorder:
            self._guard(self._close_recorder)

    def _close_recorder(self) -> None:
        assert self.recorder is not None
        self.recorder.close(self.summary())

    # -- what the hooks tell

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._guard(lambda: self._before_step(optimizer))

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._guard(lambda: self._after_step(optimizer))

    def before_clip(self, parameters: Any) -> None:
        self._guard(lambda: self._before_clip(parameters))

    def before_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        if self._active:
            self._guard(lambda: self._before_unscale(scaler, optimizer))

    def _before_step(self, optimizer: torch.optim.Optimizer) -> None:
        actor = self._actor(optimizer)
        if actor is None:
            return
        if actor.reading is None:
            self._read(actor, 1.0)
        if id(actor) in self._sentinels:
            self._sentinels[id(actor)].before_step(self.call)
        if actor.skip:
            actor.skip = False
            for parameter in actor.parameters:  # without gradients nothing moves, state included
                parameter.grad = None

    def _before_clip(self, parameters: Any) -> None:
        one = next(iter([parameters] if isinstance(parameters, Tensor) else parameters), None)
        for actor in self.actors.values():
            mine = one is not None and id(one) in actor.ids and actor.reading is None
            if mine and actor.is_current():
                self._read(actor, 1.0)

    def _before_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        actor = self._actor(optimizer)
        if actor is None or actor.reading is not None:
            return
        scale = scaler.get_scale() if not actor.reader.defers else 1.0
        self.call.scale, self.call.scaled = scale, True
        self._read(actor, scale, scaled=True)
        self.call.skipped += 1  # taken back when the optimizer does step

    def _read(self, actor: Actor, scale: float, scaled: bool = False) -> None:
        """Read the gradients, and judge what has arrived."""
        actor.due = self._budget.is_due(actor.beats)
        if not actor.due:
            actor.norm = math.nan
            actor.reading = Reading.empty(actor.beats)
            return
        number_format = self._format(actor, scaled)
        query = actor.query(number_format, scale, actor.beats % _HISTOGRAM_EVERY == 0)
        gradients = self._strided(actor)
        actor.scaled = scaled
        actor.before = None if actor.reader.defers else actor.reader.sample(actor.parameters)
        actor.outside = _differs(actor.before, actor.after)
        for reading in actor.reader.read(actor.beats, gradients, query):
            actor.reading = reading
            self._note_thawed(actor, reading)
            beat = self._beat(actor, reading, number_format, scale)
            self._judge(beat, "gradient")
            if reading.samples is not None and reading.beat % _SAMPLE_EVERY == 0:
                self._judge(beat, "sample")
            if reading.histograms is not None and self.recorder:
                self.recorder.histograms(self.call.step, actor, reading.histograms, scale)
        if actor.reading is None:
            actor.reading = Reading.empty(actor.beats)

    def _note_thawed(self, actor: Actor, reading: Reading) -> None:
        """Parameters that get their first gradient in mid-run change what is normal for all."""
        new = reading.present & ~actor.ever_present
        if new.any():
            actor.ever_present |= new
            if actor.beats:
                self._event(Text(
                    f"{int(new.sum())} parameter(s) get their first gradient: learning again",
                    f"{int(new.sum())} 个参数首次得到梯度：重新学习",
                ), restart=True)  # fmt: skip

    def _strided(self, actor: Actor) -> list[Tensor | None]:
        gradients = actor.gradients()
        if actor.beats % _HISTOGRAM_EVERY == 0 or not actor.ever_present.any():
            # a layout does not change from step to step
            for name in actor.note_sparse(gradients):
                self._note(Text(
                    f"not watched: gradient of '{name}' (sparse)", f"未监控：'{name}' 的梯度（稀疏）"
                ))  # fmt: skip
        return actor.without_sparse(gradients)

    def _after_step(self, optimizer: torch.optim.Optimizer) -> None:
        actor = self.actors.get(id(optimizer))
        if actor is None or actor.reading is None:
            return
        self.call.beats += 1
        if actor.scaled:
            self.call.skipped = max(self.call.skipped - 1, 0)
        if actor.due and actor.before is not None and actor.reading.samples is not None:
            after = actor.reader.sample(actor.parameters)
            self._judge_update(actor, after)
            actor.after = after
        else:
            actor.after = None
        if id(actor) not in self._sentinels and actor.reading.present.any():
            models = [model for _, model in self._found.models]
            self._sentinels[id(actor)] = Sentinel(actor, models, self._guard)
        if id(actor) in self._sentinels:
            self._sentinels[id(actor)].stepped()
        actor.beats += 1
        actor.reading = actor.before = None
        for other in self.actors.values():
            if other is not actor and not other.ids.isdisjoint(actor.ids):
                other.after = None  # it changed them too, and rightly

    def _judge_update(self, actor: Actor, after: Any) -> None:
        assert actor.reading is not None
        assert actor.before is not None
        beat = self._beat(actor, actor.reading, self._format(actor, actor.scaled), 1.0)
        beat.steps = actor.reader.step(actor.before, after, actor.reading.samples)  # type: ignore[union-attr,arg-type]
        self._judge(beat, "update")
        actor.digest = int(np.bitwise_xor.reduce(beat.steps["digest"]))

    # -- judging

    def _beat(
        self, actor: Actor, reading: Reading, number_format: NumberFormat, scale: float
    ) -> Beat:
        return Beat(
            reading.beat, self.call.step, actor, reading, actor.rate, scale, number_format,
            self.call.step > self.settings.warmup_steps, actor.scaled, None, actor.outside,
            actor.memory,
        )  # fmt: skip

    def _judge(self, beat: Beat, phase: Phase) -> None:
        actor = beat.actor
        if phase == "gradient":
            self._follow_rate(actor, beat.rate)
            actor.norm = actor.last_norm = beat.norm
        stretch = actor.stretch + self._batches.stretch
        for item in judge_beat(beat, phase, stretch):
            if isinstance(item, Values):
                actor.values[phase] = item
            elif self._alert(item) and phase == "gradient" and self.settings.on_alert == "skip":
                actor.skip = True
                self._note(Text(f"step {item.step} is skipped", f"跳过第 {item.step} 步"))

    def _follow_rate(self, actor: Actor, rate: float) -> None:
        """Thresholds give way while the learning rate is away from its recent self."""
        if rate <= 0 or not math.isfinite(rate):
            return
        if actor.log_rate is None:
            actor.log_rate = math.log(rate)
        away = math.log(rate) - actor.log_rate
        actor.stretch = 0.5 * abs(away)
        actor.log_rate += _RATE_MEMORY * away

    def _finish(self, result: Any) -> None:
        call = self.call
        self._read_loss(loss_in(result))
        for actor in self.actors.values():  # the scaler left the step out
            actor.reading = actor.before = None
        self._batches.fill(call)
        if self._batches.changed(call):
            self._event(Text(
                f"batch changed to {call.batch_size}: learning again",
                f"批次大小变为 {call.batch_size}：重新学习",
            ))  # fmt: skip
        if call.step % _UNOWNED_EVERY == _UNOWNED_AT:
            call.unowned = self._unowned()
        for sentinel in self._sentinels.values():
            sentinel.report(call)
        if self._ranks is not None:
            self._ranks.exchange(call, self.actors.values(), len(self.alerts))
        self._judge_loss(call)
        for alert in judge_call(call):
            self._alert(alert)
        self._end_zoom(call)
        self._record(call)
        self._print(call)
        if (text := self._budget.look(call.step)) is not None:
            self._note(text)

    def _read_loss(self, found: Tensor | float | None) -> None:
        if isinstance(found, Tensor):
            if found.device.type == "cpu":
                self.call.loss = float(found.detach())
            else:
                self.call.loss = self._batches.later(found)
        else:
            self.call.loss = found

    def _judge_loss(self, call: Call) -> None:
        signals = learned("call", "run")
        values = np.array([s.value(call) for s in signals if s.value])  # type: ignore[arg-type]
        stretch = max((actor.stretch for actor in self.actors.values()), default=0.0)
        spans = [(signal, i, i + 1) for i, signal in enumerate(signals)]
        for alert in judge_bank(
            self._losses, spans, values, (), call.step, stretch + self._batches.stretch
        ):
            if alert.signal == "loss" and call.loss is not None:
                # losses of both signs are judged on another value than a person wants to see
                alert = replace(alert, value=call.loss)
            self._alert(alert)

    def _alert(self, alert: Alert) -> bool:
        """Tell it, unless its episode has been told; what was learned is silent in warm-up."""
        if alert.learned and self.call.step <= self.settings.warmup_steps:
            return False
        if not self._episodes.admit(alert.step, alert.signal):
            return True
        self.alerts.append(alert)
        del self.alerts[:-1000]
        level = logging.ERROR if alert.severity is Severity.HIGH else logging.WARNING
        say(self._from_rank(alert.line(self.settings.lang)), level)
        if self.recorder:
            self.recorder.alert(alert, self)
        self._write(lambda writer: writer.alert(alert))
        if alert.signal in ("non_finite", "loss_not_finite") and self._zoom is None:
            self._zoom = Zoom(model for _, model in self._found.models)
            self._zoomed_from = self.call.step
        action = self.settings.on_alert
        if action == "raise":
            raise TrainingAlertError(alert)
        if callable(action):
            try:
                action(alert)
            except Exception as error:
                raise _UsersError(error) from error
        return True

    def _end_zoom(self, call: Call) -> None:
        """One call was looked at layer by layer: say where it went wrong first."""
        if self._zoom is None or call.step <= self._zoomed_from:
            return
        zoom, self._zoom = self._zoom, None
        zoom.remove()
        if zoom.first:
            how = Text("its input was bad already", "其输入已含非有限值") if zoom.had_bad_input else Text(
                "its input was finite", "其输入是有限的"
            )  # fmt: skip
            self._note(Text(
                f"first output that is not finite, in forward: layer '{zoom.first}' ({how.en})",
                f"前向中最先出现非有限输出的层：'{zoom.first}'（{how.zh}）",
            ), logging.WARNING)  # fmt: skip

    # -- events that make the past a poor guide

    def model_called(self, args: Any, kwargs: Any) -> None:
        """The model is given something; odd tensors cost a look at the input, nothing else."""
        if self._active:
            with contextlib.suppress(RuntimeError, TypeError, NotImplementedError):
                self._batches.model_called(args, kwargs)

    def model_loaded(self) -> None:
        self._guard(lambda: self._event(
            Text("weights were loaded: learning again", "权重被加载：重新学习")
        ))  # fmt: skip

    def _event(self, text: Text, restart: bool = False) -> None:
        self._losses.forget()
        for actor in self.actors.values():
            actor.after = None
            for learner in actor.banks.values():
                learner.bank.restart() if restart else learner.bank.forget()
        self._note(text)

    # -- parts

    def _actor(self, optimizer: torch.optim.Optimizer) -> Actor | None:
        inner = getattr(optimizer, "optimizer", None)
        if isinstance(inner, torch.optim.Optimizer):  # a wrapper steps the one inside
            return None
        known = self.actors.get(id(optimizer))
        # asked once for each step: when it was read, it was looked at
        if known is not None and (known.reading is not None or known.is_current()):
            return known
        if not self._is_ours(optimizer):
            return None
        name = f"optimizer{len(self.actors) + 1}" if known is None else known.name
        warmup = self.settings.warmup_steps
        actor = Actor(name, optimizer, self._names, warmup, self.settings.tightness, 10)
        if known is not None:
            actor.beats = known.beats
            self._event(
                Text(
                    "the optimizer has new parameters: learning again", "优化器有了新参数：重新学习"
                )
            )
        self._retire(actor)
        self.actors[id(optimizer)] = actor
        for text, level in unwatched_notes(actor, _HISTOGRAM_EVERY):
            self._note(text, level)
        if self.recorder:
            self.recorder.actor(actor)
        mine = weakref.ref(self)

        def loaded(*_: Any) -> None:
            if (watch := mine()) is not None:
                watch.model_loaded()

        self._undo.append(optimizer.register_load_state_dict_post_hook(loaded).remove)
        return actor

    def _retire(self, new: Actor) -> None:
        """An optimizer over the parameters of another takes its place; a shared one is minded."""
        for key, old in list(self.actors.items()):
            if old.ids == new.ids and old is not new:
                del self.actors[key]
                if (sentinel := self._sentinels.pop(id(old), None)) is not None:
                    sentinel.remove()
                if old.optimizer is not new.optimizer:
                    new.name, new.beats = old.name, old.beats
                    self._note(Text(
                        "another optimizer has taken over: learning again", "更换了优化器：重新学习"
                    ))  # fmt: skip

    def _is_ours(self, optimizer: torch.optim.Optimizer) -> bool:
        """Found, or at work on our model; without a model, any that steps within a call."""
        known = any(_unwrapped(item) is optimizer for _, item in self._found.optimizers)
        if known or self._explicit:
            return known
        return self._active or any(
            id(p) in self._names for g in optimizer.param_groups for p in g["params"]
        )

    def _format(self, actor: Actor, scaled: bool) -> NumberFormat:
        if self.settings.narrow is not None:
            return format_of(self.settings.narrow)
        if scaled:
            return FP16
        seen = self._batches.autocast
        return narrowest((*actor.dtypes, seen) if seen is not None else tuple(actor.dtypes))

    def _unowned(self) -> tuple[str, ...]:
        if not self.actors or self._explicit:
            return ()
        owned = {id(p) for a in self.actors.values() for g in a.optimizer.param_groups for p in g["params"]}  # fmt: skip
        owned |= {
            id(p) for _, o in self._found.optimizers for g in o.param_groups for p in g["params"]
        }
        return tuple(
            _plain_name(name)
            for _, model in self._found.models
            for name, p in model.named_parameters()
            if p.requires_grad and id(p) not in owned and p.grad is not None
        )

    def _give(self, model: Any, optimizer: Any, scaler: Any, scheduler: Any) -> None:
        optimizers = optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]
        for kind, values, wanted in (
            ("models", [model], nn.Module), ("optimizers", optimizers, torch.optim.Optimizer),
        ):  # fmt: skip
            for value in values:
                if value is None:
                    continue
                if not isinstance(value, wanted):
                    raise UsageError(
                        "Watch", type(value).__name__,
                        Text(f"a {wanted.__name__}", f"{wanted.__name__}"),
                        Text("pass the model first, then the optimizer", "先传模型，再传优化器"),
                    )  # fmt: skip
                getattr(self._found, kind).append(("given", value))
        self._found.scalers = [("given", scaler)] if scaler is not None else []
        self._found.schedulers = [("given", scheduler)] if scheduler is not None else []
        self._explicit = bool(self._found.optimizers)
        self._given = bool(self._found.models)

    # -- saying and keeping

    def _note(self, text: Text, level: int = logging.INFO) -> None:
        say(f"[Monitor] {text.get(self.settings.lang)}", level)
        if self.recorder:
            self.recorder.note(self.call.step, text)

    def _from_rank(self, line: str) -> str:
        if self._ranks is None:
            return line
        return line.replace(" | ", f" | rank {self._ranks.rank} | ", 1)

    def _print(self, call: Call) -> None:
        if self._ranks is not None and self._ranks.rank:
            return
        main = next(iter(self.actors.values()), None)
        if main is None:
            return
        bank = main.banks["gradient"].bank
        learning = call.step < self.settings.warmup_steps
        if not self._told_baseline and bank.seen >= bank.warmup and not learning:
            self._told_baseline = True
            say(f"[Monitor] Baseline established: {self.baseline()}")
        if call.step % self.settings.print_every == 0:
            status = "ALERT" if self._episodes.open_at(call.step) else "OK"
            say(progress_line(call.step, main, "LEARNING" if learning else status))

    def baseline(self) -> dict[str, dict[str, float]]:
        """The usual value and spread of the signals of the whole run."""
        known = self.call.loss is not None and "loss_unit" not in self._memory
        column = [s.name for s in learned("call", "run")].index("loss")
        return baseline_of(self.actors.values(), self._losses, column if known else None)

    @property
    def random_state(self) -> dict[str, Any]:
        """Of torch's generator on the host when the call began; a device is not asked for its own."""
        if self._random_state is None:
            return {}
        return {"torch": bytes(self._random_state.numpy()).hex()}

    def summary(self) -> dict[str, Any]:
        """How many alarms there were, how often that is, and what watching cost."""
        steps = max(self.steps, 1)
        return {
            "steps": self.steps,
            "episodes": self._episodes.count,
            "episodes_per_10k": self._episodes.count / steps * 1e4,
            "false_alarms_per_10k": self.settings.false_alarms_per_10k,
            "own_seconds": self._budget.own_seconds,
            "all_seconds": self._budget.all_seconds,
            "read_every": self._budget.every,
        }

    def _write(self, act: Callable[[Writer], object]) -> None:
        """Other tools get their part; one that fails is left out from then on."""
        for writer in tuple(self._writers):
            try:
                act(writer)
            except Exception as error:
                self._writers.remove(writer)
                name = type(writer).__name__
                self._note(Text(
                    f"{name} gets no more numbers: {type(error).__name__}: {error}",
                    f"不再写入 {name}：{type(error).__name__}: {error}",
                ), logging.WARNING)  # fmt: skip

    def _record(self, call: Call) -> None:
        if self._writers:
            values = scalars(call, self.actors.values())
            finite = {name: value for name, value in values.items() if math.isfinite(value)}
            self._write(lambda writer: writer.step(call.step, finite))
        if self.recorder is None:
            return
        self.recorder.step(call, self.actors.values())
        if call.step % _LAYERS_EVERY == 0:
            for actor in self.actors.values():
                self.recorder.layers(call.step, actor)

    def _guard(self, act: Callable[[], object]) -> None:
        """Training is never harmed: a failure of the watch is said, and ends the watching."""
        if self._broken:
            return
        start = time.thread_time()  # what others do on a busy machine is not our cost
        try:
            act()
        except TrainingAlertError:
            raise
        except _UsersError as theirs:
            raise theirs.error from None
        except Exception as error:
            self._broken = True
            hooks.unlisten(cast(hooks.Listener, self))
            say(
                f"[Monitor] {Text('watching has ended, training goes on', '监控已停止，训练继续').get(self.settings.lang)}: "
                f"{type(error).__name__}: {error}",
                logging.ERROR,
            )
            LOGGER.debug("the watch failed", exc_info=True)
        finally:
            self._budget.own_seconds += time.thread_time() - start


class _UsersError(Exception):
    """Carries an exception of the user's own `on_alert` function out of the guard."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _undo_all(undo: list[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()


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


def _differs(now: Any, then: Any) -> Any:
    """Parameters of which a sampled value is another than it was."""
    if now is None or then is None:
        return None
    return (now.view(np.uint32) != then.view(np.uint32)).any(axis=1)


def _plain_name(name: str) -> str:
    """A parameter's name without the wrappers that compile, DDP and checkpointing put around it."""
    for wrapper in ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module."):
        name = name.replace(wrapper, "")
    return name.removeprefix("module.")


def _unwrapped(optimizer: Any) -> Any:
    inner = getattr(optimizer, "optimizer", None)
    return inner if isinstance(inner, torch.optim.Optimizer) else optimizer
