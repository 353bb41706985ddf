"""A graph as a placement problem: operators with two times, data with a transfer time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from torchstone.core.text import Text
from torchstone.dataflow.device.profile import DeviceProfile, Interval, Work
from torchstone.dataflow.graph.dag import PRODUCES, USES, VARIABLE, DAGNode, ExecutionDAG
from torchstone.dataflow.placement.catalogued import CataloguedCall, Look, look_up

HOST = -1
"""Stands for the program around the pipeline: what it gives comes from the CPU, what it needs
must be there."""
CONSUMER = -2
"""Stands for a model on the device that takes the results: they must be there."""


_MOST = 0.5
"""Share of the values of a variable from which on all of them are taken for results."""
_FEW = 3
"""Calls below which a median says nothing: one that was interrupted would decide."""
_ALIKE = 4.0
"""Calls of one function whose data differ by less than this factor have one rate."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: seconds here and there; `device_seconds` is None where it cannot run there.

    Both are what is planned with: the median of warm calls here, the slow end of what is expected
    there, so that what moves pays in any case."""

    node: int
    cpu_seconds: float
    device_seconds: float | None
    stays: Text = Text("", "")
    """Why it cannot move."""
    device_range: Interval | None = None
    launches: int = 0
    """Kernels of one call, as is usual for it."""


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
    other_seconds: float = 0.0
    """Of the CPU, whatever moves: Python, files, decoding."""


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
    stay = (op.cpu_seconds for place, op in enumerate(problem.operators) if place not in moved)
    cpu = problem.other_seconds + sum(stay)
    device = sum(problem.operators[place].device_seconds or 0.0 for place in moved)
    bus, nbytes, transfers = 0.0, 0, 0
    for datum in problem.data:
        there = datum.maker in moved
        if any((user in moved or user == CONSUMER) != there for user in datum.users):
            bus += datum.seconds
            nbytes += datum.nbytes
            transfers += datum.transfers
    return Split(cpu, device, bus, nbytes, transfers)


def cost_of_homes(problem: PlacementProblem, homes: Mapping[int, str]) -> Split:
    """The cost with operators on the devices that are named by place; what is not named stays. From
    one device to another data go through the host: two transfers."""
    moved = {place for place in homes if problem.operators[place].device_seconds is not None}
    split = cost_of(problem, moved)
    bus, nbytes, transfers = 0.0, 0, 0
    for datum in problem.data:
        home = homes.get(datum.maker) if datum.maker in moved else None
        ends = {
            homes.get(user) if user in moved else None for user in datum.users if user != CONSUMER
        }
        if home is None:  # once to every device that needs it
            times = max(len(ends - {None}), CONSUMER in datum.users)
        else:  # once back, and on to every other device
            others = ends - {home}
            times = bool(others) + len(others - {None})
        bus += times * datum.seconds
        nbytes += times * datum.nbytes
        transfers += times * datum.transfers
    return Split(split.cpu, split.device, bus, nbytes, transfers)


def movable_names(supported: Mapping[str, Iterable[str]]) -> frozenset[str]:
    return frozenset(name for names in supported.values() for name in names)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the pipeline runs in."""

    batch: int = 1
    """Calls that share a launch and a transfer."""
    workers: int = 0
    """Processes of a DataLoader that share the work of the CPU; 0: the main process does it."""
    consumer_on_device: bool = False
    """What takes the results is on the device anyway."""
    allow_rounding: bool = False
    other_seconds: float = 0.0
    """Of the pipeline outside of operators: Python, files, decoding."""


def problem_from(
    dag: ExecutionDAG,
    profile: DeviceProfile,
    movable: frozenset[str],
    setting: Setting = Setting(),  # noqa: B008 - frozen
    look: Look = look_up,
) -> PlacementProblem:
    """The problem that a graph poses."""
    placed = list(dag.operators())
    seconds = warm_seconds(placed)
    places = {node.node_id: place for place, node in enumerate(placed)}
    inputs: dict[int, list[DAGNode]] = defaultdict(list)
    for source, target, kind in dag.edges:
        if kind == USES and target in places:
            inputs[target].append(dag.nodes[source])
    return PlacementProblem(
        tuple(
            _operator(node, warm, profile, _call(node, inputs[node.node_id], movable, setting, look), setting)
            for node, warm in zip(placed, seconds, strict=True)
        ),
        tuple(_data(dag, places, profile, setting)),
        setting.other_seconds / max(setting.workers, 1),
    )  # fmt: skip


def _call(
    node: DAGNode, inputs: Sequence[DAGNode], movable: frozenset[str], setting: Setting, look: Look
) -> CataloguedCall:
    stays = _reason_to_stay(node, movable)
    if stays.en:
        return CataloguedCall(stays)
    found = look(node, inputs)
    if not found.stays.en and not found.is_exact and not setting.allow_rounding:
        return CataloguedCall(
            Text(
                f"only within rounding of the original ({found.case}): allow it with --allow-rounding",
                f"与原函数仅在舍入误差内一致（{found.case}）：如可接受请加 --allow-rounding",
            )
        )
    return found


def warm_seconds(nodes: Sequence[DAGNode]) -> list[float]:
    """Seconds of all calls of each operator on the CPU. Random sizes leave operators of one call each:
    those take the median rate of their function's calls on data of about the same size."""
    alike: dict[str, list[DAGNode]] = defaultdict(list)
    for node in nodes:
        alike[node.name].append(node)
    return [_warm_seconds(node, alike[node.name]) for node in nodes]


def _warm_seconds(node: DAGNode, same_function: Sequence[DAGNode]) -> float:
    own = node.performance.get("warm", node.seconds)
    size = _touched(node) / node.count
    if node.count >= _FEW or not size:
        return own
    rates = [
        other.performance.get("warm", other.seconds) / _touched(other)
        for other in same_function
        if size / _ALIKE < _touched(other) / other.count < size * _ALIKE
        for _ in range(min(other.count, _FEW))
    ]
    return median(rates) * _touched(node) if len(rates) >= _FEW else own


def _touched(node: DAGNode) -> float:
    return node.performance.get("bytes_in", 0.0) + node.performance.get("bytes_out", 0.0)


def _operator(
    node: DAGNode, warm: float, profile: DeviceProfile, call: CataloguedCall, setting: Setting
) -> Operator:
    stays = call.stays
    touched = _touched(node)
    if (
        not stays.en
        and profile.memory_bytes
        and touched / node.count * setting.batch > profile.memory_bytes
    ):
        stays = Text("its data do not fit into the device's memory", "其数据放不进设备内存")
    here = warm / max(setting.workers, 1)
    if stays.en:
        return Operator(node.node_id, here, None, stays)
    calls = ceil(node.count / setting.batch)
    work = Work(warm, calls, touched, node.performance.get("bytes_out", 0.0))
    there = profile.time_of(node.name, work, call.kernels)
    return Operator(node.node_id, here, there.high, stays, there, call.kernels.usual)


def _reason_to_stay(node: DAGNode, movable: frozenset[str]) -> Text:
    if node.kind == "expression":
        return Text(
            "written with an operator (`a - b`); only function calls can be moved",
            "用运算符书写（`a - b`）；只有函数调用可以迁移",
        )
    if node.name not in movable:
        return Text(
            "no GPU implementation available",
            "没有可用的 GPU 实现",
        )
    return Text("", "")


def _data(
    dag: ExecutionDAG, places: Mapping[int, int], profile: DeviceProfile, setting: Setting
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
            yield from _of_variable(
                node, makers[node.node_id], users[node.node_id], profile, setting
            )
    for source, target in direct:  # a graph without variables: the maker's output travels
        size = dag.nodes[source].performance.get("bytes_out", 0.0)
        count = ceil(dag.nodes[source].count / setting.batch)
        seconds = profile.transfer_seconds(size, count)
        yield Datum(places[source], (places[target],), seconds, int(size), count)


def _of_variable(
    node: DAGNode, makers: list[int], users: list[int], profile: DeviceProfile, setting: Setting
) -> Iterable[Datum]:
    if not makers and not users:
        return
    count = ceil(node.count / setting.batch)
    taker = CONSUMER if setting.consumer_on_device else HOST
    nbytes = int(node.performance.get("bytes", float(node.nbytes)))
    seconds = profile.transfer_seconds(nbytes, count)
    # what nothing in the graph uses, or what the program holds at the end, is a result
    share = node.performance.get("held", 0.0) / node.count
    needed = (*users, taker) if share >= _MOST or not users else tuple(users)
    for maker in makers or [HOST]:
        yield Datum(maker, needed, seconds, nbytes, count)
        if taker not in needed and share:  # the last round of a loop leaves its variables behind
            yield Datum(maker, (taker,), seconds * share, int(nbytes * share), ceil(count * share))
