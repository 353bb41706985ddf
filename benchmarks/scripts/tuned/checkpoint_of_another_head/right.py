"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build(classes):
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, classes))


torch.save(build(1000).state_dict(), "pretrained.pt")
model = build(10)
state = torch.load("pretrained.pt", map_location="cpu")
state = {k: v for k, v in state.items() if not k.startswith("2.")}
model.load_state_dict(state, strict=False)
model = model.cuda()

data = TensorDataset(torch.randn(48, 32), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
