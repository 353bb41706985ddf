"""A token's output is the weighted sum of its own experts on its own input."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.operators import Producers
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.routing import Routing, routings
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR302", "expert-outputs-mixed-up", Severity.HIGH, "wrong result",
    Text("a token's output is not the weighted sum of its experts", "token 的输出不是其专家的加权和"),
    Text("tokens are sent, weighted or put back by a wrong index, or one expert's output overwrites another's",
         "token 按错误的索引分发、加权或还原，或一个专家的输出覆盖了另一个"),
    Text("compare with a loop over all experts, token by token", "与逐 token 遍历所有专家的参考实现比较"),
)  # fmt: skip
_SCATTERS = ("index_copy", "index_copy_", "index_put", "index_put_", "scatter", "scatter_", "copy_")
_TINY = 1e-6


def check(run: Recording) -> Iterator[Shown]:
    for routing in routings(run):
        run.asks(RULE)
        acting = (routing.weights.abs() > _TINY).sum(-1)
        wanted = routing.chosen.shape[1]
        few = (acting < wanted) & (acting > 0)
        if float(few.float().mean()) > 0.2:
            yield from _overwritten(run, routing, float(acting[few].float().mean()), wanted)
        wrong = _strangers(routing)
        if wrong > 0.0:
            yield from _misplaced(run, routing, wrong)


def _strangers(routing: Routing) -> float:
    """The share of tokens whose output is made of experts or inputs that are not theirs."""
    acting = routing.weights.abs() > _TINY
    allowed = torch.zeros_like(acting).scatter(1, routing.chosen, True)
    foreign = (acting & ~allowed).any(-1)
    expected = routing.weights.sum(-1, keepdim=True) * routing.inputs
    apart = (routing.mixed - expected).norm(dim=-1) > 1e-2 * expected.norm(dim=-1).clamp(min=_TINY)
    share = float((foreign | (apart & acting.any(-1))).float().mean())
    return share if share > 0.02 else 0.0


def _overwritten(run: Recording, routing: Routing, acting: float, wanted: int) -> Iterator[Shown]:
    writes = [item for item in routing.operators if item.name in _SCATTERS]
    place = writes[-1].place if writes else routing.operators[-1].place
    yield Shown(
        RULE, place,
        Text("of the {wanted} experts of a token only {acting} act on its output",
             "一个 token 的 {wanted} 个专家中只有 {acting} 个作用于其输出"),
        {"wanted": str(wanted), "acting": f"{acting:.1f}"},
        (number("experts that act", "起作用的专家", acting, "", ON_A_COPY),
         number("experts chosen", "所选专家", wanted, "", ON_A_COPY)),
        offered(run.root, place, _add_up),
    )  # fmt: skip


def _misplaced(run: Recording, routing: Routing, share: float) -> Iterator[Shown]:
    place = _index_place(routing)
    yield Shown(
        RULE, place,
        Text("{share} of the tokens get the output of experts or inputs that are not theirs",
             "{share} 的 token 得到了不属于自己的专家或输入的结果"),
        {"share": f"{share:.0%}"},
        (number("tokens with foreign outputs", "结果错位的 token", 100 * share, "%", ON_A_COPY),),
        offered(run.root, place, _other_division),
    )  # fmt: skip


def _index_place(routing: Routing) -> Place:
    """The line that computes the index by which tokens are sent."""
    producers = Producers(list(routing.operators))
    gathers = [item for item in routing.operators if item.name in ("index", "index_select", "gather")
               and item.output.is_floating_point() and item.output.dim() > 1]  # fmt: skip
    if not gathers:
        return routing.operators[-1].place
    for given in gathers[0].inputs[1:]:
        maker = producers.maker(given)
        if maker is not None and maker.name in ("remainder", "floor_divide", "div", "fmod"):
            return maker.place
    return gathers[0].place


def _add_up(file: SourceFile, place: Place) -> Iterator[Fix]:
    says = ("add the outputs up", "将各输出相加")
    for call in file.calls(place.line, "index_copy", "index_copy_", "scatter", "scatter_"):
        if isinstance(call.func, ast.Attribute):
            name = call.func.attr.replace("index_copy", "index_add").replace(
                "scatter", "scatter_add"
            )
            owner = file.source(call.func.value)
            yield fix([file.replace(call.func, f"{owner}.{name}")], *says)
    statement = file.statement(place.line)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
        owner, index, value = (
            file.source(item) for item in (target.value, target.slice, statement.value)
        )
        yield fix([file.replace(statement, f"{owner}.index_add_(0, {index}, {value})")], *says)


def _other_division(file: SourceFile, place: Place) -> Iterator[Fix]:
    """A flat index of (token, slot) becomes the token by dividing by the number of slots."""
    for node in file.nodes(place.line, ast.BinOp):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.FloorDiv)):
            left, right = file.source(node.left), file.source(node.right)
            for other in (right.replace("shape[0]", "shape[1]"), right):
                yield fix([file.replace(node, f"{left} // {other}")], "divide by the experts of a token",
                          "除以每个 token 的专家数")  # fmt: skip
