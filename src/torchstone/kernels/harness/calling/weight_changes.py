"""Weights that change between calls: in place, loaded by name, or assigned anew.

A model that is trained, or that is given a checkpoint after its first call, must answer with the
weights it has now.
"""

from __future__ import annotations

import torch

from torchstone.kernels.harness.kits import mindspore_kit

WAYS = ("in place", "loaded", "assigned")
CHANGED = 1
"""The model whose weights are changed: the first seed under which no two of them are alike."""

State = dict[str, torch.Tensor]


def names_between(own: State, state: State) -> dict[str, str] | None:
    """For every weight of the problem the name it has in a candidate; None where that is not known.

    Other names are known by what they hold, since both are made under the same seed.
    """
    if {k: v.shape for k, v in own.items()} == {k: v.shape for k, v in state.items()}:
        return {name: name for name in state}
    if len(own) != len(state):
        return None
    free, found = dict(own), {}
    for name, value in state.items():
        mine = next((k for k, v in free.items() if _alike(v, value)), None)
        if mine is None:
            return None
        found[name] = mine
        del free[mine]
    return found


def _alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.shape == two.shape and torch.equal(one, two.to(one.dtype))


def put(model: object, state: State, way: str) -> bool:
    """Give a model these weights; False where it knows no such way."""
    if isinstance(model, torch.nn.Module):
        _put_module(model, state, way)
        return True
    if mindspore_kit.is_cell(model):
        if way == "loaded":
            mindspore_kit.put_weights(model, {k: v.numpy() for k, v in state.items()})
        return way == "loaded"
    for name, value in state.items():
        if way == "in place":
            getattr(model, name)[...] = value.numpy()
        elif way == "assigned":
            setattr(model, name, value.numpy().copy())
    return way != "loaded"


def _put_module(model: torch.nn.Module, state: State, way: str) -> None:
    if way == "loaded":
        model.load_state_dict(state)
        return
    with torch.no_grad():  # as an optimizer does it: the version of the tensor goes up
        for name, old in model.state_dict(keep_vars=True).items():
            if way == "in place":
                old.copy_(state[name])
                continue
            owner, _, last = name.rpartition(".")
            new = state[name].to(old.dtype).clone()
            if isinstance(old, torch.nn.Parameter):
                new = torch.nn.Parameter(new, requires_grad=old.requires_grad)
            setattr(model.get_submodule(owner), last, new)
