"""From a graph to a plan: which operators move, what that gains, and why the others stay."""

from __future__ import annotations

import importlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.dataflow.device.profile import DeviceProfile, Interval, profile_for
from torchstone.dataflow.graph.dag import DAGNode, ExecutionDAG
from torchstone.dataflow.placement.flips import flip_speeds
from torchstone.dataflow.placement.min_cut import best_cut
from torchstone.dataflow.placement.partitioner import Partition
from torchstone.dataflow.placement.pipelined import best_pipelined
from torchstone.dataflow.placement.problem import (
    Operator,
    PlacementProblem,
    Setting,
    cost_of,
    cost_of_homes,
    movable_names,
    problem_from,
)
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
    setting: Setting = Setting()
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


def best_plan(dag: ExecutionDAG, request: PlanRequest) -> MigrationPlan:
    """The best plan for the goal; one that moves nothing where moving does not pay."""
    problem = _problem(dag, request)
    moved, bound = _decide(problem, request.goal)
    homes = _spread(problem, moved, request.devices)
    return _plan(dag, request, problem, homes, bound, ())


def plan_of_partitions(
    partitions: Sequence[Partition], dag: ExecutionDAG, request: PlanRequest
) -> MigrationPlan:
    """Each part of which anything can move on a device of its own, in the order in which they are given;
    with fewer devices than parts they take turns. What cannot move stays. The optimum stands beside it."""
    problem = _problem(dag, request)
    able = {op.node for op in problem.operators if op.device_seconds is not None}
    named = _devices_of_parts(partitions, able, request.devices)
    home_of = {node_id: named[part.id] for part in partitions for node_id in part.nodes}
    homes = {
        place: home_of[op.node]
        for place, op in enumerate(problem.operators)
        if op.node in able and home_of.get(op.node, CPU) != CPU
    }
    moved, bound = _decide(problem, request.goal)
    best = _estimate("optimum", problem, dict.fromkeys(moved, "device"), request.goal)
    plan = _plan(dag, request, problem, homes, bound, (best,))
    return replace(plan, partition_device_map={str(key): name for key, name in named.items()})


def _devices_of_parts(
    partitions: Sequence[Partition], able: set[int], devices: Sequence[str]
) -> dict[int, str]:
    """A part of which nothing can move would leave its device idle: it stays on the CPU."""
    named: dict[int, str] = {}
    turn = itertools.cycle(devices or [CPU])
    for part in partitions:
        named[part.id] = CPU if able.isdisjoint(part.nodes) else next(turn)
    return named


def _problem(dag: ExecutionDAG, request: PlanRequest) -> PlacementProblem:
    movable = movable_names(request.supported) if request.devices else frozenset()
    return problem_from(dag, _profile(request), movable, request.setting)


def _profile(request: PlanRequest) -> DeviceProfile:
    return request.profile or profile_for(request.devices[0] if request.devices else CPU)


def _plan(
    dag: ExecutionDAG,
    request: PlanRequest,
    problem: PlacementProblem,
    homes: Mapping[int, str],
    bound: float,
    more: tuple[Estimate, ...],
) -> MigrationPlan:
    moved = frozenset(homes)
    flips = flip_speeds(problem, moved) if request.goal == "latency" and not more else {}
    operators = tuple(
        _planned(dag.nodes[op.node], place, problem, homes, flips)
        for place, op in enumerate(problem.operators)
    )
    node_devices = {
        str(op.node): homes.get(place, CPU) for place, op in enumerate(problem.operators)
    }
    everything = {p: "device" for p, op in enumerate(problem.operators) if op.device_seconds is not None}  # fmt: skip
    setting = request.setting
    return MigrationPlan(
        context_device_map=_contexts(operators),
        devices=(CPU, *(device for device in request.devices if device != CPU)),
        node_device_map=node_devices,
        operators=operators,
        estimates=(
            _estimate("plan", problem, homes, request.goal),
            *more,
            _estimate("all_cpu", problem, {}, request.goal),
            _estimate("all_device", problem, everything, request.goal),
        ),
        goal=request.goal,
        bound_seconds=bound,
        assumptions=_assumptions(_profile(request), request),
        program=request.program,
        program_hash=request.program_hash,
        gpu_count=request.device_count,
        batch=setting.batch,
        workers=setting.workers,
        consumer="device" if setting.consumer_on_device else "cpu",
        allow_rounding=setting.allow_rounding,
        other_seconds=problem.other_seconds,
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
        device_seconds_low=op.device_range.low if op.device_range is not None else None,
        launches=op.launches,
        bytes_in=int(node.performance.get("bytes_in", 0)),
        bytes_out=int(node.performance.get("bytes_out", 0)),
        keep_on_device=bool(made)
        and all(homes.get(user) == device for d in made for user in d.users),
        reason=op.stays if op.stays.en else _reason(op, place in homes, flip),
        flips_at=flip,
    )


def _reason(op: Operator, moves: bool, flip: float | None) -> Text:
    there_range = op.device_range or Interval(op.device_seconds or 0.0, op.device_seconds or 0.0)
    here, there = human(op.cpu_seconds, "s"), seconds_words(there_range.low, there_range.high)
    if moves:
        if flip is None:
            return Text(f"{here} here, {there} there", f"此处 {here}，设备上 {there}")
        return Text(
            f"{here} here, {there} there; break-even: it must be at least {flip:.3g}× as fast there",
            f"此处 {here}，设备上 {there}；若设备上快不到 {flip:.3g} 倍则留在 CPU",
        )
    kernels = Text(f" ({op.launches} kernels a call)", f"（每次调用 {op.launches} 个 kernel）") if op.launches > 1 else Text("", "")  # fmt: skip
    if flip is None:
        return Text(
            f"moving costs more than the {here} that it takes here, at any speed{kernels.en}",
            f"迁移开销超过在此执行的 {here}，设备再快也不值得{kernels.zh}",
        )
    return Text(
        f"moving does not pay: {here} here, {there} there{kernels.en} and the transfer; would move at {flip:.3g}×",
        f"迁移不划算：此处 {here}，设备上 {there}{kernels.zh}另加传输；快 {flip:.3g} 倍时才会迁移",
    )


def seconds_words(low: float, high: float) -> str:
    """One figure, or two where they differ by more than a twentieth."""
    if high <= low * 1.05:
        return human(high, "s")
    return f"{human(low, 's')}–{human(high, 's')}"


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


def _estimate(
    name: str, problem: PlacementProblem, homes: Mapping[int, str], goal: str
) -> Estimate:
    split = cost_of_homes(problem, homes)
    quick = sum(op.device_range.low if op.device_range else op.device_seconds or 0.0 for op in (problem.operators[p] for p in homes))  # fmt: skip
    at_best = replace(split, device=quick)
    overlapped = goal == "throughput"
    low, high = (
        item.overlapped if overlapped else item.one_after_the_other for item in (at_best, split)
    )
    return Estimate(
        name,
        high,
        split.cpu,
        split.device,
        split.bus,
        split.nbytes,
        split.transfers,
        low,
        high,
    )


def _assumptions(profile: DeviceProfile, request: PlanRequest) -> tuple[Text, ...]:
    said = [profile.how]
    if profile.compiles:
        said.append(
            Text(
                "calls of a kind that comes again are compiled there: as many kernels as they have reductions, and one",
                "重复出现的同类调用会在设备上编译：每次调用的 kernel 数为其归约数加一",
            )
        )
    if not any(True for names in request.supported.values() for _ in names):
        said.append(
            Text("no catalogue of movable functions is installed: nothing can move",
                 "未安装可迁移函数目录：没有函数可以迁移")
        )  # fmt: skip
    setting = request.setting
    if setting.other_seconds:
        other = human(setting.other_seconds, "s")
        said.append(
            Text(
                f"{other} outside of operators (Python, files, decoding) stay whatever moves",
                f"算子之外的 {other}（Python、文件、解码）无论如何都保留",
            )
        )
    if setting.batch > 1:
        said.append(
            Text(
                f"{setting.batch} calls share a launch and a transfer",
                f"每 {setting.batch} 次调用共用一次启动与传输",
            )
        )
    if setting.workers:
        said.append(
            Text(
                f"{setting.workers} DataLoader workers share the work of the CPU",
                f"{setting.workers} 个 DataLoader 工作进程分担 CPU 工作",
            )
        )
    said.append(
        Text("results are needed on the device", "结果需要在设备上")
        if setting.consumer_on_device
        else Text("results are needed on the CPU (--consumer device if a model takes them)",
                  "结果需要在 CPU 上（若由设备上的模型使用，请加 --consumer device）")
    )  # fmt: skip
    return tuple(said)
