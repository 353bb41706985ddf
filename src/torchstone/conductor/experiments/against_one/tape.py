"""What one rank used and computed up to its second optimizer step, as plain tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from torchstone.core.place import Place
from torchstone.observe.compat.trees import tree_flatten, tree_unflatten

STEPS = 2
"""Optimizer steps that are compared: the second one sees what the first update did."""


@dataclass(slots=True)
class Return:
    """A tensor that a function of the project returned."""

    key: str
    """Qualified name and number of the call."""
    path: str
    line: int
    value: torch.Tensor

    @property
    def place(self) -> Place:
        return Place(self.path, self.line, self.key.partition("#")[0])


@dataclass(slots=True)
class Tape:
    """Everything in the order in which it came."""

    weights: list[torch.Tensor] = field(default_factory=list)
    """Of all optimizers, at the first step."""
    batches: list[Any] = field(default_factory=list)
    draws: list[torch.Tensor] = field(default_factory=list)
    gradients: list[list[torch.Tensor | None]] = field(default_factory=list)
    """For each step, for each parameter."""
    returns: list[Return] = field(default_factory=list)
    step_at: tuple[str, int] = ("", 0)
    losses: list[float] = field(default_factory=list)
    """Of each backward pass."""
    rates: list[list[float]] = field(default_factory=list)
    """Of each optimizer step, for each of its groups."""
    names: list[str] = field(default_factory=list)
    """Of the parameters, in the order of the weights."""
    gathers: bool = False
    """Activations went through a collective in the forward pass."""
    own_statistics: bool = False
    """Batch statistics are taken on each rank alone, which no joined run can repeat."""
    ended: str = ""
    last_lines: str = ""

    def save(self, path: Path) -> None:
        rows = [(item.key, item.path, item.line, item.value) for item in self.returns]
        torch.save(
            {
                "weights": self.weights,
                "batches": self.batches,
                "draws": self.draws,
                "gradients": self.gradients,
                "returns": rows,
                "losses": self.losses,
                "rates": self.rates,
                "names": self.names,
                "step_at": list(self.step_at),
                "gathers": self.gathers,
                "own_statistics": self.own_statistics,
                "ended": self.ended,
                "last_lines": self.last_lines,
            },
            path,
        )


def tape_name(rank: int, even: bool) -> str:
    return f"{rank}-even.pt" if even else f"{rank}.pt"


def load_tape(path: Path) -> Tape:
    """Only tensors and plain containers are read: the file was written by code of the project."""
    data = torch.load(path, weights_only=True)
    data["returns"] = [Return(*row) for row in data["returns"]]
    data["step_at"] = tuple(data["step_at"])
    return Tape(**data)


def are_uneven_replicas(one: Tape, ranks: list[Tape]) -> bool:
    """Whether every rank holds all weights of one process, and they are not equal on all ranks."""
    own = [item.shape for item in one.weights]
    first = ranks[0].weights
    if not own or any([item.shape for item in tape.weights] != own for tape in ranks):
        return False
    return any(
        not torch.equal(item, other)
        for tape in ranks[1:]
        for item, other in zip(tape.weights, first, strict=True)
    )


class CannotJoinError(Exception):
    """What the ranks used has no single form."""


def _are_equal(parts: Sequence[torch.Tensor]) -> bool:
    first = parts[0]
    return all(item.shape == first.shape and torch.equal(item, first) for item in parts[1:])


def join(parts: list[torch.Tensor], axis: int = 0) -> torch.Tensor:
    """What all ranks hold as one tensor: once where it is equal, side by side where it is not."""
    first = parts[0]
    if _are_equal(parts):
        return first
    if not first.dim():
        raise CannotJoinError("numbers that differ between ranks")
    return torch.cat(parts, axis)


def join_batches(parts: list[Any]) -> Any:
    flat = [tree_flatten(item) for item in parts]
    spec = flat[0][1]
    if any(item[1] != spec for item in flat):
        raise CannotJoinError("batches of different kinds")
    leaves = []
    rows = list(zip(*(item[0] for item in flat), strict=True))
    sizes = {
        row[0].shape[0]
        for row in rows
        if isinstance(row[0], torch.Tensor) and row[0].dim() and not _are_equal(row)
    }
    for row in rows:
        if isinstance(row[0], torch.Tensor):
            parts = _padded(list(row))
            # samples that happen to be equal stand beside others that are not
            beside = bool(row[0].dim()) and row[0].shape[0] in sizes
            leaves.append(torch.cat(parts) if beside else join(parts))
        elif all(item == row[0] for item in row):
            leaves.append(row[0])
        elif isinstance(row[0], int):
            leaves.append(sum(row))
        else:
            raise CannotJoinError("batches that hold other things than tensors")
    return tree_unflatten(leaves, spec)


def _padded(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    shapes = {item.shape[1:] for item in parts}
    if len(shapes) > 1:
        raise CannotJoinError("batches whose samples differ in shape between ranks")
    return parts


def join_weights(parts: list[torch.Tensor], shape: torch.Size) -> torch.Tensor:
    """Replicated where every rank has the whole shape; otherwise shards along the one axis that adds up."""
    if parts[0].shape == shape:
        return parts[0]
    for axis in range(len(shape)):
        sides = [item.shape[axis] for item in parts if item.dim() == len(shape)]
        rest = all(
            item.shape[:axis] == shape[:axis] and item.shape[axis + 1 :] == shape[axis + 1 :]
            for item in parts
            if item.dim() == len(shape)
        )
        if len(sides) == len(parts) and sum(sides) == shape[axis] and rest:
            return torch.cat(parts, axis)
    raise CannotJoinError(
        f"weights of {tuple(parts[0].shape)} on the ranks and {tuple(shape)} in one process"
    )
