"""The decoder's map is one pixel smaller than the encoder's.

Mechanism: a U-Net halves 45 to 22 and doubles it to 44: torch.cat refuses the skip connection
Expect: DR101
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.inner = nn.Conv2d(8, 8, 3, padding=1)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        skip = F.relu(self.down(x))
        x = F.relu(self.inner(F.max_pool2d(skip, 2)))
        x = F.interpolate(x, scale_factor=2)
        return self.out(torch.cat([x, skip], dim=1))


model = UNet().cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    images = torch.randn(4, 3, 45, 45).cuda()
    masks = torch.randint(0, 2, (4, 45, 45)).cuda()
    loss = F.cross_entropy(model(images), masks)
    loss.backward()
    optimizer.step()
