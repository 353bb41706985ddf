"""The low side alone, where it is simulated: operators in fp32, results rounded."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Module

from torchstone.observe.compat.operators import OpOverload
from torchstone.observe.operators import OperatorMode
from torchstone.tensors.compare.shadow.operators import operator_facts
from torchstone.tensors.compare.shadow.places import Places
from torchstone.tensors.compare.shadow.shadow_mode import ShadowMode


class RoundedMode(OperatorMode):
    """Rounds what operators on `low` tensors give, without a shadow."""

    def __init__(self, low: torch.dtype) -> None:
        super().__init__()
        high = torch.float32 if low.itemsize <= 2 else torch.float64
        self._low = ShadowMode(low, high, Places(Module()), simulate=True)

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        facts = operator_facts(func)
        if facts.view:
            return func(*args, **kwargs)
        return self._low.run_low(func, facts, args, kwargs, None)
