"""A decoder of latent attention blocks."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from attention import LatentAttention, LatentCache, RMSNorm


class Block(nn.Module):
    """Attention, then a gated feed-forward part."""

    def __init__(self, config):
        super().__init__()
        self.attention_norm = RMSNorm(config.width)
        self.attention = LatentAttention(config)
        self.feed_norm = RMSNorm(config.width)
        self.gate = nn.Linear(config.width, 2 * config.width, bias=False)
        self.up = nn.Linear(config.width, 2 * config.width, bias=False)
        self.down = nn.Linear(2 * config.width, config.width, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, positions, keep=None, cache=None):
        x = x + self.attention(self.attention_norm(x), positions, keep, cache)
        inner = self.feed_norm(x)
        return x + self.dropout(self.down(F.silu(self.gate(inner)) * self.up(inner)))


class LanguageModel(nn.Module):
    """Logits of the next token at every position."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def make_cache(self):
        return [LatentCache() for _ in self.blocks]

    def use_absorbed_form(self, absorb=True):
        for block in self.blocks:
            block.attention.absorb = absorb

    def forward(self, tokens, keep=None, cache=None):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embed(tokens)
        for index, block in enumerate(self.blocks):
            x = block(x, positions, keep, cache[index] if cache is not None else None)
        return self.head(self.norm(x))


@torch.no_grad()
def generate(model, tokens, count):
    """Greedy decoding with a cache."""
    cache = model.make_cache()
    logits = model(tokens, cache=cache)
    for _ in range(count):
        following = logits[:, -1:].argmax(-1)
        tokens = torch.cat((tokens, following), dim=1)
        logits = model(following, cache=cache)
    return tokens
