"""The weights of a token's experts are its own, and sum to one where they are normalised."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.routing import Routing, routings
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR301", "routing-weights", Severity.HIGH, "wrong result",
    Text("the weights of a token's experts do not sum to one", "一个 token 的专家权重之和不为一"),
    Text("the size of the layer's output changes with the router's confidence or with the other tokens",
         "该层输出的大小随路由置信度或其他 token 而变"),
    Text("divide the chosen weights by their sum over the experts of a token", "将所选权重除以该 token 各专家权重之和"),
)  # fmt: skip
_CLOSE = 1e-3


def check(run: Recording) -> Iterator[Shown]:
    for routing in routings(run):
        sums = routing.weights.sum(-1)
        top_k = routing.chosen.shape[1]
        if top_k > 1:
            run.asks(RULE)
        if top_k < 2 or bool(((sums - 1).abs() < _CLOSE).all()) or bool(sums.std() < _CLOSE):
            continue
        over_tokens = abs(float(sums.sum()) - top_k) < 0.05 * top_k and len(sums) > 2 * top_k
        if not over_tokens and (_is_meant(routing) or bool((sums == 0).any())):
            continue
        place = _place(routing)
        yield Shown(
            RULE, place,
            Text("the weights of a token's {k} experts sum to {low} to {high}",
                 "一个 token 的 {k} 个专家权重之和在 {low} 到 {high} 之间"),
            {"k": str(top_k), "low": f"{float(sums.min()):.3g}", "high": f"{float(sums.max()):.3g}"},
            (number("mean sum of weights", "权重和的均值", float(sums.mean()), "", ON_A_COPY),
             expected(1.0, "", ON_A_COPY)),
            offered(run.root, place, _over_experts, _normalise),
            None if over_tokens or float(sums.max()) > 1 + _CLOSE else Severity.MEDIUM,
        )  # fmt: skip


def _is_meant(routing: Routing) -> bool:
    """The module has a setting for it: then it was decided, not forgotten."""
    return any(
        ("norm" in name or "scal" in name) and isinstance(value, (bool, float))
        for module in routing.case.module.modules() for name, value in vars(module).items()
    )  # fmt: skip


def _place(routing: Routing) -> Place:
    """The line that divides the weights, or else the one that chooses."""
    top = next(item for item in routing.operators if item.name == "topk")
    after = routing.operators[routing.operators.index(top) + 1 :]
    divided = [
        item
        for item in after
        if item.name in ("div", "div_") and item.place.scope == top.place.scope
    ]
    return (divided[0] if divided else top).place


def _over_experts(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "sum"):
        for item in call.keywords:
            if item.arg == "dim" and file.source(item.value) != "-1":
                yield fix(
                    [file.replace(item.value, "-1")],
                    "sum over the experts of a token",
                    "在该 token 的专家上求和",
                )
        if call.args and file.source(call.args[0]) in ("0", "1"):
            yield fix(
                [file.replace(call.args[0], "-1")],
                "sum over the experts of a token",
                "在该 token 的专家上求和",
            )


def _normalise(file: SourceFile, place: Place) -> Iterator[Fix]:
    statement = file.statement(place.line)
    if isinstance(statement, ast.Assign) and file.calls(place.line, "topk"):
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            name = target.elts[0].id
            yield fix([file.insert_after(statement, f"{name} = {name} / {name}.sum(dim=-1, keepdim=True)")],
                      "normalise the chosen weights", "归一化所选权重")  # fmt: skip
