import torch
import torch.distributed as dist
import torch.nn.functional as F


def train(model, loader, opt, device):
    seen = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += loss.detach()
        if step % 100 == 0:
            avg = loss.detach().clone()
            dist.all_reduce(avg, op=dist.ReduceOp.AVG)
    dist.all_reduce(seen)
    if torch.isnan(seen):
        print("nan somewhere")
    return seen
