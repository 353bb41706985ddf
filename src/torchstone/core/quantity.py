"""Numbers with units as a person reads them: 32.9 TFLOP, 14.9 GiB, 3.1 ms."""

from __future__ import annotations

import math

_LARGE = ("", "k", "M", "G", "T", "P", "E", "Z")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SMALL = ("", "m", "µ", "n", "p")
_DECIMAL = frozenset({"FLOP", "MAC", "FLOP/s", "B/s", "FLOP/B", "Hz", "token/s"})


def human(value: float, unit: str) -> str:
    """The value with its unit, scaled where the unit is one that is scaled."""
    if not math.isfinite(value):
        return f"{value} {unit}".rstrip()
    if unit == "B":
        return _scaled(value, 1024, _BINARY, " ")
    if unit in _DECIMAL:
        return _scaled(value, 1000, tuple(step + unit for step in _LARGE), " ")
    if unit == "s" and 0 < abs(value) < 1:
        return _seconds(value)
    if value == int(value) and abs(value) < 1e18:
        return f"{int(value):,} {unit}".rstrip()
    return f"{value:,.4g} {unit}".rstrip()


def scales(unit: str) -> bool:
    """Is the unit one that `human` scales?"""
    return unit == "B" or unit == "s" or unit in _DECIMAL


def _scaled(value: float, base: int, steps: tuple[str, ...], gap: str) -> str:
    step = 0
    size = abs(value)
    while size >= base and step < len(steps) - 1:
        size /= base
        step += 1
    number = f"{size:.0f}" if step == 0 and size == int(size) else f"{size:.4g}"
    return f"{'-' if value < 0 else ''}{number}{gap}{steps[step]}".rstrip()


def _seconds(value: float) -> str:
    size = abs(value)
    for step in _SMALL:
        if size >= 1 or step == _SMALL[-1]:
            return f"{'-' if value < 0 else ''}{size:.4g} {step}s"
        size *= 1000
    raise AssertionError("the last step always returns")
