"""The first operator that turns finite values into NaN or infinity."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.conductor.experiments.recording.run import NonFinite, Run
from torchstone.conductor.experiments.recording.training import EnoughError
from torchstone.observe.compat.modes import TorchDispatchMode
from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.where import Where

_UNWRITTEN = ("empty", "new_empty", "resize", "set_")
_FILLING = (
    "fill",
    "full",
    "where",
    "scalar_tensor",
    "masked",
    "_to_copy",
    "clone",
    "copy_",
    "view",
)
"""They pass on an infinity that the program asked for, as masks do."""


class FirstNonFinite(TorchDispatchMode):
    """Looks at every output; ends the run at the first that is not finite without cause.

    NaN from inputs without NaN always counts. An infinity counts only where `infinities` is set:
    masks are full of them, and most do no harm.
    """

    def __init__(self, run: Run, places: Where, infinities: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._run, self._places, self._infinities = run, places, infinities

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if not name.startswith(_UNWRITTEN):
            self._look(name, args, kwargs or {}, out)
        return out

    def _look(self, name: str, args: Any, kwargs: Any, out: Any) -> None:
        made = _floats(out)
        bad = [item for item in made if bool(torch.isnan(item).any())]
        given = _floats((args, kwargs))
        if bad and not any(bool(torch.isnan(item).any()) for item in given):
            self._found(name, given, bad[0], torch.isnan(bad[0]))
        if self._infinities and not any(word in name for word in _FILLING):
            wide = [item for item in made if bool(torch.isinf(item).any())]
            if wide and all(bool(torch.isfinite(item).all()) for item in given):
                self._found(name, given, wide[0], torch.isinf(wide[0]))

    def _found(
        self, name: str, given: list[torch.Tensor], out: torch.Tensor, at: torch.Tensor
    ) -> None:
        said = tuple(
            f"{tuple(item.shape)}: {float(item.min()):.4g} to {float(item.max()):.4g}"
            for item in given[:3]
            if item.numel()
        )
        share = float(at.sum()) / max(out.numel(), 1)
        place = self._places.own(2)
        self._run.non_finite = NonFinite(place, name, len(self._run.steps), share, said)
        raise EnoughError


def _floats(value: Any) -> list[torch.Tensor]:
    return [
        item
        for item in tree_leaves(value)
        if isinstance(item, torch.Tensor) and item.is_floating_point() and item.numel()
    ]
