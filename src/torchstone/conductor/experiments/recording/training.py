"""Losses, optimizer steps, batches and restores of a run, written down as they happen."""

from __future__ import annotations

import gc
import inspect
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from torchstone.conductor.experiments.recording.run import (
    Batch,
    Broadcast,
    Classification,
    Loader,
    Loss,
    LossInput,
    MovedState,
    Run,
    Schedule,
    Step,
)
from torchstone.conductor.experiments.recording.samples import Collated, CollateWithDigests
from torchstone.core.place import Place
from torchstone.observe.operators import CallMode
from torchstone.observe.training import (
    TRAINING,
    BackwardBegins,
    LoaderMade,
    OptimizerMade,
    SaveBegins,
    SchedulerMade,
    StateLoads,
    StepBegins,
)
from torchstone.observe.where import Where

_LIVE_AT = (4, 8, 16, 32)
_MOST_BATCHES = 400
_STRETCHING = frozenset(
    "add sub mul div true_divide __sub__ __rsub__ __add__ __mul__ __truediv__ mse_loss l1_loss "
    "smooth_l1_loss huber_loss subtract".split()
)
_ON_PURPOSE = ("Unsqueeze", "Index", "Select", "Expand")
"""Histories of operands that were given their shape just before: the table is wanted."""


class EnoughError(BaseException):
    """The run has shown enough; not an Exception, so that a program does not catch it."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """What `module.state_dict()` gave."""

    state: Any
    module: nn.Module
    place: Place
    step: int


@dataclass(slots=True)
class TrainingRecorder:
    """Listens to torch for one run."""

    run: Run
    places: Where
    cpu_seconds: float
    at_step: Callable[[int], None]
    quiet: bool = False
    backwards: int = 0
    """All backward passes, replays included."""
    optimizer_steps: int = 0
    """All optimizer steps, replays included."""
    _gradients: dict[int, torch.Tensor] = field(default_factory=dict)
    _backwards: int = 0
    _last_loader: int = 0
    """The one that gave the last batch."""
    _states: dict[int, _Taken] = field(default_factory=dict)
    """By identity; held, so that none is used twice."""
    _watched: set[int] = field(default_factory=set)
    _until: float = field(default_factory=time.process_time)

    def install(self) -> None:
        self._until = time.process_time() + self.cpu_seconds
        TRAINING.subscribe(self._backward, BackwardBegins)
        TRAINING.subscribe(self._optimizer_made, OptimizerMade)
        TRAINING.subscribe(self._before_step, StepBegins)
        TRAINING.subscribe(self._scheduler_made, SchedulerMade)
        TRAINING.subscribe(self._loads, StateLoads)
        TRAINING.subscribe(self._loader_made, LoaderMade)
        TRAINING.subscribe(self._saves, SaveBegins)
        self._watch_batches()
        self._watch_autocast()
        self._watch_states()

    def _watch_states(self) -> None:
        """Which line took the state of a whole module, and when."""
        take = nn.Module.state_dict

        def taken(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            state = take(module, *args, **kwargs)
            if not self.quiet and not args and kwargs.get("destination") is None:
                place = self.places.own(2)
                self._states[id(state)] = _Taken(state, module, place, len(self.run.steps))
            return state

        nn.Module.state_dict = taken  # type: ignore[method-assign, assignment]

    def _saves(self, event: SaveBegins) -> None:
        for state in () if self.quiet else _dictionaries(event.value):
            known = self._states.get(id(state))
            steps = len(self.run.steps) - known.step if known else 0
            self.run.saved_states += known is not None or self._is_like_one_taken(state)
            if known and steps and _shares_memory(known.module, state):
                self.run.moved_states.append(MovedState(known.place, self.places.own(2), steps))

    def _is_like_one_taken(self, state: dict[Any, Any]) -> bool:
        """Whether a dictionary has the names of a state that was taken: a copy of it."""
        return any(known.state.keys() == state.keys() for known in self._states.values())

    def _watch_autocast(self) -> None:
        """Asked of the arguments: without a GPU a region of one is off."""
        kind: Any = torch.amp.autocast_mode.autocast
        init = kind.__init__

        def made(region: Any, *args: Any, **kwargs: Any) -> None:
            init(region, *args, **kwargs)
            given = inspect.signature(init).bind(region, *args, **kwargs).arguments
            self.run.autocast |= bool(given.get("enabled", True)) and not self.quiet

        kind.__init__ = made

    def _backward(self, event: BackwardBegins) -> None:
        self.backwards += 1
        if self.quiet:
            return
        self._backwards += 1
        if self._last_loader:
            self.run.trained.add(self._last_loader)
        loss = event.roots
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            value = float(loss.detach())
            self.run.losses.append(Loss(value, len(self.run.steps), self.places.own(2)))

    def _optimizer_made(self, event: OptimizerMade) -> None:
        for group in event.optimizer.param_groups:
            for item in group["params"]:
                self._follow(item)

    def _scheduler_made(self, event: SchedulerMade) -> None:
        if not self.quiet:
            owner = id(event.scheduler.optimizer)
            self.run.schedules.append(Schedule(event.scheduler, owner, self.places.own(2)))

    def _loads(self, event: StateLoads) -> None:
        if not self.quiet and _is_own(event.module, event.state):
            self.run.restores.append(self.places.own(2))

    def _loader_made(self, event: LoaderMade) -> None:
        if not self.quiet:
            self.run.loaders[id(event.loader)] = Loader(event.loader.dataset, self.places.own(2))

    def _follow(self, item: torch.Tensor) -> None:
        """Keep the sum of what backward passes give a parameter since its gradient was cleared."""
        if id(item) in self._watched or not item.requires_grad or not item.is_leaf:
            return
        self._watched.add(id(item))

        def note(gradient: torch.Tensor) -> None:
            if self.quiet or gradient.is_sparse:
                return
            before = self._gradients.get(id(item))
            total = gradient.detach().float()
            if before is None or item.grad is None or not bool(item.grad.any()):
                self._gradients[id(item)] = total.clone()
            else:
                self._gradients[id(item)] = before + total

        item.register_hook(note)

    def _before_step(self, event: StepBegins) -> None:
        optimizer = event.optimizer
        self.optimizer_steps += 1
        if self.quiet:
            return
        items = [item for group in optimizer.param_groups for item in group["params"]]
        rates = tuple(float(group.get("lr", math.nan)) for group in optimizer.param_groups)
        used = [item for item in items if item.grad is not None]
        known = [item for item in used if id(item) in self._gradients and not item.grad.is_sparse]
        cosine = _cosine(
            [item.grad.float().flatten() for item in known],
            [self._gradients[id(item)].flatten() for item in known],
        )
        self.run.steps.append(
            Step(id(optimizer), rates, self.places.own(2), cosine, not used and self._backwards > 0)
        )
        self._backwards = 0
        count = len(self.run.steps)
        if count in _LIVE_AT:
            self.run.live.append((count, _count_histories()))
        self.at_step(count)
        if time.process_time() > self._until:
            raise EnoughError

    def _watch_batches(self) -> None:
        """Batches pass through here: what they are made of is written down on their way."""
        iterate = DataLoader.__iter__
        turns: dict[int, int] = {}

        def recorded(loader: Any) -> Any:
            if self.quiet:
                return map(_without_digests, iterate(loader))
            turn = turns.get(id(loader), 0)
            turns[id(loader)] = turn + 1
            own = loader.collate_fn
            loader.collate_fn = CollateWithDigests(own, loader.batch_sampler is None)
            try:
                return self._batches(loader, iterate(loader), turn)
            finally:
                loader.collate_fn = own  # the iterator has taken what it needs

        DataLoader.__iter__ = recorded  # type: ignore[method-assign]

    def _batches(self, loader: Any, batches: Iterator[Any], turn: int) -> Iterator[Any]:
        for given in batches:
            samples = given.samples if isinstance(given, Collated) else ()
            place = self.places.own(2)
            self._last_loader = id(loader)
            yield _without_digests(given)
            if (
                all(samples)
                and samples
                and len(self.run.batches) < _MOST_BATCHES
                and not self.quiet
            ):
                self.run.batches.append(Batch(id(loader), turn, samples, place))


def _without_digests(given: Any) -> Any:
    """The batch; workers that stay from one pass to the next go on adding digests."""
    return given.batch if isinstance(given, Collated) else given


def _cosine(left: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    if not left:
        return math.nan
    one, other = torch.cat(left).double(), torch.cat(right).double()
    size = float(one.norm() * other.norm())
    return float(one @ other) / size if size > 0 and math.isfinite(size) else math.nan


def _count_histories() -> int:
    gc.collect()
    return sum(
        isinstance(item, torch.Tensor) and item.grad_fn is not None for item in gc.get_objects()
    )


def _dictionaries(value: Any, depth: int = 3) -> Iterator[Any]:
    """Those in what is saved, itself included."""
    if isinstance(value, dict):
        yield value
        if depth:
            for item in value.values():
                yield from _dictionaries(item, depth - 1)


def _shares_memory(module: nn.Module, state: Any) -> bool:
    """Whether what is trained in the module is what the state refers to."""
    live = {item.data_ptr() for item in module.parameters() if item.requires_grad and item.numel()}
    tensors = [item for item in state.values() if isinstance(item, torch.Tensor)]
    return any(item.data_ptr() in live for item in tensors)


def _is_own(module: nn.Module, state: Any) -> bool:
    """Whether every tensor that is loaded is the very memory that it is loaded into."""
    if not isinstance(state, dict):
        return False
    own = module.state_dict()
    pairs = [(own[key], value) for key, value in state.items() if key in own]
    tensors = [(a, b) for a, b in pairs if isinstance(b, torch.Tensor) and b.numel()]
    return bool(tensors) and all(a.data_ptr() == b.data_ptr() for a, b in tensors)


_LOSSES = (
    "cross_entropy",
    "nll_loss",
    "kl_div",
    "binary_cross_entropy_with_logits",
)
"""Those that take logits or logarithms and cannot tell other numbers by themselves."""
_MOST_LOSS_INPUTS = 64
_SUMS = 1e-3
"""Of probabilities in float32, and in half precision with as many classes as are usual."""


class CallNotes(CallMode):
    """Notes arithmetic between (n, 1) and (n,) in which a gradient is at stake, the first loss over classes, and
    the kind of numbers that losses get."""

    def __init__(self, run: Run, places: Where) -> None:
        super().__init__()
        self._run, self._places = run, places

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", "")
        if name in _STRETCHING and len(args) > 1 and _is_table(args[0], args[1]):
            left, right = tuple(args[0].shape), tuple(args[1].shape)
            self._run.broadcasts.append(Broadcast(self._places.own(2), name, left, right))
        if name in _LOSSES and len(self._run.loss_inputs) < _MOST_LOSS_INPUTS:
            self._note_loss_input(name, args[0] if args else kwargs.get("input"))
        result = func(*args, **kwargs)
        if func is nn.functional.cross_entropy and self._run.first_classification is None:
            self._note_first_loss(result, args, kwargs)
        return result

    def _note_loss_input(self, name: str, given: Any) -> None:
        if isinstance(given, torch.Tensor) and given.requires_grad and given.numel():
            place = self._places.own(2)
            self._run.loss_inputs.append(LossInput(place, name, _kind_of(name, given.detach())))

    def _note_first_loss(self, loss: Any, args: Any, named: dict[str, Any]) -> None:
        logits = args[0] if args else named.get("input")
        mean = named.get("reduction", "mean") == "mean" and named.get("weight") is None
        if not (
            mean and isinstance(loss, torch.Tensor) and loss.requires_grad and loss.numel() == 1
        ):
            return
        if isinstance(logits, torch.Tensor) and logits.dim() > 1 and not self._run.steps:
            self._run.first_classification = Classification(
                float(loss.detach()), logits.shape[1], self._places.own(2)
            )


def _kind_of(loss: str, values: torch.Tensor) -> str:
    """By the values: what is positive and sums to one over the classes, or the logarithm of that."""
    values = values.double()
    low, high = float(values.min()), float(values.max())
    if loss == "binary_cross_entropy_with_logits":
        return "probabilities" if low >= 0 and high <= 1 else "other"
    axis = 1 if values.dim() > 1 and loss != "kl_div" else -1
    if values.shape[axis] < 2:
        return "other"
    for kind, positive in (("probabilities", values), ("log-probabilities", values.exp())):
        sums = positive.sum(axis)
        if float(positive.min()) >= 0 and float((sums - 1).abs().max()) < _SUMS:
            return kind
    return "other"


def _is_table(one: Any, other: Any) -> bool:
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return False
    if one.dim() + other.dim() != 3 or not (one.requires_grad or other.requires_grad):
        return False
    wide, flat = (one, other) if one.dim() == 2 else (other, one)
    if flat.dim() != 1 or flat.shape[0] < 2 or tuple(wide.shape) != (flat.shape[0], 1):
        return False
    history = type(wide.grad_fn).__name__ + type(flat.grad_fn).__name__
    return not any(word in history for word in _ON_PURPOSE)
