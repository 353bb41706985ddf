"""Which weights the ranks hold, and which gradients they step with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import ParameterFacts, Signature
from torchstone.conductor.probes.ranks.facts import RankFacts
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

DRIFT = ProbeRule(
    "PR402", "replicas-differ", Severity.HIGH, "wrong result",
    Text("the replicas of a data-parallel run hold different weights", "数据并行的各副本权重不同"),
    Text("they step with gradients of their own: the ranks train different models", "它们以各自的梯度更新：各 rank 训练的是不同的模型"),
    Text("call the wrapped model in training, not `.module`", "训练时调用包装后的模型，而非 `.module`"),
)  # fmt: skip
UNRELATED = ProbeRule(
    "PR403", "gradients-of-different-parameters-averaged", Severity.HIGH, "wrong result",
    Text("parameters that differ between ranks step with one and the same gradient",
         "各 rank 上不同的参数使用同一个梯度更新"),
    Text("shards or experts that belong to one rank are averaged with those of others as if they were copies",
         "属于单个 rank 的分片或专家被当作副本与其他 rank 平均"),
    Text("leave the parameters that only one rank holds out of the averaging", "平均时排除只属于单个 rank 的参数"),
)  # fmt: skip
DIFFERENT_START = ProbeRule(
    "PR405", "replicas-start-different", Severity.HIGH, "wrong result",
    Text("the replicas start from different weights", "各副本从不同的权重开始"),
    Text("gradients are averaged between models that are not the same: the mean belongs to none of them",
         "在不同的模型之间平均梯度：所得均值不属于其中任何一个"),
    Text("seed the weights alike on all replicas, or broadcast them from one", "在各副本上使用相同的随机种子，或从一个副本广播权重"),
)  # fmt: skip
RULES = (DRIFT, UNRELATED, DIFFERENT_START)
_SMALL = 1e-12


def compare(_: Path, ranks: list[RankFacts]) -> Iterator[Shown]:
    names = [tuple((item.name, item.shape) for item in facts.parameters) for facts in ranks]
    if ranks[0].parameters and all(row == names[0] for row in names):
        found = list(_first_step(ranks))
        if found:
            yield from found
            return
    yield from _drift(ranks)


def _first_step(ranks: list[RankFacts]) -> Iterator[Shown]:
    """By parameter: are the values the same, and the gradients?"""
    rows = list(zip(*(facts.parameters for facts in ranks), strict=True))
    told = [row for row in rows if not row[0].constant and row[0].gradient.norm > _SMALL]
    alike = [row for row in told if _all_equal([item.value for item in row])]
    apart = [row for row in told if row not in alike]
    torn = [row for row in alike if not _all_equal([item.gradient for item in row])]
    merged = [row for row in apart if _all_equal([item.gradient for item in row])]
    if torn:
        yield _torn(ranks, torn[0], len(torn), len(told))
    if merged and not alike:
        yield _shown(DIFFERENT_START, ranks[0].model or ranks[0].step,
                     "all {count} weights differ between ranks, but their gradients are averaged, as of {name}",
                     "全部 {count} 个权重在各 rank 上不同，但梯度被平均，例如 {name}",
                     merged[0][0].name, len(merged), len(told))  # fmt: skip
    elif merged:
        yield _shown(UNRELATED, _last_reduction(ranks[0]),
                     "{count} parameters that differ between ranks get the mean gradient of all of them, as {name}",
                     "{count} 个在各 rank 上不同的参数得到它们的平均梯度，例如 {name}",
                     merged[0][0].name, len(merged), len(told))  # fmt: skip


def _all_equal(signatures: list[Signature]) -> bool:
    return all(item.equals(signatures[0]) for item in signatures[1:])


def _torn(ranks: list[RankFacts], row: tuple[ParameterFacts, ...], count: int, known: int) -> Shown:
    before = [item.before_clipping for item in row]
    kept = [item for item in before if item is not None]
    if len(kept) == len(row) and _all_equal(kept):
        return _shown(DRIFT, ranks[0].clip,
                      "clipping gives {count} equal weights different gradients on the ranks, as {name}: each "
                      "rank takes the norm of its own share",
                      "裁剪使 {count} 个相同的权重在各 rank 上得到不同的梯度，例如 {name}：每个 rank 只计算自己那一份的范数",
                      row[0].name, count, known)  # fmt: skip
    return _shown(DRIFT, ranks[0].step,
                  "{count} equal weights step with different gradients on the ranks, as {name}",
                  "{count} 个相同的权重在各 rank 上以不同的梯度更新，例如 {name}", row[0].name, count, known)  # fmt: skip


def _shown(
    rule: ProbeRule, place: Place, en: str, zh: str, name: str, count: int, known: int
) -> Shown:
    return Shown(
        rule, place, Text(en, zh), {"count": str(count), "name": name},
        (number("parameters", "参数", count, "", IN_THE_RUN),
         number("parameters compared", "比较的参数", known, "", IN_THE_RUN)),
    )  # fmt: skip


def _last_reduction(facts: RankFacts) -> Place:
    """The last all-reduce before the first step."""
    before = [item for item in facts.collectives if item.step == 0 and item.kind == "all_reduce"]
    large = [item for item in before if item.numel > 1]
    return large[-1].place if large else facts.step


def _drift(ranks: list[RankFacts]) -> Iterator[Shown]:
    if not all(facts.data_parallel for facts in ranks):
        return
    for step, digests in enumerate(zip(*(facts.digests for facts in ranks), strict=False)):
        if len(set(digests)) > 1:
            yield Shown(
                DRIFT, ranks[0].step,
                Text("the weights differ between ranks at optimizer step {step}", "在第 {step} 次更新时各 rank 的权重不同"),
                {"step": str(step)},
                (number("different sets of weights", "不同的权重组数", len(set(digests)), "", IN_THE_RUN),),
            )  # fmt: skip
            return
