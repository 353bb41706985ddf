"""What is known of one call of the training function, and of the call that is under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch that a step was called with."""

    size: int = 0
    elements: int = 0
    digest: int = 0
    """0 where it could not be had."""
    indices: tuple[int, ...] = ()
    """In the data set, where the batch carries them."""
    labelled: bool = False
    """It ends with whole numbers, which may be labels."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """What the model was given."""

    scale: float = nan
    """Root mean square of the first floating tensor, from a sample."""
    sign: float = nan
    """Share of the values in it that are below zero."""
    variety: float = nan
    """Different values among a hundred, where the model is given whole numbers."""
    dead: int | None = None
    """Features that are the same in every sample; None where not looked at."""


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What the model gave, and the gradient that came back to it."""

    scale: float = nan
    """Root mean square, from a sample."""
    zeros: float = nan
    sign: float = nan
    """Shares of outputs that are zero, and that are below zero."""
    gain: float = nan
    """Norm of the weights' gradients against that of the outputs' gradient."""
    slope: float = nan
    """Size of the outputs' gradient against the loss, for a mean over as many outputs."""
    classes: int = 0
    """Values in the last dimension; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Backward:
    """What the backward passes showed."""

    count: int = 0
    """Backward passes that reached a watched parameter."""
    stale: str = ""
    """A parameter whose old gradient the backward pass added to."""
    passes: int = 0
    """Backward passes before this step, where they were compared; 0 elsewhere."""
    lost: bool | None = None
    """Only the last of them was left; None where that could not be told."""
    in_eval: tuple[str, ...] = ()
    """Layers that behave otherwise in evaluation, and were in it during backward."""
    statistics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """A few running means and variances of batch norm layers that were in training mode."""
    norms: dict[str, tuple[float | None, int]] = field(default_factory=dict)
    """Momentum of those layers, and the batches that they have tracked."""

    def and_then(self, other: Backward) -> Backward:
        """What two optimizers' parameters saw together."""
        compared = other if other.passes else self
        return Backward(
            self.count + other.count, other.stale or self.stale, compared.passes, compared.lost,
            other.in_eval, {**self.statistics, **other.statistics}, {**self.norms, **other.norms},
        )  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class RankRows:
    """What the ranks said of an earlier step, when it has just arrived."""

    rows: tuple[RankRow, ...] = ()
    strict: bool = False
    """The ranks are replicas by construction."""
    sharded: bool = False


@dataclass(frozen=True, slots=True)
class TrainingCall:
    """One call of the training function."""

    step: int
    memory: dict[str, object] = field(default_factory=dict)
    """What signals keep from call to call; one for the whole run."""
    random_state: Tensor | None = None
    """Of torch's generator on the host when the call began; a device is not asked for its own."""
    loss: float | None = None
    updates: int = 0
    """Optimizer steps within the call."""
    skipped: int = 0
    """Optimizer steps that the loss scaler left out."""
    scale: float = 1.0
    scaled: bool = False
    """A loss scaler is in use."""
    reloaded: bool = False
    """Other weights were loaded since the last call."""
    batch: Batch = Batch()
    input: ModelInput = ModelInput()
    output: ModelOutput = ModelOutput()
    backward: Backward = field(default_factory=Backward)
    ranks: RankRows = RankRows()
    stretch: float = 0.0
    """How much further a value may go because the batch is of another size."""
    alone: bool = True
    """There is one optimizer, and no gradient of an input is asked for."""
    unowned: tuple[str, ...] = ()
    """Parameters with a gradient that no optimizer moves."""


@dataclass(slots=True)
class CallUnderWay:
    """The call that is under way: what its hooks note until it ends."""

    step: int
    memory: dict[str, object] = field(default_factory=dict)
    random_state: Tensor | None = None
    loss: float | None = None
    updates: int = 0
    skipped: int = 0
    scale: float = 1.0
    scaled: bool = False
    reloaded: bool = False
    batch: Batch = Batch()

    def note_batch(self, batch: Batch) -> None:
        self.batch = batch

    def note_unscaled(self, scale: float) -> None:
        """Gradients are unscaled; the step counts as left out until it is taken."""
        self.scale, self.scaled = scale, True
        self.skipped += 1

    def note_step(self, scaled: bool) -> None:
        """An optimizer has stepped."""
        self.updates += 1
        if scaled:
            self.skipped = max(self.skipped - 1, 0)

    def note_reloaded(self) -> None:
        self.reloaded = True

    def note_loss(self, loss: float | None) -> None:
        self.loss = loss

    def finish(
        self, batch: Batch, input: ModelInput, output: ModelOutput, backward: Backward,
        ranks: RankRows, stretch: float, alone: bool, unowned: tuple[str, ...],
    ) -> TrainingCall:  # fmt: skip
        """The call, once it has ended."""
        return TrainingCall(
            self.step, self.memory, self.random_state, self.loss, self.updates, self.skipped,
            self.scale, self.scaled, self.reloaded, batch, input, output, backward, ranks,
            stretch, alone, unowned,
        )  # fmt: skip

    def so_far(self) -> TrainingCall:
        """What is known of it now."""
        return TrainingCall(
            self.step, self.memory, self.random_state, self.loss, self.updates, self.skipped,
            self.scale, self.scaled, self.reloaded, self.batch,
        )  # fmt: skip
