"""Collectives, and functions of the project that gather from all ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchstone.conductor.probes.harvest.group import FileGroup
from torchstone.conductor.probes.harvest.listeners.state import Hooks
from torchstone.conductor.probes.harvest.listeners.values import signature_of
from torchstone.conductor.probes.harvest.operators import Operator
from torchstone.conductor.probes.harvest.recording import Collective, GatheredGradient
from torchstone.core.place import NOWHERE, Place

_MOST_COLLECTIVES = 4000
_FEW = 64
"""Values of a statistic; more are activations or gradients."""
_BACK = 200
"""Operators that are searched for the maker of a tensor."""
_PASSED = (
    "clone",
    "view",
    "_unsafe_view",
    "reshape",
    "contiguous",
    "detach",
    "alias",
    "slice",
    "view_as",
)


def watch_collectives(hooks: Hooks) -> None:
    count = [0]

    def heard(kind: str, tensors: list[torch.Tensor], ranks: int) -> None:
        count[0] += 1
        if hooks.quiet or count[0] > _MOST_COLLECTIVES:
            return
        first = tensors[0]
        maker = _maker(hooks, first)
        hooks.note(Collective(
            hooks.where.own(2), hooks.run.steps, kind, sum(item.numel() for item in tensors),
            sum(item.numel() * item.element_size() for item in tensors), ranks,
            hooks.trace.in_backward, _divisors(maker, first), maker.place if maker else NOWHERE, hooks.calls, _has_bias(maker),
        ))  # fmt: skip

    FileGroup.listen(heard)
    _watch_functions(hooks, count)


def _maker(hooks: Hooks, tensor: torch.Tensor) -> Operator | None:
    """The last operator that computed the values."""
    wanted = tensor
    for item in reversed(hooks.trace.operators[-_BACK:]):
        if not any(output is wanted for output in item.outputs):
            continue
        if item.name in _PASSED and item.inputs:
            wanted = item.inputs[0]
            continue
        return item
    return None


def _divisors(maker: Operator | None, tensor: torch.Tensor) -> tuple[float, ...]:
    if maker is None or maker.name not in ("div", "div_") or tensor.numel() > _FEW:
        return ()
    given = maker.args[1]
    if not isinstance(given, torch.Tensor):
        return (float(given),)
    return tuple(given.detach().double().flatten()[:_FEW].tolist())


def _has_bias(maker: Operator | None) -> bool:
    return (
        maker is not None and maker.name == "addmm" and isinstance(maker.inputs[0], nn.Parameter)
        and maker.inputs[0].dim() == 1
    )  # fmt: skip


def _watch_functions(hooks: Hooks, count: list[int]) -> None:
    apply = torch.autograd.Function.apply.__func__  # type: ignore[attr-defined]

    def recorded(kind: Any, *args: Any, **kwargs: Any) -> Any:
        before, heard = count[0], len(hooks.run.events)
        result = apply(kind, *args, **kwargs)
        node = getattr(result, "grad_fn", None)
        new = [item for item in hooks.run.events[heard:] if isinstance(item, Collective)]
        if count[0] == before or node is None or not any(item.kind == "all_gather" for item in new):
            return result
        place = _backward_of(hooks, kind)
        if place and not hooks.quiet:
            _listen(hooks, node, place, count)
        return result

    torch.autograd.Function.apply = classmethod(recorded)  # type: ignore[assignment]


def _listen(hooks: Hooks, node: Any, place: Place, count: list[int]) -> None:
    seen: list[tuple[int, torch.Tensor]] = []

    def before(gradients: Any) -> None:
        seen.append((count[0], gradients[0].detach().clone()))

    def after(*_: Any) -> None:
        start, gradient = seen.pop()
        hooks.note(GatheredGradient(
            place, hooks.run.steps, signature_of(gradient), count[0] > start))  # fmt: skip

    node.register_prehook(before)
    node.register_hook(after)


def _backward_of(hooks: Hooks, kind: Any) -> Place:
    code = getattr(kind.backward, "__code__", None)
    if code is None or not hooks.where.is_own(code.co_filename):
        return NOWHERE
    last = max(line for _, _, line in code.co_lines() if line)
    return hooks.where.place(code.co_filename, last, code.co_qualname)
