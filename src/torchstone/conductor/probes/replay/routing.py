"""What a layer of experts does with each token, found by replacing the experts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from torchstone.conductor.probes.harvest.operators import Operator
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import Case, cases

_MOST_EXPERTS = 64


@dataclass(frozen=True, slots=True)
class Routing:
    """Tokens in rows."""

    case: Case
    operators: tuple[Operator, ...]
    inputs: torch.Tensor
    weights: torch.Tensor
    """By token and expert, as they act on the output."""
    mixed: torch.Tensor
    """The output when every expert hands its input on."""
    chosen: torch.Tensor
    """What the top-k chose, by token."""
    rows: tuple[int, ...] = ()
    """Tokens that reach each expert, as far as it is known."""

    @property
    def name(self) -> str:
        return type(self.case.module).__name__


@functools.lru_cache(maxsize=1)
def routings(run: Recording) -> tuple[Routing, ...]:
    """Every layer class of the project that routes tokens to a list of experts."""
    return tuple(_routings(run))


def _routings(run: Recording) -> Iterator[Routing]:
    """Every layer class of the project that routes tokens to a list of experts."""
    for case in cases(run):
        experts = _experts(case.module)
        if experts is None:
            continue
        try:
            found = _routing(run, _all_real(case), experts)
        except Exception as error:  # experts of another protocol
            run.not_probed[f"experts of {type(case.module).__name__}"] = (
                f"{type(error).__name__}: {str(error)[:160]}"
            )
            continue
        if found is not None:
            yield found


def _experts(module: nn.Module) -> str | None:
    """The name of its list of like modules, or of the child that holds all experts stacked."""
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList) and 1 < len(child) <= _MOST_EXPERTS:
            if len({type(item) for item in child}) == 1:
                return name
    for name, child in module.named_children():
        if _stacked(child) and "expert" in f"{name} {type(child).__name__}".lower():
            return name
    return None


def _stacked(child: nn.Module) -> int:
    """The number of experts that all weights of a module share as their first size."""
    sizes = {item.shape[0] for item in child.parameters() if item.dim() > 1}
    matrices = [item for item in child.parameters() if item.dim() == 3]
    return sizes.pop() if len(sizes) == 1 and matrices and not list(child.children()) else 0


def _routing(run: Recording, case: Case, experts: str) -> Routing | None:
    inputs = next(
        (item for item in case.tensors if item.is_floating_point() and item.dim() > 1), None
    )
    operators = case.traced(run)
    chosen = _chosen(operators, inputs)
    if inputs is None or chosen is None:
        return None
    child = getattr(case.module, experts)
    count = len(child) if isinstance(child, nn.ModuleList) else _stacked(child)
    seen: dict[int, int] = {}
    base = _with_experts(case, experts, lambda _, x: torch.zeros_like(x), inputs)
    rows = [
        (_with_experts(case, experts, functools.partial(_only, e), inputs) - base).mean(-1)
        for e in range(count)
    ]  # fmt: skip
    mixed = _with_experts(case, experts, lambda _, x: x, inputs, seen) - base
    return Routing(case, tuple(operators), inputs.reshape(-1, inputs.shape[-1]).float(),
                   torch.stack(rows, dim=-1), mixed, chosen,
                   tuple(seen.get(e, 0) for e in range(count)))  # fmt: skip


def _only(expert: int, index: int, x: torch.Tensor) -> torch.Tensor:
    """One for one expert, zero for all others."""
    return torch.full_like(x, float(index == expert))


def _chosen(operators: list[Operator], inputs: torch.Tensor | None) -> torch.Tensor | None:
    """The indices of the top-k over experts, by token."""
    tokens = inputs.numel() // inputs.shape[-1] if inputs is not None else 0
    for item in operators:
        if item.name == "topk" and tokens and item.outputs[1].numel() % tokens == 0:
            return item.outputs[1].reshape(tokens, -1)
    return None


def _all_real(case: Case) -> Case:
    """Masks that leave tokens out leave none out."""

    def whole(item: Any) -> Any:
        is_mask = isinstance(item, torch.Tensor) and item.dtype == torch.bool
        return torch.ones_like(item) if is_mask else item

    return case.changed(whole)


def _with_experts(
    case: Case, name: str, act: Callable[[int, torch.Tensor], torch.Tensor], inputs: torch.Tensor,
    seen: dict[int, int] | None = None,
) -> torch.Tensor:  # fmt: skip
    """The output by token when the experts do something else; `seen` counts their tokens."""
    module = copy.deepcopy(case.module)
    counted = seen if seen is not None else {}
    child = getattr(module, name)
    if isinstance(child, nn.ModuleList):
        for index, expert in enumerate(child):
            expert.forward = functools.partial(_act, act, index, counted)
    else:
        child.forward = functools.partial(_act_stacked, act, counted, copy.deepcopy(child))
    outputs = replace(case, module=module).run()
    found = next(item for item in outputs if item.shape == inputs.shape)
    return found.reshape(-1, inputs.shape[-1])


_Act = Callable[[int, torch.Tensor], torch.Tensor]


def _act(
    act: _Act, index: int, counted: dict[int, int], x: torch.Tensor, *_: Any, **__: Any
) -> torch.Tensor:
    counted[index] = counted.get(index, 0) + x.numel() // max(x.shape[-1], 1)
    return act(index, x)


def _act_stacked(
    act: _Act, counted: dict[int, int], child: nn.Module, x: torch.Tensor, *rest: Any, **named: Any
) -> torch.Tensor:
    """Which rows belong to an expert shows when its weights are set to zero."""
    random = torch.randn(x.shape, generator=torch.Generator().manual_seed(3)).to(x.dtype)
    whole = type(child).forward(child, random, *rest, **named)
    result = torch.zeros_like(x)
    for index in range(_stacked(child)):
        without = copy.deepcopy(child)
        for item in without.parameters():
            item[index].zero_()
        mine = (type(child).forward(without, random, *rest, **named) != whole).any(-1)
        counted[index] = counted.get(index, 0) + int(mine.sum())
        result[mine] = act(index, x[mine])
    return result
