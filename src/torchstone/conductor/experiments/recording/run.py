"""What one run of a program did, as far as relations ask for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.core.place import NOWHERE, Place
from torchstone.observe.non_finite import NonFinite
from torchstone.starting.obstacles import Obstacle


@dataclass(frozen=True, slots=True)
class Loss:
    """A backward pass."""

    value: float
    step: int
    place: Place


@dataclass(frozen=True, slots=True)
class Step:
    """An optimizer step."""

    optimizer: int
    rates: tuple[float, ...]
    place: Place
    alignment: float = 1.0
    """Cosine between the gradient in use and the sum of what the backward passes since the last clearing
    gave; not a number where there was none."""
    cleared: bool = False
    """No parameter has a gradient although a backward pass was made since the last step."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a loader, by its samples."""

    loader: int
    turn: int
    """How often the loader was started before."""
    samples: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Loader:
    """A loader that was used, with its data set."""

    data: Any
    place: Place
    """Where it was made."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A scheduler of torch that was made for an optimizer."""

    scheduler: Any
    optimizer: int
    place: Place


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Two operands whose shapes were stretched into a table that nobody asked for."""

    place: Place
    operator: str
    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LossInput:
    """What a loss was given, by its values."""

    place: Place
    loss: str
    kind: str
    """`probabilities`, `log-probabilities` or `other`."""


@dataclass(frozen=True, slots=True)
class Classification:
    """A mean loss over classes, before the first update."""

    value: float
    classes: int
    place: Place


@dataclass(frozen=True, slots=True)
class MovedState:
    """A state that was taken, and saved only after the weights that it refers to had moved on."""

    taken: Place
    saved: Place
    steps: int
    """Optimizer steps in between."""


@dataclass(slots=True)
class Run:
    """Everything that was written down."""

    root: Path
    script: str
    ended: str = ""
    """Why the script ended before its end; "time" where it was stopped; empty where it ran through."""
    last_lines: str = ""
    """The last lines that it printed."""
    failed_at: Place = NOWHERE
    obstacle: Obstacle | None = None
    """What it lacked, where that is what ended it."""
    stack: tuple[Place, ...] = ()
    """Lines of the project that the exception went through, the innermost first."""
    calls: list[Call] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    loaders: dict[int, Loader] = field(default_factory=dict)
    trained: set[int] = field(default_factory=set)
    """Loaders whose batch was the last one before a backward pass."""
    broadcasts: list[Broadcast] = field(default_factory=list)
    first_classification: Classification | None = None
    loss_inputs: list[LossInput] = field(default_factory=list)
    restores: list[Place] = field(default_factory=list)
    """Calls of load_state_dict whose tensors are the module's own: they restore nothing."""
    saved_states: int = 0
    """States of modules that were saved."""
    moved_states: list[MovedState] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    autocast: bool = False
    """A region of autocast that is switched on was made."""
    live: list[tuple[int, int]] = field(default_factory=list)
    """Optimizer steps so far, and tensors with a history that were alive then."""
    non_finite: NonFinite | None = None
    non_finite_step: int = 0
    """Optimizer steps before it."""
