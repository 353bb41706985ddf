"""The losses are collected as numbers and made a tensor again.

Mechanism: torch.tensor(list of .item()) has no graph: element 0 of tensors does not require grad
Expect: DR101 DR102
"""

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
        losses.append(F.cross_entropy(model(x), y).item())
    loss = torch.tensor(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
