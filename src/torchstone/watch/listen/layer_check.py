"""A check of every layer in one forward pass, to name the first whose output is not finite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from torchstone.watch.listen.discover import tensors_in


class LayerCheck:
    """Hooks on every layer for one call; too expensive for every step, and worth it after a NaN."""

    def __init__(self, models: Iterable[nn.Module]) -> None:
        self.first = ""
        """The first layer with an output that is not finite."""
        self.had_bad_input = self.had_bad_weights = False
        self._handles = [
            module.register_forward_hook(self._look(name or type(module).__name__))
            for model in models
            for name, module in model.named_modules()
            if not any(True for _ in module.children())
        ]

    def _look(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if not self.first and torch.is_grad_enabled() and _bad(output):
                self.first = name
                self.had_bad_input = _bad(args)
                self.had_bad_weights = _bad(list(module.parameters(recurse=False)))

        return hook

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


def _bad(values: Any) -> bool:
    return any(
        t.is_floating_point() and t.device.type != "meta" and not bool(t.detach().isfinite().all())
        for t in tensors_in(values)
    )
