from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

from .config import ModelConfig
from .parallel import SeqParallel, gather_sequence


def apply_rope(x: torch.Tensor, positions: torch.Tensor, base: float) -> torch.Tensor:
    """Rotate ``x`` (batch, time, heads, dim) by its absolute positions."""
    half = x.shape[-1] // 2
    inv_freq = base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = positions.to(x.dtype)[:, None] * inv_freq.to(x.dtype)
    cos = angles.cos()[None, :, None, :].to(x.dtype)
    sin = angles.sin()[None, :, None, :].to(x.dtype)
    x1, x2 = x[..., :half], x[..., half:]
    return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)


def build_mask(q_docs: torch.Tensor, k_docs: torch.Tensor, q_start: int) -> torch.Tensor:
    """True where a query may look at a key: not later, and in the same document.

    ``q_docs`` (batch, tq) and ``k_docs`` (batch, tk) hold document numbers;
    -1 marks prompt padding. ``q_start`` is the place of the first query among
    the keys.
    """
    tq, tk = q_docs.shape[1], k_docs.shape[1]
    q_pos = torch.arange(tq, device=q_docs.device) + q_start
    k_pos = torch.arange(tk, device=k_docs.device)
    causal = k_pos[None, :] <= q_pos[:, None]
    same_doc = q_docs[:, :, None] == k_docs[:, None, :]
    real = (k_docs >= 0)[:, None, :]
    allowed = causal[None] & same_doc & real
    return allowed


class LatentCache:
    """Per layer: the compressed latent and the rotated shared key of each token."""

    def __init__(self, n_layers: int) -> None:
        self.latent: list[Optional[torch.Tensor]] = [None] * n_layers
        self.key: list[Optional[torch.Tensor]] = [None] * n_layers

    def __len__(self) -> int:
        return 0 if self.latent[0] is None else self.latent[0].shape[1]

    def append(self, layer: int, latent: torch.Tensor, key: torch.Tensor):
        if self.latent[layer] is not None:
            latent = torch.cat([self.latent[layer], latent], dim=1)
            key = torch.cat([self.key[layer], key], dim=1)
        self.latent[layer], self.key[layer] = latent, key
        return latent, key


class LatentAttention(nn.Module):
    def __init__(self, cfg: ModelConfig, layer: int) -> None:
        super().__init__()
        self.cfg, self.layer = cfg, layer
        h = cfg.n_heads
        self.q_down = nn.Linear(cfg.d_model, cfg.q_rank, bias=False)
        self.q_norm = nn.RMSNorm(cfg.q_rank)
        self.q_up = nn.Linear(cfg.q_rank, h * cfg.d_qk, bias=False)
        self.kv_down = nn.Linear(cfg.d_model, cfg.kv_rank + cfg.d_rope, bias=False)
        self.kv_norm = nn.RMSNorm(cfg.kv_rank)
        self.kv_up = nn.Linear(cfg.kv_rank, h * (cfg.d_nope + cfg.d_v), bias=False)
        self.out = nn.Linear(h * cfg.d_v, cfg.d_model, bias=False)
        self.scale = cfg.d_nope**-0.5

    def forward(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor,
        cache: Optional[LatentCache] = None,
        sp: Optional[SeqParallel] = None,
    ) -> torch.Tensor:
        cfg, (b, t, _) = self.cfg, x.shape
        q = self.q_up(self.q_norm(self.q_down(x))).view(b, t, cfg.n_heads, cfg.d_qk)
        q_nope, q_rope = q.split([cfg.d_nope, cfg.d_rope], dim=-1)
        q_rope = apply_rope(q_rope, positions, cfg.rope_base)

        latent, k_rope = self.kv_down(x).split([cfg.kv_rank, cfg.d_rope], dim=-1)
        k_rope = apply_rope(k_rope.unsqueeze(2), positions, cfg.rope_base).squeeze(2)
        # only the small latent travels between ranks, heads are expanded locally
        latent, k_rope = gather_sequence(latent, sp), gather_sequence(k_rope, sp)
        if cache is not None:
            latent, k_rope = cache.append(self.layer, self.kv_norm(latent), k_rope)

        kv = self.kv_up(self.kv_norm(latent)).view(b, -1, cfg.n_heads, cfg.d_nope + cfg.d_v)
        k_nope, v = kv.split([cfg.d_nope, cfg.d_v], dim=-1)
        k_rope = k_rope.unsqueeze(2).expand(-1, -1, cfg.n_heads, -1)

        q = torch.cat([q_nope, q_rope], dim=-1)
        k = torch.cat([k_rope, k_nope], dim=-1)
        scores = torch.einsum("bthd,bshd->bhts", q, k) * self.scale
        scores = scores.masked_fill(~mask, float("-inf"))
        attn = torch.softmax(scores, dim=-1).to(v.dtype)
        attn = F.dropout(attn, p=cfg.dropout, training=self.training)
        mixed = torch.einsum("bhts,bshd->bthd", attn, v)
        return self.out(mixed.reshape(b, t, cfg.n_heads * cfg.d_v))
