import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        h = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)
        return (h * self.weight).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        if dim % heads:
            raise ValueError("dim must be a multiple of heads")
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        drop = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=drop)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)
        self.attn = Attention(dim, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * dim, dim)
        )

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        with torch.autocast(x.device.type, enabled=False):
            y = self.mlp(self.norm2(x).float())
        return x + y.to(x.dtype)


class FrameNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.patch, self.remat = cfg["patch"], cfg["remat"]
        tokens = (cfg["size"] // cfg["patch"]) ** 2
        self.embed = nn.Linear(cfg["patch"] ** 2, cfg["dim"])
        self.pos = nn.Parameter(0.02 * torch.randn(tokens, cfg["dim"]))
        self.blocks = nn.ModuleList(
            Block(cfg["dim"], cfg["heads"], cfg["dropout"]) for _ in range(cfg["depth"])
        )
        self.norm = RMSNorm(cfg["dim"])
        self.head = nn.Linear(cfg["dim"], cfg["classes"])

    def forward(self, x):
        b, p = len(x), self.patch
        x = x.unfold(1, p, p).unfold(2, p, p).reshape(b, -1, p * p)
        x = self.embed(x)
        x = x + self.pos.to(x.dtype)
        for block in self.blocks:
            if self.remat and self.training:
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x)
        return self.head(self.norm(x).mean(1))
