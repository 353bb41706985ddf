"""Copies of modules with inputs that they were really called with."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from torchstone.conductor.probes.harvest.listeners import copied
from torchstone.conductor.probes.harvest.operators import Operator, OperatorTrace
from torchstone.conductor.probes.harvest.recording import ModuleCall, Recording
from torchstone.observe.compat.trees import tree_leaves, tree_map
from torchstone.observe.where import Where

_LARGE_PARAMETERS = 30_000_000
"""A copy of more would take the time of all other checks."""
_LENGTHS = (7, 11, 5, 13, 9, 6)
"""Short sequences to probe with; one is taken that no other size of the model equals."""


@dataclass(frozen=True, slots=True)
class Case:
    """A copy of a module in evaluation mode, in float32, and a call of it."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    call: ModuleCall

    def run(self) -> list[torch.Tensor]:
        """The floating-point tensors of its output."""
        return floats(self.result())

    def result(self) -> Any:
        torch.manual_seed(0)
        with torch.no_grad():
            return self.module(*copied(self.args), **copied(self.kwargs))

    def traced(self, run: Recording) -> list[Operator]:
        trace = OperatorTrace(Where(run.root))
        with trace:
            self.result()
        return trace.operators

    def changed(self, change: Callable[[Any], Any]) -> Case:
        """The same call with every tensor changed that `change` changes."""
        args, kwargs = tree_map(change, (copied(self.args), copied(self.kwargs)))
        return replace(self, args=args, kwargs=kwargs)

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [
            item for item in tree_leaves((self.args, self.kwargs)) if isinstance(item, torch.Tensor)
        ]

    @property
    def tokens(self) -> torch.Tensor | None:
        """The batch of token ids that it gets, if it gets one."""
        found = (item for item in self.tensors
                 if item.dtype in (torch.int64, torch.int32) and item.dim() == 2 and item.shape[1] > 3)  # fmt: skip
        return next(found, None)


def floats(value: Any) -> list[torch.Tensor]:
    return [item.detach().float() for item in tree_leaves(value)
            if isinstance(item, torch.Tensor) and item.is_floating_point()]  # fmt: skip


@functools.lru_cache(maxsize=4)
def cases(run: Recording, *, top: bool = False, stateless: bool = True) -> tuple[Case, ...]:
    """One case for each class (for models: each instance) of the project that was called."""
    return tuple(_cases(run, top, stateless))


def _cases(run: Recording, top: bool, stateless: bool) -> Iterator[Case]:
    seen: set[Any] = set()
    order = sorted(run.calls, key=lambda call: (call.training, call.number))
    for call in order:
        key = id(call.module) if top else type(call.module)
        if key in seen or (top and not call.top):
            continue
        if stateless and any(not _is_plain(item) for item in (*call.args, *call.kwargs.values())):
            continue
        case = case_of(run, call)
        if case is not None:
            seen.add(key)
            yield case


def case_of(run: Recording, call: ModuleCall) -> Case | None:
    """None where the module cannot be copied or called again; why is noted."""
    name = type(call.module).__name__
    if sum(item.numel() for item in call.module.parameters()) > _LARGE_PARAMETERS:
        run.not_probed[name] = f"more than {_LARGE_PARAMETERS:,} parameters"
        return None
    try:
        module = copy.deepcopy(call.module).float().eval()
        case = Case(module, widened(call.args), widened(call.kwargs), call)
        if _reaches_others(case):
            run.not_probed[name] = "a copy of it still calls layers of the original"
            return None
    except Exception as error:  # whatever its code raises: it cannot be probed this way
        run.not_probed[name] = f"{type(error).__name__}: {str(error)[:160]}"
        return None
    return case


def _reaches_others(case: Case) -> bool:
    """Whether the copy runs layers that are not its own, as a function kept in an attribute does:
    they are in another mode, and what is seen then is not the module's doing."""
    own = set(case.module.modules())
    others: list[nn.Module] = []

    def note(module: nn.Module, _: Any) -> None:
        if module not in own:
            others.append(module)

    hook = register_module_forward_pre_hook(note)
    try:
        case.result()
    finally:
        hook.remove()
    return bool(others)


def widened(value: Any) -> Any:
    def wide(item: Any) -> Any:
        if isinstance(item, torch.Tensor) and item.dtype in (torch.float16, torch.bfloat16):
            return item.float()
        return item

    return tree_map(wide, copied(value))


def unsettled(module: nn.Module) -> nn.Module:
    """Weights that are all equal, as norms begin, are moved: ones hide where they are missing."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for item in module.parameters():
            if item.is_floating_point() and bool((item == item.flatten()[:1]).all()):
                item.add_(0.2 * torch.rand(item.shape, generator=generator).to(item.dtype))
    return module


def _is_plain(item: Any) -> bool:
    return isinstance(
        item, (torch.Tensor, int, float, str, bool, type(None), torch.dtype, torch.device)
    )


def shortened(case: Case) -> Case:
    """The same call with sequences of a length that no other size of the model equals; the call
    itself where the model takes no other length."""
    tokens = case.tokens
    if tokens is None:
        return case
    length = tokens.shape[1]
    sizes = {size for item in case.module.parameters() for size in item.shape}
    sizes |= {value for module in case.module.modules() for value in vars(module).values()
              if isinstance(value, int)}  # fmt: skip
    short = next((item for item in _LENGTHS if item < length and item not in sizes), length)

    def cut(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        for axis, size in enumerate(item.shape):
            if size == length:
                item = item.narrow(axis, 0, short)
        return item

    other = case.changed(cut)
    try:
        other.result()
    except Exception:  # whatever its code raises: it takes no other length
        return case
    return other


def with_other_tokens(case: Case, where: torch.Tensor) -> Case:
    """The same call with other token ids where the mask says so."""
    tokens = case.tokens
    if tokens is None:
        return case
    known = int(tokens.max()) + 1
    shape = tuple(tokens.shape)

    def change(item: Any) -> Any:
        if (
            isinstance(item, torch.Tensor)
            and item.dtype == tokens.dtype
            and tuple(item.shape) == shape
        ):
            if torch.equal(item, tokens):
                return torch.where(where, (item + 1 + item % 2) % max(known, 2), item)
        return item

    return case.changed(change)
