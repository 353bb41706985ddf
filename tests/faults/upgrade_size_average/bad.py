import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(784, 40)
        self.dec = nn.Linear(20, 784)

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(recon, x, size_average=False)  # FAULT: legacy-loss-reduction
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def report(values, size_average=True):
    return sum(values) / len(values) if size_average else sum(values)
