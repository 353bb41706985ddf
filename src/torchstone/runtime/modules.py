"""Module paths: which module is running now, in the forward and in the backward.

In the forward the innermost module that was called is the one. In the backward no module is
called; but every node of the autograd graph has a sequence number that was drawn in the forward,
so the numbers drawn while a module was innermost belong to it.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from torch import nn

from torchstone.observe.compat.autograd import current_node, graph_task, next_sequence_number
from torchstone.observe.undo import Undo

Place = TypeVar("Place")

_thread = threading.get_ident


class Part(NamedTuple):
    """One module of a model with what it holds itself."""

    path: str
    module: nn.Module


def parts_of(model: nn.Module) -> list[Part]:
    """Every module once, in the order of `named_modules()`, several times faster."""
    found: list[Part] = []
    _visit("", model, found, set())
    return found


def _visit(path: str, module: nn.Module, found: list[Part], seen: set[int]) -> None:
    if id(module) in seen:
        return
    seen.add(id(module))
    found.append(Part(path, module))
    for name, child in module._modules.items():
        if child is not None:
            _visit(f"{path}.{name}" if path else name, child, found, seen)


class Paths(Generic[Place]):
    """Follows the calls of a model's modules; `enter` and `leave` are told of each."""

    def __init__(self, parts: list[Part], place: Callable[[str, bool], Place]) -> None:
        """`place(path, in_backward)` makes what stands for a module in the caller's books."""
        self._parts = parts
        self._names = {id(part.module): part.path for part in parts}
        self._make = place
        self._places: dict[tuple[str, bool], Place] = {}
        self.current: Place = self.at("", False)
        self.depth_in_backward = 0
        self._owners: dict[int, str] = {}
        # number from which on nodes belong to the module beside it
        self._starts: list[int] = [0]
        self._paths: list[str] = [""]
        self._path = ""
        self.failed = ""
        """The innermost module that an exception left."""
        self._last = ""
        self._thread = _thread()
        self.elsewhere: dict[str, int] = {}
        """Calls from other threads, which the dispatch mode of this one does not see."""

    def own(self) -> None:
        """Take note of whose the parameters are, as they are now."""
        for path, module in self._parts:
            for parameter in module._parameters.values():
                if parameter is not None:
                    self._owners.setdefault(id(parameter), path)

    def at(self, path: str, in_backward: bool) -> Place:
        key = (path, in_backward)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._make(path, in_backward)
        return found

    def _mark(self, path: str) -> None:
        number = next_sequence_number()
        if number < self._starts[-1]:  # another thread has its own numbers
            return
        if number == self._starts[-1]:
            self._paths[-1] = path
        else:
            self._starts.append(number)
            self._paths.append(path)

    def of_node(self) -> str:
        """The module to which the autograd node that runs now belongs."""
        node = current_node()
        if node is None:
            return self._last
        number = node._sequence_nr()
        if number >= _NO_NUMBER:  # the end of the graph: a parameter takes its gradient
            variable = getattr(node, "variable", None)
            self._last = self._owners.get(id(variable), self._last)
        else:
            index = bisect.bisect_right(self._starts, number) - 1
            self._last = self._paths[index]
        return self._last

    def missed(self, what: str) -> None:
        """Take note of work in another thread."""
        self.elsewhere[what] = self.elsewhere.get(what, 0) + 1

    def call(self, original: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any) -> Any:
        """Call a module with the books turned to its page."""
        name = self._names.get(id(module))
        if name is None:
            return original(module, *args, **kwargs)
        if _thread() != self._thread and graph_task() == -1:
            self.missed(name)
            return original(module, *args, **kwargs)
        before, path_before = self.current, self._path
        in_backward = graph_task() != -1
        self.current, self._path = self.at(name, in_backward), name
        self.depth_in_backward += in_backward
        self._mark(name)
        try:
            return original(module, *args, **kwargs)
        except BaseException:
            self.failed = self.failed or name
            raise
        finally:
            self.current, self._path = before, path_before
            self.depth_in_backward -= in_backward
            self._mark(path_before)

    def follow(self, undo: Undo) -> None:
        """From now on calls of the model's modules are followed; others pass untouched."""
        self._thread = _thread()
        original = nn.Module.__call__

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self.call(original, module, args, kwargs)

        undo.set(nn.Module, "__call__", call)


_NO_NUMBER = 1 << 62
