"""What the reference itself does with its inputs, which a kernel may then do, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.reference.running import Reference, Values, leaves_of, rebuilt
from torchstone.observe.operators import OperatorMode


def written_inputs(reference: Reference, inputs: Values) -> list[bool]:
    """Which inputs the reference changes."""
    leaves = leaves_of(inputs)
    given, _ = _run(reference, inputs)
    return [
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and not torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(given, leaves, strict=True)
    ]


def answers_with_inputs(reference: Reference, inputs: Values) -> bool:
    """Does the reference answer with memory of its inputs?"""
    given, found = _run(reference, inputs)
    mine = {_address(leaf) for leaf in given} - {0}
    return bool(mine & {_address(leaf) for leaf in leaves_of(found)})


class _Steps(OperatorMode):
    """Counts operators."""

    count = 0

    def run(self, func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        self.count += 1
        return func(*args, **kwargs)


def steps_of(reference: Reference, inputs: Values) -> int:
    """How many operators the reference runs on these inputs: a loop runs more of them on longer."""
    steps = _Steps()
    with steps:
        _run(reference, inputs)
    return int(steps.count)


def _run(reference: Reference, inputs: Values) -> tuple[Values, object]:
    """Copies of the inputs after one call, and its answer."""
    given = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves_of(inputs)]
    model = reference.model(0)
    with torch.no_grad():
        return given, (model if callable(model) else model.forward)(*rebuilt(inputs, given))


def _address(leaf: object) -> int:
    if isinstance(leaf, np.ndarray):
        return int(leaf.__array_interface__["data"][0]) if leaf.size else 0
    return leaf.untyped_storage().data_ptr() if isinstance(leaf, torch.Tensor) else 0
