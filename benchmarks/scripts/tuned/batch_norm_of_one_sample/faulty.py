"""The last batch holds one sample, and batch norm in training needs two.

Mechanism: N mod batch size = 1 with BatchNorm1d: `Expected more than 1 value per channel when training`
Expect: DR106
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.norm = nn.BatchNorm1d(64)
        self.last = nn.Linear(64, 10)

    def forward(self, x):
        x = x.flatten(1)
        return self.last(F.relu(self.norm(self.first(x))))


model = Net().cuda()

data = TensorDataset(torch.randn(97, 32), torch.randint(0, 10, (97,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
