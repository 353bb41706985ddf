"""Gradients at the optimizer's step are within the limit that they were clipped to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Backward, Clip, OptimizerStep, Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, called, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR101", "clipping-limit", Severity.HIGH, "wrong result",
    Text("gradient clipping does not bound the gradients that the optimizer uses",
         "梯度裁剪未能限制优化器所用的梯度"),
    Text("the limit was applied to other values than those that the optimizer steps with",
         "裁剪所作用的数值与优化器实际使用的不同"),
    Text("clip between the last backward() and the step, after unscale_() where a GradScaler is used, "
         "and with the parameters of the optimizer",
         "在最后一次 backward() 与 step 之间裁剪；使用 GradScaler 时先调用 unscale_()，并传入优化器的参数"),
)  # fmt: skip
_SLACK = 1.01


def check(run: Recording) -> Iterator[Shown]:
    clip: Clip | None = None
    late: Clip | None = None
    clips = list(run.of(Clip))
    if clips:
        run.asks(RULE)
    for event in run.events:
        if isinstance(event, Backward):
            clip = None
        elif isinstance(event, Clip):
            clip = event
            if event.scale > 1.0:
                yield _scaled(run, event)
                return
        elif isinstance(event, OptimizerStep):
            if clip is None and clips:
                late = clips[0]
            elif (
                clip is not None
                and event.norm > clip.limit * _SLACK
                and clip.norm_after <= clip.limit * _SLACK
            ):
                yield _other_parameters(run, event, clip)
                return
    if late is not None:
        yield _out_of_order(run, late)


def _scaled(run: Recording, event: Clip) -> Shown:
    return Shown(
        RULE, event.place,
        Text("gradients are clipped to {limit} while they carry the loss scale {scale}: what reaches "
             "the optimizer is at most {got}",
             "梯度在带有损失缩放 {scale} 时被裁剪到 {limit}：到达优化器的范数至多为 {got}"),
        {"limit": f"{event.limit:g}", "scale": f"{event.scale:g}", "got": f"{event.limit / event.scale:.2g}"},
        (number("limit", "上限", event.limit, "norm", IN_THE_RUN),
         number("norm when clipped", "裁剪时的范数", event.norm_before, "norm", IN_THE_RUN),
         number("loss scale", "损失缩放", event.scale, "x", IN_THE_RUN)),
        offered(run.root, event.place, _unscale_first),
    )  # fmt: skip


def _unscale_first(file: SourceFile, place: Place) -> Iterator[Fix]:
    function = file.function(place.line)
    statement = file.statement(place.line)
    if statement is None:
        return
    for node in ast.walk(function or file.tree):
        if isinstance(node, ast.Call) and called(node) == "step" and node.args:
            scaler, optimizer = (
                file.source(node.func).removesuffix(".step"),
                file.source(node.args[0]),
            )
            yield fix([file.insert_before(statement.lineno, f"{scaler}.unscale_({optimizer})")],
                      "unscale the gradients before they are clipped", "先取消梯度缩放再裁剪")  # fmt: skip
            return


def _other_parameters(run: Recording, event: OptimizerStep, clip: Clip) -> Shown:
    return Shown(
        RULE, clip.place,
        Text("after clipping to {limit} the optimizer steps with a gradient norm of {norm}: other "
             "parameters were clipped",
             "裁剪到 {limit} 之后，优化器以范数 {norm} 的梯度更新：被裁剪的是其他参数"),
        {"limit": f"{clip.limit:g}", "norm": f"{event.norm:.3g}"},
        (number("norm at the step", "更新时的范数", event.norm, "norm", IN_THE_RUN),
         number("limit", "上限", clip.limit, "norm", IN_THE_RUN)),
        offered(run.root, clip.place, _all_parameters),
    )  # fmt: skip


def _all_parameters(file: SourceFile, place: Place) -> Iterator[Fix]:
    """The parameters of a part become those of the whole."""
    for call in file.calls(place.line, "parameters"):
        part = call.func.value if isinstance(call.func, ast.Attribute) else None
        while isinstance(part, ast.Attribute):
            part = part.value
            whole = file.source(part)
            if whole and whole != "self":
                yield fix([file.replace(call, f"{whole}.parameters()")],
                          "clip the gradients of the whole model", "裁剪整个模型的梯度")  # fmt: skip


def _out_of_order(run: Recording, clip: Clip) -> Shown:
    return Shown(
        RULE, clip.place,
        Text("gradients are clipped, but not between the backward pass and the optimizer's step",
             "梯度裁剪不在反向传播与优化器更新之间"),
        {}, (number("limit", "上限", clip.limit, "norm", IN_THE_RUN),),
        offered(run.root, clip.place, _before_step),
    )  # fmt: skip


def _before_step(file: SourceFile, place: Place) -> Iterator[Fix]:
    """The clipping moves in front of the step of the same block."""
    function, clipping = file.function(place.line), file.statement(place.line)
    if clipping is None:
        return
    for node in ast.walk(function or file.tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and called(node.value) == "step"
        ):
            if "sched" in file.source(node.value.func).lower():
                continue
            line = f"{file.indent(node.lineno)}{file.whole(clipping).lstrip()}".removesuffix("\n")
            yield fix([file.delete(clipping), file.insert_before(node.lineno, line.lstrip())],
                      "clip right before the optimizer's step", "在优化器更新之前裁剪")  # fmt: skip
            return
