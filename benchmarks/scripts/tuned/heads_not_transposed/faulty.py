"""Keys are not transposed before the product with queries.

Mechanism: q @ k instead of q @ k.transpose: the product needs the head size on both sides
Expect: DR101
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, dim=-1))
        weights = (q @ k / 8 ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c).mean(1))


model = Attention().cuda()

data = TensorDataset(torch.randn(48, 12, 32), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
