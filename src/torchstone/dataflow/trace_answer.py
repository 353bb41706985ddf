"""The first screen of a trace: where all the time goes, the largest part first, and what to do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from torchstone.core.answer import Answer, Tile
from torchstone.core.pictures import DataGraph
from torchstone.core.quantity import human
from torchstone.core.text import Text, Words, words
from torchstone.dataflow.function_totals import FunctionTotal
from torchstone.dataflow.time_use import MODULE, TimeUse
from torchstone.dataflow.view.pictures import time_stack

_NAMED = 3
"""Parts that are named in sentences."""
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
    uses, whole = _decisive(traced)
    tiles = (
        Tile(Text("time of the block", "代码块用时"), human(traced.wall_seconds, "s"), Text("all of it accounted for", "全部计入")),
        Tile(Text("time in operators", "算子用时"), human(in_operators, "s"), Text(f"{operators:,} operators, {classes:,} after folding", f"{operators:,} 个算子，折叠后 {classes:,} 类")),
        Tile(Text("data made", "产生的数据"), made, Text("all results", "全部结果")),
    )  # fmt: skip
    how = Text("own time of each part", "各部分自身用时")
    warnings = [*_raised(failure), *_no_operator(totals)]
    return Answer(
        headline=_headline(subject.name, traced, uses, whole),
        state="warning" if warnings else "plain",
        warnings=tuple(warnings),
        tiles=tiles,
        pictures=(
            time_stack([(use_name(item), item.seconds) for item in uses], how),
            graph,
        ),
        lines=tuple(_line(item, whole) for item in uses[:_NAMED]),
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


def _headline(
    subject: str, traced: TracedTime, uses: Sequence[TimeUse], whole: float
) -> Text:  # fmt: skip
    if not uses or not whole:
        return Text(f"{subject}: nothing was run", f"{subject}：没有执行任何代码")
    wall = human(traced.wall_seconds, "s")
    workers = uses is traced.worker_uses
    named = uses[:_NAMED]
    parts = [
        ", ".join(f"{words(use_name(item), lang)} {item.seconds / whole:.0%}" for item in named)
        for lang in ("en", "zh")
    ]
    where = Text(
        "of its workers' time" if workers else "of that", "工作进程时间" if workers else "其中"
    )
    return Text(
        f"{subject} takes {wall}; {where.en}: {parts[0]}",
        f"{subject} 用时 {wall}；{where.zh}：{parts[1].replace(', ', '、')}",
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
