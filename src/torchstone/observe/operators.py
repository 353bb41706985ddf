"""Every operator that runs, handed to whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torchstone.observe.compat.modes import TorchDispatchMode

Run = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class OperatorMode(TorchDispatchMode):
    """While it is open, `run(operator, args, kwargs)` is called for each operator and gives its result."""

    supports_higher_order_operators = True

    def __init__(self, run: Run) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._run = run

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        return self._run(func, args, kwargs or {})
