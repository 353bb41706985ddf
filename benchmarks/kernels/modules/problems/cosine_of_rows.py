"""The cosine between two rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.cosine_similarity(a, b, dim=-1)


def get_inputs() -> list[object]:
    return [torch.randn(18, 27), torch.randn(18, 27)]


def get_init_inputs() -> list[object]:
    return []
