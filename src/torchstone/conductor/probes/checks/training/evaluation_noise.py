"""In evaluation mode the same input gives the same output."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.replay.copies import cases
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR204", "random-in-evaluation", Severity.HIGH, "wrong result",
    Text("a module draws random numbers in evaluation mode", "模块在评估模式下使用随机数"),
    Text("the same input gives different outputs: noise or dropout that belongs to training is always on",
         "同一输入得到不同输出：本应仅在训练时使用的噪声或 dropout 始终开启"),
    Text("do it only where self.training is true", "仅在 self.training 为真时进行"),
)  # fmt: skip
_RANDOM = frozenset(
    "bernoulli bernoulli_ native_dropout rand randn rand_like randn_like normal normal_ uniform_ "
    "exponential_ multinomial randint randperm".split()
)


def check(run: Recording) -> Iterator[Shown]:
    told: set[Place] = set()
    for case in cases(run):
        run.asks(RULE)
        random = [item for item in case.traced(run) if item.name in _RANDOM]
        if not random:
            continue
        first = case.run()
        torch.manual_seed(1)
        with torch.no_grad():
            second = case.changed(lambda item: item)
        size = _spread(first, second.module, second.args, second.kwargs)
        place = random[0].place
        if size == 0.0 or place in told:
            continue
        told.add(place)
        yield Shown(
            RULE, place,
            Text("{name} in eval() gives different outputs for one input: they differ by {size}",
                 "{name} 在 eval() 下对同一输入给出不同输出：相差 {size}"),
            {"name": type(case.module).__name__, "size": f"{size:.2g}"},
            (number("largest difference", "最大差异", size, "", ON_A_COPY),
             expected(0.0, "", ON_A_COPY)),
            offered(run.root, place, _only_in_training),
        )  # fmt: skip


def _spread(
    first: list[torch.Tensor],
    module: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> float:
    from torchstone.conductor.probes.replay.copies import floats

    torch.manual_seed(12345)
    with torch.no_grad():
        second = floats(module(*args, **kwargs))
    return max((float((a - b).abs().max()) for a, b in zip(first, second, strict=False)
                if a.shape == b.shape and a.numel()), default=0.0)  # fmt: skip


def _only_in_training(file: SourceFile, place: Place) -> Iterator[Fix]:
    says = ("only in training", "仅在训练时进行")
    for call in file.calls(place.line, "dropout"):
        text = file.source(call)
        if "training" not in text:
            yield fix(
                [file.replace(call, f"{text[:-1].rstrip().rstrip(',')}, training=self.training)")],
                *says,
            )
    for call in file.calls(place.line, "randn_like", "rand_like", "randn", "rand"):
        yield fix([file.replace(call, f"{file.source(call)} * self.training")], *says)
    for call in file.calls(place.line, "scaled_dot_product_attention"):
        for item in call.keywords:
            if item.arg == "dropout_p":
                given = file.source(item.value)
                yield fix([file.replace(item.value, f"{given} if self.training else 0.0")], *says)
    statement = _condition(file, place)
    if statement is not None:
        yield fix(
            [file.replace(statement.test, f"{file.source(statement.test)} and self.training")],
            *says,
        )


def _condition(file: SourceFile, place: Place) -> ast.If | None:
    found = [node for node in ast.walk(file.function(place.line) or file.tree)
             if isinstance(node, ast.If) and node.lineno < place.line <= (node.body[-1].end_lineno or 0)]  # fmt: skip
    return found[-1] if found else None
