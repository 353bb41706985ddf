"""What a program left behind, reduced to digests, and where two runs differ."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

_MOST = 100_000  # results that are looked at
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every array, tensor, image and number by its name: a digest, and a short description."""

    digests: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One result that is not the same."""

    name: str
    how: str
    before: str
    after: str


def outcome_of(left: Mapping[str, Any]) -> Outcome:
    found: dict[str, tuple[str, str]] = {}
    for name, value in left.items():
        for path, item in _data(value, name, _DEPTH):
            if len(found) >= _MOST:
                return Outcome(found)
            digest = _digest(item)
            if digest is not None:
                found[path] = digest
    return Outcome(found)


def differences(before: Outcome, after: Outcome) -> list[Difference]:
    """In the order of the first run; what only one of them has is a difference too."""
    found: list[Difference] = []
    for name in {**before.digests, **after.digests}:
        one, other = before.digests.get(name), after.digests.get(name)
        if one != other:
            how = "only in one run" if one is None or other is None else "other values"
            found.append(Difference(name, how, one[1] if one else "–", other[1] if other else "–"))
    return found


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


def _digest(value: Any) -> tuple[str, str] | None:
    """Of data; None for functions, modules and whatever else a script leaves."""
    if isinstance(value, bool) or value is None or isinstance(value, type):
        return None
    if isinstance(value, (int, float, complex)):
        same = "nan" if isinstance(value, float) and math.isnan(value) else repr(value)
        return same, same[:60]
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if numpy is None or value.layout is not torch.strided:
            return None
        plain = value.detach().cpu()
        kind = str(plain.dtype)
        plain = plain.view(torch.int16) if plain.dtype is torch.bfloat16 and plain.ndim else plain
        return _array_digest(plain.resolve_conj().resolve_neg().numpy(), f"Tensor {kind}")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        array = numpy.asarray(value)
        return (
            None
            if array.dtype.hasobject
            else _array_digest(array, f"{type(value).__name__} {array.dtype}")
        )
    if hasattr(value, "tobytes") and hasattr(value, "getbands"):  # an image of PIL
        data = value.tobytes()
        return hashlib.sha256(data).hexdigest(), f"Image {value.mode} {value.size}"
    return None


def _array_digest(array: Any, kind: str) -> tuple[str, str]:
    text = f"{kind} {array.shape}"
    return hashlib.sha256(text.encode() + array.tobytes()).hexdigest(), text
