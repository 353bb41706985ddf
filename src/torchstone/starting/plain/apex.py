"""Mixed precision and fused layers with the interface of apex: full precision, and torch's own layers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


class amp:  # noqa: N801  the names of modules of the package
    """`apex.amp`."""

    @staticmethod
    def initialize(models: Any, optimizers: Any = None, *args: Any, **kwargs: Any) -> Any:
        return models if optimizers is None else (models, optimizers)

    @staticmethod
    @contextlib.contextmanager
    def scale_loss(loss: Any, optimizers: Any, **kwargs: Any) -> Iterator[Any]:
        yield loss

    @staticmethod
    def master_params(optimizer: Any) -> Iterator[Any]:
        for group in optimizer.param_groups:
            yield from group["params"]

    @staticmethod
    def state_dict() -> dict[str, Any]:
        return {}

    @staticmethod
    def load_state_dict(state: Any) -> None:
        pass


class parallel:  # noqa: N801
    """`apex.parallel`."""

    DistributedDataParallel = nn.parallel.DistributedDataParallel
    SyncBatchNorm = nn.SyncBatchNorm
    convert_syncbn_model = staticmethod(lambda module, *_, **__: module)


class optimizers:  # noqa: N801
    """`apex.optimizers`."""

    FusedAdam, FusedSGD, FusedAdagrad = torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad
    FusedLAMB = torch.optim.AdamW


class normalization:  # noqa: N801
    """`apex.normalization`."""

    FusedLayerNorm = MixedFusedLayerNorm = nn.LayerNorm
    FusedRMSNorm = nn.RMSNorm
