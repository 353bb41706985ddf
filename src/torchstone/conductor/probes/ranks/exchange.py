"""What the ranks send each other: means of unequal counts, cut gradients, too many messages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Collective
from torchstone.conductor.probes.ranks.facts import RankFacts
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

UNEQUAL_MEANS = ProbeRule(
    "PR406", "mean-of-unequal-means", Severity.MEDIUM, "wrong result",
    Text("means over different counts are averaged between ranks", "在各 rank 之间平均了基于不同数量的均值"),
    Text("a rank with fewer targets gets the same weight as the others: the result is no mean over all targets, "
         "and it changes with the number of ranks",
         "目标较少的 rank 与其他 rank 权重相同：结果不是全部目标的均值，并且随 rank 数而变"),
    Text("sum numerators and counts over the ranks, then divide once", "在各 rank 间分别求和分子与数量，最后只除一次"),
)  # fmt: skip
CUT = ProbeRule(
    "PR407", "gathered-gradient-cut", Severity.HIGH, "wrong result",
    Text("the gradient of a gathered tensor is cut to the own share without a sum over the ranks",
         "聚合张量的梯度只取自身部分，没有在各 rank 间求和"),
    Text("every rank computes something else with the gathered tensor: what the others' losses say about the own "
         "share is dropped", "每个 rank 对聚合张量做不同的计算：其他 rank 的损失对本 rank 部分的梯度被丢弃"),
    Text("reduce-scatter the gradient (or all-reduce it and cut it)", "对梯度做 reduce-scatter（或先 all-reduce 再切分）"),
)  # fmt: skip
EVERY_MICRO_BATCH = ProbeRule(
    "PR408", "gradients-exchanged-every-micro-batch", Severity.MEDIUM, "slow",
    Text("gradients are exchanged after every micro-batch", "每个微批次之后都交换梯度"),
    Text("only the accumulated gradient is needed: the traffic grows with the accumulation", "只需交换累积后的梯度：通信量随累积步数成倍增长"),
    Text("exchange after the last micro-batch only (`no_sync()` for the others)", "仅在最后一个微批次后交换（其余使用 `no_sync()`）"),
)  # fmt: skip
ONE_BY_ONE = ProbeRule(
    "PR409", "small-collectives-one-by-one", Severity.MEDIUM, "slow",
    Text("one line sends many small messages one after the other", "同一行代码逐个发送许多小消息"),
    Text("each waits for its round trip; together they would take one", "每条消息都要等待一次往返；合并后只需一次"),
    Text("put them into one tensor and send that", "将它们放入一个张量后一次发送"),
)  # fmt: skip
BIAS_SUMMED = ProbeRule(
    "PR410", "bias-summed-over-ranks", Severity.HIGH, "wrong result",
    Text("a bias is added on every rank before the partial results are summed", "部分结果求和之前，每个 rank 都加上了偏置"),
    Text("the bias counts once for each rank: outputs depend on the number of ranks", "偏置按 rank 数重复计入：输出取决于 rank 数"),
    Text("sum first, then add the bias", "先求和，再加偏置"),
)  # fmt: skip
DIFFERENT_MASKS = ProbeRule(
    "PR412", "masks-differ-between-ranks", Severity.HIGH, "wrong result",
    Text("ranks that hold the same tokens use different masks", "持有相同 token 的各 rank 使用了不同的掩码"),
    Text("their heads see different positions: partial results of different sequences are added up",
         "各 rank 的注意力头看到不同的位置：不同序列的部分结果被相加"),
    Text("make the mask from what all ranks share, or broadcast it", "用各 rank 共有的数据构造掩码，或进行广播"),
)  # fmt: skip
SPLIT_SIZES = ProbeRule(
    "PR413", "split-sizes-differ", Severity.HIGH, "wrong result",
    Text("the split sizes of an all-to-all do not match between ranks", "all-to-all 的切分大小在各 rank 间不匹配"),
    Text("a rank expects another number of rows than the other one sends: real backends hang or read foreign memory",
         "某个 rank 期望的行数与对方发送的不同：真实后端会挂起或读取错误内存"),
    Text("exchange the counts first, and take the received ones as output sizes", "先交换数量，并以收到的数量作为输出切分大小"),
)  # fmt: skip
RULES = (
    DIFFERENT_MASKS,
    SPLIT_SIZES,
    UNEQUAL_MEANS,
    CUT,
    EVERY_MICRO_BATCH,
    ONE_BY_ONE,
    BIAS_SUMMED,
)
_MOST_BYTES = 4096
"""A message that is mostly latency on any network."""
_MANY = 4
_SLACK = 0.05
"""Parameters without a gradient in a step are left out of the exchange."""


def compare(_: Path, ranks: list[RankFacts]) -> Iterator[Shown]:
    yield from _different_masks(ranks)
    yield from _split_sizes(ranks)
    yield from _unequal_means(ranks)
    yield from _cut(ranks)
    yield from _one_by_one(ranks[0])
    yield from _every_micro_batch(ranks[0])
    for item in ranks[0].collectives:
        if item.bias and item.kind == "all_reduce" and not item.in_backward:
            yield Shown(
                BIAS_SUMMED, item.made_at,
                Text("the output of a linear layer is summed over {ranks} ranks, bias included: it counts {ranks} times",
                     "线性层的输出连同偏置在 {ranks} 个 rank 上求和：偏置被计入 {ranks} 次"),
                {"ranks": str(item.ranks)},
                (number("times the bias counts", "偏置计入次数", item.ranks, "x", IN_THE_RUN),),
            )  # fmt: skip
            return


def _different_masks(ranks: list[RankFacts]) -> Iterator[Shown]:
    if not ranks[0].tokens or any(facts.tokens != ranks[0].tokens for facts in ranks):
        return
    for row in zip(*(facts.masks for facts in ranks), strict=False):
        kinds = {digest for _, digest in row}
        if len(kinds) > 1 and len({place for place, _ in row}) == 1:
            yield Shown(
                DIFFERENT_MASKS, row[0][0],
                Text("{count} different masks for the same tokens", "同样的 token 有 {count} 种不同的掩码"),
                {"count": str(len(kinds))},
                (number("different masks", "不同的掩码", len(kinds), "", IN_THE_RUN),),
            )  # fmt: skip
            return


def _split_sizes(ranks: list[RankFacts]) -> Iterator[Shown]:
    for facts in ranks:
        for item in facts.collectives:
            if item.kind == "split sizes":
                yield Shown(
                    SPLIT_SIZES, item.place,
                    Text("an all-to-all expects other row counts than the ranks send",
                         "all-to-all 期望的行数与各 rank 发送的不同"), {},
                    (number("ranks", "rank 数", item.ranks, "", IN_THE_RUN),),
                )  # fmt: skip
                return


def _unequal_means(ranks: list[RankFacts]) -> Iterator[Shown]:
    for row in zip(*(facts.collectives for facts in ranks), strict=False):
        counts = {item.divided_by for item in row}
        if len({item.place for item in row}) == 1 and () not in counts and len(counts) > 1:
            low, high = (
                f"{value:g}"
                for value in sorted(item.divided_by[0] for item in row)[:: len(row) - 1]
            )
            yield _unequal(row[0].made_at or row[0].place, low, high)
            return
    reduced = any(item.step == 0 and item.kind == "all_reduce" for item in ranks[0].collectives)
    for losses in zip(*(facts.losses for facts in ranks), strict=False):
        found = sorted(item.counted for item in losses)
        if reduced and found[0] != found[-1] and len({item.place for item in losses}) == 1:
            yield _unequal(losses[0].place, str(found[0]), str(found[-1]))
            return


def _unequal(place: Place, low: str, high: str) -> Shown:
    return Shown(
        UNEQUAL_MEANS, place,
        Text("each rank takes the mean over its own targets ({low} to {high}), and these means are averaged",
             "每个 rank 对自己的目标（{low} 到 {high} 个）求均值，再对这些均值求平均"),
        {"low": low, "high": high},
        (number("fewest targets", "最少目标数", float(low), "", IN_THE_RUN),
         number("most targets", "最多目标数", float(high), "", IN_THE_RUN)),
    )  # fmt: skip


def _cut(ranks: list[RankFacts]) -> Iterator[Shown]:
    for row in zip(*(facts.gathered for facts in ranks), strict=False):
        same = all(item.gradient.equals(row[0].gradient) for item in row[1:])
        if not same and not any(item.communicates for item in row):
            norms = sorted(item.gradient.norm for item in row)
            yield Shown(
                CUT, row[0].place,
                Text("the gradients that reach the gathered tensor differ between ranks, and none is sent back",
                     "到达聚合张量的梯度在各 rank 间不同，却没有传回"),
                {},
                (number("smallest norm", "最小范数", norms[0], "norm", IN_THE_RUN),
                 number("largest norm", "最大范数", norms[-1], "norm", IN_THE_RUN)),
            )  # fmt: skip
            return


def _one_by_one(facts: RankFacts) -> Iterator[Shown]:
    """Messages of one line in a row, once training has begun."""
    row: list[Collective] = []
    for item in (*facts.collectives, None):
        if item is not None and row and _follows(item, row[-1]):
            row.append(item)
            continue
        small = [one for one in row if one.size_bytes <= _MOST_BYTES]
        if (
            len(small) >= _MANY
            and row[0].ranks > 1
            and not row[0].in_backward
            and _trains(facts, row)
        ):
            total = sum(one.size_bytes for one in small)
            yield Shown(
                ONE_BY_ONE, row[0].place,
                Text("{count} {kind} of {size} bytes in all, one after the other",
                     "逐个进行 {count} 次 {kind}，总共 {size} 字节"),
                {"count": str(len(small)), "kind": row[0].kind, "size": str(total)},
                (number("messages", "消息数", len(small), "", IN_THE_RUN),
                 number("bytes in all", "总字节", total, "B", IN_THE_RUN)),
            )  # fmt: skip
            return
        row = [item] if item is not None else []


def _follows(item: Collective, other: Collective) -> bool:
    """From one line, with no call of a module between them."""
    return (item.place, item.kind, item.calls) == (other.place, other.kind, other.calls)


def _trains(facts: RankFacts, row: list[Collective]) -> bool:
    """In one step and in the next, before or after its update: not the initial weights, nor a checkpoint."""
    steps = {item.step for item in facts.collectives if item.place == row[0].place}
    return any(step + 1 in steps for step in steps)


def _every_micro_batch(facts: RankFacts) -> Iterator[Shown]:
    whole = sum(_numel(item.shape) for item in facts.parameters)
    by_line: dict[Place, int] = {}
    for item in facts.collectives:
        if item.step == 0 and item.kind == "all_reduce":
            by_line[item.place] = by_line.get(item.place, 0) + item.numel
    count = facts.micro_batches
    # activations go through all-reduce too: gradients are as many values as there are parameters
    lines = [line for line, sent in by_line.items() if abs(sent - count * whole) < _SLACK * whole]
    if not whole or count < 2 or not lines:
        return
    sent = by_line[lines[0]]
    yield Shown(
        EVERY_MICRO_BATCH, facts.backward,
        Text("{count} micro-batches make one step, and {times} times the gradients are sent for it",
             "{count} 个微批次构成一步，却为其发送了 {times} 倍的梯度"),
        {"count": str(count), "times": f"{sent / whole:.1f}"},
        (number("values sent in a step", "每步发送的数值", sent, "", IN_THE_RUN),
         number("values of all gradients", "全部梯度的数值", whole, "", IN_THE_RUN)),
    )  # fmt: skip


def _numel(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
