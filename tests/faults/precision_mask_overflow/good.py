import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        att = att.float().masked_fill(mask == 0, -1e9)
        att = F.softmax(att, dim=-1, dtype=torch.float32).to(v.dtype)
        y = (att @ v).transpose(1, 2).reshape(b, t, c)
        return self.proj(y)


def main():
    net = Attention(64, 4).eval()
    bias = torch.zeros(8, 8).masked_fill(torch.ones(8, 8).triu(1).bool(), -1e30)
    mask = torch.ones(8, 8).tril()
    with torch.inference_mode():
        print(net(torch.randn(2, 8, 64), mask).shape, bias.shape)


main()
