"""Ranks that should hold the same weights, or see different data, and do not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import RankRow, TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "replicas",
    phase="call",
    of="run",
    title=Text("ranks that differ", "不一致的 rank"),
    why=Text(
        "replicas whose weights differ train different models, and the averaged gradient fits none of them; ranks that get the same batch do the same work twice",
        "权重不一致的副本在训练不同的模型，平均梯度对谁都不合适；拿到同一批数据的 rank 在重复计算",
    ),
    remedy=Text(
        "look for code that depends on the rank, a missing broadcast, no_sync left on, or a sampler that ignores the rank",
        "检查依赖 rank 的代码、缺失的广播、未关闭的 no_sync，或忽略 rank 的采样器",
    ),
    severity=Severity.HIGH,
)

_NORMS_DIFFER = 1e-3


@SIGNAL.on_call
def differ(call: TrainingCall) -> Iterator[Alarm]:
    rows = call.ranks.rows
    if len(rows) < 2 or len({row.step for row in rows}) > 1:
        return
    step = int(rows[0].step)
    # causes before what they lead to: an episode tells the first
    rates = {row.rate for row in rows}
    if len(rates) > 1 and (found := _odd(rows, "rate", call)):
        yield _alarm(found, step, "has another learning rate", "学习率与其他 rank 不同")
    if found := _odd(rows, "digest", call):
        yield _alarm(found, step, "holds other weights", "权重与其他 rank 不同")
    if call.ranks.strict:
        norms = [row.norm for row in rows if math.isfinite(row.norm)]
        if norms and max(norms) - min(norms) > _NORMS_DIFFER * max(norms):
            worst = max(
                range(len(rows)), key=lambda i: abs(rows[i].norm - sorted(norms)[len(norms) // 2])
            )
            yield _alarm(
                [worst],
                step,
                "has another gradient after the reduction",
                "归约后的梯度与其他 rank 不同",
            )
        if _repeated(rows, call):
            yield _alarm([], step, "all ranks see the same batch", "所有 rank 看到同一批数据")
    bad = [i for i, row in enumerate(rows) if math.isinf(row.loss)]
    if bad and len(bad) < len(rows):
        yield _alarm(bad, step, "has an infinite loss", "损失为无穷大")


def _odd(rows: tuple[RankRow, ...], name: str, call: TrainingCall) -> list[int]:
    """Ranks outside the majority; with no majority, all but the first.

    Weights that differ from the first comparison on are shards, unless they must be replicas.
    """
    if name == "digest" and call.ranks.sharded:
        return []
    values = [getattr(row, name) for row in rows]
    most, count = Counter(values).most_common(1)[0]
    if count == len(rows):
        call.memory[f"ranks_{name}"] = True
        return []
    if name == "digest" and not call.ranks.strict and not call.memory.get("ranks_digest"):
        return []
    usual = most if count > 1 else values[0]
    return [i for i, value in enumerate(values) if value != usual]


def _repeated(rows: tuple[RankRow, ...], call: TrainingCall) -> bool:
    same = rows[0].batch != 0 and len({row.batch for row in rows}) == 1
    times = int(call.memory.get("ranks_batch", 0)) + 1 if same else 0  # type: ignore[call-overload]
    call.memory["ranks_batch"] = times
    return times >= 2


def _alarm(ranks: list[int], step: int, en: str, zh: str) -> Alarm:
    who = f"rank {', '.join(map(str, ranks))} " if ranks else ""
    return Alarm(
        SIGNAL.name,
        Text(f"replicas: {who}{en} (at step {step})", f"replicas：{who}{zh}（第 {step} 步）"),
        value=float(ranks[0]) if ranks else math.nan,
    )
