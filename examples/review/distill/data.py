"""Made-up pictures of ten kinds: bars and crosses at different places, with noise."""

import torch
from torch.utils.data import Dataset


def make_pictures(count, size=12, seed=0):
    """Pictures with one channel, and the kind of each."""
    generator = torch.Generator().manual_seed(seed)
    kinds = torch.randint(10, (count,), generator=generator)
    pictures = 0.3 * torch.randn(count, 1, size, size, generator=generator)
    for place, kind in enumerate(kinds.tolist()):
        line = 1 + kind % 5 * 2
        if kind < 5:
            pictures[place, 0, line] += 1
        else:
            pictures[place, 0, :, line] += 1
    return pictures, kinds


class Pictures(Dataset):
    """Pictures of zero mean; those for training are shifted by up to one pixel."""

    def __init__(self, pictures, kinds, mean, shift=False, seed=0):
        self.pictures, self.kinds, self.mean, self.shift = pictures, kinds, mean, shift
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        picture = self.pictures[index].sub_(self.mean)
        if self.shift:
            moved = int(torch.randint(-1, 2, (), generator=self.generator))
            picture = picture.roll(moved, dims=-1)
        return picture, self.kinds[index]
