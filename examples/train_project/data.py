"""Images made on the fly, with augmentation."""

import numpy as np
import torch
from torch.utils.data import Dataset

RNG = np.random.default_rng(0)


class Shapes(Dataset):
    """Squares and discs of random colour; every tenth image is damaged."""

    def __init__(self, length=10_000, size=64):
        self.length = length
        self.size = size

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        # every worker holds a copy of the same generator: all of them draw the same numbers
        noise = RNG.normal(0, 0.1, (3, self.size, self.size))
        image = torch.from_numpy(noise).float()
        label = index % 2
        side = int(RNG.integers(8, self.size // 2))
        image[:, :side, :side] += 1.0 if label else -1.0
        return image, label, float(index % 10 == 0)
