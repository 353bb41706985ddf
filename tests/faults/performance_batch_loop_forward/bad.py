import torch
import torch.nn as nn


class PairScorer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bilinear = nn.Parameter(torch.randn(dim, dim) * 0.02)
        self.stages = nn.ModuleList(nn.Linear(dim, dim) for _ in range(3))

    def forward(self, a, b):
        for stage in self.stages:
            a = torch.relu(stage(a))
        out = []
        for i in range(a.size(0)):  # FAULT: batch-loop-in-forward
            out.append(a[i] @ self.bilinear @ b[i])
        return torch.stack(out)


if __name__ == "__main__":
    net = PairScorer(16)
    for i in range(4):
        print(net(torch.randn(8, 16), torch.randn(8, 16)).shape, i)
