from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

from .attention import LatentAttention, LatentCache, build_mask
from .config import ModelConfig
from .parallel import SeqParallel


class Block(nn.Module):
    def __init__(self, cfg: ModelConfig, layer: int) -> None:
        super().__init__()
        self.attn_norm = nn.RMSNorm(cfg.d_model)
        self.attn = LatentAttention(cfg, layer)
        self.ff_norm = nn.RMSNorm(cfg.d_model)
        self.ff_in = nn.Linear(cfg.d_model, 2 * cfg.d_ff, bias=False)
        self.ff_out = nn.Linear(cfg.d_ff, cfg.d_model, bias=False)

    def forward(self, x, positions, mask, cache=None, sp=None):
        x = x + self.attn(self.attn_norm(x), positions, mask, cache, sp)
        gate, up = self.ff_in(self.ff_norm(x)).chunk(2, dim=-1)
        return x + self.ff_out(F.silu(gate) * up)


class LatentLM(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.blocks = nn.ModuleList(Block(cfg, i) for i in range(cfg.n_layers))
        self.norm = nn.RMSNorm(cfg.d_model)
        self.head = nn.Linear(cfg.d_model, cfg.vocab_size, bias=False)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(
        self,
        ids: torch.Tensor,
        docs: Optional[torch.Tensor] = None,
        cache: Optional[LatentCache] = None,
        sp: Optional[SeqParallel] = None,
    ) -> torch.Tensor:
        """Next-token logits for ``ids`` (batch, time).

        ``docs`` numbers the documents of all keys: the cached ones and, with
        sequence parallelism, the ones held by the other ranks too.
        """
        b, t = ids.shape
        past = 0 if cache is None else len(cache)
        start = past if sp is None else past + sp.rank * t
        total = past + t * (1 if sp is None else sp.size)
        if docs is None:
            docs = torch.zeros(b, total, dtype=torch.long, device=ids.device)
        docs = docs[:, :total]
        positions = torch.arange(start, start + t, device=ids.device)
        mask = build_mask(docs[:, start : start + t], docs, q_start=start)

        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, positions, mask, cache, sp)
        return self.head(self.norm(x))
