"""Torch's own functions, replaced for one run by ones that write down what they were asked.

This is done in a child process that ends with the run: nothing is put back.
"""

from __future__ import annotations

from torchstone.conductor.probes.harvest.listeners.calls import watch_modules
from torchstone.conductor.probes.harvest.listeners.exchange import watch_collectives
from torchstone.conductor.probes.harvest.listeners.gradients import (
    watch_backward,
    watch_clipping,
    watch_recomputation,
)
from torchstone.conductor.probes.harvest.listeners.loaders import watch_loaders, watch_wrapping
from torchstone.conductor.probes.harvest.listeners.losses import watch_losses
from torchstone.conductor.probes.harvest.listeners.optimizers import (
    watch_optimizers,
    watch_schedulers,
)
from torchstone.conductor.probes.harvest.listeners.saving import watch_saving
from torchstone.conductor.probes.harvest.listeners.scalers import watch_scalers
from torchstone.conductor.probes.harvest.listeners.state import Enough, Hooks
from torchstone.conductor.probes.harvest.listeners.values import copied, digest_of

__all__ = ["Enough", "Hooks", "copied", "digest_of", "install"]


def install(hooks: Hooks) -> None:
    """From now on everything is written down."""
    for watch in (watch_modules, watch_backward, watch_clipping, watch_recomputation, watch_optimizers, watch_schedulers,
                  watch_scalers, watch_wrapping, watch_saving, watch_losses, watch_loaders, watch_collectives):  # fmt: skip
        watch(hooks)
