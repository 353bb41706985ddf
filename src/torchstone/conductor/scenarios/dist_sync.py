"""Synchronisation of distributed training."""

from __future__ import annotations

from torchstone.conductor.checkpoints import Checkpoint
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.core.text import Text

NAME = "dist-sync"
TITLE = Text("Synchronisation of distributed training", "分布式训练同步优化工作流")
STEPS = (
    Text("parallel strategy", "并行策略分析"),
    Text("patterns of communication", "通信模式检查"),
    Text("synchronisation points", "同步点验证"),
    Text("bottlenecks", "性能瓶颈识别"),
    Text("risk of deadlocks", "死锁风险分析"),
    Text("advice", "优化建议"),
)
CHECKPOINTS = (
    Checkpoint(
        Text(
            "tensor, pipeline and expert parallelism are configured correctly",
            "张量、流水线和专家并行的正确配置",
        ),
        (
            "PR112",
            "PR402",
            "PR403",
            "PR404",
            "PR405",
            "PR410",
            "PR103",
            "DR600",
            "DR605",
            "TS404",
            "TS406",
            "TS407",
            "TS412",
            "TS413",
            "TS415",
        ),
        ("probes", "dryrun"),
    ),
    Checkpoint(
        Text("consistency of collective operations", "集体通信操作的一致性"),
        (
            "DR601",
            "DR602",
            "DR603",
            "DR605",
            "DR608",
            "PR406",
            "PR407",
            "PR413",
            "TS401",
            "TS403",
            "TS414",
            "TS416",
        ),
        ("dryrun", "probes"),
    ),
    Checkpoint(
        Text("possible deadlocks and races", "潜在的死锁和竞争条件"),
        ("DR601", "DR603", "DR604", "DR606", "DR607", "PR401", "TS402", "TS405", "TS411"),
        ("dryrun",),
    ),
    Checkpoint(
        Text("overlap of communication and computation", "通信和计算的重叠优化"),
        ("DR607", "PR408", "PR409", "TS410", "TS411", "TS417", "TS409"),
        ("probes", "lint"),
    ),
)


def applies(facts: ProjectFacts) -> bool:
    return facts.uses("DDP", "FSDP", "TP", "PP", "EP", "collectives", "process group")
