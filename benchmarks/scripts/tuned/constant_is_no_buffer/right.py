"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 10)
        self.register_buffer("mean", torch.zeros(32))

    def forward(self, x):
        return self.layer(x - self.mean)


model = Net().cuda()

data = TensorDataset(torch.randn(48, 32), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
