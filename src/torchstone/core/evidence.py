"""Small tagged facts that stand behind a finding, and pictures as data.

Each kind is drawn by one file of its own name in `render/draw/`, for the terminal and for HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Snippet:
    """Lines of source with the columns that matter marked."""

    kind: ClassVar[str] = "snippet"
    path: str
    line: int
    """Number of the first line in `text`."""
    text: str
    mark_line: int = 0
    mark_start: int = 0
    mark_end: int = 0
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """One value with its unit, its spread and how it was obtained."""

    kind: ClassVar[str] = "number"
    name: str
    value: float
    unit: str
    how: str
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Values over steps or time."""

    kind: ClassVar[str] = "series"
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    unit: str
    how: str
    x_name: str = "step"
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns."""

    kind: ClassVar[str] = "table"
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    how: str = ""


@dataclass(frozen=True, slots=True)
class TensorStats:
    """What one tensor holds, as a handful of numbers."""

    kind: ClassVar[str] = "tensor_stats"
    name: str
    shape: tuple[int, ...]
    dtype: str
    stats: Mapping[str, float] = field(default_factory=dict)
    how: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff."""

    kind: ClassVar[str] = "diff"
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that was run, or that would show more."""

    kind: ClassVar[str] = "command"
    line: str
    exit_code: int | None = None
    output: str = ""


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
    name: str
    series: tuple[Series, ...]
    x_name: str = ""
    y_name: str = ""
    log_x: bool = False
    log_y: bool = False
    bars: bool = False


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A grid of values; None is an empty place."""

    kind: ClassVar[str] = "heatmap"
    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    unit: str
    how: str
    log: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """One node of a Tree: its own value includes its children's."""

    name: str
    value: float
    children: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class Tree:
    """A weighted tree, drawn as a flame graph."""

    kind: ClassVar[str] = "tree"
    name: str
    root: Branch
    unit: str
    how: str


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
    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]


Evidence = (
    Snippet
    | Number
    | Series
    | Table
    | TensorStats
    | Diff
    | Command
    | TraceStep
    | Plot
    | Heatmap
    | Tree
    | Graph
)
KINDS: dict[str, type[Evidence]] = {
    kind.kind: kind
    for kind in (
        Snippet, Number, Series, Table, TensorStats, Diff, Command, TraceStep,
        Plot, Heatmap, Tree, Graph,
    )
}  # fmt: skip
