"""Multi-head attention over a low-rank latent."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from rotary import angles, rotate


class RMSNorm(nn.Module):
    """Normalises by the root of the mean square, in float32."""

    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        values = x.float()
        values = values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + self.eps)
        return (values * self.weight.float()).to(x.dtype)


class LatentCache:
    """Latents and rotary keys of the tokens so far, for one layer."""

    def __init__(self):
        self.latent = None
        self.rope = None

    @property
    def length(self):
        return 0 if self.latent is None else self.latent.shape[1]

    def append(self, latent, rope):
        if self.latent is not None:
            latent = torch.cat((self.latent, latent), dim=1)
            rope = torch.cat((self.rope, rope), dim=2)
        self.latent, self.rope = latent, rope
        return latent, rope


class LatentAttention(nn.Module):
    """Queries of two parts: one meets the up-projected latent, one the shared rotary key."""

    def __init__(self, config, absorb=False):
        super().__init__()
        self.heads = config.heads
        self.nope_width = config.nope_width
        self.rope_width = config.rope_width
        self.value_width = config.value_width
        self.rank = config.rank
        self.absorb = absorb
        self.dropout = config.dropout
        self.scale = (self.nope_width + self.rope_width) ** -0.5
        self.query = nn.Linear(config.width, self.heads * (self.nope_width + self.rope_width), bias=False)
        self.down = nn.Linear(config.width, self.rank + self.rope_width, bias=False)
        self.norm = RMSNorm(self.rank)
        self.key_up = nn.Parameter(torch.randn(self.heads, self.rank, self.nope_width) * 0.2)
        self.value_up = nn.Parameter(torch.randn(self.heads, self.rank, self.value_width) * 0.2)
        self.out = nn.Linear(self.heads * self.value_width, config.width, bias=False)

    def forward(self, x, positions, keep=None, cache=None):
        batch, length, _ = x.shape
        cosine, sine = angles(positions, self.rope_width)
        query = self.query(x).view(batch, length, self.heads, -1).transpose(1, 2)
        q_nope, q_rope = query.split((self.nope_width, self.rope_width), dim=-1)
        q_rope = rotate(q_rope, cosine, sine)
        latent, k_rope = self.down(x).split((self.rank, self.rope_width), dim=-1)
        latent = self.norm(latent)
        k_rope = rotate(k_rope[:, None], cosine, sine)
        if cache is not None:
            latent, k_rope = cache.append(latent, k_rope)
        if self.absorb:
            meets = q_nope @ self.key_up.transpose(-1, -2)
            scores = meets @ latent[:, None].transpose(-1, -2)
        else:
            keys = latent[:, None] @ self.key_up
            scores = q_nope @ keys.transpose(-1, -2)
        scores = (scores + q_rope @ k_rope.transpose(-1, -2)) * self.scale
        weights = self.weights(scores, positions, keep)
        if self.absorb:
            mixed = (weights @ latent[:, None]) @ self.value_up
        else:
            mixed = weights @ (latent[:, None] @ self.value_up)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))

    def weights(self, scores, positions, keep):
        """Softmax over the tokens that a query may see."""
        seen = torch.arange(scores.shape[-1], device=scores.device)
        hidden = seen[None, :] > positions[:, None]
        if keep is not None:
            hidden = hidden | ~keep[:, None, None, :]
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1, dtype=torch.float32).to(scores.dtype)
        return F.dropout(weights, self.dropout, training=self.training)
