import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        return x + self.mlp(self.ln(x))


class GPT(nn.Module):
    def __init__(self, vocab, dim, depth):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        heads = [nn.LayerNorm(dim)]
        heads.append(nn.Linear(dim, vocab))
        self.head = nn.Sequential(*heads)
        self.depths = [i for i in range(depth)]

    def forward(self, idx):
        x = self.wte(idx)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = GPT(256, 64, 4)
print(sum(p.numel() for p in model.parameters()), model(torch.zeros(1, 4, dtype=torch.long)).shape)
