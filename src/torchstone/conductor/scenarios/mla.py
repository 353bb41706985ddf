"""Multi-head latent attention."""

from __future__ import annotations

from torchstone.conductor.checkpoints import Checkpoint
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.core.text import Text

NAME = "mla"
TITLE = Text("MLA (multi-latent attention) components", "MLA(Multi-Latent Attention)组件优化工作流")
STEPS = (
    Text("code structure", "代码结构分析"),
    Text("shape analysis (PyTea)", "PyTea形状分析"),
    Text("attention mechanism", "注意力机制验证"),
    Text("consistency of types", "类型一致性检查"),
    Text("distributed synchronisation", "分布式同步检查"),
    Text("advice on performance", "性能优化建议"),
)
CHECKPOINTS = (
    Checkpoint(
        Text("consistent tensor shapes in multi-head attention", "多头注意力机制的张量形状一致性"),
        ("DR1*", "DR2*", "DR502", "DR600", "PR203", "PR211", "PR220"),
        ("dryrun", "probes"),
    ),
    Checkpoint(
        Text("numerical stability of attention scores", "注意力分数计算中的数值稳定性"),
        (
            "PR117",
            "PR207",
            "PR208",
            "PR209",
            "PR210",
            "PR221",
            "TS104",
            "TS105",
            "TS112",
            "TS120",
            "TS207",
        ),
        ("probes",),
    ),
    Checkpoint(
        Text("attention masks under parallelism", "并行策略下的注意力掩码处理"),
        ("PR201", "PR202", "PR210", "PR412", "DR601", "DR602"),
        ("probes", "dryrun"),
    ),
    Checkpoint(
        Text("latents are aggregated and distributed correctly", "多潜在表示的正确聚合和分发"),
        ("PR205", "PR206", "PR212", "PR213", "PR407"),
        ("probes",),
    ),
)


def applies(facts: ProjectFacts) -> bool:
    return facts.uses("MLA")
