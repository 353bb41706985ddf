"""What came of playing all ranks, as a Report."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.finding import Confidence, Finding
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Edge, Evidence, Graph, Table, Vertex
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.record import Lane, RankFault, RanksRecord, Side
from torchstone.dryrun.reporting.answer import common_prefix, ranks_answer
from torchstone.dryrun.reporting.findings import TOOL, make_finding, snippet_at
from torchstone.dryrun.reporting.progress import assumption_measures
from torchstone.dryrun.reporting.refused import evidence_of
from torchstone.dryrun.reporting.stops import gaps_of, nothing_left
from torchstone.dryrun.rules import Rule
from torchstone.dryrun.script.launch import Outcome
from torchstone.dryrun.shapes.words import explain

_RULES = {rule.id: rule for rule in rules.RANKS}
_BAR = 60
"""Marks of a lane shown in the terminal: a line of 100 columns with its title."""


def report_on_ranks(subject: str, outcome: Outcome) -> Report:
    """The report of a job's dry run."""
    ranks = outcome.ranks
    known = {rule.id: rule.info() for rule in (*rules.SINGLE_PROCESS, *rules.RANKS)}
    if ranks is None:
        return Report(TOOL, gaps=(nothing_left(subject, outcome),), rules=known, subject=subject)
    return report_on(subject, ranks)


def report_on(subject: str, ranks: RanksRecord) -> Report:
    """The report of ranks that were played."""
    known = {rule.id: rule.info() for rule in (*rules.SINGLE_PROCESS, *rules.RANKS)}
    gaps = gaps_of(ranks.record) if ranks.record is not None else []
    gaps += [_real_parameters()] if ranks.real_parameters else []
    gaps += [_out_of_time(ranks)] if ranks.out_of_time and not ranks.faults else []
    made = Report(
        TOOL,
        findings=() if any(gap.failed for gap in gaps) else _findings(ranks),
        measures=_measures(ranks),
        gaps=tuple(gaps),
        rules=known,
        subject=subject,
    )
    return replace(made, answer=ranks_answer(made, ranks))


def _findings(ranks: RanksRecord) -> tuple[Finding, ...]:
    """One finding for each fault; a fault seen in several passes is told once."""
    found = [_finding(fault) for fault in ranks.faults]
    return tuple({(item.rule, item.path, item.line): item for item in reversed(found)}.values())


def _out_of_time(ranks: RanksRecord) -> Gap:
    text = Text(
        "{count} of {played} ranks had not ended at the time limit; what came before it agrees",
        "到达时限时 {played} 个 rank 中有 {count} 个尚未结束；此前的通信一致",
    )
    given = {"count": str(len(ranks.out_of_time)), "played": str(len(ranks.played))}
    return Gap("time", Message("ranks-out-of-time", text, given),
               "give --max-seconds a larger value, or --max-steps 1", failed=True, tool=TOOL)  # fmt: skip


def _real_parameters() -> Gap:
    text = Text(
        "FullyShardedDataParallel looks into the storage of its parameters: real ones were used, "
        "at their full size",
        "FullyShardedDataParallel 会访问参数存储：使用了完整大小的真实参数",
    )
    return Gap("parameters", Message("real-parameters", text), "use fully_shard (FSDP2)", tool=TOOL)


def ranks_text(ranks: tuple[int, ...]) -> str:
    """`0`, `1-3`, `0, 4-7`."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][-1:] = [parts[-1][-1], rank] if len(parts[-1]) == 1 else [rank]
        else:
            parts.append([rank])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _finding(fault: RankFault) -> Finding:
    rule = _RULES[fault.rule]
    where = fault.sides[0].stack[0] if fault.sides and fault.sides[0].stack else fault.branch
    sides = "; ".join(_side_text(side, "en") for side in fault.sides)
    sides_zh = "；".join(_side_text(side, "zh") for side in fault.sides)
    return make_finding(
        rule,
        Text("{sides}", "{sides_zh}"),
        {"sides": sides, "sides_zh": sides_zh},
        _why(rule, fault),
        _remedy(fault),
        where,
        _evidence(fault),
        confidence=Confidence.LIKELY if fault.local_value.line else Confidence.CERTAIN,
    )


def _side_text(side: Side, lang: str) -> str:
    one = len(side.ranks) == 1
    who = ("rank " if one else "ranks ") + ranks_text(side.ranks)
    at = f" at {side.stack[0]}" if side.stack else ""
    inside = f" (in {side.inside})" if side.inside else ""
    if lang == "zh":
        at = f"（{side.stack[0]}）" if side.stack else ""
        text = side.text.replace("(the program has ended)", "已结束").replace(
            "(does not make it)", "没有创建"
        )
        return f"rank {ranks_text(side.ranks)}：{text}{at}"
    return f"{who}: {side.text}{at}{inside}"


def _why(rule: Rule, fault: RankFault) -> Text:
    en, zh = rule.why.en, rule.why.zh
    if fault.branch.line:
        en += f"; the ways part at {fault.branch}: `{fault.branch_text}`"
        zh += f"；分歧始于 {fault.branch}：`{fault.branch_text}`"
    if fault.local_value.line:
        en += f"; it happens when a value read at {fault.local_value} is not the same on all ranks"
        zh += f"；当 {fault.local_value} 处读取的值在各 rank 上不同时发生"
    if fault.cycle:
        ring = " → ".join(f"rank {rank}" for rank in (*fault.cycle, fault.cycle[0]))
        en += f"; {ring}"
        zh += f"；{ring}"
    if fault.error is not None:
        said = explain(fault.error)
        en, zh = f"{en}; {said.en}", f"{zh}；{said.zh}"
    return Text(en, zh)


def _remedy(fault: RankFault) -> Message:
    texts = {
        "operation": Text(
            "call the collective on every rank of the group, or on none",
            "让组内每个 rank 都调用该集合通信，或都不调用",
        ),
        "exit": Text(
            "let every rank run the same number of steps, or leave together (all_reduce a stop flag)",
            "让每个 rank 执行相同步数，或一起退出（对停止标志做 all_reduce）",
        ),
        "shape": Text(
            "make the shapes equal (pad, or exchange the sizes first)",
            "使形状一致（填充，或先交换大小）",
        ),
        "splits": Text(
            "exchange the split sizes before the all_to_all", "在 all_to_all 之前先交换切分大小"
        ),
        "cycle": Text(
            "let one side receive first, use batch_isend_irecv, or use one order of groups on all ranks",
            "让一方先接收，使用 batch_isend_irecv，或在所有 rank 上采用相同的组顺序",
        ),
        "group": Text(
            "call new_group on all ranks, in the same order", "在所有 rank 上以相同顺序调用 new_group"
        ),
        "unawaited": Text(
            "keep the returned work and call wait() before the tensor is used",
            "保存返回的 work，在使用张量之前调用 wait()",
        ),
        "drift": Text(
            "reduce the gradients before the step (through DDP's own forward, or all_reduce)",
            "在更新前归约梯度（通过 DDP 的 forward，或 all_reduce）",
        ),
    }  # fmt: skip
    text = texts.get(fault.reason)
    return Message(f"ranks-{fault.reason}", text) if text else Message("none")


def _evidence(fault: RankFault) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    for side in fault.sides[:3]:
        caption = f"rank {ranks_text(side.ranks)}"
        if side.stack and (snippet := snippet_at(side.stack[0], caption)):
            found.append(snippet)
    shown = {side.stack[0] for side in fault.sides if side.stack}
    if fault.branch.line and fault.branch not in shown:
        caption_branch = Text("the branch", "分支")
        if snippet := snippet_at(fault.branch, caption_branch):
            found.append(snippet)
    found.append(_sides_table(fault))
    if fault.waits:
        found.append(_waits_graph(fault))
    if fault.error is not None:
        found += evidence_of(fault.error)[1:]
    return tuple(found)


def _sides_table(fault: RankFault) -> Table:
    rows = tuple(
        (
            ranks_text(side.ranks),
            side.text,
            " < ".join(str(place) for place in side.stack[:4]),
            side.inside,
        )
        for side in fault.sides
    )
    where = f" {fault.position + 1} of group {fault.group}" if fault.group else ""
    return Table(
        Text(f"what the ranks do at operation{where}", f"各 rank 在第{where} 次操作处的行为"),
        (Text("ranks", "rank"), Text("does", "操作"), Text("line", "行"), Text("inside", "所在")),
        rows,
    )


def _waits_graph(fault: RankFault) -> Graph:
    vertices: dict[int, Vertex] = {}
    edges = []
    ring = set(zip(fault.cycle, (*fault.cycle[1:], *fault.cycle[:1]), strict=True))
    for wait in fault.waits[:16]:
        group = "cycle" if wait.rank in fault.cycle else "waits"
        label = f"rank {wait.rank}\n{wait.text}\n{wait.place}"
        vertices[wait.rank] = Vertex(str(wait.rank), label, group)
        for other in wait.waits_for[:8]:
            label = "waits (ring)" if (wait.rank, other) in ring else "waits"
            edges.append(Edge(str(wait.rank), str(other), label))
    for edge in edges:
        vertices.setdefault(int(edge.target), Vertex(edge.target, f"rank {edge.target}", "ended"))
    return Graph(Text("who waits for whom", "谁在等谁"), tuple(vertices.values()), tuple(edges))


def _measures(ranks: RanksRecord) -> tuple[Measure, ...]:
    played = len(ranks.played)
    whole = played == ranks.world_size
    how = Text(
        f"{played} of {ranks.world_size} ranks run, {ranks.passes} pass(es)"
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
    if ranks.volume:
        found.append(_volume(ranks))
    if ranks.memory:
        found.append(_memory(ranks))
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
        rows.append((ranks_text(lane.ranks), "".join(marks) + more, lane.total, lane.ending))
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
        (item.op, _link(item.link), item.phase or "–", item.inside or "–",
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
            f"sent by one rank per optimizer step with ring algorithms ({ranks.steps} steps); "
            f"{100 * overlap // max(1, total)} % is started in the backward and can overlap with it",
            f"单个 rank 每优化步以环算法发送的字节（共 {ranks.steps} 步）；"
            f"其中 {100 * overlap // max(1, total)}% 在反向中发起，可与其重叠",
        ),
        Text("communication", "通信量"),
        evidence=(
            Table(
                Text("communication of one rank", "单个 rank 的通信"),
                (Text("operation", "操作"), Text("link", "链路"), Text("phase", "阶段"),
                 Text("inside", "所在"), Text("calls", "次数"), Text("bytes per step", "每步字节")),
                rows,
                units=("", "", "", "", "", "B"),
            ),
        ),
        tool=TOOL,
    )  # fmt: skip


def _link(name: str) -> Text:
    if name == "node":
        return Text("within a node", "节点内")
    return Text("between nodes", "节点间")


def _memory(ranks: RanksRecord) -> Measure:
    rank, peak = max(ranks.memory, key=lambda item: item[1])
    smallest = min(item[1] for item in ranks.memory)
    return Measure(
        "peak_memory_bytes",
        peak,
        "B",
        Text(
            f"most alive at once, on rank {rank} (the least: {smallest / 2**20:.1f} MiB)",
            f"同时存活最多的 rank {rank}（最少：{smallest / 2**20:.1f} MiB）",
        ),
        Text("peak memory of a rank", "单个 rank 的峰值显存"),
        tool=TOOL,
    )
