"""Points of a noisy function."""

import torch
from torch.utils.data import Dataset


class Points(Dataset):
    """Inputs of eight features and the value of a fixed function."""

    def __init__(self, samples, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.inputs = torch.randn(samples, 8, generator=generator)
        noise = 0.1 * torch.randn(samples, generator=generator)
        self.values = self.inputs.sin().sum(1) + noise

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.inputs[index], self.values[index]
