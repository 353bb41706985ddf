"""Every token reaches its experts, and every expert can be chosen."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.routing import Routing, routings
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR303", "tokens-dropped-or-experts-idle", Severity.MEDIUM, "wrong result",
    Text("tokens get no expert, or experts get no token", "部分 token 没有专家，或部分专家没有 token"),
    Text("a token without an expert passes the layer unchanged; an expert that is never chosen only costs memory",
         "没有专家的 token 原样通过该层；从不被选中的专家只占用内存"),
    Text("raise the capacity in evaluation, and check the range of the chosen indices",
         "评估时提高容量，并检查所选索引的范围"),
)  # fmt: skip
_TOKENS = 2048
_MOST_DROPPED = 0.01
_MOST_SPREAD = 1.0
"""Coefficient of variation: a router with random weights stays below a half."""


def check(run: Recording) -> Iterator[Shown]:
    for routing in routings(run):
        run.asks(RULE)
        dropped = float((routing.weights.abs().sum(-1) == 0).float().mean())
        top = next(item for item in routing.operators if item.name == "topk")
        if dropped > _MOST_DROPPED:
            yield Shown(
                RULE, top.place,
                Text("{share} of the tokens get no expert in evaluation", "评估时 {share} 的 token 没有专家"),
                {"share": f"{dropped:.0%}"},
                (number("tokens without an expert", "没有专家的 token", 100 * dropped, "%", ON_A_COPY),),
            )  # fmt: skip
        yield from _small_capacity(run, routing)
        load = _load(run, routing)
        if load is not None and float(load.std() / load.mean()) > _MOST_SPREAD:
            yield Shown(
                RULE, top.place,
                Text("random tokens load the experts unevenly: the busiest gets {times} times the mean",
                     "随机 token 使专家负载不均：最忙的专家得到均值的 {times} 倍"),
                {"times": f"{float(load.max() / load.mean()):.1f}"},
                (number("coefficient of variation of the load", "负载变异系数", float(load.std() / load.mean()), "x", ON_A_COPY),),
            )  # fmt: skip
        elif load is not None and bool((load == 0).any()):
            idle = int((load == 0).sum())
            yield Shown(
                RULE, top.place,
                Text("{idle} of {all} experts get none of {tokens} random tokens",
                     "{all} 个专家中有 {idle} 个在 {tokens} 个随机 token 中一个也没有得到"),
                {"idle": str(idle), "all": str(len(load)), "tokens": str(_TOKENS)},
                (number("idle experts", "闲置专家", idle, "", ON_A_COPY),
                 number("spread of the load", "负载变异系数", float(load.std() / load.mean()), "x", ON_A_COPY)),
            )  # fmt: skip


def _small_capacity(run: Recording, routing: Routing) -> Iterator[Shown]:
    """Several experts take the same most: that is their capacity, and all of them together may
    have no room for what is sent even when it is spread evenly."""
    rows, sent = routing.rows, routing.chosen.numel()
    most = max(rows, default=0)
    if rows.count(most) < 2 or sum(rows) >= sent or most * len(rows) >= sent:
        return
    share = most * len(rows) / sent
    top = next(item for item in routing.operators if item.name == "topk")
    place = _capacity_line(run, type(routing.case.module)) or top.place
    yield Shown(
        RULE, place,
        Text("each expert takes at most {most} tokens: room for {share} of all choices even when they are spread evenly",
             "每个专家至多接收 {most} 个 token：即使完全均衡也只能容纳 {share} 的选择"),
        {"most": str(most), "share": f"{share:.0%}"},
        (number("room", "容量占比", 100 * share, "%", ON_A_COPY),
         number("choices", "选择数", sent, "", ON_A_COPY)),
    )  # fmt: skip


def _capacity_line(run: Recording, kind: type) -> Place | None:
    """Where the class computes what it calls its capacity."""
    path, root = inspect.getsourcefile(kind) or "", f"{run.root.resolve()}/"
    if not path.startswith(root):
        return None
    tree = ast.parse(Path(path).read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "capacity" in node.name:
            return Place(path.removeprefix(root), node.body[-1].lineno, node.name)
        if isinstance(node, ast.Assign) and "capacity" in ast.unparse(node.targets[0]):
            if any(isinstance(item, ast.BinOp) for item in ast.walk(node.value)):
                return Place(path.removeprefix(root), node.lineno, kind.__name__)
    return None


def _load(run: Recording, routing: Routing) -> torch.Tensor | None:
    """Tokens by expert when random ones are routed."""
    shape = (4, _TOKENS // 4, routing.inputs.shape[-1])
    given = next(
        item for item in routing.case.tensors if item.is_floating_point() and item.dim() > 1
    )
    torch.manual_seed(0)
    values = torch.randn(shape if given.dim() == 3 else (_TOKENS, shape[-1]))
    case = routing.case.changed(
        lambda item: (
            values if isinstance(item, torch.Tensor) and item.shape == given.shape else item
        )
    )
    try:
        chosen = next(item.outputs[1] for item in case.traced(run) if item.name == "topk")
    except Exception as error:  # it takes no other number of tokens
        run.not_probed[f"load of {routing.name}"] = f"{type(error).__name__}: {str(error)[:160]}"
        return None
    return torch.bincount(chosen.flatten(), minlength=routing.weights.shape[1]).float()
