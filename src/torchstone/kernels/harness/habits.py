"""What the reference itself does with its inputs, which a kernel may then do, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.reference import Reference, leaves_of, rebuilt


def written_inputs(reference: Reference, inputs: list[Any]) -> list[bool]:
    """Which inputs the reference changes."""
    leaves = leaves_of(inputs)
    given, _ = _run(reference, inputs)
    return [
        isinstance(a, torch.Tensor) and not torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(given, leaves, strict=True)
    ]


def answers_with_inputs(reference: Reference, inputs: list[Any]) -> bool:
    """Does the reference answer with memory of its inputs?"""
    given, found = _run(reference, inputs)
    mine = {_address(leaf) for leaf in given} - {0}
    return bool(mine & {_address(leaf) for leaf in leaves_of(found)})


def _run(reference: Reference, inputs: list[Any]) -> tuple[list[Any], Any]:
    """Copies of the inputs after one call, and its answer."""
    given = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves_of(inputs)]
    model = reference.model(0)
    with torch.no_grad():
        return given, (model if callable(model) else model.forward)(*rebuilt(inputs, given))


def _address(leaf: Any) -> int:
    if isinstance(leaf, np.ndarray):
        return int(leaf.__array_interface__["data"][0]) if leaf.size else 0
    return leaf.untyped_storage().data_ptr() if isinstance(leaf, torch.Tensor) else 0
