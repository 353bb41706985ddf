"""The options of `torchstone flow`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchstone.core.options import option


def _script_option() -> Any:
    return option(
        "", "a script, which is RUN", "要运行的脚本（将真实执行）",
        positional=True, config=False, metavar="SCRIPT",
    )  # fmt: skip


def _arguments_option() -> Any:
    return option(
        (), "arguments for the script, after --", "传给脚本的参数，写在 -- 之后",
        positional=True, config=False, split=False, metavar="ARGS",
    )  # fmt: skip


def _call_option() -> Any:
    return option(
        "", "call this function instead of a script: module:function",
        "不运行脚本，而是调用该函数：module:function", config=False, metavar="MODULE:FUNCTION",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What is traced, and what is written besides the report."""

    script: str = _script_option()
    arguments: tuple[str, ...] = _arguments_option()
    call: str = _call_option()
    save: str = option(
        ".torchstone/flow/trace.json", "the file for the graph, which `flow plan` reads",
        "保存数据流图的文件，供 `flow plan` 读取", config=False, metavar="FILE",
    )  # fmt: skip
    svg: str = option(
        "", "write the graph as SVG, folded when it is large", "把图写为 SVG，图大时自动折叠",
        config=False, metavar="FILE",
    )  # fmt: skip
    chrome: str = option(
        "", "write a time line for Perfetto", "写出供 Perfetto 查看的时间线",
        config=False, metavar="FILE",
    )  # fmt: skip
    max_depth: int = option(
        10, "calls inside each other that are recorded", "记录的调用嵌套层数", metavar="N"
    )
    max_events: int = option(500_000, "events at most", "最多记录的事件数", metavar="N")


@dataclass(frozen=True, slots=True)
class StepsOptions:
    """Which training script, and how much of it."""

    script: str = _script_option()
    arguments: tuple[str, ...] = _arguments_option()
    call: str = _call_option()
    steps: int = option(
        20, "optimizer steps to measure; the script is ended after them",
        "测量的优化器步数；测完即结束脚本", metavar="N",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Which trace, for which device."""

    trace: str = option(
        ".torchstone/flow/trace.json", "a trace that `flow trace` wrote", "`flow trace` 写出的追踪文件",
        positional=True, config=False, metavar="TRACE",
    )  # fmt: skip
    device: str = option(
        "cuda:0", "where operators may move: cuda, mps, xpu, npu (with a number), cpu",
        "算子可迁移到的设备：cuda、mps、xpu、npu（可带编号）、cpu", metavar="NAME",
    )  # fmt: skip
    model: str = option(
        "a100-80g", "the accelerator that is assumed where the device is not here",
        "本机没有该设备时所假设的加速器型号", metavar="NAME",
    )  # fmt: skip
    profile: str = option(
        "", "measured speeds of the device, as JSON", "设备实测性能的 JSON 文件",
        config=False, metavar="FILE",
    )  # fmt: skip
    goal: str = option(
        "latency", "minimise latency (calls run one by one) or maximise throughput (stages overlap)", "逐个调用，或各阶段重叠执行",
        choices=("latency", "throughput"),
    )  # fmt: skip
    batch: int = option(
        1, "calls that share a launch and a transfer", "共用一次启动与传输的调用数", metavar="N"
    )
    workers: int = option(
        0,
        "DataLoader workers that share the work of the CPU",
        "分担 CPU 工作的 DataLoader 工作进程数",
        metavar="N",
    )
    consumer: str = option(
        "cpu", "where the results are needed: cpu, or device if a model there takes them",
        "结果在何处使用：cpu，或 device（由设备上的模型使用）", choices=("cpu", "device"),
    )  # fmt: skip
    allow_rounding: bool = option(
        False,
        "what is only within a tolerance of the original may move, too",
        "允许迁移仅在容差内相等的调用",
    )
    fuse: bool = option(
        False,
        "calls are compiled on the device, which leaves few kernels of each",
        "调用在设备上会被编译，每次调用只剩少数 kernel",
    )
    parts: int = option(2, "parts of the graph in the statistics", "统计中的分区数", metavar="K")
    save: str = option(
        ".torchstone/flow/plan.json", "the file for the plan, which `flow run` reads",
        "保存迁移计划的文件，供 `flow run` 读取", config=False, metavar="FILE",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Which plan, for which engine."""

    plan: str = option(
        ".torchstone/flow/plan.json", "a plan that `flow plan` wrote", "`flow plan` 写出的计划",
        positional=True, config=False, metavar="PLAN",
    )  # fmt: skip
    ray: bool = option(
        False, "a script with a Ray Data pipeline", "生成 Ray Data 管道脚本", config=False
    )
    call: str = option(
        "", "the function that makes one sample of one item: module:function",
        "由一项数据得到一个样本的函数：module:function", config=False, metavar="MODULE:FUNCTION",
    )  # fmt: skip
    save: str = option(
        "ray_pipeline.py", "the file for the script", "脚本文件", config=False, metavar="FILE"
    )
    batch: int = option(32, "samples in a batch", "每批样本数", metavar="N")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Which plan, and what is run with it."""

    script: str = _script_option()
    arguments: tuple[str, ...] = _arguments_option()
    call: str = _call_option()
    plan: str = option(
        ".torchstone/flow/plan.json", "a plan that `flow plan` wrote", "`flow plan` 写出的计划",
        config=False, metavar="FILE",
    )  # fmt: skip
    allow_rounding: bool = option(
        False,
        "what is only within a tolerance of the original moves, too",
        "允许迁移仅在容差内相等的调用",
    )
    save_profile: str = option(
        "", "write how fast moved functions were on the device in this run, for `flow plan --profile`",
        "写出本次运行中各迁移函数在设备上的实测速度，供 `flow plan --profile` 使用",
        config=False, metavar="FILE",
    )  # fmt: skip
