"""A whole checkpoint: every tensor looked at in turn, the riskiest first, and is it ready for fp8?"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.errors import TorchstoneError
from torchstone.core.evidence import Command, Number
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Heatmap, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.skills import TOPIC_OF_RULE
from torchstone.tensors.analysis.errors.by_format import figures_by_format
from torchstone.tensors.analysis.errors.figures import Figures, measure_matrix
from torchstone.tensors.analysis.errors.imbalance import look_along_axis
from torchstone.tensors.analysis.report import TOOL, environment, risk_finding
from torchstone.tensors.analysis.risk import RISK_NAMES, Risk, judge_tensor, risk_level
from torchstone.tensors.analysis.values.distribution import Distribution, read_distribution
from torchstone.tensors.files.pairing import pair_codes
from torchstone.tensors.files.stored import StoredTensor
from torchstone.tensors.files.stored_codes import (
    StoredMatrix,
    describe_stored,
    is_packed_block,
    read_blocks,
    read_matrix,
    stored_finding,
)
from torchstone.tensors.formats import all_formats
from torchstone.tensors.one_thread import one_thread

_ROWS = 1 << 15
_WIDTH = 1 << 12
_FLUSHED = 0.01
"""Below 1 % flushed was healthy in published fp8 training (Ling 2.0)."""
_WORST_ROW_DB = 15.0
"""An e4m3 row without flush or clip has 31 dB; 15 dB means that half of its power is gone twice."""
_SHOWN = 5  # tensors on a first screen; all of them stand in the table
_NAMED = 8  # names in one sentence
_FINER = ("row", "128x128", "1x128")
_FLOATING = ("float", "bfloat", "Q", "q", "IQ", "TQ", "MXFP", "NVFP")


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """One tensor of a checkpoint in a line."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    total: int
    largest: float
    octaves: float
    broken: int
    """NaN and infinite values."""
    fp16: Figures
    e4m3: Figures
    risks: tuple[Risk, ...]
    """In 16 bits, as `analyze_tensor` has them."""
    fp8: str
    """`tensor`, `row`, … : the coarsest scale that is good enough; `no`; or `–` for no matrix."""

    @property
    def risk(self) -> str:
        return risk_level(self.risks)

    @property
    def is_ready(self) -> bool:
        """One scale is enough for fp8, and every value is a number."""
        return self.fp8 == "tensor" and not self.broken

    @property
    def riskiness(self) -> tuple[int, bool, int, float]:
        fp8 = {"no": 0, "tensor": 2, "–": 2}.get(self.fp8, 1)
        return (
            {"HIGH": 0, "MEDIUM": 1, "LOW": 2}[self.risk],
            not self.broken,
            fp8,
            -self.e4m3.flushed,
        )


def survey_checkpoint(
    entries: list[StoredTensor],
    subject: str,
    progress: Callable[[int, int, str], None],
    originals: Sequence[StoredTensor] = (),
) -> Report:
    """The report of a file or folder of tensors; `originals` are those that it was quantised from."""
    summaries: list[TensorSummary] = []
    stored: list[StoredMatrix] = []
    gaps: list[Gap] = []
    pairs = {pair.codes.name: pair for pair in pair_codes(entries)}
    before = {entry.name: entry for entry in originals}
    for place, entry in enumerate(entries):
        progress(place, len(entries), entry.name)
        try:
            with one_thread():
                if (pair := pairs.get(entry.name)) is not None:
                    stored.append(read_matrix(pair, before.get(pair.original_name)))
                elif is_packed_block(entry):
                    stored.append(read_blocks(entry, before.get(entry.name)))
                summary = _summary(entry)
        except TorchstoneError as error:
            gaps.append(_gap(entry, error))
            continue
        summaries += [summary] if summary else []
    summaries.sort(key=lambda item: item.riskiness)
    lost = [found for one in stored if (found := stored_finding(one)) is not None]
    findings = (*lost, *(found for item in summaries for found in _findings(item)))
    measures = tuple(_measures(summaries, entries))
    unread = tuple(gap.subject for gap in gaps)
    answer = replace(
        _answer(summaries, len(entries), subject),
        warnings=_unread_warning(unread, len(entries)),
    )
    if stored:
        answer = describe_stored(answer, stored, bool(findings))
    return Report(
        TOOL, findings, measures, tuple(gaps), environment(), subject=subject, answer=answer
    )


def _answer(summaries: list[TensorSummary], count: int, subject: str) -> Answer:
    """Ready for fp8, and which layers are not."""
    matrices = [item for item in summaries if item.fp8 != "–"]
    refused = [item.name for item in matrices if item.fp8 == "no"]
    finer = [item.name for item in matrices if item.fp8 not in ("tensor", "no")]
    good = sum(1 for item in matrices if item.is_ready)
    broken = sum(1 for item in summaries if item.broken)
    risky = sum(1 for item in summaries if item.risk == "HIGH")
    lines = [
        Text(
            f"stay in bf16: {', '.join(refused[:_NAMED])}",
            f"保持 bf16：{'、'.join(refused[:_NAMED])}",
        )
    ]
    lines += [
        Text(
            f"need a finer scale: {', '.join(finer[:_NAMED])}",
            f"需要更细的缩放：{'、'.join(finer[:_NAMED])}",
        )
    ]
    return Answer(
        headline=_headline(good, len(matrices), broken),
        state="bad" if risky or refused else "warning" if finer else "good",
        about=(Fact(Text("file", "文件"), subject), Fact(Text("tensors", "张量"), f"{count:,}")),
        tiles=(
            Tile(Text("high risk in 16 bits", "16 位高风险"), f"{risky}", state="bad" if risky else "plain"),
            Tile(Text("finer scale", "更细的缩放"), f"{len(finer)}", state="warning" if finer else "plain"),
            Tile(Text("stay in bf16", "保持 bf16"), f"{len(refused)}", state="bad" if refused else "plain"),
            Tile(Text("with NaN or Inf", "含 NaN 或 Inf"), f"{broken}", state="bad" if broken else "plain"),
        ),
        lines=(
            *(line for line, names in zip(lines, (refused, finer), strict=True) if names),
            *_rows_of_first_screen(summaries),
        ),
        pictures=(_table(summaries), *_heatmaps(matrices)),
        next=(shlex.join(["torchstone", "tensor", subject, "--name", summaries[0].name]),) if summaries else (),
    )  # fmt: skip


def _rows_of_first_screen(summaries: list[TensorSummary]) -> list[Text]:
    """The formats of the file, and the riskiest tensors with their ranges."""
    if not summaries:
        return []
    kinds = Counter(item.dtype for item in summaries)
    formats = ", ".join(f"{name} ({count})" for name, count in kinds.most_common())
    shown = summaries[:_SHOWN]
    wide = max(len(item.name) for item in shown)
    rows = [
        Text(
            f"stored as {formats}; the riskiest of {len(summaries)}:",
            f"存储格式 {formats}；{len(summaries)} 个张量中风险最高者：",
        )
    ]
    for item in shown:
        flushed = f"{100 * item.fp16.flushed:.2g} %", f"{100 * item.e4m3.flushed:.2g} %"
        octaves = f"{item.octaves:.1f}"
        rows.append(
            Text(
                f"{item.name:{wide}}  {item.risk}, largest {item.largest:.3g}, 2^{octaves} × the median, "
                f"flushed: fp16 {flushed[0]}, e4m3 {flushed[1]}",
                f"{item.name:{wide}}  风险{RISK_NAMES[item.risk].zh}，最大绝对值 {item.largest:.3g}，"
                f"为中位数的 2^{octaves} 倍，下溢：fp16 {flushed[0]}，e4m3 {flushed[1]}",
            )
        )
    return rows


def _unread_warning(names: tuple[str, ...], count: int) -> tuple[Text, ...]:
    if not names:
        return ()
    more = f" (+{len(names) - _NAMED})" if len(names) > _NAMED else ""
    return (
        Text(
            f"{len(names)} of {count} tensors could not be read: {', '.join(names[:_NAMED])}{more}",
            f"{count} 个张量中有 {len(names)} 个无法读取：{'、'.join(names[:_NAMED])}{more}",
        ),
    )


def _headline(good: int, matrices: int, broken: int) -> Text:
    ready = Text(
        f"Ready for fp8: {good} of {matrices} matrices with one scale each",
        f"可用 fp8：{matrices} 个矩阵中的 {good} 个（整个张量一个缩放）",
    )
    if not matrices:
        ready = Text("No floating-point matrices to store in fp8", "没有可存为 fp8 的浮点矩阵")
    if not broken:
        return ready
    holds = "tensor holds" if broken == 1 else "tensors hold"
    return Text(
        f"{broken} {holds} NaN or infinite values. {ready.en}",
        f"{broken} 个张量含 NaN 或无穷。{ready.zh}",
    )


def _summary(entry: StoredTensor) -> TensorSummary | None:
    source = entry.source()
    if not source.dtype.startswith(_FLOATING) or not entry.count:
        return None  # indices and masks are not rounded
    known = all_formats()
    distribution = read_distribution(source)
    rows = source.sample_rows(_ROWS, _WIDTH)
    half, small = figures_by_format(distribution, (known["fp16"], known["e4m3"]), rows)
    risks, _ = judge_tensor(distribution, (half,), look_along_axis(distribution, entry.name, None))
    median = distribution.median
    octaves = float(np.log2(distribution.largest / median)) if median else 0.0
    return TensorSummary(
        entry.name, entry.shape, source.dtype, distribution.total, distribution.largest, octaves,
        distribution.nans + distribution.infinities, half, small, tuple(risks),
        _fp8_scale(distribution, small, rows) if len(entry.shape) > 1 else "–",
    )  # fmt: skip


def _fp8_scale(distribution: Distribution, at_tensor: Figures, rows: torch.Tensor) -> str:
    """The coarsest scale under which e4m3 keeps the tensor."""
    if _good_enough(at_tensor):
        return "tensor"
    e4m3 = all_formats()["e4m3"]
    for granularity in _FINER:
        said = Text("", "")
        made = measure_matrix(rows, e4m3, granularity, "amax", said, distribution.largest)
        if _good_enough(made):
            return granularity
    return "no"


def _good_enough(figures: Figures) -> bool:
    worst = figures.worst_row
    return figures.flushed <= _FLUSHED and (worst is None or worst.sqnr_db >= _WORST_ROW_DB)


def _gap(entry: StoredTensor, error: TorchstoneError) -> Gap:
    reason = Text(error.say("en"), error.say("zh"))
    return Gap(
        entry.name, Message("tensor.unreadable", reason), error.todo.en,
        Location(tensor=entry.name), failed=True, tool=TOOL,
    )  # fmt: skip


def _findings(item: TensorSummary) -> list[Finding]:
    """Risks that are HIGH, and matrices that fp8 cannot hold; the table has the rest."""
    found = [risk_finding(item.name, risk) for risk in item.risks if risk.severity is Severity.HIGH]
    return found + ([_not_ready(item)] if item.fp8 == "no" and not item.broken else [])


def _not_ready(item: TensorSummary) -> Finding:
    rule = "tensor-not-ready-for-fp8"
    return Finding(
        rule=rule, name=rule.removeprefix("tensor-"), severity=Severity.MEDIUM,
        confidence=Confidence.CERTAIN,
        what=Message(f"{rule}.what", Text(
            f"e4m3 flushes {item.e4m3.flushed:.1%} of the values, and no finer scale is enough",
            f"e4m3 会使 {item.e4m3.flushed:.1%} 的数值下溢，更细的缩放也不够")),
        why=Message(f"{rule}.why", Text(
            f"the largest value is {item.octaves:.1f} octaves above the median",
            f"最大值是中位数的 2^{item.octaves:.1f} 倍")),
        remedy=Message(f"{rule}.remedy", Text("keep this layer in bf16", "该层保持 bf16")),
        location=Location(tensor=item.name),
        evidence=(
            Number(Text("flushed in e4m3", "e4m3 下溢"), 100 * item.e4m3.flushed, "%", item.e4m3.how),
            Command(f"torchstone explain {TOPIC_OF_RULE[rule]}"),
        ),
        fingerprint=fingerprint(rule, item.name, ""), tool=TOOL,
    )  # fmt: skip


def _measures(summaries: list[TensorSummary], entries: list[StoredTensor]) -> list[Measure]:
    matrices = [item for item in summaries if item.fp8 != "–"]
    ready = [item for item in matrices if item.is_ready]
    finer = [item for item in matrices if item.fp8 not in ("tensor", "no")]
    refused = [item for item in matrices if item.fp8 == "no"]
    answer = Text(
        f"of {len(matrices)} matrices; {len(finer)} need a finer scale, {len(refused)} should stay in bf16",
        f"共 {len(matrices)} 个矩阵；{len(finer)} 个需要更细的缩放，{len(refused)} 个应保持 bf16",
    )
    total = sum(item.count for item in entries)
    return [
        Measure("ready_for_fp8", len(ready), "", answer, Text("ready for fp8", "可用 fp8 的矩阵"), tool=TOOL),
        Measure("values", total, "", Text(f"in {len(entries)} tensors", f"共 {len(entries)} 个张量"),
                Text("values", "数值个数"), tool=TOOL),
        Measure("bytes", sum(item.nbytes for item in entries), "B",
                Text("as stored, quantised ones as fp32", "按存储计，量化张量按 fp32 计"),
                Text("size", "大小"), tool=TOOL),
    ]  # fmt: skip


def _table(summaries: list[TensorSummary]) -> Table:
    columns = (
        Text("risk in 16 bits", "16 位风险"), Text("tensor", "张量"), Text("type", "类型"), Text("shape", "形状"),
        Text("fp8 scale per", "fp8 缩放粒度"), Text("e4m3 flushed %", "e4m3 下溢 %"),
        Text("e4m3 median error %", "e4m3 中位误差 %"), Text("worst row dB", "最差行 dB"),
        Text("fp16 flushed %", "fp16 下溢 %"), Text("fp16 overflow %", "fp16 上溢 %"),
        Text("largest", "最大绝对值"), Text("largest over median, octaves", "最大值/中位数（log2）"),
    )  # fmt: skip
    rows = tuple(
        (
            RISK_NAMES[item.risk], item.name, item.dtype, "×".join(map(str, item.shape)),
            Text("no", "不可用") if item.fp8 == "no" else item.fp8,
            round(100 * item.e4m3.flushed, 4), round(100 * item.e4m3.median_error, 3),
            None if item.e4m3.worst_row is None else round(item.e4m3.worst_row.sqnr_db, 1),
            round(100 * item.fp16.flushed, 4), round(100 * item.fp16.overflow, 4),
            float(f"{item.largest:.4g}"), round(item.octaves, 1),
        )
        for item in summaries
    )  # fmt: skip
    return Table(Text("Tensors, the riskiest first", "各张量，风险最高者在前"), columns, rows)


def _heatmaps(matrices: list[TensorSummary]) -> tuple[Heatmap, ...]:
    """Layers down, kinds of weight across: names with the layer's number taken out."""
    cells: dict[tuple[str, str], float] = {}
    for item in matrices:
        split = re.match(r"(.*?\.?\d+)\.(.+)", item.name)
        row, column = (split[1], split[2]) if split else (item.name, "weight")
        cells[row, column] = round(100 * item.e4m3.flushed, 4)
    rows = sorted({row for row, _ in cells}, key=_natural)
    columns = sorted({column for _, column in cells})
    if len(cells) < 4 or len(columns) > 64:
        return ()
    return (
        Heatmap(
            Text("e4m3 with one scale per tensor: flushed", "e4m3 整个张量一个缩放：下溢"),
            tuple(rows), tuple(columns),
            tuple(tuple(cells.get((row, column)) for column in columns) for row in rows), "%",
            Text("layers down, weights across", "行为层，列为权重"),
        ),
    )  # fmt: skip


def _natural(name: str) -> list[tuple[int, str]]:
    """`layers.10` after `layers.9`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
