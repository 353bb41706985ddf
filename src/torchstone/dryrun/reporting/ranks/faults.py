"""Ranks that do not go together: each fault as a finding with both sides."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from torchstone.core.finding import Confidence, Finding
from torchstone.core.pictures import Edge, Evidence, Graph, Table, Vertex
from torchstone.core.place import Place
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.ranks_record import RankFault, Side
from torchstone.dryrun.record import Record
from torchstone.dryrun.reporting.findings import make_finding, snippet_at
from torchstone.dryrun.reporting.ranks.names import ranks_text, with_ranks
from torchstone.dryrun.reporting.refused import evidence_of, refused_call
from torchstone.dryrun.rules import Rule
from torchstone.dryrun.shapes.words import explain

_RULES = {rule.id: rule for rule in rules.RANKS}


def fault_finding(fault: RankFault, record: Record | None) -> Finding:
    """One fault; a call that torch refuses on every rank is told as in a single process."""
    rule = _RULES[fault.rule]
    if rule is rules.RANK_RAISES and fault.error is not None and record is not None:
        found = refused_call(fault.error, record)
        ranks = tuple(rank for side in fault.sides for rank in side.ranks)
        what = with_ranks(found.what, ranks, ranks)
        return replace(found, rule=rule.id, name=rule.name, what=what)
    where = next((side.stack[0] for side in fault.sides if side.stack), fault.branch)
    sides = "; ".join(_side_text(side, "en") for side in fault.sides)
    sides_zh = "；".join(_side_text(side, "zh") for side in fault.sides)
    return make_finding(
        rule,
        Text(f"{rule.summary.en}: {{sides}}", f"{rule.summary.zh}：{{sides_zh}}"),
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
        return f"rank {ranks_text(side.ranks)}：{side.text_zh or side.text}{at}"
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
        "initial": Text(
            "broadcast the parameters from rank 0 before the first step, or set the same seed on all ranks "
            "before the model is made",
            "在第一步之前从 rank 0 广播参数，或在创建模型前为所有 rank 设置相同的种子",
        ),
        "update": Text(
            "reduce the gradients of every parameter, and make the same optimizer steps on all ranks",
            "归约每个参数的梯度，并在所有 rank 上执行相同的优化步",
        ),
        "buffer": Text(
            "use SyncBatchNorm, let DDP broadcast buffers, or reduce them before evaluation and saving",
            "使用 SyncBatchNorm，让 DDP 广播缓冲区，或在评估与保存前归约缓冲区",
        ),
        "wrong-group": Text(
            "reduce the gradients over the group in which the parameters are the same",
            "在参数相同的进程组上归约梯度",
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
    lines: dict[Place, list[int]] = defaultdict(list)
    for side in fault.sides[:3]:
        if side.stack:
            lines[side.stack[0]] += side.ranks
    for place, ranks in lines.items():
        if snippet := snippet_at(place, f"rank {ranks_text(tuple(ranks))}"):
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
            Text(side.text, side.text_zh or side.text),
            " < ".join(str(place) for place in side.stack[:4]),
            side.inside,
        )
        for side in fault.sides
    )
    number, group = fault.position + 1, fault.group
    where = Text("what the ranks do", "各 rank 的行为")
    if group:
        where = Text(
            f"what the ranks do at operation {number} of group {group}",
            f"各 rank 在组 {group} 的第 {number} 次操作处的行为",
        )
    return Table(
        where,
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
