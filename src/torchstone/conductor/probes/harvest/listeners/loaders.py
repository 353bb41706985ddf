"""Data loaders, samplers and wrappers of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from torchstone.conductor.probes.harvest.listeners.state import (
    MOST_BATCHES,
    Hooks,
)
from torchstone.conductor.probes.harvest.listeners.values import (
    digest_of,
)
from torchstone.conductor.probes.harvest.recording import (
    LoaderPass,
)


def watch_wrapping(hooks: Hooks) -> None:
    kind: Any = torch.nn.parallel.DistributedDataParallel
    init = kind.__init__

    def recorded_init(wrapper: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        hooks.run.note_data_parallel()
        kwargs.pop("device_ids", None)
        kwargs.pop("output_device", None)
        init(wrapper, module, *args, **kwargs)

    kind.__init__ = recorded_init


def watch_loaders(hooks: Hooks) -> None:
    kind: Any = torch.utils.data.DataLoader
    init, iterate = kind.__init__, kind.__iter__

    def recorded_init(loader: Any, *args: Any, **kwargs: Any) -> None:
        for name in ("num_workers", "persistent_workers", "prefetch_factor", "pin_memory",
                     "pin_memory_device", "multiprocessing_context"):  # fmt: skip
            kwargs.pop(name, None)
        init(loader, *args[:5], **kwargs)
        hooks.made[id(loader)] = hooks.where.own(2)

    sampler: Any = torch.utils.data.distributed.DistributedSampler
    sampler_init = sampler.__init__

    def recorded_sampler_init(made: Any, *args: Any, **kwargs: Any) -> None:
        sampler_init(made, *args, **kwargs)
        hooks.made[id(made)] = hooks.where.own(2)

    sampler.__init__ = recorded_sampler_init

    def recorded_iter(loader: Any) -> Iterator[Any]:
        if not hooks.quiet:
            _note_pass(hooks, loader)
        for count, batch in enumerate(iterate(loader)):
            if count >= MOST_BATCHES:
                return
            if count == 0 and not hooks.quiet:
                place = hooks.made.get(id(loader.sampler)) or hooks.made.get(id(loader))
                hooks.run.batches.append((place or hooks.where.own(2), digest_of(batch)))
            hooks.check_time()
            yield batch

    kind.__init__, kind.__iter__ = recorded_init, recorded_iter


def _note_pass(hooks: Hooks, loader: Any) -> None:
    sampler = loader.sampler
    again = hooks.passes.get(id(loader), 0)
    hooks.passes[id(loader)] = again + 1
    distributed = isinstance(sampler, torch.utils.data.distributed.DistributedSampler)
    order: tuple[int, ...] = ()
    if distributed:
        order = tuple(item for item, _ in zip(sampler, range(16), strict=False))
    hooks.note(LoaderPass(
        hooks.where.own(3), hooks.run.steps, id(loader), id(sampler), order, distributed,
        bool(getattr(sampler, "shuffle", False)), again,
    ))  # fmt: skip
