"""The calls of what is compiled, kept as shapes, to be compiled when the program has ended."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from torchstone.dryrun.session import OutermostCall, Session
from torchstone.observe.compat.trees import tree_map_only

MOST_CALLS = 8
"""Different calls kept of one function: a full batch, a remainder batch, evaluation, and some more."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A tensor without its values."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool

    def made_on(self, device: str) -> torch.Tensor:
        made = torch.empty_strided(self.size, self.stride, dtype=self.dtype, device=device)
        return made.zero_().requires_grad_(self.requires_grad)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """The arguments of one call, tensors as shapes, and the modes it was made in."""

    args: Any
    kwargs: Any
    training: bool
    grad: bool

    def key(self) -> str:
        return repr((self.args, self.kwargs, self.training, self.grad))

    def made_on(self, device: str) -> tuple[Any, dict[str, Any]]:
        made: tuple[Any, dict[str, Any]] = tree_map_only(
            Shape, lambda shape: shape.made_on(device), (self.args, self.kwargs)
        )
        return made


@dataclass
class Compiled:
    """One function or module that is compiled, with its calls and the options it is compiled with."""

    target: Any
    options: dict[str, Any]
    calls: dict[str, RecordedCall] = field(default_factory=dict)

    @property
    def may_not_break(self) -> bool:
        return bool(self.options.get("fullgraph"))

    def keep(self, args: Any, kwargs: Any) -> None:
        if len(self.calls) >= MOST_CALLS:
            return
        args, kwargs = tree_map_only(torch.Tensor, shape_of, (args, kwargs))
        training = self.target.training if isinstance(self.target, nn.Module) else False
        call = RecordedCall(args, kwargs, training, torch.is_grad_enabled())
        self.calls.setdefault(call.key(), call)


def shape_of(tensor: torch.Tensor) -> Shape:
    return Shape(tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad)


class RecordedCalls:
    """Stands in for torch.compile; where the program never calls it, its outermost modules count.

    Without `--compile` only that is compiled which may not break (`fullgraph=True`): there a break is an error.
    """

    def __init__(self, session: Session) -> None:
        self._named: list[Compiled] = []
        self._outermost: dict[int, Compiled] = {}
        self._session = session
        self._all = session.settings.compile
        if self._all:
            session.subscribe(OutermostCall, self._keep_outermost)

    def compiled(self) -> list[Compiled]:
        named = self._named or list(self._outermost.values())
        return named if self._all else [item for item in named if item.may_not_break and item.calls]

    def compile(self, model: Any = None, **options: Any) -> Any:
        """In the place of `torch.compile`."""
        if model is None:
            return lambda inner: self.compile(inner, **options)
        made = Compiled(model, options)
        self._named.append(made)
        if isinstance(model, nn.Module):
            model.register_forward_pre_hook(
                lambda _, args, kwargs: self._called(made, args, kwargs), with_kwargs=True
            )
            return model

        @functools.wraps(model)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._called(made, args, kwargs)
            return model(*args, **kwargs)

        return call

    def _called(self, made: Compiled, args: Any, kwargs: Any) -> None:
        self._session.counts.add("compiled")
        if self._all or made.may_not_break:
            made.keep(args, kwargs)

    def _keep_outermost(self, event: OutermostCall) -> None:
        module, args, kwargs = event.module, event.args, event.kwargs
        if not self._named:
            made = self._outermost.setdefault(id(module), Compiled(module, {}))
            made.keep(args, kwargs)
