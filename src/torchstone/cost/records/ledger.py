"""What was counted: plain data, one entry per module, phase, operator and number format.

`flops` are 2 x the multiply-adds of matrix products, attention (full, not causal-halved) and
convolutions. Everything else that computes is in `vector_flops`. `extra_flops` are matrix
products that a kernel does again on top of the algorithm (flash attention forms QKᵀ a second time
in its backward): they are work for the hardware and no part of `flops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torchstone.core.text import Message

FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER = "forward", "backward", "recompute", "optimizer"
PHASES = (FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER)


class Key(NamedTuple):
    """Where work was done: the innermost module, the phase, the operator, the number format."""

    module: str
    """Path as in `named_modules()`; "" is the model itself."""
    phase: str
    operator: str
    """Such as `aten.mm`."""
    dtype: str
    """Number format of the computation, such as `bfloat16`."""


class Tally(NamedTuple):
    """Work that adds up. A named tuple, because there are as many as operators in a model."""

    calls: int = 0
    flops: int = 0
    vector_flops: int = 0
    extra_flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    elements: int = 0
    """Output elements of matrix products, attention and convolutions (fvcore's "activations")."""
    causal_flops: int = 0
    """The part of `flops` that a causal mask makes needless."""

    def __add__(self, other: Tally) -> Tally:  # type: ignore[override]
        return Tally(
            self[0] + other[0],
            self[1] + other[1],
            self[2] + other[2],
            self[3] + other[3],
            self[4] + other[4],
            self[5] + other[5],
            self[6] + other[6],
            self[7] + other[7],
        )

    def __mul__(self, times: int) -> Tally:  # type: ignore[override]
        return Tally(*(part * times for part in tuple(self)))

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


NOTHING = Tally()


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of many tallies."""
    result = NOTHING
    for tally in tallies:
        result = result + tally
    return result


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """One module of the model. Parameters are its own, not those of its children."""

    path: str
    kind: str
    """Name of its class."""
    parameters: int = 0
    parameter_bytes: int = 0
    trainable: int = 0
    buffer_bytes: int = 0
    shared: int = 0
    """Own parameters that an earlier module already owns (tied weights); not in `parameters`."""
    activation_bytes: int = 0
    """Made by this module itself and still held for the backward when the forward ends."""
    peak_bytes: int = 0
    """Most memory in use at any time while this module ran, all of the model's included."""
    replayed: str = ""
    """Path of the layer whose execution stands for this one; empty when it ran itself."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes. Peaks are of everything that is alive: parameters, gradients, activations, all."""

    parameters: int = 0
    buffers: int = 0
    gradients: int = 0
    optimizer: int = 0
    inputs: int = 0
    activations: int = 0
    """Held for the backward when the forward ends; without gradients, the most that
    intermediate tensors take at once."""
    peaks: Mapping[str, int] = field(default_factory=dict)
    """By phase."""
    timeline: tuple[tuple[int, str, int, int], ...] = ()
    """Points (operator number, phase, bytes alive, bytes of activations alive), thinned out."""

    @property
    def peak(self) -> int:
        """Of the first step."""
        return max(self.peaks.values(), default=0)

    @property
    def later_peak(self) -> int:
        """Of the steps after the first, which find the optimizer's state already there."""
        return max(
            (
                size + (0 if phase == OPTIMIZER else self.optimizer)
                for phase, size in self.peaks.items()
            ),
            default=0,
        )


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something the run could not know and took for granted, and where."""

    id: str
    text: Message
    where: str = ""
    """Module path."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """The run stopped here: what came before is counted, what comes after is not."""

    module: str
    operator: str
    error: str
    phase: str = FORWARD


@dataclass(frozen=True)
class Cost:
    """The whole result of one run."""

    entries: Mapping[Key, Tally]
    modules: Mapping[str, ModuleFacts]
    """In the order of `named_modules()`; "" comes first."""
    memory: Memory = Memory()
    uncounted: frozenset[str] = frozenset()
    """Operators without a counter: their bytes are known, their FLOPs are not."""
    assumptions: tuple[Assumption, ...] = ()
    failure: Failure | None = None
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Modules and operators that other threads called, which are not counted, and how often."""
    train: bool = False
    seconds: float = 0.0
    """What the counting itself took."""
    idle: frozenset[str] = frozenset()
    """Modules that hold parameters of which none was used."""

    def select(self, where: Callable[[Key], bool] = lambda _: True) -> Iterator[tuple[Key, Tally]]:
        return ((key, tally) for key, tally in self.entries.items() if where(key))

    def total(self, phase: str | None = None) -> Tally:
        return total(t for k, t in self.entries.items() if phase is None or k.phase == phase)

    def under(self, path: str, phase: str | None = None) -> Tally:
        """Work of a module with all that is inside it."""
        return total(
            tally
            for key, tally in self.entries.items()
            if inside(key.module, path) and (phase is None or key.phase == phase)
        )

    def parameters(self, path: str = "") -> int:
        return sum(item.parameters for name, item in self.modules.items() if inside(name, path))

    def by_operator(self, phase: str | None = None) -> dict[str, Tally]:
        result: dict[str, Tally] = {}
        for key, tally in self.entries.items():
            if phase is None or key.phase == phase:
                result[key.operator] = result.get(key.operator, NOTHING) + tally
        return result

    def by_module(self, phase: str | None = None) -> dict[str, Tally]:
        """Cumulative: a module with all that is inside it, in the order of definition."""
        own: dict[str, Tally] = {}
        for key, tally in self.entries.items():
            if phase is None or key.phase == phase:
                known = own.get(key.module)
                own[key.module] = tally if known is None else known + tally
        result = dict.fromkeys(self.modules, NOTHING)
        for module, tally in own.items():
            for path in ancestors(module):
                result[path] = result.get(path, NOTHING) + tally
        return result

    def renamed(self, **changes: object) -> Cost:
        return replace(self, **changes)  # type: ignore[arg-type]


def thinned(
    taken: list[tuple[str, int, int]], most: int = 600
) -> tuple[tuple[int, str, int, int], ...]:
    """At most so many points of a curve, numbered; the highest of each stretch is the one that
    stays."""
    points = [(number, *point) for number, point in enumerate(taken)]
    step = max(1, -(-len(points) // most))
    if step == 1:
        return tuple(points)
    return tuple(
        max(points[i : i + step], key=lambda point: point[2]) for i in range(0, len(points), step)
    )


def inside(module: str, path: str) -> bool:
    """Is `module` the module at `path`, or somewhere within it?"""
    return not path or module == path or module.startswith(path + ".")


def ancestors(module: str) -> Iterator[str]:
    """The module itself, its parent, … and the model ("")."""
    yield module
    while module:
        module = module.rpartition(".")[0]
        yield module
