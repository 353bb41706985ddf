"""The hidden state of one batch is used in the next without detach.

Mechanism: truncated back-propagation through time: the graph of the first batch is freed by its backward
Expect: DR101 DR102
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


cell = nn.RNNCell(8, 16).cuda()
head = nn.Linear(16, 1).cuda()
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
state = torch.zeros(4, 16).cuda()
for _ in range(3):
    x = torch.randn(4, 8).cuda()
    state = cell(x, state)
    loss = head(state).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
