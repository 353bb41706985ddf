"""`measure_cost(model, inputs)`: one counted pass as a report."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from torchstone._version import __version__
from torchstone.core.errors import InputError, UsageError
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence
from torchstone.core.text import Message, Text
from torchstone.cost.arguments import choice, module
from torchstone.cost.conventions import CONVENTIONS, by_convention
from torchstone.cost.counting.engine import Inputs, MakeOptimizer, run
from torchstone.cost.counting.gaps import gaps_of
from torchstone.cost.records.idle import idle_parts
from torchstone.cost.records.ledger import BACKWARD, FORWARD, OPTIMIZER, RECOMPUTE, Cost
from torchstone.cost.reporting import pictures
from torchstone.cost.reporting.answer import assumed, cost_answer, idle_text
from torchstone.cost.reporting.report import CostReport
from torchstone.cost.stages import StageMap, Stages, preset, top_stages

OPTIMIZERS: dict[str, MakeOptimizer | None] = {
    "none": None,
    "adamw": lambda p: torch.optim.AdamW(p, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, foreach=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, foreach=True),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
}


def measure_cost(
    model: nn.Module,
    inputs: Inputs,
    train: bool = False,
    *,
    optimizer: str | MakeOptimizer | None = None,
    stages: StageMap | str | None = None,
    convention: str = "flop",
    causal: bool = False,
    batch: int = 1,
    sequence: int | None = None,
    autocast: torch.dtype | None = None,
    replay: bool = True,
    fused: bool = True,
) -> CostReport:
    """What one pass of `model` on `inputs` costs, counted on meta tensors: no weights are read,
    nothing is computed, the model stays as it was.

    `inputs` is a tensor, a tuple of positional arguments, a mapping of keyword arguments, or a
    shape such as `(8, 3, 224, 224)` or several. With `train`, the backward and one step of
    `optimizer` (adamw by default) are counted too. A warning says when parts of the model never ran.
    """
    module("measure_cost", model)
    inputs = inputs_from_shapes(inputs, model)
    choice("measure_cost: convention", convention, list(CONVENTIONS))
    if autocast not in (None, torch.bfloat16, torch.float16):
        raise UsageError(
            "measure_cost: autocast",
            str(autocast),
            "torch.bfloat16 | torch.float16",
            Text("pass one of the two", "请传入其中之一"),
        )
    if not (stages is None or isinstance(stages, (str, Mapping))):
        raise UsageError(
            "measure_cost: stages",
            type(stages).__name__,
            Text("a preset, or a mapping of names to patterns", "预设名，或由名称到模式的映射"),
            Text('pass {"name": ["module.*"]}', '请传入 {"名称": ["module.*"]}'),
        )
    make = _optimizer(optimizer) if train else None
    cost = run(
        model, inputs, train=train, optimizer=make, replay=replay, fused=fused, autocast=autocast
    )
    _refuse_nothing(cost, model, inputs)
    config = getattr(model, "config", None)
    idle = idle_parts(cost)
    if idle:
        warnings.warn(idle_text(cost, idle).en, PartialCostWarning, stacklevel=2)
    return report_of(
        cost,
        subject=type(model).__name__,
        stages=stages,
        convention=convention,
        causal=causal,
        config=config,
        batch=batch,
        sequence=sequence,
    )


class PartialCostWarning(UserWarning):
    """Part of the model never ran: its cost is not in the figures."""


def inputs_from_shapes(inputs: Inputs, model: nn.Module) -> Inputs:
    """A shape, or several, as tensors of the model's number format; anything else as it is."""
    shapes = (inputs,) if _is_shape(inputs) else inputs
    if not isinstance(shapes, (tuple, list)) or not shapes or not all(map(_is_shape, shapes)):
        return inputs
    first = next((item for item in model.parameters() if item.is_floating_point()), None)
    dtype = torch.get_default_dtype() if first is None else first.dtype
    return tuple(torch.empty(tuple(shape), dtype=dtype, device="meta") for shape in shapes)


def _is_shape(value: object) -> bool:
    return (
        isinstance(value, (tuple, list, torch.Size))
        and bool(value)
        and all(type(size) is int and size >= 0 for size in value)
    )


def _optimizer(wanted: str | MakeOptimizer | None) -> MakeOptimizer | None:
    if callable(wanted):
        return wanted
    name = "adamw" if wanted is None else wanted
    return OPTIMIZERS[choice("measure_cost: optimizer", name, list(OPTIMIZERS))]


def _refuse_nothing(cost: Cost, model: nn.Module, inputs: Inputs) -> None:
    """A model that fails before it computed anything got the wrong inputs: say so at once."""
    if cost.failure is None or cost.total().flops:
        return
    raise InputError(
        f"cost: {type(model).__name__}"
        + (f" at {cost.failure.module}" if cost.failure.module else ""),
        f"{described(inputs)}: {cost.failure.error}",
        Text("inputs that its forward takes", "forward 能接受的输入"),
        Text(
            "pass a tensor, a tuple or a dict of keywords that fits (--input 8,3,224,224:bf16 with "
            "--dtype bf16)",
            "请传入合适的张量、元组或关键字字典（--input 8,3,224,224:bf16 配合 --dtype bf16）",
        ),
    )


def described(inputs: Inputs) -> str:
    """The shapes of inputs in a line."""
    if isinstance(inputs, torch.Tensor):
        shape = ", ".join(map(str, inputs.shape))
        return f"({shape}) {str(inputs.dtype).removeprefix('torch.')}"
    if isinstance(inputs, Mapping):
        return ", ".join(f"{key}={described(value)}" for key, value in inputs.items())
    if isinstance(inputs, (tuple, list)):
        return ", ".join(described(item) for item in inputs)
    return type(inputs).__name__


def report_of(
    cost: Cost,
    *,
    subject: str,
    stages: StageMap | str | None = None,
    convention: str = "flop",
    causal: bool = False,
    config: Any = None,
    batch: int = 1,
    sequence: int | None = None,
    measures: Sequence[Measure] = (),
    gaps: Sequence[Gap] = (),
) -> CostReport:
    """A counted pass as a report with its pictures."""
    stage_map = preset(stages) if isinstance(stages, str) else stages or top_stages(cost)
    bare = CostReport(
        tool="cost",
        subject=subject,
        environment={
            "torchstone": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        cost=cost,
        division=Stages(stage_map),
        convention=convention,
        causal=causal,
        config=config,
    )
    figure = by_convention(
        cost, convention, attention="causal" if causal else None, config=config, batch=batch,
        sequence=sequence,
    ) if convention not in ("flop", "mac") else None  # fmt: skip
    return _filled(bare, figure, tuple(measures), tuple(gaps))


def _filled(
    report: CostReport, figure: Any, measures: tuple[Measure, ...], gaps: tuple[Gap, ...]
) -> CostReport:
    from dataclasses import replace

    own = [*_figures(report), *_memory(report)]
    if figure is not None:
        own.append(
            Measure(
                f"flops_{figure.convention}", float(figure.value), figure.unit, figure.rule,
                Text(f"by the {figure.convention} convention", f"按 {figure.convention} 口径"),
                tool="cost",
            )
        )  # fmt: skip
    own += [_assumption(item) for item in assumed(report.cost)]
    made = replace(report, measures=(*own, *measures), gaps=(*gaps_of(report.cost), *gaps))
    return replace(made, answer=cost_answer(made))


def _figures(report: CostReport) -> list[Measure]:
    total, cost = report.total, report.cost
    unit = pictures.flop_unit(report)
    rule = Text(
        "multiply-adds" if unit == "MAC" else "2 x multiply-adds",
        "乘加次数" if unit == "MAC" else "2 x 乘加次数",
    )
    kind = Text(
        "without what a causal mask makes needless" if report.causal else "full attention",
        "不含因果掩码省去的部分" if report.causal else "完整注意力",
    )
    how = Text(
        f"{rule.en} of matrix products, attention and convolutions, {kind.en}; counted on meta",
        f"矩阵乘法、注意力与卷积的 {rule.zh}，{kind.zh}；在 meta 上统计",
    )
    tables: tuple[Evidence, ...] = (pictures.stage_table(report),)
    details: tuple[Evidence, ...] = (
        pictures.module_table(report),
        pictures.operator_table(report),
        *_flames(report),
    )
    phases = [(FORWARD, "forward_flops", Text("forward", "前向"))]
    if cost.train:
        phases.append((BACKWARD, "backward_flops", Text("backward", "反向")))
        if cost.total(RECOMPUTE).calls:
            phases.append(
                (RECOMPUTE, "recompute_flops", Text("recomputed, on top", "重计算（另计）"))
            )
    return [
        _measure("params", total["params"], "", Text("parameters", "参数量"),
                 Text("shared weights counted once", "共享权重只计一次")),
        _measure("flops", total["flops"], unit, Text("FLOPs", "FLOPs"), how, tables),
        *(_measure(key, total[key], unit, Text(f"FLOPs, {name.en}", f"FLOPs，{name.zh}"), how)
          for phase, key, name in phases if cost.total(phase).calls),
        _measure("vector_flops", total["vector_flops"], "FLOP", Text("vector FLOPs", "向量 FLOPs"),
                 Text("all non-matmul operations: norms, activations, sums",
                      "一切非矩阵乘法的运算：归一化、激活、求和")),
        _measure("bytes", total["bytes"], "B", Text("bytes moved", "访存字节"),
                 Text("every operator reads its inputs and writes its outputs once, unfused",
                      "每个算子读一次输入、写一次输出，不考虑融合"), details),
    ]  # fmt: skip


def _flames(report: CostReport) -> list[Evidence]:
    unit = pictures.flop_unit(report)
    wanted = (
        ("flops", unit, Text("FLOPs by module", "各模块 FLOPs")),
        ("bytes", "B", Text("Bytes moved by module", "各模块访存字节")),
        ("activations", "B", Text("Activations kept by module", "各模块保留的激活")),
    )
    made = (pictures.flame(report, key, unit, name) for key, unit, name in wanted)
    return [item for item in made if item is not None]


def _memory(report: CostReport) -> list[Measure]:
    memory, train = report.cost.memory, report.cost.train
    plot = pictures.memory_plot(report.cost)
    kept = Text("kept for the backward when the forward ends", "前向结束时为反向保留")
    most = Text("most that intermediate tensors take at once", "中间张量同时占用的最大值")
    rows = [
        _measure("peak_memory_bytes", memory.peak, "B", Text("peak memory", "峰值内存"),
                 pictures.LIVES, (plot,) if plot else ()),
        _measure("parameter_bytes", memory.parameters, "B", Text("of parameters", "参数占用"),
                 pictures.LIVES),
        _measure("activations", memory.activations, "B", Text("activations", "激活"),
                 kept if train else most),
    ]  # fmt: skip
    if memory.buffers:
        rows.append(_measure("buffer_bytes", memory.buffers, "B", Text("of buffers", "缓冲区占用"),
                             pictures.LIVES))  # fmt: skip
    if train:
        rows += [
            _measure("gradient_bytes", memory.gradients, "B", Text("of gradients", "梯度占用"),
                     pictures.LIVES),
            *(_measure(f"peak_{phase}_bytes", size, "B",
                       Text(f"peak, {phase}", f"峰值，{_PHASES[phase]}"), pictures.LIVES)
              for phase, size in memory.peaks.items()),
        ]  # fmt: skip
        later = memory.later_peak
        if later != memory.peak:
            rows.append(_measure("later_peak_bytes", later, "B",
                                 Text("peak from the second step on", "第二步起的峰值"),
                                 Text("peaks of the phases, with the optimizer state there from the start",
                                      "各阶段峰值，加上一开始就存在的优化器状态")))  # fmt: skip
        if memory.optimizer:
            rows.append(_measure("optimizer_bytes", memory.optimizer, "B",
                                 Text("of optimizer state", "优化器状态占用"), pictures.LIVES))  # fmt: skip
    return rows


_PHASES = {FORWARD: "前向", BACKWARD: "反向", RECOMPUTE: "重计算", OPTIMIZER: "优化器"}


def _measure(
    name: str, value: int, unit: str, label: Text, how: Text, evidence: Sequence[Evidence] = ()
) -> Measure:
    return Measure(name, float(value), unit, how, label, evidence=tuple(evidence), tool="cost")


def _assumption(item: tuple[Message, str, int]) -> Measure:
    text, where, times = item
    return Measure(
        "assumption",
        float(times),
        "x",
        Text(text.say("en"), text.say("zh")),
        Text(f"assumed at {where or 'the model'}", f"假设，位于 {where or '模型'}"),
        Location(scope=where),
        tool="cost",
    )
