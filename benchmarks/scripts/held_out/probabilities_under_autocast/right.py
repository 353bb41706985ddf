"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


model = nn.Linear(32, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, y = torch.randn(16, 32).cuda(), torch.rand(16).round().cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(x).squeeze(-1)
        loss = F.binary_cross_entropy_with_logits(out, y)
    loss.backward()
    optimizer.step()
