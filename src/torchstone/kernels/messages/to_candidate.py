"""Questions to processes that hold a candidate or its kernels, each followed by its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.kernels.messages.facts import (
    BrokenZone,
    Fault,
    KernelLaunch,
    RecordedCall,
    RecordedLaunch,
    Told,
)
from torchstone.kernels.messages.to_referee import Weights
from torchstone.kernels.messages.trees import AnswerTree, SharedQuestion, Tree


@dataclass(frozen=True, slots=True)
class Mode:
    """How a candidate is held while it runs."""

    record: bool = False
    """Calls of C functions are recorded."""
    ghost: bool = False
    """Kernels do nothing."""
    order: str = "forward"
    """Of programs and threads."""
    plain: bool = False
    """As in use: nothing is watched."""
    kernels_only: bool = False
    without_compiler: bool = False
    without_words: bool = False
    """What an exception says stays in the process."""


@dataclass(frozen=True, slots=True)
class OpenCandidate:
    """Load a candidate, or its kernels alone."""

    source: str
    implementation: str
    mode: Mode
    prototypes: dict[str, list[str]] = field(default_factory=dict)
    """Functions of its C source, with the types of their parameters."""


@dataclass(frozen=True, slots=True)
class BuildModel:
    """Make `ModelNew` with the weights of a seed."""

    seed: int
    weights: Weights


@dataclass(frozen=True, slots=True)
class Built:
    """A model was made."""

    known: bool
    """The names of its weights are the problem's, or what they hold tells which is which."""
    weights: int


@dataclass(frozen=True, slots=True)
class Reweigh:
    """Give the model that is changed between calls other weights."""

    way: str
    weights: Weights


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a case is called."""

    fill: str = "nan"
    """What stands in memory that nobody wrote."""
    model: int = -1
    """The seed of the model, where it is not the one of the case."""
    evaluate: bool | None = None
    """In evaluation, in training, or as it is."""
    record_launches: bool = False
    reuse: bool = False
    """In the memory of the last call."""


@dataclass(frozen=True, slots=True)
class CallModel:
    """Run one case."""

    tree: Tree
    seed: int
    options: CallOptions = CallOptions()


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call did: its answer or its error, and all that was seen while it ran."""

    error: Told | None = None
    answer: AnswerTree | None = None
    """At the problem's own sizes only its form; the elements lie in shared memory."""
    aliases: list[str] = field(default_factory=list)
    """Whose memory the answer lies in."""
    previous_changed: bool = False
    """An answer that was given before has become another."""
    drawn: bool = False
    """Random numbers were drawn."""
    inputs_after: list[str] = field(default_factory=list)
    """Digests of the inputs; empty for plain numbers."""
    launches: int = 0
    programs: int = 0
    left_out: int = 0
    """Programs that there was no time for."""
    work: int = 0
    """Interpreted operations."""
    kernels: list[KernelLaunch] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    zones: list[BrokenZone] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    """What computed outside of the kernels."""
    records: list[RecordedCall] = field(default_factory=list)
    recorded: list[RecordedLaunch] = field(default_factory=list)
    recorded_from: int = 0
    """The first buffer of recorded launches."""
    trouble: str = ""
    """Why launches could not be recorded."""
    changed: int = -1
    """At the problem's own sizes: the first input that was changed."""


@dataclass(frozen=True, slots=True)
class BurstCase:
    """A case of a burst; its buffers begin at `start`."""

    tree: Tree
    seed: int
    start: int


@dataclass(frozen=True, slots=True)
class RunBurst:
    """Run cases with nothing between them; the first one `times` times more."""

    cases: list[BurstCase]
    setting: str
    times: int


@dataclass(frozen=True, slots=True)
class BurstAnswer:
    """One answer of a burst, its buffers from `start` on, or the error in its place."""

    error: Told | None = None
    answer: AnswerTree | None = None
    start: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class BurstReply:
    """All answers of a burst, and what was seen of their memory."""

    answers: list[BurstAnswer]
    overlapping: list[int] = field(default_factory=list)
    """Answers that lie in the memory of another one."""
    tires: bool = False
    """After many calls the answer to the same question was another one."""
    ring: bool = False
    """Of many answers, all of them kept, two lie in the same memory."""


@dataclass(frozen=True, slots=True)
class TellState:
    """Weights and buffers of the model of a seed."""

    seed: int


@dataclass(frozen=True, slots=True)
class State:
    """By their names in the problem."""

    tree: Tree


@dataclass(frozen=True, slots=True)
class TimeCalls:
    """Answer inputs in shared memory with nothing watched; whoever asks holds the clock."""

    number: int
    question: SharedQuestion


@dataclass(frozen=True, slots=True)
class Timed:
    """The number of the question that was answered."""

    number: int


@dataclass(frozen=True, slots=True)
class AskNothing:
    """Ask the C functions for nothing, so many times."""

    times: int


@dataclass(frozen=True, slots=True)
class RunInFull:
    """Answer the problem's own inputs at their own sizes; an interpreter has so many seconds for its programs."""

    seconds: float
    question: SharedQuestion


@dataclass(frozen=True, slots=True)
class LaunchKernel:
    """Launch a kernel once more."""

    launch: RecordedLaunch


@dataclass(frozen=True, slots=True)
class Launched:
    """Numbers of the memory that is handed back, and what the kernel returned."""

    memory: list[int]
    returned: Tree
