import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, d_in, d_out, layers=2):
        hidden = d_in * 2
        self.proj = nn.Linear(d_in, hidden)  # FAULT: module-used-before-init
        super(Encoder, self).__init__()
        self.out = nn.Linear(hidden, d_out)

    def forward(self, x):
        return self.out(torch.relu(self.proj(x)))


class Holder:
    def __init__(self, d):
        self.layer = nn.Linear(d, d)


print(Encoder(4, 2)(torch.randn(1, 4)), Holder(3).layer)
