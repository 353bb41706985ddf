"""A signal is one thing that is watched; each is one file in `signals/`, found by being there."""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.learn.channels import Limits
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.update import Update

Phase = Literal["gradient", "sample", "update", "call"]
PHASES_OF_STEPS: tuple[Phase, ...] = ("gradient", "sample", "update")
"""Those of an optimizer step."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is wrong whatever the past was: said once for an episode."""

    signal: str
    text: Text
    """What was seen, ready to print after `[ALERT] Step N | `."""
    layer: str = ""
    value: float = float("nan")
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Relearn:
    """What is normal in one phase is to be learned anew, and rightly so."""

    phase: Phase


class Jump(NamedTuple):
    """How far the layers of a learned signal have moved at once."""

    layers: int
    sigmas: float
    effect: float
    tightness: float
    """What thresholds are multiplied with."""


Together = Callable[[str], Jump | None]
"""The jump of the layer signal of this name; None while that cannot be told."""


@dataclass(slots=True)
class Signal:
    """A number of the run or of every layer, and what to say when it leaves its range.

    `limits` make it learned: its baseline decides. Without them `check` decides.
    """

    name: str
    phase: Phase
    title: Text
    why: Text
    remedy: Text
    of: Literal["run", "layer"] = "layer"
    limits: Limits | None = None
    unit: str = ""
    severity: Severity = Severity.MEDIUM
    high: float = math.inf
    """A learned signal that rises to so many times its usual value is HIGH."""
    falls_from: int = 0
    """Values before a fall means anything: a loss falls fastest where learning begins."""
    fades: bool = False
    """It falls by orders of magnitude as a model converges; what it does far below is noise."""
    value: Callable[[Any], NDArray[np.float64] | float] | None = None
    """Of several updates, one number for each and perhaps for each layer; or of one call."""
    check: Callable[[Any], Iterable[Alarm | Relearn]] | None = None
    compare: Callable[[Update, Together], Iterable[Alarm]] | None = None

    def measure(
        self, function: Callable[[Any], NDArray[np.float64] | float]
    ) -> Callable[[Any], NDArray[np.float64] | float]:
        """The function that gives the values of `Updates`, or the value of a `TrainingCall`."""
        self.value = function
        return function

    def on_update(
        self, function: Callable[[Update], Iterable[Alarm | Relearn]]
    ) -> Callable[[Update], Iterable[Alarm | Relearn]]:
        """The function that looks at one optimizer step."""
        self.check = function
        return function

    def on_layers(
        self, function: Callable[[Update, Together], Iterable[Alarm]]
    ) -> Callable[[Update, Together], Iterable[Alarm]]:
        """The function that looks at one optimizer step beside what is normal for its layers."""
        self.compare = function
        return function

    def on_call(
        self, function: Callable[[TrainingCall], Iterable[Alarm]]
    ) -> Callable[[TrainingCall], Iterable[Alarm]]:
        """The function that looks at one call of the training step."""
        self.check = function
        return function


@dataclass(frozen=True, slots=True)
class Values:
    """What the learned signals of one phase said: for the record."""

    spans: list[tuple[Signal, int, int]]
    values: NDArray[np.float64]
    """Of every signal: one, or one for every layer."""
    of_run: list[tuple[str, int]]
    """The signals of the whole run, and where their values are."""


@functools.cache
def all_signals() -> tuple[Signal, ...]:
    """Every signal in the folder, by name."""
    package = importlib.import_module("torchstone.watch.signals")
    names = sorted(item.name for item in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}").SIGNAL for name in names)


@functools.cache
def learned(phase: Phase, of: str) -> tuple[Signal, ...]:
    """The learned signals of one phase."""
    return tuple(s for s in all_signals() if s.limits and s.phase == phase and s.of == of)


@functools.cache
def checked(phase: Phase) -> tuple[Signal, ...]:
    """The signals of one phase that are right or wrong without a past."""
    return tuple(s for s in all_signals() if (s.check or s.compare) and s.phase == phase)


@functools.cache
def layer_signals() -> tuple[Signal, ...]:
    """The learned signals of layers, in the order in which a run records them."""
    return tuple(s for phase in ("gradient", "sample", "update") for s in learned(phase, "layer"))
