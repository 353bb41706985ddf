"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


model = nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    losses = []
    for _ in range(2):
        x, y = torch.randn(16, 32).cuda(), torch.randint(0, 10, (16,)).cuda()
        losses.append(F.cross_entropy(model(x), y))
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
