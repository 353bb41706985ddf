"""Mixed precision."""

from __future__ import annotations

from torchstone.conductor.checkpoints import Checkpoint
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.core.text import Text

NAME = "amp"
TITLE = Text("Mixed-precision training", "混合精度训练优化工作流")
STEPS = (
    Text("data types", "数据类型分析"), Text("numerical stability", "数值稳定性检查"),
    Text("precision conversions", "精度转换验证"), Text("memory use", "内存使用检查"),
    Text("effect on performance", "性能影响分析"), Text("advice", "优化建议"),
)  # fmt: skip
CHECKPOINTS = (
    Checkpoint(Text("mixed-precision configuration is right", "混合精度配置的正确性"), ("TS1*",), ("lint",)),
)  # fmt: skip


def applies(facts: ProjectFacts) -> bool:
    return facts.uses("autocast", "scaler", "fp8", "half")
