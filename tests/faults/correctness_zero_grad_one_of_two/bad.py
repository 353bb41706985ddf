import torch
import torch.nn as nn


class WGAN:
    def __init__(self, G, D, lr=5e-5, clip=0.01, n_critic=5):
        self.G, self.D = G, D
        self.opt_g = torch.optim.RMSprop(G.parameters(), lr=lr)
        self.opt_d = torch.optim.RMSprop(D.parameters(), lr=lr)
        self.clip, self.n_critic = clip, n_critic

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for i, real in enumerate(loader):
                z = torch.randn(real.size(0), 64)
                loss_d = self.D(self.G(z).detach()).mean() - self.D(real).mean()
                loss_d.backward()
                self.opt_d.step()  # FAULT: missing-zero-grad
                with torch.no_grad():
                    for p in self.D.parameters():
                        p.clamp_(-self.clip, self.clip)
                if i % self.n_critic == 0:
                    for p in self.D.parameters():
                        p.requires_grad_(False)
                    self.opt_g.zero_grad()
                    loss_g = -self.D(self.G(z)).mean()
                    loss_g.backward()
                    self.opt_g.step()
                    for p in self.D.parameters():
                        p.requires_grad_(True)


if __name__ == "__main__":
    G = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))
    D = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 1))
    WGAN(G, D).fit([torch.randn(16, 2)], 1)
