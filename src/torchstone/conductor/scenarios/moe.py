"""Mixture of experts."""

from __future__ import annotations

from torchstone.conductor.checkpoints import Checkpoint
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.core.text import Text

NAME = "moe"
TITLE = Text("MoE (mixture of experts) components", "MOE(Mixture of Experts)组件优化工作流")
STEPS = (
    Text("router", "路由器分析"),
    Text("expert parallelism", "专家并行验证"),
    Text("load balance", "负载均衡检查"),
    Text("use of the experts", "专家利用率检查"),
    Text("cost of communication", "通信开销分析"),
    Text("advice on integration", "集成优化建议"),
)
CHECKPOINTS = (
    Checkpoint(
        Text("numerical stability and correctness of the router", "路由器实现的数值稳定性和正确性"),
        ("PR204", "PR208", "PR307", "PR308", "TS104"),
        ("probes",),
    ),
    Checkpoint(
        Text("communication of expert parallelism", "专家并行策略的通信效率"),
        ("DR6*", "TS4*", "PR403", "PR409", "PR413"),
        ("dryrun", "probes"),
    ),
    Checkpoint(
        Text("load balancing works", "负载均衡机制的有效性"),
        ("PR303", "PR305", "PR306", "PR212", "PR213"),
        ("probes",),
    ),
    Checkpoint(
        Text("experts are chosen and combined correctly", "专家选择和组合的正确性"),
        ("PR301", "PR302", "PR306", "PR203"),
        ("probes",),
    ),
)


def applies(facts: ProjectFacts) -> bool:
    return facts.uses("MoE", "EP")
