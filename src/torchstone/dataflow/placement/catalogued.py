"""What the catalogue says of a traced call: whether it can move, how exactly, with how many kernels."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchstone.core.text import NOTHING, Text
from torchstone.dataflow.device.kernel_count import UNKNOWN, KernelCount
from torchstone.dataflow.graph.dag import DAGNode

DATA = "_"
"""Stands for data among the arguments of a traced call."""


@dataclass(frozen=True, slots=True)
class CataloguedCall:
    """One operator of a graph as the catalogue sees it."""

    stays: Text = NOTHING
    """Why it cannot move; empty where it can."""
    is_exact: bool = True
    case: str = ""
    kernels: KernelCount = UNKNOWN


Look = Callable[[DAGNode, Sequence[DAGNode]], CataloguedCall]
"""From an operator and the data that it reads."""


def look_up(node: DAGNode, inputs: Sequence[DAGNode]) -> CataloguedCall:
    """By the arguments of the traced call; where they are not known, by the function alone."""
    # here and not at the top: the catalogue loads torch, and graphs are made without it
    from torchstone.dataflow.migration.catalogue import catalogue
    from torchstone.dataflow.migration.proof.kernels import kernel_counts
    from torchstone.dataflow.migration.specification import Refusal

    spec = catalogue().get(node.name)
    counts = kernel_counts().get(node.name, {})
    call = None if spec is None or spec.method else call_of(node, inputs)
    case, is_exact = "", True
    if spec is not None and call is not None:
        try:
            judged = spec.judge(_with_lists(spec.args_trans, spec.bind(*call)))
        except (TypeError, ValueError, AttributeError, IndexError):
            judged = None  # what stands for its data does not do: the run will tell
        if isinstance(judged, Refusal):
            return CataloguedCall(judged.reason)
        if judged is not None:
            case, is_exact = judged.name, judged.exact
    kernels = counts.get(case) or counts.get("") or UNKNOWN
    return CataloguedCall(is_exact=is_exact, case=case, kernels=kernels)


def _with_lists(rules: Mapping[str, str], bound: dict[str, Any]) -> dict[str, Any]:
    """A list whose items were folded into one stands as that one item."""
    lists = [name for name, rule in rules.items() if rule in ("arrays", "images")]
    return {
        name: [value] if name in lists and not isinstance(value, list | tuple) else value
        for name, value in bound.items()
    }


def call_of(
    node: DAGNode, inputs: Sequence[DAGNode]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of the call, with arrays of ones of the right form for its data."""
    arrays = [_stand_in(item) for item in inputs if item.kind == "ndarray"]
    text = node.arguments.removesuffix("…").strip()
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        wanted = sum(
            isinstance(item, ast.Name)
            for item in (*call.args, *(word.value for word in call.keywords))
        )
        left = iter([arrays] if wanted == 1 < len(arrays) else arrays)
        args = tuple([_value(item, left) for item in call.args])
        return args, {word.arg or "": _value(word.value, left) for word in call.keywords}
    except (SyntaxError, ValueError, StopIteration, AssertionError, RecursionError):
        return None


def _value(item: ast.expr, arrays: Any) -> Any:
    value = next(arrays) if isinstance(item, ast.Name) else ast.literal_eval(item)
    if value is ...:
        raise ValueError("an argument that was not noted")
    return value


def _stand_in(node: DAGNode) -> Any:
    import numpy as np

    # ones: the element of an erosion must have something in it, and most are `numpy.ones`
    return np.broadcast_to(np.ones((), node.dtype or "uint8"), node.shape)
