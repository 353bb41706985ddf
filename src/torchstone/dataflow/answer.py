"""The first screen of a plan: what it moves, what it gains, what stays and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.pictures import DataGraph, Part, Stack
from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.dataflow.placement.planning import seconds_words
from torchstone.dataflow.plan import Estimate, MigrationPlan, PlannedOperator

WORTH = 1.05
"""Times faster from which on a plan is worth it: what is less is within the spread of the times."""
_NAMED = 3
"""Functions and reasons that are named in a sentence."""


def plan_answer(
    plan: MigrationPlan, subject: str, saved: str, graph: DataGraph | None = None
) -> Answer:
    """Of a plan."""
    estimates = {item.name: item for item in plan.estimates}
    here, planned = estimates["all_cpu"], estimates["plan"]
    moved = [op for op in plan.operators if op.device != "cpu"]
    pays = bool(moved) and here.seconds >= WORTH * planned.high
    if moved:
        names, gain = _names(moved), _gain(here, planned)
        before, after = human(here.seconds, "s"), seconds_words(planned.low, planned.high)
        headline = Text(
            f"Move {names.en} to {_devices(moved)}: {before} → {after} ({gain}×)",
            f"把 {names.zh} 移到 {_devices(moved)}：{before} → {after}（{gain} 倍）",
        )
        if not pays:
            headline = Text(
                f"Moving hardly pays: {before} → {after} ({gain}×) with {names.en} on {_devices(moved)}",
                f"迁移几乎没有收益：把 {names.zh} 移到 {_devices(moved)} 后 {before} → {after}（{gain} 倍）",
            )
    elif not any(op.device_seconds is not None for op in plan.operators):
        headline = Text(
            f"Nothing can move: no operator of {subject} has a counterpart on the device",
            f"没有可迁移的算子：{subject} 的算子在设备上都没有对应实现",
        )
    else:
        headline = Text(
            f"Moving does not pay: the plan leaves all of {subject} on the CPU",
            f"迁移不划算：计划把 {subject} 全部留在 CPU",
        )
    return Answer(
        headline=headline,
        state="good" if pays else "plain",
        about=(
            Fact(Text("device", "设备"), ", ".join(d for d in plan.devices if d != "cpu") or "cpu"),
            Fact(Text("goal", "目标"), _GOALS.get(plan.goal, plan.goal)),
            *(Fact(Text("times there", "设备用时依据"), how) for how in plan.assumptions[:1]),
        ),
        tiles=_plan_tiles(plan, estimates, pays),
        pictures=(_bars(plan), *((graph,) if graph is not None else ())),
        lines=tuple(_stays(plan)),
        assumptions=(*plan.assumptions, _UNPROVEN),
        next=(f"torchstone flow run SCRIPT --plan {saved}",) if moved and saved else (),
    )  # fmt: skip


_GOALS = {
    "latency": Text("latency (calls run one after the other)", "延迟（逐个调用）"),
    "throughput": Text("CPU, bus and device overlap", "CPU、总线与设备重叠执行"),
}
_UNPROVEN = Text(
    "times on the device are estimates (kernels counted, launches and bytes priced), and results are not compared yet: `flow run` measures and compares",
    "设备上的时间为估计值（按 kernel 数、启动开销与字节数计算），结果尚未比对：`flow run` 会实测并比对",
)


def _gain(here: Estimate, planned: Estimate) -> str:
    least = here.seconds / planned.high if planned.high else 1.0
    most = here.seconds / planned.low if planned.low else least
    return f"{least:.2f}" if most < 1.05 * least else f"{least:.2f}–{most:.2f}"


def _plan_tiles(
    plan: MigrationPlan, estimates: dict[str, Estimate], pays: bool
) -> tuple[Tile, ...]:
    planned = estimates["plan"]
    movable = [op for op in plan.operators if op.device_seconds is not None]
    gap = _gap(plan, planned)
    return (
        Tile(Text("with the plan", "按计划"), seconds_words(planned.low, planned.high), gap, "good" if pays else "plain"),
        Tile(Text("all on the CPU", "全部在 CPU"), human(estimates["all_cpu"].seconds, "s"), _outside(plan)),
        Tile(Text("all that can move", "能移的全移"), seconds_words(estimates["all_device"].low, estimates["all_device"].high),
             Text(f"{len(movable)} of {len(plan.operators)} operators can", f"{len(plan.operators)} 个算子中 {len(movable)} 个可移")),
        Tile(Text("moved over the bus", "总线传输"), human(planned.transfer_bytes, "B"),
             Text(f"{planned.transfers:,} transfers, {human(planned.transfer_seconds, 's')}", f"{planned.transfers:,} 次，{human(planned.transfer_seconds, 's')}")),
        Tile(Text("results", "结果"), Text("not compared yet", "尚未比对"), Text("`flow run` compares them", "由 `flow run` 比对")),
    )  # fmt: skip


def _outside(plan: MigrationPlan) -> Text:
    if not plan.other_seconds:
        return Text("medians of warm calls", "热调用的中位数")
    other = human(plan.other_seconds, "s")
    return Text(
        f"{other} of it outside of operators; medians of warm calls",
        f"其中算子之外 {other}；热调用的中位数",
    )


def _gap(plan: MigrationPlan, planned: Estimate) -> Text:
    if plan.bound_seconds is None or not planned.seconds:
        return Text("", "")
    gap = planned.seconds / plan.bound_seconds - 1 if plan.bound_seconds else 0.0
    if gap < 1e-6:
        goal = _GOALS[plan.goal]
        return Text(
            f"no placement is faster for {goal.en}, at the slow end of these times",
            f"按这些时间的慢端计，就“{goal.zh}”而言没有更快的方案",
        )
    return Text(f"within {gap:.2%} of the bound", f"与下界相差不超过 {gap:.2%}")


def _bars(plan: MigrationPlan) -> Stack:
    planned = next(item for item in plan.estimates if item.name == "plan")
    parts = (
        Part(Text("on the CPU", "CPU"), planned.cpu_seconds),
        Part(Text("on the device", "设备"), planned.device_seconds),
        Part(Text("transfers", "传输"), planned.transfer_seconds),
    )
    return Stack(
        Text("Time with the plan", "按计划的时间"), tuple(part for part in parts if part.value), "s",
        Text("estimated", "估计"),
    )  # fmt: skip


def _stays(plan: MigrationPlan) -> list[Text]:
    """What moves and what stays, the slowest first, each with its reason."""
    moves = _grouped_by_function(op for op in plan.operators if op.device != "cpu")[:_NAMED]
    stays = _grouped_by_function(op for op in plan.operators if op.device == "cpu")[:_NAMED]
    said = [
        Text(f"{op.function} moves to {op.device}: {op.reason.en}", f"{op.function} 移到 {op.device}：{op.reason.zh}")
        for op, _ in moves
    ]  # fmt: skip
    return [
        *said,
        *(Text(f"{op.function} stays ({human(seconds, 's')}): {op.reason.en}",
               f"{op.function} 留在 CPU（{human(seconds, 's')}）：{op.reason.zh}") for op, seconds in stays),
    ]  # fmt: skip


def _grouped_by_function(
    operators: Iterable[PlannedOperator],
) -> list[tuple[PlannedOperator, float]]:
    """Of every function and reason the slowest operator and the time of all, the slowest first."""
    ordered = sorted(operators, key=lambda op: -op.cpu_seconds)
    groups: dict[tuple[str, str], list[PlannedOperator]] = {}
    for op in ordered:
        # the reason of a move has figures of its own in every place
        reason = op.reason.en if op.device == "cpu" else ""
        groups.setdefault((op.function, reason), []).append(op)
    found = [(group[0], sum(op.cpu_seconds for op in group)) for group in groups.values()]
    return sorted(found, key=lambda pair: -pair[1])


def _names(operators: Sequence[PlannedOperator]) -> Text:
    ordered = sorted(operators, key=lambda op: -op.cpu_seconds)
    names = list(dict.fromkeys(op.function for op in ordered))
    shown = names[:_NAMED]
    more = len(names) - len(shown)
    return Text(
        ", ".join(shown) + (f" and {more} more" if more else ""),
        "、".join(shown) + (f" 等 {len(names)} 个函数" if more else ""),
    )


def _devices(operators: Sequence[PlannedOperator]) -> str:
    return ", ".join(sorted({op.device for op in operators}))
