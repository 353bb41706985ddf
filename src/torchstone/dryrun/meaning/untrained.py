"""Parameters that the loss gives gradients and that no optimizer has, where that is a slip.

A backbone that is left as it is gets gradients for nothing, too, and is meant to. Two things tell a slip from it:
the layer runs inside of a module that does not know it (layers in a list), or the optimizer still holds
what the layer replaced.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field

import torch

from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.dryrun.record import Hazard
from torchstone.observe.training import TRAINING, StepBegins

_NAMED = 3
"""Parameters named in one sentence."""
_MOST_LOOKS = 3
"""Steps in which all living objects are looked through for modules: a second for a million of them."""


@dataclass(slots=True)
class _Used:
    """A parameter that took part in a call."""

    parameter: weakref.ref[torch.Tensor]
    place: Place
    owner: str
    name: str
    """As the outermost module knows it; empty: it does not."""
    has_gradient: bool = False


@dataclass(slots=True)
class Untrained:
    """What was used, and what optimizers hold."""

    used: dict[int, _Used] = field(default_factory=dict)
    held: dict[int, weakref.ref[torch.Tensor]] = field(default_factory=dict)
    orphans: int = 0
    """Tensors of optimizers that were never used and that no living module has."""
    _looks: int = 0

    def start(self) -> None:
        TRAINING.subscribe(self._step, StepBegins)

    def note_use(self, parameter: torch.Tensor, place: Place, owner: str, name: str) -> None:
        """A parameter was used inside of a module, which knows it by this name or does not know it."""
        self.used[id(parameter)] = _Used(weakref.ref(parameter), place, owner, name)

    def _step(self, event: StepBegins) -> None:
        for group in event.optimizer.param_groups:
            self.held.update((id(item), weakref.ref(item)) for item in group["params"])
        for key, item in self.used.items():
            parameter = None if item.has_gradient else item.parameter()
            if parameter is not None and key not in self.held:
                item.has_gradient = parameter.grad is not None
        if self._looks < _MOST_LOOKS and not self.orphans and self._left_out():
            self._looks += 1
            self.orphans = self._count_orphans()

    def _left_out(self) -> list[_Used]:
        return [
            item for key, item in self.used.items() if item.has_gradient and key not in self.held
        ]

    def hazards(self) -> tuple[Hazard, ...]:
        """At the end, when every optimizer has made its step."""
        left_out = self._left_out()
        unknown = [item for item in left_out if not item.name]
        if unknown:
            return (_unknown_to_its_module(unknown),)
        return (_replaced(left_out, self.orphans),) if left_out and self.orphans else ()

    def _count_orphans(self) -> int:
        """While the optimizers live: at the end of a program they may be gone."""
        waiting = {
            key for key, item in self.held.items() if key not in self.used and item() is not None
        }
        for item in gc.get_objects() if waiting else ():
            if issubclass(type(item), torch.nn.Module):
                waiting -= {id(value) for value in item.__dict__.get("_parameters", {}).values()}
        return len(waiting)


def _unknown_to_its_module(items: list[_Used]) -> Hazard:
    first, count = items[0], len(items)
    return Hazard(
        "DR207",
        first.owner,
        first.place,
        detail=Text(
            f"uses {count} parameters that its parameters() do not list: every backward gives them a gradient, and no "
            "optimizer has them",
            f"用到 {count} 个不在其 parameters() 中的参数：每次反向传播都给出它们的梯度，却没有优化器持有它们",
        ),
        count=count,
    )


def _replaced(items: list[_Used], orphans: int) -> Hazard:
    first = items[0]
    named = ", ".join(item.name for item in items[:_NAMED])
    more = f" (+{len(items) - _NAMED})" if len(items) > _NAMED else ""
    return Hazard(
        "DR207",
        first.owner,
        first.place,
        detail=Text(
            f"trains without {named}{more}: no optimizer has them, and one holds {orphans} tensors that were replaced "
            "after it was made",
            f"训练时缺少 {named}{more}：没有优化器持有它们，而某个优化器仍持有 {orphans} 个在其创建之后已被替换的张量",
        ),
        count=len(items),
    )
