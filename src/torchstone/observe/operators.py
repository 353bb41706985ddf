"""Every operator that runs, or every call of torch's functions, handed to whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch.overrides import TorchFunctionMode

from torchstone.observe.compat.modes import TorchDispatchMode

Run = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class OperatorMode(TorchDispatchMode):
    """While it is open, `run(operator, args, kwargs)` is called for each operator and gives its result: a function
    that is handed in, or a method of a class derived from this one."""

    supports_higher_order_operators = True

    def __init__(self, run: Run | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._given = run

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # skipping it would load the compiler, which costs a second

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One operator."""
        return self._given(func, args, kwargs) if self._given else func(*args, **kwargs)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        return self.run(func, args, kwargs or {})


class CallMode(TorchFunctionMode):
    """While it is open, `run(function, args, kwargs)` is called for each function of torch that the program calls, as
    it calls it, and gives its result: a function that is handed in, or a method of a class derived from this one."""

    def __init__(self, run: Run | None = None) -> None:
        super().__init__()
        self._given = run

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call."""
        return self._given(func, args, kwargs) if self._given else func(*args, **kwargs)

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        del types
        return self.run(func, args, kwargs or {})
