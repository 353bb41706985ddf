"""What a run could not count, as gaps: where it stopped, other threads, unknown operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchstone.core.gap import Gap
from torchstone.core.text import Message, Text
from torchstone.cost.records.idle import idle_parts
from torchstone.cost.records.ledger import Cost, Failure


def gaps_of(cost: Cost) -> list[Gap]:
    """Everything that is missing from the figures."""
    found = [_stopped(cost.failure)] if cost.failure is not None else []
    if cost.elsewhere:
        found.append(_elsewhere(cost))
    if cost.failure is None and (idle := idle_parts(cost)):
        found.append(_never_ran(cost, idle))
    return [*found, *_uncounted(cost)]


def _never_ran(cost: Cost, idle: Mapping[str, int]) -> Gap:
    share = sum(idle.values()) / max(cost.parameters(), 1)
    return Gap(
        ", ".join(list(idle)[:_NAMED]) or "(model)",
        Message(
            "cost-partial",
            Text(
                "never ran: {share} of the parameters, whose cost is not in the figures",
                "从未运行：占参数的 {share}，其代价未计入",
            ),
            {"share": f"{share:.1%}"},
        ),
        "torchstone cost … --input SHAPE, with inputs that reach it",
        failed=True,
        tool="cost",
    )


def _stopped(failure: Failure) -> Gap:
    return Gap(
        failure.module or "(model)",
        Message(
            "cost-stopped",
            Text(
                "the {phase} stopped here, at {operator}: {error}; "
                "what came before is counted, what comes after is not",
                "{phase} 在此处的 {operator} 中止：{error}；之前的已统计，之后的没有",
            ),
            {"phase": failure.phase, "operator": failure.operator, "error": failure.error},
        ),
        "torchstone cost … --input SHAPE, or measure the part that runs",
        failed=True,
        tool="cost",
    )


def _elsewhere(cost: Cost) -> Gap:
    names = ", ".join(list(cost.elsewhere)[:_NAMED])
    if len(cost.elsewhere) > _NAMED:
        names += ", …"
    return Gap(
        names,
        Message(
            "cost-other-thread",
            Text(
                "called from another thread, {calls} calls in all: a dispatch mode sees the thread "
                "it was opened in, so this work is not in the figures",
                "由其他线程调用，共 {calls} 次：调度模式只能看到开启它的线程，因此这些工作未计入",
            ),
            {"calls": str(sum(cost.elsewhere.values()))},
        ),
        "call it in the thread that calls the model, or measure that part by itself",
        failed=True,
        tool="cost",
    )


_NAMED = 4


def _uncounted(cost: Cost) -> Iterator[Gap]:
    whole = cost.total().bytes or 1
    work = cost.by_operator()
    for name in sorted(cost.uncounted):
        share = work[name].bytes / whole
        yield Gap(
            name,
            Message(
                "cost-uncounted",
                Text(
                    "no counter for this operator: {calls} calls, {share} of all bytes moved; "
                    "its FLOPs are not in the total",
                    "该算子没有计数器：调用 {calls} 次，占访存字节的 {share}；其 FLOPs 未计入总数",
                ),
                {"calls": str(work[name].calls), "share": f"{share:.2%}"},
            ),
            "add a counter in torchstone/cost/counters",
            tool="cost",
        )
