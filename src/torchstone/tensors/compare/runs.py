"""`compare_runs`: two implementations or two checkpoints on one batch, layer by layer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import InputError, UsageError
from torchstone.core.evidence import Command
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Plot, Series, Table
from torchstone.core.report import Report
from torchstone.core.text import Message, Text, locale_lang
from torchstone.tensors.analysis.report import environment
from torchstone.tensors.compare.low_model import in_low_precision
from torchstone.tensors.compare.step import Batch, LossFunction, as_batch, floating_outputs, loss_of

TOOL = "runs"
_TOLERANCE = 1e-5
"""Relative difference of fp32 results that another order of summation explains."""
_RATIO = 8
"""A layer diverges by itself when what comes out differs so many times more than what went in."""


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """One module in both runs."""

    name: str
    order: int
    entering: float
    leaving: float
    shapes: str = ""
    """Set where the outputs cannot be compared."""


@dataclass(frozen=True)
class RunsReport:
    """Where two runs part."""

    layers: tuple[LayerDifference, ...]
    first_divergence: LayerDifference | None
    output_error: float
    weights: dict[str, float]
    """Relative difference of parameters and buffers that differ."""
    gradients: dict[str, float]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    report: Report
    lang: str = "en"

    def to(self, format: str, lang: str = "", **options: Any) -> str:
        return self.report.to(format, lang or self.lang, **options)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.report.findings

    def to_json(self, indent: int | None = 2) -> str:
        return self.report.to_json(indent)

    def __str__(self) -> str:
        return self.to("text")

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def compare_runs(
    model_a: nn.Module,
    model_b: nn.Module,
    batch: Any,
    *,
    loss: LossFunction | None = None,
    tolerance: float = _TOLERANCE,
    seed: int = 0,
    lang: str = "",
) -> RunsReport:
    """The first layer whose outputs differ in two models although its inputs agree.

    Modules are matched by name and call. What the first run gave at a layer is held until the second run
    has reached it.
    """
    for name, model in (("model_a", model_a), ("model_b", model_b)):
        if not isinstance(model, nn.Module):
            raise UsageError(
                f"compare_runs: {name}", f"a {type(model).__name__}", Text("a torch module", "torch 模块"),
                Text("pass the nn.Module itself", "请传入 nn.Module 本身"),
            )  # fmt: skip
    given = as_batch(batch)
    seen: dict[tuple[str, int], tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    rows: list[LayerDifference] = []
    grads_a, out_a = _step(
        model_a, given, loss, seed, lambda key, ins, outs: _keep(seen, key, ins, outs)
    )
    grads_b, out_b = _step(
        model_b, given, loss, seed, lambda key, ins, outs: _compare(seen, rows, key, ins, outs)
    )
    names_a, names_b = (dict(model.named_modules()) for model in (model_a, model_b))
    first = next((row for row in rows if _diverges(row, tolerance)), None)
    found = RunsReport(
        tuple(rows), first, _distance(out_a, out_b)[0], _weights(model_a, model_b),
        {name: _distance([grads_a[name]], [grads_b[name]])[0] for name in grads_a if name in grads_b},
        tuple(sorted(set(names_a) - set(names_b))), tuple(sorted(set(names_b) - set(names_a))),
        Report(TOOL), lang or locale_lang(),
    )  # fmt: skip
    return replace(found, report=_report(found, tolerance, type(model_a).__name__))


def _keep(
    seen: Any, key: tuple[str, int], ins: list[torch.Tensor], outs: list[torch.Tensor]
) -> None:
    seen[key] = ([item.detach().clone() for item in ins], [item.detach().clone() for item in outs])


def _compare(
    seen: Any, rows: list[LayerDifference], key: tuple[str, int], ins: list[torch.Tensor],
    outs: list[torch.Tensor],
) -> None:  # fmt: skip
    before = seen.pop(key, None)
    if before is None:
        return
    entering, _ = _distance(before[0], ins)
    leaving, shapes = _distance(before[1], outs)
    rows.append(LayerDifference(key[0], len(rows), entering, leaving, shapes))


def _step(
    model: nn.Module, batch: Batch, loss: LossFunction | None, seed: int, note: Any
) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """One step with every module told of; the model is left as it was."""
    with torch.random.fork_rng(devices=[]), in_low_precision(model, None), _listening(model, note):
        torch.manual_seed(seed)
        try:
            out = model(*batch.args, **batch.kwargs)
            final = loss_of(out, loss)
            if final is not None and final.requires_grad:
                final.backward()
        except (RuntimeError, TypeError, ValueError) as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            raise InputError(
                f"compare_runs: {type(model).__name__}", said,
                Text("a model that takes this batch", "能接受该批数据的模型"),
                Text("pass the inputs of forward as a tuple or a dict", "请以元组或字典传入 forward 的输入"),
            ) from error  # fmt: skip
        grads = {
            name: item.grad.detach().clone()
            for name, item in model.named_parameters()
            if item.grad is not None
        }
        return grads, [item.detach() for item in floating_outputs(out)]


@contextmanager
def _listening(model: nn.Module, note: Any) -> Iterator[None]:
    calls: dict[str, int] = defaultdict(int)
    inputs: dict[int, list[list[torch.Tensor]]] = defaultdict(list)
    handles = []

    def before(module: nn.Module, args: Any, kwargs: Any) -> None:
        tensors = floating_outputs((args, kwargs))
        inputs[id(module)].append(
            [item.detach().clone() for item in tensors]
        )  # before in-place work

    def after(name: str) -> Any:
        def told(module: nn.Module, _: Any, __: Any, out: Any) -> None:
            note((name, calls[name]), inputs[id(module)].pop(), floating_outputs(out))
            calls[name] += 1

        return told

    for name, module in model.named_modules():
        if name and not any(True for _ in module.children()):
            handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(module.register_forward_hook(after(name), with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _distance(a: list[torch.Tensor], b: list[torch.Tensor]) -> tuple[float, str]:
    """Relative difference of two lists of tensors, and their shapes where they do not agree."""
    if [item.shape for item in a] != [item.shape for item in b]:
        return math.inf, f"{[tuple(i.shape) for i in a]} / {[tuple(i.shape) for i in b]}"
    signal = noise = 0.0
    for one, two in zip(a, b, strict=True):
        x, y = one.detach().double(), two.detach().double()
        same = (x == y) | (x.isnan() & y.isnan())
        difference = torch.where(same, 0.0, x - y)
        signal += float(torch.where(x.isfinite(), x, 0.0).norm()) ** 2
        noise += float(difference.norm()) ** 2
    if not math.isfinite(noise):
        return math.inf, ""
    return (math.sqrt(noise / signal) if signal > 0 else math.sqrt(noise)), ""


def _diverges(row: LayerDifference, tolerance: float) -> bool:
    return row.leaving > tolerance and row.leaving > _RATIO * row.entering


def _weights(model_a: nn.Module, model_b: nn.Module) -> dict[str, float]:
    mine, other = (
        {**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (model_a, model_b)
    )
    found = {
        name: _distance([mine[name].detach()], [other[name].detach()])[0]
        for name in mine
        if name in other
    }
    return {name: value for name, value in found.items() if value > 0}


def _report(found: RunsReport, tolerance: float, subject: str) -> Report:
    findings = (_finding(found, found.first_divergence),) if found.first_divergence else ()
    x = tuple(float(row.order) for row in found.layers)
    lines = tuple(
        Series(
            name,
            x,
            tuple(_shown(v) for v in values),
            "",
            Text("relative", "相对值"),
            x_name="layer",
        )
        for name, values in (
            (Text("goes in", "输入"), [row.entering for row in found.layers]),
            (Text("comes out", "输出"), [row.leaving for row in found.layers]),
        )
    )
    plot = Plot(Text("Difference along the depth", "沿深度的差异"), lines, "layer", "", log_y=True)
    evidence: tuple[Evidence, ...] = (_layer_table(found), *((plot,) if len(x) > 1 else ()))
    measures = [
        Measure("output_error", _shown(found.output_error), "",
                Text(f"relative difference of the outputs; tolerance {tolerance:g}",
                     f"输出的相对差异；容差 {tolerance:g}"),
                Text("output difference", "输出差异"), evidence=evidence, tool=TOOL),
        Measure("layers", len(found.layers), "", Text("compared", "已比较"), Text("layers", "层"), tool=TOOL),
        Measure("weights", len(found.weights), "", Text("parameters and buffers that differ", "不同的参数与缓冲区"),
                Text("different weights", "不同的权重"), evidence=(_weight_table(found),), tool=TOOL),
    ]  # fmt: skip
    for names, where in ((found.only_in_a, "a"), (found.only_in_b, "b")):
        if names:
            said = ", ".join(names[:10])
            measures.append(Measure(
                f"only_in_{where}", len(names), "", Text(f"modules of one model alone: {said}",
                f"仅一个模型有的模块：{said}"), Text(f"only in {where}", f"仅在 {where} 中"), tool=TOOL))  # fmt: skip
    return Report(TOOL, findings, tuple(measures), environment=environment(), subject=subject)


def _shown(value: float) -> float:
    return min(value, 1e9) if value == value else 1e9


def _finding(found: RunsReport, row: LayerDifference) -> Finding:
    differ = [name for name in found.weights if name.startswith(row.name + ".")]
    why = (
        Text(f"its weights differ: {', '.join(differ[:5])}", f"其权重不同：{'、'.join(differ[:5])}")
        if differ
        else Text("its weights are equal: the computation differs", "其权重相同：计算过程不同")
    )
    what = Text(
        f"the runs part at `{row.name}`: inputs differ by {row.entering:.3g}, outputs by {row.leaving:.3g}"
        + (f" (shapes {row.shapes})" if row.shapes else ""),
        f"两次运行在 `{row.name}` 处开始不同：输入相差 {row.entering:.3g}，输出相差 {row.leaving:.3g}"
        + (f"（形状 {row.shapes}）" if row.shapes else ""),
    )
    return Finding(
        rule="runs-diverge", name="diverge", severity=Severity.HIGH, confidence=Confidence.CERTAIN,
        what=Message("runs-diverge.what", what), why=Message("runs-diverge.why", why),
        remedy=Message("runs-diverge.remedy", Text(
            f"compare `{row.name}` of the two models", f"请比较两个模型的 `{row.name}`")),
        location=Location(module=row.name),
        evidence=(_layer_table(found), Command("torchstone explain numerical_issues")),
        fingerprint=fingerprint("runs-diverge", row.name, ""), tool=TOOL,
    )  # fmt: skip


def _layer_table(found: RunsReport) -> Table:
    rows = tuple((row.name, _shown(row.entering), _shown(row.leaving)) for row in found.layers)
    columns = (
        Text("layer", "层"),
        Text("inputs differ", "输入差异"),
        Text("outputs differ", "输出差异"),
    )
    return Table(Text("Layers in order", "各层（按执行顺序）"), columns, rows)


def _weight_table(found: RunsReport) -> Table:
    rows = sorted(found.weights.items(), key=lambda item: -item[1])
    columns = (Text("name", "名称"), Text("relative difference", "相对差异"))
    return Table(
        Text("Weights that differ", "不同的权重"), columns, tuple((n, _shown(v)) for n, v in rows)
    )
