"""A decoder whose feed-forward parts are routed experts."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from experts import ExpertLayer


class Attention(nn.Module):
    """Causal attention."""

    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and routed experts, each after a norm."""

    def __init__(self, config):
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.expert_norm = nn.LayerNorm(config.width)
        self.experts = ExpertLayer(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        mixed, losses = self.experts(self.expert_norm(x))
        return x + self.dropout(mixed), losses


class LanguageModel(nn.Module):
    """Logits of the next token, and the losses of all routers."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.place = nn.Embedding(config.longest, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        balance = size = 0.0
        for block in self.blocks:
            x, (layer_balance, layer_size) = block(x)
            balance = balance + layer_balance
            size = size + layer_size
        extra = self.config.balance_weight * balance
        return self.head(self.norm(x)), extra / len(self.blocks)
