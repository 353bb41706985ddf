"""The first screen of a comparison: where it breaks, why, and what to keep in fp32."""

from __future__ import annotations

import linecache
import math

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.finding import Finding
from torchstone.core.pictures import Evidence
from torchstone.core.text import Text
from torchstone.tensors.compare.results.outcome import Plan, PrecisionReport

_MOST_LINES = 12
MODEL = Text("(model)", "（模型）")
"""Where no module of it is meant."""


def precision_answer(
    found: PrecisionReport, finding: Finding | None, pictures: tuple[Evidence, ...], topic: str
) -> Answer:
    """One sentence on the first bad place, or that there is none."""
    lines: tuple[Text, ...] = ()
    if finding is not None:
        lines = tuple(Text(m.say("en"), m.say("zh")) for m in (finding.why, finding.remedy))
    elif found.unexplained:
        lines = _growth_lines(found)
    return Answer(
        headline=_headline(found, finding),
        state="bad" if finding is not None else "warning" if found.unexplained else "good",
        warnings=_missed(found),
        about=tuple(_about(found)),
        tiles=tuple(_tiles(found)),
        lines=lines,
        pictures=pictures,
        assumptions=tuple(found.notes),
        next=(f"torchstone explain {topic}",) if topic else (),
    )


def _headline(found: PrecisionReport, finding: Finding | None) -> Text:
    if finding is not None:
        return Text(finding.message("en"), finding.message("zh"))
    if found.unexplained:
        what = _harm(found)
        return Text(
            f"{what.en}, and no single line is to blame: the error grows over {len(found.growth)} lines",
            f"{what.zh}，但不是由某一行造成：误差在 {len(found.growth)} 行中逐步增大",
        )
    return Text(
        f"No operator of the step loses precision in {found.low}",
        f"该步骤中没有算子在 {found.low} 下异常损失精度",
    )


def _growth_lines(found: PrecisionReport) -> tuple[Text, ...]:
    """Where the error grows, at most a screen of it; all of it stands in the table."""
    shown = []
    for item in found.growth[-_MOST_LINES:]:
        source = linecache.getline(item.place.path, item.place.line).strip()
        text = f"{percent(item.entering)} → {percent(item.leaving)}  {item.place}  {source}"
        shown.append(Text(text, text))
    return tuple(shown)


def _harm(found: PrecisionReport) -> Text:
    """The worst that became of the step."""
    if found.loss_flushed:
        return Text(
            f"The loss is 0 in {found.low} and {found.loss_high:.3g} in {found.high}",
            f"{found.low} 下损失为 0，{found.high} 下为 {found.loss_high:.3g}",
        )
    if found.plan is not None:
        error, bound = percent(found.output_error), percent(found.plan.bound)
        return Text(
            f"The output error in {found.low} is {error}, above the bound of {bound}",
            f"{found.low} 下的输出误差为 {error}，超过目标 {bound}",
        )
    errors = percent(found.output_error), percent(found.gradient_error)
    return Text(
        f"In {found.low} the outputs are off by {errors[0]} and the gradients by {errors[1]}",
        f"{found.low} 下输出误差为 {errors[0]}，梯度误差为 {errors[1]}",
    )


def _missed(found: PrecisionReport) -> tuple[Text, ...]:
    """The plan says so itself when it is not good enough."""
    if found.plan is None or found.plan.reached:
        return ()
    after, bound = percent(found.plan.error_after), percent(found.plan.bound)
    count = len(found.plan.keep)
    if not count:
        return (
            Text(
                f"The mixed-precision plan misses its bound: no set of modules in fp32 brings the output "
                f"error of {after} near the bound of {bound}; it is lost between modules or outside of them",
                f"混合精度方案未达到目标：没有一组模块保持 fp32 能使输出误差（{after}）接近目标 {bound}；"
                "误差来自模块之间的舍入或模块之外的运算",
            ),
        )
    return (
        Text(
            f"The mixed-precision plan misses its bound: with {count} modules in fp32 the output error "
            f"is {after}, the bound is {bound}; what is left is lost between modules and outside of them",
            f"混合精度方案未达到目标：{count} 个模块保持 fp32 后输出误差仍为 {after}，目标为 {bound}；"
            "其余误差来自模块之间的舍入和模块之外的运算",
        ),
    )


def _about(found: PrecisionReport) -> list[Fact]:
    facts = [Fact(Text("compared", "比较"), f"{found.low} / {found.high}")]
    if found.first_bad is not None:
        place = found.first_bad.place
        facts.append(Fact(Text("module", "模块"), place.module or MODEL))
        facts.append(Fact(Text("where", "位置"), f"{place.path}:{place.line}"))
    return facts


def _plan_note(plan: Plan) -> Text:
    after, bound = percent(plan.error_after), percent(plan.bound)
    if plan.reached:
        return Text(f"output error then {after}, measured", f"此后输出误差 {after}，实测")
    return Text(
        f"output error then {after}: the bound of {bound} is missed",
        f"此后输出误差 {after}：未达到目标 {bound}",
    )


def percent(value: float) -> str:
    return f"{100 * value:.3g} %" if math.isfinite(value) else "∞"


def _tiles(found: PrecisionReport) -> list[Tile]:
    bad = found.first_bad is not None
    tiles = [
        Tile(Text("output error", "输出误差"), percent(found.output_error), state="bad" if bad else "plain"),
    ]  # fmt: skip
    if found.gradient_errors:
        tiles.append(Tile(Text("gradient error", "梯度误差"), percent(found.gradient_error)))
    if found.plan is not None and found.plan.keep:
        tiles.append(Tile(
            Text("keep in fp32", "保持 fp32"), ", ".join(found.plan.keep),
            _plan_note(found.plan),
            state="good" if found.plan.reached else "warning",
        ))  # fmt: skip
    return tiles
