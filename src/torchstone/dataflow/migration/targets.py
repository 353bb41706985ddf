"""The device that a plan names, and the one that this machine has."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torchstone.core.errors import InputError
from torchstone.core.text import NOTHING, Text

STAY = "cpu"
"""In a plan: the original function computes it."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where calls planned for `named` run."""

    named: str
    device: torch.device
    note: Text = NOTHING
    """Says so when it is another device than the plan names."""


def find_target(named: str, instead: str | None = None) -> Target:
    """The device of this name; torch's CPU kernels where it is absent, and a note that says so."""
    wanted = _parse(instead or named)
    if _is_present(wanted):
        return Target(named, wanted)
    return Target(
        named,
        torch.device("cpu"),
        Text(
            f"this machine has no {wanted}: the calls planned for it run as torch kernels on cpu",
            f"本机没有 {wanted}：计划放在该设备上的调用改为在 cpu 上以 torch 算子执行",
        ),
    )


def _parse(name: str) -> torch.device:
    try:
        return torch.device(name)
    except (RuntimeError, TypeError):
        raise InputError(
            "plan",
            f"device {name!r:.60}",
            Text("a torch device such as cuda:0 or cpu", "torch 设备名，例如 cuda:0 或 cpu"),
            Text(
                "make the plan again with `torchstone flow plan`",
                "请用 `torchstone flow plan` 重新生成计划",
            ),
        ) from None


def _is_present(device: torch.device) -> bool:
    if device.type == "cpu":
        return True
    module = getattr(torch, device.type, None)
    if module is None or not hasattr(module, "is_available") or not module.is_available():
        return False
    count = module.device_count() if hasattr(module, "device_count") else 1
    return (device.index or 0) < count
