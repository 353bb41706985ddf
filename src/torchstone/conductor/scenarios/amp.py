"""Mixed precision."""

from __future__ import annotations

from torchstone.conductor.checkpoints import Checkpoint
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.core.text import Text

NAME = "amp"
TITLE = Text("Mixed-precision training", "混合精度训练优化工作流")
STEPS = (
    Text("data types", "数据类型分析"),
    Text("numerical stability", "数值稳定性检查"),
    Text("precision conversions", "精度转换验证"),
    Text("memory use", "内存使用检查"),
    Text("effect on performance", "性能影响分析"),
    Text("advice", "优化建议"),
)
CHECKPOINTS = (
    Checkpoint(
        Text("mixed-precision configuration is right", "混合精度配置的正确性"),
        (
            "PR101",
            "PR103",
            "PR107",
            "PR110",
            "PR111",
            "PR113",
            "TS107",
            "TS108",
            "TS109",
            "TS111",
            "TS121",
            "TS122",
            "TS123",
            "TS124",
            "TS126",
            "TS128",
            "TS211",
        ),
        ("probes", "lint"),
    ),
    Checkpoint(
        Text("numerical stability of key operations", "关键操作的数值稳定性"),
        (
            "PR115",
            "PR117",
            "PR208",
            "PR209",
            "PR210",
            "TS104",
            "TS105",
            "TS112",
            "TS113",
            "TS114",
            "TS120",
            "TS125",
        ),
        ("probes",),
    ),
    Checkpoint(
        Text("precision is converted at sensible points", "精度转换点的合理性"),
        ("PR114", "PR116", "PR119", "TS101", "TS102", "TS103", "TS106", "DR105", "DR202"),
        ("probes", "lint"),
    ),
    Checkpoint(
        Text("balance of memory and speed", "内存使用和性能平衡"),
        ("DR301", "DR202", "PR118", "PR120", "TS110", "TS306", "TS316", "TS320"),
        ("probes", "dryrun", "lint"),
    ),
)


def applies(facts: ProjectFacts) -> bool:
    return facts.uses("autocast", "scaler", "fp8", "half")
