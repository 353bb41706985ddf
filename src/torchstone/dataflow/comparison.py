"""What a program left behind, and where two runs differ."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from torchstone.core.text import Text

_MOST = 100_000  # results that are looked at
_DEPTH = 6
ROUNDING = 1e-4
"""Of the largest value: float32 operators that add in another order differ by 1e-6 each, a chain of
dozens by less than this; a wrong operator by more."""
ONE_LEVEL = 1
"""What whole numbers may differ by: entries that are declared within one level exist."""


@dataclass(frozen=True, slots=True)
class Result:
    """One array, tensor, image or number."""

    digest: str
    text: str
    value: Any
    """As an array, or the number itself."""


Outcome = Mapping[str, Result]
"""Every result of a run by its name."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One result that is not the same."""

    name: str
    how: Text
    before: str
    after: str
    is_rounding: bool = False


_ONLY_ONE = Text("only in one run", "只有一次运行中有")
_OTHER_KIND = Text("another kind of result", "结果的类型不同")
_OTHER_VALUES = Text("other values", "取值不同")


def outcome_of(left: Mapping[str, Any]) -> Outcome:
    found: dict[str, Result] = {}
    for name, value in left.items():
        for path, item in _data(value, name, _DEPTH):
            if len(found) >= _MOST:
                return found
            result = _result(item)
            if result is not None:
                found[path] = result
    return found


def differences(before: Outcome, after: Outcome) -> list[Difference]:
    """In the order of the first run; what only one of them has is a difference too."""
    found: list[Difference] = []
    for name in {**before, **after}:
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            found.append(
                Difference(name, _ONLY_ONE, one.text if one else "–", other.text if other else "–")
            )  # fmt: skip
        elif one.digest != other.digest:
            how, small = _how(one, other)
            found.append(Difference(name, how, one.text, other.text, small))
    return found


def _how(one: Result, other: Result) -> tuple[Text, bool]:
    """How far apart two results of one kind are, and whether rounding explains it."""
    if one.text != other.text and not isinstance(one.value, float):
        return _OTHER_KIND, False
    numpy = sys.modules.get("numpy")
    if numpy is None or getattr(one.value, "dtype", None) is None:
        return _how_numbers(one.value, other.value)
    a, b = one.value, other.value
    if a.dtype.kind not in "iufc" or not a.size:
        return _OTHER_VALUES, False
    wide = numpy.complex128 if a.dtype.kind == "c" else numpy.float64
    same = (a == b) | ((a != a) & (b != b))
    with numpy.errstate(all="ignore"):
        gap = float(numpy.where(same, 0.0, numpy.abs(a.astype(wide) - b.astype(wide))).max())
        largest = float(numpy.abs(numpy.where(numpy.isfinite(a), a, 0)).max())
    share = 1 - float(same.mean())
    if a.dtype.kind in "iu":
        said = Text(
            f"by up to {gap:.0f} ({share:.2%} of the values)",
            f"最多相差 {gap:.0f}（占全部值的 {share:.2%}）",
        )
        return said, gap <= ONE_LEVEL
    relative = gap / largest if largest else math.inf
    said = Text(
        f"by up to {relative:.1e} of the largest value ({share:.2%} of the values)",
        f"最多相差最大值的 {relative:.1e}（占全部值的 {share:.2%}）",
    )
    return said, relative <= ROUNDING


def _how_numbers(a: Any, b: Any) -> tuple[Text, bool]:
    if type(a) is not type(b) or not isinstance(a, float):
        return _OTHER_VALUES, False
    relative = abs(a - b) / max(abs(a), 1e-300)
    said = Text(f"by {relative:.1e} of its value", f"相差自身的 {relative:.1e}")
    return said, relative <= ROUNDING


def _data(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and depth:
        for key, item in value.items():
            yield from _data(item, f"{path}[{key!r}]", depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for place, item in enumerate(value):
            yield from _data(item, f"{path}[{place}]", depth - 1)
    elif is_dataclass(value) and not isinstance(value, type) and depth:
        for part in fields(value):
            yield from _data(getattr(value, part.name, None), f"{path}.{part.name}", depth - 1)
    else:
        yield path, value


def _result(value: Any) -> Result | None:
    """Of data; None for functions, modules and whatever else a script leaves."""
    if isinstance(value, bool) or value is None or isinstance(value, type):
        return None
    if isinstance(value, (int, float, complex)):
        same = "nan" if isinstance(value, float) and math.isnan(value) else repr(value)
        return Result(same, same[:60], value)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if numpy is None or value.layout is not torch.strided:
            return None
        plain = value.detach().cpu()
        kind = f"Tensor {plain.dtype}"
        plain = plain.float() if plain.dtype is torch.bfloat16 else plain
        return _array_result(plain.resolve_conj().resolve_neg().numpy(), kind)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        array = numpy.asarray(value)
        if array.dtype.hasobject:
            return None
        return _array_result(array, f"{type(value).__name__} {array.dtype}")
    if hasattr(value, "tobytes") and hasattr(value, "getbands") and numpy is not None:  # of PIL
        return _array_result(numpy.asarray(value), f"Image {value.mode}")
    return None


def _array_result(array: Any, kind: str) -> Result:
    text = f"{kind} {array.shape}"
    return Result(hashlib.sha256(text.encode() + array.tobytes()).hexdigest(), text, array)
