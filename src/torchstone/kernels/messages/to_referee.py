"""Questions to the referee, each followed by its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.kernels.messages.facts import PlannedCase
from torchstone.kernels.messages.trees import AnswerTree, Layout, Tree


@dataclass(frozen=True, slots=True)
class Opened:
    """The process is ready; what is closed around it."""

    walls: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing else is to be said."""


@dataclass(frozen=True, slots=True)
class OpenReferee:
    """Load a problem."""

    source: str
    framework: str
    seeds: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """Draw the problem's own inputs; above so many elements they are cut (0: as usual)."""

    most_elements: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is known of a problem from its own inputs."""

    cases: list[PlannedCase]
    small: bool
    """The inputs are too large for all gates and were cut."""
    double: bool
    seeds: int
    weights_bytes: int
    heavy: bool
    """Every case is costly: its weights are large, or its inputs where they cannot be cut."""
    writes_inputs: list[bool]
    constant: bool
    """The reference gives one value everywhere."""
    aliases: bool
    """The reference answers with memory of its inputs."""
    evaluated: str = ""
    """Why the model is judged in eval() alone."""


@dataclass(frozen=True, slots=True)
class PlanFamilies:
    """Cases of all families of values and smaller sizes; `most` of each where they are costly, 0: all."""

    level: int
    size_level: int
    most: int


@dataclass(frozen=True, slots=True)
class PlanOwnSmall:
    """The problem's own inputs cut to small sizes."""

    level: int


@dataclass(frozen=True, slots=True)
class PlanLarger:
    """Sizes beyond the problem's own, one after the other; beyond `long`, too, unless it is 0."""

    level: int
    long: int


@dataclass(frozen=True, slots=True)
class PlanLengths:
    """One size after the other at every length up to the longest; 0: at a few."""

    longest: int


@dataclass(frozen=True, slots=True)
class PlanSlender:
    """One side short or long beside the shortest others; `beyond` is what one block may hold."""

    beyond: int


@dataclass(frozen=True, slots=True)
class Planned:
    """Cases that were made, families that this problem cannot have, and whether sizes were cut for them."""

    cases: list[PlannedCase]
    skipped: dict[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass(frozen=True, slots=True)
class GiveInputs:
    """The inputs of a case, in its layout."""

    number: int


@dataclass(frozen=True, slots=True)
class ExchangeElements:
    """A new case that differs from this one in two elements of each input."""

    number: int


@dataclass(frozen=True, slots=True)
class GivenInputs:
    """Inputs, and the seed of the model that takes them."""

    tree: Tree
    seed: int
    number: int = -1
    """Of a new case."""
    differs: bool = False
    """Another answer is right for the new case."""


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """Judge the answer to a case."""

    number: int
    answer: AnswerTree


@dataclass(frozen=True, slots=True)
class GiveWeights:
    """What the model of a seed is made with."""

    seed: int


@dataclass(frozen=True, slots=True)
class Weights:
    """Arguments of the model, its weights by name, and whether it is called in eval()."""

    init: Tree
    state: Tree
    evaluate: bool


@dataclass(frozen=True, slots=True)
class FindProbes:
    """Which trivial kernels would pass?"""


@dataclass(frozen=True, slots=True)
class Probes:
    """By trivial kernel that the problem's own inputs let pass: the families that stop it."""

    found: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class MeasureFull:
    """How much memory do draws of the problem's own inputs take?"""

    most_bytes: int
    most_calls: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Where inputs lie in shared memory, and what of them is no array."""

    inputs: Layout
    tree: Tree


@dataclass(frozen=True, slots=True)
class FillFull:
    """Put what these seeds draw into shared memory."""

    seeds: list[int]


@dataclass(frozen=True, slots=True)
class AnswerFull:
    """Answer the problem's own inputs; keep what judging another answer needs where `judged`."""

    judged: bool


@dataclass(frozen=True, slots=True)
class Room:
    """Where answers lie in shared memory."""

    outputs: Layout


@dataclass(frozen=True, slots=True)
class JudgeFull:
    """Judge the answer in shared memory, of this form; `partial`: what was not written is not asked."""

    answer: AnswerTree
    partial: bool


@dataclass(frozen=True, slots=True)
class CheckFull:
    """Judge the answer to one of several inputs in shared memory."""

    which: int


@dataclass(frozen=True, slots=True)
class TimeReference:
    """Answer so many inputs as a candidate does; whoever asks holds the clock."""

    calls: int


@dataclass(frozen=True, slots=True)
class TimeExchange:
    """Find inputs and hand answers over, with nothing computed between them."""

    calls: int


@dataclass(frozen=True, slots=True)
class MeasureSpeed:
    """How fast is memory of this size written?"""

    bytes: int


@dataclass(frozen=True, slots=True)
class Speed:
    """Of writing."""

    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class MakeTwin:
    """A new case that differs from this one in the numbers of its arrays alone."""

    number: int


@dataclass(frozen=True, slots=True)
class TwinCase:
    """The new case; -1 where the reference does not take it."""

    number: int


@dataclass(frozen=True, slots=True)
class LaunchTrees:
    """What a launch was given, and what its memory held afterwards."""

    before: list[Tree]
    after: list[Tree]


@dataclass(frozen=True, slots=True)
class JudgeOrigin:
    """Did these launches make the answer, from what the case holds? `twins` are those of its twin."""

    number: int
    twin: int
    launches: list[LaunchTrees]
    twins: list[LaunchTrees]
    answer: list[Tree]
    start: int
    """The buffer with which those of the answer begin."""
    ignored: list[tuple[int, ...]]
    """Launch and place of memory that no launch depends on."""


@dataclass(frozen=True, slots=True)
class OriginFacts:
    """The first launch that was given what somebody computed, or the first output that no kernel wrote."""

    launch: int = -1
    output: int = -1
    values: int = 0
    place: int = -1
    """Among the arguments of the launch; -1: a plain number."""
    computed: bool = False
    """The values follow the inputs, and were not moved from them."""


@dataclass(frozen=True, slots=True)
class FindWays:
    """In which ways may weights change between calls?"""


@dataclass(frozen=True, slots=True)
class WeightChange:
    """One way, with the seed of the new weights; `moves`: the old ones would have been seen."""

    way: str
    seed: int
    moves: bool


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways after which the reference answers as it should."""

    found: list[WeightChange]


@dataclass(frozen=True, slots=True)
class FindSettings:
    """Under which settings of torch and of the model does the reference stay as it is?"""


@dataclass(frozen=True, slots=True)
class Settings:
    """Their names."""

    found: list[str]


@dataclass(frozen=True, slots=True)
class FindModes:
    """What differs between training and evaluation?"""


@dataclass(frozen=True, slots=True)
class Modes:
    """Whether eval() gives another answer, what a call in training changes, and cases to try that with."""

    evaluates: bool = False
    changed: list[str] = field(default_factory=list)
    trained: list[PlannedCase] = field(default_factory=list)
    others: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EvaluateCase:
    """A new case: the inputs of this one to the model in evaluation, after calls in training."""

    number: int
    trained: list[int]


@dataclass(frozen=True, slots=True)
class JudgeState:
    """Judge weights and buffers after these calls in training."""

    tree: Tree
    trained: list[int]


@dataclass(frozen=True, slots=True)
class WrongState:
    """Names of buffers that should be others."""

    wrong: list[str]
