"""A model that predicts the next token does not see it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.operators import Operator
from torchstone.conductor.probes.harvest.recording import Loss, Recording
from torchstone.conductor.probes.replay.copies import Case, cases, shortened, with_other_tokens
from torchstone.conductor.probes.replay.divergence import TOLERANCE, difference, first_difference
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.conductor.probes.templates import SourceFile, called, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR201", "future-tokens-leak", Severity.HIGH, "wrong result",
    Text("later tokens change the outputs of earlier positions", "后面的 token 改变了前面位置的输出"),
    Text("the model is trained to predict the next token and can read it: the loss is too good, and decoding fails",
         "模型训练目标是预测下一个 token，却能看到它：损失虚低，解码失败"),
    Text("mask every position after the query's own", "遮蔽查询位置之后的所有位置"),
)  # fmt: skip
_MASKS = (("tril", "triu", "tril_", "triu_"), ("gt", "ge", "lt", "le"), ("masked_fill", "where"))
"""What makes a mask, the most telling first."""


def check(run: Recording) -> Iterator[Shown]:
    if not any(loss.shifted for loss in run.of(Loss)):
        return
    for case in cases(run, top=True):
        case = shortened(case)
        tokens = case.tokens
        if tokens is None:
            continue
        run.asks(RULE)
        found = _leak(case, tokens)
        if found is None:
            continue
        position, size = found
        place = _place(run, case, tokens, position)
        if not place:
            continue
        yield Shown(
            RULE, place,
            Text("other tokens from position {at} on change the outputs before it by {size} of their size",
                 "改变位置 {at} 起的 token 会使其前面的输出变化 {size}"),
            {"at": str(position), "size": f"{size:.1%}"},
            (number("change of earlier outputs", "前面输出的变化", 100 * size, "%", ON_A_COPY),
             expected(0.0, "%", ON_A_COPY)),
            offered(run.root, place, _diagonals, _comparisons),
        )  # fmt: skip
        return


def _leak(case: Case, tokens: torch.Tensor) -> tuple[int, float] | None:
    """The last position whose successors change what stands before it."""
    before = _along(case.run(), tokens)
    if before is None:
        return None
    for position in (tokens.shape[1] - 1, tokens.shape[1] // 2):
        after = _along(_later(case, tokens, position).run(), tokens)
        if after is not None:
            size = difference(before[:, :position], after[:, :position])
            if size > TOLERANCE:
                return position, size
    return None


def _later(case: Case, tokens: torch.Tensor, position: int) -> Case:
    return with_other_tokens(case, (torch.arange(tokens.shape[1]) >= position).expand_as(tokens))


def _along(outputs: list[torch.Tensor], tokens: torch.Tensor) -> torch.Tensor | None:
    """The first output with a row for every token."""
    return next(
        (item for item in outputs if item.dim() > 2 and item.shape[:2] == tokens.shape), None
    )


def _place(run: Recording, case: Case, tokens: torch.Tensor, position: int) -> Place:
    """The line that masks in the function where the leak shows first, or else that line."""
    length = tokens.shape[1]

    def earlier(item: torch.Tensor) -> torch.Tensor | None:
        axes = [axis for axis, size in enumerate(item.shape) if size == length]
        return item.narrow(axes[0], 0, position) if len(axes) == 1 and item.dim() > 2 else None

    before, after = case.traced(run), _later(case, tokens, position).traced(run)
    first = first_difference(before, after, earlier)
    if first is None:
        return Place("", 0)
    known = before[: before.index(first)]
    here = [item for item in known if item.place.scope == first.place.scope]
    for group in (here, known):
        for names in _MASKS:
            masks = [item for item in group if item.name in names and _is_square(item, length)]
            if masks:
                return masks[-1].place
    softmax = [item for item in here if item.name == "_softmax"]
    return (softmax[-1] if softmax else first).place


def _is_square(item: Operator, length: int) -> bool:
    return (
        item.output.dim() > 1
        and item.output.shape[-1] >= length
        and item.output.shape[-2] >= length
    )


def _diagonals(file: SourceFile, place: Place) -> Iterator[Fix]:
    """`triu` keeps what lies behind the query with diagonal 1, `tril` what it may see with 0."""
    for call in file.calls(place.line, "triu", "tril", "triu_", "tril_"):
        right = "1" if called(call).startswith("triu") else "0"
        is_method = isinstance(call.func, ast.Attribute) and file.source(call.func.value) != "torch"
        given = [item.value for item in call.keywords if item.arg == "diagonal"]
        given += call.args[0 if is_method else 1 :][:1]
        for other in (right, "0" if right == "1" else "1"):
            if given and file.source(given[0]) != other:
                yield fix(
                    [file.replace(given[0], other)],
                    "mask from the next position on",
                    "从下一位置起遮蔽",
                )
            elif not given:
                text = file.source(call)[:-1].rstrip().rstrip(",")
                joint = "" if text.endswith("(") else ", "
                yield fix([file.replace(call, f"{text}{joint}diagonal={other})")],
                          "mask from the next position on", "从下一位置起遮蔽")  # fmt: skip


def _comparisons(file: SourceFile, place: Place) -> Iterator[Fix]:
    swaps = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
    for node in file.nodes(place.line, ast.Compare):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in swaps and len(node.ops) == 1:
            left, right = file.source(node.left), file.source(node.comparators[0])
            yield fix([file.replace(node, f"{left} {swaps[type(node.ops[0])]} {right}")],
                      "move the bound of the mask by one", "将遮蔽边界移动一位")  # fmt: skip
