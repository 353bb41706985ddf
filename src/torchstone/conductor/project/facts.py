"""What is known of a project before any tool has looked at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchstone.core.place import Place

_AXIS = re.compile(r"(^|[-_])(tp|pp|ep|sp|cp|dp|\w*parallel|stages|shards)([-_]|$)")
"""Options for the size of one axis of a layout of ranks."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command line of the project's own documentation."""

    arguments: tuple[str, ...] = ()
    ranks: int = 1
    folder: str = ""
    """Where it is started, from the root of the project."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A script that a person starts."""

    path: str
    launches: tuple[Launch, ...] = ()
    """As the documentation starts it, in its order."""
    trains: bool = False
    launched: bool = False
    """It reads RANK or WORLD_SIZE, or makes a process group: a launcher starts it."""
    switches: tuple[str, ...] = ()
    """Words that turn on what the documented starts leave off: mixed precision, checkpoints."""
    required: tuple[str, ...] = ()
    """Words for arguments that it insists on, where nothing documents a start."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the first documented start with one process, else of the first start, else small values."""
        first = self.alone or (self.launches[0] if self.launches else Launch(self.required))
        return first.arguments

    @property
    def ranks(self) -> int:
        """Processes of the largest documented start."""
        return max((item.ranks for item in self.launches), default=1)

    @property
    def alone(self) -> Launch | None:
        return next((item for item in self.launches if item.ranks == 1), None)

    @property
    def widest(self) -> Launch | None:
        """The documented start that asks for most, with every switch on; on twice the ranks where
        one axis takes them all: only then two axes are seen together."""
        base = max(
            self.launches, key=lambda item: (item.ranks, len(item.arguments)), default=Launch()
        )
        pairs = zip(base.arguments, base.arguments[1:], strict=False)
        one_axis = base.ranks > 1 and any(
            value == str(base.ranks) and _AXIS.search(name) for name, value in pairs
        )
        missing = tuple(_without(self.switches, base.arguments))
        if not missing and not one_axis:
            return None
        return Launch((*base.arguments, *missing), base.ranks * (2 if one_axis else 1), base.folder)

    @property
    def together(self) -> Launch | None:
        """The first documented start with several processes."""
        return next((item for item in self.launches if item.ranks > 1), None)


def _without(switches: tuple[str, ...], given: tuple[str, ...]) -> Iterator[str]:
    """Switches with their values, where the command does not set them."""
    for place, word in enumerate(switches):
        owner = word if word.startswith("-") else switches[place - 1]
        if owner not in given:
            yield word


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that the project uses, and the lines that show it."""

    name: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Tests:
    """The project's own tests."""

    files: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class GitState:
    """Where the work tree stands."""

    commit: str = ""
    dirty: int = 0
    """Files that differ from the commit."""


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """The project as its source shows it; nothing was run."""

    name: str
    files: int
    lines: int
    torch: str = ""
    """The oldest torch that its requirements admit; empty where they do not say."""
    frameworks: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    """What its data code is written with."""
    entry_points: tuple[EntryPoint, ...] = ()
    models: tuple[Place, ...] = ()
    """Classes of models; their names are the scopes."""
    training_loops: tuple[Place, ...] = ()
    parallel: tuple[Feature, ...] = ()
    precision: tuple[Feature, ...] = ()
    components: tuple[Feature, ...] = ()
    data: tuple[Place, ...] = ()
    tests: Tests = Tests()
    buildable: tuple[str, ...] = ()
    """Names of models that are built without arguments."""
    checkpoints: tuple[str, ...] = ()
    """Files of tensors that lie in the project."""
    git: GitState | None = None
    unread: tuple[str, ...] = ()
    """Files that are no Python of this version."""

    def uses(self, *names: str) -> bool:
        """Whether any of these features was seen."""
        every = (*self.parallel, *self.precision, *self.components)
        return any(feature.name in names for feature in every)
