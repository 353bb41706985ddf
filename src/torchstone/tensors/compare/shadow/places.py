"""Where an operator was called: phase, module, source line; backward operators by their forward node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

_OWN = str(Path(__file__).parents[1])  # the comparison: its loss is not the user's code
_TORCH = str(Path(torch.__file__).parent)
_CONTEXTLIB = "contextlib.py"


@dataclass(frozen=True, slots=True)
class Place:
    """One place of the program that calls operators."""

    phase: str
    """`forward` or `backward`."""
    module: str
    path: str
    line: int
    function: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else ""
        return " ".join(part for part in (self.phase, self.module or "(model)", where) if part)


def current_node() -> Any:
    """The autograd node that runs now; None in the forward pass."""
    return torch._C._current_autograd_node()


class Places:
    """Numbers the places of one run."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.all: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self._names = {id(module): name for name, module in model.named_modules()}
        self._stack: list[str] = []
        self._nodes: dict[int, int] = {}
        """Site of a forward operator, by the number of its autograd node."""
        self._user_files: dict[str, bool] = {}

    def now(self) -> int:
        """The number of the place that calls an operator now."""
        node = current_node()
        if node is None:
            return self._forward()
        made = self._nodes.get(node._sequence_nr())
        before = self.all[made] if made is not None else None
        module = before.module if before else ""
        own = (
            self._user_frame()
            if isinstance(node, torch.autograd.function.BackwardCFunction)
            else None
        )
        if own is not None and own[2] == "backward":
            return self._number(Place("backward", module, *own))
        if before is None:
            return self._number(Place("backward", "", "", 0, ""))
        return self._number(Place("backward", module, before.path, before.line, before.function))

    def forward_place(self, node: Any) -> Place | None:
        """Where the forward operator of an autograd node was called."""
        made = self._nodes.get(node._sequence_nr())
        return None if made is None else self.all[made]

    def _forward(self) -> int:
        frame = self._user_frame() or ("", 0, "")
        module = self._stack[-1] if self._stack else ""
        number = self._number(Place("forward", module, *frame))
        self._nodes[torch.autograd._get_sequence_nr() - 1] = number  # type: ignore[attr-defined]
        return number

    def number_of(self, place: Place) -> int:
        """The number of a place, or -2 while it was not seen."""
        return self._numbers.get(place, -2)

    def _number(self, place: Place) -> int:
        found = self._numbers.get(place)
        if found is None:
            found = self._numbers[place] = len(self.all)
            self.all.append(place)
        return found

    def _user_frame(self) -> tuple[str, int, str] | None:
        """The innermost frame that is neither torch's nor ours."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            path = frame.f_code.co_filename
            mine = self._user_files.get(path)
            if mine is None:
                mine = self._user_files[path] = not (
                    path.startswith((_OWN, _TORCH, "<")) or path.endswith(_CONTEXTLIB)
                )
            if mine:
                return path, frame.f_lineno, frame.f_code.co_name
            frame = frame.f_back
        return None

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
