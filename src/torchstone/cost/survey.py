"""A target, looked at from all sides that were asked for: one report."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torchstone.core.answer import Fact
from torchstone.core.measure import Measure
from torchstone.core.text import Message, Text
from torchstone.cost.decoders.serving import Served, serve
from torchstone.cost.fine_tuning import Changed, lora_from, packing_from
from torchstone.cost.measure import PartialCostWarning, described, measure_cost
from torchstone.cost.on_devices.fitting import fit
from torchstone.cost.on_devices.plan import plan_from
from torchstone.cost.on_devices.roofline_time import roofline
from torchstone.cost.options import CostOptions
from torchstone.cost.prepared import (
    InputMaker,
    check_formats_asked,
    low_format,
    prepared,
    weight_format,
)
from torchstone.cost.remedies import what_helps
from torchstone.cost.reporting.answer import cost_answer, with_devices, with_sweep
from torchstone.cost.reporting.answers import (
    TOO_LARGE,
    Progress,
    check_utilisation_asked,
    decoded,
    room_on,
    times_on,
    too_large,
    utilised,
)
from torchstone.cost.reporting.report import CostReport
from torchstone.cost.reporting.sweep import Point, swept
from torchstone.cost.stages import PRESETS, StageMap, preset, read_stages
from torchstone.runtime.devices import Device, device, load_devices
from torchstone.runtime.inputs import notes_on_inputs
from torchstone.runtime.sizes import parse_sizes
from torchstone.runtime.targets import Target, build_target


def survey(
    options: CostOptions,
    progress: Progress = lambda *_: None,
    own_devices: Mapping[str, Device] | None = None,
) -> CostReport:
    """Build the target, count it, and answer what was asked about it. `own_devices` are those of
    the user's configuration."""
    check_formats_asked(options)
    batches = _sizes(options.batch, "--batch")
    lengths: tuple[int | None, ...] = _sizes(options.seq, "--seq") or (None,)
    contexts = _sizes(options.context, "--context")
    devices = tuple(_devices(options, own_devices or {}))
    check_utilisation_asked(options, devices)
    plan = plan_from(options.plan) if options.plan else None
    stages = _stages(options.stages)
    target = build_target(options.target)
    model, changed = prepared(target, options)
    inputs = InputMaker(target, model, options)
    steps = len(batches) * len(lengths) + len(contexts)
    progress(0, steps, options.target)
    given = inputs(batches[0], lengths[0])
    report = _measured(model, given, options, stages, batches[0], lengths[0])
    report = replace(report, subject=options.target)
    report = replace(report, answer=cost_answer(report))
    extra = [*_notes(options, target, model, given, stages, report), *times_on(report, devices)]
    sweep = list(_sweep(report, model, inputs, options, stages, batches, lengths, progress))
    if len(sweep) > 1:
        extra.append(swept(sweep, devices))
    served: list[Served] = []
    for number, context in enumerate(contexts):
        progress(steps - len(contexts) + number, steps, f"context {context}")
        served.append(serve(model, batches[0], context, not options.no_replay))
    if served:
        extra.append(decoded(served, target.config, devices))
    cached, heads = max(((one.cache_bytes, one.cache_heads) for one in served), default=(0, 1))
    experts = _experts(target.config)
    verdicts = [
        fit(
            report,
            item,
            plan,
            batch=batches[0],
            experts_per_token=experts,
            cache_bytes=cached,
            cache_heads=heads,
        )
        for item in devices
    ]
    too_far = [
        (item, point)
        for item in devices
        for point in sweep[1:]
        if not fit(point[2], item, plan, batch=point[0], experts_per_token=experts).fits
    ]
    findings = [too_large(item, options) for item in verdicts if not item.fits]
    extra += [*map(room_on, verdicts), *utilised(report, options, devices)]
    times = [(item, roofline(report.cost, item).total()) for item in devices]
    guessed = not options.input and target.inputs is None
    replaced = "" if guessed else inputs.replaced_batch(batches[0])
    about = [*_about(options, given, guessed, replaced), *_about_tuning(options, changed)]
    answer = with_devices(report, about, times, verdicts, cached)
    if plan is None and (missing := [item for item in verdicts if not item.fits]):
        tried = what_helps(options, missing[0].device, lengths[0] or _length(given), _try)
        answer = replace(answer, lines=(*tried, *answer.lines))
    report = replace(report, answer=with_sweep(answer, too_far))
    return replace(
        report,
        measures=(*report.measures, *extra),
        findings=(*report.findings, *findings),
        rules={TOO_LARGE.id: TOO_LARGE} if findings else {},
    )


def _try(options: CostOptions) -> CostReport:
    """The target again with other options, counted once."""
    target = build_target(options.target)
    model, _ = prepared(target, options)
    batch, length = _sizes(options.batch, "--batch")[0], _sizes(options.seq, "--seq")[:1] or (None,)
    given = InputMaker(target, model, options)(batch, length[0])
    return _measured(model, given, options, None, batch, length[0])


def _about(options: CostOptions, given: Any, guessed: bool, replaced: str) -> list[Fact]:
    """What was counted: the input, the number format, the plan."""
    label = Text("input (assumed)", "输入（假定）") if guessed else Text("input", "输入")
    if replaced:
        label = Text(f"input (--batch replaces {replaced})", f"输入（--batch 取代了 {replaced}）")
    facts = [Fact(label, described(given))]
    wanted = (
        (Text("weights", "权重"), weight_format(options)),
        (Text("autocast", "autocast"), options.autocast),
        (Text("optimizer", "优化器"), options.optimizer if options.train else ""),
        (Text("plan", "并行方案"), options.plan),
        (Text("checkpointing", "激活检查点"), "on" if options.checkpoint else ""),
    )
    return [*facts, *(Fact(label, value) for label, value in wanted if value)]


def _about_tuning(options: CostOptions, changed: Changed) -> list[Fact]:
    facts: list[Fact] = []
    if options.quant:
        packing = packing_from(options.quant)
        said = Text(f"{packing.name} ({packing.said.en})", f"{packing.name}（{packing.said.zh}）")
        facts.append(Fact(Text("linear layers", "线性层"), said))
    if options.lora:
        rank = lora_from(options.lora).rank
        names = ", ".join(dict.fromkeys(path.rpartition(".")[2] for path in changed.adapted))
        said = Text(
            f"r={rank} on {len(changed.adapted)} layers ({names})",
            f"r={rank}，作用于 {len(changed.adapted)} 层（{names}）",
        )
        facts.append(Fact(Text("LoRA", "LoRA"), said))
    return facts


def _sizes(text: str, flag: str) -> tuple[int, ...]:
    return parse_sizes(text, f"cost: {flag}", _MOST) if text else ()


_MOST = 1 << 40
"""Rows or tokens: with more, torch's own sizes overflow."""


def _notes(
    options: CostOptions,
    target: Target,
    model: nn.Module,
    given: Any,
    stages: StageMap | None,
    report: CostReport,
) -> list[Measure]:
    """What should be said beside the figures."""
    guessed = not options.input and target.inputs is None
    said = notes_on_inputs(model, target.config, given) if guessed else (_seen(given),)
    return [_note(item) for item in (*said, *target.notes, *_unmatched(stages or {}, report))]


def _stages(name: str) -> StageMap | None:
    if not name:
        return None
    if name in PRESETS or not Path(name).suffix:
        return preset(name)
    return read_stages(Path(name))


def _devices(options: CostOptions, configured: Mapping[str, Device]) -> Iterator[Device]:
    """The devices that are named: those of a file come before those of a configuration."""
    own = load_devices(options.devices) if options.devices else {}
    own |= {name: item for name, item in configured.items() if name not in own}
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartialCostWarning)  # the report says it itself
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
            autocast=low_format(options.autocast) if options.autocast else None,
            replay=not options.no_replay,
            fused=not options.no_fuse,
        )


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


def _sweep(
    first: CostReport,
    model: nn.Module,
    inputs: InputMaker,
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


def _experts(config: Any) -> int | None:
    value = getattr(config, "num_experts_per_tok", None)
    return value if isinstance(value, int) else None
