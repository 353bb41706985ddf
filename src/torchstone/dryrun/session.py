"""What is known while the user's program runs: counts, answers, modules, findings of this path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.core.place import Place
from torchstone.core.text import Text, Words
from torchstone.dryrun.record import Assumption, Hazard, Operand, OperatorError, Progress, Replica
from torchstone.dryrun.settings import ScriptSettings
from torchstone.observe.compat.fakes import FakeTensor, FakeTensorMode
from torchstone.observe.where import PROGRAM


class EndOfRun(BaseException):
    """Ends the user's program from inside: enough was seen. No `except Exception` catches it."""

    def __init__(self, how: str, detail: Words = "") -> None:
        super().__init__(how, detail)
        self.how = how
        self.detail = detail
        self.spot = PROGRAM.here(2)


Counted = Literal[
    "optimizer_steps", "backwards", "training_forwards", "evaluation_forwards", "full_batches",
    "remainder_batches", "saves", "loads", "operators", "hooks", "compiled",
]  # fmt: skip


@dataclass
class Counts:
    """Running totals of one path."""

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
    compiled: int = 0

    def add(self, name: Counted, count: int = 1) -> None:
        """It has happened so often more."""
        setattr(self, name, getattr(self, name) + count)

    def frozen(self) -> Progress:
        return Progress(**vars(self))


@dataclass(frozen=True, slots=True)
class OutermostCall:
    """A module is called that no other module calls."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    records_gradients: bool


@dataclass(frozen=True, slots=True)
class TensorFaked:
    """A fake tensor stands for a real one from now on: for a parameter, or for values that are not known."""

    real: torch.Tensor
    fake: torch.Tensor


@dataclass(frozen=True, slots=True)
class BatchUsed:
    """The program is done with a batch of a dataset."""

    dataset: Any
    place: Place
    backwards: int
    """When it was given the batch."""
    evaluation_forwards: int


RunEvent = OutermostCall | TensorFaked | BatchUsed
R = TypeVar("R", OutermostCall, TensorFaked, BatchUsed)


@dataclass(frozen=True)
class Questions:
    """What is asked of whoever knows; each is answered in one place, and otherwise by this."""

    choose: Callable[[str, bool], bool] | None = None
    """Answers a question with yes or no, in copies of the program where that pays."""
    answer_scalar: Callable[[torch.Tensor, str], Any] | None = None
    """Where ranks are played: which answers are equal on all ranks is decided there."""
    uniform_questions: Callable[[], int] = lambda: 0
    """How many questions were about values of this rank alone, where ranks are played."""
    replicas: Callable[[], tuple[Replica, ...]] = tuple
    """What this rank should hold in common with others, where ranks are played."""
    number_of: Callable[[torch.Tensor], int] = lambda tensor: 0
    """A number for how a value was made, where ranks are played."""
    give_number: Callable[[torch.Tensor, int], None] = lambda tensor, number: None
    leave: Callable[[], None] = lambda: None
    """Puts the record where it belongs and ends the process, whatever the program is doing."""
    late_hazards: Callable[[], tuple[Hazard, ...]] = tuple
    """What only shows when the program has ended."""
    unfound: Callable[[], tuple[str, ...]] = tuple
    """Paths that the program looked for and did not find, the latest last."""
    looked_for: Callable[[str], Place] = lambda path: Place()
    """The line that looked for one of them."""
    value_of: Callable[[torch.Tensor], torch.Tensor | None] = lambda tensor: None
    """A real tensor with the values of a fake one, where they are known."""
    live_bytes: Callable[[], int] = lambda: 0
    """Bytes alive on the device, where memory is followed."""
    peak_bytes: Callable[[], int] = lambda: 0


@dataclass
class Session:
    """The state of one run. Made once in the process that runs the program; forks copy it."""

    settings: ScriptSettings
    mode: FakeTensorMode
    counts: Counts = field(default_factory=Counts)
    modules: list[nn.Module] = field(default_factory=list)
    batch: str = ""
    answers: Counter[tuple[Words, Words, Place]] = field(default_factory=Counter)
    hazards: dict[tuple[str, str, Place], Hazard] = field(default_factory=dict)
    hazard_counts: Counter[tuple[str, str, Place]] = field(default_factory=Counter)
    errors: dict[int, OperatorError] = field(default_factory=dict)
    """Refused calls by the id of the exception, which `kept` keeps alive."""
    kept: list[BaseException] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    processes: dict[str, None] = field(default_factory=dict)
    addresses: dict[str, None] = field(default_factory=dict)
    is_copy: bool = False
    """In a process that the program has forked itself: what it does is not told."""
    path: int = 0
    parent: int = -1
    branch: Assumption | None = None
    asks: Questions = field(default_factory=Questions)
    held_back: BaseException | None = None
    """What a hook has raised in the backward pass that is under way."""
    ended: EndOfRun | None = None
    totals: dict[StorageWeakRef, int] = field(default_factory=dict)
    """What the values of a storage without values add up to, where that is known: counts of elements."""
    _listeners: dict[type, list[Callable[[Any], None]]] = field(default_factory=dict)

    # -- who listens, and who knows

    def subscribe(self, kind: type[R], listener: Callable[[R], None]) -> None:
        """Hand events of a kind to a function from now on."""
        self._listeners.setdefault(kind, []).append(listener)

    def report(self, event: RunEvent) -> None:
        """Hand an event to those who listen."""
        for listener in self._listeners.get(type(event), ()):
            listener(event)

    def answer(self, asks: Questions) -> None:
        """Who knows the answers from now on."""
        self.asks = asks

    # -- what happens to the run

    def begin_batch(self, words: str) -> None:
        """The program is given a batch; the words are for messages."""
        self.batch = words

    def end_batches(self) -> None:
        """A loader has no more batches."""
        self.batch = ""

    def become_copy(self) -> None:
        """The program has forked itself, and this is the child."""
        self.is_copy = True

    def take_path(self, number: int, branch: Assumption) -> None:
        """This process is a copy that takes the other way at a question."""
        self.parent, self.path, self.branch = self.path, number, branch

    def become_trial(self) -> None:
        """This process is a copy in which one more step is tried."""
        steps = min(self.settings.max_steps, self.counts.optimizer_steps + 1)
        self.settings = replace(self.settings, max_steps=steps, try_fixes=False)

    def hold_back(self, error: BaseException) -> None:
        """Keep an error until torch can be left."""
        self.held_back = self.held_back or error

    def run_out_of_time(self) -> None:
        """Leave at once: no exception, it could be caught, and inside of C++ it would abort."""
        self.ended = self.ended or EndOfRun("time", f"{self.settings.limit_seconds():g} s")
        self.asks.leave()

    def assume(self, question: Words, answer: Words) -> None:
        """Write down a question that was answered without the value."""
        self.answers[question, answer, PROGRAM.here(2)] += 1

    def used_stand_in(self, package: str, what: str) -> None:
        """Write down what the program asked of a package that is not installed."""
        self.answers[
            what, Text(f"a stand-in for {package}", f"{package} 的替身"), PROGRAM.here(2)
        ] += 1

    def note(self, text: str) -> None:
        self.notes[text] = None

    def assumptions(self) -> tuple[Assumption, ...]:
        return tuple(
            Assumption(question, answer, spot, count)
            for (question, answer, spot), count in self.answers.items()
        )

    def hazard(
        self, rule: str, op: str, operands: Callable[[], tuple[Operand, ...]], detail: Words = ""
    ) -> None:
        """Write down a hazard once per line; the operands are described the first time only."""
        key = (rule, op, PROGRAM.here(2))
        self.hazard_counts[key] += 1
        if key not in self.hazards:
            self.hazards[key] = Hazard(rule, op, key[2], self.module_path(), operands(), detail)

    def module_path(self) -> str:
        """The dotted path of the module that runs now, from the outermost one."""
        if not self.modules:
            return ""
        names: list[str] = []
        for outer, inner in zip(self.modules, self.modules[1:], strict=False):
            name = next((name for name, part in outer.named_modules() if part is inner), None)
            if name is None:  # a module that is no part of the one that called it
                names = []
            elif name:
                names.append(name)
        return ".".join(names)

    def module_text(self) -> str:
        """The module that runs now as it prints itself, in one line."""
        if not self.modules:
            return ""
        module = self.modules[-1]
        extra = module.extra_repr().split("\n")[0]
        return f"{type(module).__name__}({extra})"

    def end(self, how: str, detail: Words = "") -> None:
        """End the program here; a program that has caught it once is not asked again."""
        if self.ended is not None:
            self.asks.leave()
        self.ended = self.ended or EndOfRun(how, detail)
        raise self.ended

    def raise_held_back(self) -> None:
        """Raise what was held back while torch could not be left."""
        if self.held_back is not None:
            error, self.held_back = self.held_back, None
            raise error

    def where(self) -> Place:
        return PROGRAM.here(2)


def is_fake(value: object) -> bool:
    return isinstance(value, FakeTensor)


def tensors_in(*values: Any) -> list[torch.Tensor]:
    """The tensors in arguments, a level of lists deep; many times faster than a general walk."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += tensors_in(*value)
        elif isinstance(value, dict):
            found += tensors_in(*value.values())
    return found
