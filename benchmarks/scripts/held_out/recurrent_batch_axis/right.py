"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.out = nn.Linear(24, 10)

    def forward(self, x):
        state = torch.zeros(2, x.size(0), 24, device=x.device)
        hidden, _ = self.rnn(x, (state, state))
        return self.out(hidden[:, -1])


model = Tagger().cuda()

data = TensorDataset(torch.randn(48, 7, 16), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
