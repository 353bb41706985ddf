from __future__ import annotations

import torch

from .attention import LatentCache
from .data import PAD
from .model import LatentLM


def left_pad(prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack prompts so that they all end at the same place; padding has document -1."""
    width = max(len(p) for p in prompts)
    ids = torch.full((len(prompts), width), PAD)
    docs = torch.full((len(prompts), width), -1)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        docs[row, width - len(prompt) :] = 0
    return ids, docs


@torch.no_grad()
def generate(model: LatentLM, prompts: list[list[int]], new_tokens: int) -> torch.Tensor:
    """Greedy continuation of a batch of prompts, (batch, new_tokens)."""
    model.eval()
    device = next(model.parameters()).device
    ids, docs = (t.to(device) for t in left_pad(prompts))
    cache = LatentCache(model.cfg.n_layers)
    out = []
    for _ in range(new_tokens):
        logits = model(ids, docs, cache)
        ids = logits[:, -1:].argmax(dim=-1)
        docs = torch.cat([docs, docs.new_zeros(len(prompts), 1)], dim=1)
        out.append(ids)
    return torch.cat(out, dim=1)
