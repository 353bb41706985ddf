"""An evaluation gives one number, however the data come, and leaves the model as it is."""

from __future__ import annotations

import ast
import math
import numbers
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, Subset

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.recording.copies import reachable
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

BATCHING = ProbeRule(
    "EX107",
    "metric-depends-on-batches",
    Severity.HIGH,
    "wrong result",
    Text(
        "an evaluation gives another number when the same data come in other batches",
        "同样的数据换一种分批方式，评估结果就不同",
    ),
    Text(
        "the figure depends on the batch size or the order, so that runs cannot be compared; often a mean of means, "
        "in which the last, smaller batch counts as much as the others",
        "结果取决于批大小或顺序，无法比较不同的运行；常见原因是对各批均值再求平均，较小的最后一批与其他批权重相同",
    ),
    Text(
        "add up sums and counts over all samples and divide once; evaluate in eval() mode",
        "在全部样本上累加总和与数量，最后只除一次；并在 eval() 模式下评估",
    ),
)
SIDE_EFFECT = ProbeRule(
    "EX114",
    "evaluation-changes-the-model",
    Severity.HIGH,
    "wrong result",
    Text(
        "an evaluation changes weights or statistics of the model", "评估改变了模型的权重或统计量"
    ),
    Text(
        "what is measured leaks into what is trained; batch statistics learn from evaluation data",
        "被测量的数据影响了训练；批归一化统计量从评估数据中学习",
    ),
    Text(
        "call model.eval() before and work under torch.no_grad()",
        "请先调用 model.eval()，并在 torch.no_grad() 下进行",
    ),
)
RULES = (BATCHING, SIDE_EFFECT)
_TOLERANCE = 1e-4
"""Relative: sums in another order differ by 1e-5 at most in float32; means of an untrained model's errors over
batches of 24 and of 16 samples were seen to differ by 9e-4."""
_TOLERANCE_IN_HALF = 1e-3
"""Under autocast, where other batches take other kernels."""
_SMALL = 0.02
"""Below this a mean of means over nearly equal batches is an inaccuracy, above it a wrong figure."""
_MOST_SECONDS = 3.0
"""CPU time of one call that is repeated half a dozen times."""
_MOST_NUMBERS = 16
"""More numbers than that are predictions, which may come in another order."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a call finds its loader: an argument, or an attribute of one."""

    argument: str
    attribute: str = ""

    def get(self, arguments: Mapping[str, Any]) -> Any:
        owner = arguments[self.argument]
        return getattr(owner, self.attribute) if self.attribute else owner

    def put(self, arguments: Mapping[str, Any], loader: Any) -> Mapping[str, Any]:
        if not self.attribute:
            return {**arguments, self.argument: loader}
        setattr(arguments[self.argument], self.attribute, loader)
        return arguments


def examine(subject: Subject) -> Examined:
    shown: dict[tuple[str, Place], Shown] = {}
    held: set[str] = set()
    for call in subject.run.calls:
        for rule, item in _examine_call(subject, call):
            held.add(rule)
            if item is not None:
                shown.setdefault((item.rule.id, item.place), item)
    if not held and not shown:
        return NOTHING_TO_LOOK_AT
    broken = {rule for rule, _ in shown}
    return Examined(tuple(shown.values()), True, tuple(sorted(held - broken)))


def _examine_call(subject: Subject, call: Call) -> Iterator[tuple[str, Shown | None]]:
    """One result for each relation that could be asked of this call."""
    if any(isinstance(item, torch.optim.Optimizer) for item in call.arguments.values()):
        return
    slots = list(_slots(call))
    if len(slots) != 1 or not _is_known(slots[0].get(call.arguments)):
        return
    metric = Metric(subject, call, slots[0])
    started = time.process_time()
    first = metric.measure(metric.variant())
    if first is None or not first.values or time.process_time() - started > _MOST_SECONDS:
        return
    changed = first.changed
    yield SIDE_EFFECT.id, _side_effect(call, changed) if changed else None
    again = metric.measure(metric.variant(), seed=1)
    if again is None or not metric.are_same(first, again):
        return  # it draws random numbers: nothing can be said of other batches
    broken = _batching(metric, first)
    if broken is not None or metric.can_move(first):
        yield BATCHING.id, broken


def _batching(metric: Metric, first: Measured) -> Shown | None:
    for words, loader in metric.variants():
        other = metric.measure(loader)
        if other is not None and other.values and not metric.are_same(first, other):
            one, two = _worst(first.values, other.values, metric.tolerance)
            small = abs(one - two) <= _SMALL * max(abs(one), abs(two))
            return Shown(
                BATCHING,
                _line_of_mean(metric.subject.run.root, metric.call),
                Text(
                    "`{name}` gives {one} and, {how}, {two}",
                    "`{name}` 得到 {one}，而{how_zh}得到 {two}",
                ),
                {
                    "name": metric.call.name,
                    "one": f"{one:.6g}",
                    "two": f"{two:.6g}",
                    "how": words.en,
                    "how_zh": words.zh,
                },
                (
                    number("as it is", "原样", one, "", IN_THE_RUN),
                    number(
                        "the same data in other batches",
                        "同样的数据换一种分批",
                        two,
                        "",
                        IN_THE_RUN,
                    ),
                ),
                severity=Severity.MEDIUM if small else None,
            )
    return None


def _side_effect(call: Call, changed: str) -> Shown:
    return Shown(
        SIDE_EFFECT,
        call.place,
        Text(
            "`{name}` changes {changed} of the model that it evaluates",
            "`{name}` 改变了被评估模型的 {changed}",
        ),
        {"name": call.name, "changed": changed},
        (number("tensors changed, at least", "至少改变的张量", 1, "", IN_THE_RUN),),
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers that a call returned, and the first tensor of a model that it changed."""

    values: tuple[float, ...]
    changed: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A call that takes a loader and returns numbers."""

    subject: Subject
    call: Call
    slot: Slot

    @property
    def loader(self) -> DataLoader[Any]:
        found: DataLoader[Any] = self.slot.get(self.call.arguments)
        return found

    @property
    def tolerance(self) -> float:
        return _TOLERANCE_IN_HALF if self.subject.run.autocast else _TOLERANCE

    def are_same(self, one: Measured, other: Measured) -> bool:
        pairs = list(zip(one.values, other.values, strict=False))
        return len(one.values) == len(other.values) and not any(
            _differs(a, b, self.tolerance) for a, b in pairs
        )

    def variant(self, batch_size: int = 0, backwards: bool = False) -> DataLoader[Any]:
        data: Any = self.loader.dataset
        if backwards:
            data = Subset(data, range(len(data) - 1, -1, -1))
        size = batch_size or self.loader.batch_size
        return DataLoader(data, size, shuffle=False, collate_fn=self.loader.collate_fn)

    def variants(self) -> Iterator[tuple[Text, DataLoader[Any]]]:
        data: Any = self.loader.dataset
        count, size = len(data), self.loader.batch_size or 1
        for other in dict.fromkeys((max(size // 2, 1), size + 1, min(count, 4 * size))):
            if other != size:
                words = Text(f"in batches of {other}", f"每批 {other} 个时")
                yield words, self.variant(other)
        yield Text("in reverse order", "以相反顺序"), self.variant(backwards=True)

    def can_move(self, first: Measured) -> bool:
        """Whether other data or other weights give other numbers: a constant is right in any batches."""
        data: Any = self.loader.dataset
        half = DataLoader(
            Subset(data, range((len(data) + 1) // 2)),
            self.loader.batch_size,
            collate_fn=self.loader.collate_fn,
        )
        others = (self.measure(half), self.measure(self.variant(), shift=True))
        return any(item is not None and not self.are_same(first, item) for item in others)

    def measure(
        self, loader: DataLoader[Any], seed: int = 0, shift: bool = False
    ) -> Measured | None:
        """None where the call cannot be made again, trains, or returns something else. `shift`: with
        other weights."""
        arguments = self.call.copy()
        if arguments is None:
            return None
        arguments = self.slot.put(arguments, loader)
        models = [item for item in reachable(arguments.values()) if isinstance(item, nn.Module)]
        if shift:
            _shift_weights(models)
        before = {
            f"{name}": item.clone()
            for model in models
            for name, item in model.state_dict().items()
            if isinstance(item, torch.Tensor)
        }
        done = self.subject.replay(self.call, arguments, seed)
        if done.error or done.trained:
            return None
        after = {name: item for model in models for name, item in model.state_dict().items()}
        changed = next(
            (name for name, item in before.items() if not torch.equal(item, after[name])), ""
        )
        return Measured(tuple(_numbers(done.value)), changed)


def _shift_weights(models: list[nn.Module]) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for model in models:
            for parameter in model.parameters():
                if parameter.is_floating_point():
                    parameter.add_(torch.randn(parameter.shape, generator=generator))


def _slots(call: Call) -> Iterator[Slot]:
    for name, value in call.arguments.items():
        if isinstance(value, DataLoader):
            yield Slot(name)
        elif name == "self":
            for attribute, inner in vars(value).items() if hasattr(value, "__dict__") else ():
                if isinstance(inner, DataLoader) and attribute in call.code.co_names:
                    yield Slot(name, attribute)


def _is_known(loader: Any) -> bool:
    """Data that can be put into other batches."""
    return (
        loader.batch_size is not None
        and not isinstance(loader.dataset, IterableDataset)
        and hasattr(loader.dataset, "__len__")
        and len(loader.dataset) > 1
        and type(loader.batch_sampler).__name__ == "BatchSampler"
    )


def _numbers(value: Any) -> Iterator[float]:
    found: list[float] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [item[key] for key in sorted(item, key=str, reverse=True)]
        elif isinstance(item, list | tuple):
            pending += reversed(item)
        elif isinstance(item, torch.Tensor):
            found += [float(item)] if item.numel() == 1 else [math.nan] * (_MOST_NUMBERS + 1)
        elif isinstance(item, int | float | numbers.Real):
            found.append(float(item))
    return iter(found if len(found) <= _MOST_NUMBERS else ())


def _differs(one: float, other: float, tolerance: float) -> bool:
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.isnan(one) != math.isnan(other)
    return abs(one - other) > tolerance * max(abs(one), abs(other)) + 1e-6


def _worst(
    one: tuple[float, ...], other: tuple[float, ...], tolerance: float
) -> tuple[float, float]:
    pairs = list(zip(one, other, strict=False))
    return next((pair for pair in pairs if _differs(*pair, tolerance)), pairs[0])


def _line_of_mean(root: Path, call: Call) -> Place:
    """The line of the function that divides or takes the last mean; its `def` where none does."""
    try:
        tree = ast.parse((root / call.place.path).read_text("utf-8"))
    except (OSError, SyntaxError, ValueError):
        return call.place
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _starts_at(node, call.place.line):
            lines = [
                item.lineno
                for item in ast.walk(node)
                if isinstance(item, ast.expr) and _is_mean(item)
            ]
            if lines:
                return Place(call.place.path, max(lines), call.place.scope)
    return call.place


def _starts_at(node: ast.FunctionDef, line: int) -> bool:
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    return line in (first, node.lineno)


def _is_mean(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return "len(" in ast.unparse(node.right) or isinstance(node.right, ast.Name)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("mean", "nanmean")
    )
