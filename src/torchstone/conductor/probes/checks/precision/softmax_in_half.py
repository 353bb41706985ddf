"""Softmax is computed in float32 where its input is half."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.operators import Operator, Producers
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number, significant_bits
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR208", "softmax-in-half", Severity.MEDIUM, "instability",
    Text("a softmax is computed in half precision", "softmax 以半精度计算"),
    Text("the sum of its exponentials has 8 or 11 significant bits, and large logits become equal or "
         "overflow; autocast computes it in float32, code outside autocast must do so itself",
         "指数和只有 8 或 11 位有效位，较大的 logits 会变得相等或溢出；autocast 会以 float32 计算，autocast 之外须自行转换"),
    Text("compute it in float32 (`dtype=torch.float32`, or `.float()` before it) and cast the result",
         "以 float32 计算（`dtype=torch.float32` 或先 `.float()`），再转换结果"),
)  # fmt: skip
_HALVES = (torch.float16, torch.bfloat16)


def check(run: Recording) -> Iterator[Shown]:
    producers = run.producers()
    for item in producers.operators:
        if item.name not in ("_softmax", "_log_softmax"):
            continue
        run.asks(RULE)
        if item.inputs[0].dtype not in _HALVES:
            continue
        if item.outputs[0].dtype not in _HALVES or _is_fused(run, item.place):
            continue
        routes = _chooses_experts(item, producers)
        bits = 11 if item.inputs[0].dtype is torch.float16 else 8
        yield Shown(
            RULE, item.place,
            Text("{what} is computed in {dtype}, with {bits} significant bits",
                 "{what}以 {dtype} 计算，仅 {bits} 位有效位"),
            {"what": "the softmax of the router" if routes else "this softmax",
             "dtype": str(item.inputs[0].dtype).removeprefix("torch."), "bits": str(bits)},
            (significant_bits(bits, IN_THE_RUN),
             number("entries of a row", "每行元素数", item.inputs[0].shape[-1], "", IN_THE_RUN)),
            offered(run.root, item.place, _in_float32),
            Severity.HIGH if routes else None,
        )  # fmt: skip


def _is_fused(run: Recording, place: Place) -> bool:
    """Inside torch's own attention, which keeps its sums in float32 on accelerators."""
    try:
        text = (run.root / place.path).read_text("utf-8").splitlines()[place.line - 1]
    except (OSError, IndexError):
        return False
    return "scaled_dot_product_attention" in text


def _chooses_experts(item: Operator, producers: Producers) -> bool:
    return any(user.name in ("topk", "argmax", "max") for user in producers.users(item.output))


def _in_float32(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "softmax", "log_softmax"):
        text = file.source(call)
        if "dtype" in text or not isinstance(call.func, ast.Attribute):
            continue
        owner = file.source(call.func.value)
        is_function = owner in ("F", "torch", "nn.functional", "torch.nn.functional")
        if is_function and not call.args:
            continue
        given = file.source(call.args[0]) if is_function else owner
        wide = f"{text[:-1].rstrip().rstrip(',')}, dtype=torch.float32)"
        says = ("compute the softmax in float32", "以 float32 计算 softmax")
        if isinstance(call.args[0] if is_function else call.func.value, (ast.Name, ast.Attribute)):
            yield fix([file.replace(call, f"{wide}.to({given}.dtype)")], *says)
        yield fix([file.replace(call, wide)], *says)
