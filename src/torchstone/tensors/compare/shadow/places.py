"""Where an operator was called: phase, module, source line; backward operators by their forward node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from torchstone.core.place import NOWHERE, Place
from torchstone.observe.compat.autograd import current_node, next_sequence_number
from torchstone.observe.where import Where


class Places:
    """Numbers the places of one run."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.all: list[Place] = []
        self._numbers: dict[tuple[str, int, str, str, str], int] = {}
        self._names = {id(module): name for name, module in model.named_modules()}
        self._stack: list[str] = []
        self._nodes: dict[int, int] = {}
        """Site of a forward operator, by the number of its autograd node."""
        self._where = Where()
        self._is_ours = False

    def now(self) -> int:
        """The number of the place that calls an operator now."""
        node = current_node()
        if node is None:
            return self._forward()
        made = self._nodes.get(node._sequence_nr())
        before = self.all[made] if made is not None else None
        module = before.module if before else ""
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            own = self._where.nearest(3)
            if own.scope.rpartition(".")[2] == "backward":
                return self._number(own, module, "backward")
        return self._number(before or NOWHERE, module, "backward")

    def forward_place(self, node: Any) -> Place | None:
        """Where the forward operator of an autograd node was called."""
        made = self._nodes.get(node._sequence_nr())
        return None if made is None else self.all[made]

    @contextmanager
    def nowhere(self) -> Iterator[None]:
        """Operators that are called while this is open are on no line of the user's."""
        self._is_ours = True
        try:
            yield
        finally:
            self._is_ours = False

    def _forward(self) -> int:
        module = self._stack[-1] if self._stack else ""
        line = NOWHERE if self._is_ours else self._where.nearest(4)
        number = self._number(line, module, "forward")
        # an operator that makes no node finds the number of the last one, which has its place already
        self._nodes.setdefault(next_sequence_number() - 1, number)
        return number

    def note_view(self) -> None:
        """A view makes a node, and its backward may compute."""
        if current_node() is None and next_sequence_number() - 1 not in self._nodes:
            self._forward()

    def _number(self, line: Place, module: str, phase: str) -> int:
        key = (line.path, line.line, line.scope, module, phase)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.all)
            self.all.append(replace(line, module=module, phase=phase))
        return found

    @property
    def stack(self) -> list[str]:
        return self._stack

    @contextmanager
    def following_modules(self) -> Iterator[None]:
        """The stack of modules is kept while this is open."""

        def enter(module: torch.nn.Module, _: object) -> None:
            name = self._names.get(id(module))
            if name is not None:
                self._stack.append(name)

        def leave(module: torch.nn.Module, _: object, __: object) -> None:
            if self._stack and self._names.get(id(module)) == self._stack[-1]:
                self._stack.pop()

        first = register_module_forward_pre_hook(enter)
        last = register_module_forward_hook(leave, always_call=True)
        try:
            yield
        finally:
            first.remove()
            last.remove()
