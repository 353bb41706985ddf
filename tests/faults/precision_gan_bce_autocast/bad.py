import torch
import torch.nn as nn
from torch.amp import autocast, GradScaler

nz, ngf = 100, 64


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, 64, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.main(x).view(-1)


criterion = nn.BCELoss()


def train(netG, dataloader, epochs):
    netD = Discriminator().cuda()
    optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    scaler = GradScaler("cuda")
    for epoch in range(epochs):
        for i, (real, _) in enumerate(dataloader):
            real = real.cuda(non_blocking=True)
            b = real.size(0)
            noise = torch.randn(b, nz, 1, 1, device="cuda")
            fake = netG(noise)
            ones = torch.ones(b, device="cuda")
            zeros = torch.zeros(b, device="cuda")

            netD.zero_grad()
            with autocast("cuda"):
                scores = netD(torch.cat([real, fake.detach()]))
                errD = criterion(scores, torch.cat([ones, zeros]))  # FAULT: bce-under-autocast
            scaler.scale(errD).backward()
            scaler.step(optD)

            netG.zero_grad()
            with autocast("cuda"):
                errG = -netD(fake).mean()
            scaler.scale(errG).backward()
            scaler.step(optG)
            scaler.update()
            if i % 50 == 0:
                print(f"[{epoch}/{epochs}][{i}] D {errD.item():.4f} G {errG.item():.4f}")
