"""Calls that run and are probably not what was meant."""

from __future__ import annotations

import re
from typing import Any

import torch

from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.dryrun.session import Session, is_fake
from torchstone.dryrun.shapes.history import (
    LOADER,
    Step,
    function_name,
    operands_of,
    step_of,
)
from torchstone.observe.where import PROGRAM

_PAIRED = frozenset(
    "sub __sub__ __rsub__ add __add__ mul __mul__ div __truediv__ eq __eq__ ne lt gt le ge "
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits".split()
)
_LOSSES = frozenset("mse_loss l1_loss smooth_l1_loss huber_loss".split())
_SMALL = 1


class Hazards:
    """Looks at each call that went well."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._writes: list[tuple[tuple[int, ...], int, Place]] = []

    def check(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        name = func.__name__
        if name in _PAIRED:
            self._broadcast(func, args, kwargs)
        if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
            self._float64(func, args, kwargs, result)
        if (name.endswith("_") and not name.endswith("__")) or name in (
            "__iadd__",
            "__setitem__",
            "__imul__",
        ):
            self._written(args)

    def _broadcast(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """(B,) with (B, 1) gives (B, B): both sides are expanded, along axes of equal length."""
        if len(args) < 2 or not all(isinstance(item, torch.Tensor) for item in args[:2]):
            return
        left, right = args[0], args[1]
        if not (is_fake(left) or is_fake(right)) or left.shape == right.shape:
            return
        crossing = crosses(tuple(left.shape), tuple(right.shape)) or _is_per_sample(left, right)
        if crossing and not _is_written_out(left, right):
            both = (tuple(left.shape), tuple(right.shape))
            out = torch.broadcast_shapes(*both)
            self._session.hazard(
                "DR201", function_name(func), lambda: operands_of(func, args, kwargs),
                Text(f"{both[0]} with {both[1]} gives {tuple(out)}",
                     f"{both[0]} 与 {both[1]} 得到 {tuple(out)}"),
            )  # fmt: skip

    def _float64(self, func: Any, args: Any, kwargs: dict[str, Any], result: torch.Tensor) -> None:
        """A float64 tensor meets narrower floats of the model and widens them."""
        if not is_fake(result) or result.dim() == 0:
            return
        floats = [
            item for item in args if isinstance(item, torch.Tensor) and item.is_floating_point()
        ]
        narrow = [item for item in floats if item.dtype != torch.float64 and is_fake(item)]
        wide = [item for item in floats if item.dtype == torch.float64]
        if narrow and wide:
            self._session.hazard(
                "DR202", function_name(func), lambda: operands_of(func, args, kwargs),
                Text("the result is float64", "结果为 float64"),
            )  # fmt: skip

    def _written(self, args: Any) -> None:
        target = args[0] if args else None
        if isinstance(target, torch.Tensor) and is_fake(target):
            self._writes.append((tuple(target.shape), target._version, PROGRAM.here(4)))
            del self._writes[:-2000]  # an in-place write is met by the next backward

    def writers(self, message: str) -> tuple[Place, ...]:
        """Where the tensor of autograd's complaint was written in place."""
        shape = re.search(r"\[torch\.[\w.]+ \[([\d, ]*)\]\]", message)
        versions = re.search(r"is at version (\d+); expected version (\d+)", message)
        if versions is None:
            return ()
        now, expected = int(versions[1]), int(versions[2])
        wanted = tuple(int(n) for n in shape[1].split(",") if n.strip()) if shape else None
        found = [
            spot
            for size, version, spot in self._writes
            if expected < version <= now and (wanted is None or size == wanted)
        ]
        return tuple(dict.fromkeys(reversed(found)))


_INSERTS = ("__getitem__", "unsqueeze")


def _is_written_out(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Was an axis inserted on the very line of the call: `a[:, None] * b` is an outer product."""
    here = PROGRAM.here(5)
    steps = [step for item in (left, right) if (step := step_of(item)) is not None]
    return any(step.spot == here and _inserts_axis(step) for step in steps)


def _inserts_axis(step: Step) -> bool:
    """`x[:, :1]` cuts an axis down and inserts none."""
    more = step.before is None or len(step.shape) > len(step.before.shape)
    return step.op.rpartition(".")[2] in _INSERTS and more


def _is_per_sample(left: torch.Tensor, right: torch.Tensor) -> bool:
    """(B,) with (B, C, W), where B is W by chance: numbers of samples are spread along the last axis.

    What the model holds has a place on the last axis (a bias, a scale); a vector that was made in the step has not.
    """
    small, large = (left, right) if left.dim() < right.dim() else (right, left)
    if small.dim() != 1 or large.dim() < 3 or isinstance(small, torch.nn.Parameter):
        return False
    count = small.shape[0]
    shaped = count > _SMALL and large.shape[0] == large.shape[-1] == count
    return shaped and _is_of_samples(step_of(small))


_OF_SAMPLES = frozenset("__getitem__ index_select gather mean sum squeeze".split())
"""Calls that make one number of each sample: a table looked up by its step, a reduction of the other axes."""
_MOVED = frozenset("to float double half bfloat16 long cuda cpu clone detach contiguous".split())


def _is_of_samples(step: Step | None) -> bool:
    """Made so, or given so by a loader, on whatever device and in whatever format since then."""
    while step is not None and (name := step.op.rpartition(".")[2]) in _MOVED:
        step = step.before
    return step is not None and (name in _OF_SAMPLES or step.op.startswith(LOADER))


def crosses(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Are both expanded, the same length taken once along one axis and once along another?"""
    rank = max(len(left), len(right))
    a = (1,) * (rank - len(left)) + left
    b = (1,) * (rank - len(right)) + right
    grown_left = [n for m, n in zip(a, b, strict=True) if m == 1 and n > _SMALL]
    grown_right = [m for m, n in zip(a, b, strict=True) if n == 1 and m > _SMALL]
    implicit = len(left) != len(
        right
    )  # written-out axes of length 1 are meant: x[:, None] - y[None]
    return implicit and bool(set(grown_left) & set(grown_right))


__all__ = ["Hazards", "crosses"]
