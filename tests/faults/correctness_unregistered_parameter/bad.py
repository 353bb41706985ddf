import torch
import torch.nn as nn


class PatchEmbed(nn.Module):
    def __init__(self, img_size=32, patch=4, dim=64):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, patch, patch)
        n = (img_size // patch) ** 2
        self.pos_embed = torch.zeros(1, n + 1, dim, requires_grad=True)  # FAULT: unregistered-parameter
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.register_buffer("mean", torch.zeros(3), persistent=False)

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.size(0), -1, -1), x], dim=1)
        return x + self.pos_embed


net = PatchEmbed()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
noise = torch.zeros(1, 3, 32, 32, requires_grad=True)
print(net(noise).shape)
