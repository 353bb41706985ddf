"""Things that run and are probably not what was meant, as findings."""

from __future__ import annotations

from torchstone.core.finding import Confidence, Finding
from torchstone.core.pictures import Evidence, Table
from torchstone.core.text import Message, Text, words
from torchstone.dryrun import rules
from torchstone.dryrun.record import Constraint, Hazard, OperatorError
from torchstone.dryrun.reporting.annotations import annotation_finding
from torchstone.dryrun.reporting.findings import make_finding, snippet_at
from torchstone.dryrun.reporting.refused import evidence_of
from torchstone.dryrun.shapes.words import shape_text

_HAZARDS = {
    rule.id: rule
    for rule in (
        rules.BROADCAST,
        rules.FLOAT64,
        rules.KINDS,
        rules.CUT,
        rules.LEAK,
        rules.UNTRAINED,
        rules.RACE,
    )
}
_ABOUT_MEANING = frozenset(_HAZARDS) - {rules.BROADCAST.id, rules.FLOAT64.id}
SHOWN = (*_HAZARDS, rules.ANNOTATION.id)
"""Hazards that one rank alone can tell."""


def hazard_finding(hazard: Hazard) -> Finding:
    """Something that runs and is probably not what was meant."""
    if hazard.rule == rules.ANNOTATION.id:
        return annotation_finding(hazard)
    rule = _HAZARDS[hazard.rule]
    shapes = ", ".join(
        f"{item.name} {shape_text(item.shape)} {item.dtype}" for item in hazard.operands[:3]
    )
    error = OperatorError(
        hazard.op, "", hazard.place, module=hazard.module, operands=hazard.operands
    )
    fixes = {
        rules.BROADCAST.id: Text(
            "give both the same number of axes: squeeze(-1) or unsqueeze(-1) on one of them",
            "让两者维数相同：对其中之一使用 squeeze(-1) 或 unsqueeze(-1)",
        ),
        rules.FLOAT64.id: Text(
            "make the float64 tensor float32 where it comes in: .float()",
            "在来源处把 float64 张量转为 float32：.float()",
        ),
        rules.KINDS.id: Text(
            "cross_entropy and binary_cross_entropy_with_logits take logits, nll_loss and kl_div log-probabilities, "
            "binary_cross_entropy probabilities: take the activation out, or take the loss that fits",
            "cross_entropy 与 binary_cross_entropy_with_logits 需要 logits，nll_loss 与 kl_div 需要对数概率，"
            "binary_cross_entropy 需要概率：去掉激活函数，或换用对应的损失",
        ),
        rules.CUT.id: Text(
            "take the cut out, or leave the parameters out of the optimizer if they should not be trained",
            "去掉此处的截断；若这些参数本不应训练，则不要放入优化器",
        ),
        rules.UNTRAINED.id: Text(
            "hold layers in nn.ModuleList, and make the optimizer after the model is complete",
            "用 nn.ModuleList 存放层，并在模型构建完成之后再创建优化器",
        ),
        rules.RACE.id: Text(
            "call wait() on the work before the buffer is used again, or give the collective a copy",
            "再次使用该缓冲区之前先调用 wait()，或让集合通信使用副本",
        ),
        rules.LEAK.id: Text(
            "split the rows once, and give no row to both",
            "只划分一次数据，同一行不要同时给两边",
        ),
    }
    return make_finding(
        rule,
        Text("{op} {detail}{shapes}", "{op} {detail_zh}{shapes}")
        if hazard.rule in _ABOUT_MEANING
        else Text("{op}: {detail} ({shapes})", "{op}：{detail_zh}（{shapes}）"),
        {
            "op": hazard.op,
            "detail": words(hazard.detail, "en"),
            "detail_zh": words(hazard.detail, "zh"),
            "shapes": "" if hazard.rule in _ABOUT_MEANING else shapes,
        },
        rule.why,
        Message(f"{rule.name}-fix", fixes[rule.id]),
        hazard.place,
        evidence_of(error),
        module=hazard.module,
        op=hazard.op,
        confidence=Confidence.LIKELY,
    )


def constraint_finding(item: Constraint) -> Finding:
    """A size for which the model does not hold."""
    evidence: list[Evidence] = [snippet] if (snippet := snippet_at(item.place)) else []
    table = Table(
        Text("the guard of torch's shape environment", "torch 形状环境的约束"),
        (Text("expression", "表达式"), Text("line", "行")),
        ((item.expression, str(item.place)),),
    )
    return make_finding(
        rules.CONSTRAINT,
        Text("{en}", "{zh}"),
        {"en": item.en, "zh": item.zh},
        rules.CONSTRAINT.why,
        Message("none"),
        item.place,
        (*evidence, table),
    )
