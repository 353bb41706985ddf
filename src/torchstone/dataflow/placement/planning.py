"""From a graph to a plan: which operators move, what that gains, and why the others stay."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import DAGNode, ExecutionDAG
from torchstone.dataflow.placement.flips import flip_speeds
from torchstone.dataflow.placement.min_cut import best_cut
from torchstone.dataflow.placement.partitioner import Partition
from torchstone.dataflow.placement.pipelined import best_pipelined
from torchstone.dataflow.placement.problem import (
    HOST,
    PlacementProblem,
    Split,
    cost_of,
    movable_names,
    problem_from,
)
from torchstone.dataflow.placement.profile import DeviceProfile, profile_for
from torchstone.dataflow.plan import Estimate, MigrationPlan, PlannedOperator

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan is wanted for."""

    device: str
    """`cuda`, `mps`, `xpu`, `npu`, `cpu`; with a number for that one."""
    device_count: int
    profile: DeviceProfile | None
    supported: Mapping[str, Iterable[str]]
    goal: str = "latency"
    batch: int = 1
    program: str = ""
    program_hash: str = ""

    @property
    def devices(self) -> list[str]:
        if self.device == CPU or ":" in self.device:
            return [self.device] if self.device_count else []
        return [f"{self.device}:{number}" for number in range(self.device_count)]


def supported_functions() -> Mapping[str, Iterable[str]]:
    """The catalogue of operators that can move; empty where it is not installed."""
    try:
        module = importlib.import_module("torchstone.dataflow.migration")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("torchstone.dataflow.migration"):
            raise
        return {}
    found: Mapping[str, Iterable[str]] = module.list_supported_functions()
    return found


def make_plan(
    partitions: Sequence[Partition], dag: ExecutionDAG, request: PlanRequest
) -> MigrationPlan:
    """The best plan for the goal; one that moves nothing where moving does not pay."""
    devices = request.devices
    profile = request.profile or profile_for(devices[0] if devices else CPU)
    movable = movable_names(request.supported) if devices else frozenset()
    problem = problem_from(dag, profile, movable, request.batch)
    moved, bound = _decide(problem, request.goal)
    flips = flip_speeds(problem, moved) if request.goal == "latency" else {}
    homes = _spread(problem, moved, devices)
    operators = tuple(
        _planned(dag.nodes[op.node], place, problem, homes, flips)
        for place, op in enumerate(problem.operators)
    )
    node_devices = {
        str(op.node): homes.get(place, CPU) for place, op in enumerate(problem.operators)
    }
    return MigrationPlan(
        context_device_map=_contexts(operators),
        devices=(CPU, *(device for device in devices if device != CPU)),
        partition_device_map=_of_partitions(partitions, dag, node_devices),
        node_device_map=node_devices,
        operators=operators,
        estimates=_estimates(problem, moved, request.goal),
        goal=request.goal,
        bound_seconds=bound,
        assumptions=_assumptions(profile, request),
        program=request.program,
        program_hash=request.program_hash,
        gpu_count=request.device_count,
    )


def _decide(problem: PlacementProblem, goal: str) -> tuple[frozenset[int], float]:
    if goal == "throughput":
        found = best_pipelined(problem)
        return found.moved, found.bound
    moved = best_cut(problem)
    return moved, cost_of(problem, moved).one_after_the_other


def _spread(
    problem: PlacementProblem, moved: frozenset[int], devices: Sequence[str]
) -> dict[int, str]:
    """Operators that share data stay on one device; groups that do not go to the least busy one."""
    if not moved or not devices:
        return {}
    group = {place: place for place in moved}

    def root(place: int) -> int:
        while group[place] != place:
            group[place] = group[group[place]]
            place = group[place]
        return place

    for datum in problem.data:
        near = [place for place in (datum.maker, *datum.users) if place in moved]
        for other in near[1:]:
            group[root(other)] = root(near[0])
    groups: dict[int, list[int]] = defaultdict(list)
    for place in sorted(moved):
        groups[root(place)].append(place)
    load = dict.fromkeys(devices, 0.0)
    homes: dict[int, str] = {}
    weight = {
        key: sum(problem.operators[p].device_seconds or 0.0 for p in places)
        for key, places in groups.items()
    }
    for key in sorted(groups, key=lambda one: -weight[one]):
        device = min(load, key=load.__getitem__)
        load[device] += weight[key]
        homes |= dict.fromkeys(groups[key], device)
    return homes


def _planned(
    node: DAGNode,
    place: int,
    problem: PlacementProblem,
    homes: Mapping[int, str],
    flips: Mapping[int, float | None],
) -> PlannedOperator:
    op = problem.operators[place]
    device = homes.get(place, CPU)
    made = [datum for datum in problem.data if datum.maker == place] if place in homes else []
    flip = flips.get(place)
    return PlannedOperator(
        context=node.context,
        function=node.name,
        device=device,
        file=node.file,
        line=node.line,
        calls=node.count,
        cpu_seconds=op.cpu_seconds,
        device_seconds=op.device_seconds,
        bytes_in=int(node.performance.get("bytes_in", 0)),
        bytes_out=int(node.performance.get("bytes_out", 0)),
        keep_on_device=bool(made)
        and all(user != HOST and user in homes for d in made for user in d.users),
        reason=op.stays
        if op.stays.en
        else _reason(op.cpu_seconds, op.device_seconds or 0.0, place in homes, flip),
        flips_at=flip,
    )


def _reason(cpu: float, device: float, moves: bool, flip: float | None) -> Text:
    here, there = human(cpu, "s"), human(device, "s")
    if moves:
        if flip is None:
            return Text(f"{here} here, {there} there", f"此处 {here}，设备上 {there}")
        return Text(
            f"{here} here, {there} there; would stay if it were less than {flip:.3g}× as fast there",
            f"此处 {here}，设备上 {there}；若设备上快不到 {flip:.3g} 倍则留在 CPU",
        )
    if flip is None:
        return Text(
            "moving its data costs more than it takes here, at any speed",
            "搬运其数据的开销超过在此执行的时间，设备再快也不值得",
        )
    return Text(
        f"moving does not pay: {here} here, {there} there and the transfer; would move at {flip:.3g}×",
        f"迁移不划算：此处 {here}，设备上 {there} 另加传输；快 {flip:.3g} 倍时才会迁移",
    )


def _contexts(operators: Sequence[PlannedOperator]) -> dict[str, str]:
    """Every function that moves anywhere, with all its contexts: those that stay must be told from
    those that go. With the line where one context has both."""
    moving = {op.function for op in operators if op.device != CPU}
    homes: dict[str, set[str]] = defaultdict(set)
    for op in operators:
        if op.function in moving:
            homes[op.context].add(op.device)
    found: dict[str, str] = {}
    for op in operators:
        if op.function in moving:
            mixed = len(homes[op.context]) > 1
            found[f"{op.context}@{op.line}" if mixed and op.line else op.context] = op.device
    return found


def _of_partitions(
    partitions: Sequence[Partition], dag: ExecutionDAG, devices: Mapping[str, str]
) -> dict[str, str]:
    """The device where most of a part's time is spent."""
    found: dict[str, str] = {}
    for part in partitions:
        times: dict[str, float] = defaultdict(float)
        for node_id in part.nodes:
            if str(node_id) in devices:
                times[devices[str(node_id)]] += dag.nodes[node_id].seconds
        found[str(part.id)] = max(times, key=times.__getitem__, default=CPU)
    return found


def _estimates(problem: PlacementProblem, moved: frozenset[int], goal: str) -> tuple[Estimate, ...]:
    everything = frozenset(
        p for p, op in enumerate(problem.operators) if op.device_seconds is not None
    )
    named = (("plan", moved), ("all_cpu", frozenset[int]()), ("all_device", everything))
    return tuple(_estimate(name, cost_of(problem, places), goal) for name, places in named)


def _estimate(name: str, split: Split, goal: str) -> Estimate:
    seconds = split.overlapped if goal == "throughput" else split.one_after_the_other
    return Estimate(
        name, seconds, split.cpu, split.device, split.bus, split.nbytes, split.transfers
    )


def _assumptions(profile: DeviceProfile, request: PlanRequest) -> tuple[Text, ...]:
    said = [profile.how]
    if not any(True for names in request.supported.values() for _ in names):
        said.append(
            Text("no catalogue of movable functions is installed: nothing can move",
                 "未安装可迁移函数目录：没有函数可以迁移")
        )  # fmt: skip
    if request.batch > 1:
        said.append(
            Text(
                f"{request.batch} calls share a launch and a transfer",
                f"每 {request.batch} 次调用共用一次启动与传输",
            )
        )
    return tuple(said)
