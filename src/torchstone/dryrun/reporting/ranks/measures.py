"""What the ranks communicate, how much, and what each holds in memory."""

from __future__ import annotations

from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.dryrun.ranks_record import Lane, RanksRecord
from torchstone.dryrun.record import Memory
from torchstone.dryrun.reporting.answer import ENDINGS, common_prefix
from torchstone.dryrun.reporting.findings import TOOL
from torchstone.dryrun.reporting.memory import memory_evidence, share_of
from torchstone.dryrun.reporting.progress import assumption_measures, covered_measures
from torchstone.dryrun.reporting.ranks.names import ranks_text
from torchstone.runtime.devices import Device

_BAR = 60
"""Marks of a lane shown in the terminal: a line of 100 columns with its title."""


def rank_measures(ranks: RanksRecord, device: Device | None) -> tuple[Measure, ...]:
    played = len(ranks.played)
    whole = played == ranks.world_size
    how = Text(
        f"{played} of {ranks.world_size} ranks run, {ranks.passes} pass{'es' * (ranks.passes > 1)}"
        + ("" if whole else "; the others are of the same classes"),
        f"运行了 {ranks.world_size} 个 rank 中的 {played} 个，共 {ranks.passes} 遍"
        + ("" if whole else "；其余与之同类"),
    )
    found = [
        Measure("ranks", played, "", how, Text("ranks played", "模拟的 rank"),
                evidence=(_lanes_table(ranks.lanes),), tool=TOOL),
        Measure("matched", ranks.matches, "",
                Text("operations on which all ranks agreed", "所有 rank 一致的操作"),
                Text("matched communications", "匹配的通信"), tool=TOOL),
    ]  # fmt: skip
    found.append(
        Measure(
            "optimizer_steps",
            ranks.steps,
            "",
            Text("of the rank that made the most", "步数最多的 rank"),
            Text("optimizer steps", "优化步数"),
            tool=TOOL,
        )
    )
    found += covered_measures(ranks.progress, ranks.unreached)
    if ranks.volume:
        found.append(_volume(ranks))
    if ranks.largest is not None:
        found.append(_memory(ranks, ranks.largest, device))
    if ranks.record is not None:
        found += assumption_measures((ranks.record,))
    return tuple(found)


def _lanes_table(lanes: tuple[Lane, ...]) -> Table:
    letters = {"all_reduce": "R", "all_gather": "G", "reduce_scatter": "S", "broadcast": "B"}
    letters |= {"barrier": "|", "all_to_all": "A", "send": ">", "recv": "<", "new_group": "+"}
    letters |= {"gather": "g", "scatter": "s", "reduce": "r"}
    common = common_prefix(lanes)
    rows = []
    for lane in lanes[:32]:
        marks = [letters.get(mark.op, "?") for mark in lane.marks[:_BAR]]
        if len(lanes) > 1 and common < len(marks):
            marks.insert(common, "!")
        more = "…" if lane.total > _BAR else ""
        rows.append(
            (
                ranks_text(lane.ranks),
                "".join(marks) + more,
                lane.total,
                ENDINGS.get(lane.ending, lane.ending),
            )
        )
    return Table(
        Text("what each class of ranks communicates, in order", "各类 rank 依次进行的通信"),
        (Text("ranks", "rank"), Text("communications", "通信"), Text("count", "次数"),
         Text("ended by", "结束方式")),
        tuple(rows),
        Text("R all_reduce, G all_gather, S reduce_scatter, B broadcast, A all_to_all, | barrier, "
             "> send, < recv, + new_group, ! the classes part here",
             "R all_reduce，G all_gather，S reduce_scatter，B broadcast，A all_to_all，| barrier，"
             "> send，< recv，+ new_group，! 此处开始不同"),
    )  # fmt: skip


def _volume(ranks: RanksRecord) -> Measure:
    steps = max(1, ranks.steps)
    total = sum(item.bytes for item in ranks.volume)
    rows = tuple(
        (item.op, _link(item.link), _PHASES.get(item.phase, "–"), item.inside or "–",
         item.calls, item.bytes / steps)
        for item in ranks.volume
    )  # fmt: skip
    overlap = sum(
        item.bytes for item in ranks.volume if item.phase == "backward" and item.op != "barrier"
    )
    return Measure(
        "communication_bytes",
        total / steps,
        "B",
        Text(
            f"sent by one rank {_per(ranks.steps).en} with ring algorithms; "
            f"{100 * overlap // max(1, total)} % is started in the backward and can overlap with it",
            f"单个 rank 以环算法发送的字节（{_per(ranks.steps).zh}）；"
            f"其中 {100 * overlap // max(1, total)}% 在反向中发起，可与其重叠",
        ),
        Text("communication", "通信量"),
        evidence=(
            Table(
                Text("communication of one rank", "单个 rank 的通信"),
                (Text("operation", "操作"), Text("link", "链路"), Text("phase", "阶段"),
                 Text("inside", "所在"), Text("calls", "次数"), Text("bytes per step", "每步字节") if ranks.steps else Text("bytes", "字节")),
                rows,
                units=("", "", "", "", "", "B"),
            ),
        ),
        tool=TOOL,
    )  # fmt: skip


def _per(steps: int) -> Text:
    if not steps:
        return Text("in the whole run", "整个运行")
    counted = "1 step" if steps == 1 else f"{steps} steps"
    return Text(f"per optimizer step ({counted} run)", f"每优化步，共 {steps} 步")


_PHASES = {"forward": Text("forward", "前向"), "backward": Text("backward", "反向")}


def _link(name: str) -> Text:
    if name == "node":
        return Text("within a node", "节点内")
    return Text("between nodes", "节点间")


def _memory(ranks: RanksRecord, largest: Memory, device: Device | None) -> Measure:
    rank, peak = max(ranks.memory, key=lambda item: item[1])
    smallest = human(min(item[1] for item in ranks.memory), "B")
    share = share_of(largest, device)
    return Measure(
        "peak_memory_bytes",
        peak,
        "B",
        Text(
            f"most alive at once, on rank {rank} (the least: {smallest}){share.en}",
            f"同时存活最多的 rank {rank}（最少：{smallest}）{share.zh}",
        ),
        Text("peak memory of a rank", "单个 rank 的峰值显存"),
        evidence=memory_evidence(largest),
        tool=TOOL,
    )
