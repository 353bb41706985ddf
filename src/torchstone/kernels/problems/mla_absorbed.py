"""Attention over latents: the key projection is absorbed into the query."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """softmax((q @ up_k) c' / sqrt(d)) c @ up_v per head, where c is the cached latent.

    q is (head, query, d), up_k is (head, d, latent), c is (position, latent), up_v is
    (head, latent, d).
    """

    def forward(self, q: Tensor, up_k: Tensor, c: Tensor, up_v: Tensor) -> Tensor:
        scores = (q @ up_k) @ c.T / math.sqrt(q.shape[-1])
        return (scores.softmax(dim=-1) @ c) @ up_v


def get_inputs() -> list[Tensor]:
    heads, queries, width, latent, positions = 3, 9, 12, 16, 29
    q = torch.randn(heads, queries, width) * 2
    up_k = torch.randn(heads, width, latent) / latent**0.5
    return [q, up_k, torch.randn(positions, latent), torch.randn(heads, latent, width)]


def get_init_inputs() -> list[object]:
    return []
