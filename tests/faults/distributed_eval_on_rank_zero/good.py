import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    good, n = torch.zeros((), device=device), 0
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        good += (model(x).argmax(1) == y).sum()
        n += y.numel()
    return good / n


def main(net, train_loader, val_loader, sampler, rank, device):
    model = DDP(net.to(device), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        if rank == 0:
            print(epoch, evaluate(model.module, val_loader, device))
            torch.save(model.module.state_dict(), "last.pt")
        dist.barrier()
