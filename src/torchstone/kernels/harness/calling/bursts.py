"""Calls one right after the other, under every setting in which a model may be called.

What looks at the clock, or asks whether gradients are on, meets here what a user does: many calls
in a row with nothing between them, in training and in inference. All answers are kept to the end.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from torchstone.kernels.harness.calling.keeping import Span, digest_of, meet, span_of
from torchstone.kernels.harness.reference.running import Values, leaves_of, rebuilt

GRADIENTS, TRACKED, EVALUATION = "gradients", "tracked", "evaluation"
SETTINGS = ("no gradients", GRADIENTS, "inference", EVALUATION, TRACKED)
"""`tracked`: the inputs themselves ask for gradients."""

_MOST_BYTES = 16 << 20

Calls = Sequence[tuple[Any, Values]]
"""A model and the inputs that it is called with."""


@contextlib.contextmanager
def setting(name: str, models: Sequence[object]) -> Iterator[None]:
    """Inside, torch and the models are set up so."""
    modules = [item for item in models if isinstance(item, torch.nn.Module)]
    with contextlib.ExitStack() as stack:
        if name == "inference":
            stack.enter_context(torch.inference_mode())
        else:
            stack.enter_context(torch.set_grad_enabled(name in (GRADIENTS, TRACKED)))
        if name != EVALUATION:
            yield
            return
        before = [item.training for item in modules]
        for item in modules:
            item.eval()
        try:
            yield
        finally:
            for item, training in zip(modules, before, strict=True):
                item.train(training)


def tracked(inputs: Values) -> Values:
    """The inputs with every array of floating-point numbers asking for gradients."""
    leaves = leaves_of(inputs)
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            leaf.requires_grad_()
    return list(rebuilt(inputs, leaves))


def in_a_row(calls: Calls, name: str) -> Values:
    """The answer to every call, or the error that it raised, with nothing between the calls."""
    if name == TRACKED:
        calls = [(model, tracked(inputs)) for model, inputs in calls]
    answers: Values = []
    with setting(name, [model for model, _ in calls]):
        for model, inputs in calls:
            try:
                answers.append(model(*inputs) if callable(model) else model.forward(*inputs))
            except Exception as error:
                answers.append(error)
    return answers


def overlapping(answers: Sequence[object], calls: Calls) -> list[int]:
    """Answers that lie in the memory of another one, unless both are memory of their inputs."""
    owned = [[span_of(leaf) for leaf in leaves_of(inputs)] for _, inputs in calls]
    spans = [
        [span for span in _spans(answer) if not any(meet(span, item) for item in owned[i])]
        for i, answer in enumerate(answers)
    ]
    return [
        i for i, mine in enumerate(spans)
        if any(meet(one, two) for others in spans[:i] for one in mine for two in others)
    ]  # fmt: skip


def again(model: object, inputs: Values, times: int) -> tuple[bool, bool]:
    """One question asked many times: does it tire, and do its answers come out of a ring?

    All answers are kept to the end, as far as they are not large.
    """
    kept = [in_a_row([(model, inputs)], SETTINGS[0])[0]]
    first = _digests(kept[0])
    size = sum(high - low for low, high in _spans(kept[0]))
    for _ in range(times - 1):
        kept.append(in_a_row([(model, inputs)], SETTINGS[0])[0])
        if isinstance(kept[-1], MemoryError | RuntimeError):
            raise kept[-1]  # whoever asks tells a limit from a fault
        if len(kept) * size > _MOST_BYTES:
            del kept[0]
    own = [span_of(leaf) for leaf in leaves_of(inputs)]
    spans = sorted(span for item in kept for span in _spans(item)
                   if not any(meet(span, other) for other in own))  # fmt: skip
    ring = any(meet(one, two) for one, two in itertools.pairwise(spans))
    return first != _digests(kept[-1]), ring


def _spans(answer: object) -> list[Span]:
    return [] if isinstance(answer, Exception) else [span_of(leaf) for leaf in leaves_of(answer)]


def _digests(answer: object) -> list[str]:
    return [] if isinstance(answer, Exception) else [digest_of(leaf) for leaf in leaves_of(answer)]
