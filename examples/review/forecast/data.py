"""Made-up hourly loads of many meters, with gaps, and the windows that a forecaster sees."""

import math

import torch
from torch.utils.data import Dataset


def make_loads(meters, hours, seed=0):
    """A daily and a weekly rhythm, a slow drift and noise; and where a meter reported."""
    generator = torch.Generator().manual_seed(seed)
    hour = torch.arange(hours, dtype=torch.float32)
    level = 2 + 3 * torch.rand(meters, 1, generator=generator)
    phase = 2 * math.pi * torch.rand(meters, 1, generator=generator)
    day = torch.sin(2 * math.pi * hour / 24 + phase)
    week = 0.5 * torch.cos(2 * math.pi * hour / 168 + phase)
    noise = 0.2 * torch.randn(meters, hours, generator=generator)
    loads = level * (1 + 0.002 * hour) + day + week + noise
    seen = torch.rand(meters, hours, generator=generator) > 0.1
    return loads * seen, seen


class Scaler:
    """Zero mean and unit spread, by the hours that were reported."""

    def __init__(self, loads, seen):
        kept = loads[seen]
        self.mean, self.spread = kept.mean(), kept.std()

    def scale(self, loads, seen):
        return (loads - self.mean) / self.spread * seen


class Windows(Dataset):
    """Past hours and the hours to come, which all lie between `first` and `last`."""

    def __init__(self, loads, seen, first, last, past=48, ahead=12):
        self.loads, self.seen, self.past, self.ahead = loads, seen, past, ahead
        starts = range(first, last - past - ahead + 1, ahead)
        self.places = [(meter, start) for meter in range(len(loads)) for start in starts]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        meter, start = self.places[index]
        middle, end = start + self.past, start + self.past + self.ahead
        return (
            self.loads[meter, start:middle],
            self.seen[meter, start:middle].float(),
            self.loads[meter, middle:end],
            self.seen[meter, middle:end].float(),
        )
