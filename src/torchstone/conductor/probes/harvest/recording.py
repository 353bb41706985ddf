"""What a run of a script did: events in their order, and the modules with their inputs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from torchstone.conductor.probes.harvest.operators import Operator, Producers
from torchstone.conductor.probes.rules import ProbeRule
from torchstone.core.place import NOWHERE, Place
from torchstone.starting.obstacles import Obstacle

E = TypeVar("E", bound="Event")
_CLOSE = 1e-4


@dataclass(frozen=True, slots=True)
class Signature:
    """Two numbers that tell tensors apart, whatever their size."""

    norm: float
    projection: float

    def equals(self, other: Signature) -> bool:
        """Within the rounding of float32 sums in another order."""
        size = max(self.norm, other.norm)
        return (
            abs(self.norm - other.norm) <= _CLOSE * size
            and abs(self.projection - other.projection) <= _CLOSE * size
        )


@dataclass(frozen=True, slots=True)
class ParameterFacts:
    """A parameter at the first optimizer step."""

    name: str
    shape: tuple[int, ...]
    constant: bool
    """All its values are equal, as norms and biases begin: equal on all ranks means nothing."""
    value: Signature
    gradient: Signature
    before_clipping: Signature | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the script did, and where."""

    place: Place
    step: int
    """Optimizer steps that were made before."""


@dataclass(frozen=True, slots=True)
class Backward(Event):
    """A backward pass."""

    loss: float
    elements: int
    scaled: bool
    """The loss came from GradScaler.scale."""
    under_autocast: bool = False
    weight: float = float("nan")
    """The factor of the loss function's mean in it; not a number where it is unknown."""


@dataclass(frozen=True, slots=True)
class Clip(Event):
    """A call of clip_grad_norm_."""

    limit: float
    norm_before: float
    norm_after: float
    scale: float
    """The loss scale that the gradients carried then; 1.0 where none."""
    parameters: frozenset[int]


@dataclass(frozen=True, slots=True)
class OptimizerStep(Event):
    """A call of an optimizer's step, as the optimizer sees the gradients."""

    optimizer: int
    norm: float
    scale: float
    with_gradient: frozenset[int]
    without_gradient: frozenset[int]
    backwards: int
    """Backward passes since the last step or the start."""
    stale: bool
    """Gradients that an earlier step has used are still in there."""
    halves: int = 0
    """float16 parameters that are updated directly."""


@dataclass(frozen=True, slots=True)
class ZeroGrad(Event):
    """Gradients were cleared."""


@dataclass(frozen=True, slots=True)
class Scaling(Event):
    """A call of a GradScaler's method."""

    method: str
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class SchedulerStep(Event):
    """A call of a learning-rate scheduler's step."""

    optimizer_steps: int


@dataclass(frozen=True, slots=True)
class TopCall(Event):
    """The outermost call of a model: not from inside another module."""

    module: int
    training: bool
    grad: bool
    stack: tuple[Place, ...] = ()
    """The lines that led to the call, the innermost first."""
    weights: float = 0.0
    """The sum of the first parameter, where the call has no gradients: it tells whether they change."""

    @property
    def way(self) -> tuple[tuple[str, str], ...]:
        """The functions that led to the call."""
        return tuple((place.path, place.scope) for place in self.stack)


@dataclass(frozen=True, slots=True)
class ModeChange(Event):
    """A call of train() or eval() on a model."""

    module: int
    training: bool


@dataclass(frozen=True, slots=True)
class Save(Event):
    """A call of torch.save."""

    path: str
    keys: frozenset[str]
    kinds: frozenset[str]
    """Which states are inside: model, optimizer, scheduler, scaler."""
    names: tuple[tuple[str, str], ...] = ()
    """Kind and name of what the saving function could have saved."""


@dataclass(frozen=True, slots=True)
class Loss(Event):
    """A loss function was called: its dtype and what the targets are."""

    name: str
    dtype: torch.dtype
    shifted: bool
    """The targets are the input tokens moved by one: the model predicts the next token."""
    stack: tuple[Place, ...] = ()
    counted: int = 0
    """Targets that its mean is taken over; 0 where it is no mean."""


@dataclass(frozen=True, slots=True)
class Collective(Event):
    """A tensor went through a collective."""

    kind: str
    numel: int
    size_bytes: int
    ranks: int
    in_backward: bool
    divided_by: tuple[float, ...] = ()
    """The counts that its values were divided by right before: it holds means."""
    made_at: Place = NOWHERE
    """The line that computed its values."""
    calls: int = 0
    """Calls of the project's modules so far: equal for collectives with none between them."""
    bias: bool = False
    """Its values have a bias in them: they are the output of a linear layer, bias included."""


@dataclass(frozen=True, slots=True)
class GatheredGradient(Event):
    """The backward pass of a function of the project whose forward pass gathers from all ranks."""

    gradient: Signature
    communicates: bool
    """It asks the other ranks for their share."""


@dataclass(frozen=True, slots=True)
class Recomputed(Event):
    """A block that is computed again in the backward pass, with other random numbers."""

    drawn: bool
    """It draws random numbers."""


@dataclass(frozen=True, slots=True)
class LoaderPass(Event):
    """A DataLoader was started."""

    loader: int
    sampler: int
    order: tuple[int, ...]
    """The first indices that its sampler gave."""
    distributed: bool
    shuffles: bool
    again: int
    """How often it was started before."""


@dataclass(frozen=True, slots=True)
class LossTerm(Event):
    """A scalar of a module that takes no part in the backward pass."""

    tensor: torch.Tensor
    added: bool
    """It was added to the loss, but has no gradient; otherwise it never got there."""


@dataclass(slots=True)
class ModuleCall:
    """One call of a module of the project, with copies of its inputs."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: bool
    grad: bool
    place: Place
    top: bool
    number: int
    output: Any = None
    autocast: torch.dtype | None = None


@dataclass(slots=True, eq=False)
class Recording:
    """Everything that one run left."""

    root: Path
    rank: int = 0
    world: int = 1
    script: str = ""
    events: list[Event] = field(default_factory=list)
    calls: list[ModuleCall] = field(default_factory=list)
    modules: list[nn.Module] = field(default_factory=list)
    """Modules of the project's classes, in the order of their making."""
    made_at: dict[int, Place] = field(default_factory=dict)
    optimizers: list[torch.optim.Optimizer] = field(default_factory=list)
    schedulers: list[Any] = field(default_factory=list)
    scalers: list[Any] = field(default_factory=list)
    scaler_places: dict[int, Place] = field(default_factory=dict)
    optimizer_places: dict[int, Place] = field(default_factory=dict)
    autocasts: dict[Place, torch.dtype] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    absorbed: list[tuple[Place, Place, float, torch.dtype]] = field(default_factory=list)
    data_parallel: bool = False
    """A model was wrapped in DistributedDataParallel."""
    batches: list[tuple[Place, str]] = field(default_factory=list)
    """The first batches of loaders, each as a digest."""
    digests: list[str] = field(default_factory=list)
    """The trained parameters at the first step and after it."""
    parameters: list[ParameterFacts] = field(default_factory=list)
    """At the first optimizer step."""
    fresh: dict[int, nn.Module] = field(default_factory=dict)
    """Copies of models as they were at their first call, by the id of the model."""
    scalars: list[tuple[type, torch.Tensor]] = field(default_factory=list)
    """Scalars without a gradient that modules gave back in the first steps, by class."""
    not_probed: dict[str, str] = field(default_factory=dict)
    """What could not be called again, and why."""
    asked: set[str] = field(default_factory=set)
    """Ids of the rules that were asked of something which could have broken them."""
    steps: int = 0
    obstacle: Obstacle | None = None
    """What the script lacked, where that is what ended it."""
    stack: tuple[Place, ...] = ()
    """Lines of the project that its exception went through, the innermost first."""
    ended: str = ""
    """Why the script ended before its end, or empty."""

    def count_step(self) -> None:
        """An optimizer has stepped."""
        self.steps += 1

    def note_data_parallel(self) -> None:
        """A model is wrapped in DistributedDataParallel."""
        self.data_parallel = True

    def end(
        self, why: str, obstacle: Obstacle | None = None, stack: tuple[Place, ...] = ()
    ) -> None:
        """The script has ended before its end."""
        self.ended, self.obstacle, self.stack = why, obstacle, stack

    def asks(self, rule: ProbeRule) -> None:
        """Said by a check when it looks at something that could break the rule."""
        self.asked.add(rule.id)

    def of(self, kind: type[E]) -> Iterator[E]:
        """Every event of a kind, in order."""
        return (event for event in self.events if isinstance(event, kind))

    def forward_operators(self) -> list[Operator]:
        """Operators of the forward passes."""
        return [item for item in self.operators if not item.in_backward]

    def producers(self) -> Producers:
        return _producers(self)

    def top_modules(self) -> list[nn.Module]:
        """Models that the script itself calls, each once."""
        return list({id(call.module): call.module for call in self.calls if call.top}.values())

    def owner_of(self, parameter: int) -> tuple[nn.Module, str] | None:
        """The smallest module of the project that holds a parameter, and its name there."""
        best: tuple[nn.Module, str] | None = None
        size = 1 << 62
        for module in self.modules:
            for name, item in module.named_parameters():
                if id(item) == parameter and (count := sum(1 for _ in module.parameters())) < size:
                    best, size = (module, name), count
        return best


@functools.lru_cache(maxsize=1)
def _producers(run: Recording) -> Producers:
    return Producers(run.forward_operators())
