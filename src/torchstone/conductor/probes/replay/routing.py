"""What a layer of experts does with each token, found by replacing the experts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

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
            found = _routing(run, case, experts)
        except Exception as error:  # experts of another protocol
            run.not_probed[f"experts of {type(case.module).__name__}"] = (
                f"{type(error).__name__}: {str(error)[:160]}"
            )
            continue
        if found is not None:
            yield found


def _experts(module: nn.Module) -> str | None:
    """The name of its list of like modules."""
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList) and 1 < len(child) <= _MOST_EXPERTS:
            if len({type(item) for item in child}) == 1:
                return name
    return None


def _routing(run: Recording, case: Case, experts: str) -> Routing | None:
    inputs = next(
        (item for item in case.tensors if item.is_floating_point() and item.dim() > 1), None
    )
    operators = case.traced(run)
    chosen = _chosen(operators, inputs)
    if inputs is None or chosen is None:
        return None
    count = len(getattr(case.module, experts))
    base = _with_experts(case, experts, lambda _, x: torch.zeros_like(x), inputs)
    rows = [
        (_with_experts(case, experts, functools.partial(_only, e), inputs) - base).mean(-1)
        for e in range(count)
    ]  # fmt: skip
    mixed = _with_experts(case, experts, lambda _, x: x, inputs) - base
    return Routing(case, tuple(operators), inputs.reshape(-1, inputs.shape[-1]).float(),
                   torch.stack(rows, dim=-1), mixed, chosen)  # fmt: skip


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


def _with_experts(
    case: Case, name: str, act: Callable[[int, torch.Tensor], torch.Tensor], inputs: torch.Tensor
) -> torch.Tensor:
    """The output by token when the experts do something else."""
    module = copy.deepcopy(case.module)
    for index, expert in enumerate(getattr(module, name)):
        expert.forward = lambda x, *_, index=index, **__: act(index, x)
    outputs = replace(case, module=module).run()
    found = next(item for item in outputs if item.shape == inputs.shape)
    return found.reshape(-1, inputs.shape[-1])
