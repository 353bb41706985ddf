"""Made-up sentences: counting up or down from a random start."""

import torch
from torch.utils.data import Dataset

PAD = 0


class Counting(Dataset):
    """Each item counts in steps of one or two."""

    def __init__(self, samples, vocabulary=40, longest=15, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(samples):
            start, step, length = (
                int(torch.randint(low, high, (1,), generator=generator))
                for low, high in ((1, vocabulary), (1, 3), (8, longest + 1))
            )
            self.items.append((start + step * torch.arange(length)) % (vocabulary - 1) + 1)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(items):
    """Pad to the longest; targets are the next tokens, -100 where there is none."""
    longest = max(len(item) for item in items)
    tokens = torch.full((len(items), longest), PAD)
    targets = torch.full((len(items), longest), -100)
    for row, item in enumerate(items):
        tokens[row, : len(item)] = item
        targets[row, : len(item) - 1] = item[1:]
    return tokens, targets
