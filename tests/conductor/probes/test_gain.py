"""What a repair brings, in units: digits, per cent, a factor."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.probes.checks.precision.work_left_wide import RULE
from torchstone.conductor.probes.rules import (
    Shown,
    expected,
    finding_of,
    number,
    significant_bits,
)
from torchstone.core.evidence import Number
from torchstone.core.place import Place
from torchstone.core.text import Text

_HOW = Text("measured", "测得")


def _gain(*numbers: Number) -> Number | None:
    shown = Shown(RULE, Place("train.py", 1, ""), Text("a", "甲"), numbers=numbers)
    return finding_of(shown, Path("/nowhere"), "").gain


def test_measured_and_expected_give_the_error_that_goes() -> None:
    gain = _gain(number("change", "变化", 12.5, "%", _HOW), expected(0.0, "%", _HOW))
    assert gain is not None
    assert (gain.value, gain.unit) == (12.5, "%")


def test_bits_give_the_digits_that_float32_keeps() -> None:
    gain = _gain(significant_bits(11, _HOW))
    assert gain is not None
    assert gain.value == pytest.approx(3.91, abs=0.01)
    assert gain.unit == "digits"
    assert _gain(significant_bits(24, _HOW)) is None


def test_other_numbers_promise_nothing() -> None:
    assert _gain(number("steps", "步数", 3, "", _HOW)) is None
