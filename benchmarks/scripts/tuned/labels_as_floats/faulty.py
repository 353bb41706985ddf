"""Class numbers come as floats.

Mechanism: pandas and CSV readers give floats; cross_entropy takes class numbers as int64
Expect: DR101 DR105
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


model = nn.Linear(32, 10).cuda()

data = TensorDataset(torch.randn(48, 32), torch.randint(0, 10, (48,)).float())
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
