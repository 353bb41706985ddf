"""More samples of training-loader-in-order."""

GOOD = (
    """\
import torch
from torch.utils.data import DataLoader, IterableDataset

class Stream(IterableDataset):
    def __iter__(self):
        yield 1

def main(model, opt):
    train_loader = DataLoader(Stream(), batch_size=32, num_workers=4)
    for x, y in train_loader:
        opt.zero_grad()
        model(x, y).backward()
        opt.step()
""",
    """\
import torch
from torch.utils.data import DataLoader

def main(data, model):
    loader = DataLoader(data, batch_size=32, num_workers=4)
    for x in loader:
        print(model(x))
""",
)
