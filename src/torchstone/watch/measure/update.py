"""What is known at one optimizer step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from torchstone.runtime.number_formats import NumberFormat
from torchstone.watch.measure.parameters import WatchedParameters
from torchstone.watch.read.optimizer_facts import largest_rate
from torchstone.watch.read.reading import Reading

T = TypeVar("T")
_SPARSE = 0.75
_NEGLIGIBLE = 1e-5  # of the largest gradient
KNOWN_AFTER = 10
"""Updates after which every parameter that takes part has had its turn."""


class once(Generic[T]):  # noqa: N801
    """A property that is computed at its first use; the one of functools waits for a lock."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, owner: Any, _: object = None) -> T:
        value = self._function(owner)
        owner.__dict__[self._function.__name__] = value  # found before this the next time
        return value


@dataclass(frozen=True)
class Update:
    """One optimizer step; arrays run over the parameters of the optimizer."""

    number: int
    step: int
    watched: WatchedParameters
    reading: Reading
    rate: float
    """The largest learning rate of the optimizer's groups."""
    scale: float
    """What the gradients were multiplied with when they were read."""
    format: NumberFormat
    """The narrowest format that the gradients passed through."""
    warm: bool
    """Warm-up is over."""
    scaled: bool = False
    """A loss scaler guards this optimizer: infinities are normal."""
    steps: NDArray[np.void] | None = None
    outside: NDArray[np.bool_] | None = None
    """Parameters that changed since the optimizer's last step."""
    memory: dict[str, object] = field(default_factory=dict)
    stretch: float = 0.0
    """How much further a value may go because the batch is of another size."""
    group_rates: list[float] = field(default_factory=list)
    """Learning rate of every group of the optimizer; NaN where it is on a device."""
    settings: list[tuple[object, ...]] = field(default_factory=list)
    """Of every group of the optimizer, in the order of `SETTINGS`."""
    drive: NDArray[np.float64] | None = None
    """What pushes the sampled weights of every layer, where steps are in proportion to it."""
    undone: NDArray[np.bool_] | None = None
    """Parameters whose steps are taken back: they are where they were four steps ago; None where
    that was not looked at."""
    age: float = 0.0
    """Steps that the optimizer has counted; -1 where it holds no state."""
    reloaded: bool = False
    """Other weights were loaded since the last step."""
    base_rate: float = 0.0
    """The largest rate that a schedule of torch starts from; 0 without one."""
    awaited: tuple[int, ...] = ()
    """At update `KNOWN_AFTER`: parameters that are to be trained and have had no gradient, though
    others have."""

    def after_step(
        self, group_rates: list[float], steps: NDArray[np.void],
        undone: NDArray[np.bool_] | None, drive: NDArray[np.float64] | None,
    ) -> Update:  # fmt: skip
        """The same step once it was taken, with the rates that it was taken with; what was computed
        of its gradients is kept."""
        update = object.__new__(Update)
        update.__dict__.update(
            self.__dict__, group_rates=group_rates, rate=largest_rate(group_rates),
            steps=steps, undone=undone, drive=drive,
        )  # fmt: skip
        return update

    def keep_moved(self, moved: NDArray[np.float64]) -> None:
        """`moved`, computed for several steps at once."""
        self.__dict__["moved"] = moved

    @property
    def finite(self) -> bool:
        """No gradient holds NaN or infinity."""
        return not math.isnan(self.reading.whole)

    @property
    def norm(self) -> float:
        """Norm of all gradients, unscaled; NaN when one is not finite."""
        return math.sqrt(self.reading.whole) / self.scale if self.scale else math.nan

    @once
    def moved(self) -> NDArray[np.float64]:
        """Of the sampled weights of every layer: update and weight squares, pushed, absorbed, not
        finite, parameters that stood still; then gradient squares, and the products of gradient and
        step, of gradient and last gradient, of step and last step."""
        assert self.steps is not None
        return np.asarray(self.watched.sum_steps([self.steps])[0])

    @property
    def rates(self) -> NDArray[np.float64]:
        """Learning rate of every parameter; NaN where it is on a device."""
        return np.asarray(np.array(self.group_rates)[self.watched.group_of])

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Parameters whose group has a learning rate that is not zero."""
        return np.asarray(np.array([rate != 0 for rate in self.group_rates])[self.watched.group_of])

    @once
    def sparse(self) -> NDArray[np.bool_] | None:
        """Parameters whose gradient is mostly zero, as of an embedding; a few of their weights say
        nothing of the rest. None where there are none."""
        found = self.reading.rows["zero"] > _SPARSE * self.watched.sizes
        return found if found.any() else None

    @once
    def matters(self) -> NDArray[np.bool_]:
        """Parameters with more than rounding errors for a gradient, unlike a bias before a norm."""
        size = np.sqrt(self.reading.rows["sum_of_squares"] / np.maximum(self.watched.sizes, 1))
        return np.asarray(size > _NEGLIGIBLE * size.max(initial=0.0))

    def nothing(self) -> NDArray[np.float64]:
        """NaN for every layer."""
        return np.full(len(self.watched.layers), np.nan)
