"""Sums what the counters say over every operator that a piece of code calls."""

from __future__ import annotations

from collections import Counter as Tallies
from collections.abc import Callable
from typing import Any

from torchstone.cost.counters import Count, counters
from torchstone.cost.counters._sizes import input_bytes, size_bytes
from torchstone.cost.counters.movement import FREE
from torchstone.observe.operators import OperatorMode


class Probe:
    """Counts while it is open. Small and slow: for examples and tests, not for models."""

    def __init__(self) -> None:
        self._mode = OperatorMode(self._run)
        self.calls: Tallies[str] = Tallies()
        self.uncounted: set[str] = set()
        self.total = Count(read=0, written=0)

    def __enter__(self) -> Probe:
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)  # type: ignore[no-untyped-call]

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = operator_name(func)
        if name not in counters() and name not in FREE:
            parts = _decomposed(func, args, kwargs)
            if parts is not NotImplemented:
                return parts
        out = func(*args, **kwargs)
        self._add(name, args, kwargs, out)
        return out

    def _add(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        self.calls[name] += 1
        if name in FREE:
            return
        if name not in counters():
            self.uncounted.add(name)
            return
        count = counters()[name][1](args, kwargs, out)
        read = input_bytes(args, kwargs) if count.read is None else count.read
        written = size_bytes(out) if count.written is None else count.written
        total = self.total
        self.total = Count(
            total.flops + count.flops,
            total.vector + count.vector,
            total.extra + count.extra,
            (total.read or 0) + read,
            (total.written or 0) + written,
            total.causal + count.causal,
        )


def operator_name(func: Any) -> str:
    """The name under which an operator is counted, such as `aten.mm`."""
    packet = getattr(func, "overloadpacket", None)
    return str(func.name()) if packet is None else str(packet)


def probe(call: Callable[[], Any]) -> Probe:
    """Run something and say what it cost."""
    result = Probe()
    with result:
        call()
    return result


def _decomposed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In inference mode composite operators arrive whole: they are run as their parts."""
    decompose = getattr(func, "decompose", None)
    return NotImplemented if decompose is None else decompose(*args, **kwargs)
