"""jaxtyping annotations of the user's functions, checked on every call of the run.

They are checked whether or not the project decorates its functions with a type checker.
"""

from __future__ import annotations

import gc
import sys
import types
import typing
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch

from torchstone.core.place import Place
from torchstone.dryrun.annotations.function_calls import FunctionCall
from torchstone.dryrun.record import Hazard, Operand
from torchstone.dryrun.rules import ANNOTATION
from torchstone.dryrun.session import Session
from torchstone.dryrun.shapes.history import operand

Hints = dict[str, Any]
Alternatives = tuple[type, ...]
_RESULT = "return"


class AnnotationCheck:
    """Looks at each call of an annotated function; a violation is written down once per line."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._hints: dict[tuple[str, CodeType], Hints] = {}

    def observe(self, call: FunctionCall) -> None:
        if "jaxtyping" not in sys.modules:
            return
        key = (call.code.co_filename, call.code)  # equal code of two files is equal
        hints = self._hints.get(key)
        if hints is None:
            hints = self._hints[key] = array_hints(call.code, call.frame)
        if hints:
            self._check(call, hints)

    def _check(self, call: FunctionCall, hints: Hints) -> None:
        """All values of a call in one scope: an axis name means one size in it."""
        bound: dict[str, int] = {}
        with sys.modules["jaxtyping"].jaxtyped("context"):
            for name, hint in hints.items():
                is_result = name == _RESULT
                if is_result and call.result is None:  # an exception, or a branch without a value
                    continue
                value = call.result if is_result else call.arguments.get(name)
                spot = call.returned_at() if is_result else call.caller
                for label, item, wanted in arrays_in(name, value, hint):
                    if isinstance(item, wanted):
                        bound |= axes_of(item, wanted[0], bound)
                    else:
                        self._violated(call, operand(label, item), wanted, bound, spot)

    def _violated(
        self, call: FunctionCall, item: Operand, wanted: Alternatives, bound: dict[str, int],
        spot: Place,
    ) -> None:  # fmt: skip
        session = self._session
        key = (ANNOTATION.id, f"{call.code.co_qualname} {item.name}", spot)
        session.hazard_counts[key] += 1
        if key in session.hazards:
            return
        text = " | ".join(one.__name__ for one in wanted)
        axes = ", ".join(f"{name} = {size}" for name, size in bound.items())
        session.hazards[key] = Hazard(
            ANNOTATION.id, call.code.co_qualname, spot, session.module_path(), (item,),
            text, declared=call.defined_at(), axes=axes,
        )  # fmt: skip


def arrays_in(name: str, value: Any, hint: Any) -> Iterator[tuple[str, torch.Tensor, Alternatives]]:
    """The tensors of a value, each with the annotations of which one must hold."""
    if wanted := _alternatives(hint):
        if isinstance(value, torch.Tensor):
            yield name, value, wanted
        return
    inner = typing.get_args(hint)
    if isinstance(value, tuple) and inner and inner[-1] is not Ellipsis:
        for index, (item, one) in enumerate(zip(value, inner, strict=False)):
            yield from arrays_in(f"{name}[{index}]", item, one)
    elif isinstance(value, (list, tuple)) and inner:
        for index, item in enumerate(value):
            yield from arrays_in(f"{name}[{index}]", item, inner[0])
    elif isinstance(value, dict) and len(inner) == 2:
        for key, item in value.items():
            yield from arrays_in(f"{name}[{key!r}]", item, inner[1])


def _alternatives(hint: Any) -> Alternatives:
    """The annotations of arrays in a union, or the one that it is."""
    if _is_array(hint):
        return (hint,)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(one for one in typing.get_args(hint) if _is_array(one))
    return ()


def _is_array(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, sys.modules["jaxtyping"].AbstractArray)


def axes_of(tensor: torch.Tensor, hint: Any, known: dict[str, int]) -> dict[str, int]:
    """Sizes of the plain names in an annotation that has no `...`."""
    words = str(getattr(hint, "dim_str", "")).split()
    if len(words) != tensor.dim():
        return {}
    return {
        word: int(size)
        for word, size in zip(words, tensor.shape, strict=True)
        if word.isidentifier() and not word.startswith("_") and word not in known
    }


def array_hints(code: CodeType, frame: FrameType) -> Hints:
    """The annotations of a function in which an array is meant, the result's last."""
    function = function_of(code, frame)
    if function is None or not function.__annotations__:
        return {}
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # names that exist for the type checker only
        hints = dict(function.__annotations__)
    found = {name: hint for name, hint in hints.items() if _mentions_array(hint)}
    if _RESULT in found:
        found[_RESULT] = found.pop(_RESULT)
    return found


def _mentions_array(hint: Any) -> bool:
    return _is_array(hint) or any(_mentions_array(one) for one in typing.get_args(hint))


def function_of(code: CodeType, frame: FrameType) -> FunctionType | None:
    """The function that runs a code object: by its name, else by asking who refers to it."""
    holder: Any = frame.f_globals
    for word in code.co_qualname.split("."):
        holder = holder.get(word) if isinstance(holder, dict) else getattr(holder, word, None)
    while holder is not None:
        if getattr(holder, "__code__", None) is code:
            return holder  # type: ignore[no-any-return]
        holder = getattr(holder, "__wrapped__", None) or getattr(holder, "__func__", None)
    for one in gc.get_referrers(code):
        if isinstance(one, FunctionType) and one.__code__ is code:
            return one
    return None
