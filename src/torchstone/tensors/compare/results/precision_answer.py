"""The first screen of a comparison: where it breaks, why, and what to keep in fp32."""

from __future__ import annotations

import math

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.finding import Finding
from torchstone.core.pictures import Evidence
from torchstone.core.text import Text
from torchstone.tensors.compare.results.outcome import PrecisionReport


def precision_answer(
    found: PrecisionReport, finding: Finding | None, pictures: tuple[Evidence, ...], topic: str
) -> Answer:
    """One sentence on the first bad place, or that there is none."""
    healthy = Text(
        f"No operator of the step loses precision in {found.low}",
        f"该步骤中没有算子在 {found.low} 下异常损失精度",
    )
    lines: tuple[Text, ...] = ()
    if finding is not None:
        lines = tuple(Text(m.say("en"), m.say("zh")) for m in (finding.why, finding.remedy))
    return Answer(
        headline=healthy if finding is None else Text(finding.message("en"), finding.message("zh")),
        state="good" if finding is None else "bad",
        about=tuple(_about(found)),
        tiles=tuple(_tiles(found)),
        lines=lines,
        pictures=pictures,
        assumptions=tuple(found.notes),
        next=(f"torchstone explain {topic}",) if topic else (),
    )


def _about(found: PrecisionReport) -> list[Fact]:
    facts = [Fact(Text("compared", "比较"), f"{found.low} / {found.high}")]
    if found.first_bad is not None:
        place = found.first_bad.place
        facts.append(Fact(Text("module", "模块"), place.module or "(model)"))
        facts.append(Fact(Text("where", "位置"), f"{place.path}:{place.line}"))
    return facts


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %" if math.isfinite(value) else "∞"


def _tiles(found: PrecisionReport) -> list[Tile]:
    bad = found.first_bad is not None
    tiles = [
        Tile(Text("output error", "输出误差"), _percent(found.output_error), state="bad" if bad else "plain"),
    ]  # fmt: skip
    if found.gradient_errors:
        tiles.append(Tile(Text("gradient error", "梯度误差"), _percent(found.gradient_error)))
    if found.plan is not None and found.plan.keep:
        tiles.append(Tile(
            Text("keep in fp32", "保持 fp32"), ", ".join(found.plan.keep),
            Text(f"output error then {_percent(found.plan.error_after)}, measured",
                 f"此后输出误差 {_percent(found.plan.error_after)}，实测"),
            state="good" if found.plan.reached else "warning",
        ))  # fmt: skip
    return tiles
