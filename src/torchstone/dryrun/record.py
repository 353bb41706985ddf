"""What a run of the user's program leaves behind: plain data that passes from process to process."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.place import Place
from torchstone.core.text import Words
from torchstone.starting.obstacles import Obstacle

NEEDS_RANKS = "needs-ranks"
"""How a run ends that is to be made again; the detail is the number of ranks."""


@dataclass(frozen=True, slots=True)
class Made:
    """One step in the history of a tensor: the call that made it and what came out."""

    op: str
    shape: tuple[int, ...]
    dtype: str
    place: Place = Place()
    module: str = ""


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor that an operator was given."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    is_parameter: bool = False
    history: tuple[Made, ...] = ()
    """How it was made, the latest step first."""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A fix as a change of the source: something appended to one argument of the call, another
    size given to the layer that was called, or both."""

    argument: int = -1
    suffix: str = ""
    layer: str = ""
    """Name of the layer's argument: in_features, in_channels."""
    size: int = 0


NO_CHANGE = SourceChange()


@dataclass(frozen=True, slots=True)
class TriedFix:
    """A change that was put in the place of the failing call, and how far the program then ran."""

    what_en: str
    what_zh: str
    works: bool
    outcome_en: str = ""
    outcome_zh: str = ""
    source: SourceChange = NO_CHANGE


@dataclass(frozen=True, slots=True)
class OperatorError:
    """A call that torch refuses, with all it was given."""

    op: str
    message: str
    place: Place = Place()
    inside: Place = Place()
    """The line of a library that made the call, when it is not the user's own."""
    module: str = ""
    module_text: str = ""
    operands: tuple[Operand, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    inner_op: str = ""
    batch: str = ""
    """Which batch of the data was in use: `full batch`, `remainder batch`."""
    written: tuple[Place, ...] = ()
    """For an in-place write that the backward refuses: where it was written."""
    fixes: tuple[TriedFix, ...] = ()


@dataclass(frozen=True, slots=True)
class Assumption:
    """A question that only real values could answer, and the answer that was given instead."""

    question: Words
    answer: Words
    place: Place
    count: int = 1


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something that runs and is probably not what was meant."""

    rule: str
    op: str
    place: Place
    module: str = ""
    operands: tuple[Operand, ...] = ()
    detail: Words = ""
    count: int = 1
    declared: Place = Place()
    """Where the annotation stands that does not hold."""
    axes: str = ""
    """Sizes of the axis names that were known by then."""


@dataclass(frozen=True, slots=True)
class ObservedArray:
    """A tensor that a function was given or gave back."""

    name: str
    """The parameter, `return`, or `return[0]`; empty for what is no tensor."""
    shape: tuple[int, ...] = ()
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class ObservedFunction:
    """A function of the user's own with the shapes of some of its calls."""

    place: Place
    calls: tuple[tuple[ObservedArray, ...], ...] = ()
    not_tensors: tuple[tuple[str, str], ...] = ()
    """Parameters that held something else, with the name of its type."""


@dataclass(frozen=True, slots=True)
class Stop:
    """An exception that ended the program."""

    exception: str
    message: str
    place: Place = Place()
    inside: Place = Place()
    module: str = ""
    cause: str = "program"
    """`program` (the user's own), `pretend` (fake tensors cannot go on), `network`, `input`,
    `harness` (the dry run itself), the kind of an obstacle, `data` (samples were given, and the dataset is asked for more)."""
    stack: tuple[Place, ...] = ()
    obstacle: Obstacle | None = None
    """What the surroundings lack, where that is the cause."""
    own_raise: bool = False
    """A `raise` or `assert` of the program itself, and nothing that it called."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the program came."""

    optimizer_steps: int = 0
    backwards: int = 0
    training_forwards: int = 0
    evaluation_forwards: int = 0
    full_batches: int = 0
    remainder_batches: int = 0
    saves: int = 0
    loads: int = 0
    operators: int = 0
    hooks: int = 0
    """Calls of hooks of modules and tensors."""
    compiled: int = 0
    """Calls of what the program compiles."""


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Bytes of one kind that were alive at the peak."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes alive on the device over the run."""

    peak_bytes: int = 0
    at_peak: tuple[MemoryPart, ...] = ()
    peak_place: Place = Place()
    peak_phase: str = ""
    modules: tuple[MemoryPart, ...] = ()
    """Activations alive at the peak, by the module that made them."""
    curve: tuple[int, ...] = ()
    phases: tuple[str, ...] = ()
    """The phase at each point of the curve."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What must hold of the sizes of named axes."""

    expression: str
    en: str
    zh: str
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class CompileNote:
    """One place where torch.compile does not get one graph for all calls."""

    kind: str
    """`break` or `recompile`."""
    place: Place
    what: str
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Compilation:
    """What torch.compile would make of the program."""

    notes: tuple[CompileNote, ...] = ()
    graphs: int = 0
    calls: int = 0
    failed: str = ""
    """Why the compiler's front end could not be run over some of it."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A parameter or buffer of one rank; numbers stand for how its values were made."""

    name: str
    is_buffer: bool = False
    members: tuple[int, ...] = ()
    """The ranks that should hold the same values, where the program shows it."""
    first: int = 0
    last: int = 0
    drawn: Place = Place()
    """Where it was filled with random values."""
    stepped: Place = Place()
    """Where the last optimizer step was made with it; for a buffer, where the model is called."""
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One path through the program, from its start to its end or stop."""

    path: int = 0
    parent: int = -1
    branch: Assumption | None = None
    """The `bool(tensor)` at which this path left its parent, with its own answer."""
    ending: str = "end"
    """`end`, `budget`, `time`, `exit`, `error`."""
    ending_detail: Words = ""
    ending_place: Place = Place()
    progress: Progress = Progress()
    unreached: tuple[str, ...] = ()
    """Parts that the program's source has and that it was stopped before: `evaluation`, `saving`."""
    error: OperatorError | None = None
    stop: Stop | None = None
    assumptions: tuple[Assumption, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    memory: Memory | None = None
    written: tuple[str, ...] = ()
    """Files that were written, into the scratch folder only."""
    processes: tuple[str, ...] = ()
    """Commands and copies of itself that the program started."""
    addresses: tuple[str, ...] = ()
    """What it asked of the network, which was refused."""
    notes: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] | None = None
    """Of a symbolic run; None when there was none."""
    compilation: Compilation | None = None
    """Where it was asked for."""
    replicas: tuple[Replica, ...] = ()
    """Where ranks are played: what should be equal on several of them."""
    functions: tuple[ObservedFunction, ...] = ()
    """Where shapes were observed, to be written as annotations."""
