"""Modules that hold parameters and never ran: what they cost is not in the figures."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from torchstone.cost.records.ledger import Cost, ancestors
from torchstone.observe.undo import Undo
from torchstone.runtime.modules import Part


class _Observed(dict[str, Any]):
    """The parameters of one module; which of them the code asks for is noted."""

    def __init__(self, held: Mapping[str, Any], asked: set[int]) -> None:
        super().__init__(held)
        self._asked = asked

    def __getitem__(self, name: str) -> Any:
        item = super().__getitem__(name)
        if item is not None:  # a missing bias is the same None in every module
            self._asked.add(id(item))
        return item


def observe_parameters(undo: Undo, parts: list[Part]) -> set[int]:
    """From now on, the ids of all parameters that the model's code asks for.

    A module may use the parameters of another without calling it, as attention does with its
    output projection: that no forward ran is not enough to say that nothing was used.
    """
    asked: set[int] = set()
    for _, module in parts:
        if module._parameters:
            held = vars(module)["_parameters"]
            undo.later(functools.partial(_put_back, module, held))
            vars(module)["_parameters"] = _Observed(held, asked)
    return asked


def _put_back(module: nn.Module, held: dict[str, Any]) -> None:
    held.clear()
    held.update(vars(module)["_parameters"])
    vars(module)["_parameters"] = held


def idle_modules(
    parts: list[Part], asked: set[int], ran: Iterable[str], stands: Mapping[str, str]
) -> frozenset[str]:
    """Paths of modules that hold parameters of which none was used, and that did no work."""
    busy = {above for path in ran for above in ancestors(path)}
    alone = frozenset(
        part.path
        for part in parts
        if any(item is not None for item in part.module._parameters.values())
        and part.path not in busy
        and not any(above in stands for above in ancestors(part.path))
        and not any(id(item) in asked for item in part.module._parameters.values())
    )
    return alone | {part.path for part in parts if _stand_in(part.path, stands) in alone}


def _stand_in(path: str, stands: Mapping[str, str]) -> str:
    """The module that was counted in place of this one, as its layer was by an equal one."""
    for above in ancestors(path):
        if above in stands:
            return stands[above] + path[len(above) :]
    return ""


def idle_parts(cost: Cost) -> dict[str, int]:
    """The largest parts of the model of which nothing ran, with their parameters."""
    holders = [path for path, item in cost.modules.items() if item.parameters]
    found: dict[str, int] = {}
    for path in cost.modules:
        if any(above in found for above in ancestors(path)):
            continue
        inside = [
            name for name in holders if name == path or name.startswith(f"{path}." if path else "")
        ]
        if inside and all(name in cost.idle for name in inside):
            found[path] = sum(cost.modules[name].parameters for name in inside)
    return dict(sorted(found.items(), key=lambda item: -item[1]))
