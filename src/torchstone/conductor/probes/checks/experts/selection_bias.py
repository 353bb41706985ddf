"""A bias that balances the choice of experts does nothing else, and pushes the right way."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import replace

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN, ON_A_COPY
from torchstone.conductor.probes.harvest.operators import Operator
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import Case, cases
from torchstone.conductor.probes.replay.divergence import TOLERANCE, difference
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import NOWHERE, Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR306", "selection-bias", Severity.HIGH, "wrong result",
    Text("the bias for the choice of experts acts in the wrong place or direction", "用于选择专家的偏置作用于错误的位置或方向"),
    Text("it is there to balance the load: in the weights it changes outputs with the history of the load, and with the "
         "wrong sign it sends more tokens to busy experts",
         "它只用于均衡负载：进入权重会使输出随负载历史变化，符号错误则会把更多 token 送往繁忙的专家"),
    Text("choose with the bias, weight without it, and lower it for experts above the mean load",
         "选择时使用偏置，加权时不使用，并对负载高于均值的专家降低偏置"),
)  # fmt: skip
_SHIFT = 0.5
_LEAST_CORRELATION = 0.2


def check(run: Recording) -> Iterator[Shown]:
    for case in cases(run):
        biases = _biases(case)
        if biases:
            run.asks(RULE)
            yield from _leaks(run, case, biases)
    yield from _wrong_way(run)


def _biases(case: Case) -> list[str]:
    """Buffers with an entry for each expert that the choice reads."""
    traced = case.module
    return [name for name, item in traced.named_buffers(recurse=False)
            if item.dim() == 1 and item.numel() > 1 and "bias" in name]  # fmt: skip


def _leaks(run: Recording, case: Case, names: list[str]) -> Iterator[Shown]:
    """A bias that is the same for all experts changes no choice, so that it may change no output."""
    before = case.run()
    for name in names:
        module = copy.deepcopy(case.module)
        getattr(module, name).add_(_SHIFT)
        other = replace(case, module=module)
        after = other.run()
        size = max((difference(a, b) for a, b in zip(before, after, strict=False)), default=0.0)
        if size <= TOLERANCE:
            continue
        first = _first(case.traced(run), other.traced(run))
        if first is None:
            continue
        yield Shown(
            RULE, first.place,
            Text("self.{name} of {kind} changes the weights of the experts by {size}, not only the choice",
                 "{kind} 的 self.{name} 不仅影响选择，还使专家权重变化 {size}"),
            {"name": name, "kind": type(case.module).__name__, "size": f"{size:.0%}"},
            (number("change of the outputs", "输出变化", 100 * size, "%", ON_A_COPY),
             expected(0.0, "%", ON_A_COPY)),
            offered(run.root, first.place, _unbiased),
        )  # fmt: skip
        return


def _first(before: list[Operator], after: list[Operator]) -> Operator | None:
    """The first value behind the choice that differs."""
    chosen = next((place for place, item in enumerate(before) if item.name == "topk"), len(before))
    for one, other in list(zip(before, after, strict=False))[chosen + 1 :]:
        if one.output.is_floating_point() and difference(one.output, other.output) > TOLERANCE:
            return one
    return None


def _unbiased(file: SourceFile, place: Place) -> Iterator[Fix]:
    """What is gathered from the biased scores is gathered from the scores."""
    function = file.function(place.line)
    for call in file.calls(place.line, "gather"):
        if function is None or not isinstance(call.func, ast.Attribute):
            continue
        owner = call.func.value
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
                if file.source(node.targets[0]) == file.source(owner) and isinstance(
                    node.value.left, ast.Name
                ):
                    yield fix([file.replace(owner, node.value.left.id)],
                              "take the weights from the scores without the bias", "从不含偏置的分数取权重")  # fmt: skip


def _wrong_way(run: Recording) -> Iterator[Shown]:
    """Between two choices the bias has risen for the experts that were chosen most."""
    history: dict[tuple[Place, int], list[tuple[torch.Tensor, torch.Tensor]]] = {}
    producers = run.producers()
    for item in producers.operators:
        added = producers.maker(item.inputs[0]) if item.name == "topk" else None
        if added is None or added.name != "add" or len(added.inputs) != 2:
            continue
        score, bias = added.inputs
        if bias.dim() != 1 or bias.numel() != score.shape[-1] or bias.requires_grad:
            continue
        # the buffer itself has changed since: its value then is the difference that it made
        value = (added.output - score).reshape(-1, bias.numel())[0].detach()
        load = torch.bincount(item.outputs[1].flatten(), minlength=bias.numel()).float()
        history.setdefault((added.place, id(bias)), []).append((value, load))
    for rows in history.values():
        (first, load), (next_, _) = rows[0], rows[min(1, len(rows) - 1)]
        change = next_ - first
        if bool((change.abs() < TOLERANCE).all()) or float(load.std()) == 0.0:
            continue
        both = torch.corrcoef(torch.stack([change.float(), load]))[0, 1]
        place = _changed_at(run)
        if float(both) > _LEAST_CORRELATION and place:
            yield Shown(
                RULE, place,
                Text("the bias rises for the experts that get most tokens (correlation {r})",
                     "偏置对获得最多 token 的专家反而升高（相关系数 {r}）"),
                {"r": f"{float(both):.2f}"},
                (number("correlation of bias and load", "偏置与负载的相关系数", float(both), "", IN_THE_RUN),),
                offered(run.root, place, _other_sign),
            )  # fmt: skip
            return


def _changed_at(run: Recording) -> Place:
    """The line that changes a bias of the choice in place."""
    known = {item.data_ptr() for module in run.modules for name, item in module.named_buffers(recurse=False)
             if "bias" in name}  # fmt: skip
    for item in run.operators:
        if item.name in ("add_", "sub_") and item.inputs[0].data_ptr() in known:
            return item.place
    return NOWHERE


def _other_sign(file: SourceFile, place: Place) -> Iterator[Fix]:
    statement = file.statement(place.line)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)):
        sign = "-=" if isinstance(statement.op, ast.Add) else "+="
        text = f"{file.source(statement.target)} {sign} {file.source(statement.value)}"
        yield fix(
            [file.replace(statement, text)], "lower it for busy experts", "对繁忙的专家降低偏置"
        )
