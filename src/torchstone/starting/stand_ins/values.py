"""An object that takes whatever is done with it, and says so where its value would matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any


class ValueNeededError(Exception):
    """The program needs what a missing package would have computed."""

    def __init__(self, package: str, name: str, use: str) -> None:
        super().__init__(f"No module named '{package}': {name} is {use}")
        self.package = package


_COMPUTES = re.compile(
    r"(Module|Model|Net|Layer|Block|Encoder|Decoder|Dataset|Loader|Trainer|Optimizer|Scheduler|LR|Loss|Env|Wrapper"
    r"|Function|Transform|Sampler|Distribution)$"
)
"""Classes whose own ones compute with what they inherit: without it nothing is trained."""


class _Base:
    """In the place of a class that a hook, a callback or a writer of the program is made from."""

    _stand_in: StandIn

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._stand_in, name)


class StandIn:
    """What an attribute, a call or an item of a missing package gives.

    Loggers, plots and progress bars are called for their effect. Numbers of theirs that are only
    printed or compared are zero and noted; where a value goes into the computation, or a class is
    the base of the program's own, the package is needed after all.
    """

    def __init__(
        self, package: str, name: str, note: Callable[[str, str], None], inner: Any = None
    ):
        self.__dict__.update(_package=package, _name=name, _note=note, _inner=inner)

    def _child(self, name: str, inner: Any = None) -> StandIn:
        return StandIn(self._package, name, self._note, inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == "backward":  # a step without it would be none
            raise ValueNeededError(self._package, self._name, "the source of gradients")
        if name.endswith(("Error", "Exception", "Warning")):
            return type(name, (Exception,), {})
        return self._child(f"{self._name}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._note(self._package, f"{self._name}(...)")
        if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], StandIn):
            return args[0]  # a decorator, or a function that is registered
        wrapped = (
            args[0]
            if args and hasattr(args[0], "__iter__") and not isinstance(args[0], str)
            else None
        )
        return self._child(f"{self._name}(...)", wrapped)

    def __getitem__(self, key: Any) -> Any:
        return self._child(f"{self._name}[...]")

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        """A progress bar gives what it was given; anything else has no elements that are known."""
        if self._inner is not None:
            return iter(self._inner)
        if self._name.endswith("subplots(...)"):
            return iter((self._child("figure"), self._child("axes")))
        raise ValueNeededError(self._package, self._name, "iterated over")

    def __len__(self) -> int:
        if self._inner is not None:
            return len(self._inner)
        raise ValueNeededError(self._package, self._name, "asked for its length")

    def _number(self, use: str) -> float:
        self._note(self._package, f"{use} of {self._name}: 0")
        return 0.0

    def __float__(self) -> float:
        return self._number("float()")

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __bool__(self) -> bool:
        return bool(self._number("bool()"))

    def __format__(self, spec: str) -> str:
        return format(self._number("format()"), spec if not spec.endswith("s") else "")

    def __lt__(self, other: object) -> bool:
        return bool(self._number("comparison"))

    __gt__ = __le__ = __ge__ = __lt__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __or__(self, other: Any) -> Any:
        """`Type | None` in an annotation."""
        return self

    __ror__ = __or__

    def __instancecheck__(self, value: object) -> bool:
        return False

    def __subclasscheck__(self, value: object) -> bool:
        return False

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        if _COMPUTES.search(self._name):
            raise ValueNeededError(self._package, self._name, "the base of a class")
        self._note(self._package, f"{self._name} as the base of a class: one that does nothing")
        return (type(self._name.rpartition(".")[2], (_Base,), {"_stand_in": self}),)

    def _needed(self, *_: Any) -> Any:
        raise ValueNeededError(self._package, self._name, "used in a computation")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _needed
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __pow__ = __neg__ = _needed
    __array__ = __torch_function__ = __index__ = _needed
