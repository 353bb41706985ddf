"""Parameters and buffers that should be equal on several ranks, as each rank holds them.

A parameter is a replica when its gradient is reduced over a group, or when it was broadcast in one:
then all members must start from the same values and make the same updates.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.parallel import DistributedDataParallel

from torchstone.core.place import NOWHERE, Place
from torchstone.core.text import Text
from torchstone.dryrun.ranks.posts import Post, wrong_group_text
from torchstone.dryrun.ranks.process.group import DryGroup
from torchstone.dryrun.ranks.process.provenance import Provenance
from torchstone.dryrun.ranks.process.uniform import Uniform
from torchstone.dryrun.record import Hazard, Replica
from torchstone.dryrun.rules import DRIFT, WRONG_GROUP
from torchstone.dryrun.session import OutermostCall, Session, is_fake
from torchstone.dryrun.shapes.history import operand
from torchstone.observe.training import TRAINING, StepBegins
from torchstone.observe.where import PROGRAM

_EQUAL_RESULTS = ("all_reduce", "broadcast", "all_gather")
_PLAIN = (torch.Tensor, nn.Parameter)


class Replicas:
    """Follows the replicas of one rank from the first forward to the end of the program."""

    def __init__(
        self,
        session: Session,
        uniform: Uniform,
        provenance: Provenance,
        is_stale: Callable[[torch.Tensor], bool],
    ) -> None:
        self._session = session
        self._uniform = uniform
        self._provenance = provenance
        self._is_stale = is_stale
        """Is this a real tensor whose values are out of date?"""
        self._modules: dict[int, nn.Module] = {}
        self._first: dict[int, int] = {}
        """Numbers at the first training forward, by the id of the tensor."""
        self._groups: dict[int, tuple[int, ...]] = {}
        self._stepped: dict[int, Place] = {}
        self._steps: Counter[int] = Counter()
        self._broadcasts = 0
        self._reduced: dict[StorageWeakRef, dict[tuple[int, ...], Place]] = {}
        """Groups over which the program has reduced a tensor, with the lines that did."""
        self._local: list[weakref.ref[torch.Tensor]] = []
        session.subscribe(OutermostCall, self._before_call)
        session.answer(replace(session.asks, replicas=self.result))
        TRAINING.subscribe(self.before_step, StepBegins)

    def _before_call(self, event: OutermostCall) -> None:
        if event.records_gradients:
            self.before_forward(event.module)

    def exchanged(self, tensor: torch.Tensor, post: Post, sequence: tuple[int, int]) -> None:
        """A collective gives a tensor its value: one for all members, or one for each."""
        equal = post.op in _EQUAL_RESULTS
        if equal:
            self._uniform.mark(tensor, post.members)
        if post.op == "all_reduce" and post.stack and not post.inside:
            key = StorageWeakRef(tensor.untyped_storage())
            self._reduced.setdefault(key, {})[post.members] = post.stack[0]
        if is_fake(tensor) or self._is_stale(tensor):
            own = -1 if equal else post.rank
            self._provenance.set(tensor, hash((post.op, post.group, sequence, own)))
        else:
            self._provenance.forget(tensor)

    def shared(self, tensors: Sequence[torch.Tensor], group: DryGroup) -> None:
        """Tensors that were broadcast together: their root keeps its own, all others get copies."""
        self._broadcasts += 1
        for place, tensor in enumerate(tensors):
            self._uniform.mark(tensor, group.members)
            number = hash(("broadcast together", group.key, self._broadcasts, place))
            if is_fake(tensor) or self._is_stale(tensor):
                self._provenance.set(tensor, number)

    def before_forward(self, module: nn.Module) -> None:
        """What each replica holds when training begins."""
        if id(module) in self._modules:
            return
        self._modules[id(module)] = module
        spot = PROGRAM.here(3)
        for _, tensor in _state(module):
            self._first.setdefault(id(tensor), self._provenance.of(tensor))
            self._stepped.setdefault(id(tensor), spot)
            if members := self._uniform.members(tensor):
                self._groups.setdefault(id(tensor), members)

    def before_step(self, event: StepBegins) -> None:
        """Replicas need gradients that are equal on all members of their group."""
        parameters = [item for group in event.optimizer.param_groups for item in group["params"]]
        replicated, local, spot = 0, [], PROGRAM.here(2)
        for parameter in parameters:
            self._stepped[id(parameter)] = spot
            self._steps[id(parameter)] += 1
            if type(parameter) not in _PLAIN and not is_fake(parameter):
                continue
            if not isinstance(parameter.grad, torch.Tensor) or not is_fake(parameter.grad):
                continue
            if members := self._uniform.members(parameter.grad):
                self._check_group(parameter, parameter.grad)
                self._groups[id(parameter)] = members
            elif self._uniform.holds(parameter):
                local.append(parameter)
            replicated += self._uniform.holds(parameter)
        if local:
            self._local += map(weakref.ref, local)
            detail = Text(
                f"{len(local)} of {replicated} replicated parameters have gradients of this rank alone",
                f"{replicated} 个副本参数中有 {len(local)} 个只有本 rank 的梯度",
            )
            self._session.hazard(
                DRIFT.id, "optimizer.step",
                lambda: tuple(operand("parameter", item) for item in local[:4]), detail,
            )  # fmt: skip

    def _check_group(self, parameter: torch.Tensor, grad: torch.Tensor) -> None:
        """The ranks that were given the same parameter must be among those that share its gradient."""
        holders = self._groups.get(id(parameter), ())
        over = self._reduced.get(StorageWeakRef(grad.untyped_storage()), {})
        if len(holders) < 2 or not over or any(set(holders) <= set(group) for group in over):
            return
        group, place = next(iter(over.items()))
        key = (WRONG_GROUP.id, "all_reduce", place)
        detail = wrong_group_text(group, holders)
        self._session.hazards.setdefault(key, Hazard(*key, detail=detail))

    def result(self) -> tuple[Replica, ...]:
        """All replicas at the end; called once."""
        if self._local and all(self._equal_again(item()) for item in self._local):
            for key in [key for key in self._session.hazards if key[0] == DRIFT.id]:
                del self._session.hazards[key]
        return tuple(self._held())

    def _equal_again(self, parameter: torch.Tensor | None) -> bool:
        """Averaged or broadcast after local steps, as local SGD does it."""
        return parameter is None or self._uniform.holds(parameter)

    def _held(self) -> Iterator[Replica]:
        seen: set[int] = set()
        for module in self._modules.values():
            synchronised = isinstance(module, DistributedDataParallel) and module.broadcast_buffers
            for name, tensor in _state(module):
                buffer = not isinstance(tensor, nn.Parameter)
                if id(tensor) in seen or id(tensor) not in self._first or (buffer and synchronised):
                    continue
                seen.add(id(tensor))
                drawn = self._provenance.drawn_at.get(
                    StorageWeakRef(tensor.untyped_storage()), NOWHERE
                )
                yield Replica(
                    name.removeprefix("module."),
                    buffer,
                    self._groups.get(id(tensor), ()),
                    self._first[id(tensor)],
                    self._provenance.of(tensor),
                    drawn,
                    self._stepped.get(id(tensor), NOWHERE),
                    self._steps[id(tensor)],
                )


def _state(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers of floating point; no parts of a sharded tensor."""
    for name, parameter in module.named_parameters():
        if is_fake(parameter):
            yield name, parameter
    for name, buffer in module.named_buffers():
        if type(buffer) is torch.Tensor and buffer.is_floating_point():
            yield name, buffer
