"""`module:Model --input …`: one model, built and run with fake tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from torchstone.core.place import NOWHERE
from torchstone.dryrun.settings import ScriptSettings
from torchstone.dryrun.shapes.history import remember
from torchstone.dryrun.world import World
from torchstone.observe.compat.backends import FAKE_DEVICE
from torchstone.observe.compat.fakes import FakeTensorMode
from torchstone.observe.compat.modes import DisableTorchFunction
from torchstone.observe.compat.trees import tree_leaves, tree_map_only
from torchstone.runtime.inputs import default_inputs, parse_inputs
from torchstone.runtime.targets import build_target


def run_model(settings: ScriptSettings, world: World) -> None:
    """Forward, and with `train` the backward."""
    mode = world.session.mode
    device = torch.device(FAKE_DEVICE, 0) if settings.cuda else torch.device("cpu")
    model, inputs = build(settings, mode, device)
    for index, tensor in enumerate(tree_leaves(inputs)):
        if isinstance(tensor, torch.Tensor):
            remember(tensor, f"input {index}", NOWHERE, None)
    with torch.set_grad_enabled(settings.train):
        result = call(model, inputs)
        if settings.train:
            total = _scalar(result)
            total.backward()


def build(
    settings: ScriptSettings, mode: FakeTensorMode, device: torch.device
) -> tuple[nn.Module, Any]:
    """The model and its inputs, all fake, on one device."""
    target = build_target(settings.target)
    given = (
        parse_inputs(settings.inputs, target.model)
        if settings.inputs
        else target.inputs
        if target.inputs is not None
        else default_inputs(target.model, target.config)
    )
    make = _maker(mode, device)
    with DisableTorchFunction():
        for module in target.model.modules():
            for holder in (module._parameters, module._buffers):
                for name, tensor in holder.items():
                    if tensor is not None:
                        holder[name] = _replaced(tensor, make)  # type: ignore[assignment]
        inputs = tree_map_only(torch.Tensor, make, given)
    target.model.train(settings.train)
    return target.model, inputs


def _maker(mode: FakeTensorMode, device: torch.device) -> Any:
    def make(tensor: torch.Tensor) -> torch.Tensor:
        with mode:
            return torch.empty_strided(
                tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=device
            )

    return make


def _replaced(tensor: torch.Tensor, make: Any) -> torch.Tensor:
    made = make(tensor)
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(made, tensor.requires_grad)
    return made  # type: ignore[no-any-return]


def call(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, dict):
        return model(**inputs)
    if isinstance(inputs, tuple):
        return model(*inputs)
    return model(inputs)


def _scalar(result: Any) -> torch.Tensor:
    """A loss of some kind: the model's own, or the sum of all it gives."""
    loss = getattr(result, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    return torch.stack([item.float().sum() for item in _floats(result)]).sum()


def _floats(result: Any) -> Iterator[torch.Tensor]:
    values = dict(result) if hasattr(result, "keys") else result
    for item in tree_leaves(values):
        if isinstance(item, torch.Tensor) and item.is_floating_point() and item.requires_grad:
            yield item
