"""The gate is scaled in place after sigmoid, whose backward needs its result.

Mechanism: autograd saves the result of sigmoid; an in-place write changes its version
Expect: DR103
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Linear(32, 10)
        self.gate = nn.Linear(32, 10)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        gate *= 0.5
        return self.value(x) * gate


model = Gated().cuda()

data = TensorDataset(torch.randn(48, 32), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
