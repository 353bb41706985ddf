"""Synthetic event sequences of different lengths."""

import torch
from torch.utils.data import Dataset

PAD = 0


class Events(Dataset):
    """The class of a sequence is the kind of event that it holds most often."""

    def __init__(self, samples, vocabulary=32, classes=4, longest=16, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(samples):
            length = int(torch.randint(5, longest + 1, (1,), generator=generator))
            events = torch.randint(1, vocabulary, (length,), generator=generator)
            label = int(torch.bincount(events % classes, minlength=classes).argmax())
            amount = events.float().mean() / vocabulary
            self.items.append((events, label, amount))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(batch):
    """Pad a batch to its longest sequence."""
    longest = max(len(events) for events, _, _ in batch)
    tokens = torch.full((len(batch), longest), PAD)
    for row, (events, _, _) in enumerate(batch):
        tokens[row, : len(events)] = events
    labels = torch.tensor([label for _, label, _ in batch])
    amounts = torch.stack([amount for _, _, amount in batch])
    return tokens, tokens != PAD, labels, amounts
