"""The events of a run become its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from torchstone.dataflow.graph.builder import DAGBuilder
from torchstone.dataflow.graph.dag import OPERATOR, PRODUCES, REGION, USES
from torchstone.dataflow.plan import SEPARATOR, context_key
from torchstone.dataflow.tracing.instrument import transparent_names
from torchstone.dataflow.tracing.recorder import Event
from torchstone.dataflow.tracing.values import ValueFacts

_OPERATORS = {
    "Add": "add", "Sub": "subtract", "Mult": "multiply", "Div": "divide",
    "FloorDiv": "floor_divide", "Mod": "remainder", "Pow": "power", "MatMult": "matmul",
    "LShift": "left_shift", "RShift": "right_shift", "BitOr": "bitwise_or",
    "BitXor": "bitwise_xor", "BitAnd": "bitwise_and", "Lt": "less", "LtE": "less_equal",
    "Gt": "greater", "GtE": "greater_equal", "Eq": "equal", "NotEq": "not_equal",
    "USub": "negative", "Invert": "invert",
}  # fmt: skip
_KINDS = {"item": "getitem", "set": "setitem", "update_item": "setitem"}
_LIBRARIES = {"ndarray": "numpy", "Tensor": "torch", "Image": "PIL"}


@dataclass(frozen=True, slots=True)
class ThreadTrace:
    """The finished events of one thread of one process."""

    name: str
    events: Sequence[Event]
    facts: dict[int, ValueFacts]
    """Of the values of its process."""


@dataclass(slots=True)
class _Item:
    """An event with what the whole run says of it."""

    event: Event
    thread: str
    facts: dict[int, ValueFacts]
    children: list[_Item] = field(default_factory=list)
    parent: _Item | None = None
    reads: list[int] = field(default_factory=list)

    @property
    def is_region(self) -> bool:
        """It has calls inside it and made no data of its own."""
        user = self.event.callee is not None and self.event.callee.user
        return (user or bool(self.children)) and not self.event.makes

    @property
    def is_wrapper(self) -> bool:
        """A library function that did nothing but call the user's."""
        return self.is_region and not (self.event.callee is not None and self.event.callee.user)


def assemble(
    traces: Sequence[ThreadTrace],
    into: DAGBuilder,
    started: int = 0,
    held: AbstractSet[int] = frozenset(),
) -> None:
    """Add the graph of these events to a builder, in the order in which they began. `held`: values
    that the program still holds."""
    items = _linked(traces)
    for item in items:
        if item.children and item.event.makes:
            item.reads.extend(_left_over(item))
    variables = _Variables(
        into,
        {n: event_name(i.event, i.facts).rpartition(".")[2] for i in items for n in i.event.makes},
        held,
    )
    items = [item for item in items if not item.is_wrapper]
    nodes: dict[int, int] = {}
    for item in sorted(items, key=lambda one: one.event.start):
        nodes[id(item)] = _add(item, into, variables, started, nodes)


def _linked(traces: Sequence[ThreadTrace]) -> list[_Item]:
    found: list[_Item] = []
    for trace in traces:
        by_place: dict[int, _Item] = {}
        for place, event in enumerate(trace.events):
            if not event.end:  # under way when the trace ended
                continue
            outer = by_place.get(event.parent)
            item = _Item(event, trace.name, trace.facts, reads=list(event.reads), parent=outer)
            by_place[place] = item
            found.append(item)
            if outer is not None:
                outer.children.append(item)
    return found


def _left_over(item: _Item) -> list[int]:
    """What the calls inside made and nothing inside used: a library function that called back
    (a generator, a lambda) used it itself."""
    used = {number for child in item.children for number in child.reads}
    made = [n for child in item.children for n in (*child.event.makes, *child.event.returns)]
    return [number for number in made if number not in used and number not in item.reads]


def _add(
    item: _Item, into: DAGBuilder, variables: _Variables, started: int, nodes: Mapping[int, int]
) -> int:
    """The number of the node of an event; `nodes` has those of the events before it."""
    event = item.event
    name = event_name(event, item.facts)
    path = _path(item)
    node_id = into.add_function_node(name, context_key(path, name))
    outer = item.parent
    while outer is not None and id(outer) not in nodes:
        outer = outer.parent
    for number in item.reads:
        into.add_edge(variables.node(number, item), node_id, USES)
    made = (*event.makes, *event.returns)
    for number in made:
        into.add_edge(node_id, variables.node(number, item), PRODUCES)
    sizes = [_bytes(number, item) for number in made]
    into.describe(replace(
        into.dag.nodes[node_id], role=REGION if item.is_region else OPERATOR,
        file=event.site.file, line=event.site.line, thread=item.thread,
        start=(event.start - started) * 1e-9,
        parent=nodes[id(outer)] if outer is not None else -1, error=event.error,
        kind="call" if event.callee is not None else "expression",
        arguments=", ".join(shown_constant(value) for value in event.constants),
        performance={
            "execution_time": (event.end - event.start) * 1e-9,
            "self_time": event.own * 1e-9,
            "bytes_in": float(sum(_bytes(number, item) for number in item.reads)),
            "bytes_out": float(sum(sizes)),
            "count": 1.0,
        },
    ))  # fmt: skip
    return node_id


def _bytes(number: int, item: _Item) -> int:
    facts = item.facts.get(number)
    return facts.nbytes if facts else 0


class _Variables:
    """The variable node of every value, made when it is first asked for."""

    def __init__(self, into: DAGBuilder, makers: Mapping[int, str], held: AbstractSet[int]) -> None:
        self._into = into
        self._held = held
        self._makers = makers
        self._nodes: dict[int, int] = {}

    def node(self, number: int, item: _Item) -> int:
        known = self._nodes.get(number)
        if known is not None:
            return known
        facts = item.facts.get(number)
        maker = self._makers.get(number)
        name = (facts.name if facts else "") or (f"{maker}_return" if maker else "input")
        node_id = self._nodes[number] = self._into.add_variable_node(name)
        if number in self._held:
            self._into.dag.nodes[node_id].performance["held"] = 1.0
        if facts is not None:
            self._into.describe(replace(
                self._into.dag.nodes[node_id], nbytes=facts.nbytes, kind=facts.kind,
                shape=tuple(int(size) for size in facts.shape),
                dtype=str(facts.dtype).removeprefix("torch."),
            ))  # fmt: skip
        return node_id


def event_name(event: Event, known: Mapping[int, ValueFacts]) -> str:
    """The function that was called, or the one that an operator stands for."""
    if event.callee is not None:
        return event.callee.name
    site = event.site
    word = _KINDS.get(site.kind) or (site.op if site.kind == "attribute" else _OPERATORS[site.op])
    if site.kind == "update":
        word = f"i{word}"
    kinds = [facts.kind for number in (*event.makes, *event.reads) if (facts := known.get(number))]
    library = next((_LIBRARIES[kind] for kind in kinds if kind in _LIBRARIES), "operator")
    return f"{library}.{word}"


def _path(item: _Item) -> list[str]:
    """The user's functions around a call, outermost first."""
    path: list[str] = []
    outer = item.parent
    callee = outer.event.callee if outer is not None else None
    if outer is not None:
        path = _path(outer)
        if callee is not None and callee.user and not callee.is_object:
            path.append(callee.name.replace(SEPARATOR, "|"))
    site = item.event.site
    here = "" if transparent_names(site.file) else site.function.replace(SEPARATOR, "|")
    entered = callee is not None and callee.user and callee.is_object
    if here and (entered or here not in path[-1:]):
        path.append(here)
    return path


def shown_constant(value: Any) -> str:
    """An argument as it is noted; texts are noted as they are shown."""
    return value if isinstance(value, str) else repr(value)
