"""Targets come from numpy as float64 and widen the loss.

Mechanism: numpy's default number format is float64, and torch promotes
Expect: DR202
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters())
data = TensorDataset(torch.randn(48, 8), torch.randn(48))
for x, y in DataLoader(data, batch_size=16):
    x, y = x.cuda(), y.cuda()
    target = torch.from_numpy(np.linspace(0, 1, len(y))).cuda()
    loss = (model(x).squeeze(-1) - target).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
