import torch
import torch.nn as nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-8)
        return h.to(x.dtype) * self.weight


def cosine(a, b):
    a, b = a.float(), b.float()
    norm = a.norm(dim=-1) * b.norm(dim=-1)
    return (a * b).sum(-1) / (norm + 1e-8)


@torch.no_grad()
def rank(query, corpus, k=5):
    scores = cosine(query[None], corpus)
    return scores.topk(k).indices


if __name__ == "__main__":
    corpus = torch.randn(1000, 256)
    print(rank(torch.randn(256), corpus))
