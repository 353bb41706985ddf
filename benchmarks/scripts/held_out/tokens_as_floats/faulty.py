"""Token numbers pass through a float tensor before the embedding.

Mechanism: padding with torch.zeros makes float tensors; embedding takes integers
Expect: DR101 DR105
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 32, padding_idx=0)
        self.out = nn.Linear(32, 10)

    def forward(self, tokens):
        return self.out(self.embed(tokens).mean(1))


def pad(sentences, length):
    padded = torch.zeros(len(sentences), length)
    for row, sentence in zip(padded, sentences):
        row[: len(sentence)] = torch.tensor(sentence)
    return padded


sentences = [list(range(1, 2 + n % 9)) for n in range(48)]
model = Classifier().cuda()

data = TensorDataset(pad(sentences, 12), torch.randint(0, 10, (48,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print(loss.item())
