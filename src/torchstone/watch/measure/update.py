"""What is known at one optimizer step (an update) and at one call of the training function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from torchstone.runtime.number_formats import NumberFormat
from torchstone.watch.read.reading import Reading

if TYPE_CHECKING:
    from torchstone.watch.measure.watched_optimizer import WatchedOptimizer


T = TypeVar("T")
_SPARSE = 0.75
_NEGLIGIBLE = 1e-5  # of the largest gradient
SETTINGS = (
    "momentum", "dampening", "nesterov", "betas", "eps", "weight_decay", "maximize", "alpha",
)  # fmt: skip
"""What an optimizer's group says beside the learning rate."""


class once(Generic[T]):  # noqa: N801
    """A property that is computed at its first use; the one of functools waits for a lock."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, owner: Any, _: object = None) -> T:
        value = self._function(owner)
        owner.__dict__[self._function.__name__] = value  # found before this the next time
        return value


@dataclass(frozen=True, slots=True)
class RankRow:
    """What one rank says of one step; all of it travels as doubles."""

    step: float
    loss: float
    norm: float
    rate: float
    digest: float
    """Of sampled weights."""
    batch: float
    """Digest of the batch; 0 where it could not be had."""
    alerts: float


@dataclass(slots=True)
class TrainingCall:
    """One call of the training function."""

    step: int
    loss: float | None = None
    updates: int = 0
    """Optimizer steps within the call."""
    backwards: int = 0
    """Backward passes that reached a watched parameter."""
    skipped: int = 0
    """Optimizer steps that the loss scaler left out."""
    scale: float = 1.0
    batch_size: int = 0
    batch_elements: int = 0
    input_scale: float = float("nan")
    """Root mean square of the first floating tensor that the model was given, from a sample."""
    input_sign: float = float("nan")
    """Share of the values in it that are below zero."""
    token_variety: float = float("nan")
    """Different values among a hundred, where the model is given whole numbers."""
    output_scale: float = float("nan")
    """Root mean square of the model's outputs, from a sample."""
    output_zeros: float = float("nan")
    output_sign: float = float("nan")
    """Shares of outputs that are zero, and that are below zero."""
    backward_gain: float = float("nan")
    """Norm of the weights' gradients against that of the outputs' gradient."""
    loss_slope: float = float("nan")
    """Size of the outputs' gradient against the loss, for a mean over as many outputs."""
    classes: int = 0
    """Values in the last dimension of the outputs; 0 where there is none."""
    labelled: bool = False
    """The batch ends with whole numbers, which may be labels."""
    batch_digest: int = 0
    batch_indices: list[int] = field(default_factory=list)
    memory: dict[str, object] = field(default_factory=dict)
    """What signals keep from call to call; one for the whole run."""
    scaled: bool = False
    """A loss scaler is in use."""
    stale: str = ""
    """A parameter whose old gradient the backward pass added to."""
    passes: int = 0
    """Backward passes before this step, where they were compared; 0 elsewhere."""
    passes_lost: bool | None = None
    """Only the last of them was left; None where that could not be told."""
    alone: bool = True
    """There is one optimizer, and no gradient of an input is asked for."""
    in_eval: tuple[str, ...] = ()
    """Layers that behave otherwise in evaluation, and were in it during backward."""
    statistics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """A few running means and variances of batch norm layers that were in training mode during backward."""
    norms: dict[str, tuple[float | None, int]] = field(default_factory=dict)
    """Momentum of those layers, and the batches that they have tracked."""
    dead_inputs: int | None = None
    """Features of the model's input that are the same in every sample; None where not looked at."""
    unowned: tuple[str, ...] = ()
    """Parameters with a gradient that no optimizer moves."""
    ranks: tuple[RankRow, ...] = ()
    """What the ranks said of an earlier step, when it has just arrived."""
    ranks_strict: bool = False
    """The ranks are replicas by construction."""
    ranks_sharded: bool = False
    reloaded: bool = False
    """Other weights were loaded since the last call."""
    stretch: float = 0.0
    """How much further a value may go because the batch is of another size."""
    random_state: Tensor | None = None
    """Of torch's generator on the host when the call began; a device is not asked for its own."""


@dataclass
class Update:
    """One optimizer step; arrays run over the parameters of the optimizer."""

    number: int
    step: int
    watched: WatchedOptimizer
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
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """Of the learned signals of each phase, once they are measured."""

    def after_step(self, group_rates: list[float]) -> Update:
        """The same step once it was taken, with the rates that it was taken with."""
        update = object.__new__(Update)
        update.__dict__.update(self.__dict__, group_rates=group_rates, values={})
        update.rate = max((rate for rate in group_rates if rate == rate), default=0.0)
        return update

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
