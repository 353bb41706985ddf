"""Larger evidence: series, tables and pictures as data.

They stand apart from the plain facts because most runs of a linter never need them, and a class
costs half a millisecond to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from torchstone.core.evidence import Command, Diff, Number, Snippet, State
from torchstone.core.text import Text, Words

Cell = Text | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Series:
    """Values over steps or time."""

    kind: ClassVar[str] = "series"
    name: Words
    x: tuple[float, ...]
    y: tuple[float, ...]
    unit: str
    how: Words
    x_name: str = "step"
    marks: tuple[float, ...] = ()
    """Places on the x axis that are marked, such as alerts."""
    mark_names: tuple[Words, ...] = ()
    """What each mark is, in the same order; may be shorter."""
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    """The usual range at each point, drawn as a band; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns."""

    kind: ClassVar[str] = "table"
    name: Words
    columns: tuple[Words, ...]
    rows: tuple[tuple[Cell, ...], ...]
    how: Words = ""
    units: tuple[str, ...] = ()
    """Of the columns, where they have one; numbers are then shown scaled."""

    def without(self, *names: Words) -> Table:
        """The table with some columns left out."""
        kept = [i for i, name in enumerate(self.columns) if name not in names]
        units = (*self.units, *("" for _ in range(len(self.columns) - len(self.units))))
        return Table(
            self.name,
            tuple(self.columns[i] for i in kept),
            tuple(tuple(row[i] for i in kept) for row in self.rows),
            self.how,
            tuple(units[i] for i in kept),
        )


@dataclass(frozen=True, slots=True)
class TensorStats:
    """What one tensor holds, as a handful of numbers."""

    kind: ClassVar[str] = "tensor_stats"
    name: Words
    shape: tuple[int, ...]
    dtype: str
    stats: Mapping[str, float] = field(default_factory=dict)
    how: Words = ""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a recorded run."""

    kind: ClassVar[str] = "trace_step"
    run: str
    step: int
    action: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Several curves over one axis."""

    kind: ClassVar[str] = "plot"
    name: Words
    series: tuple[Series, ...]
    x_name: str = ""
    y_name: str = ""
    log_x: bool = False
    log_y: bool = False
    bars: bool = False


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A grid of values; None is an empty place. `x_name` says what the columns are."""

    kind: ClassVar[str] = "heatmap"
    name: Words
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    unit: str
    how: Words
    log: bool = False
    x_name: Words = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """One node of a Tree: its own value includes its children's."""

    name: str
    value: float
    children: tuple[Branch, ...] = ()
    group: str = ""
    """What kind of thing it is, such as the class of a module: nodes of one kind share a colour."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A weighted tree, drawn as a flame graph."""

    kind: ClassVar[str] = "tree"
    name: Words
    root: Branch
    unit: str
    how: Words


@dataclass(frozen=True, slots=True)
class Vertex:
    """One node of a Graph."""

    id: str
    label: str
    group: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Edge:
    """One arrow of a Graph."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Boxes and arrows."""

    kind: ClassVar[str] = "graph"
    name: Words
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class DataVertex:
    """One operator of a DataGraph."""

    label: str
    fold: int
    """Vertices of one number have the same structure around them: they are drawn as one, and
    apart when a reader opens them."""
    seconds: float = 0.0
    nbytes: int = 0
    """Made by it."""
    devices: tuple[str, ...] = ()
    """Where it runs in each stage of the graph."""
    place: str = ""
    """File and line."""


@dataclass(frozen=True, slots=True)
class Link:
    """Data that go from one vertex of a DataGraph to another, both by their place."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class DataGraph:
    """A large graph of operators: folded, searched, coloured by time, bytes or device."""

    kind: ClassVar[str] = "data_graph"
    name: Words
    vertices: tuple[DataVertex, ...]
    links: tuple[Link, ...]
    stages: tuple[Words, ...] = ()
    """Such as before and after: shown side by side."""
    how: Words = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a Stack."""

    name: Words
    value: float


@dataclass(frozen=True, slots=True)
class Limit:
    """A place on the scale of a Stack that must not be passed, such as a device's memory."""

    name: Words
    value: float


@dataclass(frozen=True, slots=True)
class Stack:
    """Parts of a whole as one bar, with limits marked on its scale."""

    kind: ClassVar[str] = "stack"
    name: Words
    parts: tuple[Part, ...]
    unit: str
    how: Words = ""
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One of a Strip: its name, how it ended, and why."""

    name: Words
    state: State
    note: Words = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """Checks in the order in which they were made."""

    kind: ClassVar[str] = "strip"
    name: Words
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """One bar of a Timeline. Without times the spans follow each other, one unit each."""

    name: Words
    start: float
    length: float
    """0 where it is not known how long it took."""
    state: State = "plain"
    note: Words = ""
    lane: str = ""
    link: str = ""
    """Name of the Document that has the details."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened one after the other, in lanes."""

    kind: ClassVar[str] = "timeline"
    name: Words
    spans: tuple[Span, ...]
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Mark:
    """One event of a Lane; marks that stand at the same `column` belong together."""

    column: int
    label: str
    state: State = "plain"
    note: Words = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """The events of one class of processes, in order."""

    name: Words
    marks: tuple[Mark, ...]
    state: State = "plain"


@dataclass(frozen=True, slots=True)
class Wait:
    """A lane that waits for another, both by their place, and in what."""

    lane: int
    other: int
    what: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Events of several processes side by side, and who waits for whom."""

    kind: ClassVar[str] = "lanes"
    name: Words
    lanes: tuple[Lane, ...]
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A longer text that is there when it is wanted: a prompt, an answer, a file."""

    kind: ClassVar[str] = "document"
    name: Words
    text: str
    language: str = ""
    """`python`, `diff`, `json` or nothing."""
    note: Words = ""
    state: State = "plain"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do: what, where, what is known of it, and the command that does it."""

    title: Words
    where: str
    facts: tuple[Words, ...] = ()
    state: State = "plain"
    state_name: Words = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Things to do, the first one first."""

    kind: ClassVar[str] = "tasks"
    name: Words
    tasks: tuple[Task, ...]


Evidence = (
    Snippet
    | Number
    | Diff
    | Command
    | Series
    | Table
    | TensorStats
    | TraceStep
    | Plot
    | Heatmap
    | Tree
    | Graph
    | DataGraph
    | Stack
    | Strip
    | Timeline
    | Lanes
    | Document
    | Tasks
)
