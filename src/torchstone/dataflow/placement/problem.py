"""A graph as a placement problem: operators with two times, data with a transfer time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil

from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import PRODUCES, USES, VARIABLE, DAGNode, ExecutionDAG
from torchstone.dataflow.placement.profile import DeviceProfile

HOST = -1
"""Stands for the program around the pipeline: what it gives comes from the CPU, what it needs
must be there."""


_MOST = 0.5
"""Share of the values of a variable from which on all of them are taken for results."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: seconds here and there; `device_seconds` is None where it cannot run there."""

    node: int
    cpu_seconds: float
    device_seconds: float | None
    stays: Text = Text("", "")
    """Why it cannot move."""


@dataclass(frozen=True, slots=True)
class Datum:
    """One value: who makes it, who needs it, and what it costs to bring over, once per direction."""

    maker: int
    """Place of the operator, or HOST."""
    users: tuple[int, ...]
    seconds: float
    nbytes: int
    transfers: int


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """Operators by place, and the data between them."""

    operators: tuple[Operator, ...]
    data: tuple[Datum, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """What one placement costs, in seconds."""

    cpu: float
    device: float
    bus: float
    nbytes: int
    transfers: int

    @property
    def one_after_the_other(self) -> float:
        return self.cpu + self.device + self.bus

    @property
    def overlapped(self) -> float:
        return max(self.cpu, self.device, self.bus)


def cost_of(problem: PlacementProblem, moved: frozenset[int] | set[int]) -> Split:
    """The cost with these operators (by place) on the device."""
    cpu = sum(op.cpu_seconds for place, op in enumerate(problem.operators) if place not in moved)
    device = sum(problem.operators[place].device_seconds or 0.0 for place in moved)
    bus, nbytes, transfers = 0.0, 0, 0
    for datum in problem.data:
        there = datum.maker in moved
        if any((user in moved) != there for user in datum.users):
            bus += datum.seconds
            nbytes += datum.nbytes
            transfers += datum.transfers
    return Split(cpu, device, bus, nbytes, transfers)


def movable_names(supported: Mapping[str, Iterable[str]]) -> frozenset[str]:
    return frozenset(name for names in supported.values() for name in names)


def problem_from(
    dag: ExecutionDAG, profile: DeviceProfile, movable: frozenset[str], batch: int = 1
) -> PlacementProblem:
    """The problem that a graph poses. `batch` calls share a launch and a transfer."""
    placed = list(dag.operators())
    places = {node.node_id: place for place, node in enumerate(placed)}
    return PlacementProblem(
        tuple(_operator(node, profile, movable, batch) for node in placed),
        tuple(_data(dag, places, profile, batch)),
    )


def _operator(
    node: DAGNode, profile: DeviceProfile, movable: frozenset[str], batch: int
) -> Operator:
    stays = _reason_to_stay(node, movable)
    touched = node.performance.get("bytes_in", 0.0) + node.performance.get("bytes_out", 0.0)
    if (
        not stays.en
        and profile.memory_bytes
        and touched / node.count * batch > profile.memory_bytes
    ):
        stays = Text("its data do not fit into the device's memory", "其数据放不进设备内存")
    seconds = None
    if not stays.en:
        seconds = profile.seconds(node.name, node.seconds, touched, ceil(node.count / batch))
    return Operator(node.node_id, node.seconds, seconds, stays)


def _reason_to_stay(node: DAGNode, movable: frozenset[str]) -> Text:
    if node.kind == "expression":
        return Text(
            "an operator of the language: only functions can be replaced",
            "语言自身的运算符：只有函数可以被替换",
        )
    if node.name not in movable:
        return Text(
            "has no counterpart among the functions that can move",
            "在可迁移的函数中没有对应实现",
        )
    return Text("", "")


def _data(
    dag: ExecutionDAG, places: Mapping[int, int], profile: DeviceProfile, batch: int
) -> Iterable[Datum]:
    makers: dict[int, list[int]] = defaultdict(list)
    users: dict[int, list[int]] = defaultdict(list)
    direct: list[tuple[int, int]] = []
    for source, target, kind in dag.edges:
        if kind == PRODUCES and source in places and target not in places:
            makers[target].append(places[source])
        elif kind == USES and target in places and source not in places:
            users[source].append(places[target])
        elif source in places and target in places:
            direct.append((source, target))
    for node in dag.nodes.values():
        if node.node_type == VARIABLE:
            yield from _of_variable(node, makers[node.node_id], users[node.node_id], profile, batch)
    for source, target in direct:  # a graph without variables: the maker's output travels
        size = dag.nodes[source].performance.get("bytes_out", 0.0)
        count = ceil(dag.nodes[source].count / batch)
        seconds = profile.transfer_seconds(size, count)
        yield Datum(places[source], (places[target],), seconds, int(size), count)


def _of_variable(
    node: DAGNode, makers: list[int], users: list[int], profile: DeviceProfile, batch: int
) -> Iterable[Datum]:
    if not makers and not users:
        return
    count = ceil(node.count / batch)
    nbytes = int(node.performance.get("bytes", float(node.nbytes)))
    seconds = profile.transfer_seconds(nbytes, count)
    # what nothing in the graph uses, or what the program holds at the end, is a result
    share = node.performance.get("held", 0.0) / node.count
    needed = (*users, HOST) if share >= _MOST or not users else tuple(users)
    for maker in makers or [HOST]:
        yield Datum(maker, needed, seconds, nbytes, count)
        if HOST not in needed and share:  # the last round of a loop leaves its variables behind
            yield Datum(maker, (HOST,), seconds * share, int(nbytes * share), ceil(count * share))
