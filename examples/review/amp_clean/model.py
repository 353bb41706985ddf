"""An encoder with attention over events, and two heads."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    """Normalises by the root of the mean square."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        values = x.float()
        inverse = torch.rsqrt((values * values).mean(-1, keepdim=True) + self.eps)
        return (values * inverse * self.weight).to(x.dtype)


class Attention(nn.Module):
    """Multi-head attention that leaves padding out."""

    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.head_width = width // heads
        self.qkv = nn.Linear(width, 3 * width)
        self.q_norm = RMSNorm(self.head_width)
        self.k_norm = RMSNorm(self.head_width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, keep):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        shape = (batch, length, self.heads, self.head_width)
        q, k, v = (item.view(shape).transpose(1, 2) for item in (q, k, v))
        q, k = self.q_norm(q), self.k_norm(k)
        with torch.autocast(x.device.type, enabled=False):
            scores = q.float() @ k.float().transpose(-2, -1) / math.sqrt(self.head_width)
            scores = scores.masked_fill(~keep[:, None, None, :], torch.finfo(scores.dtype).min)
            weights = scores.softmax(dim=-1).to(v.dtype)
            mixed = self.dropout(weights) @ v
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed)


class Block(nn.Module):
    """Attention and a feed-forward part, each after a norm."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attention_norm = RMSNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.feed_norm = RMSNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * width, width)
        )

    def forward(self, x, keep):
        x = x + self.attention(self.attention_norm(x), keep)
        return x + self.feed(self.feed_norm(x))


class Classifier(nn.Module):
    """The class of a sequence, and the mean amount of its events."""

    def __init__(self, vocabulary=32, classes=4, width=32, heads=4, depth=2, dropout=0.1):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.norm = RMSNorm(width)
        self.classify = nn.Linear(width, classes)
        self.amount = nn.Linear(width, 1)

    def forward(self, tokens, keep):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, keep)
        x = self.norm(x)
        count = keep.sum(1, keepdim=True).clamp(min=1)
        pooled = (x.float() * keep[..., None]).sum(1) / count
        return self.classify(pooled), self.amount(pooled).squeeze(-1)


def spread_of(amounts):
    """How far the amounts of a data set lie apart."""
    return amounts.float().std() + 1e-5


def total_loss(outputs, labels, amounts, spread):
    """Cross entropy plus a tenth of the amount loss."""
    logits, predicted = outputs
    return F.cross_entropy(logits.float(), labels) + 0.1 * F.mse_loss(
        predicted.float() / spread, amounts / spread
    )
