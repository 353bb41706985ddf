"""What a file says about calls, in a form small enough to keep for a whole project.

Syntax trees of a large project do not fit into memory. An outline keeps names, calls, bindings and
loops of each function, nothing else, and knows nothing of other files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Name(NamedTuple):
    """A variable by its name."""

    id: str


class Attribute(NamedTuple):
    """`base.name`."""

    base: Expression
    name: str


class Call(NamedTuple):
    """A call; `site` is its number in the function around it."""

    function: Expression
    positional: tuple[Expression, ...]
    named: tuple[tuple[str, Expression], ...]
    site: int


class Mixed(NamedTuple):
    """Anything else that holds values: containers, conditions, subscripts."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = Name | Attribute | Call | Mixed
NOTHING = Mixed(())


class Key(NamedTuple):
    """A function of the project, or the top level of a file (no scope)."""

    path: str
    scope: str


@dataclass(frozen=True, slots=True)
class Site:
    """One call in a function."""

    line: int
    loop: int = -1
    """The innermost loop around it, by its number in the function; -1 outside of loops."""
    seldom: bool = False
    """It runs only now and then: under `if step % n == 0`, on the way out of the loop."""
    trains: bool = False
    """It is a backward pass or an optimizer step."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of a function."""

    first: int
    last: int
    outer: int = -1


@dataclass(slots=True)
class Function:
    """One function, or the top level of a file."""

    key: Key
    owner: str = ""
    """Scope of the class, for a method."""
    first: int = 0
    last: int = 0
    parameters: tuple[str, ...] = ()
    """Names that take positional arguments in order, then those by keyword only."""
    rest: tuple[str, ...] = ()
    """Names of `*args` and `**kwargs`."""
    annotations: dict[str, Expression] = field(default_factory=dict)
    bindings: list[tuple[str, Expression]] = field(default_factory=list)
    """Local names and what is bound to them."""
    iterated: list[tuple[tuple[str, ...], Expression]] = field(default_factory=list)
    """What is looped over or entered, with the names that its items get."""
    stored: list[tuple[Expression, str, Expression]] = field(default_factory=list)
    """Attributes that are assigned: object, name, value."""
    returned: list[Expression] = field(default_factory=list)
    evaluated: list[Expression] = field(default_factory=list)
    """Expressions whose value is used for nothing else."""
    sites: list[Site] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    is_property: bool = False

    @property
    def name(self) -> str:
        return self.key.scope.rpartition(".")[2]

    @property
    def takes_self(self) -> bool:
        return bool(self.owner) and self.parameters[:1] in (("self",), ("cls",))


@dataclass(slots=True)
class Class:
    """One class."""

    key: Key
    bases: tuple[Expression, ...] = ()
    bases_named: tuple[str, ...] = ()
    """The same as qualified names, as far as the imports of the file tell."""
    members: dict[str, list[Expression]] = field(default_factory=dict)
    """What the class itself binds, methods left out."""


@dataclass(slots=True)
class Outline:
    """One file."""

    path: str
    module: str
    is_test: bool
    functions: dict[str, Function] = field(default_factory=dict)
    """By scope; the top level has the empty one."""
    classes: dict[str, Class] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    """Local names of imports, as qualified names."""
    stars: tuple[str, ...] = ()
