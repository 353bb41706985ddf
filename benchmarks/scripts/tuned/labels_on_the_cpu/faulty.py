"""Evaluation forgets to move the labels.

Mechanism: the training loop moves both, the evaluation only the images
Expect: DR104
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


model = nn.Linear(32, 10).cuda()

data = TensorDataset(torch.randn(48, 32), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())

model.eval()
with torch.no_grad():
    for x, y in loader:
        pass
        right = (model(x.cuda()).argmax(1) == y).sum()
