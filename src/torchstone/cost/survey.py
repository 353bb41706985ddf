"""A target, looked at from all sides that were asked for: one report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from torchstone.core.errors import UsageError
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.measure import Measure
from torchstone.core.pictures import Cell, Evidence, Table
from torchstone.core.report import RuleInfo
from torchstone.core.text import Message, Text
from torchstone.cost.arguments import main_format
from torchstone.cost.closed_forms import Decoder, cache_growth
from torchstone.cost.fitting import Fit, fit
from torchstone.cost.measure import described, measure_cost
from torchstone.cost.options import CostOptions
from torchstone.cost.plan import plan_from
from torchstone.cost.report import CostReport
from torchstone.cost.roofline_picture import roofline_plot, roofline_table
from torchstone.cost.roofline_time import roofline
from torchstone.cost.serving import Served, serve, served_table
from torchstone.cost.stages import PRESETS, StageMap, preset, read_stages
from torchstone.cost.sweep import Point, swept
from torchstone.cost.utilization import mfu
from torchstone.runtime.devices import Device, device, load_devices
from torchstone.runtime.inputs import default_inputs, notes_on_inputs, parse_inputs
from torchstone.runtime.sizes import parse_dtype, parse_sizes
from torchstone.runtime.targets import Target, build_target

Progress = Callable[[int, int, str], None]
TOO_LARGE = RuleInfo(
    "COST01",
    "does-not-fit",
    "cost",
    Severity.HIGH,
    Text("the model does not fit into the memory of the device", "模型放不进设备内存"),
)


def survey(options: CostOptions, progress: Progress = lambda *_: None) -> CostReport:
    """Build the target, count it, and answer what was asked about it."""
    batches = parse_sizes(options.batch, "cost: --batch")
    lengths = parse_sizes(options.seq, "cost: --seq") if options.seq else (None,)
    if options.train and options.infer:
        raise UsageError(
            "cost", "--train --infer", Text("one of the two", "二者之一"),
            Text("leave one out", "请去掉一个"),
        )  # fmt: skip
    devices = tuple(_devices(options))
    plan = plan_from(options.plan) if options.plan else None
    stages = _stages(options.stages)
    target = build_target(options.target)
    model = _prepared(target, options)
    inputs = _Inputs(target, model, options)
    steps = len(batches) * len(lengths) + len(
        parse_sizes(options.context) if options.context else ()
    )
    progress(0, steps, options.target)
    given = inputs(batches[0], lengths[0])
    report = _measured(model, given, options, stages, batches[0], lengths[0])
    report = replace(report, subject=options.target)
    guessed = not options.input and target.inputs is None
    said = notes_on_inputs(model, target.config, given) if guessed else (_seen(given),)
    extra: list[Measure] = [_note(item) for item in (*said, *target.notes)]
    extra += [_note(item) for item in _unmatched(stages or {}, report)]
    extra += _times(report, devices)
    sweep = list(_sweep(report, model, inputs, options, stages, batches, lengths, progress))
    if len(sweep) > 1:
        extra.append(swept(sweep, devices))
    served: list[Served] = []
    if options.context:
        extra += _served(served, model, target, options, batches[0], devices, progress, steps)
    cached = max((one.cache_bytes for one in served), default=0)
    findings: list[Finding] = []
    for item in devices:
        verdict = fit(
            report, item, plan, batch=batches[0],
            experts_per_token=_experts(target.config),
            cache_bytes=cached,
        )  # fmt: skip
        extra.append(_room(verdict))
        if not verdict.fits:
            findings.append(_too_large(verdict, options))
    extra += _utilised(report, options, devices)
    return replace(
        report,
        measures=(*report.measures, *extra),
        findings=(*report.findings, *findings),
        rules={TOO_LARGE.id: TOO_LARGE} if findings else {},
    )


class _Inputs:
    """The inputs for a batch size and a sequence length."""

    def __init__(self, target: Target, model: nn.Module, options: CostOptions) -> None:
        self._target, self._model, self._options = target, model, options
        self._given = parse_inputs(options.input, model) if options.input else target.inputs

    def __call__(self, batch: int, length: int | None) -> Any:
        options = self._options
        if self._given is None:
            return default_inputs(
                self._model, self._target.config, batch, length, train=options.train
            )
        if options.batch == "1" and length is None:
            return self._given  # as it was given
        return resized(self._given, batch if options.batch != "1" else None, length)


def resized(inputs: Any, batch: int | None, length: int | None) -> Any:
    """Inputs with another batch size (first dimension) and sequence length (second dimension of
    the integers)."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        shape = list(tensor.shape)
        if batch is not None and shape:
            shape[0] = batch
        if length is not None and len(shape) == 2 and not tensor.is_floating_point():
            shape[1] = length
        return torch.empty(shape, dtype=tensor.dtype, device="meta")

    return tree_map_only(torch.Tensor, one, inputs)


def _prepared(target: Target, options: CostOptions) -> nn.Module:
    model = target.model
    if options.dtype:
        model = model.to(parse_dtype(options.dtype, "cost: --dtype"))
    if options.checkpoint:
        enable = getattr(model, "gradient_checkpointing_enable", None)
        if enable is None or not getattr(model, "supports_gradient_checkpointing", True):
            raise UsageError(
                "cost: --checkpoint",
                type(model).__name__,
                Text("a model with gradient_checkpointing_enable()", "带有 gradient_checkpointing_enable() 的模型"),
                Text("call torch.utils.checkpoint in its forward", "请在其 forward 中调用 torch.utils.checkpoint"),
            )  # fmt: skip
        enable()
    return model


def _stages(name: str) -> StageMap | None:
    if not name:
        return None
    if name in PRESETS or not Path(name).suffix:
        return preset(name)
    return read_stages(Path(name))


def _devices(options: CostOptions) -> Iterator[Device]:
    own = load_devices(options.devices) if options.devices else None
    for name in options.device.split(","):
        if name.strip():
            yield device(name.strip(), own)


def _measured(
    model: nn.Module,
    inputs: Any,
    options: CostOptions,
    stages: StageMap | None,
    batch: int,
    length: int | None,
) -> CostReport:
    return measure_cost(
        model,
        inputs,
        options.train,
        optimizer=options.optimizer,
        stages=stages,
        convention=options.convention,
        causal=options.attention == "causal",
        batch=batch,
        sequence=length or _length(inputs),
        autocast=_low(options.autocast) if options.autocast else None,
        replay=not options.no_replay,
        fused=not options.no_fuse,
    )


def _low(name: str) -> torch.dtype:
    """A number format that autocast casts to."""
    found = parse_dtype(name, "cost: --autocast")
    if found not in (torch.float16, torch.bfloat16):
        raise UsageError(
            "cost: --autocast", name, "bf16 | fp16", Text("pass one of the two", "请传入其中之一")
        )
    return found


def _length(inputs: Any) -> int | None:
    """Tokens of a sequence, when the inputs have some."""
    ids = inputs.get("input_ids") if isinstance(inputs, Mapping) else None
    return int(ids.shape[-1]) if isinstance(ids, torch.Tensor) and ids.dim() else None


def _unmatched(stages: StageMap, report: CostReport) -> Iterator[Message]:
    """Stages whose patterns match nothing: a slip of the pen would hide in `other`."""
    for name in stages:
        if name not in report.stages:
            yield Message(
                "empty-stage",
                Text("stage {name} matches no module", "阶段 {name} 没有匹配任何模块"),
                {"name": name},
            )


def _seen(inputs: Any) -> Message:
    return Message(
        "inputs",
        Text("counted with {inputs}", "统计所用输入：{inputs}"),
        {"inputs": described(inputs)},
    )


def _note(message: Message) -> Measure:
    said = Text(message.say("en"), message.say("zh"))
    return Measure("note", 1.0, "", said, Text("note", "说明"), tool="cost")


def _times(report: CostReport, devices: tuple[Device, ...]) -> list[Measure]:
    """Roofline time on each device, with what holds it up."""
    found: list[Measure] = []
    for item in devices:
        roof = roofline(report.cost, item)
        whole = roof.total()
        evidence: list[Evidence] = [roofline_table(roof)]
        with suppress(UsageError):  # a device without that format has no roof for it
            evidence.append(roofline_plot(roof, main_format(report.cost)))
        found.append(
            Measure(
                f"seconds_{item.name}", whole.seconds, "s", roof.assumed,
                Text(f"time on {item.title}, at best", f"{item.title} 上的时间（下界）"),
                evidence=tuple(evidence), tool="cost",
            )
        )  # fmt: skip
    return found


def _sweep(
    first: CostReport,
    model: nn.Module,
    inputs: _Inputs,
    options: CostOptions,
    stages: StageMap | None,
    batches: tuple[int, ...],
    lengths: tuple[int | None, ...],
    progress: Progress,
) -> Iterator[Point]:
    done = 0
    for batch in batches:
        for length in lengths:
            done += 1
            if done == 1:
                yield batch, length, first
                continue
            progress(done, len(batches) * len(lengths), f"batch {batch}, {length or '–'}")
            made = inputs(batch, length)
            yield batch, length, _measured(model, made, options, stages, batch, length)


def _served(
    served: list[Served],
    model: nn.Module,
    target: Target,
    options: CostOptions,
    batch: int,
    devices: tuple[Device, ...],
    progress: Progress,
    steps: int,
) -> list[Measure]:
    contexts = parse_sizes(options.context, "cost: --context")
    for number, context in enumerate(contexts):
        progress(steps - len(contexts) + number, steps, f"context {context}")
        served.append(serve(model, batch, context, not options.no_replay))
    times = {
        item.name: [roofline(one.decode, item).total().seconds for one in served]
        for item in devices
    }
    evidence: list[Evidence] = [served_table(served, times)]
    with suppress(UsageError):  # the closed form knows decoders only
        decoder = Decoder.from_config(target.config)
        lengths = sorted({*(2**power for power in range(8, 18)), *contexts})
        evidence.append(cache_growth(decoder, lengths, batch))
        evidence.append(_forms(decoder, served))
    first = served[0]
    return [
        Measure(
            "decode_flops", float(first.decode.total().flops), "FLOP",
            Text(f"counted with {first.context} cached tokens", f"以 {first.context} 个缓存 token 统计"),
            Text("one decode step", "一步解码"), evidence=tuple(evidence), tool="cost",
        )
    ]  # fmt: skip


def _forms(decoder: Decoder, served: list[Served]) -> Table:
    """Closed forms beside the count: as the code does it, and as it could be done."""
    rows: list[tuple[Cell, ...]] = []
    for item in served:
        figures = [decoder.decode(item.batch, item.context, form).flops for form in _FORMS]
        rows.append((item.context, item.decode.total().flops, *figures))
    return Table(
        Text("Decode by closed form", "解码的公式计算"),
        (
            Text("context", "上下文"), Text("counted", "统计"), Text("as the code does it", "按代码"),
            Text("absorbed", "吸收"), Text("expanded", "展开"),
        ),
        tuple(rows),
        Text("the forms differ for latent attention only", "仅对潜注意力有区别"),
        ("", "FLOP", "FLOP", "FLOP", "FLOP"),
    )  # fmt: skip


_FORMS = ("code", "absorbed", "expanded")


def _experts(config: Any) -> int | None:
    value = getattr(config, "num_experts_per_tok", None)
    return value if isinstance(value, int) else None


def _room(verdict: Fit) -> Measure:
    return Measure(
        f"memory_{verdict.device.name}", float(verdict.total_bytes), "B", verdict.text,
        Text(f"memory of one {verdict.device.title}", f"单个 {verdict.device.title} 的内存"),
        evidence=tuple(
            item for item in (verdict.memory_table(), verdict.traffic_table()) if item.rows
        ),
        tool="cost",
    )  # fmt: skip


def _too_large(verdict: Fit, options: CostOptions) -> Finding:
    target = options.target
    ways = (
        "--plan, --checkpoint, a smaller --batch" if options.train else "--plan, a smaller --batch"
    )
    ways_zh = ways.replace("a smaller --batch", "更小的 --batch").replace(", ", "、")
    exact = verdict.measured_bytes is not None
    return Finding(
        rule=TOO_LARGE.id,
        name=TOO_LARGE.name,
        severity=Severity.HIGH,
        confidence=Confidence.CERTAIN if exact else Confidence.LIKELY,
        what=Message("does-not-fit", verdict.text),
        why=Message(
            "does-not-fit-why",
            Text("the first step would run out of memory", "第一步就会内存不足"),
        ),
        remedy=Message(
            "does-not-fit-remedy",
            Text(f"spread it or keep less: {ways}", f"拆分模型或少存一些：{ways_zh}"),
        ),
        location=Location(scope=target),
        evidence=(verdict.memory_table(),),
        fingerprint=fingerprint(TOO_LARGE.id, target, verdict.device.name),
        tool="cost",
    )


def _by_formula(report: CostReport) -> int | None:
    """FLOPs by the convention that was asked for, where that is a formula and no count."""
    name = f"flops_{report.convention}"
    if report.convention not in ("palm", "megatron"):
        return None
    return next((int(item.value) for item in report.measures if item.name == name), None)


def _utilised(
    report: CostReport, options: CostOptions, devices: tuple[Device, ...]
) -> list[Measure]:
    if not options.step_seconds:
        return []
    if not devices:
        raise UsageError(
            "cost: --step-seconds", str(options.step_seconds),
            Text("a device to compare with", "用于比较的设备"),
            Text("add --device h100", "请加上 --device h100"),
        )  # fmt: skip
    found: list[Measure] = []
    for item in devices:
        used = mfu(
            report, options.step_seconds, item, options.count, model_flops=_by_formula(report)
        )
        found.append(
            Measure(
                f"mfu_{item.name}", used.mfu, "share", used.text,
                Text(f"MFU on {options.count} x {item.title}", f"{options.count} x {item.title} 上的 MFU"),
                evidence=used.evidence(), tool="cost",
            )
        )  # fmt: skip
    return found
