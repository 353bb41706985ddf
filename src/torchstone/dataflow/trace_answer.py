"""The first screen of a trace: where all the time goes, the largest part first, and what to do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchstone.core.answer import Answer, Tile
from torchstone.core.pictures import DataGraph
from torchstone.core.quantity import human
from torchstone.core.text import Text, Words, words
from torchstone.dataflow.function_totals import FunctionTotal
from torchstone.dataflow.tracing.time_use import MODULE, TimeUse
from torchstone.dataflow.view.pictures import time_stack

_NAMED = 3
"""Parts that are named in sentences."""
_IMPORTS = 0.05
"""Share of the imports from which on the others are shares of the rest: a trace is mostly shorter than
what is traced, and imports are paid once."""
_WAITS = 0.3
"""Share of waiting, imports left out, from which on the workers' time is what matters."""


@dataclass(frozen=True, slots=True)
class TracedTime:
    """All time of a traced block, and that of its worker processes."""

    wall_seconds: float
    uses: tuple[TimeUse, ...]
    worker_uses: tuple[TimeUse, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceSubject:
    """What was traced, how it ended, and where the graph is."""

    name: str
    failure: str = ""
    saved: str = ""


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts that are named, the largest first, and what they are shares of."""

    uses: Sequence[TimeUse]
    whole: float
    imports: float
    """Seconds that are paid once and left out of the whole; 0 where they are one part among others."""
    of_workers: bool


_NAMES = {
    "import": Text("importing modules", "导入模块"),
    "wait": Text("waiting for other processes", "等待其他进程"),
}
_ADVICE = {
    "python": Text(
        "Python code: vectorise it, cache its results, or give the loader more workers",
        "Python 代码：可向量化、缓存其结果，或增加加载器的工作进程",
    ),
    "import": Text("imports are paid once by every process", "每个进程只需导入一次"),
    "wait": Text(
        "the workers are the bottleneck: more of them, or less work for each sample",
        "瓶颈在工作进程：请增加其数量，或减少每个样本的工作量",
    ),
    "operator": Text(
        "an operator on data: `torchstone flow plan` says whether moving it pays; else cache its results or add workers",
        "对数据的操作：`torchstone flow plan` 给出迁移是否划算；否则可缓存结果或增加工作进程",
    ),
    "library": Text(
        "a library call without arrays (files, texts, decoding): cache its results, or add workers",
        "不涉及数组的库调用（文件、文本、解码）：可缓存结果或增加工作进程",
    ),
}


def use_name(use: TimeUse) -> Words:
    if use.name == MODULE:
        return Text("statements outside of functions", "函数之外的语句")
    return _NAMES.get(use.kind, use.name)


def place_of(use: TimeUse) -> str:
    return f"{os.path.basename(use.file)}:{use.line}" if use.file else ""


def trace_answer(
    traced: TracedTime,
    totals: Sequence[FunctionTotal],
    graph: DataGraph,
    classes: int,
    subject: TraceSubject,
) -> Answer:
    """Of a trace."""
    failure = subject.failure
    operators = sum(item.calls for item in totals)
    in_operators = sum(item.seconds for item in totals)
    made = human(sum(item.bytes_out for item in totals), "B")
    decisive, whole = _decisive(traced)
    uses = _by_class(decisive)
    imports = sum(item.seconds for item in uses if item.kind == "import")
    once = imports if imports > _IMPORTS * whole else 0.0
    rest = [item for item in uses if item.kind != "import"] if once else uses
    tiles = (
        Tile(Text("time of the block", "代码块用时"), human(traced.wall_seconds, "s"), Text("all of it accounted for", "全部计入")),
        Tile(Text("time in operators", "算子用时"), human(in_operators, "s"), Text(f"{operators:,} operators, {classes:,} after folding", f"{operators:,} 个算子，折叠后 {classes:,} 类")),
        Tile(Text("data made", "产生的数据"), made, Text("all results", "全部结果")),
    )  # fmt: skip
    how = Text("own time of each part", "各部分自身用时")
    warnings = [*_raised(failure), *_no_operator(totals)]
    return Answer(
        headline=_headline(subject.name, traced, Shares(rest, whole - once, once, decisive is traced.worker_uses)),
        state="warning" if warnings else "plain",
        warnings=tuple(warnings),
        tiles=tiles,
        pictures=(
            time_stack([(use_name(item), item.seconds) for item in uses], how),
            graph,
        ),
        lines=tuple(_line(item, whole - once) for item in rest[:_NAMED]),
        next=(f"torchstone flow plan {subject.saved}",) if subject.saved and totals else (),
    )  # fmt: skip


def _decisive(traced: TracedTime) -> tuple[Sequence[TimeUse], float]:
    """The parts of the block; those of the workers where the block waits for them."""
    waits, imports = (
        sum(item.seconds for item in traced.uses if item.kind == kind)
        for kind in ("wait", "import")
    )
    if traced.worker_uses and waits > _WAITS * (traced.wall_seconds - imports):
        return traced.worker_uses, sum(item.seconds for item in traced.worker_uses)
    return traced.uses, traced.wall_seconds


def _by_class(uses: Sequence[TimeUse]) -> list[TimeUse]:
    """The largest first, with the methods of a class as one part: a tokeniser that is spread over five of
    them is one thing to a reader. The table has each."""
    groups: dict[tuple[str, str, int], list[TimeUse]] = {}
    for place, use in enumerate(uses):
        is_python = use.kind == "python" and use.name != MODULE
        key = (use.name.partition(".")[0], "", 0) if is_python else (use.name, use.kind, place)
        groups.setdefault(key, []).append(use)
    merged = [_together(name, items) for (name, _, _), items in groups.items()]
    return sorted(merged, key=lambda item: -item.seconds)


def _together(name: str, items: Sequence[TimeUse]) -> TimeUse:
    if len(items) == 1:
        return items[0]
    inner = [item.name.rpartition(".")[2] for item in items if item.name != name]
    named = [one for one in inner if not one.startswith("<")][:_NAMED]
    return replace(
        next((item for item in items if item.file), items[0]),
        name=f"{name} ({', '.join(named)})" if named else name,
        seconds=sum(item.seconds for item in items),
        calls=0,
    )


def _headline(subject: str, traced: TracedTime, shares: Shares) -> Text:
    wall, once = human(traced.wall_seconds, "s"), human(shares.imports, "s")
    paid = Text(f", {once} of it importing modules once", f"，其中导入模块 {once}（仅一次）")
    spent = paid if shares.imports else Text("", "")
    if not shares.uses or shares.whole <= 0:
        return Text(f"{subject} takes {wall}{spent.en}", f"{subject} 用时 {wall}{spent.zh}")
    parts = [
        ", ".join(
            f"{words(use_name(item), lang)} {item.seconds / shares.whole:.0%}"
            for item in shares.uses[:_NAMED]
        )
        for lang in ("en", "zh")
    ]
    where = Text("of the rest", "其余时间中") if shares.imports else Text("of that", "其中")
    if shares.of_workers:
        where = Text("of its workers' time", "工作进程时间")
    return Text(
        f"{subject} takes {wall}{spent.en}; {where.en}: {parts[0]}",
        f"{subject} 用时 {wall}{spent.zh}；{where.zh}：{parts[1].replace(', ', '、')}",
    )


def _line(item: TimeUse, whole: float) -> Text:
    share = f"{item.seconds / (whole or 1.0):.0%}"
    place = place_of(item)
    calls = (
        Text(f" in {item.calls:,} calls", f"，{item.calls:,} 次调用")
        if item.calls
        else Text("", "")
    )
    advice = _ADVICE[item.kind]
    name = use_name(item)
    at = Text(f" at {place}", f"（{place}）") if place else Text("", "")
    return Text(
        f"{words(name, 'en')}{at.en}: {human(item.seconds, 's')} ({share}){calls.en}. {advice.en}",
        f"{words(name, 'zh')}{at.zh}：{human(item.seconds, 's')}（{share}）{calls.zh}。{advice.zh}",
    )


def _raised(failure: str) -> list[Text]:
    if not failure:
        return []
    return [
        Text(
            f"the program raised {failure}: the graph ends there", f"程序抛出 {failure}：图到此为止"
        )
    ]


def _no_operator(totals: Sequence[FunctionTotal]) -> list[Text]:
    if totals:
        return []
    return [
        Text(
            "no operator on arrays, tensors or images was seen: only data of numpy, torch, PIL, OpenCV, pandas and scipy.sparse is followed",
            "没有发现对数组、张量或图像的操作：只跟踪 numpy、torch、PIL、OpenCV、pandas 与 scipy.sparse 的数据",
        )
    ]
