"""The low side alone, where it is simulated: operators in fp32, results rounded."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Module

from torchstone.observe.compat.modes import TorchDispatchMode
from torchstone.observe.compat.operators import OpOverload
from torchstone.tensors.compare.shadow.operators import operator_facts
from torchstone.tensors.compare.shadow.places import Places
from torchstone.tensors.compare.shadow.shadow_mode import ShadowMode


class RoundedMode(TorchDispatchMode):
    """Rounds what operators on `low` tensors give, without a shadow."""

    supports_higher_order_operators = True

    def __init__(self, low: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        high = torch.float32 if low.itemsize <= 2 else torch.float64
        self._low = ShadowMode(low, high, Places(Module()), simulate=True)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not isinstance(func, OpOverload):
            return func(*args, **(kwargs or {}))
        facts = operator_facts(func)
        if facts.view:
            return func(*args, **(kwargs or {}))
        return self._low.run_low(func, facts, args, kwargs or {}, None)
