"""The parts of a training step: models, optimizers, scalers, schedulers, and who moves what."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.observe.compat.compiler import is_compiled
from torchstone.observe.undo import Undo
from torchstone.watch.judge.judge import Judge
from torchstone.watch.listen import hooks
from torchstone.watch.listen.backward_hook import BackwardHook
from torchstone.watch.listen.discover import Found, discover
from torchstone.watch.listen.inputs import Batches
from torchstone.watch.listen.notes import found_notes, unwatched_notes
from torchstone.watch.listen.optimizer_reader import OptimizerReader
from torchstone.watch.measure.parameters import WatchedParameters
from torchstone.watch.read.budget import Budget

_KINDS = ("models", "optimizers", "scalers", "schedulers")


class TrainingParts:
    """What was given or found, and a reader for every optimizer that has stepped."""

    def __init__(
        self,
        judge: Judge,
        guard: Callable[[Callable[[], object]], None],
        budget: Budget,
        batches: Batches,
    ) -> None:
        self.found = Found()
        self.optimizers: dict[int, OptimizerReader] = {}
        """By the key of their parameters."""
        self.backward_hooks: dict[int, BackwardHook] = {}
        self._judge, self._guard = judge, guard
        self._budget, self._batches = budget, batches
        self._names: dict[int, str] = {}
        self._undo = Undo()
        self._explicit = False
        """The optimizers were given: no other one is ours."""
        self._given = False
        self._listener: weakref.ref[Any] | None = None

    @property
    def models(self) -> list[nn.Module]:
        return [model for _, model in self.found.models]

    # -- finding them

    def give(self, model: Any, optimizer: Any, scaler: Any, scheduler: Any) -> None:
        """What the user named."""
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
                getattr(self.found, kind).append(("given", value))
        if scaler is not None:
            self.found.scalers.append(("given", scaler))
        if scheduler is not None:
            self.found.schedulers.append(("given", scheduler))
        self._explicit = bool(self.found.optimizers)
        self._given = bool(self.found.models)

    def find(
        self, function: Callable[..., Any] | None, args: tuple[Any, ...],
        kwargs: Mapping[str, Any], listener: Any,
    ) -> None:  # fmt: skip
        """Look for what was not given, say what there is, and have the listener told of it."""
        found = discover(function, args, kwargs)
        for kind in _KINDS:
            if not getattr(self.found, kind):
                setattr(self.found, kind, getattr(found, kind))
        many = len(self.found.models) > 1
        for place, model in enumerate(self.models):
            head = f"model{place + 1}." if many else ""
            for name, parameter in model.named_parameters():
                self._names.setdefault(id(parameter), head + _plain_name(name))
        for model in self.models:
            compiled = is_compiled(model)
            try:
                self._undo.later(hooks.follow_model(model, listener, calls=not compiled))
            except RuntimeError as error:  # a scripted module takes no hooks
                self._judge.note(Text(
                    f"the inputs of {type(model).__name__} are not monitored: {error}",
                    f"未监控 {type(model).__name__} 的输入：{error}",
                ))  # fmt: skip
        hooks.listen(listener)
        self._listener = weakref.ref(listener)
        weakref.finalize(listener, self._undo.close)
        for text, level in found_notes(self.found):
            self._judge.note(text, level)

    def by_kind(self) -> dict[str, list[str]]:
        """What there is, as names and classes."""
        return {
            kind: [f"{name} ({type(item).__name__})" for name, item in getattr(self.found, kind)]
            for kind in _KINDS
        }

    def settings(self) -> dict[str, str]:
        """What two runs may differ in: versions, sizes, number formats, settings of optimizers."""
        found: dict[str, str] = {"torch": str(torch.__version__)}
        for place, model in enumerate(self.models):
            head = f"model{place + 1} " if len(self.models) > 1 else "model "
            parameters = list(model.parameters())
            found[f"{head}parameters"] = f"{sum(item.numel() for item in parameters):,}"
            kinds = sorted({str(item.dtype).removeprefix("torch.") for item in parameters})
            found[f"{head}dtype"] = ", ".join(kinds)
            found[f"{head}device"] = ", ".join(sorted({str(item.device) for item in parameters}))
        for place, (_, optimizer) in enumerate(self.found.optimizers):
            head = f"optimizer{place + 1} " if len(self.found.optimizers) > 1 else ""
            for name, value in getattr(optimizer, "defaults", {}).items():
                if isinstance(value, int | float | tuple | str):  # a tensor would be read back
                    found[f"{head}{name}"] = str(value)
        return found

    def is_new(self, args: tuple[Any, ...]) -> bool:
        """The step was handed a model that is not the one it was handed before."""
        known = [id(model) for model in self.models]
        return not self._given and any(
            isinstance(a, nn.Module) and id(a) not in known and any(True for _ in a.parameters())
            for a in args
        )

    def forget(self) -> None:
        """Let go of everything that was found."""
        self.release()
        self.backward_hooks.clear()
        self.optimizers.clear()
        self._names.clear()
        self.found = Found()

    def release(self) -> None:
        """Take back what was attached to models, optimizers and parameters."""
        self._undo.close()
        for backward_hook in self.backward_hooks.values():
            backward_hook.remove()

    # -- who moves what

    def reader_of(self, optimizer: torch.optim.Optimizer, active: bool) -> OptimizerReader | None:
        """The reader of an optimizer; None when it is not part of this run."""
        inner = getattr(optimizer, "optimizer", None)
        if isinstance(inner, torch.optim.Optimizer):  # a wrapper steps the one inside
            return None
        known = self.optimizers.get(id(optimizer))
        # asked once for each step: when it was read, it was looked at
        if known is not None and (known.reading is not None or known.is_current()):
            return known
        if not self._is_ours(optimizer, active):
            return None
        reader = self._read(optimizer, known)
        for text, level in unwatched_notes(reader):
            self._judge.note(text, level)
        self._follow_loading(optimizer)
        return reader

    def _read(
        self, optimizer: torch.optim.Optimizer, known: OptimizerReader | None
    ) -> OptimizerReader:
        """Read an optimizer from now on; `known` read it with the parameters that it had."""
        name, updates = f"optimizer{len(self.optimizers) + 1}", 0
        watched = WatchedParameters(optimizer, self._names)
        if known is not None:
            name, updates = known.name, known.updates
            self._judge.event(Text(
                "the optimizer has new parameters: relearning the baseline", "优化器有了新参数：重新学习基线"
            ))  # fmt: skip
        replaced = self._retire(watched)
        if replaced is not None and replaced.optimizer is not optimizer:
            name, updates = replaced.name, replaced.updates
            self._judge.note(Text(
                "the optimizer was replaced: relearning the baseline", "更换了优化器：重新学习基线"
            ))  # fmt: skip
        memory = self._judge.add_optimizer(name, watched).memory
        reader = OptimizerReader(
            name, optimizer, watched, memory, self._judge, self._budget, self._batches, updates
        )
        self.optimizers[watched.key] = reader
        return reader

    def _follow_loading(self, optimizer: torch.optim.Optimizer) -> None:
        listener = self._listener

        def loaded(*_: Any) -> None:
            if listener is not None and (watch := listener()) is not None:
                watch.model_loaded()

        self._undo.later(optimizer.register_load_state_dict_post_hook(loaded).remove)

    def _retire(self, new: WatchedParameters) -> OptimizerReader | None:
        """An optimizer over the parameters of another takes its place; a shared one is minded."""
        old = next((item for item in self.optimizers.values() if item.watched.ids == new.ids), None)
        if old is not None:
            self._judge.drop_optimizer(old.watched.key)
            del self.optimizers[old.watched.key]
            if (backward_hook := self.backward_hooks.pop(id(old), None)) is not None:
                backward_hook.remove()
        return old

    def _is_ours(self, optimizer: torch.optim.Optimizer, active: bool) -> bool:
        """Found, or at work on our model; without a model, any that steps within a call."""
        known = any(_unwrapped(item) is optimizer for _, item in self.found.optimizers)
        if known or self._explicit:
            return known
        return active or any(
            id(p) in self._names for g in optimizer.param_groups for p in g["params"]
        )

    def backward_hook(self, reader: OptimizerReader) -> BackwardHook | None:
        """The hooks of this optimizer, attached at its first gradients."""
        known = self.backward_hooks.get(id(reader))
        if known is None and reader.reading is not None and reader.reading.present.any():
            known = self.backward_hooks[id(reader)] = BackwardHook(reader, self.models, self._guard)
        return known

    def unowned(self) -> tuple[str, ...]:
        """Parameters with a gradient that no optimizer moves."""
        if not self.optimizers or self._explicit:
            return ()
        optimizers = [a.optimizer for a in self.optimizers.values()]
        optimizers += [optimizer for _, optimizer in self.found.optimizers]
        owned = {id(p) for o in optimizers for g in o.param_groups for p in g["params"]}
        return tuple(
            _plain_name(name)
            for model in self.models
            for name, p in model.named_parameters()
            if p.requires_grad and id(p) not in owned and p.grad is not None
        )


def _plain_name(name: str) -> str:
    """A parameter's name without the wrappers that compile, DDP and checkpointing put around it."""
    for wrapper in ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module."):
        name = name.replace(wrapper, "")
    return name.removeprefix("module.")


def _unwrapped(optimizer: Any) -> Any:
    inner = getattr(optimizer, "optimizer", None)
    return inner if isinstance(inner, torch.optim.Optimizer) else optimizer
