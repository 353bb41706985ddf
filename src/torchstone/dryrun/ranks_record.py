"""What playing all ranks leaves behind: plain data that passes from process to process."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.core.place import Place
from torchstone.dryrun.record import Hazard, Memory, OperatorError, Progress, Record


@dataclass(frozen=True, slots=True)
class Side:
    """What some of the ranks do where others do something else."""

    ranks: tuple[int, ...]
    text: str
    """The operation, `(ended)`, or an exception."""
    stack: tuple[Place, ...] = ()
    inside: str = ""
    text_zh: str = ""
    """The same in Chinese, where it is more than a call."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One arrow of the picture of who waits for whom."""

    rank: int
    waits_for: tuple[int, ...]
    text: str
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class RankFault:
    """One way in which the ranks do not go together."""

    rule: str
    reason: str
    """What differs: operation, shape, dtype, root, reduce, splits, group, exit, cycle, p2p."""
    sides: tuple[Side, ...]
    group: str = ""
    position: int = 0
    branch: Place = Place()
    branch_text: str = ""
    waits: tuple[Wait, ...] = ()
    cycle: tuple[int, ...] = ()
    local_value: Place = Place()
    """Where the program asked for a value that may differ from rank to rank."""
    error: OperatorError | None = None
    hazard: Hazard | None = None


@dataclass(frozen=True, slots=True)
class RankHazard:
    """Something that runs and is probably not what was meant, and the ranks that do it."""

    hazard: Hazard
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """One communication on a lane."""

    op: str
    group: str
    place: Place
    phase: str = ""
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """Ranks that communicate in the same way, and what they do."""

    ranks: tuple[int, ...]
    marks: tuple[Mark, ...]
    total: int
    ending: str = "end"


@dataclass(frozen=True, slots=True)
class Volume:
    """Bytes that one rank moves in one step."""

    op: str
    link: str
    """`node` when all members are on one node, else `network`."""
    phase: str
    inside: str
    calls: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RanksRecord:
    """What came of playing all ranks."""

    world_size: int
    local_world_size: int
    played: tuple[int, ...]
    passes: int
    matches: int
    faults: tuple[RankFault, ...] = ()
    lanes: tuple[Lane, ...] = ()
    volume: tuple[Volume, ...] = ()
    progress: Progress = field(default_factory=Progress)
    """Of each part, as often as the rank that ran it most."""
    unreached: tuple[str, ...] = ()
    """Parts that the program has and that no rank came to before it was stopped."""
    record: Record | None = None
    """Of the rank that tells most: one that raised, or rank 0."""
    hazards: tuple[RankHazard, ...] = ()
    memory: tuple[tuple[int, int], ...] = ()
    """Peak bytes by rank."""
    largest: Memory | None = None
    """Of the rank with the highest peak."""
    died: tuple[int, ...] = ()
    """Ranks whose process ended without a record."""
    out_of_time: tuple[int, ...] = ()
    """Ranks that were ended at the time limit."""
    real_parameters: bool = False
    cpu_seconds: float = 0.0

    @property
    def steps(self) -> int:
        return self.progress.optimizer_steps
