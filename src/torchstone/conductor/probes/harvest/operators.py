"""Every operator of a piece of a run, with the line of the project that asked for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.core.place import NOWHERE, Place
from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.operators import OperatorMode
from torchstone.observe.where import Where

_MOST_OPERATORS = 12_000
_MOST_OF_ONE_LINE = 60
_HALVES = (torch.float16, torch.bfloat16)


@dataclass(slots=True)
class Operator:
    """One call of an aten operator; its tensors are kept."""

    name: str
    place: Place
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]
    stack: tuple[Place, ...] = ()
    training: bool = True
    in_backward: bool = False
    outside: bool = False
    """In a part of an autocast region where autocast is switched off."""

    @property
    def output(self) -> torch.Tensor:
        return self.outputs[0]


class OperatorTrace(OperatorMode):
    """Writes operators down while it is on."""

    def __init__(
        self, where: Where, wanted: Callable[[], bool] = lambda: True,
        outside: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.operators: list[Operator] = []
        self.made_half: dict[int, tuple[torch.Tensor, Place]] = {}
        """Where half-precision storages were made."""
        self.absorbed: list[tuple[Place, Place, float, torch.dtype]] = []
        """Updates of state in half precision: line, line that made it, share that did not change."""
        self.in_backward = False
        self._where, self._wanted, self._outside = where, wanted, outside
        self._seen: dict[tuple[Place, str, torch.dtype], int] = {}

    @contextlib.contextmanager
    def backward(self) -> Iterator[None]:
        """A backward pass runs."""
        self.in_backward = True
        try:
            yield
        finally:
            self.in_backward = False

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = func.overloadpacket.__name__
        before = self._before_update(name, args)
        result = func(*args, **kwargs)
        if before is not None:
            self._note_update(args[0], before)
        if self._wanted():
            self._note(name, args, kwargs, result)
        return result

    def _note(self, name: str, args: Any, named: dict[str, Any], result: Any) -> None:
        outputs = tuple(item for item in tree_leaves(result) if isinstance(item, torch.Tensor))
        place = self._where.own(3)
        if outputs and outputs[0].dtype in _HALVES and len(self.made_half) < _MOST_OPERATORS:
            key = outputs[0].untyped_storage()._cdata
            self.made_half.setdefault(key, (outputs[0], place))
        if not place or not outputs or len(self.operators) >= _MOST_OPERATORS:
            return
        if self._is_news(place, name, outputs[0].dtype):
            inputs = tuple(
                item for item in tree_leaves((args, named)) if isinstance(item, torch.Tensor)
            )
            self.operators.append(Operator(
                name, place, args, named, inputs, outputs, training=torch.is_grad_enabled(),
                in_backward=self.in_backward, outside=self._outside(),
            ))  # fmt: skip

    def _is_news(self, place: Place, name: str, dtype: torch.dtype) -> bool:
        """Loops repeat themselves: enough of one line leaves room for the others."""
        count = self._seen.get((place, name, dtype), 0)
        self._seen[place, name, dtype] = count + 1
        return count < _MOST_OF_ONE_LINE

    def _before_update(self, name: str, args: Any) -> torch.Tensor | None:
        """What a tensor in half precision held before something is added to it in place."""
        if name not in ("add_", "lerp_", "sub_") or not args:
            return None
        target: torch.Tensor = args[0]
        if (
            target.dtype not in _HALVES
            or not target.numel()
            or self.in_backward
            or target.requires_grad
        ):
            return None
        return target.detach().clone()

    def _note_update(self, target: torch.Tensor, before: torch.Tensor) -> None:
        made = self.made_half.get(target.untyped_storage()._cdata, (None, NOWHERE))[1]
        same = float((target == before).float().mean())
        self.absorbed.append((self._where.own(3), made, same, target.dtype))


class Producers:
    """Which operator made a tensor; operators that only look at it differently are passed over."""

    _VIEWS = frozenset(
        "view _unsafe_view reshape transpose permute t unsqueeze squeeze expand alias detach "
        "slice select split split_with_sizes contiguous clone _reshape_alias as_strided chunk "
        "unbind unflatten flatten movedim lift_fresh".split()
    )

    def __init__(self, operators: list[Operator]) -> None:
        self.operators = operators
        self._maker: dict[int, Operator] = {}
        self._users: dict[int, list[Operator]] = {}
        for item in operators:
            for tensor in item.outputs:
                self._maker.setdefault(id(tensor), item)
            for tensor in item.inputs:
                self._users.setdefault(id(tensor), []).append(item)

    def maker(self, tensor: torch.Tensor) -> Operator | None:
        """The operator that computed these values."""
        found = self._maker.get(id(tensor))
        while found is not None and found.name in self._VIEWS and found.inputs:
            before = self._maker.get(id(found.inputs[0]))
            if before is None:
                return found
            found = before
        return found

    def ancestors(self, tensor: torch.Tensor, most: int = 400) -> Iterator[Operator]:
        """The operators that a tensor was computed by, the nearest first."""
        waiting, seen = [tensor], set[int]()
        while waiting and len(seen) < most:
            found = self._maker.get(id(waiting.pop(0)))
            if found is None or id(found) in seen:
                continue
            seen.add(id(found))
            yield found
            waiting += found.inputs

    def last_use(self, tensor: torch.Tensor) -> Operator | None:
        """The last operator of the chain that carries a scalar on."""
        last = self._maker.get(id(tensor))
        for _ in range(40):
            users = [item for item in self._users.get(id(tensor), ()) if item.output.numel() == 1]
            if not users:
                return last
            last = users[-1]
            tensor = last.output
        return last

    def is_weight(self, tensor: torch.Tensor) -> bool:
        """Whether these are the values of a parameter, looked at differently or cast."""
        for _ in range(12):
            found = self._maker.get(id(tensor))
            if found is None or not found.inputs or found.name not in (*self._VIEWS, "_to_copy"):
                break
            tensor = found.inputs[0]
        return isinstance(tensor, torch.nn.Parameter)

    def users(self, tensor: torch.Tensor) -> Iterator[Operator]:
        """The operators that compute with these values."""
        for user in self._users.get(id(tensor), ()):
            if user.name in self._VIEWS:
                for output in user.outputs:
                    yield from self.users(output)
            else:
                yield user
