"""What is known of a case, an answer or an error, as processes hand it on."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.kernels.messages.trees import Plain, Tree


@dataclass(frozen=True, slots=True)
class Told:
    """An error of other people's code: its class, words, the line of the executed source, and what follows."""

    kind: str
    text: str
    line: int = 0
    bounds: bool = False
    """An access outside of an array."""
    memory: bool = False
    """No memory was left."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One case of a plan, without its inputs."""

    number: int
    family: str
    seed: int
    shapes: str
    resized: bool = False
    sizes: list[int] = field(default_factory=list)
    """All sizes that may change."""
    group: int = -1
    """Which of the problem's sizes has grown; -1: none, or all; -2: one, out of its turn."""
    size: int = 0
    """What the size has become that stands alone; 0: none does."""


@dataclass(frozen=True, slots=True)
class FormFault:
    """An output of another count, type, shape, dtype or layout than the reference's."""

    what: str
    got: object
    want: object
    output: int = -1


@dataclass(frozen=True, slots=True)
class Wrong:
    """Elements of one output that are wrong in one way; the first of them is shown."""

    index: list[int]
    count: int
    of: int
    got: str
    want: str
    output: int = -1
    """Which output it is, where there are several."""
    last: list[int] = field(default_factory=list)
    here: float | None = None
    """The error of this element, in units of rounding."""
    units: float | None = None
    """The largest error."""
    allowed: float | None = None
    map: list[list[float]] = field(default_factory=list)
    """The share of wrong elements over the output."""
    histogram: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """What is wrong with the values of one output; nothing where all four are None."""

    units: float = 0.0
    unwritten: Wrong | None = None
    pattern: Wrong | None = None
    whole: Wrong | None = None
    error: Wrong | None = None
    convention: int = 0
    """Elements that are not finite where the reference's are by convention."""

    def of_kind(self, kind: str) -> Wrong | None:
        """What is wrong in one of the ways that `WRONG` names."""
        return {
            "unwritten": self.unwritten,
            "pattern": self.pattern,
            "whole": self.whole,
            "error": self.error,
        }[kind]

    @property
    def is_wrong(self) -> bool:
        return any(self.of_kind(kind) is not None for kind in WRONG)


WRONG = ("unwritten", "pattern", "whole", "error")
"""Kinds of wrong values, the plainest first."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause: `code` and what fills the blanks of its words."""

    code: str
    value: float = 0.0
    place: int = 0
    axis: int = 0
    step: int = 0
    op: str = ""
    format: str = ""
    first: int = 0
    last: int = 0
    size: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the referee says of an answer."""

    form: list[FormFault] = field(default_factory=list)
    outputs: list[OutputFacts] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    allowed: float | None = None
    """The largest tolerance that was used, in units of rounding."""
    how: str = ""
    """At the problem's own sizes: what it was compared with."""
    rows: int = 0
    """Slices that were compared in double precision there."""

    @property
    def right(self) -> bool:
        return not self.form and not any(item.is_wrong for item in self.outputs)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a kernel must not do, seen while it ran."""

    kind: str
    where: str
    elements: int


@dataclass(frozen=True, slots=True)
class BrokenZone:
    """A margin that was written into."""

    buffer: str
    side: str
    elements: int


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a Triton launch as a compiler must know it."""

    kind: str
    """pointer, numpy, float, plain, torch_dtype, tuple, constexpr, triton_dtype, function, descriptor or other."""
    name: str = ""
    """The dtype, the function, or the class, as the kind says."""
    value: Plain = None
    aligned: bool = False
    items: list[Argument] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    block: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One Triton launch: the kernel by name and line, and its arguments and options."""

    kernel: str
    line: int
    arguments: dict[str, Argument]
    constants: list[str]
    """Names of what is no argument at run time: other code is made for each value."""
    globals: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedArgument:
    """An argument of a C function: a number, or memory whose bytes are in a buffer."""

    scalar: int | float | None = None
    start: int = 0
    size: int = 0
    buffer: int = -1

    @property
    def is_memory(self) -> bool:
        return self.scalar is None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a C function."""

    function: str
    arguments: list[RecordedArgument]


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """A launch as data, so that another process can launch the kernel again."""

    kernel: str
    args: list[Tree]
    kwargs: dict[str, Tree]
    grid: list[int | list[int]] = field(default_factory=list)

    @property
    def given(self) -> list[Tree]:
        return [*self.args, *self.kwargs.values()]
