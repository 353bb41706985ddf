"""Hidden states go down to a small latent, are normalised, and come up as keys."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """rms_norm(x @ down) * scale @ up, as latent attention makes its keys."""

    def forward(self, x: Tensor, down: Tensor, scale: Tensor, up: Tensor) -> Tensor:
        latent = x @ down
        latent = latent * torch.rsqrt(latent.square().mean(dim=-1, keepdim=True) + 1e-6)
        return (latent * scale) @ up


def get_inputs() -> list[Tensor]:
    width, latent, outputs = 28, 16, 20
    down, up = torch.randn(width, latent) / width**0.5, torch.randn(latent, outputs) / latent**0.5
    return [torch.randn(17, width), down, torch.randn(latent), up]


def get_init_inputs() -> list[object]:
    return []
