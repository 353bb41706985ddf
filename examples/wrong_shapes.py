"""A training script that cannot run: the linear layer was made for another image size.

torchstone dryrun examples/wrong_shapes.py -- --batch-size 64
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16 * 8 * 8, 10)

    def forward(self, images):
        features = self.pool(torch.relu(self.conv(images)))
        return self.head(features.flatten(1))


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
options = parser.parse_args()
data = TensorDataset(torch.randn(100, 3, 32, 32), torch.randint(0, 10, (100,)))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(data, options.batch_size):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
