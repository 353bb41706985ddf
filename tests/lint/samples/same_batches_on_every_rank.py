"""More samples of same-batches-on-every-rank."""

GOOD = (
    """\
import torch
from torch.utils.data import DataLoader

def main(model, data, opt, seed):
    torch.manual_seed(seed)
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=4)
    for x, y in loader:
        opt.zero_grad()
        model(x, y).backward()
        opt.step()
""",
)
