import torch
import torch.nn as nn


class UNetUp(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.up = nn.ConvTranspose2d(cin, cout, 2, stride=2)
        self.block = self._make(cout * 2, cout)

    def _make(self, cin, cout):
        return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(inplace=True))

    def forward(self, x, skip):
        x = self.up(x)
        skip = nn.Conv2d(skip.shape[1], x.shape[1], 1)(skip)  # FAULT: layer-made-in-forward
        x = nn.functional.pad(x, (0, skip.shape[-1] - x.shape[-1], 0, 0))
        x = nn.ReLU()(x)
        return self.block(torch.cat([x, skip], dim=1))


if __name__ == "__main__":
    net = UNetUp(64, 32)
    print(net(torch.randn(1, 64, 8, 8), torch.randn(1, 32, 16, 16)).shape)
