from contextlib import nullcontext
import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, rank, accum=8):
    model = DDP(net.to(rank), device_ids=[rank])
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for i, (x, y) in enumerate(loader):
        x, y = x.to(rank, non_blocking=True), y.to(rank, non_blocking=True)
        last = (i + 1) % accum == 0
        with nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y) / accum
            loss.backward()
        if last:
            opt.step()
            opt.zero_grad(set_to_none=True)
