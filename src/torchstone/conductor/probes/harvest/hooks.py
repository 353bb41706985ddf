"""Torch's own functions, replaced for one run by ones that write down what they were asked.

This is done in a child process that ends with the run: nothing is put back.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._pytree import tree_leaves, tree_map

from torchstone.conductor.probes.harvest.operators import OperatorTrace
from torchstone.conductor.probes.harvest.places import Place, Places
from torchstone.conductor.probes.harvest.precision import RunMode
from torchstone.conductor.probes.harvest.recording import (
    Backward,
    Clip,
    LoaderPass,
    Loss,
    LossTerm,
    ModeChange,
    ModuleCall,
    OptimizerStep,
    Recording,
    Save,
    Scaling,
    SchedulerStep,
    TopCall,
    ZeroGrad,
)

MOST_BATCHES = 12
"""Of one pass over a loader: three optimizer steps with an accumulation of four."""
_MOST_ELEMENTS = 1 << 21
_MOST_CALLS = {True: 2, False: 4}
"""Kept calls of one module in training and in evaluation."""
_TRACED_STEPS = 2
_DIGESTS = 4
_MOST_LINKED = 16
"""Kept calls of one model that get a cache: a prompt and some decoded tokens."""


class Enough(BaseException):
    """The run has shown what there is to see in its time."""


class Hooks:
    """Listens to one run."""

    def __init__(self, run: Recording, places: Places, mode: RunMode, deadline: float) -> None:
        self.run, self.places, self.mode, self.deadline = run, places, mode, deadline
        self.quiet = False
        """Only modules are recorded: what runs is a test or a probe."""
        self._depth = 0
        self._classes: dict[type, bool] = {}
        self._counts: dict[tuple[int, bool, bool], int] = {}
        self._scale = 1.0
        self._scaled: set[int] = set()
        self._backwards = 0
        self._used: dict[int, torch.Tensor] = {}
        self._stale = False
        self._tokens: list[torch.Tensor] = []
        self._passes: dict[int, int] = {}
        self._made: dict[int, Place] = {}
        self._loss_values: list[torch.Tensor] = []
        self._terms: list[torch.Tensor] = []
        self.trace = OperatorTrace(places, self._is_traced)

    def _is_traced(self) -> bool:
        """The first two optimizer steps, and what runs without gradients after them."""
        return not self.quiet and (self.run.steps < _TRACED_STEPS or not torch.is_grad_enabled())

    def install(self) -> None:
        for part in (self._modules, self._backward, self._clipping, self._optimizers,
                     self._schedulers, self._scalers, self._wrapping, self._saving, self._losses, self._loaders):  # fmt: skip
            part()

    # modules

    def _is_own(self, module: nn.Module) -> bool:
        kind = type(module)
        known = self._classes.get(kind)
        if known is None:
            code = getattr(kind.forward, "__code__", None)
            known = bool(code is not None and self.places.path_of(code))
            self._classes[kind] = known
        return known

    def _modules(self) -> None:
        call, init, train = nn.Module.__call__, nn.Module.__init__, nn.Module.train
        hooks = self

        @functools.wraps(call)
        def recorded_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not hooks._is_own(module) or hooks._depth < 0:
                return call(module, *args, **kwargs)
            return hooks._record_call(call, module, args, kwargs)

        @functools.wraps(init)
        def recorded_init(module: nn.Module, *args: Any, **kwargs: Any) -> None:
            init(module, *args, **kwargs)
            if hooks._is_own(module):
                hooks.run.modules.append(module)
                stack = [
                    place for place in hooks.places.stack(2) if not place.scope.endswith("__init__")
                ]
                if stack:
                    hooks.run.made_at[id(module)] = stack[0]

        def recorded_train(module: nn.Module, mode: bool = True) -> Any:
            if not hooks.quiet and (place := hooks.places.here(2)) and hooks._depth == 0:
                if not any(event.place == place for event in hooks.run.of(ModeChange)) or (
                    hooks._is_own(module)
                ):
                    hooks._note(ModeChange(place, hooks.run.steps, id(module), mode))
            hooks._depth -= 1000
            try:
                return train(module, mode)
            finally:
                hooks._depth += 1000

        nn.Module.__call__ = recorded_call  # type: ignore[method-assign]
        nn.Module.__init__ = recorded_init  # type: ignore[method-assign, assignment]
        nn.Module.train = recorded_train  # type: ignore[method-assign, assignment]

    def _record_call(
        self, call: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any
    ) -> Any:
        top = self._depth == 0
        place = self.places.here(3)
        kept: ModuleCall | None = None
        linked = any(_is_state(item) for item in (*args, *kwargs.values()))
        key = (id(module), module.training, linked)
        limit = _MOST_LINKED if linked else _MOST_CALLS[module.training]
        if self._counts.get(key, 0) < limit:
            self._counts[key] = self._counts.get(key, 0) + 1
            kept = ModuleCall(
                module, copied(args), copied(kwargs), module.training, torch.is_grad_enabled(),
                place, top, len(self.run.calls), autocast=self.mode.autocast,
            )  # fmt: skip
        if top and not self.quiet:
            self._tokens += [item for item in tree_leaves((args, kwargs)) if _is_tokens(item)][:1]
            self._note(TopCall(place, self.run.steps, id(module), module.training,
                               torch.is_grad_enabled(), self.places.stack(3)))  # fmt: skip
        self._depth += 1
        try:
            output = call(module, *args, **kwargs)
        finally:
            self._depth -= 1
        if not self.quiet and torch.is_grad_enabled() and self.run.steps < _TRACED_STEPS:
            self._terms += [item for item in tree_leaves(output) if _is_term(item)]
        if kept is not None:
            kept.output = copied(output)
            self.run.calls.append(kept)
        return output

    # gradients

    def _backward(self) -> None:
        backward: Any = torch.Tensor.backward
        hooks = self

        def recorded(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if hooks.trace.in_backward:  # torch calls itself through its function mode
                return backward(tensor, *args, **kwargs)
            if not hooks.quiet:
                hooks._before_backward(tensor)
            hooks.trace.in_backward = True
            try:
                with torch._C.DisableTorchFunctionSubclass():
                    return backward(tensor, *args, **kwargs)
            finally:
                hooks.trace.in_backward = False

        torch.Tensor.backward = recorded  # type: ignore[method-assign, assignment]

    def _before_backward(self, tensor: torch.Tensor) -> None:
        scaled = id(tensor) in self._scaled
        value = float(tensor.detach().float().mean()) if tensor.numel() else math.nan
        if scaled:
            self._scale = self._current_scale()
            value /= self._scale
        elif not self._backwards:
            self._scale = 1.0
        self._note_stale()
        self._note_terms(tensor)
        self._backwards += 1
        self._note(Backward(
            self.places.here(3), self.run.steps, value, tensor.numel(), scaled,
            self.mode.autocast is not None, self._weight_of_loss(tensor),
        ))  # fmt: skip

    def _note_terms(self, tensor: torch.Tensor) -> None:
        """Scalars of modules that do not reach the loss, or reach it without a gradient."""
        terms, self._terms = self._terms, []
        place = self.places.here(4)
        for item in self.mode.constants:
            self._note(LossTerm(place, self.run.steps, item, True))
        self.mode.constants.clear()
        if not terms or not tensor.requires_grad:
            return
        try:
            found: tuple[Any, ...] = torch.autograd.grad(
                tensor, terms, torch.ones_like(tensor), retain_graph=True, allow_unused=True
            )
        except RuntimeError:
            return
        for item, gradient in zip(terms, found, strict=True):
            if gradient is None:
                self._note(LossTerm(place, self.run.steps, item, False))

    def _weight_of_loss(self, tensor: torch.Tensor) -> float:
        """The factor by which the loss function's mean enters the backward pass."""
        values, self._loss_values = self._loss_values, []
        if not values or tensor.numel() != 1 or not tensor.requires_grad:
            return math.nan
        try:
            found: tuple[Any, ...] = torch.autograd.grad(
                tensor, values, retain_graph=True, allow_unused=True
            )
        except RuntimeError:  # a graph that was freed already
            return math.nan
        known = [abs(float(item)) for item in found if item is not None]
        return max(known) / self._scale if known else math.nan

    def _note_stale(self) -> None:
        """Gradients that a step has used and nobody cleared."""
        if self._used and not self._backwards:
            self._stale = any(
                grad is not None and bool(grad.abs().sum() > 0) for grad in self._left_gradients()
            )

    def _left_gradients(self) -> Iterator[torch.Tensor | None]:
        for optimizer in self.run.optimizers:
            for item in _parameters(optimizer):
                yield item.grad if self._used.get(id(item)) is item.grad else None

    def _current_scale(self) -> float:
        return float(self.run.scalers[-1].get_scale()) if self.run.scalers else 1.0

    def _clipping(self) -> None:
        clip = torch.nn.utils.clip_grad.clip_grad_norm_
        hooks = self

        @functools.wraps(clip)
        def recorded(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> Any:
            chosen = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            before = _norm(chosen)
            result = clip(chosen, max_norm, *args, **kwargs)
            if not hooks.quiet:
                hooks._note(Clip(
                    hooks.places.here(2), hooks.run.steps, float(max_norm), before, _norm(chosen),
                    hooks._scale if hooks._backwards else 1.0, frozenset(map(id, chosen)),
                ))  # fmt: skip
            return result

        torch.nn.utils.clip_grad.clip_grad_norm_ = recorded
        torch.nn.utils.clip_grad_norm_ = recorded

    def _optimizers(self) -> None:
        init, zero, module_zero = (
            torch.optim.Optimizer.__init__, torch.optim.Optimizer.zero_grad, nn.Module.zero_grad,
        )  # fmt: skip
        hooks = self

        def recorded_init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            init(optimizer, *args, **kwargs)
            if not hooks.quiet:
                hooks.run.optimizers.append(optimizer)
                hooks.run.optimizer_places[id(optimizer)] = hooks.places.here(2)

        def recorded_zero(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            zero(optimizer, *args, **kwargs)
            hooks._cleared()

        def recorded_module_zero(module: Any, *args: Any, **kwargs: Any) -> None:
            module_zero(module, *args, **kwargs)
            hooks._cleared()

        torch.optim.Optimizer.__init__ = recorded_init  # type: ignore[method-assign, assignment]
        torch.optim.Optimizer.zero_grad = recorded_zero  # type: ignore[method-assign, assignment]
        nn.Module.zero_grad = recorded_module_zero  # type: ignore[method-assign, assignment]
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

    def _cleared(self) -> None:
        if not self.quiet:
            self._used.clear()
            self._note(ZeroGrad(self.places.here(3), self.run.steps))

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        if self.quiet:
            return
        items = list(_parameters(optimizer))
        if len(self.run.digests) < _DIGESTS:
            self.run.digests.append(digest_of(items))
        have = frozenset(id(item) for item in items if item.grad is not None)
        self._note(OptimizerStep(
            self.places.here(2), self.run.steps, id(optimizer), _norm(items),
            self._scale, have, frozenset(map(id, items)) - have, self._backwards, self._stale,
            sum(item.dtype == torch.float16 for item in items),
        ))  # fmt: skip

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        if self.quiet:
            return
        for item in _parameters(optimizer):
            if item.grad is not None:
                self._used[id(item)] = item.grad
        self.run.steps += 1
        self._backwards, self._stale = 0, False
        self._scaled.clear()
        self.check_time()

    def check_time(self) -> None:
        """End the run where its time is over."""
        if time.process_time() > self.deadline:
            raise Enough

    def _schedulers(self) -> None:
        base = torch.optim.lr_scheduler.LRScheduler
        init = base.__init__
        hooks = self

        def recorded_init(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            quiet, hooks.quiet = hooks.quiet, True  # the first value is set by a step of its own
            init(scheduler, *args, **kwargs)
            hooks.quiet = quiet
            if not quiet:
                hooks.run.schedulers.append(scheduler)

        def recorded(step: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(step)
            def recorded_step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
                hooks._note(SchedulerStep(hooks.places.here(2), hooks.run.steps, hooks.run.steps))
                return step(scheduler, *args, **kwargs)

            return recorded_step

        base.__init__ = recorded_init  # type: ignore[method-assign, assignment]
        for kind in vars(torch.optim.lr_scheduler).values():
            if isinstance(kind, type) and issubclass(kind, base) and "step" in vars(kind):
                kind.step = recorded(kind.step)  # type: ignore[method-assign]

    # loss scaling

    def _scalers(self) -> None:
        kind: Any = torch.amp.grad_scaler.GradScaler
        init, scale, unscale, step, update = (
            kind.__init__, kind.scale, kind.unscale_, kind.step, kind.update,
        )  # fmt: skip
        hooks = self

        def recorded_init(scaler: Any, _: str = "cuda", *args: Any, **kwargs: Any) -> None:
            kwargs.pop("device", None)
            init(scaler, "cpu", *args, **kwargs)
            if not hooks.quiet and scaler.is_enabled():
                hooks.run.scalers.append(scaler)
                hooks.run.scaler_places[id(scaler)] = hooks.places.here(2)

        def recorded_scale(scaler: Any, outputs: Any) -> Any:
            result = scale(scaler, outputs)
            if scaler.is_enabled() and isinstance(result, torch.Tensor):
                hooks._scaled.add(id(result))
                hooks._keep = result
            hooks._note_scaling("scale", scaler)
            return result

        def recorded_unscale(scaler: Any, optimizer: Any) -> Any:
            result = unscale(scaler, optimizer)
            hooks._scale = 1.0
            hooks._note_scaling("unscale_", scaler)
            return result

        def recorded_step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            hooks._note_scaling("step", scaler)
            before = hooks.run.steps
            result = step(scaler, optimizer, *args, **kwargs)
            if hooks.run.steps == before:  # skipped: the gradients were not finite
                hooks._backwards, hooks._stale = 0, False
                hooks._scaled.clear()
                hooks.check_time()
            return result

        def recorded_update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            hooks._note_scaling("update", scaler)
            return update(scaler, *args, **kwargs)

        kind.__init__, kind.scale, kind.unscale_ = recorded_init, recorded_scale, recorded_unscale
        kind.step, kind.update = recorded_step, recorded_update
        old: Any = torch.cuda.amp.GradScaler
        old.__init__ = lambda scaler, *args, **kwargs: recorded_init(
            scaler, "cuda", *args, **kwargs
        )

    _keep: Any = None
    _in_loss = False

    def _note_scaling(self, method: str, scaler: Any) -> None:
        if not self.quiet:
            self._note(Scaling(self.places.here(3), self.run.steps, method, scaler.is_enabled()))

    def _wrapping(self) -> None:
        kind: Any = torch.nn.parallel.DistributedDataParallel
        init = kind.__init__
        hooks = self

        def recorded_init(wrapper: Any, module: Any, *args: Any, **kwargs: Any) -> None:
            hooks.run.data_parallel = True
            kwargs.pop("device_ids", None)
            kwargs.pop("output_device", None)
            init(wrapper, module, *args, **kwargs)

        kind.__init__ = recorded_init

    # checkpoints, losses, data

    def _saving(self) -> None:
        save = torch.save
        hooks = self

        def recorded(value: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
            if not hooks.quiet:
                hooks._note(Save(hooks.places.here(2), hooks.run.steps, str(file),
                                 frozenset(value) if _is_names(value) else frozenset(),
                                 frozenset(_states(value, hooks.run)), hooks._local_names()))  # fmt: skip
            return save(value, file, *args, **kwargs)

        torch.save = recorded  # type: ignore[assignment]

    def _local_names(self) -> tuple[tuple[str, str], ...]:
        """What the saving function calls the optimizer, the scheduler and the scaler."""
        frame: Any = sys._getframe(2)
        kinds = (("optimizer", self.run.optimizers), ("scheduler", self.run.schedulers),
                 ("scaler", self.run.scalers))  # fmt: skip
        return tuple(
            (kind, name) for name, value in frame.f_locals.items() for kind, known in kinds
            if any(value is item for item in known)
        )  # fmt: skip

    def _losses(self) -> None:
        functional: Any = nn.functional
        for name in ("cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy_with_logits",
                     "l1_loss", "smooth_l1_loss", "kl_div"):  # fmt: skip
            setattr(functional, name, self._recorded_loss(name, getattr(functional, name)))

    def _recorded_loss(self, name: str, loss: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(loss)
        def recorded(given: torch.Tensor, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if self._in_loss or self.quiet:
                return loss(given, target, *args, **kwargs)
            if isinstance(given, torch.Tensor):
                dtype = given.dtype if self.mode.autocast is None else torch.float32
                self._note(Loss(self.places.here(2), self.run.steps, name, dtype,
                                self._is_shifted(target), self.places.stack(2)))  # fmt: skip
            self._in_loss = True
            try:
                value = loss(given, target, *args, **kwargs)
            finally:
                self._in_loss = False
            mean = kwargs.get("reduction", "mean") == "mean" and value.requires_grad
            if mean and value.numel() == 1:
                self._loss_values.append(value)
            return value

        return recorded

    def _is_shifted(self, target: torch.Tensor) -> bool:
        """Whether the targets are the last tokens moved by one."""
        if not self._tokens or not _is_integer(target):
            return False
        tokens = self._tokens[-1]
        del self._tokens[:-1]
        rows = tokens.shape[0]
        if target.numel() % rows:
            return False
        flat = target.reshape(rows, -1)
        span = min(flat.shape[1], tokens.shape[1] - 1)
        same = (flat[:, :span] == tokens[:, 1 : span + 1]) | (flat[:, :span] < 0)
        own = flat[:, :span] == tokens[:, :span]
        return span > 2 and bool(same[:, : span - 1].all()) and not bool(own.all())

    def _loaders(self) -> None:
        kind: Any = torch.utils.data.DataLoader
        init, iterate = kind.__init__, kind.__iter__
        hooks = self

        def recorded_init(loader: Any, *args: Any, **kwargs: Any) -> None:
            for name in ("num_workers", "persistent_workers", "prefetch_factor", "pin_memory",
                         "pin_memory_device", "multiprocessing_context"):  # fmt: skip
                kwargs.pop(name, None)
            init(loader, *args[:5], **kwargs)
            hooks._made[id(loader)] = hooks.places.here(2)

        sampler: Any = torch.utils.data.distributed.DistributedSampler
        sampler_init = sampler.__init__

        def recorded_sampler_init(made: Any, *args: Any, **kwargs: Any) -> None:
            sampler_init(made, *args, **kwargs)
            hooks._made[id(made)] = hooks.places.here(2)

        sampler.__init__ = recorded_sampler_init

        def recorded_iter(loader: Any) -> Iterator[Any]:
            if not hooks.quiet:
                hooks._note_pass(loader)
            for count, batch in enumerate(iterate(loader)):
                if count >= MOST_BATCHES:
                    return
                if count == 0 and not hooks.quiet:
                    place = hooks._made.get(id(loader.sampler)) or hooks._made.get(id(loader))
                    hooks.run.batches.append((place or hooks.places.here(2), digest_of(batch)))
                hooks.check_time()
                yield batch

        kind.__init__, kind.__iter__ = recorded_init, recorded_iter

    def _note_pass(self, loader: Any) -> None:
        sampler = loader.sampler
        again = self._passes.get(id(loader), 0)
        self._passes[id(loader)] = again + 1
        distributed = isinstance(sampler, torch.utils.data.distributed.DistributedSampler)
        order: tuple[int, ...] = ()
        if distributed:
            order = tuple(item for item, _ in zip(sampler, range(16), strict=False))
        self._note(LoaderPass(
            self.places.here(3), self.run.steps, id(loader), id(sampler), order, distributed,
            bool(getattr(sampler, "shuffle", False)), again,
        ))  # fmt: skip

    def _note(self, event: Any) -> None:
        if not self.quiet and event.place:
            self.run.events.append(event)


def copied(value: Any) -> Any:
    """The same structure with tensors of its own."""

    def copy_of(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return item.detach().clone() if item.numel() <= _MOST_ELEMENTS else item.detach()
        if isinstance(item, (int, float, str, bool, type(None), torch.dtype, torch.device)):
            return item
        try:
            return copy.deepcopy(item)
        except Exception:  # an object that cannot be copied is handed on as it is
            return item

    return tree_map(copy_of, value)


def digest_of(value: Any) -> str:
    """A short name for the content of all tensors in a structure."""
    found = hashlib.sha256()
    for item in tree_leaves(value):
        if isinstance(item, torch.Tensor) and item.numel() <= _MOST_ELEMENTS:
            found.update(item.detach().double().numpy().tobytes())
    return found.hexdigest()[:16]


def _is_state(item: Any) -> bool:
    """An argument that is neither number nor tensor: a cache, perhaps."""
    simple = (int, float, str, bool, type(None), torch.Tensor, torch.dtype, torch.device)
    return not isinstance(item, simple) and not callable(item)


def _is_term(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.numel() == 1 and item.requires_grad


def _is_integer(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dtype in (torch.int64, torch.int32)


def _is_tokens(item: Any) -> bool:
    return _is_integer(item) and item.dim() == 2 and item.shape[1] > 2


def _is_names(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def _parameters(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _norm(items: Iterable[torch.Tensor]) -> float:
    squares = [
        float(item.grad.detach().double().pow(2).sum()) for item in items if item.grad is not None
    ]
    return math.sqrt(sum(squares)) if squares else 0.0


def _states(value: Any, run: Recording) -> Iterator[str]:
    """Which kinds of state a saved object holds, by their content."""
    parts = list(value.values()) if isinstance(value, dict) else [value]
    for part in (*parts, value):
        if isinstance(part, nn.Module):
            yield "model"
        elif isinstance(part, torch.optim.Optimizer):
            yield "optimizer"
        elif isinstance(part, dict):
            if "param_groups" in part and "state" in part:
                yield "optimizer"
            elif "_step_count" in part or "last_epoch" in part:
                yield "scheduler"
            elif "growth_factor" in part or (part == {} and run.scalers):
                yield "scaler"
            elif part and all(isinstance(item, torch.Tensor) for item in part.values()):
                yield "model"
        elif isinstance(part, int) and not isinstance(part, bool):
            yield "counter"
