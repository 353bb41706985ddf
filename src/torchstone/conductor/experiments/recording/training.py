"""Losses, optimizer steps, batches and restores of a run, written down as they happen."""

from __future__ import annotations

import gc
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader

from torchstone.conductor.experiments.recording.run import Batch, Broadcast, Loss, Run, Step
from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.where import Where

_LIVE_AT = (4, 8, 16, 32)
_MOST_BATCHES = 400
_MOST_SAMPLES = 2048
"""Of a batch: a token table with more rows is not a batch of samples."""
_STRETCHING = frozenset(
    "add sub mul div true_divide __sub__ __rsub__ __add__ __mul__ __truediv__ mse_loss l1_loss "
    "smooth_l1_loss huber_loss subtract".split()
)
_ON_PURPOSE = ("Unsqueeze", "Index", "Select", "Expand")
"""Histories of operands that were given their shape just before: the table is wanted."""


class EnoughError(BaseException):
    """The run has shown enough; not an Exception, so that a program does not catch it."""


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
    _inside: bool = False
    _watched: set[int] = field(default_factory=set)
    _until: float = field(default_factory=time.process_time)

    def install(self) -> None:
        self._until = time.process_time() + self.cpu_seconds
        self._watch_backward()
        self._watch_optimizers()
        self._watch_schedulers()
        self._watch_restores()
        self._watch_loaders()

    def _watch_backward(self) -> None:
        backward: Any = torch.Tensor.backward

        def recorded(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside:  # a function mode hands the same call on, through this very function
                return backward(tensor, *args, **kwargs)
            self.backwards += 1
            if not self.quiet:
                self._backwards += 1
                if tensor.numel() == 1:
                    loss = Loss(float(tensor.detach()), len(self.run.steps), self.places.own(2))
                    self.run.losses.append(loss)
            self._inside = True
            try:
                return backward(tensor, *args, **kwargs)
            finally:
                self._inside = False

        torch.Tensor.backward = recorded  # type: ignore[method-assign, assignment]

    def _watch_optimizers(self) -> None:
        init = torch.optim.Optimizer.__init__

        def recorded(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            init(optimizer, *args, **kwargs)
            for group in optimizer.param_groups:
                for item in group["params"]:
                    self._follow(item)

        torch.optim.Optimizer.__init__ = recorded  # type: ignore[method-assign, assignment]
        register_optimizer_step_pre_hook(self._before_step)

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

    def _before_step(self, optimizer: Any, *_: Any) -> None:
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

    def _watch_schedulers(self) -> None:
        base = torch.optim.lr_scheduler.LRScheduler
        init = base.__init__

        def recorded(scheduler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            init(scheduler, optimizer, *args, **kwargs)
            if not self.quiet:
                self.run.scheduled.setdefault(id(optimizer), self.places.own(2))

        base.__init__ = recorded  # type: ignore[method-assign, assignment]

    def _watch_restores(self) -> None:
        load = nn.Module.load_state_dict

        def recorded(module: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.quiet and _is_own(module, state):
                self.run.restores.append(self.places.own(2))
            return load(module, state, *args, **kwargs)

        nn.Module.load_state_dict = recorded  # type: ignore[method-assign, assignment]

    def _watch_loaders(self) -> None:
        iterate = DataLoader.__iter__
        turns: dict[int, int] = {}

        def recorded(loader: Any) -> Any:
            if self.quiet:
                return iterate(loader)
            turn = turns.get(id(loader), 0)
            turns[id(loader)] = turn + 1
            return self._batches(loader, iterate(loader), turn)

        DataLoader.__iter__ = recorded  # type: ignore[method-assign]

    def _batches(self, loader: Any, batches: Iterator[Any], turn: int) -> Iterator[Any]:
        for batch in batches:
            before = len(self.run.losses)
            place, samples = self.places.own(2), sample_digests(batch)
            yield batch
            if samples and len(self.run.batches) < _MOST_BATCHES and not self.quiet:
                trained = len(self.run.losses) > before
                self.run.batches.append(Batch(id(loader), turn, trained, samples, place))


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


def _is_own(module: nn.Module, state: Any) -> bool:
    """Whether every tensor that is loaded is the very memory that it is loaded into."""
    if not isinstance(state, dict):
        return False
    own = module.state_dict()
    pairs = [(own[key], value) for key, value in state.items() if key in own]
    tensors = [(a, b) for a, b in pairs if isinstance(b, torch.Tensor) and b.numel()]
    return bool(tensors) and all(a.data_ptr() == b.data_ptr() for a, b in tensors)


def sample_digests(batch: Any) -> tuple[str, ...]:
    """A digest of each sample of a batch whose tensors share their first side; empty otherwise."""
    tensors = [item for item in tree_leaves(batch) if isinstance(item, torch.Tensor)]
    sizes = {item.shape[0] if item.dim() else 0 for item in tensors}
    if len(sizes) != 1 or not 0 < (size := sizes.pop()) <= _MOST_SAMPLES:
        return ()
    rows = []
    for place in range(size):
        digest = hashlib.sha256()
        for item in tensors:
            row = item[place].detach().cpu().contiguous()
            if row.dtype == torch.bfloat16:
                row = row.float()
            digest.update(row.numpy().tobytes())
        rows.append(digest.hexdigest()[:16])
    return tuple(rows)


class BroadcastMode(TorchFunctionMode):
    """Notes arithmetic between (n, 1) and (n,) in which a gradient is at stake."""

    def __init__(self, run: Run, places: Where) -> None:
        super().__init__()
        self._run, self._places = run, places

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _STRETCHING and len(args) > 1 and _is_table(args[0], args[1]):
            left, right = tuple(args[0].shape), tuple(args[1].shape)
            self._run.broadcasts.append(Broadcast(self._places.own(2), name, left, right))
        return func(*args, **(kwargs or {}))


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
