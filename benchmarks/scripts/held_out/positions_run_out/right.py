"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, max_len=60):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.positions = nn.Parameter(torch.zeros(max_len, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(32, 10)

    def forward(self, tokens):
        x = self.embed(tokens) + self.positions[: tokens.size(1)]
        return self.out(self.encoder(x).mean(1))


model = Encoder().cuda()

data = TensorDataset(torch.randint(0, 100, (48, 60)), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
