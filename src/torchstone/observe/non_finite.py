"""The first operator that turns finite values into NaN or infinity, with its line and its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.core.place import NOWHERE, Place
from torchstone.observe.compat.autograd import current_node, next_sequence_number
from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.operators import OperatorMode
from torchstone.observe.where import Where

_UNWRITTEN = ("empty", "new_empty", "resize", "set_")
_FILLING = (
    "fill",
    "full",
    "where",
    "scalar_tensor",
    "masked",
    "_to_copy",
    "clone",
    "copy_",
    "view",
)
"""They pass on an infinity that the program asked for, as masks do."""
_OPERANDS = 3


@dataclass(frozen=True, slots=True)
class NonFinite:
    """An operator whose result is not finite though what it was given is."""

    place: Place
    operator: str
    phase: str
    """`forward` or `backward`; a backward operator has the line of its forward one."""
    share: float
    """Of the elements of the result."""
    shape: tuple[int, ...]
    rows: tuple[int, ...]
    """Along the first axis of the result."""
    given: tuple[str, ...]
    """Shape and range of what it was given."""


class FirstNonFinite:
    """Looks at every output while it is open, and hands on the first that is not finite without cause.

    NaN from inputs without NaN always counts. An infinity counts where `infinities` is set: masks
    are full of them, and most do no harm. Where a NaN comes of an infinity that an operator had
    made of finite values before, that operator is the first.
    """

    def __init__(
        self, places: Where, found: Callable[[NonFinite], None], infinities: bool = False
    ) -> None:
        self._places, self._found, self._infinities = places, found, infinities
        self._first_infinity: NonFinite | None = None
        self._lines: dict[int, Place] = {}
        """The line of a forward operator, by the number of its autograd node."""
        self._done = False
        self._mode = OperatorMode(self._run)

    def __enter__(self) -> FirstNonFinite:
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)  # type: ignore[no-untyped-call]

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        node = current_node()
        if node is None:
            # its node has drawn its number; operators without a node draw none
            self._lines.setdefault(next_sequence_number() - 1, self._places.own(3))
        name = getattr(func, "overloadpacket", func).__name__
        if not self._done and not name.startswith(_UNWRITTEN):
            self._look(name, node, args, kwargs, out)
        return out

    def _look(self, name: str, node: Any, args: Any, kwargs: Any, out: Any) -> None:
        made, given = _floats(out), _floats((args, kwargs))
        bad = next((item for item in made if bool(torch.isnan(item).any())), None)
        if bad is not None and not any(bool(torch.isnan(item).any()) for item in given):
            passed_on = any(bool(torch.isinf(item).any()) for item in given)
            seen = self._first_infinity if passed_on else None
            self._hand_on(seen or self._describe(name, node, given, bad, torch.isnan(bad)))
            return
        if any(word in name for word in _FILLING):
            return
        wide = next((item for item in made if bool(torch.isinf(item).any())), None)
        if wide is not None and all(bool(torch.isfinite(item).all()) for item in given):
            seen = self._describe(name, node, given, wide, torch.isinf(wide))
            self._first_infinity = self._first_infinity or seen
            if self._infinities:
                self._hand_on(seen)

    def _hand_on(self, seen: NonFinite) -> None:
        self._done = True
        self._found(seen)

    def _describe(
        self, name: str, node: Any, given: list[torch.Tensor], out: torch.Tensor, at: torch.Tensor
    ) -> NonFinite:
        place = self._places.own(5)
        if node is not None:
            place = self._lines.get(node._sequence_nr(), NOWHERE)
        rows = at.flatten(1).any(1).nonzero().flatten().tolist() if at.dim() > 1 else []
        return NonFinite(
            place,
            name,
            "forward" if node is None else "backward",
            float(at.sum()) / max(out.numel(), 1),
            tuple(out.shape),
            tuple(rows or at.flatten().nonzero().flatten().tolist()),
            tuple(
                f"{tuple(item.shape)}: {float(item.min()):.4g} to {float(item.max()):.4g}"
                for item in given[:_OPERANDS]
            ),
        )


def _floats(value: Any) -> list[torch.Tensor]:
    return [
        item
        for item in tree_leaves(value)
        if isinstance(item, torch.Tensor) and item.is_floating_point() and item.numel()
    ]
