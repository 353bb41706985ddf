"""torch.compile from outside: is a model compiled, where does its graph break, what guards it."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

__all__ = [
    "TensorGuards",
    "explain_breaks",
    "find_decompositions",
    "forget_compiled",
    "is_compiled",
    "report_recompilations",
    "uncompiled",
]

try:  # what tells compiled code that a tensor has changed its layout
    from torch._C._dynamo.guards import TensorGuards
except ImportError:
    TensorGuards = None  # type: ignore[assignment,misc]


def is_compiled(model: nn.Module) -> bool:
    """Was it given to torch.compile, by the function or by its method?"""
    compiler: Any = sys.modules.get("torch._dynamo")  # loading it would cost a second
    wrapped = compiler is not None and isinstance(model, compiler.OptimizedModule)
    return wrapped or model._compiled_call_impl is not None


def uncompiled(model: nn.Module) -> nn.Module:
    """The module behind torch.compile and DistributedDataParallel."""
    while (inner := getattr(model, "_orig_mod", None) or _wrapped(model)) is not None:
        model = inner
    return model


def _wrapped(model: nn.Module) -> nn.Module | None:
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else None


def explain_breaks(function: Any, args: Any, kwargs: Any) -> Any:
    """torch's explanation of the graphs that one call is cut into."""
    return torch._dynamo.explain(function)(*args, **kwargs)


def forget_compiled() -> None:
    """Forget everything that was compiled in this process."""
    torch._dynamo.reset()


def report_recompilations() -> None:
    """Have torch log each recompilation with its reason."""
    torch._logging.set_logs(recompiles=True)  # type: ignore[attr-defined]


def find_decompositions(operators: list[Any]) -> Any:
    """The operators in terms of simpler ones."""
    from torch._decomp import get_decompositions  # 10 ms, where there is such a layer

    return get_decompositions(operators)
