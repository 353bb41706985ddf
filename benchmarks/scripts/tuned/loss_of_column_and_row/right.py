"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters())
data = TensorDataset(torch.randn(48, 8), torch.randn(48))
for x, y in DataLoader(data, batch_size=16):
    x, y = x.cuda(), y.cuda()
    loss = F.mse_loss(model(x).squeeze(-1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
