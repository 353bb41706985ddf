"""backward() of a loss for each sample.

Mechanism: reduction="none" gives a vector; grad can be implicitly created only for scalar outputs
Expect: DR101 DR102
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


model = nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, y = torch.randn(16, 32).cuda(), torch.randint(0, 10, (16,)).cuda()
    losses = F.cross_entropy(model(x), y, reduction="none")
    hardest = losses.topk(8).values
    hardest.backward()
    optimizer.step()
    optimizer.zero_grad()
