"""What is known at one optimizer step (a beat) and at one call of the training function."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchstone.runtime.number_formats import NumberFormat
from torchstone.watch.reading import Reading

if TYPE_CHECKING:
    from torchstone.watch.actor import Actor


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
class Call:
    """One call of the training function."""

    step: int
    loss: float | None = None
    beats: int = 0
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
    batch_digest: int = 0
    batch_indices: list[int] = field(default_factory=list)
    memory: dict[str, object] = field(default_factory=dict)
    """What signals keep from call to call; one for the whole run."""
    scaled: bool = False
    """A loss scaler is in use."""
    stale: str = ""
    """A parameter whose old gradient the backward pass added to."""
    in_eval: tuple[str, ...] = ()
    """Layers that behave otherwise in evaluation, and were in it during backward."""
    statistics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """A few running means of batch norm layers that were in training mode during backward."""
    unowned: tuple[str, ...] = ()
    """Parameters with a gradient that no optimizer moves."""
    ranks: tuple[RankRow, ...] = ()
    """What the ranks said of an earlier step, when it has just arrived."""
    ranks_strict: bool = False
    """The ranks are replicas by construction."""
    ranks_sharded: bool = False


@dataclass
class Beat:
    """One optimizer step; arrays run over the parameters of the actor."""

    number: int
    step: int
    actor: Actor
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
    """A loss scaler guards this optimizer: infinities are its daily work."""
    steps: NDArray[np.void] | None = None
    outside: NDArray[np.bool_] | None = None
    """Parameters that changed since the actor's last step."""
    memory: dict[str, object] = field(default_factory=dict)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """Sum of squares of every layer's gradient, unscaled."""
        return self.actor.by_layer(self.reading.rows["sum_of_squares"]) / self.scale**2

    @cached_property
    def finite(self) -> bool:
        """No gradient holds NaN or infinity."""
        rows = self.reading.rows
        return not (rows["nan"].any() or rows["infinite"].any())

    @cached_property
    def norm(self) -> float:
        """Norm of all gradients, unscaled; NaN when one is not finite."""
        return math.sqrt(float(self.squares.sum())) if self.finite else math.nan

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Elements of every layer that have a gradient."""
        present = self.reading.present
        if present.all():
            return self.actor.layer_sizes
        return self.actor.by_layer(np.where(present, self.actor.sizes, 0))

    @cached_property
    def below(self) -> NDArray[np.int64]:
        """Counts of every layer below the levels of the query, zeros among them."""
        return np.asarray(np.add.reduceat(self.reading.rows["below"], self.actor.starts, axis=0))

    @cached_property
    def zeros(self) -> NDArray[np.float64]:
        """Zero elements of every layer."""
        return self.actor.by_layer(self.reading.rows["zero"])

    @cached_property
    def share_of_nonzero(self) -> NDArray[np.float64]:
        """1 / nonzero elements of every layer; NaN where there are none, or nothing was counted."""
        if not self.reading.counted:
            return np.full(len(self.sizes), np.nan)
        nonzero = self.sizes - self.zeros
        return 1.0 / np.where(nonzero > 0, nonzero, np.nan)

    @cached_property
    def moved(self) -> NDArray[np.float64]:
        """Sums over the sampled weights of every layer: update and weight squares, pushed, absorbed."""
        steps = self.steps
        assert steps is not None
        table = np.stack(
            [steps[name] for name in ("update_squares", "weight_squares", "pushed", "absorbed")]
        )
        return np.asarray(np.add.reduceat(table, self.actor.starts, axis=1))

    def nothing(self) -> NDArray[np.float64]:
        """NaN for every layer."""
        return np.full(len(self.actor.layers), np.nan)
