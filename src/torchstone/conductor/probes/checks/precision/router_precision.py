"""Router logits are computed in float32."""

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
    "PR307", "router-logits-in-half", Severity.MEDIUM, "instability",
    Text("router logits are computed in half precision", "路由 logits 以半精度计算"),
    Text("close experts tie in 8 or 11 bits: which one is chosen depends on rounding, and training becomes unstable",
         "相近的专家在 8 或 11 位精度下会打平：选择取决于舍入，训练变得不稳定"),
    Text("compute the router in float32, with autocast disabled around it", "在关闭 autocast 的区域内以 float32 计算路由"),
)  # fmt: skip
_HALVES = (torch.float16, torch.bfloat16)


def check(run: Recording) -> Iterator[Shown]:
    producers = run.producers()
    told: set[Place] = set()
    for item in producers.operators:
        if item.name not in ("topk", "argmax"):
            continue
        product = _product(producers, item)
        if product is None:
            continue
        run.asks(RULE)
        if product.output.dtype not in _HALVES or product.place in told:
            continue
        if product.output.shape[-1] > 512:  # a vocabulary: tokens are sampled, not routed
            continue
        told.add(product.place)
        bits = 11 if product.output.dtype is torch.float16 else 8
        yield Shown(
            RULE, product.place,
            Text("the logits that choose experts are computed in {dtype}, with {bits} significant bits",
                 "选择专家的 logits 以 {dtype} 计算，仅 {bits} 位有效位"),
            {"dtype": str(product.output.dtype).removeprefix("torch."), "bits": str(bits)},
            (significant_bits(bits, IN_THE_RUN),
             number("experts", "专家数", product.output.shape[-1], "", IN_THE_RUN)),
            offered(run.root, product.place, _without_autocast),
        )  # fmt: skip


def _product(producers: Producers, item: Operator) -> Operator | None:
    """The matrix product that the choice is made by, with only cheap operators between."""
    tensor = item.inputs[0]
    softened = item.name == "topk" and item.training
    for _ in range(8):
        maker = producers.maker(tensor)
        if maker is None:
            return None
        if maker.name in ("mm", "addmm", "bmm"):
            is_router = any(producers.is_weight(given) for given in maker.inputs)
            return maker if softened and is_router else None
        if maker.name not in ("_softmax", "sigmoid", "_to_copy", "add", "mul", "div", "sub"):
            return None
        tensor = maker.inputs[0]
    return None


def _without_autocast(file: SourceFile, place: Place) -> Iterator[Fix]:
    """The statement in a region without autocast, on float32 values."""
    statement = file.statement(place.line)
    if (
        not isinstance(statement, ast.Assign)
        or not isinstance(statement.value, ast.Call)
        or not statement.value.args
    ):
        return
    given = statement.value.args[0]
    name = next((node.id for node in ast.walk(given) if isinstance(node, ast.Name)), "")
    depth = file.indent(statement.lineno)
    text = file.source(statement)
    if "float()" not in file.source(given):
        start = text.index(file.source(given))
        text = (
            f"{text[:start]}{file.source(given)}.float(){text[start + len(file.source(given)) :]}"
        )
    region = f"with torch.autocast({name}.device.type, enabled=False):\n{depth}    {text}"
    if name:
        yield fix(
            [file.replace(statement, region)],
            "compute the router in float32",
            "以 float32 计算路由",
        )
