"""Parameters that an optimizer has, that the forward uses, and that no gradient reaches."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.dryrun.meaning.untrained import Untrained
from torchstone.dryrun.record import Hazard
from torchstone.dryrun.session import Session, tensors_in
from torchstone.dryrun.shapes.history import function_name
from torchstone.observe.training import TRAINING, BackwardBegins, StepBegins, StepEnds
from torchstone.observe.where import PROGRAM

_KEY = "_dryrun_cuts"
_CUTS = frozenset(
    ("detach", "detach_", "argmax", "argmin", "tensor", "as_tensor", "round", "floor", "sign")
)
"""Functions whose result has no gradient though their argument has one."""
_NAMED = 3
"""Parameters named in one sentence."""


@dataclass
class _Followed:
    """A parameter of an optimizer."""

    parameter: weakref.ref[torch.Tensor]
    trained: int = 0
    """Steps in which it was to be trained."""
    with_gradient: int = 0


@dataclass
class CutGraphs:
    """What is known of parameters and of values that are cut off from them."""

    session: Session
    used: dict[int, Place] = field(default_factory=dict)
    """Parameters that took part in a call, by id, with the line of the first."""
    followed: dict[int, _Followed] = field(default_factory=dict)
    lines: dict[tuple[str, Place], None] = field(default_factory=dict)
    """Cuts that a loss depended on."""
    names: dict[int, str] = field(default_factory=dict)
    stepping: bool = False
    """Inside of an optimizer's step, which computes without gradients."""
    first_backward: Place | None = None
    untrained: Untrained = field(default_factory=Untrained)

    def start(self) -> None:
        self.untrained.start()
        TRAINING.subscribe(self._backward, BackwardBegins)
        TRAINING.subscribe(self._step, StepBegins)
        TRAINING.subscribe(self._after_step, StepEnds)

    def check(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """A result knows the cuts that lie behind it."""
        given = tensors_in(*args, *kwargs.values())
        cuts: frozenset[tuple[str, Place]] = frozenset()
        has_gradient = False
        writes = func.__name__.endswith("_")  # its first values are no use of it
        for item in given:
            known = item.__dict__.get(_KEY)
            if known:
                cuts |= known
            if item.requires_grad:
                has_gradient = True
                if isinstance(item, torch.nn.Parameter) and not writes:
                    self._note_use(item, result)
        if not given or not isinstance(result, torch.Tensor):
            return
        made = not writes and not self.stepping
        if made and has_gradient and not result.requires_grad and _is_cut(func, result):
            cuts |= {(_name_of_cut(func), PROGRAM.here(3))}
        if cuts:
            result.__dict__[_KEY] = cuts

    def cut_by_data(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """`tensor.data`, which is a `detach` without a name."""
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and args[0].requires_grad and not args[0].is_leaf:
            result.__dict__[_KEY] = frozenset({(".data", PROGRAM.here(3))})
        return result

    def _note_use(self, parameter: torch.Tensor, result: Any) -> None:
        """Something was computed with a parameter; asking for its size is no use of it."""
        inside = bool(self.session.modules)
        if id(parameter) in (self.untrained.used if inside else self.used) or not tensors_in(
            result
        ):
            return
        place = PROGRAM.here(4)
        self.used.setdefault(id(parameter), place)
        if not inside:
            return
        outer = self.session.modules[0]
        owner = type(outer).__name__
        if id(parameter) not in self.names:
            named = outer.named_parameters()
            self.names.update((id(item), f"{owner}.{name}") for name, item in named)
        self.untrained.note_use(parameter, place, owner, self.names.get(id(parameter), ""))

    def _backward(self, event: BackwardBegins) -> None:
        self.first_backward = self.first_backward or PROGRAM.here(2)
        for item in tensors_in(event.roots):
            self.lines.update(dict.fromkeys(item.__dict__.get(_KEY, ())))

    def _after_step(self, event: StepEnds) -> None:
        """A closure makes the gradients inside of the step."""
        self.stepping = False
        for group in event.optimizer.param_groups:
            for item in group["params"]:
                if item.grad is not None and id(item) in self.followed:
                    self.followed[id(item)].with_gradient += 1

    def _step(self, event: StepBegins) -> None:
        self.stepping = True
        for group in event.optimizer.param_groups:
            for item in group["params"]:
                known = self.followed.get(id(item))
                if known is None or known.parameter() is not item:  # ids are used again
                    known = self.followed[id(item)] = _Followed(weakref.ref(item))
                known.trained += item.requires_grad
                known.with_gradient += item.grad is not None

    def hazards(self) -> tuple[Hazard, ...]:
        """At the end: used, stepped, never with a gradient, and a loss that stands behind a cut.

        Without a cut the loss just does not use what the parameter gave: a head of several, a pooled output. A loss
        that gives no parameter of any optimizer a gradient is cut off wherever that was.
        """
        lost = [
            key
            for key, item in self.followed.items()
            if item.trained and not item.with_gradient and key in self.used
        ]
        none_trained = self.first_backward is not None and len(lost) == len(self.followed)
        if not lost or not (self.lines or none_trained):
            return self.untrained.hazards()
        named = [self.names.get(key, "") for key in lost]
        shown = ", ".join(name for name in named[:_NAMED] if name) or f"{len(lost)} parameters"
        more = f" (+{len(lost) - _NAMED})" if len(lost) > _NAMED else ""
        if not self.lines and self.first_backward is not None:
            return (_reaches_nothing(self.first_backward, f"{shown}{more}", len(lost)),)
        op, place = next(iter(self.lines))
        detail = Text(
            f"cuts the loss off from {shown}{more}: the optimizer has them, and no backward gives them a gradient",
            f"切断了损失与 {shown}{more} 之间的计算图：它们在优化器中，却没有任何反向传播给出梯度",
        )
        return (Hazard("DR205", op, place, detail=detail, count=len(lost)),)


def _reaches_nothing(place: Place, shown: str, count: int) -> Hazard:
    detail = Text(
        f"reaches no parameter of the optimizer: {shown} keep the values they began with",
        f"没有到达优化器中的任何参数：{shown} 始终保持初始值",
    )
    return Hazard("DR205", "backward", place, detail=detail, count=count)


def _is_cut(func: Any, result: torch.Tensor) -> bool:
    """A function that gives no gradient, or any function while gradients are off."""
    return func.__name__ in _CUTS or (result.is_floating_point() and not torch.is_grad_enabled())


def _name_of_cut(func: Any) -> str:
    return function_name(func) if func.__name__ in _CUTS else "torch.no_grad"
