"""Names of devices: `cuda` in any spelling is the pretend device, and back."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.dryrun.session import Session
from torchstone.observe.compat.backends import FAKE_DEVICE as NAME


class PretendCuda:
    """Which device is current, and how names are mapped."""

    def __init__(self, session: Session) -> None:
        self._settings = session.settings
        self._session = session
        given = session.settings
        self.count = given.local_ranks() if given.play_ranks else max(1, given.devices)
        self.current = 0

    def choose(self, index: int) -> None:
        """This device is the current one from now on."""
        self.current = index

    def mapped(self, value: Any) -> Any:
        """`cuda` in any spelling as the pretend device; all else as it is."""
        named: Any = value
        if isinstance(value, str):
            if not value.startswith("cuda"):
                return value
            named = torch.device(value)
        if isinstance(named, torch.device) and named.type == "cuda":
            index: int | None = named.index
            return self.numbered(self.current if index is None else index)
        return value

    def numbered(self, index: int) -> torch.device:
        if index >= self.count:
            raise RuntimeError(
                f"CUDA error: invalid device ordinal (cuda:{index}; the job has {self.count} "
                "device(s) on a node)"
            )
        return torch.device("cpu") if self._settings.play_ranks else torch.device(NAME, index)

    def translate(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        for value in args:
            if type(value) is str or type(value) is torch.device:
                args = tuple(self.mapped(item) for item in args)
                break
        if kwargs and "device" in kwargs:
            device = kwargs["device"]
            mapped = self.numbered(device) if type(device) is int else self.mapped(device)
            kwargs = {**kwargs, "device": mapped}
        return args, kwargs

    def shown(self, device: torch.device) -> torch.device:
        return torch.device("cuda", device.index or 0) if device.type == NAME else device
